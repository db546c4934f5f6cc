/* The loops between two probes: what to ask next, which candidates stand, longer partial results.
 */
#ifndef WINDJOIN_PIPELINE_H
#define WINDJOIN_PIPELINE_H
#include <math.h>

#include "hop.h"
#include "isa.h"
#include "times.h"

#define MOST_STREAMS 16

/* n partial results: row number per bound stream, T = latest time, D = earliest end of a window. */
typedef struct {
    int64_t n;
    int64_t *row[MOST_STREAMS];
    int64_t *latest;
    int64_t *deadline;
} Partials;

enum { LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, NOT_EQUAL, BETWEEN, EQUAL_CODE, NOT_EQUAL_CODE };

/* bound <op> target; BETWEEN: low <= bound - target <= high */
typedef struct {
    int operation;
    int real; /* operands are doubles */
    int bound_stream;
    const Column *bound;
    const Column *target;
    __int128 low, high; /* a difference of int64 has 65 bits */
    double real_low, real_high;
} Comparison;

static inline void set_bounds(Comparison *c, int64_t low_high, uint64_t low_low, int64_t high_high,
                              uint64_t high_low) {
    c->low = ((__int128)low_high << 64) | low_low;
    c->high = ((__int128)high_high << 64) | high_low;
}

static inline int64_t saturated(__int128 value) {
    return value > INT64_MAX ? INT64_MAX : value < INT64_MIN ? INT64_MIN : (int64_t)value;
}

#define AT(column, type, row) (((const type *)(column)->data)[(row) & (column)->mask])

/* Time bounds of the next hop: T - W <= t <= D, or t < D. */
static inline void bounds(const Partials *in, int64_t window, int before, int64_t *lo,
                          int64_t *hi) {
    if (!before) {
        times_windows(in->latest, in->n, window, 0, lo, hi);
        memcpy(hi, in->deadline, (size_t)in->n * sizeof(int64_t));
        return;
    }
    for (int64_t i = 0; i < in->n; i++) {
        lo[i] = subtract_saturated(in->latest[i], window);
        hi[i] = subtract_saturated(in->deadline[i], 1);
        if (in->deadline[i] == INT64_MIN) lo[i] = INT64_MAX;
    }
}

static inline void gather_codes(const Column *column, const int64_t *row, int64_t n, int32_t *out) {
    for (int64_t i = 0; i < n; i++) out[i] = AT(column, int32_t, row[i]);
}

/* sortable() of the doubles at the ends. */
#define LEAST_REAL (-0x7ff0000000000001ll) /* -inf */
#define MOST_REAL 0x7ff0000000000000ll

static inline int at_most(double v, int64_t key, double high) {
    return v - from_sortable(key) <= high;
}
static inline int at_least(double v, int64_t key, double low) {
    return v - from_sortable(key) >= low;
}

/* First key in [LEAST_REAL, MOST_REAL] at which v - value <= high; v is finite. */
static inline int64_t first_at_most(double v, double high) {
    int64_t key = sortable(v - high), low = LEAST_REAL, past = MOST_REAL + 1;
    key += !at_most(v, key, high);
    if (key <= MOST_REAL && key > LEAST_REAL) {
        key -= at_most(v, key - 1, high);
        if (key > LEAST_REAL && at_most(v, key, high) && !at_most(v, key - 1, high)) return key;
    }
    while (low < past) { /* differences are rounded: many values may have the same */
        int64_t middle = low + (int64_t)(((uint64_t)past - (uint64_t)low) >> 1);
        if (at_most(v, middle, high)) past = middle;
        else low = middle + 1;
    }
    return low;
}

