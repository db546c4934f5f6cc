/* Images and other byte arrays in blocks, with the means of segments of 8 bytes as a bound.
 *
 * The sum over the segments of |difference of sums| is never above the sum of absolute differences.
 * A sum is 8 times its mean, rounded, and a rest; the rests of two rows change the bound by their own
 * sums at most.  The bytes of a segment lie `lag` apart, so that channels that alternate are not
 * mixed: the first rows say which lag has neighbours that are most alike.
 *
 * All measures of bytes bound that sum in turn: a byte that differs adds at most 255, a bit at most
 * 128, and the Euclidean distance times the root of the length is at least as large.
 */
#ifndef WINDJOIN_SEGMENTS_H
#define WINDJOIN_SEGMENTS_H
#include "groups.h"

#define SEGMENT 8
#define MOST_LAG 4
#define AT_ONCE 4 /* asking rows */

typedef struct {
    Bits odd;      /* rows of another length */
    int64_t room;  /* rows */
    uint8_t *mean; /* [row][stride] */
    int64_t rest[BLOCK_ROWS];
} SegmentContent;

typedef struct {
    Blocks blocks;
    int64_t width; /* of nearly all rows; -1: no row yet */
    int64_t lag;
    int64_t chunks;                     /* of a segment for each channel */
    int64_t stride;                     /* bytes of the means of a row, and none up to a vector */
    uint64_t own[MOST_LAG][MOST_LAG];   /* [channel][word]: the bytes of a channel */
    uint8_t *asking;                    /* means of AT_ONCE rows */
} Segments;

/* How unlike neighbours are that lie `lag` apart. */
static inline int64_t unlike(const uint8_t *at, int64_t n, int64_t lag) {
    return sum_of_differences(at, at + lag, n > lag ? n - lag : 0);
}

/* Rows are `width` long from now on, with channels `lag` apart. */
static inline void segments_shape(Segments *s, int64_t width, int64_t lag) {
    uint8_t bytes[MOST_LAG * SEGMENT];
    int64_t chunk = lag * SEGMENT;
    s->width = width;
    s->lag = lag;
    s->chunks = (width + chunk - 1) / chunk;
    s->stride = (s->chunks * lag + 63) / 64 * 64;
    for (int64_t channel = 0; channel < lag; channel++) {
        for (int64_t k = 0; k < chunk; k++) bytes[k] = k % lag == channel ? 0xff : 0;
        memcpy(s->own[channel], bytes, (size_t)chunk);
    }
}

#define ALWAYS_INLINE static inline __attribute__((always_inline)) /* a copy for every lag */
#define LOW_BYTES 0x00ff00ff00ff00ffu

/* Means of chunk number `chunk`, channel by channel; the sum of the rests. */
ALWAYS_INLINE int64_t chunk_means(const Segments *s, const uint8_t *at, int lag, int64_t chunk, uint8_t *mean) {
    uint64_t word[MOST_LAG];
    int64_t rest = 0;
    memcpy(word, at, (size_t)lag * 8);
    for (int channel = 0; channel < lag; channel++) {
        uint64_t pairs = 0;
        for (int j = 0; j < lag; j++) {
            uint64_t own = word[j] & s->own[channel][j];
            pairs += (own & LOW_BYTES) + (own >> 8 & LOW_BYTES);
        }
        int32_t sum = (int32_t)(pairs * 0x0001000100010001u >> 48);
        int32_t rounded = (sum + SEGMENT / 2) / SEGMENT, off = sum - SEGMENT * rounded;
        mean[channel * s->chunks + chunk] = (uint8_t)rounded;
        rest += off < 0 ? -off : off;
    }
    return rest;
}

#ifdef WINDJOIN_X86
/* Eight chunks at a time; how many are done. */
TARGET_AVX512 static int64_t means_avx512(const Segments *s, const uint8_t *at, uint8_t *mean, int64_t *rest) {
    const int64_t lag = s->lag, size = lag * SEGMENT, whole = s->width / size / 8 * 8;
    const __m512i none = _mm512_setzero_si512(), half = _mm512_set1_epi64(SEGMENT / 2);
    const __m512i offset = _mm512_setr_epi64(0, size, 2 * size, 3 * size, 4 * size, 5 * size, 6 * size, 7 * size);
    __m512i total = none;
    for (int64_t chunk = 0; chunk < whole; chunk += 8) {
        __m512i word[MOST_LAG];
        for (int64_t j = 0; j < lag; j++)
            word[j] = _mm512_i64gather_epi64(offset, at + chunk * size + 8 * j, 1);
        for (int64_t channel = 0; channel < lag; channel++) {
            __m512i sum = none;
            for (int64_t j = 0; j < lag; j++) {
                __m512i own = _mm512_and_si512(word[j], _mm512_set1_epi64((int64_t)s->own[channel][j]));
                sum = _mm512_add_epi64(sum, _mm512_sad_epu8(own, none));
            }
            __m512i rounded = _mm512_srli_epi64(_mm512_add_epi64(sum, half), 3);
            __m512i off = _mm512_sub_epi64(sum, _mm512_slli_epi64(rounded, 3));
            total = _mm512_add_epi64(total, _mm512_abs_epi64(off));
            _mm_storel_epi64((__m128i *)(mean + channel * s->chunks + chunk), _mm512_cvtepi64_epi8(rounded));
        }
    }
    *rest += _mm512_reduce_add_epi64(total);
    return whole;
}
#endif

