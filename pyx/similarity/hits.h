/* Results of many asking rows in one block, written where they stay.
 *
 * The places of all set bits are packed as 16-bit numbers first; then row numbers are made of them
 * eight at a time, without a branch on the data.
 */
#ifndef WINDJOIN_HITS_H
#define WINDJOIN_HITS_H
#include "counting.h"

#define MOST_PLACES 2048 /* results that are packed together, at most */

/* Rows that ask have bits `hits`, those in `any` at least one; `bound` are their row numbers. */
typedef struct {
    const Bits *hits;
    const int64_t *bound;
    uint64_t any;
} Hits;

#ifdef WINDJOIN_X86
/* Append the places of an asking row's bits; how many there are then. */
TARGET_VBMI2 static inline int64_t pack_places(const Bits *bits, uint16_t *place, int64_t n) {
    static const uint8_t at[64] __attribute__((aligned(64))) = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
        22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
        44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    const __m512i places = _mm512_load_si512(at);
    for (int w = 0; w < WORDS; w++) {
        uint64_t word = bits->word[w];
        int64_t count = __builtin_popcountll(word);
        __m512i found = _mm512_maskz_compress_epi8(word, places),
                base = _mm512_set1_epi16((short)(w * 64));
        __m256i low = _mm256_cvtepu8_epi16(_mm512_castsi512_si128(found));
        _mm256_storeu_si256((__m256i *)(place + n),
                            _mm256_add_epi16(low, _mm512_castsi512_si256(base)));
        if (__builtin_expect(count > 16, 0)) {
            __m512i first = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(found));
            __m512i rest = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(found, 1));
            _mm512_storeu_si512(place + n, _mm512_add_epi16(first, base));
            _mm512_storeu_si512(place + n + 32, _mm512_add_epi16(rest, base));
        }
        n += count;
    }
    return n;
}

TARGET_VBMI2 static void emit_hits_vbmi2(const RowBlock *block, Hits *h, Pairs *out) {
    uint16_t place[MOST_PLACES + 64];
    int64_t n = 0,
            limit = out->capacity - out->n < MOST_PLACES ? out->capacity - out->n : MOST_PLACES;
    int64_t *row = out->row + out->n;
    for (; h->any && n + BLOCK_ROWS <= limit; h->any &= h->any - 1) {
        int64_t i = __builtin_ctzll(h->any), last = pack_places(h->hits + i, place, n);
        const __m512i probing = _mm512_set1_epi64(h->bound[i]);
        int64_t *bound = out->bound + out->n;
        _mm512_storeu_si512(bound + n, probing);
        _mm512_storeu_si512(bound + n + 8, probing); /* most have few: no branch */
        if (__builtin_expect(last - n > 16, 0))
            for (int64_t k = n + 16; k < last; k += 8) _mm512_storeu_si512(bound + k, probing);
        n = last;
    }
    if (block->in_row) {
        const __m512i first = _mm512_set1_epi64(block->row[0]);
        for (int64_t k = 0; k < n; k += 8) {
            __m512i at = _mm512_cvtepu16_epi64(_mm_loadu_si128((const __m128i *)(place + k)));
            _mm512_storeu_si512(row + k, _mm512_add_epi64(first, at));
        }
    } else {
        for (int64_t k = 0; k < n; k++) row[k] = block->row[place[k]];
    }
    out->n += n;
}
#endif

/* Append results while there is room for those of a whole block; `any` says which rows are left. */
static inline void emit_hits(const RowBlock *block, Hits *h, Pairs *out) {
    while (h->any && out->n + BLOCK_ROWS <= out->capacity) {
#ifdef WINDJOIN_X86
        if (has_vbmi2()) {
            emit_hits_vbmi2(block, h, out);
            continue;
        }
#endif
        int64_t i = __builtin_ctzll(h->any), n = out->n;
        for (int w = 0; w < WORDS; w++)
            for (uint64_t word = h->hits[i].word[w]; word; word &= word - 1) {
                out->row[n] = block->row[w * 64 + __builtin_ctzll(word)];
                out->bound[n++] = h->bound[i];
            }
        out->n = n;
        h->any &= h->any - 1;
    }
}
#endif
