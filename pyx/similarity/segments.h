/* Images and other byte arrays in blocks, with the means of their segments as bounds (see means.h).
 *
 * Of the sum of absolute differences of two rows the means give a least and a greatest value.  All
 * measures of bytes bound that sum in turn: a byte that differs adds at most 255, a bit at most
 * 128, and the Euclidean distance times the root of the length is at least as large.  Where the sum
 * is itself what is asked for, the greatest value decides too.  Pairs that are left open are
 * compared byte by byte, a few asking rows at a time.
 */
#ifndef WINDJOIN_SEGMENTS_H
#define WINDJOIN_SEGMENTS_H
#include "probe_groups.h"
#include "means.h"

#define AT_ONCE 4 /* asking rows that are compared with one row */
#define MOST_TOGETHER 64 /* asking rows that go over the means together */
#define NONE (INT64_MIN / 2)
#define CHUNK_BYTES (128 << 10) /* of means that stay in cache meanwhile */

typedef struct {
    int64_t room;
    uint8_t *mean; /* [row][stride] */
    Bits odd; /* rows of another length */
    Looseness open[BLOCK_ROWS];
} SegmentContent;

/* What is known of an asking row. */
typedef struct {
    Components row;
    int64_t limit; /* the greatest sum that may pass; -1: none */
    int64_t least,
        most; /* sums of differences of means: up to `least` surely passes, above `most` never */
    Bits maybe, sure; /* rows of the block at hand */
} ImageProbe;

typedef struct {
    Blocks blocks;
    int64_t width; /* of nearly all rows; -1: no row yet */
    Cut cut;
    uint8_t *means; /* [MOST_TOGETHER][stride], of asking rows */
    ImageProbe *probing; /* [MOST_TOGETHER] */
} Segments;

static inline int decided_by_sum(const Measure *m) {
    return m->measure == BYTES_L1 || m->measure == MEAN_ABS_DIFF;
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
    int64_t limit = t < 0      ? -1
                    : t < most ? (int64_t)t + 1
                               : (int64_t)most; /* 0 bytes times infinity is NaN */
    if (decided_by_sum(m)) /* then it is the greatest that does pass */
        while (limit >= 0 &&
               !passes(m, m->measure == BYTES_L1 ? (double)limit : (double)limit / (double)n))
            limit--;
    return limit;
}

/* Which of AT_ONCE asking rows may be near a row (low bits), and which are for sure (from bit 8
 * on): their means stand one after the other, their limits for the sums of differences apart. */
static inline int near_plain(const uint8_t *probing, const uint8_t *row, int64_t stride,
                             const int64_t *most, const int64_t *least, const int64_t *open) {
    int near = 0;
    for (int p = 0; p < AT_ONCE; p++) {
        int64_t sum = sum_of_differences(probing + p * stride, row, stride);
        near |= (sum <= most[p] + open[0]) << p | (sum <= least[p] + open[1]) << (p + 8);
    }
    return near;
}

#ifdef WINDJOIN_X86
TARGET_AVX512 static int near_avx512(const uint8_t *probing, const uint8_t *row, int64_t stride,
                                     const int64_t *most, const int64_t *least,
                                     const int64_t *open) {
    __m512i total[AT_ONCE];
    for (int p = 0; p < AT_ONCE; p++) total[p] = _mm512_setzero_si512();
    for (int64_t k = 0; k < stride; k += 64) {
        __m512i y = _mm512_loadu_si512(row + k);
        for (int p = 0; p < AT_ONCE; p++) {
            __m512i x = _mm512_loadu_si512(probing + p * stride + k);
            total[p] = _mm512_add_epi64(total[p], _mm512_sad_epu8(x, y));
        }
    }
    /* sums of two vectors side by side, then of four */
    __m512i even = _mm512_add_epi64(_mm512_unpacklo_epi64(total[0], total[1]),
                                    _mm512_unpackhi_epi64(total[0], total[1]));
    __m512i odd = _mm512_add_epi64(_mm512_unpacklo_epi64(total[2], total[3]),
                                   _mm512_unpackhi_epi64(total[2], total[3]));
    __m256i first =
        _mm256_add_epi64(_mm512_castsi512_si256(even), _mm512_extracti64x4_epi64(even, 1));
    __m256i second =
        _mm256_add_epi64(_mm512_castsi512_si256(odd), _mm512_extracti64x4_epi64(odd, 1));
    __m256i sums = _mm256_add_epi64(_mm256_permute2x128_si256(first, second, 0x20),
                                    _mm256_permute2x128_si256(first, second, 0x31));
    __m256i may =
        _mm256_add_epi64(_mm256_loadu_si256((const __m256i *)most), _mm256_set1_epi64x(open[0]));
    __m256i does =
        _mm256_add_epi64(_mm256_loadu_si256((const __m256i *)least), _mm256_set1_epi64x(open[1]));
    return _mm256_cmple_epi64_mask(sums, may) | _mm256_cmple_epi64_mask(sums, does) << 8;
}