/* Values y with low <= v - y <= high, the difference rounded as a double: an interval. */
static inline void real_range(double v, double low, double high, int64_t *from, int64_t *to) {
    *from = MOST_REAL;
    *to = LEAST_REAL;
    if (isnan(v)) return;
    if (isinf(v)) {
        if (v > 0 && high == INFINITY) *from = LEAST_REAL, *to = MOST_REAL - 1;
        if (v < 0 && low == -INFINITY) *from = LEAST_REAL + 1, *to = MOST_REAL;
        return;
    }
    *from = first_at_most(v, high);
    *to = ~first_at_most(-v, -low); /* v - y >= low is (-v) - (-y) <= -low; ~key is that of -y */
}

/* What real_range does with nearly every value: three neighbouring keys decide.  Lanes where they
 * do not, or which are not finite, are left to it; a loop of this has no branch. */
static inline int64_t near_first_at_most(double v, double high, int64_t *unsure) {
    int64_t key = sortable(v - high);
    int below = at_most(v, key - 1, high), here = at_most(v, key, high),
        above = at_most(v, key + 1, high);
    *unsure |= (below != 0) | (above == 0) | (key <= LEAST_REAL + 1) | (key >= MOST_REAL - 1);
    return key + !here;
}

#define RANGE_BLOCK 64

/* real_range() of n values. */
#define REAL_RANGES(NAME, TARGET)                                                                  \
    TARGET static void NAME(const double *v, int64_t n, double low, double high, int64_t *from,    \
                            int64_t *to) {                                                         \
        int64_t any = 0;                                                                           \
        for (int64_t i = 0; i < n; i++) {                                                          \
            int64_t unsure = !(fabs(v[i]) < INFINITY);                                             \
            from[i] = near_first_at_most(v[i], high, &unsure);                                     \
            to[i] = ~near_first_at_most(-v[i], -low, &unsure);                                     \
            any |= unsure;                                                                         \
        }                                                                                          \
        if (any)                                                                                   \
            for (int64_t i = 0; i < n; i++) real_range(v[i], low, high, from + i, to + i);         \
    }

REAL_RANGES(real_ranges_plain, )
#ifdef WINDJOIN_X86
REAL_RANGES(real_ranges_avx2, TARGET_AVX2)
REAL_RANGES(real_ranges_avx512, TARGET_AVX512)
#endif

static inline void real_ranges(const double *v, int64_t n, double low, double high, int64_t *from,
                               int64_t *to) {
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) {
        real_ranges_avx512(v, n, low, high, from, to);
        return;
    }
    if (isa_level() == ISA_AVX2) {
        real_ranges_avx2(v, n, low, high, from, to);
        return;
    }
#endif
    real_ranges_plain(v, n, low, high, from, to);
}

/* Values of the target that stand against one bound value. */
static inline void value_range(const Comparison *c, int64_t row, int64_t *from, int64_t *to) {
    *from = INT64_MIN;
    *to = INT64_MAX;
    if (c->operation == BETWEEN) {
        if (c->real) {
            real_range(AT(c->bound, double, row), c->real_low, c->real_high, from, to);
        } else {
            int64_t v = AT(c->bound, int64_t, row);
            *from = saturated(v - c->high);
            *to = saturated(v - c->low);
            if (v - c->high > INT64_MAX || v - c->low < INT64_MIN)
                *from = INT64_MAX, *to = INT64_MIN;
        }
        return;
    }
    int64_t v = c->real ? sortable(AT(c->bound, double, row)) : AT(c->bound, int64_t, row);
    if (c->operation == LESS_EQUAL) *from = v;
    if (c->operation == GREATER_EQUAL) *to = v;
    if (c->operation == LESS) *from = v == INT64_MAX ? (*to = INT64_MIN, INT64_MAX) : v + 1;
    if (c->operation == GREATER) *to = v == INT64_MIN ? (*from = INT64_MAX, INT64_MIN) : v - 1;
}

