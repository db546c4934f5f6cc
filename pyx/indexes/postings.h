/* Time-ordered lists, one per key code, in one arena.
 *
 * A list is a run of slots of the arena, sorted by time.  Rows mostly arrive in time order, so
 * insert is an append; a full list first drops what has expired and grows only if that was not
 * enough. A probe starts at the list's hint, where the last one began: windows move forward, so it
 * is there or one step away; a wrong hint costs a binary search, never a result.
 */
#ifndef WINDJOIN_POSTINGS_H
#define WINDJOIN_POSTINGS_H
#include <string.h>

#include "hop.h"
#include "isa.h"

typedef struct {
    int64_t offset;
    int32_t length;
    int32_t capacity;
    int32_t hint;
} PostingList;

typedef struct {
    PostingList *postings;
    int64_t n_postings;
    int64_t *time; /* arena, with SLACK elements behind the last slot */
    int64_t *row;
    int64_t *value; /* of the rows; NULL: they are not kept */
} Postings;

/* First i in [from, length) with time[i] >= lo. */
static inline int64_t postings_search(const int64_t *time, int64_t from, int64_t length,
                                      int64_t lo) {
    while (from < length) {
        int64_t middle = from + ((length - from) >> 1);
        if (time[middle] < lo) from = middle + 1;
        else length = middle;
    }
    return from;
}

/* The hint; or, if the window moved back, where the first of its rows is. */
static inline int64_t postings_begin(const PostingList *list, const int64_t *time, int64_t lo) {
    int64_t hint = list->hint;
    return hint > 0 && time[hint - 1] >= lo ? postings_search(time, 0, hint, lo) : hint;
}

#define POSTINGS_PREFETCH_HEAD 24
#define POSTINGS_PREFETCH_BODY 12

ALWAYS_INLINE void postings_prefetch(const Postings *all, const Probe *probe, int64_t i) {
    if (i + POSTINGS_PREFETCH_HEAD < probe->n && probe->code[i + POSTINGS_PREFETCH_HEAD] >= 0)
        FETCH(all->postings, probe->code[i + POSTINGS_PREFETCH_HEAD]);
    if (i + POSTINGS_PREFETCH_BODY < probe->n && probe->code[i + POSTINGS_PREFETCH_BODY] >= 0) {
        const PostingList *list = all->postings + probe->code[i + POSTINGS_PREFETCH_BODY];
        const int64_t *time = all->time + list->offset + list->hint;
        const int64_t *row = all->row + list->offset + list->hint;
        __builtin_prefetch(time);
        __builtin_prefetch(time + 7);
        __builtin_prefetch(row);
        __builtin_prefetch(row + 7);
    }
}

/* Where the next rows of codes i + 16 and i + 8 will be written. */
ALWAYS_INLINE void postings_prefetch_tail(const Postings *all, const int32_t *code, int64_t i,
                                          int64_t n) {
    if (i + 16 >= n) return;
    if (code[i + 16] >= 0) FETCH_TO_WRITE(all->postings, code[i + 16]);
    if (code[i + 8] >= 0) {
        const PostingList *list = all->postings + code[i + 8];
        FETCH_TO_WRITE(all->time, list->offset + list->length - 1);
        FETCH_TO_WRITE(all->row, list->offset + list->length);
    }
}

/* What loops that append pairs keep at hand: their writes could change it, for all a compiler
 * knows. */
#define PAIRS_AT_HAND                                                                              \
    int64_t *found_row = out->row, *found_time = out->time, *found_bound = out->bound;             \
    int32_t *found_probe = out->probe;                                                             \
    int64_t capacity = out->capacity;

/* Append the rows of one list in lo .. hi, from `at` on; `found`: `at` lies behind the first of
 * them. WINDOW(time, at, length, lo, hi, before, within) looks at up to 8 rows from `at` on and
 * sets how many lie before lo and how many of them do not lie after hi. */
#define POSTINGS_WALK(WINDOW, list, time, row, at, found)                                          \
    while (at < (list)->length) {                                                                  \
        int before, within;                                                                        \
        if (n >= capacity) {                                                                       \
            out->n = n;                                                                            \
            cursor->probe = i;                                                                     \
            cursor->position = at + 1;                                                             \
            return 0;                                                                              \
        }                                                                                          \
        WINDOW(time, at, (list)->length, lo, hi, before, within);                                  \
        if (!found) {                                                                              \
            if (before == 8) at = postings_search(time, at + 8, (list)->length, lo);               \
            (list)->hint = (int32_t)(before == 8 ? at : at + before);                              \
            if (before == 8) continue;                                                             \
            found = 1;                                                                             \
        }                                                                                          \
        memcpy(found_row + n, row + at + before, 64);                                              \
        if (found_bound) {                                                                         \
            for (int k = 0; k < 8; k++) found_bound[n + k] = probe->bound[i];                      \
        } else {                                                                                   \
            for (int k = 0; k < 8; k++) found_probe[n + k] = (int32_t)i;                           \
        }                                                                                          \
        if (found_time) memcpy(found_time + n, time + at + before, 64);                            \
        n += within > before ? within - before : 0;                                                \
        if (within < 8) break;                                                                     \
        at += 8;                                                                                   \
    }

