/* Byte strings as keys: what is read of them, and of the table, before any is looked for. */
#ifndef WINDJOIN_STRING_KEYS_H
#define WINDJOIN_STRING_KEYS_H
#include "keys.h"
#include "words.h"

/* Strings as Arrow has them: string i from offset i to the next, in numbers of so many bytes. */
typedef struct {
    const uint8_t *data;
    const void *offset;
    int offset_bytes;
} Strings;

static inline int64_t string_begin(const Strings *all, int64_t i) {
    return all->offset_bytes == 8 ? ((const int64_t *)all->offset)[i]
                                  : ((const int32_t *)all->offset)[i];
}

/* A string that has a code. */
typedef struct {
    Words words;
    int64_t start; /* of its bytes */
} KeptString;

#define STRINGS_TOGETHER 32 /* what their lookups read is asked for before the first of them */

/* Strings that are looked for together. */
typedef struct {
    Words words[STRINGS_TOGETHER];
    int64_t hash[STRINGS_TOGETHER];
    uint64_t place[STRINGS_TOGETHER]; /* in the table, where the search for each begins */
} SoughtStrings;

/* All strings that have codes. */
typedef struct {
    const Entry *table; /* by hash */
    uint64_t wrap;
    const KeptString *kept; /* by code */
    const uint8_t *text;
} KnownStrings;

/* Words and hashes of n strings from number `first` on, whose entries are asked for; of all that
 * are usable. */
static inline void hash_strings(const Strings *all, const uint8_t *usable, int64_t first, int64_t n,
                                const KnownStrings *known, SoughtStrings *sought) {
    for (int64_t i = 0; i < n; i++) {
        sought->place[i] = 0;
        if (usable && !usable[first + i]) continue;
        int64_t begin = string_begin(all, first + i);
        sought->words[i] = words_of(all->data + begin, string_begin(all, first + i + 1) - begin);
        uint64_t hash = words_hash(&sought->words[i]);
        sought->hash[i] = (int64_t)hash;
        sought->place[i] = mix64(hash) & known->wrap;
        __builtin_prefetch(known->table + sought->place[i]);
    }
}

/* Of an entry: 1 + the length of a string whose hash tells all of it, else 0. */
static inline uint32_t whole_of(const Words *words) {
    return words->length <= WORDS_HASHED ? 1 + (uint32_t)words->length : 0;
}

/* Ask for what tells whether n strings are known. */
ALWAYS_INLINE void fetch_strings(const KnownStrings *known, const SoughtStrings *sought,
                                 int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const Entry *entry = known->table + sought->place[i];
        if (entry->code >= 0 && !entry->whole) __builtin_prefetch(known->kept + entry->code);
    }
}

/* The entry of a string, or the vacant one where it belongs, from `place` on. */
static inline const Entry *find_string(const KnownStrings *known, uint64_t place, int64_t hash,
                                       const Words *words, const uint8_t *data) {
    uint32_t whole = whole_of(words);
    for (;; place = (place + 1) & known->wrap) {
        const Entry *entry = known->table + place;
        if (entry->code < 0) return entry;
        if (entry->key != hash || entry->whole != whole) continue;
        if (whole) return entry;
        const KeptString *one = known->kept + entry->code;
        if (words_equal(&one->words, known->text + one->start, words, data)) return entry;
    }
}

/* Codes of sought strings from number i on, -1 of those that are not usable, until one has none:
 * its number, or n. */
static inline int64_t find_strings(const KnownStrings *known, const SoughtStrings *sought,
                                   const Strings *all, const uint8_t *usable, int64_t first,
                                   int64_t i, int64_t n, int32_t *out) {
    for (; i < n; i++) {
        if (usable && !usable[first + i]) {
            out[i] = -1;
            continue;
        }
        out[i] = find_string(known, sought->place[i], sought->hash[i], &sought->words[i],
                             all->data + string_begin(all, first + i))
                     ->code;
        if (out[i] < 0) break;
    }
    return i;
}

/* Where sought strings from number i on are looked for in a table that has grown. */
static inline void place_strings(SoughtStrings *sought, int64_t i, int64_t n, uint64_t wrap) {
    for (; i < n; i++) sought->place[i] = mix64((uint64_t)sought->hash[i]) & wrap;
}
#endif
