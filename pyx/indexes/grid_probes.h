/* Where probes for ranges of values and times look in a grid: cells, and times as lines have them.
 */
#ifndef WINDJOIN_GRID_PROBES_H
#define WINDJOIN_GRID_PROBES_H
#include "grid.h"
#include "hop.h"
#include "isa.h"
#include "cache_lines.h"

#define GRID_PROBES_MOST 64 /* a multiple of 8 */

/* What the probes of a block ask for. */
typedef struct {
    int64_t cell[GRID_PROBES_MOST],
        end[GRID_PROBES_MOST];   /* the cells they touch, the last one too */
    int32_t first[GRID_PROBES_MOST], last[GRID_PROBES_MOST]; /* times, as lines have them */
} GridProbes;

/* As cache_lines_least and cache_lines_most, without a branch. */
static inline int64_t grid_probes_steps(int64_t time, int shift, int64_t base) {
    int64_t t = time >> shift, d = (int64_t)((uint64_t)t - (uint64_t)base);
    return ((t ^ base) & (t ^ d)) < 0 ? (t < 0 ? INT64_MIN : INT64_MAX) : d;
}

/* The times, and no cell where nothing is asked for, or what no row is late enough for: a stream
 * that runs ahead of another asks for much of that. */
static inline void grid_probes_times(const CacheLines *rows, const Probe *probe, int64_t at,
                                     int64_t n, GridProbes *grid_probes) {
    const int64_t base = rows->base;
    const int shift = rows->shift;
    const int64_t *from = probe->from + at, *to = probe->to + at;
    const int64_t *lo = probe->lo + at, *hi = probe->hi + at;
    for (int64_t i = 0; i < n; i++) {
        int64_t first = grid_probes_steps(lo[i], shift, base),
                last = grid_probes_steps(hi[i], shift, base);
        first = first < CACHE_LINE_FIRST ? CACHE_LINE_FIRST : first;
        last = last > CACHE_LINE_LAST ? CACHE_LINE_LAST : last;
        grid_probes->first[i] = (int32_t)(first > INT32_MAX ? INT32_MAX : first);
        grid_probes->last[i] = (int32_t)(last < CACHE_LINE_VACANT ? CACHE_LINE_VACANT : last);
        int none = from[i] > to[i] || lo[i] > hi[i] || lo[i] > rows->latest;
        grid_probes->end[i] = none ? INT64_MIN : grid_probes->end[i];
    }
}

#ifdef WINDJOIN_X86
/* grid_probes_steps() of 8 times. */
TARGET_AVX512 static inline __m512i grid_probes_steps_avx512(__m512i time, __m128i shift,
                                                             __m512i base) {
    __m512i t = _mm512_sra_epi64(time, shift), d = _mm512_sub_epi64(t, base);
    __mmask8 round_the_end =
        _mm512_movepi64_mask(_mm512_and_si512(_mm512_xor_si512(t, base), _mm512_xor_si512(t, d)));
    __m512i end = _mm512_xor_si512(_mm512_srai_epi64(t, 63), _mm512_set1_epi64(INT64_MAX));
    return _mm512_mask_mov_epi64(d, round_the_end, end);
}

TARGET_AVX512 static void grid_probes_times_avx512(const CacheLines *rows, const Probe *probe,
                                                   int64_t at, int64_t n, GridProbes *grid_probes) {
    const __m512i base = _mm512_set1_epi64(rows->base);
    const __m128i shift = _mm_cvtsi32_si128(rows->shift);
    for (int64_t i = 0; i < n; i += 8) {
        __mmask8 here = n - i < 8 ? (__mmask8)((1u << (n - i)) - 1) : 0xff;
        __m512i lo = _mm512_maskz_loadu_epi64(here, probe->lo + at + i);
        __m512i hi = _mm512_maskz_loadu_epi64(here, probe->hi + at + i);
        __m512i from = _mm512_maskz_loadu_epi64(here, probe->from + at + i);
        __m512i to = _mm512_maskz_loadu_epi64(here, probe->to + at + i);
        __m512i first = grid_probes_steps_avx512(lo, shift, base);
        __m512i last = grid_probes_steps_avx512(hi, shift, base);
        first = _mm512_max_epi64(first, _mm512_set1_epi64(CACHE_LINE_FIRST));
        last = _mm512_min_epi64(last, _mm512_set1_epi64(CACHE_LINE_LAST));
        first = _mm512_min_epi64(first, _mm512_set1_epi64(INT32_MAX));
        last = _mm512_max_epi64(last, _mm512_set1_epi64(CACHE_LINE_VACANT));
        _mm256_storeu_si256((__m256i *)(grid_probes->first + i), _mm512_cvtepi64_epi32(first));
        _mm256_storeu_si256((__m256i *)(grid_probes->last + i), _mm512_cvtepi64_epi32(last));
        __mmask8 none = _mm512_cmpgt_epi64_mask(from, to) | _mm512_cmpgt_epi64_mask(lo, hi) |
                        _mm512_cmpgt_epi64_mask(lo, _mm512_set1_epi64(rows->latest));
        _mm512_mask_storeu_epi64(grid_probes->end + i, none, _mm512_set1_epi64(INT64_MIN));
    }
}
#endif

/* n probes from `at` on. */
static inline void grid_probes_set(const Grid *grid, const CacheLines *rows, const Probe *probe,
                                   int64_t at, int64_t n, GridProbes *grid_probes) {
    grid_cells(grid, probe->from + at, n, grid_probes->cell);
    grid_cells(grid, probe->to + at, n, grid_probes->end);
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) {
        grid_probes_times_avx512(rows, probe, at, n, grid_probes);
        return;
    }
#endif
    grid_probes_times(rows, probe, at, n, grid_probes);
}
#endif
