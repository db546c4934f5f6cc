/* The newest rows of every key code in one cache line; older ones that still count in a list.
 *
 * Most keys have few rows in a window, so a probe reads one line and an insert writes one.  A row
 * that a newer one pushes out of a full line is dropped if it has expired; otherwise it goes to one
 * of the lists of postings.h, which the key has until all in it have expired.  A probe looks there
 * only if the oldest row of the line is recent enough.
 *
 * A line holds 32 bits of a time: how far it lies from `base`.  Where 32 bits do not span what is
 * alive, they count steps of 2 ** shift, and exact times lie beside the lines, for those probes
 * whose bounds fall into the step of a row.  Values of the rows may lie beside both lines and lists
 * (live_grid.h).
 *
 * A key with rows 0, 2, 5 at times 101, 104, 109; base 100, shift 0; 4 of the 8 slots:
 *
 *                time                row                 more   lists of older rows
 *                |  - |  1 |  4 |  9 |  - |  0 |  2 |  5 |   0
 *   row 7, 112   |  1 |  4 |  9 | 12 |  0 |  2 |  5 |  7 |   0
 *   row 8, 113   |  4 |  9 | 12 | 13 |  2 |  5 |  7 |  8 |   1 -> | 101, row 0 |
 *
 * Had the horizon been 102 before row 8 came, row 0 would have been dropped.  A probe from 105 on
 * sees that slot 0 (104) is earlier, so all in the list are, and does not look there.
 */
#ifndef WINDJOIN_CACHE_LINES_H
#define WINDJOIN_CACHE_LINES_H
#include "hop.h"
#include "isa.h"
#include "postings.h"
#include "memory.h"

#define CACHE_LINE_ROWS 8
#define CACHE_LINE_VACANT INT32_MIN /* the time of a slot without a row */
#define CACHE_LINE_FIRST (INT32_MIN + 1)
#define CACHE_LINE_LAST (INT32_MAX - 1)
#define CACHE_LINE_SPAN_BITS 29 /* of the steps that what is alive spans when `base` is chosen */

/* In the order of time; vacant slots come first. */
typedef struct {
    int32_t time[CACHE_LINE_ROWS];
    uint32_t row[CACHE_LINE_ROWS]; /* its last 32 bits */
} CacheLine;

typedef struct {
    CacheLine *lines;
    int64_t (*value)[CACHE_LINE_ROWS]; /* of the rows; NULL: they are not kept */
    int64_t (*exact)[CACHE_LINE_ROWS]; /* times; NULL only if shift is 0 */
    uint32_t *more;              /* per line, 1 + number of the list of older rows; 0: none */
    int64_t n_lines;
    int64_t *memory; /* in which all these lie, at the beginning of a cache line */
    int64_t newest;  /* the greatest row number that was inserted, */
    int64_t latest;  /* and the greatest time */
    int64_t base;    /* in steps */
    int shift;
    Postings *older;
} CacheLines;

static inline int64_t cache_lines_time(const CacheLines *all, int64_t code, int k) {
    /* without a sign, as a vacant slot may lie before all times */
    return all->exact
               ? all->exact[code][k]
               : (int64_t)((uint64_t)all->base + (uint64_t)(int64_t)all->lines[code].time[k]);
}

/* What n lines take, in int64. */
static inline int64_t cache_lines_words(int64_t n, int valued, int exact) {
    return 8 * (n + 2) + (n + 1) / 2 + (valued + exact) * CACHE_LINE_ROWS * n;
}

/* Room for n lines, with the old ones, and with values and exact times if they are wanted; 0: no
 * memory. */
