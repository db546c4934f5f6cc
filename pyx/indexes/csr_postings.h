/* Row numbers per key code, for tables whose rows are numbered in time order and asked in time
 * order.
 *
 * The window of a probe is turned into a range of row numbers first (`locate`), all windows of a
 * block at once; a list then needs 4 bytes per row, and one vector comparison finds both of its
 * ends.
 *
 * The layout is that of a sparse matrix by rows (CSR).  Rows 0 to 5 with codes 1 0 1 2 1 0:
 *
 *   postings[].begin | 0 | 2 | 5 | 6 |      of codes 0, 1, 2, and one behind the last
 *                     |   |_______|_______
 *                     v           v       v
 *   row             | 1   5 | 0   2   4 | 3 |
 *
 * A probe for code 1 whose window is rows [1, 4] finds 2 and 4 in | 0 2 4 |.
 */
#ifndef WINDJOIN_CSR_POSTINGS_H
#define WINDJOIN_CSR_POSTINGS_H
#include "hop.h"
#include "isa.h"
#include "postings.h"

#define CSR_SLACK 48
#define CSR_AHEAD 12 /* so many rows before it is needed, memory is fetched */

/* A list ends where the next one begins. */
typedef struct {
    int32_t begin;
    int32_t hint; /* where the last probe began; how many rows, then where the next goes, while
                     loaded */
} CsrList;

typedef struct {
    CsrList *postings; /* and one behind the last */
    int64_t n_postings;
    int32_t *row;        /* relative to first; CSR_SLACK elements behind the last */
    const int64_t *time; /* of all rows, in order */
    int64_t n;
    int64_t first;
    int64_t list_room, row_room; /* of the arrays, in int64 */
    int64_t near_lo, near_hi; /* where the last window of the last block began and ended */
    int64_t reached; /* where the last window began: hints are not ahead of it */
} Csr;

/* First i in [from, length) with row[i] >= lo. */
static inline int64_t csr_search(const int32_t *row, int64_t from, int64_t length, int32_t lo) {
    while (from < length) {
        int64_t middle = from + ((length - from) >> 1);
        if (row[middle] < lo) from = middle + 1;
        else length = middle;
    }
    return from;
}

/* First i with time[i] >= lo, from a place close by. */
static inline int64_t csr_near(const int64_t *time, int64_t near, int64_t length, int64_t lo) {
    int64_t step = 8;
    if (near > 0 && time[near - 1] >= lo) return postings_search(time, 0, near, lo);
    while (near + step < length && time[near + step] < lo) near += step, step *= 2;
    return postings_search(time, near, near + step < length ? near + step : length, lo);
}

/* First i with time[i] > hi. */
static inline int64_t csr_after(const int64_t *time, int64_t near, int64_t length, int64_t hi) {
    return hi == INT64_MAX ? length : csr_near(time, near, length, hi + 1);
}

#define CSR_LESS(t, bound) ((t) < (bound))
#define CSR_NOT_MORE(t, bound) ((t) <= (bound))

/* Times of a block, most of which do not go back, become the rows that NEAR gives for them, from
 * `at` on. */
#define CSR_POSITIONS_PLAIN(NAME, EARLIER, NEAR)                                                   \
    static inline void NAME(const int64_t *time, int64_t n, int64_t m, int64_t *bound,             \
                            int64_t at) {                                                          \
        for (int64_t k = 0; k < m; k++) {                                                          \
            int64_t wanted = bound[k], stop = at + 8 < n ? at + 8 : n;                             \
            int back = at > 0 && !EARLIER(time[at - 1], wanted);                                   \
            while (!back && at < stop && EARLIER(time[at], wanted)) at++;                          \
            if (back || at == stop) at = NEAR(time, at, n, wanted);                                \
            bound[k] = at;                                                                         \
        }                                                                                          \
    }

CSR_POSITIONS_PLAIN(csr_begins_plain, CSR_LESS, csr_near)
CSR_POSITIONS_PLAIN(csr_ends_plain, CSR_NOT_MORE, csr_after)

