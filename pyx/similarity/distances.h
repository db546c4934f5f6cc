/* Distances of two vectors in vector registers, in another order than the exact one.
 *
 * All terms are >= 0, so a sum of n of them has a relative error below (n + 4) units of rounding,
 * whatever the order.  An answer is given only where the threshold lies outside twice that.
 */
#ifndef WINDJOIN_DISTANCES_H
#define WINDJOIN_DISTANCES_H
#include "measures.h"

#define FLOAT_UNIT 5.9604644775390625e-08
#define DOUBLE_UNIT 1.1102230246251565e-16

#define DISTANCE_MOST 512 /* pairs that are summed together */

/* Pairs of rows of n components each, and their sums. */
typedef struct {
    const void *probing[DISTANCE_MOST], *target[DISTANCE_MOST];
    double sum[DISTANCE_MOST];
} DistancePairs;

#ifdef WINDJOIN_X86
/* Four pairs at a time: the additions of one need not wait for those of another. */
#define DISTANCE_SUMS(name, type, VECTOR, MASK, LANES, P)                                          \
    ALWAYS_INLINE TARGET_AVX512 void name(int squared, DistancePairs *pairs, int64_t from,         \
                                          int many, int64_t n) {                                   \
        VECTOR sum[4];                                                                             \
        UNROLLED for (int p = 0; p < 4; p++) sum[p] = _mm512_setzero_##P();                        \
        for (int64_t k = 0; k < n; k += LANES) {                                                   \
            const MASK here =                                                                      \
                n - k < LANES ? (MASK)((1u << (n - k)) - 1) : (MASK)((1u << LANES) - 1);           \
            UNROLLED for (int p = 0; p < 4; p++) {                                                 \
                const type *a = pairs->probing[from + (p < many ? p : 0)];                         \
                const type *b = pairs->target[from + (p < many ? p : 0)];                          \
                VECTOR d = _mm512_sub_##P(_mm512_maskz_loadu_##P(here, a + k),                     \
                                          _mm512_maskz_loadu_##P(here, b + k));                    \
                sum[p] = squared ? _mm512_fmadd_##P(d, d, sum[p])                                  \
                                 : _mm512_add_##P(sum[p], _mm512_abs_##P(d));                      \
            }                                                                                      \
        }                                                                                          \
        UNROLLED for (int p = 0; p < 4; p++) if (p < many) pairs->sum[from + p] =                  \
            _mm512_reduce_add_##P(sum[p]);                                                         \
    }
DISTANCE_SUMS(distance_four_float, float, __m512, __mmask16, 16, ps)
DISTANCE_SUMS(distance_four_double, double, __m512d, __mmask8, 8, pd)

/* The sums of all pairs. */
TARGET_AVX512 static void distance_sums(const Measure *m, DistancePairs *pairs, int64_t many,
                                        int64_t n) {
    const int squared = m->measure == L2;
    for (int64_t k = 0; k < many; k += 4) {
        const int few = many - k < 4 ? (int)(many - k) : 4;
        if (m->doubles) distance_four_double(squared, pairs, k, few, n);
        else if (few < 4) distance_four_float(squared, pairs, k, few, n);
        else if (squared) distance_four_float(1, pairs, k, 4, n);
        else distance_four_float(0, pairs, k, 4, n);
    }
}
#endif

/* An estimated sum up to which (low) it is sure to be within the threshold, and from which on
 * (high) above. */
typedef struct {
    double low, high;
} DistanceLimits;

/* For sums of n terms; nothing is sure where low is -inf and high is inf. */
static inline DistanceLimits distance_limits(const Measure *m, int64_t n) {
    double limit = m->measure == L2 ? m->threshold * m->threshold : m->threshold;
    double least = m->doubles ? 1e-280 : 1e-30, most = m->doubles ? 1e280 : 1e30;
    double band = 2 * (double)(n + 8) * (m->doubles ? DOUBLE_UNIT : FLOAT_UNIT);
    if (!(m->threshold >= 0) || limit >= most || limit <= least || band > 0.1)
        return (DistanceLimits){-INFINITY, INFINITY};
    return (DistanceLimits){limit * (1 - band), limit * (1 + band)};
}

/* Whether sums say anything about a measure: of L2 and L1, on the processors that sum quickly. */
static inline int has_estimate(const Measure *m) {
    const int ordered = m->operation != EXACTLY && m->operation != OTHER_THAN;
    return isa_level() == ISA_AVX512 && ordered && (m->measure == L2 || m->measure == L1);
}

/* Whether two rows pass, by the exact value. */
static inline int rows_pass(const Measure *m, Components probing, Components target) {
    return passes(m, m->turned ? measure_value(m, target, probing)
                               : measure_value(m, probing, target));
}

/* Which of many pairs of rows of n components pass: by their sums if that is clear. */
static inline void test_distances(const Measure *m, DistancePairs *pairs, int64_t many, int64_t n,
                                  uint8_t *fits) {
#ifdef WINDJOIN_X86
    const DistanceLimits limits = distance_limits(m, n);
    const int near = m->operation == BELOW || m->operation == UP_TO;
    const double most = m->doubles ? 1e280 : 1e30;
    distance_sums(m, pairs, many, n);
    for (int64_t k = 0; k < many; k++) {
        const double sum = pairs->sum[k];
        const int below = sum<limits.low, above = sum> limits.high && sum < most;
        fits[k] = near ? below : above;
        if (!(below | above))
            fits[k] =
                rows_pass(m, (Components){pairs->probing[k], n}, (Components){pairs->target[k], n});
    }
#else
    (void)m, (void)pairs, (void)many, (void)n, (void)fits;
#endif
}

/* Keep those of pairs [from, from + many) that fit, at `kept` on; the place behind them. */
static inline int64_t keep_fitting(Pairs *pairs, int64_t from, int64_t many, const uint8_t *fits,
                                   int64_t kept) {
    for (int64_t k = from; k < from + many; k++) {
        pairs->probe[kept] = pairs->probe[k];
        pairs->row[kept] = pairs->row[k];
        if (pairs->time) pairs->time[kept] = pairs->time[k];
        kept += fits[k - from];
    }
    return kept;
}

static void keep_measured(void *filter, const int64_t *bound, Pairs *pairs) {
    const Measure *m = filter;
    const int estimated = has_estimate(m);
    DistancePairs some;
    uint8_t fits[DISTANCE_MOST];
    int64_t n = pairs->n, kept = 0, many;
    for (int64_t from = 0; from < n; from += many) {
        const int64_t length = components(&m->probing, bound[pairs->probe[from]]).n;
        for (many = 0; many < DISTANCE_MOST && from + many < n; many++) {
            Components probing = components(&m->probing, bound[pairs->probe[from + many]]);
            Components target = components(&m->target, pairs->row[from + many]);
            some.probing[many] = probing.at;
            some.target[many] = target.at;
            if (!estimated) fits[many] = (uint8_t)rows_pass(m, probing, target);
            else if (probing.n != length || target.n != length) break;
        }
        if (estimated && many) test_distances(m, &some, many, length, fits);
        else if (estimated) { /* of two lengths */ many = 1;
            fits[0] = (uint8_t)rows_pass(m, components(&m->probing, bound[pairs->probe[from]]),
                                         components(&m->target, pairs->row[from]));
        }
        kept = keep_fitting(pairs, from, many, fits, kept);
    }
    pairs->n = kept;
}
#endif
