/* Dictionaries: equal values get equal dense codes, by open addressing with linear probing. */
#ifndef WINDJOIN_KEYS_H
#define WINDJOIN_KEYS_H
#include "memory.h"

static inline uint64_t mix64(uint64_t x) {
    x ^= x >> 32;
    x *= 0x9E3779B97F4A7C15ull;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9ull;
    return x ^ (x >> 32);
}

static inline uint64_t hash_bytes(const uint8_t *data, int64_t n) {
    uint64_t h = 0x9E3779B97F4A7C15ull ^ (uint64_t)n, word = 0;
    for (; n > 8; n -= 8, data += 8) {
        memcpy(&word, data, 8);
        h = mix64(h ^ word) * 0xD6E8FEB86659FD93ull;
    }
    word = 0;
    copy_bytes(&word, data, (size_t)n);
    return mix64(h ^ word);
}

static inline uint64_t word_at(const uint8_t *data) {
    uint64_t word;
    memcpy(&word, data, 8);
    return word;
}

static inline uint32_t half_at(const uint8_t *data) {
    uint32_t half;
    memcpy(&half, data, 4);
    return half;
}

/* Whether n bytes are the same: short ones in two words that may overlap. */
static inline int same_bytes(const uint8_t *a, const uint8_t *b, int64_t n) {
    if (n > 16) return !memcmp(a, b, (size_t)n);
    if (n >= 8) return word_at(a) == word_at(b) && word_at(a + n - 8) == word_at(b + n - 8);
    if (n >= 4) return half_at(a) == half_at(b) && half_at(a + n - 4) == half_at(b + n - 4);
    for (int64_t i = 0; i < n; i++)
        if (a[i] != b[i]) return 0;
    return 1;
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

#define STRINGS_TOGETHER 32 /* what their lookups read is asked for before the first of them */

/* Hashes of n strings from number `first` on, whose entries will be looked for; of all that are
 * usable. */
static inline void hash_strings(const Strings *all, const uint8_t *usable, int64_t first, int64_t n,
                                const Entry *table, uint64_t wrap, int64_t *key) {
    for (int64_t i = 0; i < n; i++) {
        if (usable && !usable[first + i]) continue;
        int64_t begin = string_begin(all, first + i);
        key[i] = (int64_t)hash_bytes(all->data + begin, string_begin(all, first + i + 1) - begin);
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
