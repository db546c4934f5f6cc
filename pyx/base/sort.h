/* Stable radix sort of rows by an int64: which row comes first, second, ... */
#ifndef WINDJOIN_SORT_H
#define WINDJOIN_SORT_H
#include <stdint.h>
#include <string.h>

#define SORT_BY_INSERTION 32 /* rows; below, counting costs more than it saves */

static inline void sort_by_insertion(int64_t *key, int64_t *order, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        int64_t k = key[i], o = order[i], at = i;
        for (; at > 0 && key[at - 1] > k; at--) {
            key[at] = key[at - 1];
            order[at] = order[at - 1];
        }
        key[at] = k;
        order[at] = o;
    }
}

/* Sort n pairs (key, order) by key; `spare` holds 2 * n int64. */
static inline void sort_pairs(int64_t *key, int64_t *order, int64_t n, int64_t *spare) {
    int64_t *from_key = key, *from_order = order, *to_key = spare, *to_order = spare + n;
    uint64_t all_or = 0, all_and = UINT64_MAX;
    if (n <= SORT_BY_INSERTION) {
        sort_by_insertion(key, order, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        all_or |= (uint64_t)key[i];
        all_and &= (uint64_t)key[i];
    }
    for (int shift = 0; shift < 64; shift += 8) {
        uint64_t flip = shift == 56 ? 0x80 : 0; /* negative keys come first */
        int64_t count[257] = {0};
        if ((((all_or ^ all_and) >> shift) & 0xff) == 0) continue;
        for (int64_t i = 0; i < n; i++)
            count[(((uint64_t)from_key[i] >> shift & 0xff) ^ flip) + 1]++;
        for (int d = 0; d < 256; d++) count[d + 1] += count[d];
        for (int64_t i = 0; i < n; i++) {
            int64_t to = count[((uint64_t)from_key[i] >> shift & 0xff) ^ flip]++;
            to_key[to] = from_key[i];
            to_order[to] = from_order[i];
        }
        int64_t *swap = from_key;
        from_key = to_key;
        to_key = swap;
        swap = from_order;
        from_order = to_order;
        to_order = swap;
    }
    if (from_key != key) {
        memcpy(key, from_key, (size_t)n * sizeof(int64_t));
        memcpy(order, from_order, (size_t)n * sizeof(int64_t));
    }
}

/* values[i] = values[order[i]] */
static inline void sort_apply(int64_t *values, const int64_t *order, int64_t n, int64_t *spare) {
    for (int64_t i = 0; i < n; i++) spare[i] = values[order[i]];
    memcpy(values, spare, (size_t)n * sizeof(int64_t));
}
#endif
