/* Rows divided among groups of keys.
 *
 * Rows of a group wait until they fill a cache line, which goes to memory past the caches: there
 * are more places to write to than a processor fetches ahead for.
 */
#ifndef WINDJOIN_DIVIDE_H
#define WINDJOIN_DIVIDE_H
#include <stdint.h>
#include <string.h>

#include "isa.h"
#include "keys.h"

#define MOST_GROUPS 256
#define ROWS_OF_A_LINE 8

/* Of keys that lie close together, from `least` on, 1 << shift to a group; others are spread by a
 * hash. */
typedef struct {
    int close, shift;
    uint64_t least;
    int32_t groups;
} Division;

/* Arrays that begin at the border of a cache line. */
typedef struct {
    int64_t *key, *time, *row;
} Divided;

typedef struct {
    int64_t key[ROWS_OF_A_LINE], time[ROWS_OF_A_LINE], row[ROWS_OF_A_LINE];
} LineOfRows;

static inline void line_write(const int64_t *line, int64_t *out) {
#ifdef WINDJOIN_X86
    for (int k = 0; k < ROWS_OF_A_LINE; k += 2)
        _mm_stream_si128((__m128i *)(out + k), _mm_loadu_si128((const __m128i *)(line + k)));
#else
    memcpy(out, line, ROWS_OF_A_LINE * sizeof(int64_t));
#endif
}

/* The group of every row; how many there are of each is added to `count`. */
static inline void divide_count(const Division *by, const int64_t *key, int64_t n, uint8_t *group,
                                int64_t *count) {
    if (by->close)
        for (int64_t i = 0; i < n; i++)
            group[i] = (uint8_t)(((uint64_t)key[i] - by->least) >> by->shift);
    else
        for (int64_t i = 0; i < n; i++)
            group[i] = (uint8_t)(((mix64((uint64_t)key[i]) >> 32) * (uint64_t)by->groups) >> 32);
    for (int64_t i = 0; i < n; i++) count[group[i]]++;
}

/* Write the rows of a line that lie at `from` up to `to`. */
static inline void divide_write(const LineOfRows *line, int64_t from, int64_t to,
                                const Divided *out) {
    size_t at = (size_t)(from & (ROWS_OF_A_LINE - 1)),
           bytes = (size_t)(to - from) * sizeof(int64_t);
    memcpy(out->key + from, line->key + at, bytes);
    memcpy(out->time + from, line->time + at, bytes);
    memcpy(out->row + from, line->row + at, bytes);
}

/* begin: where each group does. */
static inline void divide_rows(const int64_t *key, const int64_t *time, int64_t n,
                               const uint8_t *group, int groups, const int64_t *begin,
                               const Divided *out) {
    LineOfRows lines[MOST_GROUPS];
    int64_t place[MOST_GROUPS];
    memcpy(place, begin, (size_t)groups * sizeof(int64_t));
    for (int64_t i = 0; i < n; i++) {
        int64_t at = place[group[i]]++, k = at & (ROWS_OF_A_LINE - 1);
        LineOfRows *line = lines + group[i];
        line->key[k] = key[i];
        line->time[k] = time[i];
        line->row[k] = i;
        if (k < ROWS_OF_A_LINE - 1) continue;
        if (at - k < begin[group[i]]) {
            divide_write(line, begin[group[i]], at + 1, out);
            continue;
        }
        line_write(line->key, out->key + at - k);
        line_write(line->time, out->time + at - k);
        line_write(line->row, out->row + at - k);
    }
    for (int g = 0; g < groups; g++) {
        int64_t from = place[g] & ~(int64_t)(ROWS_OF_A_LINE - 1);
        if (from < begin[g]) from = begin[g];
        divide_write(lines + g, from, place[g], out);
    }
#ifdef WINDJOIN_X86
    _mm_sfence(); /* before another thread reads them */
#endif
}
#endif