static inline int cache_lines_grow(CacheLines *all, int64_t n, int valued, int exact) {
    int64_t *memory = new_array(cache_lines_words(n, valued, exact)), old = all->n_lines;
    if (!memory) return 0;
    CacheLine *lines = (CacheLine *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
    int64_t (*values)[CACHE_LINE_ROWS] = (int64_t (*)[CACHE_LINE_ROWS])(lines + n);
    int64_t (*times)[CACHE_LINE_ROWS] = exact ? values + (valued ? n : 0) : NULL;
    uint32_t *more = (uint32_t *)(values + (valued + exact) * n);
    if (old) memcpy(lines, all->lines, (size_t)old * sizeof(CacheLine));
    if (old && valued) memcpy(values, all->value, (size_t)old * sizeof(*values));
    for (int64_t c = 0; exact && c < old; c++)
        for (int k = 0; k < CACHE_LINE_ROWS; k++) times[c][k] = cache_lines_time(all, c, k);
    if (old) memcpy(more, all->more, (size_t)old * sizeof(uint32_t));
    memset(more + old, 0, (size_t)(n - old) * sizeof(uint32_t));
    for (int64_t c = old; c < n; c++)
        for (int k = 0; k < CACHE_LINE_ROWS; k++) lines[c].time[k] = CACHE_LINE_VACANT;
    free_array(all->memory);
    all->memory = memory;
    all->lines = lines;
    all->value = valued ? values : NULL;
    all->exact = times;
    all->more = more;
    return 1;
}

/* Bounds in steps from the base, no further than the times of lines go. */
static inline int32_t cache_lines_least(const CacheLines *all, int64_t lo) {
    int64_t d = subtract_saturated(lo >> all->shift, all->base);
    return d < CACHE_LINE_FIRST ? CACHE_LINE_FIRST : d > INT32_MAX ? INT32_MAX : (int32_t)d;
}

static inline int32_t cache_lines_most(const CacheLines *all, int64_t hi) {
    int64_t d = subtract_saturated(hi >> all->shift, all->base);
    return d < CACHE_LINE_VACANT ? CACHE_LINE_VACANT
           : d > CACHE_LINE_LAST ? CACHE_LINE_LAST
                                 : (int32_t)d;
}

/* Whether lines can hold a time. */
static inline int cache_lines_reach(const CacheLines *all, int64_t time) {
    int64_t d = subtract_saturated(time >> all->shift, all->base);
    return d >= CACHE_LINE_FIRST && d <= CACHE_LINE_LAST;
}

/* Choose steps and base for times in least .. most, which all that is alive lies in; what lies
 * before `horizon` goes.  Exact times are there if they will be wanted. */
static inline void cache_lines_refit(CacheLines *all, int64_t least, int64_t most,
                                     int64_t horizon) {
    uint64_t span = (uint64_t)most - (uint64_t)least;
    int shift = 0;
    while (span >> shift >> CACHE_LINE_SPAN_BITS) shift++;
    int64_t base = most >> shift;
    for (int64_t c = 0; c < all->n_lines; c++) {
        CacheLine *line = all->lines + c;
        for (int k = 0; k < CACHE_LINE_ROWS; k++) {
            if (line->time[k] == CACHE_LINE_VACANT) continue;
            int64_t time = cache_lines_time(all, c, k);
            line->time[k] = time < horizon ? CACHE_LINE_VACANT : (int32_t)((time >> shift) - base);
            if (all->exact) all->exact[c][k] = time;
        }
    }
    all->shift = shift;
    all->base = base;
}

/* Put a row at its place among those of a line; its oldest row, or a vacant slot, goes. */
static inline void cache_line_insert(CacheLines *all, int64_t code, int64_t time, int64_t row,
                                     int64_t value) {
    CacheLine *line = all->lines + code;
    int last = CACHE_LINE_ROWS - 1; /* out of order, ties stay in the order of arrival */
    while (last > 0 && line->time[last] != CACHE_LINE_VACANT &&
           cache_lines_time(all, code, last) > time)
        last--;
    for (int k = 1; k <= last; k++) {
        line->time[k - 1] = line->time[k];
        line->row[k - 1] = line->row[k];
        if (all->value) all->value[code][k - 1] = all->value[code][k];
        if (all->exact) all->exact[code][k - 1] = all->exact[code][k];
    }
    line->time[last] = (int32_t)((time >> all->shift) - all->base);
    line->row[last] = (uint32_t)row;
    if (all->value) all->value[code][last] = value;
    if (all->exact) all->exact[code][last] = time;
}

/* Ask for the lines that rows will be put into, while others are searched.  Always inline, as all
 * that only fetches: a compiler may leave out the call of a function without effects.  Exact times
 * are not asked for: that was slower. */
ALWAYS_INLINE void cache_lines_fetch(const CacheLines *all, int64_t n, const int32_t *code) {
    for (int64_t i = 0; i < n; i++) {
        if ((uint64_t)(int64_t)code[i] >= (uint64_t)all->n_lines) continue; /* -1: none */
        FETCH_TO_WRITE(all->lines, code[i]);
        if (all->value) FETCH_TO_WRITE(all->value, code[i]);
    }
}

/* The same for probes, some of them ahead of probe i if it is the first of so many. */
#define CACHE_LINES_AHEAD 32

ALWAYS_INLINE void cache_lines_fetch_ahead(const CacheLines *all, const Probe *probe, int64_t i) {
    if (i % CACHE_LINES_AHEAD) return;
    int64_t stop = i + 2 * CACHE_LINES_AHEAD;
    if (stop > probe->n) stop = probe->n;
    for (int64_t k = i ? i + CACHE_LINES_AHEAD : 0; k < stop; k++)
        if ((uint64_t)(int64_t)probe->code[k] < (uint64_t)all->n_lines)
            __builtin_prefetch(all->lines + probe->code[k]);
}

/* Of rows to be put: the greatest code, least and greatest time, and the greatest row number so
 * far. */
typedef struct {
    int32_t top;
    int64_t newest, least, most;
} CacheLinesSpan;

#define CACHE_LINES_SPAN(NAME, TARGET)                                                             \
    TARGET static CacheLinesSpan NAME(int64_t n, const int32_t *code, const int64_t *time,         \
                                      const int64_t *row, CacheLinesSpan span) {                   \
        for (int64_t i = 0; i < n; i++) span.top = code[i] > span.top ? code[i] : span.top;        \
        for (int64_t i = 0; i < n; i++) {                                                          \
            span.newest = row[i] > span.newest ? row[i] : span.newest;                             \
            span.least = time[i] < span.least ? time[i] : span.least;                              \
            span.most = time[i] > span.most ? time[i] : span.most;                                 \
        }                                                                                          \
        return span;                                                                               \
    }

CACHE_LINES_SPAN(cache_lines_span_plain, )
#ifdef WINDJOIN_X86
CACHE_LINES_SPAN(cache_lines_span_avx512, TARGET_AVX512)
#endif

static inline CacheLinesSpan cache_lines_span(int64_t n, const int32_t *code, const int64_t *time,
                                              const int64_t *row, int64_t newest) {
    CacheLinesSpan span = {-1, newest, time[0], time[0]};
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) return cache_lines_span_avx512(n, code, time, row, span);
#endif
    return cache_lines_span_plain(n, code, time, row, span);
}

