/* Bands on a whole table: rows of a stretch of time sorted by cell of their value.
 *
 * Cells that follow each other lie side by side, so a range of values is one run of rows, which
 * vectors test for window and range.  A stretch is as long as the windows that are asked for, which
 * therefore touch two of them, and what they touch stays in the caches.  Where there are many more
 * cells than rows, cells share buckets.
 *
 * Rows 0 to 7 with values 7 1 4 0 | 5 2 8 1, cells of width 3 (0: 0-2, 1: 3-5, 2: 6-8), two
 * stretches of four rows (there are 1 << STRETCH_BITS at least), dense = 3:
 *
 *   start   | 0 2 3 4 | 4 6 7 8 |         of cells 0, 1, 2 in each stretch, and an end
 *   row     | 1 3 | 2 | 0 | 5 7 | 4 | 6 |
 *   value   | 1 0 | 4 | 7 | 2 1 | 5 | 8 |
 *
 * A probe for values [4, 8] touches cells 1 and 2: one run of rows per stretch, row[2..4) and
 * row[6..8), of which vectors test time and value.
 */
#ifndef WINDJOIN_STATIC_GRID_H
#define WINDJOIN_STATIC_GRID_H
#include "grid.h"
#include "memory.h"
#include "csr_postings.h"

#define STRETCH_BITS 10    /* a stretch has so many rows at least, but for the last */
#define FINE 4             /* cells of half a band, where that many make sense */
#define STATIC_GRID_SLACK 16   /* elements behind the last row that may be read */
#define STATIC_GRID_BLOCK 128  /* probes whose cells are looked up at a time */
#define STATIC_GRID_VISITS 256 /* runs of rows that are found before they are looked at */
#define MOST_RUNS 4        /* of one probe in one stretch */

typedef struct {
    int64_t first; /* row */
    int64_t start; /* where its starts lie: a row for every bucket, and an end */
    int32_t n;
    int shift; /* not dense: it has 1 << shift buckets */
} Stretch;

typedef struct {
    Grid grid;
    Csr rows; /* only what its `locate` needs */
    int64_t dense; /* that many cells, each a bucket of its own in every stretch; 0: they share */
    Stretch *stretch; /* and one behind the last */
    int64_t n_stretches;
    int32_t *stretch_at; /* which holds row i << STRETCH_BITS */
    int32_t *start;
    int32_t *row; /* relative to rows.first; by stretch and bucket */
    int64_t *value; /* sortable, beside row */
} StaticGrid;

/* Runs of rows that a range of values may lie in. */
typedef struct {
    int n;
    int32_t from[MOST_RUNS], to[MOST_RUNS];
} Runs;

/* A run that one probe must look at. */
typedef struct {
    int32_t from, to, stretch, run;
    int64_t probe;
} Visit;

/* What the next probes must look at, found before any of it is: many loads are on their way then.
 */
typedef struct {
    int32_t n;
    int64_t open, stop, i,
        stretch; /* probes [open, stop) have cells, i comes next; stretch -1: not begun */
    int64_t first[STATIC_GRID_BLOCK], last[STATIC_GRID_BLOCK];
    Visit visit[STATIC_GRID_VISITS];
} Visits;

static inline uint32_t bucket_of(const Stretch *stretch, int64_t cell) {
    uint64_t wrap = ((uint64_t)1 << stretch->shift) - 1;
    return (uint32_t)((((uint64_t)cell & wrap) + mix64((uint64_t)(cell >> stretch->shift))) & wrap);
}

/* No row twice: runs that touch become one. */
static inline void add_run(Runs *runs, int32_t from, int32_t to) {
    for (int k = 0; k < runs->n; k++)
        if (from <= runs->to[k] && runs->from[k] <= to) {
            if (runs->from[k] < from) from = runs->from[k];
            if (runs->to[k] > to) to = runs->to[k];
            runs->n--;
            runs->from[k] = runs->from[runs->n];
            runs->to[k] = runs->to[runs->n];
            k = -1;
        }
    runs->from[runs->n] = from;
    runs->to[runs->n++] = to;
}