/* The loop over partial results; WINDOW differs by instruction set. */
#define POSTINGS_PROBE(NAME, TARGET, WINDOW)                                                       \
    TARGET static int NAME(const Postings *all, const Probe *probe, Cursor *cursor, Pairs *out) {  \
        int64_t n = out->n, i = cursor->probe, resume = cursor->position;                          \
        PAIRS_AT_HAND                                                                              \
        for (; i < probe->n; i++) {                                                                \
            postings_prefetch(all, probe, i);                                                      \
            int32_t code = probe->code[i];                                                         \
            if (code < 0 || code >= all->n_postings) continue;                                     \
            PostingList *list = all->postings + code;                                              \
            const int64_t *time = all->time + list->offset, *row = all->row + list->offset;        \
            int64_t lo = probe->lo[i], hi = probe->hi[i];                                          \
            int64_t at = resume ? resume - 1 : postings_begin(list, time, lo);                     \
            int found = resume != 0;                                                               \
            resume = 0;                                                                            \
            POSTINGS_WALK(WINDOW, list, time, row, at, found)                                      \
        }                                                                                          \
        out->n = n;                                                                                \
        cursor->probe = i;                                                                         \
        return 1;                                                                                  \
    }

#define POSTINGS_WINDOW_PLAIN(time, at, length, lo, hi, before, within)                            \
    do {                                                                                           \
        int rest_ = (length) - (at) < 8 ? (int)((length) - (at)) : 8;                              \
        before = within = 0;                                                                       \
        while (before < rest_ && (time)[(at) + before] < (lo)) before++;                           \
        within = before;                                                                           \
        while (within < rest_ && (time)[(at) + within] <= (hi)) within++;                          \
    } while (0)

POSTINGS_PROBE(postings_probe_plain, , POSTINGS_WINDOW_PLAIN)

#ifdef WINDJOIN_X86
#define POSTINGS_WINDOW_AVX2(time, at, length, lo, hi, before, within)                             \
    do {                                                                                           \
        __m256i a_ = _mm256_loadu_si256((const __m256i *)((time) + (at)));                         \
        __m256i b_ = _mm256_loadu_si256((const __m256i *)((time) + (at) + 4));                     \
        __m256i lo_ = _mm256_set1_epi64x(lo), hi_ = _mm256_set1_epi64x(hi);                        \
        unsigned lt_ = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(lo_, a_))) |      \
                       _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(lo_, b_))) << 4;  \
        unsigned gt_ = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(a_, hi_))) |      \
                       _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(b_, hi_))) << 4;  \
        unsigned out_ = (length) - (at) < 8 ? 0xffu << ((length) - (at)) : 0x100u;                 \
        before = __builtin_ctz(~lt_ | out_);                                                       \
        within = __builtin_ctz(gt_ | out_);                                                        \
    } while (0)

#define POSTINGS_WINDOW_AVX512(time, at, length, lo, hi, before, within)                           \
    do {                                                                                           \
        __m512i t_ = _mm512_loadu_si512((time) + (at));                                            \
        unsigned lt_ = _mm512_cmplt_epi64_mask(t_, _mm512_set1_epi64(lo));                         \
        unsigned gt_ = _mm512_cmpgt_epi64_mask(t_, _mm512_set1_epi64(hi));                         \
        unsigned out_ = (length) - (at) < 8 ? 0xffu << ((length) - (at)) : 0x100u;                 \
        before = __builtin_ctz(~lt_ | out_);                                                       \
        within = __builtin_ctz(gt_ | out_);                                                        \
    } while (0)

POSTINGS_PROBE(postings_probe_avx2, TARGET_AVX2, POSTINGS_WINDOW_AVX2)
POSTINGS_PROBE(postings_probe_avx512, TARGET_AVX512, POSTINGS_WINDOW_AVX512)
#endif

static inline int postings_serve(void *all, const Probe *probe, Cursor *cursor, Pairs *out) {
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) return postings_probe_avx512(all, probe, cursor, out);
    if (isa_level() == ISA_AVX2) return postings_probe_avx2(all, probe, cursor, out);
#endif
    return postings_probe_plain(all, probe, cursor, out);
}

#define POSTINGS_AHEAD 12 /* so many rows before it is written, a place is fetched */

/* Counting sort of rows first, first + 1, ... in time order by code; lists get exactly the room
 * they need.  next: room for where the next row of each list goes. */
static inline void postings_load(Postings *all, int64_t n, const int32_t *code, const int64_t *time,
                                 int64_t first, int64_t *next) {
    int64_t *times = all->time, *rows = all->row;
    int64_t offset = 0;
    memset(next, 0, (size_t)all->n_postings * sizeof(int64_t));
    for (int64_t i = 0; i < n; i++)
        if (code[i] >= 0) next[code[i]]++;
    for (int64_t c = 0; c < all->n_postings; c++) {
        int32_t length = (int32_t)next[c];
        all->postings[c] = (PostingList){offset, length, length, 0};
        next[c] = offset;
        offset += length;
    }
    for (int64_t i = 0; i < n; i++) {
        if (i + POSTINGS_AHEAD < n && code[i + POSTINGS_AHEAD] >= 0) {
            FETCH_TO_WRITE(times, next[code[i + POSTINGS_AHEAD]]);
            FETCH_TO_WRITE(rows, next[code[i + POSTINGS_AHEAD]]);
        }
        if (code[i] < 0) continue;
        int64_t slot = next[code[i]]++;
        times[slot] = time[i];
        rows[slot] = first + i;
    }
}
#endif