static inline void value_ranges(const Comparison *c, const Partials *in, int64_t *from,
                                int64_t *to) {
    const int64_t *row = in->row[c->bound_stream];
    if (c->operation == BETWEEN && c->real) {
        double v[RANGE_BLOCK];
        for (int64_t at = 0; at < in->n; at += RANGE_BLOCK) {
            int64_t few = in->n - at < RANGE_BLOCK ? in->n - at : RANGE_BLOCK;
            for (int64_t i = 0; i < few; i++) v[i] = AT(c->bound, double, row[at + i]);
            real_ranges(v, few, c->real_low, c->real_high, from + at, to + at);
        }
        return;
    }
    for (int64_t i = 0; i < in->n; i++) value_range(c, row[i], from + i, to + i);
}

/* The same for one more condition on a value that has a range already. */
static inline void narrow_ranges(const Comparison *c, const Partials *in, int64_t *from,
                                 int64_t *to) {
    const int64_t *row = in->row[c->bound_stream];
    for (int64_t i = 0; i < in->n; i++) {
        int64_t least, most;
        value_range(c, row[i], &least, &most);
        if (least > from[i]) from[i] = least;
        if (most < to[i]) to[i] = most;
    }
}

static inline int difference_within(int64_t x, int64_t y, __int128 low, __int128 high) {
    __int128 d = (__int128)x - y;
    return d >= low && d <= high;
}

/* Keep pair k at place m if it fits; a loop of it never branches on the data. */
#define KEEP_PAIR(pairs, m, k, fits)                                                               \
    do {                                                                                           \
        int fits_ = (fits);                                                                        \
        (pairs)->probe[m] = (pairs)->probe[k];                                                     \
        (pairs)->row[m] = (pairs)->row[k];                                                         \
        if ((pairs)->time) (pairs)->time[m] = (pairs)->time[k];                                    \
        m += fits_;                                                                                \
    } while (0)

#define FILTER(type, condition)                                                                    \
    for (int64_t k = 0; k < n; k++) {                                                              \
        type x = AT(c->bound, type, row[pairs->probe[k]]);                                         \
        type y = AT(c->target, type, pairs->row[k]);                                               \
        KEEP_PAIR(pairs, m, k, condition);                                                         \
    }

#define FILTER_BOTH(condition)                                                                     \
    do {                                                                                           \
        if (c->real) {                                                                             \
            FILTER(double, condition)                                                              \
        } else {                                                                                   \
            FILTER(int64_t, condition)                                                             \
        }                                                                                          \
    } while (0)

static inline void keep_comparison(const Comparison *c, const Partials *in, Pairs *pairs) {
    const int64_t *row = in->row[c->bound_stream];
    int64_t n = pairs->n, m = 0;
    switch (c->operation) {
    case LESS: FILTER_BOTH(x < y); break;
    case LESS_EQUAL: FILTER_BOTH(x <= y); break;
    case GREATER: FILTER_BOTH(x > y); break;
    case GREATER_EQUAL: FILTER_BOTH(x >= y); break;
    case NOT_EQUAL: FILTER_BOTH(x != y); break;
    case EQUAL_CODE: FILTER(int32_t, (x == y) & (x >= 0)) break;
    case NOT_EQUAL_CODE: FILTER(int32_t, (x != y) & (x >= 0) & (y >= 0)) break;
    default:
        if (c->real) {
            FILTER(double, (x - y >= c->real_low) & (x - y <= c->real_high))
        } else {
            FILTER(int64_t, difference_within(x, y, c->low, c->high))
        }
    }
    pairs->n = m;
}

static inline void keep_mask(const uint8_t *mask, Pairs *pairs) {
    int64_t n = pairs->n, m = 0;
    for (int64_t k = 0; k < n; k++) KEEP_PAIR(pairs, m, k, mask[k] != 0);
    pairs->n = m;
}

/* The last of n stretches, in order, that starts at or before a time; -1 if none does. */
static inline int64_t stretch_at(const int64_t *start, int64_t n, int64_t time) {
    int64_t from = 0, to = n;
    while (from < to) {
        int64_t middle = (from + to) >> 1;
        if (start[middle] <= time) from = middle + 1;
        else to = middle;
    }
    return from - 1;
}