/* Buckets of the cells [first, last], which lie in one round of all buckets. */
static inline void add_cells(const StaticGrid *all, const Stretch *stretch, int64_t first,
                             int64_t last, Runs *runs) {
    const int32_t *start = all->start + stretch->start;
    uint32_t from = bucket_of(stretch, first), to = bucket_of(stretch, last);
    if (from <= to) {
        add_run(runs, start[from], start[to + 1]);
    } else {
        add_run(runs, start[from], start[(int64_t)1 << stretch->shift]);
        add_run(runs, start[0], start[to + 1]);
    }
}

static inline void find_runs(const StaticGrid *all, const Stretch *stretch, int64_t first,
                             int64_t last, Runs *runs) {
    int64_t round = last >> stretch->shift;
    runs->n = 0;
    if (last - first >= (int64_t)1 << stretch->shift) {
        add_run(runs, (int32_t)stretch->first, (int32_t)(stretch->first + stretch->n));
    } else if (first >> stretch->shift == round) {
        add_cells(all, stretch, first, last, runs);
    } else {
        add_cells(all, stretch, first, (round << stretch->shift) - 1, runs);
        add_cells(all, stretch, round << stretch->shift, last, runs);
    }
}

/* What one probe must look at in one stretch, from `visit` on; how many visits. */
static inline int add_visits(const StaticGrid *all, int64_t s, int64_t i, int64_t first,
                             int64_t last, Visit *visit) {
    const Stretch *stretch = all->stretch + s;
    Runs runs;
    int n = 0;
    find_runs(all, stretch, first, last, &runs);
    for (int r = 0; r < runs.n; r++) {
        visit[n] = (Visit){runs.from[r], runs.to[r], (int32_t)s, r, i};
        n += runs.from[r] < runs.to[r];
    }
    return n;
}

/* Which stretch holds a row. */
static inline int64_t stretch_of(const StaticGrid *all, int64_t row) {
    int64_t s = all->stretch_at[row >> STRETCH_BITS];
    return s + (all->stretch[s + 1].first <= row);
}

/* Cells of n values. */
#define STATIC_GRID_CELLS(NAME, TARGET)                                                            \
    TARGET static void NAME(const StaticGrid *all, int64_t n, const int64_t *value,                \
                            int64_t *cell) {                                                       \
        const Grid grid = all->grid;                                                               \
        double most = (double)(all->dense - 1);                                                    \
        if (all->dense && grid.real)                                                               \
            for (int64_t k = 0; k < n; k++) {                                                      \
                double d = (from_sortable(value[k]) - grid.real_origin) * grid.per_unit;           \
                d = d > 0 ? d : 0;                                                                 \
                cell[k] = (int64_t)(d < most ? d : most);                                          \
            }                                                                                      \
        else if (grid.real)                                                                        \
            for (int64_t k = 0; k < n; k++) cell[k] = grid_cell_of_real(&grid, value[k]);          \
        else                                                                                       \
            for (int64_t k = 0; k < n; k++) cell[k] = grid_cell_of_integer(&grid, value[k]);       \
        if (all->dense && !grid.real)                                                              \
            for (int64_t k = 0; k < n; k++) {                                                      \
                cell[k] = cell[k] > 0 ? cell[k] : 0;                                               \
                cell[k] = cell[k] < all->dense ? cell[k] : all->dense - 1;                         \
            }                                                                                      \
    }