/* A row number of the window from its last 32 bits. */
static inline int64_t cache_line_row(int64_t newest, uint32_t row) {
    return newest - (int64_t)(uint32_t)((uint32_t)newest - row);
}

/* Those of the rows `in` of a line that lie in lo .. hi by their exact times. */
static inline unsigned cache_lines_exactly(const CacheLines *all, int64_t code, unsigned in,
                                           int64_t lo, int64_t hi) {
    const CacheLine *line = all->lines + code;
    int32_t first = cache_lines_least(all, lo), last = cache_lines_most(all, hi);
    for (unsigned rest = in; rest; rest &= rest - 1) {
        int k = __builtin_ctz(rest);
        if (line->time[k] != first && line->time[k] != last) continue;
        int64_t time = all->exact[code][k];
        if (time < lo || time > hi) in &= ~(1u << k);
    }
    return in;
}

/* The loop over partial results.  IN sets which rows of a line lie in first .. last, as bits; EMIT
 * writes these; WINDOW is that of POSTINGS_WALK. */
#define CACHE_LINES_PROBE(NAME, TARGET, IN, EMIT, WINDOW)                                          \
    TARGET static int NAME(const CacheLines *all, const Probe *probe, Cursor *cursor,              \
                           Pairs *out) {                                                           \
        int64_t n = out->n, i = cursor->probe, resume = cursor->position, newest = all->newest;    \
        const CacheLine *lines = all->lines;                                                       \
        PAIRS_AT_HAND                                                                              \
        for (; i < probe->n; i++) {                                                                \
            cache_lines_fetch_ahead(all, probe, i);                                                \
            int32_t code = probe->code[i];                                                         \
            if (code < 0 || code >= all->n_lines) continue;                                        \
            const CacheLine *line = lines + code;                                                  \
            int64_t lo = probe->lo[i], hi = probe->hi[i];                                          \
            int32_t first = cache_lines_least(all, lo), last = cache_lines_most(all, hi);          \
            if (line->time[0] >= first && all->more[code]) {                                       \
                PostingList *list = all->older->postings + all->more[code] - 1;                    \
                const int64_t *time = all->older->time + list->offset;                             \
                const int64_t *row = all->older->row + list->offset;                               \
                int64_t at = resume ? resume - 1 : postings_begin(list, time, lo);                 \
                int found = resume != 0;                                                           \
                POSTINGS_WALK(WINDOW, list, time, row, at, found)                                  \
                if (n >= capacity) {                                                               \
                    out->n = n;                                                                    \
                    cursor->probe = i;                                                             \
                    cursor->position = list->length + 1;                                           \
                    return 0;                                                                      \
                }                                                                                  \
            }                                                                                      \
            resume = 0;                                                                            \
            if (n >= capacity) {                                                                   \
                out->n = n;                                                                        \
                cursor->probe = i;                                                                 \
                cursor->position = 0;                                                              \
                return 0;                                                                          \
            }                                                                                      \
            unsigned in;                                                                           \
            IN(line, first, last, in);                                                             \
            if (all->exact) in = cache_lines_exactly(all, code, in, lo, hi);                       \
            EMIT(line, in);                                                                        \
            n += __builtin_popcount(in);                                                           \
        }                                                                                          \
        out->n = n;                                                                                \
        cursor->probe = i;                                                                         \
        return 1;                                                                                  \
    }

