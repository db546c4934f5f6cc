/* Narrow bands on a whole table asked in time order: a grid over the values; per cell, row numbers and
 * values side by side, so that one pass of vectors tests both the window and the band. */
#ifndef WINDJOIN_CELLRANKS_H
#define WINDJOIN_CELLRANKS_H
#include "grid.h"
#include "ranks.h"

#define CELLRANKS_BLOCK 128 /* probes opened at a time */

typedef struct {
    Grid grid;
    Ranks ranks;
    int64_t *value; /* sortable, beside ranks.row */
    int64_t n;      /* list probes of the open block */
    int32_t asker[CELLRANKS_BLOCK * GRID_MOST + 16], code[CELLRANKS_BLOCK * GRID_MOST + 16];
} CellRanks;

/* Open up to CELLRANKS_BLOCK probes from `first` on: one list probe per cell they touch. */
#define CELLRANKS_OPEN(NAME, TARGET)                                                              \
    TARGET static int64_t NAME(CellRanks *all, const Probe *probe, int64_t first) {               \
        int64_t i = first, n = 0, stop = first + CELLRANKS_BLOCK;                                 \
        if (stop > probe->n) stop = probe->n;                                                     \
        for (; i < stop; i++) {                                                                   \
            if (probe->from[i] > probe->to[i]) continue;                                          \
            int64_t cell = grid_cell(&all->grid, probe->from[i]);                                 \
            int64_t last = grid_cell(&all->grid, probe->to[i]);                                   \
            for (int k = 0; k < GRID_MOST && cell <= last; k++, cell++) {                         \
                int32_t code = grid_code(&all->grid, cell);                                       \
                all->asker[n] = (int32_t)i;                                                       \
                all->code[n] = code;                                                              \
                n += code >= 0;                                                                   \
            }                                                                                     \
        }                                                                                         \
        all->n = n;                                                                               \
        return stop;                                                                              \
    }

/* WINDOW looks at 8 rows from `at` on: `before` of them come before lo, `within` before hi, and the
 * bits of `fit` say which lie in window and range.  EMIT writes those and adds their number to n. */
#define CELLRANKS_PROBE(NAME, TARGET, WINDOW, EMIT)                                               \
    TARGET static int NAME(CellRanks *all, const Probe *probe, Cursor *cursor, Pairs *out) {      \
        int64_t n = out->n, j = cursor->stop, resume = cursor->position;                          \
        const int32_t *row = all->ranks.row;                                                      \
        for (; j < all->n; j++) {                                                                 \
            if (j + 8 < all->n) {                                                                 \
                int32_t hint = all->ranks.lists[all->code[j + 8]].hint;                           \
                __builtin_prefetch(row + hint);                                                   \
                __builtin_prefetch(all->value + hint);                                            \
                __builtin_prefetch(all->value + hint + 7);                                        \
            }                                                                                     \
            int32_t i = all->asker[j];                                                            \
            RankList *list = all->ranks.lists + all->code[j];                                     \
            int32_t lo = (int32_t)probe->lo[i], hi = (int32_t)probe->hi[i];                       \
            int64_t from = probe->from[i], to = probe->to[i], at = list->hint, end = list->end;   \
            int found = resume != 0;                                                              \
            if (found) at = resume - 1;                                                           \
            else if (at > list->begin && row[at - 1] >= lo)                                       \
                at = ranks_search(row, list->begin, at, lo);                                  \
            resume = 0;                                                                           \
            while (at < end) {                                                                    \
                int before, within;                                                               \
                unsigned fit;                                                                     \
                if (n >= out->capacity) {                                                         \
                    out->n = n;                                                                   \
                    cursor->stop = j;                                                             \
                    cursor->position = at + 1;                                                    \
                    return 0;                                                                     \
                }                                                                                 \
                WINDOW(at, end - at, lo, hi, from, to, before, within, fit);                      \
                if (!found) {                                                                     \
                    if (before == 8) {                                                            \
                        at = ranks_search(row, at + 8, end, lo);                              \
                        list->hint = (int32_t)at;                                                 \
                        continue;                                                                 \
                    }                                                                             \
                    list->hint = (int32_t)(at + before);                                          \
                    found = 1;                                                                    \
                }                                                                                 \
                EMIT(row + at, fit);                                                              \
                if (within < 8) break;                                                            \
                at += 8;                                                                          \
            }                                                                                     \
        }                                                                                         \
        out->n = n;                                                                               \
        cursor->stop = j;                                                                         \
        cursor->position = 0;                                                                     \
        return 1;                                                                                 \
    }