#define STATIC_GRID_COLLECT(NAME, TARGET, CELLS)                                                   \
    TARGET static void NAME(const StaticGrid *all, const Probe *probe, Visits *visits) {           \
        int64_t i = visits->i, s = visits->stretch, n = 0, dense = all->dense;                     \
        const Stretch *stretch = all->stretch;                                                     \
        const int32_t *start = all->start;                                                         \
        Visit *visit = visits->visit;                                                              \
        while (n <= STATIC_GRID_VISITS - MOST_RUNS) {                                              \
            if (i == visits->stop) {                                                               \
                int64_t m = probe->n - i < STATIC_GRID_BLOCK ? probe->n - i : STATIC_GRID_BLOCK;   \
                if (m == 0) break;                                                                 \
                visits->open = i;                                                                  \
                visits->stop = i + m;                                                              \
                CELLS(all, m, probe->from + i, visits->first);                                     \
                CELLS(all, m, probe->to + i, visits->last);                                        \
            }                                                                                      \
            int64_t lo = probe->lo[i], hi = probe->hi[i];                                          \
            int64_t first = visits->first[i - visits->open],                                       \
                    last = visits->last[i - visits->open];                                         \
            if (lo < hi && probe->from[i] <= probe->to[i]) {                                       \
                if (s < 0) s = stretch_of(all, lo);                                                \
                do {                                                                               \
                    if (dense) {                                                                   \
                        const int32_t *here = start + stretch[s].start;                            \
                        int32_t from = here[first], to = here[last + 1];                           \
                        visit[n].from = from;                                                      \
                        visit[n].to = to;                                                          \
                        visit[n].stretch = (int32_t)s;                                             \
                        visit[n].run = 0;                                                          \
                        visit[n].probe = i;                                                        \
                        n += from < to;                                                            \
                    } else {                                                                       \
                        n += add_visits(all, s, i, first, last, visit + n);                        \
                    }                                                                              \
                } while (stretch[++s].first < hi && n <= STATIC_GRID_VISITS - MOST_RUNS);          \
                if (stretch[s].first < hi) break;                                                  \
            }                                                                                      \
            s = -1;                                                                                \
            i++;                                                                                   \
        }                                                                                          \
        visits->n = (int32_t)n;                                                                    \
        visits->i = i;                                                                             \
        visits->stretch = s;                                                                       \
    }

/* Write what passes of the rows of each visit.  TEST looks at LANES rows from `at` on, of which
 * `rest` are left: the bits of `fit` say which lie in window and range.  EMIT writes those and who
 * asked. cursor: part = 1 + stretch, stop = which of its runs, position = where in that. */
#define STATIC_GRID_PROBE(NAME, TARGET, LANES, COLLECT, TEST, EMIT)                                \
    TARGET static int NAME(const StaticGrid *all, const Probe *probe, Cursor *cursor,              \
                           Pairs *out) {                                                           \
        Visits visits;                                                                             \
        int64_t position = cursor->position, n = out->n, capacity = out->capacity;                 \
        int64_t first = all->rows.first, *out_row = out->row, *bound = out->bound;                 \
        int32_t *who = out->probe;                                                                 \
        int skip = (int)cursor->stop;                                                              \
        visits.open = visits.stop = visits.i = cursor->probe;                                      \
        visits.stretch = cursor->part - 1;                                                         \
        while (COLLECT(all, probe, &visits), visits.n || visits.i < probe->n) {                    \
            int v = 0;                                                                             \
            while (v < visits.n && visits.visit[v].run < skip) v++;                                \
            for (; v < visits.n; v++) {                                                            \
                const Visit *visit = visits.visit + v;                                             \
                int64_t i = visit->probe, at = visit->from + position, stop = visit->to;           \
                int64_t from = probe->from[i], to = probe->to[i],                                  \
                        prober = bound ? probe->bound[i] : i;                                      \
                int32_t lo = (int32_t)probe->lo[i], hi = (int32_t)probe->hi[i];                    \
                for (; at < stop; at += (LANES)) {                                                 \
                    unsigned fit;                                                                  \
                    if (n >= capacity) {                                                           \
                        out->n = n;                                                                \
                        *cursor = (Cursor){i, 1 + visit->stretch, at - visit->from, visit->run};   \
                        return 0;                                                                  \
                    }                                                                              \
                    TEST(all->row + at, all->value + at, stop - at, fit);                          \
                    EMIT(all->row + at, fit);                                                      \
                    n += __builtin_popcount(fit);                                                  \
                }                                                                                  \
                position = 0;                                                                      \
            }                                                                                      \
            skip = 0;                                                                              \
        }                                                                                          \
        out->n = n;                                                                                \
        *cursor = (Cursor){probe->n, 0, 0, 0};                                                     \
        return 1;                                                                                  \
    }

