/* Distances of two vectors in vector registers, in another order than the exact one.
 *
 * All terms are >= 0, so a sum of n of them has a relative error below (n + 4) units of rounding,
 * whatever the order.  An answer is given only where the threshold lies outside twice that.
 */
#ifndef WINDJOIN_QUICK_H
#define WINDJOIN_QUICK_H
#include "measures.h"

#define FLOAT_UNIT 5.9604644775390625e-08
#define DOUBLE_UNIT 1.1102230246251565e-16

#ifdef WINDJOIN_X86
TARGET_AVX512 static double quick_sum_float(int squared, const float *a, const float *b, int64_t n) {
    const __m512 none = _mm512_setzero_ps();
    __m512 sum = none, more = none;
    for (int64_t k = 0; k < n; k += 32) {
        __mmask16 first = n - k < 16 ? (__mmask16)((1u << (n - k)) - 1) : 0xffff;
        int64_t rest = n - k - 16;
        __mmask16 second = rest <= 0 ? 0 : rest < 16 ? (__mmask16)((1u << rest) - 1) : 0xffff;
        __m512 d = _mm512_sub_ps(_mm512_maskz_loadu_ps(first, a + k), _mm512_maskz_loadu_ps(first, b + k));
        __m512 e = _mm512_sub_ps(_mm512_maskz_loadu_ps(second, a + k + 16),
                                 _mm512_maskz_loadu_ps(second, b + k + 16));
        sum = squared ? _mm512_fmadd_ps(d, d, sum) : _mm512_add_ps(sum, _mm512_abs_ps(d));
        more = squared ? _mm512_fmadd_ps(e, e, more) : _mm512_add_ps(more, _mm512_abs_ps(e));
    }
    return _mm512_reduce_add_ps(_mm512_add_ps(sum, more));
}

TARGET_AVX512 static double quick_sum_double(int squared, const double *a, const double *b, int64_t n) {
    __m512d sum = _mm512_setzero_pd();
    for (int64_t k = 0; k < n; k += 8) {
        __mmask8 here = n - k < 8 ? (__mmask8)((1u << (n - k)) - 1) : 0xff;
        __m512d d = _mm512_sub_pd(_mm512_maskz_loadu_pd(here, a + k), _mm512_maskz_loadu_pd(here, b + k));
        sum = squared ? _mm512_fmadd_pd(d, d, sum) : _mm512_add_pd(sum, _mm512_abs_pd(d));
    }
    return _mm512_reduce_add_pd(sum);
}
#endif

/* A quick sum up to which (low) it is sure to be within the threshold, and from which on (high) above. */
typedef struct {
    double low, high;
} QuickLimits;

/* For sums of n terms; nothing is sure where low is -inf and high is inf. */
static inline QuickLimits quick_limits(const Measure *m, int64_t n) {
    double limit = m->measure == L2 ? m->threshold * m->threshold : m->threshold;
    double least = m->doubles ? 1e-280 : 1e-30, most = m->doubles ? 1e280 : 1e30;
    double band = 2 * (double)(n + 8) * (m->doubles ? DOUBLE_UNIT : FLOAT_UNIT);
    if (!(m->threshold >= 0) || limit >= most || limit <= least || band > 0.1)
        return (QuickLimits){-INFINITY, INFINITY};
    return (QuickLimits){limit * (1 - band), limit * (1 + band)};
}

/* 1 passes, 0 does not, -1 too close to say. */
static inline int quick_answer(const Measure *m, const void *a, const void *b, int64_t n) {
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512 && m->threshold >= 0) {
        int squared = m->measure == L2;
        double sum = m->doubles ? quick_sum_double(squared, a, b, n) : quick_sum_float(squared, a, b, n);
        double least = m->doubles ? 1e-280 : 1e-30, most = m->doubles ? 1e280 : 1e30;
        double limit = squared ? m->threshold * m->threshold : m->threshold;
        double band = 2 * (n + 8) * (m->doubles ? DOUBLE_UNIT : FLOAT_UNIT);
        if (sum >= most || limit >= most || limit <= least || isnan(sum) || band > 0.1) return -1;
        int near = m->operation == BELOW || m->operation == UP_TO;
        int far = m->operation == ABOVE || m->operation == FROM;
        if (sum < limit * (1 - band) && (near || far)) return near;
        if (sum > limit * (1 + band) && (near || far)) return far;
    }
#else
    (void)m, (void)a, (void)b, (void)n;
#endif
    return -1;
}

/* Whether two rows pass: by a quick estimate if that is clear, else by the exact value. */
static inline int rows_pass(const Measure *m, Components asking, Components target) {
    if ((m->measure == L2 || m->measure == L1) && asking.n == target.n) {
        int answer = quick_answer(m, asking.at, target.at, asking.n);
        if (answer >= 0) return answer;
    }
    return passes(m, m->turned ? measure_value(m, target, asking) : measure_value(m, asking, target));
}

static void keep_measured(void *filter, const int64_t *bound, Pairs *pairs) {
    const Measure *m = filter;
    int64_t n = pairs->n, kept = 0;
    for (int64_t k = 0; k < n; k++) {
        Components asking = components(&m->asking, bound[pairs->probe[k]]);
        Components target = components(&m->target, pairs->row[k]);
        int fits = rows_pass(m, asking, target);
        pairs->probe[kept] = pairs->probe[k];
        pairs->row[kept] = pairs->row[k];
        if (pairs->time) pairs->time[kept] = pairs->time[k];
        kept += fits;
    }
    pairs->n = kept;
}
#endif
