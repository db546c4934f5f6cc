/* Rows in blocks of 512 with their times, and sets of rows of a block as 512 bits.
 *
 * Blocks are filled in order of arrival and dropped whole when their last row has expired.  Rows
 * need not be in time order: a block knows its earliest and latest time, and where only some of its
 * rows fit a probe, their times are compared.
 */
#ifndef WINDJOIN_BLOCKS_H
#define WINDJOIN_BLOCKS_H
#include <stdlib.h>

#include "hop.h"
#include "isa.h"

#define BLOCK_ROWS 512
#define WORDS (BLOCK_ROWS / 64)

typedef struct {
    int64_t n;
    int64_t earliest, latest;
    int64_t in_row; /* row numbers follow each other */
    int64_t row[BLOCK_ROWS];
    int64_t time[BLOCK_ROWS];
} RowBlock;

typedef struct {
    uint64_t word[WORDS];
} __attribute__((aligned(64))) Bits;

/* Blocks [first, last); what an index keeps of block b lies at content[b]. */
typedef struct {
    RowBlock **block;
    void **content;
    int64_t first, last, room;
    int64_t ordered; /* no block begins before the one ahead of it ends */
    int64_t horizon; /* of older rows nothing may be read any more but their times */
    int64_t together; /* probes that are best answered at once; at most MOST_PROBES */
    int64_t version; /* counts changes */
} Blocks;

/* How the content of blocks of whole rows begins: room for rows, and what is kept of them. */
typedef struct {
    int64_t room;
    void *values;
} BlockValues;

static inline void block_add(RowBlock *block, int64_t time, int64_t row) {
    if (block->n == 0) {
        block->earliest = block->latest = time;
        block->in_row = 1;
    }
    if (time < block->earliest) block->earliest = time;
    if (time > block->latest) block->latest = time;
    block->in_row &= block->n == 0 || row == block->row[block->n - 1] + 1;
    block->row[block->n] = row;
    block->time[block->n++] = time;
}

ALWAYS_INLINE int block_meets(const RowBlock *block, int64_t lo, int64_t hi) {
    return block->latest >= lo && block->earliest <= hi;
}

/* The blocks from the first to the last that a time range meets; *stop is one past. */
static inline int64_t blocks_between(const Blocks *all, int64_t lo, int64_t hi, int64_t *stop) {
    int64_t begin = all->first, end = all->last;
    if (all->ordered) {
        int64_t length = end - begin, limit = end;
        while (length > 0) { /* the first that ends at lo or later */
            int64_t half = length >> 1;
            if (all->block[begin + half]->latest < lo) begin += half + 1, length -= half + 1;
            else length = half;
        }
        end = begin;
        length = limit - begin;
        while (length > 0) { /* the first that begins after hi */
            int64_t half = length >> 1;
            if (all->block[end + half]->earliest <= hi) end += half + 1, length -= half + 1;
            else length = half;
        }
        *stop = end;
        return begin;
    }
    while (begin < end && all->block[begin]->latest < lo) begin++;
    while (end > begin && all->block[end - 1]->earliest > hi) end--;
    *stop = end;
    return begin;
}

static inline uint64_t first_bits(int64_t n) {
    return n >= 64 ? ~(uint64_t)0 : n <= 0 ? 0 : ((uint64_t)1 << n) - 1;
}

#ifdef WINDJOIN_X86
TARGET_AVX512 static uint64_t time_word_avx512(const int64_t *times, int64_t lo, int64_t hi) {
    const __m512i low = _mm512_set1_epi64(lo), high = _mm512_set1_epi64(hi);
    uint64_t word = 0;
    for (int part = 0; part < 8; part++) {
        __m512i time = _mm512_loadu_si512(times + part * 8);
        __mmask8 here = _mm512_cmpge_epi64_mask(time, low);
        word |= (uint64_t)_mm512_mask_cmple_epi64_mask(here, time, high) << (part * 8);
    }
    return word;
}
#endif

/* Which of 64 rows of a block lie between two times. */
static inline uint64_t time_word(const RowBlock *block, int w, int64_t lo, int64_t hi) {
    const int64_t *times = block->time + w * 64;
    uint64_t word = 0;
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512)
        return time_word_avx512(times, lo, hi) & first_bits(block->n - w * 64);