#define STATIC_GRID_OF(ISA, TARGET, LANES, TEST, EMIT)                                             \
    STATIC_GRID_CELLS(static_grid_cells_##ISA, TARGET)                                             \
    STATIC_GRID_COLLECT(static_grid_collect_##ISA, TARGET, static_grid_cells_##ISA)                \
    STATIC_GRID_PROBE(static_grid_probe_##ISA, TARGET, LANES, static_grid_collect_##ISA, TEST, EMIT)

#define STATIC_GRID_TEST_PLAIN(rows, values, rest, fit)                                            \
    do {                                                                                           \
        int rest_ = (rest) < 8 ? (int)(rest) : 8;                                                  \
        fit = 0;                                                                                   \
        for (int k = 0; k < rest_; k++)                                                            \
            fit |= (unsigned)(((rows)[k] >= lo) & ((rows)[k] < hi) & ((values)[k] >= from) &       \
                              ((values)[k] <= to))                                                 \
                   << k;                                                                           \
    } while (0)

#define STATIC_GRID_EMIT_PLAIN(rows, fit)                                                          \
    do {                                                                                           \
        int64_t place_ = n;                                                                        \
        for (unsigned bits_ = (fit); bits_; bits_ &= bits_ - 1) {                                  \
            out_row[place_] = first + (rows)[__builtin_ctz(bits_)];                                \
            if (bound) bound[place_++] = prober;                                                   \
            else who[place_++] = (int32_t)prober;                                                  \
        }                                                                                          \
    } while (0)

STATIC_GRID_OF(plain, , 8, STATIC_GRID_TEST_PLAIN, STATIC_GRID_EMIT_PLAIN)

#ifdef WINDJOIN_X86
#define STATIC_GRID_TEST_AVX2(rows, values, rest, fit)                                             \
    do {                                                                                           \
        __m256i r_ = _mm256_loadu_si256((const __m256i *)(rows));                                  \
        __m256i a_ = _mm256_loadu_si256((const __m256i *)(values));                                \
        __m256i b_ = _mm256_loadu_si256((const __m256i *)((values) + 4));                          \
        __m256i from_ = _mm256_set1_epi64x(from), to_ = _mm256_set1_epi64x(to);                    \
        __m256i out_r_ = _mm256_or_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(lo), r_),            \
                                         _mm256_cmpgt_epi32(r_, _mm256_set1_epi32(hi - 1)));       \
        __m256i out_a_ =                                                                           \
            _mm256_or_si256(_mm256_cmpgt_epi64(from_, a_), _mm256_cmpgt_epi64(a_, to_));           \
        __m256i out_b_ =                                                                           \
            _mm256_or_si256(_mm256_cmpgt_epi64(from_, b_), _mm256_cmpgt_epi64(b_, to_));           \
        fit = ((rest) < 8 ? (1u << (rest)) - 1 : 0xffu) &                                          \
              ~(unsigned)(_mm256_movemask_ps(_mm256_castsi256_ps(out_r_)) |                        \
                          _mm256_movemask_pd(_mm256_castsi256_pd(out_a_)) |                        \
                          _mm256_movemask_pd(_mm256_castsi256_pd(out_b_)) << 4);                   \
    } while (0)

/* The chosen bytes of 0..7, then the rows they name. */
#define STATIC_GRID_EMIT_AVX2(rows, fit)                                                           \
    do {                                                                                           \
        uint64_t chosen_ = _pdep_u64(fit, 0x0101010101010101ull) * 0xff;                           \
        chosen_ = _pext_u64(0x0706050403020100ull, chosen_);                                       \
        __m256i order_ = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)chosen_));              \
        __m256i r_ =                                                                               \
            _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)(rows)), order_);      \
        __m256i first_ = _mm256_set1_epi64x(first), prober_ = _mm256_set1_epi64x(prober);          \
        __m256i *row_ = (__m256i *)(out_row + n);                                                  \
        _mm256_storeu_si256(                                                                       \
            row_, _mm256_add_epi64(_mm256_cvtepi32_epi64(_mm256_castsi256_si128(r_)), first_));    \
        _mm256_storeu_si256(                                                                       \
            row_ + 1,                                                                              \
            _mm256_add_epi64(_mm256_cvtepi32_epi64(_mm256_extracti128_si256(r_, 1)), first_));     \
        if (bound) {                                                                               \
            _mm256_storeu_si256((__m256i *)(bound + n), prober_);                                  \
            _mm256_storeu_si256((__m256i *)(bound + n) + 1, prober_);                              \
        } else {                                                                                   \
            _mm256_storeu_si256((__m256i *)(who + n), _mm256_set1_epi32((int32_t)prober));         \
        }                                                                                          \
    } while (0)