#define CELLRANKS_WINDOW_PLAIN(at, rest, lo, hi, from, to, before, within, fit)                   \
    do {                                                                                          \
        int rest_ = (rest) < 8 ? (int)(rest) : 8;                                                 \
        before = within = 0;                                                                      \
        fit = 0;                                                                                  \
        for (int k = 0; k < rest_; k++) {                                                         \
            int64_t v_ = all->value[(at) + k];                                                    \
            before += row[(at) + k] < (lo);                                                       \
            within += row[(at) + k] < (hi);                                                       \
            fit |= (unsigned)((row[(at) + k] >= (lo)) & (row[(at) + k] < (hi)) & (v_ >= (from)) & \
                              (v_ <= (to))) << k;                                                 \
        }                                                                                         \
    } while (0)

#define CELLRANKS_EMIT_PLAIN(rows, fit)                                                           \
    for (; fit; fit &= fit - 1, n++) {                                                            \
        out->row[n] = all->ranks.first + (rows)[__builtin_ctz(fit)];                              \
        if (out->bound) out->bound[n] = probe->bound[i];                                          \
        else out->probe[n] = i;                                                                   \
    }

CELLRANKS_OPEN(cellranks_open_plain, )
CELLRANKS_PROBE(cellranks_probe_plain, , CELLRANKS_WINDOW_PLAIN, CELLRANKS_EMIT_PLAIN)

#ifdef WINDJOIN_X86
#define CELLRANKS_WINDOW_AVX2(at, rest, lo, hi, from, to, before, within, fit)                    \
    do {                                                                                          \
        __m256i r_ = _mm256_loadu_si256((const __m256i *)(row + (at)));                           \
        __m256i a_ = _mm256_loadu_si256((const __m256i *)(all->value + (at)));                    \
        __m256i b_ = _mm256_loadu_si256((const __m256i *)(all->value + (at) + 4));                \
        __m256i from_ = _mm256_set1_epi64x(from), to_ = _mm256_set1_epi64x(to);                   \
        unsigned in_ = (rest) < 8 ? (1u << (rest)) - 1 : 0xffu;                                   \
        unsigned early_ = in_ & _mm256_movemask_ps(_mm256_castsi256_ps(                           \
                                    _mm256_cmpgt_epi32(_mm256_set1_epi32(lo), r_)));              \
        unsigned soon_ = in_ & _mm256_movemask_ps(_mm256_castsi256_ps(                            \
                                   _mm256_cmpgt_epi32(_mm256_set1_epi32(hi), r_)));               \
        __m256i out_a_ = _mm256_or_si256(_mm256_cmpgt_epi64(from_, a_), _mm256_cmpgt_epi64(a_, to_)); \
        __m256i out_b_ = _mm256_or_si256(_mm256_cmpgt_epi64(from_, b_), _mm256_cmpgt_epi64(b_, to_)); \
        before = __builtin_popcount(early_);                                                      \
        within = __builtin_popcount(soon_);                                                       \
        fit = soon_ & ~early_ & ~(_mm256_movemask_pd(_mm256_castsi256_pd(out_a_)) |               \
                                  _mm256_movemask_pd(_mm256_castsi256_pd(out_b_)) << 4);          \
    } while (0)

CELLRANKS_OPEN(cellranks_open_avx2, TARGET_AVX2)
CELLRANKS_PROBE(cellranks_probe_avx2, TARGET_AVX2, CELLRANKS_WINDOW_AVX2, CELLRANKS_EMIT_PLAIN)