/* Bounds of time that begin or end in one of n stretches [start, last]: no index is asked there. */
static inline void clip_bounds(const int64_t *start, const int64_t *last, int64_t n, int64_t rows,
                               int64_t *lo, int64_t *hi) {
    for (int64_t i = 0; i < rows; i++) {
        int64_t k = stretch_at(start, n, lo[i]), m = stretch_at(start, n, hi[i]);
        for (k = k < 0 ? 0 : k; k < n && start[k] <= lo[i]; k++)
            if (lo[i] <= last[k]) lo[i] = last[k] < INT64_MAX ? last[k] + 1 : INT64_MAX;
        for (; m >= 0 && last[m] >= hi[i]; m--)
            if (hi[i] >= start[m]) hi[i] = start[m] > INT64_MIN ? start[m] - 1 : INT64_MIN;
    }
}

/* Drop candidates whose time lies in one of n stretches [start, last], in order and apart. */
static inline void keep_outside(const Column *time, const int64_t *start, const int64_t *last,
                                int64_t n, Pairs *pairs) {
    int64_t m = 0;
    for (int64_t k = 0; k < pairs->n; k++) {
        int64_t t = AT(time, int64_t, pairs->row[k]), at = stretch_at(start, n, t);
        KEEP_PAIR(pairs, m, k, at < 0 || t > last[at]);
    }
    pairs->n = m;
}

/* One operand of a function for every pair, 8 bytes each. */
static inline void gather_operand(const Column *column, const int64_t *row, const int32_t *via,
                                  int64_t n, int64_t *out) {
    if (via)
        for (int64_t k = 0; k < n; k++) out[k] = AT(column, int64_t, row[via[k]]);
    else
        for (int64_t k = 0; k < n; k++) out[k] = AT(column, int64_t, row[k]);
}

/* Partial results `in` with the rows of `pairs` bound too. */
static inline void extend(const Partials *in, const Pairs *pairs, int64_t window, Partials *out) {
    int64_t n = out->n = pairs->n;
    for (int64_t k = 0; k < n; k++) {
        int64_t time = pairs->time[k], i = pairs->probe[k];
        int64_t end = add_saturated(time, window);
        out->latest[k] = in->latest[i] > time ? in->latest[i] : time;
        out->deadline[k] = in->deadline[i] < end ? in->deadline[i] : end;
    }
}

/* Rows become their numbers. */
static inline void renumber(const Column *numbers, int64_t n, int64_t *row) {
    const int64_t *number = numbers->data;
    for (int64_t k = 0; k < n; k++) row[k] = number[row[k]];
}

static inline void take_rows(const int64_t *row, const int32_t *via, int64_t n, int64_t *out) {
    for (int64_t k = 0; k < n; k++) out[k] = row[via[k]];
}
/* Set marks[row] of n rows; those of one start row often stand together, and are looked at 8 at a
 * time. */
static inline void mark_rows(const int64_t *row, int64_t n, uint8_t *marks) {
    int64_t i = 0;
    while (i < n) {
        int64_t first = row[i], other = 0, k;
        marks[first] = 1;
        if (i + 8 > n) {
            i++;
            continue;
        }
        for (k = 0; k < 8; k++) other |= row[i + k] ^ first;
        if (other)
            for (k = 1; k < 8; k++) marks[row[i + k]] = 1;
        i += 8;
    }
}

/* The same of rows that stand together if they are equal, as those who asked do: the end of a long
 * run is looked for in steps that double. */
static inline void mark_runs(const int64_t *row, int64_t n, uint8_t *marks) {
    int64_t i = 0;
    while (i < n) {
        int64_t first = row[i], step = 8;
        marks[first] = 1;
        if (i + step > n) {
            i++;
            continue;
        }
        if (row[i + step - 1] != first)
            for (int k = 1; k < 8; k++) marks[row[i + k]] = 1;
        else
            while (i + 2 * step <= n && row[i + 2 * step - 1] == first) step *= 2;
        i += step;
    }
}

#endif
