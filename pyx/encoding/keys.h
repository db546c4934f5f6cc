/* Dictionaries: equal values get equal dense codes, by open addressing with linear probing. */
#ifndef WINDJOIN_KEYS_H
#define WINDJOIN_KEYS_H
#include "isa.h"
#include "memory.h"
#include "words.h"

static inline uint64_t mix64(uint64_t x) {
    x ^= x >> 32;
    x *= 0x9E3779B97F4A7C15ull;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9ull;
    return x ^ (x >> 32);
}

typedef struct {
    int64_t key; /* the value, or the hash of the bytes */
    int32_t code;
} Entry;

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

/* Words and hashes of n strings from number `first` on, whose entries will be looked for; of all
 * that are usable. */
static inline void hash_strings(const Strings *all, const uint8_t *usable, int64_t first, int64_t n,
                                const Entry *table, uint64_t wrap, Words *words, int64_t *key) {
    for (int64_t i = 0; i < n; i++) {
        key[i] = 0;
        if (usable && !usable[first + i]) continue;
        int64_t begin = string_begin(all, first + i);
        words[i] = words_of(all->data + begin, string_begin(all, first + i + 1) - begin);
        key[i] = (int64_t)words_hash(words + i);
        __builtin_prefetch(table + (mix64((uint64_t)key[i]) & wrap));
    }
}

/* The entry of an integer key, or the vacant one where it belongs (code < 0). */
static inline Entry *find_integer(Entry *table, uint64_t wrap, int64_t key) {
    uint64_t at = mix64((uint64_t)key) & wrap;
    while (table[at].code >= 0 && table[at].key != key) at = (at + 1) & wrap;
    return table + at;
}

#define ENTRIES_AHEAD 8 /* that of a key is fetched so many keys earlier */

#define ENTRIES_TOGETHER 32 /* of many keys, fetched before the first is looked for */

/* Where n keys will be looked for, and put if they are new: in the array of those that lie close
 * together, and in the table.  Always inline, see lines_fetch. */
ALWAYS_INLINE void fetch_integers(const Entry *table, uint64_t wrap, const int32_t *near,
                                  uint64_t low, uint64_t span, const int64_t *key, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        uint64_t at = (uint64_t)key[i] - low;
        if (at < span) __builtin_prefetch(near + at, 1);
        __builtin_prefetch(table + (mix64((uint64_t)key[i]) & wrap), 1);
    }
}

static inline int64_t pair_key(int32_t code, int32_t more) { return (int64_t)code << 32 | more; }

/* The entries of pairs [0, n) will be looked for. */
static inline void fetch_pairs(const Entry *table, uint64_t wrap, const int32_t *code,
                               const int32_t *more, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        __builtin_prefetch(table + (mix64((uint64_t)pair_key(code[i], more[i])) & wrap));
}

/* Codes of pairs of codes, -1 where there is none, or no such pair; in place of the first. */
static inline void find_pairs(Entry *table, uint64_t wrap, int32_t *code, const int32_t *more,
                              int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (i % ENTRIES_AHEAD == 0)
            fetch_pairs(table, wrap, code + i, more + i,
                        n - i < ENTRIES_AHEAD ? n - i : ENTRIES_AHEAD);
        if (code[i] >= 0 && more[i] >= 0)
            code[i] = find_integer(table, wrap, pair_key(code[i], more[i]))->code;
        else code[i] = -1;
    }
}
#endif