STATIC_GRID_OF(avx2, TARGET_AVX2, 8, STATIC_GRID_TEST_AVX2, STATIC_GRID_EMIT_AVX2)

#define STATIC_GRID_TEST_AVX512(rows, values, rest, fit)                                           \
    do {                                                                                           \
        __mmask16 in_ = (__mmask16)_bzhi_u32(0xffff, (unsigned)((rest) < 16 ? (rest) : 16));       \
        __m512i r_ = _mm512_loadu_si512(rows);                                                     \
        __m512i a_ = _mm512_loadu_si512(values), b_ = _mm512_loadu_si512((values) + 8);            \
        __m512i from_ = _mm512_set1_epi64(from), to_ = _mm512_set1_epi64(to);                      \
        __mmask8 low_ = _mm512_cmpge_epi64_mask(a_, from_),                                        \
                 high_ = _mm512_cmpge_epi64_mask(b_, from_);                                       \
        low_ = _mm512_mask_cmple_epi64_mask(low_, a_, to_);                                        \
        high_ = _mm512_mask_cmple_epi64_mask(high_, b_, to_);                                      \
        in_ = _mm512_mask_cmpge_epi32_mask(in_, r_, _mm512_set1_epi32(lo));                        \
        in_ = _mm512_mask_cmplt_epi32_mask(in_, r_, _mm512_set1_epi32(hi));                        \
        fit = _mm512_kand(in_, _mm512_kunpackb(high_, low_));                                      \
    } while (0)

#define STATIC_GRID_EIGHT(chosen, place)                                                           \
    do {                                                                                           \
        _mm512_storeu_si512(out_row + (place), _mm512_add_epi64(_mm512_cvtepi32_epi64(chosen),     \
                                                                _mm512_set1_epi64(first)));        \
        if (bound) _mm512_storeu_si512(bound + (place), _mm512_set1_epi64(prober));                \
        else _mm256_storeu_si256((__m256i *)(who + (place)), _mm256_set1_epi32((int32_t)prober));  \
    } while (0)

#define STATIC_GRID_EMIT_AVX512(rows, fit)                                                         \
    do {                                                                                           \
        __m512i chosen_ = _mm512_maskz_compress_epi32((__mmask16)(fit), _mm512_loadu_si512(rows)); \
        STATIC_GRID_EIGHT(_mm512_castsi512_si256(chosen_), n);                                     \
        if (__builtin_popcount(fit) > 8)                                                           \
            STATIC_GRID_EIGHT(_mm512_extracti64x4_epi64(chosen_, 1), n + 8);                       \
    } while (0)

STATIC_GRID_OF(avx512, TARGET_AVX512, 16, STATIC_GRID_TEST_AVX512, STATIC_GRID_EMIT_AVX512)
#endif

static inline void static_grid_cells(const StaticGrid *all, int64_t n, const int64_t *value,
                                     int64_t *cell) {
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) {
        static_grid_cells_avx512(all, n, value, cell);
        return;
    }
    if (isa_level() == ISA_AVX2) {
        static_grid_cells_avx2(all, n, value, cell);
        return;
    }
#endif
    static_grid_cells_plain(all, n, value, cell);
}

static inline RowBounds static_grid_locate(void *state, int64_t n, TimeBounds bounds) {
    return csr_locate(&((StaticGrid *)state)->rows, n, bounds);
}