#define CACHE_LINES_IN_PLAIN(line, first, last, in)                                                \
    do {                                                                                           \
        in = 0;                                                                                    \
        for (int k = 0; k < CACHE_LINE_ROWS; k++)                                                  \
            in |= (unsigned)(((line)->time[k] >= (first)) & ((line)->time[k] <= (last))) << k;     \
    } while (0)

#define CACHE_LINES_EMIT_PLAIN(line, in)                                                           \
    do {                                                                                           \
        int64_t m = n;                                                                             \
        for (int k = 0; k < CACHE_LINE_ROWS; k++) {                                                \
            found_row[m] = cache_line_row(newest, (line)->row[k]);                                 \
            if (found_time) found_time[m] = cache_lines_time(all, code, k);                        \
            if (found_bound) found_bound[m] = probe->bound[i];                                     \
            else found_probe[m] = (int32_t)i;                                                      \
            m += (in) >> k & 1;                                                                    \
        }                                                                                          \
    } while (0)

CACHE_LINES_PROBE(cache_lines_probe_plain, , CACHE_LINES_IN_PLAIN, CACHE_LINES_EMIT_PLAIN,
                  POSTINGS_WINDOW_PLAIN)

#ifdef WINDJOIN_X86
#define CACHE_LINES_IN_AVX2(line, first, last, in)                                                 \
    do {                                                                                           \
        __m256i t_ = _mm256_load_si256((const __m256i *)(line)->time);                             \
        __m256i lt_ = _mm256_cmpgt_epi32(_mm256_set1_epi32(first), t_);                            \
        __m256i gt_ = _mm256_cmpgt_epi32(t_, _mm256_set1_epi32(last));                             \
        in = ~(unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_or_si256(lt_, gt_))) & 0xff; \
    } while (0)

