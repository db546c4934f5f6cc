/* Two runs of rows, each in order of a key and one behind the other, become one.
 *
 * Only rows that have to move do: in runs that overlap little, few.  What of the left run lies
 * behind the first row of the right one is set aside; then both are merged from the front, some
 * rows at a time.
 */
#ifndef WINDJOIN_RUNS_H
#define WINDJOIN_RUNS_H
#include <stdint.h>
#include <string.h>

/* Rows [left, left_end) were set aside, [right, right_end) lie where they were; the next goes to
 * `to`. */
typedef struct {
    int64_t left, left_end, right, right_end, to;
} Runs;

/* The first of rows [from, end) that is greater than `bound`; with `or_equal`, or as great. */
static inline int64_t runs_first_beyond(const int64_t *key, int64_t from, int64_t end,
                                        int64_t bound, int or_equal) {
    while (from < end) {
        int64_t middle = from + (end - from) / 2;
        if (key[middle] < bound || (key[middle] == bound && !or_equal)) from = middle + 1;
        else end = middle;
    }
    return from;
}

/* Runs [first, middle) and [middle, end), of which the left one may be as long as `aside` is. */
static inline Runs runs_begin(const int64_t *key, const int64_t *order, int64_t first,
                              int64_t middle, int64_t end, int64_t *aside_key,
                              int64_t *aside_order) {
    int64_t from = runs_first_beyond(key, first, middle, key[middle], 0);
    Runs runs = {0, middle - from, middle, middle, from};
    if (from < middle) runs.right_end = runs_first_beyond(key, middle, end, key[middle - 1], 1);
    memcpy(aside_key, key + from, (size_t)(middle - from) * sizeof(int64_t));
    memcpy(aside_order, order + from, (size_t)(middle - from) * sizeof(int64_t));
    return runs;
}

/* The next `most` rows, of equal keys the left run's first; whether there are more. */
static inline int runs_merge(Runs *runs, int64_t *key, int64_t *order, const int64_t *aside_key,
                             const int64_t *aside_order, int64_t most) {
    int64_t i = runs->left, j = runs->right, to = runs->to, stop = to + most;
    const int64_t left_end = runs->left_end, right_end = runs->right_end;
    for (; i < left_end && j < right_end && to < stop; to++) {
        int right = key[j] < aside_key[i];
        const int64_t *from_key = right ? key + j : aside_key + i;
        const int64_t *from_order = right ? order + j : aside_order + i;
        key[to] = *from_key;
        order[to] = *from_order;
        j += right;
        i += !right;
    }
    if (j == right_end && to < stop) {
        int64_t n = left_end - i < stop - to ? left_end - i : stop - to;
        memcpy(key + to, aside_key + i, (size_t)n * sizeof(int64_t));
        memcpy(order + to, aside_order + i, (size_t)n * sizeof(int64_t));
        i += n;
        to += n;
    }
    runs->left = i;
    runs->right = j;
    runs->to = to;
    return i < left_end;
}
#endif
