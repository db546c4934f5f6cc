/* Basic windows of one stream: runs of rows that are close in time, each sorted by value or not.
 *
 * Slices lie in time order and do not overlap but at equal borders.  With values, rows [0, sorted)
 * of a slice are sorted by value and the few that came since are looked at one by one; without,
 * every row is proposed whose time fits, and which the user's function lets pass if there is one.
 */
#ifndef WINDJOIN_BASIC_WINDOWS_H
#define WINDJOIN_BASIC_WINDOWS_H
#include <stdlib.h>

#include "compress.h"
#include "hop.h"
#include "isa.h"
#include "sort.h"

typedef struct {
    int64_t number; /* live: time / length of a slice */
    int64_t earliest, latest;
    int64_t length, capacity, sorted;
    int64_t *time, *row, *value; /* value: NULL in a scan */
    int64_t *operand;            /* of a function: column k from k * (capacity + SLACK) on */
    int ordered;                 /* by time */
    int64_t at, stop;            /* where the last window began and ended, if ordered */
} BasicWindow;

/* A user's function over n rows: bound operands, then the row's own, column k from k * stride on;
 * as integers and as doubles, whichever an operand is.  Rows for which it raises pass; returns
 * whether there are any. */
typedef int64_t (*Scan)(int64_t n, int64_t stride, const void *bound_ints, const void *bound_reals,
                        const void *own_ints, const void *own_reals, uint8_t *passed);

typedef struct {
    BasicWindow *slices;
    int64_t first, last; /* live ones: [first, last) */
    int64_t hint;
    Scan function;  /* NULL: no function */
    int bound;      /* operands that partial results bring, as Probe.from */
    int64_t raised; /* not 0: the function did, for a row that was looked at */
} WindowRing;

/* First slice that may hold a row with time >= lo. */
static inline int64_t windows_begin(WindowRing *all, int64_t lo) {
    int64_t at = all->hint;
    if (at < all->first || at > all->last) at = all->first;
    while (at > all->first && all->slices[at - 1].latest >= lo) at--;
    while (at < all->last && all->slices[at].latest < lo) at++;
    return all->hint = at;
}

/* First i in [0, length) with value[i] >= wanted. */
static inline int64_t windows_search(const int64_t *value, int64_t length, int64_t wanted) {
    int64_t from = 0;
    while (length > 0) {
        int64_t half = length >> 1;
        int less = value[from + half] < wanted;
        from = less ? from + half + 1 : from;
        length = less ? length - half - 1 : half;
    }
    return from;
}

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Copy rows [at, stop) whose time fits, and whose value does if `values`; return where it stopped.
 */
#define WINDOWS_COPY(ISA, TARGET)                                                                  \
    TARGET static int64_t windows_copy_##ISA(const BasicWindow *slice, const Probe *probe,         \
                                             int64_t i, int64_t at, int64_t stop, int values,      \
                                             Pairs *out) {                                         \
        int64_t lo = probe->lo[i], hi = probe->hi[i], n = out->n;                                  \
        int64_t from = values ? probe->from[i] : 0, to = values ? probe->to[i] : 0;                \
        stop = smaller(stop, at + out->capacity - n);                                              \
        for (; at < stop; at += 8) {                                                               \
            unsigned fits = stop - at < 8 ? (1u << (stop - at)) - 1 : 0xff;                        \
            fits &= within_##ISA(slice->time + at, lo, hi);                                        \
            if (values) fits &= within_##ISA(slice->value + at, from, to);                         \
            compress_##ISA(slice->row + at, fits, out->row + n);                                   \
            if (out->time) compress_##ISA(slice->time + at, fits, out->time + n);                  \
            for (int k = 0; k < 8; k++) out->probe[n + k] = (int32_t)i;                            \
            n += __builtin_popcount(fits);                                                         \
        }                                                                                          \
        out->n = n;                                                                                \
        return stop;                                                                               \
    }

WINDOWS_COPY(plain, )
#ifdef WINDJOIN_X86
WINDOWS_COPY(avx2, TARGET_AVX2)
WINDOWS_COPY(avx512, TARGET_AVX512)
#endif

static inline int64_t windows_emit(const BasicWindow *slice, const Probe *probe, int64_t i,
                                   int64_t at, int64_t stop, int values, Pairs *out) {
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512)
        return windows_copy_avx512(slice, probe, i, at, stop, values, out);
    if (isa_level() == ISA_AVX2) return windows_copy_avx2(slice, probe, i, at, stop, values, out);
