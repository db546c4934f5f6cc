/* Tiles of a pack of asking vectors against 32 stored ones, in floats, for every instruction set.
 */
#ifndef WINDJOIN_TILE_H
#define WINDJOIN_TILE_H
#include "quantized.h"

#ifdef WINDJOIN_X86
#define TILE tile_avx512
#define TARGET TARGET_AVX512
#define PROBES 12
#define COLUMNS 32
#define LANES 16
#define VECTOR __m512
#define LOAD _mm512_loadu_ps
#define SPREAD _mm512_set1_ps
#define ZERO _mm512_setzero_ps()
#define FMA _mm512_fmadd_ps
#define SUB _mm512_sub_ps
#define ADD _mm512_add_ps
#define ABS _mm512_abs_ps
#define MIN _mm512_min_ps
#define AT_LEAST(x, y) ((uint32_t)_mm512_cmp_ps_mask(x, y, _CMP_GE_OQ))
#define NOT_LESS(x, y) ((uint32_t)_mm512_cmp_ps_mask(x, y, _CMP_NLT_UQ))
#include "tile.inc"
#undef TILE
#undef TARGET
#undef PROBES
#undef COLUMNS
#undef LANES
#undef VECTOR
#undef LOAD
#undef SPREAD
#undef ZERO
#undef FMA
#undef SUB
#undef ADD
#undef ABS
#undef MIN
#undef AT_LEAST
#undef NOT_LESS

#define TILE tile_avx2
#define TARGET TARGET_AVX2
#define PROBES 6
#define COLUMNS 16
#define LANES 8
#define VECTOR __m256
#define LOAD _mm256_loadu_ps
#define SPREAD _mm256_set1_ps
#define ZERO _mm256_setzero_ps()
#define FMA _mm256_fmadd_ps
#define SUB _mm256_sub_ps
#define ADD _mm256_add_ps
#define ABS(x) _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x)
#define MIN _mm256_min_ps
#define AT_LEAST(x, y) ((uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_GE_OQ)))
#define NOT_LESS(x, y) ((uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_NLT_UQ)))
#include "tile.inc"
#undef TILE
#undef TARGET
#undef PROBES
#undef COLUMNS
#undef LANES
#undef VECTOR
#undef LOAD
#undef SPREAD
#undef ZERO
#undef FMA
#undef SUB
#undef ADD
#undef ABS
#undef MIN
#undef AT_LEAST
#undef NOT_LESS
#endif

#define TILE tile_plain
#define TARGET
#define PROBES 4
#define COLUMNS 1
#define LANES 1
#define VECTOR float
#define LOAD(p) (*(p))
#define SPREAD(x) (x)
#define ZERO 0.0f
#define FMA(x, y, v) ((x) * (y) + (v))
#define SUB(x, y) ((x) - (y))
#define ADD(x, y) ((x) + (y))
#define ABS fabsf
#define MIN fminf
#define AT_LEAST(x, y) ((uint32_t)((x) >= (y)))
#define NOT_LESS(x, y) ((uint32_t)!((x) < (y)))
#include "tile.inc"

static inline int64_t pack_size(void) {
    int level = isa_level();
    return level == ISA_AVX512 ? 12 : level == ISA_AVX2 ? 6 : 4;
}

/* 32 rows, in as many tiles as the registers need. */
static inline void run_tile(int measure, int64_t width, const float *pack, const float *rows,
                            const float *p_sure, const float *p_maybe, const float *r_sure,
                            const float *r_maybe, uint32_t *sure, uint32_t *maybe) {
    uint32_t s[MOST_PACK], m[MOST_PACK];
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) {
        tile_avx512(measure, width, pack, rows, p_sure, p_maybe, r_sure, r_maybe, sure, maybe);
        return;
    }
    if (isa_level() == ISA_AVX2) {
        for (int half = 0; half < 2; half++) {
            tile_avx2(measure, width, pack, rows + half * 16, p_sure, p_maybe, r_sure + half * 16,
                      r_maybe + half * 16, s, m);
            for (int p = 0; p < 6; p++) {
                sure[p] = half ? sure[p] | s[p] << 16 : s[p];
                maybe[p] = half ? maybe[p] | m[p] << 16 : m[p];
            }
        }
        return;
    }
#endif
    for (int p = 0; p < 4; p++) sure[p] = maybe[p] = 0;
    for (int r = 0; r < 32; r++) {
        tile_plain(measure, width, pack, rows + r, p_sure, p_maybe, r_sure + r, r_maybe + r, s, m);
        for (int p = 0; p < 4; p++) sure[p] |= s[p] << r, maybe[p] |= m[p] << r;
    }
}
#endif
