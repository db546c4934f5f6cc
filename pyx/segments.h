/* Images and other byte arrays in blocks: sums of 16 segments of each, as a bound on differences.
 *
 * The sum over the segments of |difference of sums| is never above the sum of absolute differences.
 * All measures of bytes bound that sum in turn: a byte that differs adds at most 255, a bit at most
 * 128, and the Euclidean distance times the root of the length is at least as large.
 */
#ifndef WINDJOIN_SEGMENTS_H
#define WINDJOIN_SEGMENTS_H
#include "groups.h"

#define SEGMENTS 16
#define AT_ONCE 16 /* rows */

typedef struct {
    Bits odd; /* rows of another length */
    int32_t sum[BLOCK_ROWS / AT_ONCE][SEGMENTS][AT_ONCE];
} SegmentContent;

typedef struct {
    Blocks blocks;
    int64_t width; /* of nearly all rows; -1: no row yet */
} Segments;

static inline int64_t sum_of_bytes(const uint8_t *a, int64_t n) {
    int64_t sum = 0;
    for (int64_t k = 0; k < n; k++) sum += a[k];
    return sum;
}

/* Sums of the segments of one row; rows of many bytes are too long for int32 sums: see `load`. */
static inline void segment_sums(const Segments *s, Components row, int32_t *out, int64_t stride) {
    int64_t length = (s->width + SEGMENTS - 1) / SEGMENTS;
    for (int64_t k = 0; k < SEGMENTS; k++) {
        int64_t from = k * length, n = s->width - from;
        if (n > length) n = length;
        out[k * stride] = n > 0 && row.n == s->width
                              ? (int32_t)sum_of_bytes((const uint8_t *)row.at + from, n) : 0;
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

#define BOUND_BODY                                                                       \
    for (int64_t r = 0; r < block->n; r += AT_ONCE) {                                    \
        int32_t total[AT_ONCE] = {0};                                                    \
        uint64_t below = 0;                                                              \
        for (int k = 0; k < SEGMENTS; k++)                                               \
            for (int i = 0; i < AT_ONCE; i++) {                                          \
                int32_t d = content->sum[r / AT_ONCE][k][i] - sums[k];                   \
                total[i] += d < 0 ? -d : d;                                              \
            }                                                                            \
        for (int i = 0; i < AT_ONCE; i++) below |= (uint64_t)(total[i] <= limit) << i;   \
        out->word[r >> 6] |= below << (r & 63);                                          \
    }

static void bound_plain(const Block *block, const SegmentContent *content, const int32_t *sums,
                        int32_t limit, Bits *out) {
    BOUND_BODY
}
#ifdef WINDJOIN_X86
TARGET_AVX2 static void bound_avx2(const Block *block, const SegmentContent *content,
                                   const int32_t *sums, int32_t limit, Bits *out) {
    BOUND_BODY
}
TARGET_AVX512 static void bound_avx512(const Block *block, const SegmentContent *content,
                                       const int32_t *sums, int32_t limit, Bits *out) {
    for (int64_t r = 0; r < block->n; r += AT_ONCE) {
        __m512i total = _mm512_setzero_si512();
        for (int k = 0; k < SEGMENTS; k++) {
            __m512i d = _mm512_sub_epi32(_mm512_loadu_si512(content->sum[r / AT_ONCE][k]),
                                         _mm512_set1_epi32(sums[k]));
            total = _mm512_add_epi32(total, _mm512_abs_epi32(d));
        }
        uint64_t below = _mm512_cmple_epi32_mask(total, _mm512_set1_epi32(limit));
        out->word[r >> 6] |= below << (r & 63);
    }
}
#endif

/* Rows of a block whose bound is at most `limit`. */
static inline void rows_below(const Block *block, const SegmentContent *content,
                              const int32_t *sums, int32_t limit, Bits *out) {
    memset(out, 0, sizeof(Bits));
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) {
        bound_avx512(block, content, sums, limit, out);
        return;
    }
    if (isa_level() == ISA_AVX2) {
        bound_avx2(block, content, sums, limit, out);
        return;
    }
#endif
    bound_plain(block, content, sums, limit, out);
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

static void segments_fill(void *index, Part *p) {
    const Segments *s = index;
    for (int64_t k = p->filled; k < p->n_answers; k++) {
        const Answer *a = p->answers + k;
        Components asks = components(&p->measure.asking, a->row);
        int64_t limit = sum_limit(&p->measure, asks.n);
        int32_t sums[SEGMENTS];
        int32_t bound = limit > INT32_MAX ? INT32_MAX : (int32_t)limit;
        segment_sums(s, asks, sums, 1);
        for (int64_t b = a->first_block; b < a->first_block + a->n_blocks; b++) {
            const Block *block = s->blocks.block[b];
            const SegmentContent *content = s->blocks.content[b];
            Bits maybe = content->odd, fits, found = {{0}};
            if (asks.n == s->width) rows_below(block, content, sums, bound, &maybe);
            time_bits(block, a->lo, a->hi, &fits);
            if (bits_meet(&maybe, &fits)) decide_bytes(p, block, a, limit, &maybe, &found);
            if (bits_meet(&found, &fits)) *answer_store(p, a, b) = found;
        }
    }
}

static int segments_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out) {
    Segments *s = index;
    return serve_groups(&s->blocks, probe, cursor, out, segments_fill, s);
}

static inline void segments_put(Segments *s, Components row, int64_t time, int64_t number) {
    Block *block = s->blocks.block[s->blocks.last - 1];
    SegmentContent *content = s->blocks.content[s->blocks.last - 1];
    int64_t at = block->n;
    if (row.n != s->width) content->odd.word[at >> 6] |= (uint64_t)1 << (at & 63);
    segment_sums(s, row, &content->sum[at / AT_ONCE][0][at % AT_ONCE], AT_ONCE);
    block_add(block, time, number);
    s->blocks.version++;
}
#endif