TARGET_AVX2 static int near_avx2(const uint8_t *probing, const uint8_t *row, int64_t stride,
                                 const int64_t *most, const int64_t *least, const int64_t *open) {
    int near = 0;
    for (int p = 0; p < AT_ONCE; p++) {
        int64_t sum = sum_of_differences_avx2(probing + p * stride, row, stride);
        near |= (sum <= most[p] + open[0]) << p | (sum <= least[p] + open[1]) << (p + 8);
    }
    return near;
}
#endif

static inline int near_rows(const uint8_t *probing, const uint8_t *row, int64_t stride,
                            const int64_t *most, const int64_t *least, const int64_t *open) {
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) return near_avx512(probing, row, stride, most, least, open);
    if (isa_level() == ISA_AVX2) return near_avx2(probing, row, stride, most, least, open);
#endif
    return near_plain(probing, row, stride, most, least, open);
}

/* Set the bits of rows [from, to) of a block that `fit`, for AT_ONCE asking rows from number p on.
 */
static inline void filter_by_means(const Segments *s, int64_t b, int64_t from, int64_t to,
                                   const Bits *fit, int64_t p) {
    const SegmentContent *content = s->blocks.content[b];
    const uint8_t *means = s->means + p * s->cut.stride;
    ImageProbe *probing = s->probing + p;
    int64_t most[AT_ONCE], least[AT_ONCE], size = s->cut.size;
    for (int k = 0; k < AT_ONCE; k++) most[k] = probing[k].most, least[k] = probing[k].least;
    for (int64_t r = from; r < to; r++) {
        uint64_t bit = (uint64_t)1 << (r & 63);
        if (!(fit->word[r >> 6] & bit)) continue;
        /* rounded up: it is the greater of two sums that may differ by less than a segment */
        int64_t open[2] = {content->open[r].rest / size + 1, -(content->open[r].spread / size) - 1};
        int near =
            near_rows(means, content->mean + r * s->cut.stride, s->cut.stride, most, least, open);
        for (int left = near & 15; left; left &= left - 1)
            probing[__builtin_ctz(left)].maybe.word[r >> 6] |= bit;
        for (int left = near >> 8; left; left &= left - 1)
            probing[__builtin_ctz(left)].sure.word[r >> 6] |= bit;
    }
}

/* Sums of differences of one row and several, given up when all are too large. */
static inline void sums_up_to(const uint8_t *row, const uint8_t *const *probing, int many,
                              int64_t n, const int64_t *limit, int64_t *sum) {
    for (int p = 0; p < many; p++) sum[p] = 0;
    for (int64_t k = 0; k < n; k += ABANDON_EVERY) {
        int64_t part = n - k < ABANDON_EVERY ? n - k : ABANDON_EVERY;
        int open = 0;
        for (int p = 0; p < many; p++) {
            if (sum[p] <= limit[p])
                sum[p] += differences_up_to(probing[p] + k, row + k, part, INT64_MAX);
            open |= sum[p] <= limit[p];
        }
        if (!open) return;
    }
}

/* Move those of `maybe` that pass to `sure`, row by row for AT_ONCE asking rows together. */
static inline void decide_sums(const MeasureMatches *part, const RowBlock *block,
                               ImageProbe *probing, int64_t n) {
    for (int w = 0; w < WORDS; w++) {
        uint64_t any = 0;
        for (int p = 0; p < n; p++) any |= probing[p].maybe.word[w];
        for (; any; any &= any - 1) {
            int at = __builtin_ctzll(any), many = 0, who[AT_ONCE];
            const uint8_t *rows[AT_ONCE];
            int64_t limit[AT_ONCE], sum[AT_ONCE];
            Components row = components(&part->measure.target, block->row[w * 64 + at]);
            for (int p = 0; p < n; p++)
                if (probing[p].maybe.word[w] >> at & 1 && probing[p].row.n == row.n) {
                    rows[many] = probing[p].row.at;
                    limit[many] = probing[p].limit;
                    who[many++] = p;
                }
            sums_up_to(row.at, rows, many, row.n, limit, sum);
            for (int k = 0; k < many; k++)
                if (sum[k] <= limit[k]) probing[who[k]].sure.word[w] |= (uint64_t)1 << at;
        }
    }
}

