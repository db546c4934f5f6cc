/* Pairs of vectors that bounds leave open: those of all rows that ask about a block, decided
 * together. */
#ifndef WINDJOIN_UNDECIDED_H
#define WINDJOIN_UNDECIDED_H
#include "probe_groups.h"

typedef struct {
    const MeasureMatches *part;
    const RowBlock *block;
    int64_t width; /* of the vectors of both */
    Bits *found;   /* by number of the asking row; what passes is added */
    int64_t n;
    uint16_t place[DISTANCE_MOST]; /* of the row in the block */
    uint8_t who[DISTANCE_MOST];    /* number of the asking row */
    DistancePairs pairs;
} UndecidedPairs;

/* Decide all pairs at hand. */
static inline void undecided_settle(UndecidedPairs *o) {
    uint8_t fits[DISTANCE_MOST];
    if (o->n) test_distances(&o->part->measure, &o->pairs, o->n, o->width, fits);
    for (int64_t k = 0; k < o->n; k++)
        o->found[o->who[k]].word[o->place[k] >> 6] |= (uint64_t)fits[k] << (o->place[k] & 63);
    o->n = 0;
}

/* Which of 8 words are not empty. */
static inline uint32_t words_with_bits(const Bits *bits) {
    uint32_t some = 0;
    for (int w = 0; w < WORDS; w++) some |= (uint32_t)(bits->word[w] != 0) << w;
    return some;
}

/* Take in the pairs of asking row number `who` and the rows `maybe` of the block. */
static inline void undecided_add(UndecidedPairs *o, int who, const void *asks, const Bits *maybe) {
    const VarlenView *target = &o->part->measure.target;
    const int64_t width = o->width, *rows = o->block->row;
    int64_t n = o->n;
    for (uint32_t left = words_with_bits(maybe); left; left &= left - 1) {
        const int w = __builtin_ctz(left);
        if (n + 64 > DISTANCE_MOST) {
            o->n = n;
            undecided_settle(o);
            n = 0;
        }
        for (uint64_t word = maybe->word[w]; word; word &= word - 1) {
            const int at = w * 64 + __builtin_ctzll(word);
            const Components row = components(target, rows[at]);
            o->pairs.probing[n] = asks;
            o->pairs.target[n] = row.at;
            o->place[n] = (uint16_t)at;
            o->who[n] = (uint8_t)who;
            n += row.n == width; /* others have no value */
        }
    }
    o->n = n;
}
#endif