ALWAYS_INLINE int64_t means_by_lag(const Segments *s, const uint8_t *at, int lag, uint8_t *mean) {
    int64_t rest = 0, size = lag * SEGMENT, chunk = 0;
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) chunk = means_avx512(s, at, mean, &rest);
#endif
    for (; (chunk + 1) * size <= s->width; chunk++) rest += chunk_means(s, at + chunk * size, lag, chunk, mean);
    if (chunk < s->chunks) { /* missing bytes count as 0, in all rows */
        uint8_t last[MOST_LAG * SEGMENT] = {0};
        memcpy(last, at + chunk * size, (size_t)(s->width - chunk * size));
        rest += chunk_means(s, last, lag, chunk, mean);
    }
    return rest;
}

/* Means of the segments of a row of the usual length; the sum of the rests. */
static inline int64_t segment_means(const Segments *s, const uint8_t *at, uint8_t *mean) {
    switch (s->lag) {
    case 1: return means_by_lag(s, at, 1, mean);
    case 2: return means_by_lag(s, at, 2, mean);
    case 3: return means_by_lag(s, at, 3, mean);
    default: return means_by_lag(s, at, 4, mean);
    }
}

/* The greatest sum of absolute differences of two rows of n bytes that may pass; -1: none. */
static inline int64_t sum_limit(const Measure *m, int64_t n) {
    double t = m->threshold, most = 255.0 * (double)n;
    switch (m->measure) {
    case MEAN_ABS_DIFF: t *= (double)n; break;
    case BYTES_L2: t *= sqrt((double)n) * (1 + 1e-12); break;
    case HAMMING: t *= 255; break;
    case HAMMING_BITS: t *= 128; break;
    default: break;
    }
    return t < 0 ? -1 : t >= most ? (int64_t)most : (int64_t)t + 1;
}

/* Sums of absolute differences of the means of one row and of AT_ONCE asking ones. */
static inline void apart_plain(const uint8_t *asking, const uint8_t *row, int64_t n, int64_t *sum) {
    for (int p = 0; p < AT_ONCE; p++) sum[p] = sum_of_differences(asking + p * n, row, n);
}

#ifdef WINDJOIN_X86
TARGET_AVX512 static void apart_avx512(const uint8_t *asking, const uint8_t *row, int64_t n, int64_t *sum) {
    __m512i total[AT_ONCE];
    for (int p = 0; p < AT_ONCE; p++) total[p] = _mm512_setzero_si512();
    for (int64_t k = 0; k < n; k += 64) {
        __m512i y = _mm512_loadu_si512(row + k);
        for (int p = 0; p < AT_ONCE; p++) {
            __m512i x = _mm512_loadu_si512(asking + p * n + k);
            total[p] = _mm512_add_epi64(total[p], _mm512_sad_epu8(x, y));
        }
    }
    for (int p = 0; p < AT_ONCE; p++) sum[p] = _mm512_reduce_add_epi64(total[p]);
}

TARGET_AVX2 static void apart_avx2(const uint8_t *asking, const uint8_t *row, int64_t n, int64_t *sum) {
    for (int p = 0; p < AT_ONCE; p++) sum[p] = sum_of_differences_avx2(asking + p * n, row, n);
}
#endif