#ifdef WINDJOIN_X86
/* A vector of them at once, if none goes back up to the first of the next: each counts which of the
 * next rows lie before it.  Rows are looked at by CSR_ROWS, whether needed or not, so that there is
 * hardly a branch to predict; a group that needs more than CSR_MOST searches.  EARLIER sets for two
 * vectors which rows are, as bits or as -1; ADD counts them.  FOUND says how many rows come before
 * the last of the group, where the next one begins: that one need not wait for the others then. */
#define CSR_ROWS 16
#define CSR_MOST 256
#define CSR_POSITIONS(NAME, TARGET, WIDTH, VECTOR, LOAD, STORE, ALL, FORWARD, EARLIER, ADD, FOUND, \
                      NEAR)                                                                        \
    TARGET static void NAME(const int64_t *time, int64_t n, int64_t m, int64_t *bound,             \
                            int64_t at) {                                                          \
        int64_t k = 0;                                                                             \
        for (; k + WIDTH < m; k += WIDTH) {                                                        \
            int64_t next = at, j = at, stop = at + CSR_MOST;                                       \
            VECTOR wanted = LOAD(bound + k), less = ALL(at), last = ALL(bound[k + WIDTH - 1]);     \
            int found = 0, forward = FORWARD(wanted, LOAD(bound + k + 1));                         \
            if (stop > n) stop = n;                                                                \
            while (forward && !found && j + CSR_ROWS <= stop) {                                    \
                next = j + FOUND(EARLIER, time + j, last);                                         \
                UNROLLED for (int r = 0; r < CSR_ROWS; r++) less =                                 \
                    ADD(less, EARLIER(ALL(time[j + r]), wanted));                                  \
                j += CSR_ROWS;                                                                     \
                found = next < j;                                                                  \
            }                                                                                      \
            if (found) {                                                                           \
                STORE(bound + k, less);                                                            \
                at = next;                                                                         \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t l = k; l < k + WIDTH; l++) bound[l] = at = NEAR(time, at, n, bound[l]);   \
            if (!forward) at = NEAR(time, at, n, bound[k + WIDTH]);                                \
        }                                                                                          \
        for (; k < m; k++) bound[k] = at = NEAR(time, at, n, bound[k]);                            \
    }

#define CSR_LOAD_AVX2(p) _mm256_loadu_si256((const __m256i *)(p))
#define CSR_STORE_AVX2(p, v) _mm256_storeu_si256((__m256i *)(p), v)
#define CSR_FORWARD_AVX2(these, next) (_mm256_movemask_epi8(_mm256_cmpgt_epi64(these, next)) == 0)
#define CSR_LESS_AVX2(rows, wanted) _mm256_cmpgt_epi64(wanted, rows)
#define CSR_NOT_MORE_AVX2(rows, wanted)                                                            \
    _mm256_xor_si256(_mm256_cmpgt_epi64(rows, wanted), _mm256_set1_epi64x(-1))
#define CSR_ADD_AVX2(less, earlier) _mm256_sub_epi64(less, earlier)
#define CSR_FOUR(EARLIER, rows, last)                                                              \
    _mm256_movemask_pd(_mm256_castsi256_pd(EARLIER(CSR_LOAD_AVX2(rows), last)))
#define CSR_FOUND_AVX2(EARLIER, rows, last)                                                        \
    __builtin_popcount((unsigned)(CSR_FOUR(EARLIER, rows, last) |                                  \
                                  CSR_FOUR(EARLIER, (rows) + 4, last) << 4 |                       \
                                  CSR_FOUR(EARLIER, (rows) + 8, last) << 8 |                       \
                                  CSR_FOUR(EARLIER, (rows) + 12, last) << 12))
#define CSR_AVX2(NAME, EARLIER, NEAR)                                                              \
    CSR_POSITIONS(NAME, TARGET_AVX2, 4, __m256i, CSR_LOAD_AVX2, CSR_STORE_AVX2,                    \
                  _mm256_set1_epi64x, CSR_FORWARD_AVX2, EARLIER, CSR_ADD_AVX2, CSR_FOUND_AVX2,     \
                  NEAR)
