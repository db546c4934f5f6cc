/* Narrow bands on a live window: a grid over the values, the rows of a cell in a line
 * (cache_lines.h).
 *
 * A probe for a range of values asks for the rows of all cells the range touches.  Values lie
 * beside the times, in lines and in lists, so one look decides for both.
 *
 * Cells of width 3; rows 0, 1, 2 with values 7, 1, 8 at times 10, 11, 12; 4 of the 8 slots of a
 * line:
 *
 *   value -> cell -> code (KeySpace)   line of the code: time, row     value
 *     7       2       0                | - | - | 10 | 12 |  - - 0 2  | - | - | 7 | 8 |
 *     1       0       1                | - | - |  - | 11 |  - - - 1  | - | - | - | 1 |
 *
 * A probe for [5, 7] touches cells 1 and 2.  Cell 1 has no code, so only line 0 is looked at: both
 * rows are tested for time and value at once, and row 0 stays.
 */
#ifndef WINDJOIN_LIVE_GRID_H
#define WINDJOIN_LIVE_GRID_H
#include "grid_probes.h"
#include "grid.h"
#include "hop.h"
#include "cache_lines.h"

#define LIVE_GRID_BLOCK GRID_PROBES_MOST /* probes opened at a time */

typedef struct {
    Grid grid;
    CacheLines *rows;   /* of every cell */
    int64_t begin; /* first probe of the open block */
    int64_t n;     /* its probes at one cell each: */
    int32_t prober[LIVE_GRID_BLOCK * GRID_MOST]; /* which of the block asks, */
    int32_t code[LIVE_GRID_BLOCK * GRID_MOST];  /* and the code of the cell */
    GridProbes grid_probes;
} LiveGrid;

/* The list of a cell, if rows in it may be late enough. */
static inline PostingList *live_grid_list(const CacheLines *rows, int32_t code, int32_t first) {
    if (!rows->more[code] || rows->lines[code].time[0] < first) return NULL;
    return rows->older->postings + rows->more[code] - 1;
}

/* Open up to LIVE_GRID_BLOCK probes from `at` on, and ask for what they will look at. */
static inline int64_t live_grid_open(LiveGrid *all, const Probe *probe, int64_t at) {
    const CacheLines *rows = all->rows;
    const Postings *older = rows->older;
    const GridProbes *grid_probes = &all->grid_probes;
    const int32_t *near = *all->grid.near;
    uint64_t start = *all->grid.start, span = *all->grid.span, lines = (uint64_t)rows->n_lines;
    int many_lists =
        older->n_postings > rows->n_lines / 8; /* few are not worth a look at every cell */
    int64_t many = probe->n - at < LIVE_GRID_BLOCK ? probe->n - at : LIVE_GRID_BLOCK, n = 0;
    grid_probes_set(&all->grid, rows, probe, at, many, &all->grid_probes);
    for (int64_t i = 0; i < many; i++) {
        int64_t cell = grid_probes->cell[i], end = grid_probes->end[i];
        for (int k = 0; k < GRID_MOST && cell <= end; k++, cell++) {
            uint64_t place = (uint64_t)cell - start;
            int32_t code = place < span ? near[place] : grid_code(&all->grid, cell);
            all->prober[n] = (int32_t)i;
            all->code[n] = code;
            n += (uint64_t)code < lines; /* a cell without rows, mostly at an end: no branch */
            FETCH(rows->lines, code);
            FETCH(rows->value, code);
        }
    }
    for (int64_t k = 0; many_lists && k < n; k++) {
        const PostingList *list =
            live_grid_list(rows, all->code[k], grid_probes->first[all->prober[k]]);
        if (!list) continue;
        FETCH(older->time, list->offset + list->hint);
        FETCH(older->row, list->offset + list->hint);
        FETCH(older->value, list->offset + list->hint);
    }
    all->begin = at;
    all->n = n;
    return at + many;
}

/* Take rows from the list of a cell for probe i, from `resume` - 1 on if that is not 0; where to go
 * on if `out` becomes full.  IN sets which of 8 rows lie in lo .. hi and from .. to, as bits, and
 * how many before lo; EMIT writes these. */
