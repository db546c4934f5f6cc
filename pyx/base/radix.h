/* Stable sort of int64 by the digits in which they differ, least first, for many keys that lie
 * within some range: key and place are packed into one word, so that each pass moves 8 bytes per
 * key. */
#ifndef WINDJOIN_RADIX_H
#define WINDJOIN_RADIX_H
#include <stdint.h>
#include <string.h>

#define RADIX_MOST_DIGIT 11
#define RADIX_MOST_PASSES 6
#define RADIX_BUCKETS (1 << RADIX_MOST_DIGIT)

typedef struct {
    int64_t n;
    uint64_t least; /* key */
    int shift;      /* bits of a place, below those of the key */
    int passes, digit;
    int64_t next[RADIX_MOST_PASSES][RADIX_BUCKETS];
} Radix;

static inline int radix_bits(uint64_t span) { return span ? 64 - __builtin_clzll(span) : 0; }

/* Whether key and place fit together into a word, and few passes do; sets up all but `next`. */
static inline int radix_begin(Radix *r, int64_t n, int64_t least, int64_t most) {
    int bits = radix_bits((uint64_t)most - (uint64_t)least);
    r->n = n;
    r->least = (uint64_t)least;
    r->shift = radix_bits((uint64_t)n);
    r->passes = bits ? (bits + RADIX_MOST_DIGIT - 1) / RADIX_MOST_DIGIT : 1;
    r->digit = bits ? (bits + r->passes - 1) / r->passes : 1;
    memset(r->next, 0, sizeof(r->next));
    return bits + r->shift <= 64 && r->passes <= RADIX_MOST_PASSES;
}

static inline void radix_count(Radix *r, const int64_t *key, int64_t first, int64_t last) {
    uint64_t mask = ((uint64_t)1 << r->digit) - 1;
    for (int64_t i = first; i < last; i++) {
        uint64_t k = (uint64_t)key[i] - r->least;
        for (int p = 0; p < r->passes; p++, k >>= r->digit) r->next[p][k & mask]++;
    }
}

static inline void radix_place(Radix *r) {
    for (int p = 0; p < r->passes; p++) {
        int64_t at = 0;
        for (int b = 0; b < RADIX_BUCKETS; b++) {
            int64_t count = r->next[p][b];
            r->next[p][b] = at;
            at += count;
        }
    }
}

/* One pass over elements [first, last): the first takes the keys themselves (packed is NULL), the
 * last gives places and keys (out is NULL). */
static inline void radix_pass(Radix *r, int pass, const int64_t *key, const uint64_t *packed,
                              uint64_t *out, int64_t *order, int64_t *sorted, int64_t first,
                              int64_t last) {
    uint64_t mask = ((uint64_t)1 << r->digit) - 1, places = ((uint64_t)1 << r->shift) - 1;
    int64_t *next = r->next[pass];
    int low = r->shift + pass * r->digit;
    for (int64_t i = first; i < last; i++) {
        uint64_t one = packed ? packed[i] : ((uint64_t)key[i] - r->least) << r->shift | (uint64_t)i;
        int64_t to = next[one >> low & mask]++;
        if (out) {
            out[to] = one;
        } else {
            order[to] = (int64_t)(one & places);
            sorted[to] = (int64_t)((one >> r->shift) + r->least);
        }
    }
}
#endif
