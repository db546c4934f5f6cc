/* AVX2 has no compress: a table of permutations packs the chosen ones of four int64. */
#ifndef WINDJOIN_COMPRESS_H
#define WINDJOIN_COMPRESS_H
#include <stdint.h>

#include "isa.h"

#ifdef WINDJOIN_X86
static const int32_t compress_order[16][8] __attribute__((aligned(32))) = {
    {0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}, {2, 3, 0, 1, 4, 5, 6, 7},
    {0, 1, 2, 3, 4, 5, 6, 7}, {4, 5, 0, 1, 2, 3, 6, 7}, {0, 1, 4, 5, 2, 3, 6, 7},
    {2, 3, 4, 5, 0, 1, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}, {6, 7, 0, 1, 2, 3, 4, 5},
    {0, 1, 6, 7, 2, 3, 4, 5}, {2, 3, 6, 7, 0, 1, 4, 5}, {0, 1, 2, 3, 6, 7, 4, 5},
    {4, 5, 6, 7, 0, 1, 2, 3}, {0, 1, 4, 5, 6, 7, 2, 3}, {2, 3, 4, 5, 6, 7, 0, 1},
    {0, 1, 2, 3, 4, 5, 6, 7},
};

/* Those of 8 int64 whose bit is set, in order, at `to`; writes 8. */
TARGET_AVX2 static inline void compress_avx2(const int64_t *from, unsigned mask, int64_t *to) {
    __m256i low = _mm256_loadu_si256((const __m256i *)from);
    __m256i high = _mm256_loadu_si256((const __m256i *)(from + 4));
    __m256i low_order = _mm256_load_si256((const __m256i *)compress_order[mask & 15]);
    __m256i high_order = _mm256_load_si256((const __m256i *)compress_order[mask >> 4]);
    low = _mm256_permutevar8x32_epi32(low, low_order);
    high = _mm256_permutevar8x32_epi32(high, high_order);
    _mm256_storeu_si256((__m256i *)to, low);
    _mm256_storeu_si256((__m256i *)(to + __builtin_popcount(mask & 15)), high);
}

/* Which of 8 int64 lie in [low, high]. */
TARGET_AVX2 static inline unsigned within_avx2(const int64_t *values, int64_t low, int64_t high) {
    const __m256i lo = _mm256_set1_epi64x(low), hi = _mm256_set1_epi64x(high);
    __m256i a = _mm256_loadu_si256((const __m256i *)values);
    __m256i b = _mm256_loadu_si256((const __m256i *)(values + 4));
    __m256i out_a = _mm256_or_si256(_mm256_cmpgt_epi64(lo, a), _mm256_cmpgt_epi64(a, hi));
    __m256i out_b = _mm256_or_si256(_mm256_cmpgt_epi64(lo, b), _mm256_cmpgt_epi64(b, hi));
    unsigned out = (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(out_a)) |
                   (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(out_b)) << 4;
    return ~out & 0xff;
}

/* The same with AVX-512. */
TARGET_AVX512 static inline unsigned within_avx512(const int64_t *values, int64_t low,
                                                   int64_t high) {
    __m512i v = _mm512_loadu_si512(values);
    __mmask8 fits = _mm512_cmpge_epi64_mask(v, _mm512_set1_epi64(low));
    return _mm512_mask_cmple_epi64_mask(fits, v, _mm512_set1_epi64(high));
}

TARGET_AVX512 static inline void compress_avx512(const int64_t *from, unsigned mask, int64_t *to) {
    /* in the register first: compressing stores are slower */
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi64((__mmask8)mask, _mm512_loadu_si512(from)));
}
#endif

static inline unsigned within_plain(const int64_t *values, int64_t low, int64_t high) {
    unsigned fits = 0;
    for (int k = 0; k < 8; k++) fits |= (unsigned)((values[k] >= low) & (values[k] <= high)) << k;
    return fits;
}

static inline void compress_plain(const int64_t *from, unsigned mask, int64_t *to) {
    for (; mask; mask &= mask - 1) *to++ = from[__builtin_ctz(mask)];
}
#endif