CSR_AVX2(csr_begins_avx2, CSR_LESS_AVX2, csr_near)
CSR_AVX2(csr_ends_avx2, CSR_NOT_MORE_AVX2, csr_after)

#define CSR_FORWARD_AVX512(these, next) (_mm512_cmpgt_epi64_mask(these, next) == 0)
#define CSR_LESS_AVX512(rows, wanted) _mm512_cmplt_epi64_mask(rows, wanted)
#define CSR_NOT_MORE_AVX512(rows, wanted) _mm512_cmple_epi64_mask(rows, wanted)
#define CSR_ADD_AVX512(less, earlier)                                                              \
    _mm512_mask_add_epi64(less, earlier, less, _mm512_set1_epi64(1))
#define CSR_FOUND_AVX512(EARLIER, rows, last)                                                      \
    __builtin_popcount(EARLIER(_mm512_loadu_si512(rows), last) |                                   \
                       (unsigned)EARLIER(_mm512_loadu_si512((rows) + 8), last) << 8)
#define CSR_AVX512(NAME, EARLIER, NEAR)                                                            \
    CSR_POSITIONS(NAME, TARGET_AVX512, 8, __m512i, _mm512_loadu_si512, _mm512_storeu_si512,        \
                  _mm512_set1_epi64, CSR_FORWARD_AVX512, EARLIER, CSR_ADD_AVX512,                  \
                  CSR_FOUND_AVX512, NEAR)
CSR_AVX512(csr_begins_avx512, CSR_LESS_AVX512, csr_near)
CSR_AVX512(csr_ends_avx512, CSR_NOT_MORE_AVX512, csr_after)
#endif