CACHE_LINES_PROBE(cache_lines_probe_avx2, TARGET_AVX2, CACHE_LINES_IN_AVX2, CACHE_LINES_EMIT_PLAIN,
                  POSTINGS_WINDOW_AVX2)

#define CACHE_LINES_IN_AVX512(line, first, last, in)                                               \
    do {                                                                                           \
        __m256i t_ = _mm256_load_si256((const __m256i *)(line)->time);                             \
        in = _mm256_cmpge_epi32_mask(t_, _mm256_set1_epi32(first)) &                               \
             _mm256_cmple_epi32_mask(t_, _mm256_set1_epi32(last));                                 \
    } while (0)

#define CACHE_LINES_EMIT_AVX512(line, in)                                                          \
    do {                                                                                           \
        __m256i r_ = _mm256_maskz_compress_epi32((__mmask8)(in),                                   \
                                                 _mm256_load_si256((const __m256i *)(line)->row)); \
        r_ = _mm256_sub_epi32(_mm256_set1_epi32((int)(uint32_t)newest), r_);                       \
        _mm512_storeu_si512(found_row + n, _mm512_sub_epi64(_mm512_set1_epi64(newest),             \
                                                            _mm512_cvtepu32_epi64(r_)));           \
        if (found_bound) _mm512_storeu_si512(found_bound + n, _mm512_set1_epi64(probe->bound[i])); \
        else _mm256_storeu_si256((__m256i *)(found_probe + n), _mm256_set1_epi32((int)i));         \
        if (found_time) {                                                                          \
            int64_t m_ = n;                                                                        \
            for (unsigned rest_ = (in); rest_; rest_ &= rest_ - 1)                                 \
                found_time[m_++] = cache_lines_time(all, code, __builtin_ctz(rest_));              \
        }                                                                                          \
    } while (0)

CACHE_LINES_PROBE(cache_lines_probe_any_avx512, TARGET_AVX512, CACHE_LINES_IN_AVX512,
                  CACHE_LINES_EMIT_AVX512, POSTINGS_WINDOW_AVX512)

/* As cache_lines_exactly: only rows in the first or the last step need a look at their exact times.
 */
TARGET_AVX512 static inline __mmask8 cache_lines_exactly_avx512(const CacheLines *all, int64_t code,
                                                                __mmask8 in, __m256i first,
                                                                __m256i last, int64_t lo,
                                                                int64_t hi) {
    __m256i t = _mm256_load_si256((const __m256i *)all->lines[code].time);
    if (!(in & (_mm256_cmpeq_epi32_mask(t, first) | _mm256_cmpeq_epi32_mask(t, last)))) return in;
    __m512i time = _mm512_load_si512(all->exact[code]);
    in = _mm512_mask_cmpge_epi64_mask(in, time, _mm512_set1_epi64(lo));
    return _mm512_mask_cmple_epi64_mask(in, time, _mm512_set1_epi64(hi));
}

/* The same for what is asked most, as short as can be: how many probes are on their way at a time
 * decides.  A key with a list is left to the loop above. */