#endif
    return windows_copy_plain(slice, probe, i, at, stop, values, out);
}

/* One slice for one probe: first the sorted part between the bounds, then the unsorted rest.
 * cursor->position counts from 1; cursor->stop is the end of the sorted part between the bounds. */
static inline int windows_one(const BasicWindow *slice, const Probe *probe, int64_t i,
                              Cursor *cursor, Pairs *out) {
    int64_t at = cursor->position - 1, stop = cursor->stop;
    int values = slice->value != NULL;
    if (at < 0) {
        at = 0;
        stop = slice->length;
        if (values) {
            int64_t from = probe->from[i], to = probe->to[i];
            stop = 0;
            if (from <= to) {
                at = windows_search(slice->value, slice->sorted, from);
                stop = to == INT64_MAX
                           ? slice->sorted
                           : at + windows_search(slice->value + at, slice->sorted - at, to + 1);
            }
            if (at >= stop) at = stop = slice->sorted;
        }
    }
    if (at < stop) {
        at = windows_emit(slice, probe, i, at, stop, 0, out);
        if (at < stop) goto full;
        at = values ? slice->sorted : slice->length;
        stop = at;
    }
    at = windows_emit(slice, probe, i, at, slice->length, values, out);
    if (at < slice->length) goto full;
    return 1;
full:
    cursor->position = at + 1;
    cursor->stop = stop;
    return 0;
}

static int windows_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out) {
    WindowRing *all = index;
    for (; cursor->probe < probe->n; cursor->probe++) {
        int64_t i = cursor->probe;
        if (probe->lo[i] > probe->hi[i]) continue;
        int64_t s = cursor->part ? cursor->part - 1 : windows_begin(all, probe->lo[i]);
        for (; s < all->last && all->slices[s].earliest <= probe->hi[i]; s++) {
            cursor->part = s + 1;
            if (out->n >= out->capacity) return 0;
            if (!windows_one(all->slices + s, probe, i, cursor, out)) return 0;
            cursor->position = cursor->stop = 0;
        }
        cursor->part = 0;
    }
    return 1;
}

#define SCAN_ROWS 1024   /* of one call */
#define SCAN_CALLS 16    /* then the pipeline may look for Ctrl-C */
#define MOST_BOUND 32    /* operands */

/* Rows [at, at + n) of a slice that passed; where it stopped because `out` is full, or -1. */
#define WINDOWS_SCAN(ISA, TARGET)                                                                  \
    TARGET static int64_t windows_passed_##ISA(const BasicWindow *slice, const Probe *probe,       \
                                               int64_t i, int64_t at, int64_t n,                   \
                                               const uint8_t *passed, Pairs *out) {                \
        int64_t lo = probe->lo[i], hi = probe->hi[i];                                              \
        for (int64_t k = 0; k < n; k += 64) {                                                      \
            uint64_t bits = passed_##ISA(passed + k);                                              \
            while (bits) {                                                                         \
                int from = __builtin_ctzll(bits) & ~7;                                             \
                int64_t row = at + k + from;                                                       \
                unsigned fits = (unsigned)(bits >> from) & 0xff;                                   \
                if (out->n >= out->capacity) return row;                                           \
                fits &= within_##ISA(slice->time + row, lo, hi);                                   \
                compress_##ISA(slice->row + row, fits, out->row + out->n);                         \
                if (out->time) compress_##ISA(slice->time + row, fits, out->time + out->n);        \
                for (int j = 0; j < 8; j++) out->probe[out->n + j] = (int32_t)i;                   \
                out->n += __builtin_popcount(fits);                                                \
                bits &= ~((uint64_t)0xff << from);                                                 \
            }                                                                                      \
        }                                                                                          \
        return -1;                                                                                 \
    }

/* 64 bytes, 0 or 1, as bits. */
static inline uint64_t passed_plain(const uint8_t *passed) {
    uint64_t bits = 0, eight;
    for (int k = 0; k < 8; k++) {
        memcpy(&eight, passed + 8 * k, 8);
        if (!eight) continue; /* most of the time, where a function is worth calling */
        for (int j = 0; j < 8; j++) bits |= (uint64_t)passed[8 * k + j] << (8 * k + j);
    }
    return bits;
}