#endif
    for (int64_t i = 0; i < 64; i++) word |= (uint64_t)((times[i] >= lo) & (times[i] <= hi)) << i;
    return word & first_bits(block->n - w * 64);
}

ALWAYS_INLINE int block_within(const RowBlock *block, int64_t lo, int64_t hi) {
    return lo <= block->earliest && hi >= block->latest;
}

/* Rows of a block whose time lies between lo and hi. */
static inline void time_bits(const RowBlock *block, int64_t lo, int64_t hi, Bits *out) {
    int all = block_within(block, lo, hi);
    for (int w = 0; w < WORDS; w++)
        out->word[w] =
            all || w * 64 >= block->n ? first_bits(block->n - w * 64) : time_word(block, w, lo, hi);
}

#ifdef WINDJOIN_X86
#define TARGET_VBMI2                                                                               \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx2,bmi,"    \
                          "bmi2,popcnt")))

static inline int has_vbmi2(void) {
    static int known = -1;
    if (known < 0) known = isa_level() == ISA_AVX512 && __builtin_cpu_supports("avx512vbmi2");
    return known;
}

/* Places of set bits, compressed as bytes, without a branch on the data. */
TARGET_VBMI2 static void emit_bits_vbmi2(const RowBlock *block, const Bits *bits, int32_t probe,
                                         int64_t bound, Pairs *out) {
    static const uint8_t place[64] __attribute__((aligned(64))) = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
        22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
        44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    const __m512i places = _mm512_load_si512(place), probing = _mm512_set1_epi64(bound);
    const __m256i number = _mm256_set1_epi32(probe);
    int64_t n = out->n;
    const __m512i all = _mm512_load_si512(bits);
    for (uint32_t left = _mm512_test_epi64_mask(all, all); left; left &= left - 1) {
        int w = __builtin_ctz(left);
        uint64_t word = bits->word[w];
        int64_t count = __builtin_popcountll(word), base = block->row[0] + w * 64;
        __m512i found = _mm512_maskz_compress_epi8(word, places);
        __m256i rows = _mm256_cvtepu8_epi64(_mm512_castsi512_si128(found));
        /* most words have few bits: half a vector each, and the rest if there is one */
        _mm256_storeu_si256((__m256i *)(out->row + n),
                            _mm256_add_epi64(rows, _mm256_set1_epi64x(base)));
        if (out->bound)
            _mm256_storeu_si256((__m256i *)(out->bound + n), _mm512_castsi512_si256(probing));
        else _mm_storeu_si128((__m128i *)(out->probe + n), _mm256_castsi256_si128(number));
        if (count > 4) {
            uint8_t at[72];
            _mm512_storeu_si512(at, found);
            for (int64_t k = 4; k < count; k += 8) {
                __m512i more = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(at + k)));
                more = _mm512_add_epi64(more, _mm512_set1_epi64(base));
                _mm512_storeu_si512(out->row + n + k, more);
                if (out->bound) _mm512_storeu_si512(out->bound + n + k, probing);
                else _mm256_storeu_si256((__m256i *)(out->probe + n + k), number);
            }
        }
        n += count;
    }
    out->n = n;
}
#endif

/* Append the rows whose bits are set for probe number `i`; there must be room for BLOCK_ROWS. */
static inline void emit_bits(const RowBlock *block, const Bits *bits, const Probe *probe, int64_t i,
                             Pairs *out) {
    int64_t bound = out->bound ? probe->bound[i] : 0;
#ifdef WINDJOIN_X86
    if (block->in_row && !out->time && has_vbmi2()) {
        emit_bits_vbmi2(block, bits, (int32_t)i, bound, out);
        return;
    }
#endif
    int64_t n = out->n;
    for (int w = 0; w < WORDS; w++)
        for (uint64_t word = bits->word[w]; word; word &= word - 1) {
            int64_t at = w * 64 + __builtin_ctzll(word);
            out->row[n] = block->row[at];
            if (out->bound) out->bound[n] = bound;
            else out->probe[n] = (int32_t)i;
            if (out->time) out->time[n] = block->time[at];
            n++;
        }
    out->n = n;
}
#endif