TARGET_AVX512 ALWAYS_INLINE int cache_lines_probe_one_line(const CacheLines *all,
                                                           const Probe *probe, Cursor *cursor,
                                                           Pairs *out, const int exact,
                                                           const int timed) {
    int64_t n = out->n, i = cursor->probe, m = probe->n, n_lines = all->n_lines, base = all->base;
    const int shift = exact ? all->shift : 0;
    const int32_t *codes = probe->code;
    const int64_t *los = probe->lo, *his = probe->hi, *prober = probe->bound;
    const CacheLine *lines = all->lines;
    PAIRS_AT_HAND(void) found_time;
    __m512i bases = _mm512_set1_epi64(base);
    __m512i newest = _mm512_set1_epi64(all->newest);
    __m256i newest_bits = _mm256_set1_epi32((int)(uint32_t)all->newest);
    for (; i < m && n < capacity; i++) {
        cache_lines_fetch_ahead(all, probe, i);
        if ((uint64_t)(int64_t)codes[i] >= (uint64_t)n_lines) continue;
        const CacheLine *line = lines + codes[i];
        int64_t first = subtract_saturated(los[i] >> shift, base);
        int64_t last = subtract_saturated(his[i] >> shift, base);
        first = first < CACHE_LINE_FIRST ? CACHE_LINE_FIRST : first > INT32_MAX ? INT32_MAX : first;
        last = last < CACHE_LINE_VACANT ? CACHE_LINE_VACANT
               : last > CACHE_LINE_LAST ? CACHE_LINE_LAST
                                        : last;
        __m256i t = _mm256_load_si256((const __m256i *)line->time);
        __mmask8 late = _mm256_cmpge_epi32_mask(t, _mm256_set1_epi32((int)first));
        if ((late & 1) && all->more[codes[i]]) {
            Cursor one = {i, 0, 0, 0};
            Probe this = *probe;
            this.n = i + 1;
            out->n = n;
            if (!cache_lines_probe_any_avx512(all, &this, &one, out)) { /* out is full */
                *cursor = one;
                return 0;
            }
            n = out->n;
            continue;
        }
        __mmask8 in = _mm256_mask_cmple_epi32_mask(late, t, _mm256_set1_epi32((int)last));
        if (exact)
            in = cache_lines_exactly_avx512(all, codes[i], in, _mm256_set1_epi32((int)first),
                                            _mm256_set1_epi32((int)last), los[i], his[i]);
        __m256i row =
            _mm256_maskz_compress_epi32(in, _mm256_load_si256((const __m256i *)line->row));
        __m512i back = _mm512_cvtepu32_epi64(_mm256_sub_epi32(newest_bits, row));
        _mm512_storeu_si512(found_row + n, _mm512_sub_epi64(newest, back));
        if (found_bound) _mm512_storeu_si512(found_bound + n, _mm512_set1_epi64(prober[i]));
        else _mm256_storeu_si256((__m256i *)(found_probe + n), _mm256_set1_epi32((int)i));
        if (timed) {
            __m512i time = _mm512_cvtepi32_epi64(_mm256_maskz_compress_epi32(in, t));
            time = exact ? _mm512_maskz_compress_epi64(in, _mm512_load_si512(all->exact[codes[i]]))
                         : _mm512_add_epi64(bases, time);
            _mm512_storeu_si512(found_time + n, time);
        }
        n += __builtin_popcount(in);
    }
    out->n = n;
    cursor->probe = i;
    cursor->position = 0;
    return i == m;
}

TARGET_AVX512 static int cache_lines_probe_avx512(const CacheLines *all, const Probe *probe,
                                                  Cursor *cursor, Pairs *out) {
    if (cursor->position) return cache_lines_probe_any_avx512(all, probe, cursor, out);
    if (out->time)
        return all->exact ? cache_lines_probe_one_line(all, probe, cursor, out, 1, 1)
                          : cache_lines_probe_one_line(all, probe, cursor, out, 0, 1);
    return all->exact ? cache_lines_probe_one_line(all, probe, cursor, out, 1, 0)
                      : cache_lines_probe_one_line(all, probe, cursor, out, 0, 0);
}

/* Put rows as long as each needs nothing but its line: it counts, none of those there is newer, the
 * slot that goes is vacant or has expired, and there is no list.  How many were. */