#ifdef WINDJOIN_X86
#define CSR_BEST(NAME)                                                                             \
    (isa_level() == ISA_AVX512 ? NAME##_avx512                                                     \
     : isa_level() == ISA_AVX2 ? NAME##_avx2                                                       \
                               : NAME##_plain)
#else
#define CSR_BEST(NAME) NAME##_plain
#endif

/* Windows lo <= time <= hi become lo <= row < hi, relative row numbers. */
static inline RowBounds csr_locate(void *state, int64_t m, TimeBounds bounds) {
    Csr *all = state;
    int64_t *lo = bounds.lo, *hi = bounds.hi;
    RowBounds rows = {lo, hi};
    if (!m) return rows;
    int64_t begin = csr_near(all->time, all->near_lo, all->n, lo[0]);
    int64_t end = csr_after(all->time, all->near_hi, all->n, hi[0]);
    CSR_BEST(csr_begins)(all->time, all->n, m, lo, begin);
    CSR_BEST(csr_ends)(all->time, all->n, m, hi, end);
    all->near_lo = lo[m - 1];
    all->near_hi = hi[m - 1];
    return rows;
}

/* Let the list of one of the n probes to come be fetched, and the rows of an earlier one, whose
 * list has come by now; fetching what code -1 would have does no harm. */
ALWAYS_INLINE void csr_fetch(const Csr *all, const int32_t *code, int64_t n) {
    if (2 * CSR_AHEAD < n) FETCH_TO_WRITE(all->postings, code[2 * CSR_AHEAD]);
    if (CSR_AHEAD < n && code[CSR_AHEAD] >= 0) FETCH(all->row, all->postings[code[CSR_AHEAD]].hint);
}

/* WINDOW looks at WIDTH rows from `at` on: how many lie before lo, and how many before hi.
 * EMIT writes WIDTH row numbers from `from` on, and for each of them who asked. */
#define CSR_PROBE(NAME, TARGET, WIDTH, WINDOW, EMIT)                                               \
    TARGET static int NAME(const Csr *all, const Probe *probe, Cursor *cursor, Pairs *out) {       \
        int64_t n = out->n, i = cursor->probe, resume = cursor->position;                          \
        const int32_t *row = all->row;                                                             \
        for (; i < probe->n; i++) {                                                                \
            int32_t code = probe->code[i];                                                         \
            csr_fetch(all, probe->code + i, probe->n - i);                                         \
            if (code < 0 || code >= all->n_postings) continue;                                     \
            CsrList *list = all->postings + code;                                                  \
            int32_t lo = (int32_t)probe->lo[i], hi = (int32_t)probe->hi[i];                        \
            int64_t at = list->hint, end = list[1].begin;                                          \
            int found = resume != 0;                                                               \
            if (found) at = resume - 1;                                                            \
            else if (at > list->begin && row[at - 1] >= lo)                                        \
                at = csr_search(row, list->begin, at, lo);                                         \
            resume = 0;                                                                            \
            while (at < end) {                                                                     \
                int before, within;                                                                \
                if (n >= out->capacity) {                                                          \
                    out->n = n;                                                                    \
                    cursor->probe = i;                                                             \
                    cursor->position = at + 1;                                                     \
                    return 0;                                                                      \
                }                                                                                  \
                WINDOW(row + at, end - at, lo, hi, before, within);                                \
                if (!found) {                                                                      \
                    if (before == (WIDTH)) {                                                       \
                        at = csr_search(row, at + (WIDTH), end, lo);                               \
                        list->hint = (int32_t)at;                                                  \
                        continue;                                                                  \
                    }                                                                              \
                    list->hint = (int32_t)(at + before);                                           \
                    found = 1;                                                                     \
                }                                                                                  \
                if (within > before) {                                                             \
                    EMIT(row + at + before, within - before);                                      \
                    n += within - before;                                                          \
                }                                                                                  \
                if (within < (WIDTH)) break;                                                       \
                at += (WIDTH);                                                                     \
            }                                                                                      \
        }                                                                                          \
        out->n = n;                                                                                \
        cursor->probe = i;                                                                         \
        return 1;                                                                                  \
    }

#define CSR_WINDOW_PLAIN(at, rest, lo, hi, before, within)                                         \
    do {                                                                                           \
        int rest_ = (rest) < 8 ? (int)(rest) : 8;                                                  \
        before = within = 0;                                                                       \
        while (before < rest_ && (at)[before] < (lo)) before++;                                    \
        within = before;                                                                           \
        while (within < rest_ && (at)[within] < (hi)) within++;                                    \
    } while (0)

#define CSR_EMIT_PLAIN(from, count)                                                                \
    do {                                                                                           \
        for (int k = 0; k < 8; k++) out->row[n + k] = all->first + (from)[k];                      \
        if (out->bound) {                                                                          \
            for (int k = 0; k < 8; k++) out->bound[n + k] = probe->bound[i];                       \
        } else {                                                                                   \
            for (int k = 0; k < 8; k++) out->probe[n + k] = (int32_t)i;                            \
        }                                                                                          \
    } while (0)

CSR_PROBE(csr_probe_plain, , 8, CSR_WINDOW_PLAIN, CSR_EMIT_PLAIN)

#ifdef WINDJOIN_X86
#define CSR_WINDOW_AVX2(at, rest, lo, hi, before, within)                                          \
    do {                                                                                           \
        __m256i v_ = _mm256_loadu_si256((const __m256i *)(at));                                    \
        unsigned in_ = (rest) < 8 ? (1u << (rest)) - 1 : 0xffu;                                    \
        before = __builtin_popcount(in_ & _mm256_movemask_ps(_mm256_castsi256_ps(                  \
                                              _mm256_cmpgt_epi32(_mm256_set1_epi32(lo), v_))));    \
        within = __builtin_popcount(in_ & _mm256_movemask_ps(_mm256_castsi256_ps(                  \
                                              _mm256_cmpgt_epi32(_mm256_set1_epi32(hi), v_))));    \
    } while (0)

CSR_PROBE(csr_probe_avx2, TARGET_AVX2, 8, CSR_WINDOW_AVX2, CSR_EMIT_PLAIN)

#define CSR_WINDOW_AVX512(at, rest, lo, hi, before, within)                                        \
    do {                                                                                           \
        __m512i v_ = _mm512_loadu_si512(at);                                                       \
        unsigned in_ = (rest) < 16 ? (1u << (rest)) - 1 : 0xffffu;                                 \
        before = __builtin_popcount(in_ & _mm512_cmplt_epi32_mask(v_, _mm512_set1_epi32(lo)));     \
        within = __builtin_popcount(in_ & _mm512_cmplt_epi32_mask(v_, _mm512_set1_epi32(hi)));     \
    } while (0)

#define CSR_EIGHT(from, place)                                                                     \
    do {                                                                                           \
        __m512i r_ = _mm512_cvtepi32_epi64(_mm256_loadu_si256((const __m256i *)(from)));           \
        _mm512_storeu_si512(out->row + (place),                                                    \
                            _mm512_add_epi64(r_, _mm512_set1_epi64(all->first)));                  \
        if (out->bound)                                                                            \
            _mm512_storeu_si512(out->bound + (place), _mm512_set1_epi64(probe->bound[i]));         \
        else _mm256_storeu_si256((__m256i *)(out->probe + (place)), _mm256_set1_epi32((int)i));    \
    } while (0)

#define CSR_EMIT_AVX512(from, count)                                                               \
    do {                                                                                           \
        CSR_EIGHT(from, n);                                                                        \
        if ((count) > 8) CSR_EIGHT((from) + 8, n + 8);                                             \
    } while (0)

CSR_PROBE(csr_probe_any_avx512, TARGET_AVX512, 16, CSR_WINDOW_AVX512, CSR_EMIT_AVX512)

/* Nearly every window of a list lies within one vector from the hint on; the rest is left to the
 * loop above, one probe at a time. */
TARGET_AVX512 static int csr_probe_avx512(const Csr *all, const Probe *probe, Cursor *cursor,
                                          Pairs *out) {
    int64_t n = out->n, i = cursor->probe, m = probe->n, capacity = out->capacity;
    const int32_t *row = all->row, *code = probe->code;
    const int64_t *lo = probe->lo, *hi = probe->hi, *prober = probe->bound;
    CsrList *postings = all->postings;
    int64_t *out_row = out->row, *bound = out->bound;
    __m512i first = _mm512_set1_epi64(all->first);
    if (!bound || cursor->position) return csr_probe_any_avx512(all, probe, cursor, out);
    for (; i < m && n < capacity; i++) {
        csr_fetch(all, code + i, m - i);
        if (code[i] < 0) continue;
        CsrList *list = postings + code[i];
        int32_t at = list->hint, rest = list[1].begin - at;
        __m512i v = _mm512_loadu_si512(row + at);
        __mmask16 in = (__mmask16)_bzhi_u32(0xffff, rest < 16 ? rest : 16);
        __mmask16 early = _mm512_mask_cmplt_epi32_mask(in, v, _mm512_set1_epi32((int)lo[i]));
        __mmask16 soon = _mm512_mask_cmplt_epi32_mask(in, v, _mm512_set1_epi32((int)hi[i]));
        int before = __builtin_popcount(early), within = __builtin_popcount(soon);
        if (within == 16 || within - before > 8) {
            Cursor one = {i, 0, 0, 0};
            Probe this = *probe;
            this.n = i + 1;
            out->n = n;
            if (!csr_probe_any_avx512(all, &this, &one, out)) { /* out is full */
                *cursor = one;
                return 0;
            }
            n = out->n;
            continue;
        }
        list->hint = at + before;
        __m512i r = _mm512_cvtepi32_epi64(_mm256_loadu_si256((const __m256i *)(row + at + before)));
        _mm512_storeu_si512(out_row + n, _mm512_add_epi64(r, first));
        _mm512_storeu_si512(bound + n, _mm512_set1_epi64(prober[i]));
        n += within - before;
    }
    out->n = n;
    cursor->probe = i;
    return i == m;
}
#endif

/* Windows never move back within a block; if they do between two blocks, hints start again. */
static inline void csr_follow(Csr *all, const Probe *probe) {
    if (!probe->n) return;
    if (probe->lo[0] < all->reached)
        for (int64_t c = 0; c < all->n_postings; c++)
            all->postings[c].hint = all->postings[c].begin;
    all->reached = probe->lo[probe->n - 1];
}

static inline int csr_serve(void *state, const Probe *probe, Cursor *cursor, Pairs *out) {
    Csr *all = state;
    if (!cursor->probe && !cursor->position) csr_follow(all, probe);
    int64_t n = out->n;
    int done;
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) done = csr_probe_avx512(all, probe, cursor, out);
    else if (isa_level() == ISA_AVX2) done = csr_probe_avx2(all, probe, cursor, out);
    else
#endif
        done = csr_probe_plain(all, probe, cursor, out);
    if (out->time)
        for (; n < out->n; n++) out->time[n] = all->time[out->row[n] - all->first];
    return done;
}

