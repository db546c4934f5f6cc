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
/* Floats are turned as floats, in half the room, and made doubles then. */
#define TURN_FLOATS(at, v)                                                                         \
    do {                                                                                           \
        __m256 low[4], high[4];                                                                    \
        UNROLLED                                                                                   \
        for (int i = 0; i < 4; i++) {                                                              \
            low[i] = TWO_FOURS(at(i), at(i + 4));                                                  \
            high[i] = TWO_FOURS(at(i) + 4, at(i + 4) + 4);                                         \
        }                                                                                          \
        TURN_FOURS(v, 0, low);                                                                     \
        TURN_FOURS(v, 4, high);                                                                    \
    } while (0)
#define TWO_FOURS(a, b)                                                                            \
    _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(a)), _mm_loadu_ps(b), 1)
#define TURN_FOURS(v, first, from)                                                                 \
    do {                                                                                           \
        __m256 a = _mm256_unpacklo_ps(from[0], from[1]);                                           \
        __m256 b = _mm256_unpackhi_ps(from[0], from[1]);                                           \
        __m256 c = _mm256_unpacklo_ps(from[2], from[3]);                                           \
        __m256 d = _mm256_unpackhi_ps(from[2], from[3]);                                           \
        v[first + 0] = _mm512_cvtps_pd(_mm256_shuffle_ps(a, c, 0x44));                             \
        v[first + 1] = _mm512_cvtps_pd(_mm256_shuffle_ps(a, c, 0xee));                             \
        v[first + 2] = _mm512_cvtps_pd(_mm256_shuffle_ps(b, d, 0x44));                             \
        v[first + 3] = _mm512_cvtps_pd(_mm256_shuffle_ps(b, d, 0xee));                             \
    } while (0)
#include "lanes.inc"
#undef WITH
#undef TURN_FLOATS
#undef TWO_FOURS
#undef TURN_FOURS
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
#define TURN_FLOATS(at, v)                                                                         \
    do {                                                                                           \
        __m128 a = _mm_loadu_ps(at(0)), b = _mm_loadu_ps(at(1));                                   \
        __m128 c = _mm_loadu_ps(at(2)), d = _mm_loadu_ps(at(3));                                   \
        _MM_TRANSPOSE4_PS(a, b, c, d);                                                             \
        v[0] = _mm256_cvtps_pd(a);                                                                 \
        v[1] = _mm256_cvtps_pd(b);                                                                 \
        v[2] = _mm256_cvtps_pd(c);                                                                 \
        v[3] = _mm256_cvtps_pd(d);                                                                 \
    } while (0)
#include "lanes.inc"
#undef WITH
#undef TURN_FLOATS
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
