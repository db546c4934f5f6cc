/* Stable radix sort of rows by an int64: which row comes first, second, ... */
#ifndef WINDJOIN_SORT_H
#define WINDJOIN_SORT_H
#include <stdint.h>
#include <string.h>

#define SORT_BY_INSERTION 32 /* rows; below, counting costs more than it saves */
#define SORT_STRAYS 8        /* one of so many rows may stray, at most, for the others to stay */

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

static inline void sort_by_digits(int64_t *key, int64_t *order, int64_t n, int64_t *spare) {
    int64_t *from_key = key, *from_order = order, *to_key = spare, *to_order = spare + n;
    uint64_t all_or = 0, all_and = UINT64_MAX;
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

/* Keys that are less than one before them; more than `most`, if there are. */
static inline int64_t sort_count_strays(const int64_t *key, int64_t n, int64_t most) {
    int64_t strays = 0, greatest = INT64_MIN;
    for (int64_t i = 0; i < n && strays <= most; i++) {
        strays += key[i] < greatest;
        greatest = key[i] > greatest ? key[i] : greatest;
    }
    return strays;
}

/* Sort n pairs (key, order) by key; `spare` holds 2 * n int64.  Where few keys stray, as in streams
 * that are nearly in order, these are taken out, sorted, and merged into the others:
 *
 *   key     1 4 2 6 7 5 9        in order  1 4 6 7 9        strays  2 5
 */
static inline void sort_pairs(int64_t *key, int64_t *order, int64_t n, int64_t *spare) {
    if (n <= SORT_BY_INSERTION) {
        sort_by_insertion(key, order, n);
        return;
    }
    int64_t strays = sort_count_strays(key, n, n / SORT_STRAYS), in_order = 0, taken = 0;
    if (strays > n / SORT_STRAYS) {
        sort_by_digits(key, order, n, spare);
        return;
    }
    int64_t *stray = spare, *stray_order = spare + strays;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = key[i], o = order[i];
        if (in_order && k < key[in_order - 1]) {
            stray[taken] = k;
            stray_order[taken++] = o;
        } else {
            key[in_order] = k;
            order[in_order++] = o;
        }
    }
    if (strays <= SORT_BY_INSERTION) sort_by_insertion(stray, stray_order, strays);
    else sort_by_digits(stray, stray_order, strays, spare + 2 * strays);
    for (int64_t to = n - 1; taken; to--) { /* from the end; of equal ones a stray came later */
        if (in_order && key[in_order - 1] > stray[taken - 1]) {
            key[to] = key[--in_order];
            order[to] = order[in_order];
        } else {
            key[to] = stray[--taken];
            order[to] = stray_order[taken];
        }
    }
}

/* values[i] = values[order[i]] */
static inline void sort_apply(int64_t *values, const int64_t *order, int64_t n, int64_t *spare) {
    for (int64_t i = 0; i < n; i++) spare[i] = values[order[i]];
    memcpy(values, spare, (size_t)n * sizeof(int64_t));
}
#endif