/* As CSR_PROBE, but one row of a window says all: mark who asked, and count them. */
#define CSR_EXISTS(NAME, TARGET, WIDTH, WINDOW)                                                    \
    TARGET static int64_t NAME(const Csr *all, const Probe *probe, uint8_t *marks) {               \
        const int32_t *row = all->row;                                                             \
        int64_t found = 0;                                                                         \
        for (int64_t i = 0; i < probe->n; i++) {                                                   \
            int32_t code = probe->code[i];                                                         \
            csr_fetch(all, probe->code + i, probe->n - i);                                         \
            if (code < 0 || code >= all->n_postings) continue;                                     \
            CsrList *list = all->postings + code;                                                  \
            int32_t lo = (int32_t)probe->lo[i], hi = (int32_t)probe->hi[i];                        \
            int64_t at = list->hint, end = list[1].begin;                                          \
            int before, within, any;                                                               \
            WINDOW(row + at, end - at, lo, hi, before, within);                                    \
            any = within > before;                                                                 \
            if (before == (WIDTH)) {                                                               \
                at = csr_search(row, at + (WIDTH), end, lo);                                       \
                any = at < end && row[at] < hi;                                                    \
                before = 0;                                                                        \
            }                                                                                      \
            list->hint = (int32_t)(at + before);                                                   \
            marks[probe->bound[i]] |= any;                                                         \
            found += any;                                                                          \
        }                                                                                          \
        return found;                                                                              \
    }