#define CELLRANKS_WINDOW_AVX512(at, rest, lo, hi, from, to, before, within, fit)                  \
    do {                                                                                          \
        __m256i r_ = _mm256_loadu_si256((const __m256i *)(row + (at)));                           \
        __m512i v_ = _mm512_loadu_si512(all->value + (at));                                       \
        unsigned in_ = (rest) < 8 ? (1u << (rest)) - 1 : 0xffu;                                   \
        unsigned early_ = in_ & _mm256_cmplt_epi32_mask(r_, _mm256_set1_epi32(lo));               \
        unsigned soon_ = in_ & _mm256_cmplt_epi32_mask(r_, _mm256_set1_epi32(hi));                \
        before = __builtin_popcount(early_);                                                      \
        within = __builtin_popcount(soon_);                                                       \
        fit = soon_ & ~early_ & _mm512_cmpge_epi64_mask(v_, _mm512_set1_epi64(from)) &            \
              _mm512_cmple_epi64_mask(v_, _mm512_set1_epi64(to));                                 \
    } while (0)

#define CELLRANKS_EMIT_AVX512(rows, fit)                                                          \
    do {                                                                                          \
        __m512i r_ = _mm512_cvtepi32_epi64(_mm256_loadu_si256((const __m256i *)(rows)));          \
        r_ = _mm512_maskz_compress_epi64((__mmask8)(fit), r_);                                    \
        _mm512_storeu_si512(out->row + n, _mm512_add_epi64(r_, _mm512_set1_epi64(all->ranks.first))); \
        if (out->bound) _mm512_storeu_si512(out->bound + n, _mm512_set1_epi64(probe->bound[i]));  \
        else _mm256_storeu_si256((__m256i *)(out->probe + n), _mm256_set1_epi32(i));              \
        n += __builtin_popcount(fit);                                                             \
    } while (0)

CELLRANKS_OPEN(cellranks_open_avx512, TARGET_AVX512)
CELLRANKS_PROBE(cellranks_probe_avx512, TARGET_AVX512, CELLRANKS_WINDOW_AVX512,
                CELLRANKS_EMIT_AVX512)
#endif

static inline int64_t cellranks_open(CellRanks *all, const Probe *probe, int64_t first) {
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) return cellranks_open_avx512(all, probe, first);
    if (isa_level() == ISA_AVX2) return cellranks_open_avx2(all, probe, first);
#endif
    return cellranks_open_plain(all, probe, first);
}

static inline int cellranks_probe(CellRanks *all, const Probe *probe, Cursor *cursor, Pairs *out) {
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) return cellranks_probe_avx512(all, probe, cursor, out);
    if (isa_level() == ISA_AVX2) return cellranks_probe_avx2(all, probe, cursor, out);
#endif
    return cellranks_probe_plain(all, probe, cursor, out);
}

static inline void cellranks_aim(void *state, int64_t n, int64_t *lo, int64_t *hi) {
    ranks_aim(&((CellRanks *)state)->ranks, n, lo, hi);
}

/* cursor: probe = where the next block starts, part = 1 while a block is open, stop = its list probe
 * that is next, position = where in that list. */
static inline int cellranks_serve(void *state, const Probe *probe, Cursor *cursor, Pairs *out) {
    CellRanks *all = state;
    int64_t begin = out->n;
    int done = 0, open = 1;
    while (open && !done) {
        if (!cursor->part) {
            if (cursor->probe >= probe->n) {
                done = 1;
                break;
            }
            cursor->probe = cellranks_open(all, probe, cursor->probe);
            cursor->part = 1;
            cursor->stop = cursor->position = 0;
        }
        open = cellranks_probe(all, probe, cursor, out);
        if (open) cursor->part = 0;
    }
    if (out->time)
        for (; begin < out->n; begin++)
            out->time[begin] = all->ranks.time[out->row[begin] - all->ranks.first];
    return done;
}

static inline void cellranks_load(CellRanks *all, const int32_t *code, const int64_t *value) {
    ranks_load(&all->ranks, code);
    for (int64_t k = 0; k < all->ranks.n; k++) all->value[k] = value[all->ranks.row[k]];
    memset(all->value + all->ranks.n, 0, RANKS_SLACK * sizeof(int64_t));
}
#endif