#define LIVE_GRID_LIST(NAME, TARGET, IN, EMIT)                                                     \
    TARGET static NOT_INLINE int64_t NAME(const Postings *older, PostingList *list,                \
                                          const Probe *probe, int64_t i, int64_t resume,           \
                                          Pairs *out) {                                            \
        const int64_t *time = older->time + list->offset, *row = older->row + list->offset;        \
        const int64_t *value = older->value + list->offset;                                        \
        int64_t lo = probe->lo[i], hi = probe->hi[i], from = probe->from[i], to = probe->to[i];    \
        int64_t at = resume ? resume - 1 : postings_begin(list, time, lo), n = out->n;             \
        int begun = resume != 0;                                                                   \
        PAIRS_AT_HAND                                                                              \
        for (; at < list->length && n < capacity && time[at] <= hi; at += 8) {                     \
            int before;                                                                            \
            unsigned in, here = list->length - at < 8 ? (1u << (list->length - at)) - 1 : 0xff;    \
            IN(time + at, value + at, lo, hi, from, to, here, in, before);                         \
            if (!begun && before == 8) {                                                           \
                at = postings_search(time, at + 8, list->length, lo) - 8;                          \
                list->hint = (int32_t)(at + 8);                                                    \
                continue;                                                                          \
            }                                                                                      \
            if (!begun) list->hint = (int32_t)(at + before);                                       \
            begun = 1;                                                                             \
            EMIT(row + at, time + at, in);                                                         \
            n += __builtin_popcount(in);                                                           \
        }                                                                                          \
        out->n = n;                                                                                \
        return at + 1;                                                                             \
    }

/* Go over cell probes up to `many` of the open block.  IN sets which rows of a line lie in first ..
 * last and from .. to, as bits; EMIT is that of cache_lines.h. */
#define LIVE_GRID_PROBE(NAME, TARGET, OLDER, IN, EMIT)                                             \
    TARGET static int NAME(const LiveGrid *cells, const Probe *probe, int64_t many,                \
                           Cursor *cursor, Pairs *out) {                                           \
        const CacheLines *all = cells->rows;                                                       \
        int64_t n = out->n, k = cursor->stop, newest = all->newest, resume = cursor->position;     \
        PAIRS_AT_HAND                                                                              \
        for (; k < many; k++) {                                                                    \
            int32_t code = cells->code[k], prober = cells->prober[k];                              \
            int32_t first = cells->grid_probes.first[prober],                                      \
                    last = cells->grid_probes.last[prober];                                        \
            int64_t i = cells->begin + prober;                                                     \
            const CacheLine *line = all->lines + code;                                             \
            PostingList *list = live_grid_list(all, code, first);                                  \
            if (list) {                                                                            \
                out->n = n;                                                                        \
                resume = OLDER(all->older, list, probe, i, resume, out);                           \
                n = out->n;                                                                        \
            }                                                                                      \
            if (n >= capacity) {                                                                   \
                cursor->stop = k;                                                                  \
                cursor->position = resume;                                                         \
                out->n = n;                                                                        \
                return 0;                                                                          \
            }                                                                                      \
            resume = 0;                                                                            \
            unsigned in;                                                                           \
            IN(line, all->value[code], first, last, probe->from[i], probe->to[i], in);             \
            if (all->exact) in = cache_lines_exactly(all, code, in, probe->lo[i], probe->hi[i]);   \
            EMIT(line, in);                                                                        \
            n += __builtin_popcount(in);                                                           \
        }                                                                                          \
        cursor->stop = k;                                                                          \
        cursor->position = 0;                                                                      \
        out->n = n;                                                                                \
        return 1;                                                                                  \
    }

#define LIVE_GRID_IN_PLAIN(line, value, first, last, from, to, in)                                 \
    do {                                                                                           \
        unsigned near_ = 0;                                                                        \
        CACHE_LINES_IN_PLAIN(line, first, last, in);                                               \
        for (int l_ = 0; l_ < CACHE_LINE_ROWS; l_++)                                               \
            near_ |= (unsigned)(((value)[l_] >= (from)) & ((value)[l_] <= (to))) << l_;            \
        in &= near_;                                                                               \
    } while (0)

