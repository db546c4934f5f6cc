/* Dictionaries: equal values get equal dense codes, by open addressing with linear probing. */
#ifndef WINDJOIN_KEYS_H
#define WINDJOIN_KEYS_H
#include "isa.h"
#include "memory.h"

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
    uint32_t whole; /* of bytes: 1 + their number if the hash tells all of them, else 0 */
} Entry;

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
