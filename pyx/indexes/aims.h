/* Where probes for ranges of values and times look in a grid: cells, and times as lines have them. */
#ifndef WINDJOIN_AIMS_H
#define WINDJOIN_AIMS_H
#include "grid.h"
#include "hop.h"
#include "isa.h"
#include "lines.h"

#define AIMS_MOST 64 /* a multiple of 8 */

/* What the probes of a block ask for. */
typedef struct {
    int64_t cell[AIMS_MOST], end[AIMS_MOST];   /* the cells they touch, the last one too */
    int32_t first[AIMS_MOST], last[AIMS_MOST]; /* times, as lines have them */
} Aims;

/* As lines_least and lines_most, without a branch. */
static inline int64_t aims_steps(int64_t time, int shift, int64_t base) {
    int64_t t = time >> shift, d = (int64_t)((uint64_t)t - (uint64_t)base);
    return ((t ^ base) & (t ^ d)) < 0 ? (t < 0 ? INT64_MIN : INT64_MAX) : d;
}

/* The times, and no cell where nothing is asked for, or what no row is late enough for: a stream that
 * runs ahead of another asks for much of that. */
static inline void aims_times(const Lines *rows, const Probe *probe, int64_t at, int64_t n,
                              Aims *aims) {
    const int64_t base = rows->base;
    const int shift = rows->shift;
    const int64_t *from = probe->from + at, *to = probe->to + at;
    const int64_t *lo = probe->lo + at, *hi = probe->hi + at;
    for (int64_t i = 0; i < n; i++) {
        int64_t first = aims_steps(lo[i], shift, base), last = aims_steps(hi[i], shift, base);
        first = first < LINE_FIRST ? LINE_FIRST : first;
        last = last > LINE_LAST ? LINE_LAST : last;
        aims->first[i] = (int32_t)(first > INT32_MAX ? INT32_MAX : first);
        aims->last[i] = (int32_t)(last < LINE_VACANT ? LINE_VACANT : last);
        int none = from[i] > to[i] || lo[i] > hi[i] || lo[i] > rows->latest;
        aims->end[i] = none ? INT64_MIN : aims->end[i];
    }
}

#ifdef WINDJOIN_X86
/* aims_steps() of 8 times. */
TARGET_AVX512 static inline __m512i aims_steps_avx512(__m512i time, __m128i shift, __m512i base) {
    __m512i t = _mm512_sra_epi64(time, shift), d = _mm512_sub_epi64(t, base);
    __mmask8 round_the_end = _mm512_movepi64_mask(
        _mm512_and_si512(_mm512_xor_si512(t, base), _mm512_xor_si512(t, d)));
    __m512i end = _mm512_xor_si512(_mm512_srai_epi64(t, 63), _mm512_set1_epi64(INT64_MAX));
    return _mm512_mask_mov_epi64(d, round_the_end, end);
}

TARGET_AVX512 static void aims_times_avx512(const Lines *rows, const Probe *probe, int64_t at,
                                            int64_t n, Aims *aims) {
    const __m512i base = _mm512_set1_epi64(rows->base);
    const __m128i shift = _mm_cvtsi32_si128(rows->shift);
    for (int64_t i = 0; i < n; i += 8) {
        __mmask8 here = n - i < 8 ? (__mmask8)((1u << (n - i)) - 1) : 0xff;
        __m512i lo = _mm512_maskz_loadu_epi64(here, probe->lo + at + i);
        __m512i hi = _mm512_maskz_loadu_epi64(here, probe->hi + at + i);
        __m512i from = _mm512_maskz_loadu_epi64(here, probe->from + at + i);
        __m512i to = _mm512_maskz_loadu_epi64(here, probe->to + at + i);
        __m512i first = aims_steps_avx512(lo, shift, base);
        __m512i last = aims_steps_avx512(hi, shift, base);
        first = _mm512_max_epi64(first, _mm512_set1_epi64(LINE_FIRST));
        last = _mm512_min_epi64(last, _mm512_set1_epi64(LINE_LAST));
        first = _mm512_min_epi64(first, _mm512_set1_epi64(INT32_MAX));
        last = _mm512_max_epi64(last, _mm512_set1_epi64(LINE_VACANT));
        _mm256_storeu_si256((__m256i *)(aims->first + i), _mm512_cvtepi64_epi32(first));
        _mm256_storeu_si256((__m256i *)(aims->last + i), _mm512_cvtepi64_epi32(last));
        __mmask8 none = _mm512_cmpgt_epi64_mask(from, to) | _mm512_cmpgt_epi64_mask(lo, hi) |
                        _mm512_cmpgt_epi64_mask(lo, _mm512_set1_epi64(rows->latest));
        _mm512_mask_storeu_epi64(aims->end + i, none, _mm512_set1_epi64(INT64_MIN));
    }
}
#endif

/* n probes from `at` on. */
static inline void aims_set(const Grid *grid, const Lines *rows, const Probe *probe, int64_t at,
                            int64_t n, Aims *aims) {
    grid_cells(grid, probe->from + at, n, aims->cell);
    grid_cells(grid, probe->to + at, n, aims->end);
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) { aims_times_avx512(rows, probe, at, n, aims); return; }
#endif
    aims_times(rows, probe, at, n, aims);
}
#endif