#define LIVE_GRID_OLD_PLAIN(time, value, lo, hi, from, to, here, in, before)                       \
    do {                                                                                           \
        in = 0;                                                                                    \
        before = 0;                                                                                \
        for (int l_ = 0; (here) >> l_; l_++) {                                                     \
            before += (time)[l_] < (lo);                                                           \
            in |= (unsigned)(((time)[l_] >= (lo)) & ((time)[l_] <= (hi)) &                         \
                             ((value)[l_] >= (from)) & ((value)[l_] <= (to)))                      \
                  << l_;                                                                           \
        }                                                                                          \
    } while (0)

#define LIVE_GRID_EMIT_OLD(row, time, in)                                                          \
    do {                                                                                           \
        int64_t m = n;                                                                             \
        for (unsigned rest_ = (in); rest_; rest_ &= rest_ - 1) {                                   \
            int l_ = __builtin_ctz(rest_);                                                         \
            found_row[m] = (row)[l_];                                                              \
            if (found_time) found_time[m] = (time)[l_];                                            \
            if (found_bound) found_bound[m] = probe->bound[i];                                     \
            else found_probe[m] = (int32_t)i;                                                      \
            m++;                                                                                   \
        }                                                                                          \
    } while (0)

LIVE_GRID_LIST(live_grid_older_plain, , LIVE_GRID_OLD_PLAIN, LIVE_GRID_EMIT_OLD)
LIVE_GRID_PROBE(live_grid_probe_plain, , live_grid_older_plain, LIVE_GRID_IN_PLAIN,
                CACHE_LINES_EMIT_PLAIN)

#ifdef WINDJOIN_X86
#define LIVE_GRID_IN_AVX2(line, value, first, last, from, to, in)                                  \
    do {                                                                                           \
        __m256i from_ = _mm256_set1_epi64x(from), to_ = _mm256_set1_epi64x(to);                    \
        unsigned far_ = 0;                                                                         \
        for (int l_ = 0; l_ < CACHE_LINE_ROWS; l_ += 4) {                                          \
            __m256i v_ = _mm256_load_si256((const __m256i *)((value) + l_));                       \
            __m256i out_ =                                                                         \
                _mm256_or_si256(_mm256_cmpgt_epi64(from_, v_), _mm256_cmpgt_epi64(v_, to_));       \
            far_ |= (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(out_)) << l_;                 \
        }                                                                                          \
        CACHE_LINES_IN_AVX2(line, first, last, in);                                                \
        in &= ~far_;                                                                               \
    } while (0)

LIVE_GRID_LIST(live_grid_older_avx2, TARGET_AVX2, LIVE_GRID_OLD_PLAIN, LIVE_GRID_EMIT_OLD)
LIVE_GRID_PROBE(live_grid_probe_avx2, TARGET_AVX2, live_grid_older_avx2, LIVE_GRID_IN_AVX2,
                CACHE_LINES_EMIT_PLAIN)

#define LIVE_GRID_IN_AVX512(line, value, first, last, from, to, in)                                \
    do {                                                                                           \
        __m512i v_ = _mm512_load_si512(value);                                                     \
        CACHE_LINES_IN_AVX512(line, first, last, in);                                              \
        in = _mm512_mask_cmpge_epi64_mask((__mmask8)(in), v_, _mm512_set1_epi64(from));            \
        in = _mm512_mask_cmple_epi64_mask((__mmask8)(in), v_, _mm512_set1_epi64(to));              \
    } while (0)

#define LIVE_GRID_OLD_AVX512(time, value, lo, hi, from, to, here, in, before)                      \
    do {                                                                                           \
        __m512i t_ = _mm512_loadu_si512(time), v_ = _mm512_loadu_si512(value);                     \
        __mmask8 late_ =                                                                           \
            _mm512_mask_cmpge_epi64_mask((__mmask8)(here), t_, _mm512_set1_epi64(lo));             \
        before = __builtin_popcount((here) & ~(unsigned)late_);                                    \
        late_ = _mm512_mask_cmple_epi64_mask(late_, t_, _mm512_set1_epi64(hi));                    \
        late_ = _mm512_mask_cmpge_epi64_mask(late_, v_, _mm512_set1_epi64(from));                  \
        in = _mm512_mask_cmple_epi64_mask(late_, v_, _mm512_set1_epi64(to));                       \
    } while (0)

