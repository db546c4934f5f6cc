/* Exact measures of several pairs of vectors at once, a pair in each lane: every sum goes over the
 * components in their order, as that of one pair does. */
#ifndef WINDJOIN_LANES_H
#define WINDJOIN_LANES_H
#include "measures.h"

#define MOST_LANES 8

#ifdef WINDJOIN_X86
#define WITH(name) name##_avx512
#define TARGET TARGET_AVX512
#define LANES 8
#define VECTOR __m512d
#define LOAD _mm512_loadu_pd
#define LOAD_FLOATS(p) _mm512_cvtps_pd(_mm256_loadu_ps(p))
#define STORE _mm512_storeu_pd
#define SPREAD _mm512_set1_pd
#define ZERO _mm512_setzero_pd()
#define ADD _mm512_add_pd
#define SUB _mm512_sub_pd
#define MUL _mm512_mul_pd
#define MAX _mm512_max_pd
#define ABS _mm512_abs_pd
#define ROOT _mm512_sqrt_pd
#define FOUR(to, from, which)                                                                      \
    do {                                                                                           \
        __m512d low = _mm512_shuffle_f64x2(from[0 + which], from[2 + which], 0x88);                \
        __m512d high = _mm512_shuffle_f64x2(from[4 + which], from[6 + which], 0x88);               \
        to[0 + which] = _mm512_shuffle_f64x2(low, high, 0x88);                                     \
        to[4 + which] = _mm512_shuffle_f64x2(low, high, 0xdd);                                     \
        low = _mm512_shuffle_f64x2(from[0 + which], from[2 + which], 0xdd);                        \
        high = _mm512_shuffle_f64x2(from[4 + which], from[6 + which], 0xdd);                       \
        to[2 + which] = _mm512_shuffle_f64x2(low, high, 0x88);                                     \
        to[6 + which] = _mm512_shuffle_f64x2(low, high, 0xdd);                                     \
    } while (0)
#define TURN(v)                                                                                    \
    do {                                                                                           \
        __m512d pairs[8];                                                                          \
        UNROLLED                                                                                   \
        for (int i = 0; i < 8; i += 2) {                                                           \
            pairs[i] = _mm512_unpacklo_pd(v[i], v[i + 1]);                                         \
            pairs[i + 1] = _mm512_unpackhi_pd(v[i], v[i + 1]);                                     \
        }                                                                                          \
        FOUR(v, pairs, 0);                                                                         \
        FOUR(v, pairs, 1);                                                                         \
    } while (0)
#include "lanes.inc"
#undef WITH
#undef TARGET
#undef LANES
#undef VECTOR
#undef LOAD
#undef LOAD_FLOATS
#undef STORE
#undef SPREAD
#undef ZERO
#undef ADD
#undef SUB
#undef MUL
#undef MAX
#undef ABS
#undef ROOT
#undef FOUR
#undef TURN

#define WITH(name) name##_avx2
#define TARGET TARGET_AVX2
#define LANES 4
#define VECTOR __m256d
#define LOAD _mm256_loadu_pd
#define LOAD_FLOATS(p) _mm256_cvtps_pd(_mm_loadu_ps(p))
#define STORE _mm256_storeu_pd
#define SPREAD _mm256_set1_pd
#define ZERO _mm256_setzero_pd()
#define ADD _mm256_add_pd
#define SUB _mm256_sub_pd
#define MUL _mm256_mul_pd
#define MAX _mm256_max_pd
#define ABS(x) _mm256_andnot_pd(_mm256_set1_pd(-0.0), x)
#define ROOT _mm256_sqrt_pd
#define TURN(v)                                                                                    \
    do {                                                                                           \
        __m256d a = _mm256_unpacklo_pd(v[0], v[1]), b = _mm256_unpackhi_pd(v[0], v[1]);            \
        __m256d c = _mm256_unpacklo_pd(v[2], v[3]), d = _mm256_unpackhi_pd(v[2], v[3]);            \
        v[0] = _mm256_permute2f128_pd(a, c, 0x20);                                                 \
        v[1] = _mm256_permute2f128_pd(b, d, 0x20);                                                 \
        v[2] = _mm256_permute2f128_pd(a, c, 0x31);                                                 \
        v[3] = _mm256_permute2f128_pd(b, d, 0x31);                                                 \
    } while (0)
#include "lanes.inc"
#undef WITH
#undef TARGET
#undef LANES
#undef VECTOR
#undef LOAD
#undef LOAD_FLOATS
#undef STORE
#undef SPREAD
#undef ZERO
#undef ADD
#undef SUB
#undef MUL
#undef MAX
#undef ABS
#undef ROOT
#undef TURN
#endif

/* How many pairs are measured at once; 0: only one after the other. */
static inline int lanes_of(const Measure *m) {
    if (m->measure < L2 || m->measure > COSINE) return 0;
    int level = isa_level();
    return level == ISA_AVX512 ? 8 : level == ISA_AVX2 ? 4 : 0;
}

/* The measures of as many pairs as there are lanes, all of n components; of rows `a`, or of the
 * `one` that a[0] is. */
static inline void lanes_measure(const Measure *m, int lanes, int one, const void *const *a,
                                 const void *const *b, int64_t n, double *out) {
#ifdef WINDJOIN_X86
    if (lanes == 8) score_vectors_avx512(m->measure, m->doubles, one, a, b, n, out);
    else score_vectors_avx2(m->measure, m->doubles, one, a, b, n, out);
#else
    (void)m, (void)lanes, (void)one, (void)a, (void)b, (void)n, (void)out;
#endif
}
#endif