static inline int static_grid_serve(void *state, const Probe *probe, Cursor *cursor, Pairs *out) {
    const StaticGrid *all = state;
    int64_t begin = out->n;
    int done;
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) done = static_grid_probe_avx512(all, probe, cursor, out);
    else if (isa_level() == ISA_AVX2) done = static_grid_probe_avx2(all, probe, cursor, out);
    else
#endif
        done = static_grid_probe_plain(all, probe, cursor, out);
    if (out->time)
        for (; begin < out->n; begin++)
            out->time[begin] = all->rows.time[out->row[begin] - all->rows.first];
    return done;
}

/* How many stretches a table of n rows has at most, with the one behind the last. */
static inline int64_t most_stretches(int64_t n) { return (n >> STRETCH_BITS) + 2; }

/* Where the stretch that begins with row `first` ends: after `span` of time and enough rows. */
static inline int64_t stretch_end(const Csr *rows, int64_t first, int64_t span) {
    int64_t least = first + (1 << STRETCH_BITS);
    if (least >= rows->n) return rows->n;
    int64_t end = csr_near(rows->time, least, rows->n, add_saturated(rows->time[first], span));
    return end > least ? end : least;
}

/* Cut the table into stretches. */
static inline void static_grid_cut(StaticGrid *all, int64_t span) {
    int64_t s = 0, end, k = 0;
    for (int64_t at = 0; at < all->rows.n; at = end, s++) {
        end = stretch_end(&all->rows, at, span);
        all->stretch[s] = (Stretch){at, 0, (int32_t)(end - at), 0};
        for (; k << STRETCH_BITS < end; k++) all->stretch_at[k] = (int32_t)s;
    }
    all->stretch[s].first = INT64_MAX;
    all->n_stretches = s;
}

/* Give every stretch its buckets; how many starts they take.  Cells are FINE where the values lie
 * so close together that there are no more of them than twice the rows of a stretch. */
static inline int64_t static_grid_choose_cells(StaticGrid *all, const int64_t *value, double width,
                                               int real) {
    int64_t n = all->rows.n, least = value[0], most = value[0], starts = 0;
    double fine = real || width > FINE ? width / FINE : 1, length, cells;
    for (int64_t i = 1; i < n; i++) {
        least = value[i] < least ? value[i] : least;
        most = value[i] > most ? value[i] : most;
    }
    length = real ? from_sortable(most) - from_sortable(least) : (double)most - (double)least;
    cells = length / fine + 2;
    all->dense = cells * (double)all->n_stretches < 2.0 * (double)n + 64 ? (int64_t)cells : 0;
    all->grid.real = real;
    all->grid.per_unit = 1 / (all->dense ? fine : width);
    grid_set_origin(&all->grid, least);
    for (int64_t s = 0; s < all->n_stretches; s++) {
        Stretch *stretch = all->stretch + s;
        stretch->start = starts;
        while ((int64_t)1 << stretch->shift < stretch->n) stretch->shift++;
        starts += (all->dense ? all->dense : (int64_t)1 << stretch->shift) + 1;
    }
    return starts;
}

/* Sort the rows of one stretch by bucket; `cell` has room for them. */
static inline void stretch_load(StaticGrid *all, const Stretch *stretch, const int64_t *value,
                                int64_t *cell) {
    int64_t count = all->dense ? all->dense : (int64_t)1 << stretch->shift;
    int32_t *start = all->start + stretch->start, first = (int32_t)stretch->first, end = first;
    value += stretch->first;
    static_grid_cells(all, stretch->n, value, cell);
    memset(start, 0, (size_t)(count + 1) * sizeof(int32_t));
    if (!all->dense)
        for (int32_t k = 0; k < stretch->n; k++) cell[k] = bucket_of(stretch, cell[k]);
    for (int32_t k = 0; k < stretch->n; k++) start[cell[k]]++;
    for (int64_t b = 0; b <= count; b++) {
        end += start[b];
        start[b] = end;
    }
    for (int32_t k = stretch->n - 1; k >= 0; k--) { /* backwards, so that ends become starts */
        int32_t at = --start[cell[k]];
        all->row[at] = first + k;
        all->value[at] = value[k];
    }
}
#endif