#define LIVE_GRID_EMIT_OLD_AVX512(row, time, in)                                                   \
    do {                                                                                           \
        _mm512_storeu_si512(found_row + n,                                                         \
                            _mm512_maskz_compress_epi64((__mmask8)(in), _mm512_loadu_si512(row))); \
        if (found_bound) _mm512_storeu_si512(found_bound + n, _mm512_set1_epi64(probe->bound[i])); \
        else _mm256_storeu_si256((__m256i *)(found_probe + n), _mm256_set1_epi32((int)i));         \
        if (found_time)                                                                            \
            _mm512_storeu_si512(found_time + n, _mm512_maskz_compress_epi64(                       \
                                                    (__mmask8)(in), _mm512_loadu_si512(time)));    \
    } while (0)

LIVE_GRID_LIST(live_grid_older_avx512, TARGET_AVX512, LIVE_GRID_OLD_AVX512,
               LIVE_GRID_EMIT_OLD_AVX512)
LIVE_GRID_PROBE(live_grid_probe_any_avx512, TARGET_AVX512, live_grid_older_avx512,
                LIVE_GRID_IN_AVX512, CACHE_LINES_EMIT_AVX512)

#define LIVE_GRID_SHORT_LIST                                                                       \
    16 /* rows: looked at without a search, and there is room for them (SLACK) */

/* As live_grid_older_avx512 from the beginning, for a short list, without a branch on what lies in
 * it. */
TARGET_AVX512 static NOT_INLINE void live_grid_short_list(const Postings *older,
                                                          const PostingList *list,
                                                          const Probe *probe, int64_t i,
                                                          Pairs *out) {
    const int64_t *time = older->time + list->offset, *row = older->row + list->offset;
    const int64_t *value = older->value + list->offset;
    const __m512i lo = _mm512_set1_epi64(probe->lo[i]), hi = _mm512_set1_epi64(probe->hi[i]);
    const __m512i from = _mm512_set1_epi64(probe->from[i]), to = _mm512_set1_epi64(probe->to[i]);
    int64_t n = out->n;
    uint32_t rows = (1u << list->length) - 1;
    for (int at = 0; at < LIVE_GRID_SHORT_LIST; at += 8) {
        __mmask8 here = (__mmask8)(rows >> at);
        __m512i t = _mm512_maskz_loadu_epi64(here, time + at);
        __m512i v = _mm512_maskz_loadu_epi64(here, value + at);
        __mmask8 in =
            _mm512_mask_cmple_epi64_mask(_mm512_mask_cmpge_epi64_mask(here, t, lo), t, hi);
        in &= _mm512_mask_cmple_epi64_mask(_mm512_cmpge_epi64_mask(v, from), v, to);
        __m512i found = _mm512_maskz_compress_epi64(in, _mm512_maskz_loadu_epi64(in, row + at));
        _mm512_storeu_si512(out->row + n, found);
        if (out->bound) _mm512_storeu_si512(out->bound + n, _mm512_set1_epi64(probe->bound[i]));
        else _mm256_storeu_si256((__m256i *)(out->probe + n), _mm256_set1_epi32((int)i));
        n += __builtin_popcount(in);
    }
    out->n = n;
}