WINDOWS_SCAN(plain, )
#ifdef WINDJOIN_X86
TARGET_AVX2 static inline uint64_t passed_avx2(const uint8_t *passed) {
    const __m256i zero = _mm256_setzero_si256();
    __m256i a = _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)passed), zero);
    __m256i b = _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)(passed + 32)), zero);
    return ~((uint64_t)(uint32_t)_mm256_movemask_epi8(a) |
             (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32);
}

TARGET_AVX512 static inline uint64_t passed_avx512(const uint8_t *passed) {
    __m512i bytes = _mm512_loadu_si512(passed);
    return _mm512_test_epi8_mask(bytes, bytes);
}

WINDOWS_SCAN(avx2, TARGET_AVX2)
WINDOWS_SCAN(avx512, TARGET_AVX512)
#endif

static inline int64_t windows_passed(const BasicWindow *slice, const Probe *probe, int64_t i,
                                     int64_t at, int64_t n, const uint8_t *passed, Pairs *out) {
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512)
        return windows_passed_avx512(slice, probe, i, at, n, passed, out);
    if (isa_level() == ISA_AVX2) return windows_passed_avx2(slice, probe, i, at, n, passed, out);
#endif
    return windows_passed_plain(slice, probe, i, at, n, passed, out);
}

/* First i in [0, length) with value[i] >= wanted, near a place where it was before. */
static inline int64_t windows_near(const int64_t *value, int64_t length, int64_t wanted,
                                   int64_t before) {
    int64_t step = 1, at = smaller(before, length);
    if (at < length && value[at] < wanted) {
        for (at++; at + step <= length && value[at + step - 1] < wanted; step *= 2) at += step;
        return at + windows_search(value + at, smaller(step, length - at), wanted);
    }
    for (; at >= step && value[at - step] >= wanted; step *= 2) at -= step;
    int64_t low = at >= step ? at - step : 0;
    return low + windows_search(value + low, at - low, wanted);
}

/* Rows [at, stop) of a slice hold all whose time fits. */
static inline void windows_fitting(BasicWindow *slice, int64_t lo, int64_t hi) {
    int64_t at = 0, stop = slice->length;
    if (slice->ordered && slice->latest > hi)
        stop = windows_near(slice->time, stop, hi + 1, slice->stop);
    if (slice->ordered && slice->earliest < lo) at = windows_near(slice->time, stop, lo, slice->at);
    slice->at = at;
    slice->stop = stop;
}

/* As windows_serve, through a function; cursor->position: row of the slice to go on with, from 1.
 */
static int windows_scan(void *index, const Probe *probe, Cursor *cursor, Pairs *out) {
    WindowRing *all = index;
    uint8_t passed[SCAN_ROWS + 64];
    int64_t bound[MOST_BOUND], at;
    int calls = 0;
    for (; cursor->probe < probe->n; cursor->probe++) {
        int64_t i = cursor->probe;
        if (probe->lo[i] > probe->hi[i]) continue;
        for (int v = 0; v < all->bound; v++) bound[v] = probe->from[v * probe->stride + i];
        int64_t s = cursor->part ? cursor->part - 1 : windows_begin(all, probe->lo[i]);
        for (; s < all->last && all->slices[s].earliest <= probe->hi[i]; s++) {
            BasicWindow *slice = all->slices + s;
            windows_fitting(slice, probe->lo[i], probe->hi[i]);
            for (at = cursor->position ? cursor->position - 1 : slice->at; at < slice->stop;
                 at += SCAN_ROWS) {
                int64_t n = smaller(slice->stop - at, SCAN_ROWS);
                all->raised |= all->function(n, slice->capacity + SLACK, bound, bound,
                                             slice->operand + at, slice->operand + at, passed);
                memset(passed + n, 0, 64);
                int64_t full = windows_passed(slice, probe, i, at, n, passed, out);
                if (full < 0 && ++calls < SCAN_CALLS) continue;
                cursor->part = s + 1;
                cursor->position = 1 + (full < 0 ? at + n : full);
                return 0;
            }
            cursor->position = 0;
        }
        cursor->part = 0;
    }
    return 1;
}

/* Sort a slice by value; `spare` holds 3 * length int64. */
static inline void windows_sort(BasicWindow *slice, int64_t *spare) {
    int64_t n = slice->length, *order = spare + 2 * n;
    for (int64_t i = 0; i < n; i++) order[i] = i;
    sort_pairs(slice->value, order, n, spare);
    sort_apply(slice->time, order, n, spare);
    sort_apply(slice->row, order, n, spare);
    slice->sorted = n;
}
#endif
