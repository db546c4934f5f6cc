/* The newest rows of every key code in one cache line; older ones that still count in a list.
 *
 * Most keys have few rows in a window, so a probe reads one line and an insert writes one.  A row
 * that a newer one pushes out of a full line is dropped if it has expired; otherwise it goes to one
 * of the lists of lists.h, which the key has until all in it have expired.  A probe looks there only
 * if the oldest row of the line is recent enough.
 */
#ifndef WINDJOIN_LINES_H
#define WINDJOIN_LINES_H
#include "hop.h"
#include "isa.h"
#include "lists.h"
#include "memory.h"

#define LINE_ROWS 5
#define MOST_LISTS ((1 << 29) - 2)

/* Rows [LINE_ROWS - used, LINE_ROWS) are there, in the order of time. */
typedef struct {
    int64_t time[LINE_ROWS];
    uint32_t row[LINE_ROWS]; /* its last 32 bits */
    uint32_t used : 3;
    uint32_t more : 29; /* 1 + number of the list of older ones, 0: there are none */
} Line;

typedef struct {
    Line *lines;
    int64_t n_lines;
    int64_t *memory; /* in which they lie, at the beginning of a cache line */
    int64_t newest;  /* the greatest row number that was inserted */
    Lists *older;
} Lines;

/* Room for n lines, with the old ones; 0: no memory. */
static inline int lines_grow(Lines *all, int64_t n) {
    int64_t *memory = new_array(8 * (n + 2));
    if (!memory) return 0;
    Line *lines = (Line *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
    if (all->n_lines) memcpy(lines, all->lines, (size_t)all->n_lines * sizeof(Line));
    memset(lines + all->n_lines, 0, (size_t)(n - all->n_lines) * sizeof(Line));
    free(all->memory);
    all->memory = memory;
    all->lines = lines;
    return 1;
}

/* Put a row at its place among those of a line; if it is full, its oldest row goes. */
static inline void line_put(Line *line, int64_t time, int64_t row) {
    int last = LINE_ROWS - 1;
    if (line->used == 0 || line->time[LINE_ROWS - 1] <= time) {
        memmove(line->time, line->time + 1, (LINE_ROWS - 1) * sizeof(int64_t));
        memmove(line->row, line->row + 1, (LINE_ROWS - 1) * sizeof(uint32_t));
    } else { /* out of order: ties stay in the order of arrival */
        int first = LINE_ROWS - line->used;
        while (last >= first && line->time[last] > time) last--;
        for (int k = first > 1 ? first : 1; k <= last; k++) {
            line->time[k - 1] = line->time[k];
            line->row[k - 1] = line->row[k];
        }
    }
    line->time[last] = time;
    line->row[last] = (uint32_t)row;
    line->used += line->used < LINE_ROWS;
}

/* A row number of the window from its last 32 bits. */
static inline int64_t line_row(int64_t newest, uint32_t row) {
    return newest - (int64_t)(uint32_t)((uint32_t)newest - row);
}

static inline unsigned line_there(const Line *line) {
    return (0x1fu << (LINE_ROWS - line->used)) & 0x1fu;
}

/* The loop over partial results.  IN sets which rows of a line lie in lo .. hi, as bits; EMIT writes
 * these; WINDOW is that of LISTS_WALK. */
#define LINES_PROBE(NAME, TARGET, IN, EMIT, WINDOW)                                                \
    TARGET static int NAME(const Lines *all, const Probe *probe, Cursor *cursor, Pairs *out) {     \
        int64_t n = out->n, i = cursor->probe, resume = cursor->position, newest = all->newest;    \
        const Line *lines = all->lines;                                                            \
        PAIRS_AT_HAND                                                                              \
        for (; i < probe->n; i++) {                                                                \
            int32_t code = probe->code[i];                                                         \
            if (code < 0 || code >= all->n_lines) continue;                                        \
            const Line *line = lines + code;                                                       \
            int64_t lo = probe->lo[i], hi = probe->hi[i];                                          \
            if (line->more && line->time[0] >= lo) {                                               \
                List *list = all->older->lists + line->more - 1;                                   \
                const int64_t *time = all->older->time + list->offset;                             \
                const int64_t *row = all->older->row + list->offset;                               \
                int64_t at = resume ? resume - 1 : lists_begin(list, time, lo);                    \
                int found = resume != 0;                                                           \
                LISTS_WALK(WINDOW, list, time, row, at, found)                                     \
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
            IN(line, lo, hi, in);                                                                  \
            in &= line_there(line);                                                                \
            EMIT(line, in);                                                                        \
            n += __builtin_popcount(in);                                                           \
        }                                                                                          \
        out->n = n;                                                                                \
        cursor->probe = i;                                                                         \
        return 1;                                                                                  \
    }

#define LINES_IN_PLAIN(line, lo, hi, in)                                                  \
    do {                                                                                  \
        in = 0;                                                                           \
        for (int k = 0; k < LINE_ROWS; k++)                                               \
            in |= (unsigned)(((line)->time[k] >= (lo)) & ((line)->time[k] <= (hi))) << k; \
    } while (0)

#define LINES_EMIT_PLAIN(line, in)                                        \
    do {                                                                  \
        int64_t m = n;                                                    \
        for (int k = 0; k < LINE_ROWS; k++) {                             \
            found_row[m] = line_row(newest, (line)->row[k]);              \
            if (found_time) found_time[m] = (line)->time[k];              \
            if (found_bound) found_bound[m] = probe->bound[i];            \
            else found_probe[m] = (int32_t)i;                             \
            m += (in) >> k & 1;                                           \
        }                                                                 \
    } while (0)

LINES_PROBE(lines_probe_plain, , LINES_IN_PLAIN, LINES_EMIT_PLAIN, LISTS_WINDOW_PLAIN)

#ifdef WINDJOIN_X86
#define LINES_IN_AVX2(line, lo, hi, in)                                                          \
    do {                                                                                         \
        __m256i t_ = _mm256_load_si256((const __m256i *)(line)->time);                           \
        __m256i lt_ = _mm256_cmpgt_epi64(_mm256_set1_epi64x(lo), t_);                            \
        __m256i gt_ = _mm256_cmpgt_epi64(t_, _mm256_set1_epi64x(hi));                            \
        in = ~(unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_or_si256(lt_, gt_))) & 15; \
        in |= (unsigned)(((line)->time[4] >= (lo)) & ((line)->time[4] <= (hi))) << 4;            \
    } while (0)

LINES_PROBE(lines_probe_avx2, TARGET_AVX2, LINES_IN_AVX2, LINES_EMIT_PLAIN, LISTS_WINDOW_AVX2)

/* The line is one vector: five times, and the rows behind them, of which a second load takes hold. */
#define LINES_IN_AVX512(line, lo, hi, in)                                          \
    do {                                                                           \
        __m512i t_ = _mm512_load_si512(line);                                      \
        in = _mm512_cmpge_epi64_mask(t_, _mm512_set1_epi64(lo)) &                  \
             _mm512_cmple_epi64_mask(t_, _mm512_set1_epi64(hi));                   \
    } while (0)

#define LINES_EMIT_AVX512(line, in)                                                                \
    do {                                                                                           \
        __m256i r_ = _mm256_maskz_compress_epi32(                                                  \
            (__mmask8)(in), _mm256_loadu_si256((const __m256i *)(line)->row));                     \
        r_ = _mm256_sub_epi32(_mm256_set1_epi32((int)(uint32_t)newest), r_);                       \
        _mm512_storeu_si512(found_row + n, _mm512_sub_epi64(_mm512_set1_epi64(newest),             \
                                                            _mm512_cvtepu32_epi64(r_)));           \
        if (found_bound) _mm512_storeu_si512(found_bound + n, _mm512_set1_epi64(probe->bound[i])); \
        else _mm256_storeu_si256((__m256i *)(found_probe + n), _mm256_set1_epi32((int)i));         \
        if (found_time)                                                                            \
            _mm512_storeu_si512(found_time + n, _mm512_maskz_compress_epi64(                       \
                                                    (__mmask8)(in), _mm512_load_si512(line)));     \
    } while (0)

LINES_PROBE(lines_probe_any_avx512, TARGET_AVX512, LINES_IN_AVX512, LINES_EMIT_AVX512,
            LISTS_WINDOW_AVX512)

/* The same for what is asked most, as short as can be: how many probes are on their way at a time
 * decides.  A key with a list is left to the loop above. */
TARGET_AVX512 static int lines_probe_avx512(const Lines *all, const Probe *probe, Cursor *cursor,
                                            Pairs *out) {
    int64_t n = out->n, i = cursor->probe, m = probe->n, n_lines = all->n_lines;
    const int32_t *codes = probe->code;
    const int64_t *los = probe->lo, *his = probe->hi, *asker = probe->bound;
    const Line *lines = all->lines;
    PAIRS_AT_HAND
    __m512i newest = _mm512_set1_epi64(all->newest);
    __m256i newest_bits = _mm256_set1_epi32((int)(uint32_t)all->newest);
    if (found_time || cursor->position) return lines_probe_any_avx512(all, probe, cursor, out);
    for (; i < m && n < capacity; i++) {
        if ((uint64_t)(int64_t)codes[i] >= (uint64_t)n_lines) continue;
        const Line *line = lines + codes[i];
        __m512i t = _mm512_load_si512(line);
        __mmask8 late = _mm512_mask_cmpge_epi64_mask(line_there(line), t, _mm512_set1_epi64(los[i]));
        if ((late & 1) && line->more) {
            Cursor one = {i, 0, 0, 0};
            Probe this = *probe;
            this.n = i + 1;
            out->n = n;
            if (!lines_probe_any_avx512(all, &this, &one, out)) { /* out is full */
                *cursor = one;
                return 0;
            }
            n = out->n;
            continue;
        }
        __mmask8 in = _mm512_mask_cmple_epi64_mask(late, t, _mm512_set1_epi64(his[i]));
        __m256i row = _mm256_maskz_compress_epi32(
            in, _mm256_loadu_si256((const __m256i *)line->row));
        __m512i back = _mm512_cvtepu32_epi64(_mm256_sub_epi32(newest_bits, row));
        _mm512_storeu_si512(found_row + n, _mm512_sub_epi64(newest, back));
        if (found_bound) _mm512_storeu_si512(found_bound + n, _mm512_set1_epi64(asker[i]));
        else _mm256_storeu_si256((__m256i *)(found_probe + n), _mm256_set1_epi32((int)i));
        n += __builtin_popcount(in);
    }
    out->n = n;
    cursor->probe = i;
    cursor->position = 0;
    return i == m;
}

/* Put a row that is not older than the others of a full line whose oldest has expired. */
TARGET_AVX512 static inline void line_shift_avx512(Line *line, int64_t time, int64_t row) {
    const __m512i one_on =
        _mm512_set_epi32(15, 14, 14, 13, 12, 11, 9, 8, 9, 8, 7, 6, 5, 4, 3, 2);
    __m512i rows = _mm512_permutexvar_epi32(one_on, _mm512_load_si512(line));
    rows = _mm512_mask_set1_epi64(rows, 1 << (LINE_ROWS - 1), time);
    _mm512_store_si512(line, _mm512_mask_set1_epi32(rows, 1 << 14, (int)(uint32_t)row));
}

/* Put rows as long as each is of that kind; how many were. */
TARGET_AVX512 static int64_t lines_put_avx512(Line *lines, int64_t i, int64_t n,
                                              const int32_t *code, const int64_t *time,
                                              const int64_t *row, int64_t horizon) {
    for (; i < n; i++) {
        if (code[i] < 0) break;
        Line *line = lines + code[i];
        if (line->used != LINE_ROWS || line->more || line->time[0] >= horizon ||
            line->time[LINE_ROWS - 1] > time[i])
            break;
        line_shift_avx512(line, time[i], row[i]);
    }
    return i;
}
#endif

/* Put rows as long as each needs nothing but its line; the first that needs more. */
static inline int64_t lines_put_fast(Line *lines, int64_t i, int64_t n, const int32_t *code,
                                     const int64_t *time, const int64_t *row, int64_t horizon) {
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) return lines_put_avx512(lines, i, n, code, time, row, horizon);
#endif
    (void)lines, (void)n, (void)code, (void)time, (void)row, (void)horizon;
    return i;
}

static inline int lines_serve(void *all, const Probe *probe, Cursor *cursor, Pairs *out) {
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) return lines_probe_avx512(all, probe, cursor, out);
    if (isa_level() == ISA_AVX2) return lines_probe_avx2(all, probe, cursor, out);
#endif
    return lines_probe_plain(all, probe, cursor, out);
}
#endif