/* Store the answers for one block of AT_ONCE asking rows, of which n are there. */
static inline void settle(const Segments *s, MeasureMatches *part, int64_t b, int64_t from,
                          ImageProbe *probing, int64_t n) {
    const RowBlock *block = s->blocks.block[b];
    const SegmentContent *content = s->blocks.content[b];
    for (int64_t p = 0; p < n; p++) {
        const MatchSet *a = part->match_sets + from + p;
        ImageProbe *one = probing + p;
        Bits own = {{0}};
        if (b >= a->first_block && b < a->first_block + a->n_blocks)
            time_bits(block, a->lo, a->hi, &own);
        for (int w = 0; w < WORDS; w++) {
            uint64_t odd = content->odd.word[w];
            one->sure.word[w] &= own.word[w] & ~odd;
            one->maybe.word[w] &= own.word[w] & ~odd & ~one->sure.word[w];
            if (one->row.n != s->width)
                one->sure.word[w] = 0, one->maybe.word[w] = odd & own.word[w];
        }
        for (int w = 0; w < WORDS; w++) part->compared += __builtin_popcountll(one->maybe.word[w]);
        if (!decided_by_sum(&part->measure)) decide(part, block, a->row, &one->maybe, &one->sure);
    }
    if (decided_by_sum(&part->measure)) decide_sums(part, block, probing, n);
    for (int64_t p = 0; p < n; p++) {
        Bits *found = &probing[p].sure;
        if (bits_meet(found, found))
            *match_set_store(part, part->match_sets + from + p, b) = *found;
    }
}

/* What a row asks: its means and its limits. */
static inline void prepare_probe(const Segments *s, const MeasureMatches *part, const MatchSet *a,
                                 int64_t p) {
    ImageProbe *one = s->probing + p;
    one->row = components(&part->measure.probing, a->row);
    one->limit = sum_limit(&part->measure, one->row.n);
    one->most = one->least = NONE;
    memset(&one->maybe, 0, sizeof(Bits));
    memset(&one->sure, 0, sizeof(Bits));
    if (one->row.n != s->width || one->limit < 0) return;
    Looseness open = row_means(&s->cut, one->row.at, s->means + p * s->cut.stride);
    one->most = (one->limit + open.rest) / s->cut.size;
    if (decided_by_sum(&part->measure) && one->limit >= open.spread)
        one->least = (one->limit - open.spread) / s->cut.size;
}

/* Up to MOST_TOGETHER answers, all blocks. */
static inline void fill_together(Segments *s, MeasureMatches *part, int64_t from, int64_t n) {
    int64_t first = INT64_MAX, stop = 0, lo = INT64_MAX, hi = INT64_MIN;
    int64_t chunk = CHUNK_BYTES / (s->cut.stride + 1) / 32 * 32;
    if (chunk < 32) chunk = 32;
    for (int64_t k = 0; k < n; k++) {
        const MatchSet *a = part->match_sets + from + k;
        prepare_probe(s, part, a, k);
        if (a->first_block < first) first = a->first_block;
        if (a->first_block + a->n_blocks > stop) stop = a->first_block + a->n_blocks;
        if (a->lo < lo) lo = a->lo;
        if (a->hi > hi) hi = a->hi;
    }
    for (int64_t k = n; k < round_up(n, AT_ONCE); k++)
        s->probing[k].most = s->probing[k].least = NONE;
    for (int64_t b = first; b < stop; b++) {
        const RowBlock *block = s->blocks.block[b];
        Bits fit;
        time_bits(block, lo, hi, &fit);
        for (int64_t row = 0; row < block->n; row += chunk)
            for (int64_t p = 0; p < n; p += AT_ONCE)
                filter_by_means(s, b, row, row + chunk < block->n ? row + chunk : block->n, &fit,
                                p);
        for (int64_t p = 0; p < n; p += AT_ONCE)
            settle(s, part, b, from + p, s->probing + p, n - p < AT_ONCE ? n - p : AT_ONCE);
        for (int64_t p = 0; p < n; p++) {
            memset(&s->probing[p].maybe, 0, sizeof(Bits));
            memset(&s->probing[p].sure, 0, sizeof(Bits));
        }
    }
}

static int segments_fill(void *index, MeasureMatches *p) {
    if (p->compared < 0) p->compared = 0;
    for (int64_t from = p->filled; from < p->n_match_sets; from += MOST_TOGETHER)
        fill_together(index, p, from,
                      p->n_match_sets - from < MOST_TOGETHER ? p->n_match_sets - from
                                                             : MOST_TOGETHER);
    return 1;
}

static int segments_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out) {
    Segments *s = index;
    if (s->width < 0) return 1;
    return serve_groups(&s->blocks, probe, cursor, out, segments_fill, s);
}

/* Put a row into the last block, which has room for it. */
static inline void segments_insert(Segments *s, Components row, int64_t time, int64_t number) {
    RowBlock *block = s->blocks.block[s->blocks.last - 1];
    SegmentContent *content = s->blocks.content[s->blocks.last - 1];
    int64_t at = block->n;
    content->open[at] = (Looseness){0, 0};
    if (row.n != s->width) content->odd.word[at >> 6] |= (uint64_t)1 << (at & 63);
    else content->open[at] = row_means(&s->cut, row.at, content->mean + at * s->cut.stride);
    block_add(block, time, number);
    s->blocks.version++;
}
#endif