/* The same as the loop above for what is asked most, as short as can be. */
TARGET_AVX512 ALWAYS_INLINE int live_grid_probe_lines(const LiveGrid *cells, const Probe *probe,
                                                      int64_t many, Cursor *cursor, Pairs *out,
                                                      const int exact) {
    const CacheLines *all = cells->rows;
    const CacheLine *lines = all->lines;
    const int64_t (*values)[CACHE_LINE_ROWS] = (const int64_t (*)[CACHE_LINE_ROWS])all->value;
    const uint32_t *more = all->more;
    const int32_t *codes = cells->code, *probers = cells->prober;
    const int32_t *firsts = cells->grid_probes.first, *lasts = cells->grid_probes.last;
    const int64_t *froms = probe->from + cells->begin, *tos = probe->to + cells->begin;
    const int64_t *bounds = probe->bound, begin = cells->begin;
    const __m512i newest = _mm512_set1_epi64(all->newest);
    const __m256i newest_bits = _mm256_set1_epi32((int)(uint32_t)all->newest);
    const int64_t *los = probe->lo + cells->begin, *his = probe->hi + cells->begin;
    int64_t n = out->n, k = cursor->stop;
    PAIRS_AT_HAND(void) found_time;
    while (k < many && n < capacity) {
        const int32_t i = probers[k];
        const __m256i first = _mm256_set1_epi32(firsts[i]), last = _mm256_set1_epi32(lasts[i]);
        const __m512i from = _mm512_set1_epi64(froms[i]), to = _mm512_set1_epi64(tos[i]);
        const __m512i bound = _mm512_set1_epi64(found_bound ? bounds[begin + i] : 0);
        do {
            const int64_t code = codes[k];
            const CacheLine *line = lines + code;
            if (more[code] && line->time[0] >= firsts[i]) {
                PostingList *list = all->older->postings + more[code] - 1;
                int64_t position = list->length + 1;
                out->n = n;
                if (list->length <= LIVE_GRID_SHORT_LIST)
                    live_grid_short_list(all->older, list, probe, begin + i, out);
                else position = live_grid_older_avx512(all->older, list, probe, begin + i, 0, out);
                n = out->n;
                if (n >= capacity) {
                    cursor->stop = k;
                    cursor->position = position;
                    return 0;
                }
            }
            __m256i t = _mm256_load_si256((const __m256i *)line->time);
            __m512i v = _mm512_load_si512(values[code]);
            __mmask8 in = _mm256_mask_cmple_epi32_mask(_mm256_cmpge_epi32_mask(t, first), t, last);
            in &= _mm512_mask_cmple_epi64_mask(_mm512_cmpge_epi64_mask(v, from), v, to);
            if (exact) in = cache_lines_exactly_avx512(all, code, in, first, last, los[i], his[i]);
            __m256i row =
                _mm256_maskz_compress_epi32(in, _mm256_load_si256((const __m256i *)line->row));
            __m512i back = _mm512_cvtepu32_epi64(_mm256_sub_epi32(newest_bits, row));
            _mm512_storeu_si512(found_row + n, _mm512_sub_epi64(newest, back));
            if (found_bound) _mm512_storeu_si512(found_bound + n, bound);
            else
                _mm256_storeu_si256((__m256i *)(found_probe + n),
                                    _mm256_set1_epi32((int)begin + i));
            n += __builtin_popcount(in);
        } while (++k < many && probers[k] == i && n < capacity);
    }
    out->n = n;
    cursor->stop = k;
    return k == many;
}

TARGET_AVX512 static int live_grid_probe_avx512(const LiveGrid *cells, const Probe *probe,
                                                int64_t many, Cursor *cursor, Pairs *out) {
    if (out->time || cursor->position)
        return live_grid_probe_any_avx512(cells, probe, many, cursor, out);
    if (cells->rows->exact) return live_grid_probe_lines(cells, probe, many, cursor, out, 1);
    return live_grid_probe_lines(cells, probe, many, cursor, out, 0);
}
#endif

static inline int live_grid_probe(const LiveGrid *all, const Probe *probe, Cursor *cursor,
                                  Pairs *out) {
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) return live_grid_probe_avx512(all, probe, all->n, cursor, out);
    if (isa_level() == ISA_AVX2) return live_grid_probe_avx2(all, probe, all->n, cursor, out);
#endif
    return live_grid_probe_plain(all, probe, all->n, cursor, out);
}

/* cursor: probe = where the next block starts, part = 1 while a block is open, stop = which cell
 * probe of it is next, position = where in its list, 0: not begun. */
static int live_grid_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out) {
    LiveGrid *all = index;
    for (;;) {
        if (!cursor->part) {
            if (cursor->probe >= probe->n) return 1;
            cursor->probe = live_grid_open(all, probe, cursor->probe);
            cursor->part = 1;
            cursor->stop = cursor->position = 0;
        }
        if (!live_grid_probe(all, probe, cursor, out)) return 0;
        cursor->part = 0;
    }
}
#endif
