/* How many items two small sets have in common: every item of one is compared with all of the
 * other's at once. */
#ifndef WINDJOIN_SMALL_SETS_H
#define WINDJOIN_SMALL_SETS_H
#include "measures.h"

#ifdef WINDJOIN_X86
#define AT_ONCE 16       /* items of one set */
#define MOST_COMPARED 32 /* items of the other */

/* What COMPARE(to, i) does for item i of n, to one of four values each: without a branch between
 * four items, and the last four may be some that were compared before. */
#define COMPARE_ALL(COMPARE, n)                                                                    \
    if ((n) < 4) {                                                                                 \
        for (int64_t i = 0; i < (n); i++) COMPARE(0, i);                                           \
    } else {                                                                                       \
        const int64_t last = (n) - 4;                                                              \
        COMPARE(0, last)                                                                           \
        COMPARE(1, last + 1)                                                                       \
        COMPARE(2, last + 2) COMPARE(3, last + 3) for (int64_t i = 0; i < last; i += 4) {          \
            COMPARE(0, i) COMPARE(1, i + 1) COMPARE(2, i + 2) COMPARE(3, i + 3)                    \
        }                                                                                          \
    }

/* Items of two sets in common, of which the other has at most AT_ONCE: each of one is compared with
 * all of those at once. */
TARGET_AVX512 static inline int64_t common_with_16_avx512(const int32_t *one, int64_t n_one,
                                                          const int32_t *code, int64_t n) {
    const __mmask16 here = (__mmask16)((1u << n) - 1);
    const __m512i codes = _mm512_maskz_loadu_epi32(here, code);
    __mmask16 missed0 = here, missed1 = here, missed2 = here, missed3 = here;
#define COMPARE(k, i)                                                                              \
    missed##k = _mm512_mask_cmpneq_epi32_mask(missed##k, codes, _mm512_set1_epi32(one[i]));
    COMPARE_ALL(COMPARE, n_one)
#undef COMPARE
    missed0 = _kand_mask16(_kand_mask16(missed0, missed1), _kand_mask16(missed2, missed3));
    return n - __builtin_popcount((unsigned)missed0);
}

/* The same of codes below 1 << 16, in half the time. */
TARGET_AVX512 ALWAYS_INLINE int64_t small_common_with_16_avx512(const int32_t *one, int64_t n_one,
                                                                const int32_t *code, int64_t n) {
    const __mmask16 here = (__mmask16)((1u << n) - 1);
    const __m256i codes = _mm512_cvtepi32_epi16(_mm512_maskz_loadu_epi32(here, code));
    __m256i found0 = _mm256_setzero_si256(), found1 = found0, found2 = found0, found3 = found0;
#define COMPARE(k, i)                                                                              \
    found##k =                                                                                     \
        _mm256_or_si256(found##k, _mm256_cmpeq_epi16(codes, _mm256_set1_epi16((int16_t)one[i])));
    COMPARE_ALL(COMPARE, n_one)
#undef COMPARE
    found0 = _mm256_or_si256(_mm256_or_si256(found0, found1), _mm256_or_si256(found2, found3));
    return __builtin_popcount((unsigned)(_mm256_movepi16_mask(found0) & here));
}
#undef COMPARE_ALL

static inline int both_small(int64_t n_one, int64_t n_other) {
    const int64_t less = n_one < n_other ? n_one : n_other;
    return less <= AT_ONCE && n_one <= MOST_COMPARED && n_other <= MOST_COMPARED;
}

/* Items that two sets have in common, however many they have. */
TARGET_AVX512 NOT_INLINE static int64_t common_avx512(const int32_t *one, int64_t n_one,
                                                      const int32_t *other, int64_t n_other) {
    if (!both_small(n_one, n_other)) return common_items(one, n_one, other, n_other);
    if (n_other <= AT_ONCE) return common_with_16_avx512(one, n_one, other, n_other);
    return common_with_16_avx512(other, n_other, one, n_one);
}

/* Whether a set is for `small_common_with_16_avx512`. */
static inline int is_small(const int32_t *code, int64_t n) {
    return n > 0 && n <= AT_ONCE && code[n - 1] < 1 << 16;
}
#endif
#endif