/* Add to `maybe` the rows of a block, of those that `fit`, whose bound is within `limit`. */
static inline void rows_below(const Segments *s, int64_t b, const Bits *fit, const int64_t *limit,
                              Bits *maybe) {
    const Block *block = s->blocks.block[b];
    const SegmentContent *content = s->blocks.content[b];
    int level = isa_level();
    for (int64_t r = 0; r < block->n; r++) {
        const uint8_t *mean = content->mean + r * s->stride;
        uint64_t bit = (uint64_t)1 << (r & 63);
        int64_t sum[AT_ONCE];
        if (!(fit->word[r >> 6] & bit)) continue;
#ifdef WINDJOIN_X86
        if (level == ISA_AVX512) apart_avx512(s->asking, mean, s->stride, sum);
        else if (level == ISA_AVX2) apart_avx2(s->asking, mean, s->stride, sum);
        else
#endif
            apart_plain(s->asking, mean, s->stride, sum);
        for (int p = 0; p < AT_ONCE; p++)
            if (SEGMENT * sum[p] - content->rest[r] <= limit[p]) maybe[p].word[r >> 6] |= bit;
    }
    (void)level;
}

/* Add to `out` the rows `maybe` that pass; sums of differences are given up as soon as too large. */
static inline void decide_bytes(const Part *p, const Block *block, const Answer *a, int64_t limit,
                                const Bits *maybe, Bits *out) {
    const Measure *m = &p->measure;
    Components asks = components(&m->asking, a->row);
    if (m->measure != BYTES_L1 && m->measure != MEAN_ABS_DIFF) {
        decide(p, block, a->row, maybe, out);
        return;
    }
    for (int w = 0; w < WORDS; w++)
        for (uint64_t word = maybe->word[w]; word; word &= word - 1) {
            int64_t at = __builtin_ctzll(word);
            Components row = components(&m->target, block->row[w * 64 + at]);
            if (row.n != asks.n) continue;
            int64_t sum = differences_up_to(asks.at, row.at, asks.n, limit);
            double value = m->measure == BYTES_L1 ? (double)sum : (double)sum / (double)asks.n;
            if (sum <= limit && passes(m, value)) out->word[w] |= (uint64_t)1 << at;
        }
}

/* Up to AT_ONCE answers, all blocks. */
static inline void fill_together(Segments *s, Part *p, int64_t from, int64_t n) {
    int64_t limit[AT_ONCE], bound[AT_ONCE], first = INT64_MAX, stop = 0, lo = INT64_MAX, hi = INT64_MIN;
    Components asks[AT_ONCE];
    for (int64_t k = 0; k < AT_ONCE; k++) {
        const Answer *a = p->answers + from + (k < n ? k : n - 1);
        asks[k] = components(&p->measure.asking, a->row);
        limit[k] = sum_limit(&p->measure, asks[k].n);
        bound[k] = limit[k];
        if (asks[k].n == s->width)
            bound[k] += segment_means(s, asks[k].at, s->asking + k * s->stride);
        if (a->first_block < first) first = a->first_block;
        if (a->first_block + a->n_blocks > stop) stop = a->first_block + a->n_blocks;
        if (a->lo < lo) lo = a->lo;
        if (a->hi > hi) hi = a->hi;
    }
    for (int64_t b = first; b < stop; b++) {
        const Block *block = s->blocks.block[b];
        const SegmentContent *content = s->blocks.content[b];
        Bits fit, maybe[AT_ONCE];
        for (int k = 0; k < AT_ONCE; k++) maybe[k] = content->odd;
        time_bits(block, lo, hi, &fit);
        rows_below(s, b, &fit, bound, maybe);
        for (int64_t k = 0; k < n; k++) {
            const Answer *a = p->answers + from + k;
            Bits own, found = {{0}};
            if (b < a->first_block || b >= a->first_block + a->n_blocks) continue;
            if (asks[k].n != s->width) maybe[k] = content->odd;
            time_bits(block, a->lo, a->hi, &own);
            if (bits_meet(&maybe[k], &own)) decide_bytes(p, block, a, limit[k], &maybe[k], &found);
            if (bits_meet(&found, &own)) *answer_store(p, a, b) = found;
        }
    }
}

static void segments_fill(void *index, Part *p) {
    for (int64_t from = p->filled; from < p->n_answers; from += AT_ONCE)
        fill_together(index, p, from, p->n_answers - from < AT_ONCE ? p->n_answers - from : AT_ONCE);
}

static int segments_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out) {
    Segments *s = index;
    return serve_groups(&s->blocks, probe, cursor, out, segments_fill, s);
}

/* Put a row into the last block, which has room for it. */
static inline void segments_put(Segments *s, Components row, int64_t time, int64_t number) {
    Block *block = s->blocks.block[s->blocks.last - 1];
    SegmentContent *content = s->blocks.content[s->blocks.last - 1];
    int64_t at = block->n;
    content->rest[at] = 0;
    if (row.n != s->width) content->odd.word[at >> 6] |= (uint64_t)1 << (at & 63);
    else content->rest[at] = segment_means(s, row.at, content->mean + at * s->stride);
    block_add(block, time, number);
    s->blocks.version++;
}
#endif