CSR_EXISTS(csr_exists_plain, , 8, CSR_WINDOW_PLAIN)
#ifdef WINDJOIN_X86
CSR_EXISTS(csr_exists_avx2, TARGET_AVX2, 8, CSR_WINDOW_AVX2)
CSR_EXISTS(csr_exists_avx512, TARGET_AVX512, 16, CSR_WINDOW_AVX512)
#endif

static inline int64_t csr_exists(void *state, const Probe *probe, uint8_t *marks) {
    csr_follow(state, probe);
    return CSR_BEST(csr_exists)(state, probe, marks);
}

/* Counting sort of row numbers by code; rows go in backwards, so that ends become starts. */
static inline void csr_load(Csr *all, const int32_t *code) {
    int32_t offset = 0;
    int64_t n = all->n;
    memset(all->postings, 0, (size_t)(all->n_postings + 1) * sizeof(CsrList));
    for (int64_t i = 0; i < n; i++)
        if (code[i] >= 0) all->postings[code[i]].hint++;
    for (int64_t c = 0; c <= all->n_postings; c++) {
        CsrList *list = all->postings + c;
        list->begin = offset;
        list->hint = offset += list->hint;
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        if (i >= CSR_AHEAD && code[i - CSR_AHEAD] >= 0)
            FETCH_TO_WRITE(all->row, all->postings[code[i - CSR_AHEAD]].hint - 1);
        if (code[i] >= 0) all->row[--all->postings[code[i]].hint] = (int32_t)i;
    }
    memset(all->row + offset, 0, CSR_SLACK * sizeof(int32_t));
}
#endif