TARGET_AVX512 ALWAYS_INLINE int64_t cache_lines_insert_one_line(
    const CacheLines *all, int64_t i, int64_t n, const int32_t *code, const int64_t *time,
    const int64_t *row, const int64_t *value, int64_t alive, const int with_exact) {
    const int32_t horizon = cache_lines_least(all, alive);
    const __m256i one_on = _mm256_set_epi32(0, 7, 6, 5, 4, 3, 2, 1);
    const __m512i wide_one_on = _mm512_set_epi64(0, 7, 6, 5, 4, 3, 2, 1);
    CacheLine *lines = all->lines;
    int64_t base = all->base;
    const int shift = with_exact ? all->shift : 0;
    for (; i < n; i++) {
        if (code[i] < 0) break;
        CacheLine *line = lines + code[i];
        int64_t t = subtract_saturated(time[i] >> shift, base);
        if (t < horizon || line->time[0] >= horizon || line->time[CACHE_LINE_ROWS - 1] > t ||
            all->more[code[i]])
            break;
        if (with_exact) {
            int64_t *exact = all->exact[code[i]];
            if (time[i] < alive ||
                (line->time[CACHE_LINE_ROWS - 1] == t && exact[CACHE_LINE_ROWS - 1] > time[i]))
                break;
            __m512i exacts = _mm512_permutexvar_epi64(wide_one_on, _mm512_load_si512(exact));
            _mm512_store_si512(exact, _mm512_mask_set1_epi64(exacts, 0x80, time[i]));
        }
        __m256i times =
            _mm256_permutexvar_epi32(one_on, _mm256_load_si256((const __m256i *)line->time));
        __m256i rows =
            _mm256_permutexvar_epi32(one_on, _mm256_load_si256((const __m256i *)line->row));
        _mm256_store_si256((__m256i *)line->time, _mm256_mask_set1_epi32(times, 0x80, (int)t));
        _mm256_store_si256((__m256i *)line->row,
                           _mm256_mask_set1_epi32(rows, 0x80, (int)(uint32_t)row[i]));
        if (all->value) {
            int64_t *place = all->value[code[i]];
            __m512i values = _mm512_permutexvar_epi64(wide_one_on, _mm512_load_si512(place));
            _mm512_store_si512(place, _mm512_mask_set1_epi64(values, 0x80, value[i]));
        }
    }
    return i;
}

#define CACHE_LINES_PUT(NAME, EXACT)                                                               \
    TARGET_AVX512 static int64_t NAME(const CacheLines *all, int64_t i, int64_t n,                 \
                                      const int32_t *code, const int64_t *time,                    \
                                      const int64_t *row, const int64_t *value, int64_t horizon) { \
        return cache_lines_insert_one_line(all, i, n, code, time, row, value, horizon, EXACT);     \
    }
CACHE_LINES_PUT(cache_lines_insert_avx512, 0)
CACHE_LINES_PUT(cache_lines_insert_exact_avx512, 1)
#endif

/* The first row from i on that needs more than its line. */
static inline int64_t cache_lines_insert_fast(const CacheLines *all, int64_t i, int64_t n,
                                              const int32_t *code, const int64_t *time,
                                              const int64_t *row, const int64_t *value,
                                              int64_t horizon) {
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512)
        return all->exact
                   ? cache_lines_insert_exact_avx512(all, i, n, code, time, row, value, horizon)
                   : cache_lines_insert_avx512(all, i, n, code, time, row, value, horizon);
#endif
    (void)all, (void)n, (void)code, (void)time, (void)row, (void)value, (void)horizon;
    return i;
}

static inline int cache_lines_serve(void *all, const Probe *probe, Cursor *cursor, Pairs *out) {
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) return cache_lines_probe_avx512(all, probe, cursor, out);
    if (isa_level() == ISA_AVX2) return cache_lines_probe_avx2(all, probe, cursor, out);
#endif
    return cache_lines_probe_plain(all, probe, cursor, out);
}
#endif
