/* Answers to rows that ask, one bit per row of all blocks that their time lets them meet, and where
 * they are kept.  Blocks without a bit are not stored.
 */
#ifndef WINDJOIN_MATCH_SETS_H
#define WINDJOIN_MATCH_SETS_H
#include "blocks.h"
#include "distances.h"

#define MOST_PARTS 4
#define MOST_PROBES 4096
#define MOST_MATCH_SETS 16384
#define MATCH_SET_SLOTS 65536
#define MATCH_SET_ROOM                                                                             \
    ((int64_t)1 << 19) /* Bits: 32 MiB, of which only what is not empty is touched */
#define WORTH_KEEPING ((int64_t)1 << 14)

typedef struct {
    int64_t row;
    int64_t lo, hi; /* times of the rows it can meet */
    int64_t first_block, n_blocks;
    int64_t offset; /* of its bits */
    int64_t listed; /* where its list begins, see match_lists.h */
    int32_t n_listed; /* -1: there is none, -2: not made yet */
    int32_t slot;
} MatchSet;

typedef struct {
    Measure measure;
    int stream; /* of the rows that ask */
    const Column *time; /* of that stream */
    int64_t own_window, target_window;
    int64_t n_match_sets, filled, used, room, again; /* again: probes answered from what is kept */
    MatchSet *match_sets;
    Bits *bits;
    uint64_t *some; /* by Bits: whether it is not empty */
    int32_t *slot; /* answer + 1; 0: empty */
    int64_t list_used, list_room;
    int32_t *list; /* rows of answers that have few, as 512 * block + place */
    int64_t
        compared; /* pairs that were read to the end to decide; -1: an index that does not count */
    int32_t place[MOST_PROBES]; /* probe - begin -> answer */
} MeasureMatches;

typedef struct {
    int64_t n_parts;
    int64_t begin, end; /* probes of the group that is answered now; none: equal */
    int64_t version; /* of the blocks that the answers are about */
    int narrowed; /* whether they are about rows of some ages only */
    void *more; /* an index's own */
    int moving; /* the part whose answers change most from probe to probe */
    struct Others
        *others; /* what the answers of all other parts have in common, see match_lists.h */
    MeasureMatches part[MOST_PARTS];
} ProbeGroup;

static inline void part_flush(MeasureMatches *p) {
    for (int64_t k = 0; k < p->n_match_sets; k++) p->slot[p->match_sets[k].slot] = 0;
    if (p->used) memset(p->some, 0, (size_t)(p->used + 63) / 64 * 8);
    p->n_match_sets = p->filled = p->used = p->again = p->list_used = 0;
}

/* Room for n Bits and more to come; 0: no memory, and all stays as it was. */
static inline int part_grow(MeasureMatches *p, int64_t n) {
    int64_t room = (2 * n + 63) & ~(int64_t)63;
    Bits *grown = aligned_alloc(64, (size_t)room * sizeof(Bits));
    uint64_t *some = calloc((size_t)room / 64, 8);
    if (!grown || !some) {
        free(grown);
        free(some);
        return 0;
    }
    if (p->used) memcpy(grown, p->bits, (size_t)p->used * sizeof(Bits));
    if (p->used) memcpy(some, p->some, (size_t)(p->used + 63) / 64 * 8);
    free(p->bits);
    free(p->some);
    p->bits = grown;
    p->some = some;
    p->room = room;
    return 1;
}

#define NO_ROOM (-2) /* for one more answer beside the others */

/* The answer of an asking row, to be filled if it is new; or NO_ROOM, or UNANSWERED. */
static inline int32_t part_match_set(MeasureMatches *p, const Blocks *all, const AskedAges *ages,
                                     int64_t row) {
    /* rows ask in about their order: those next to each other share a cache line of slots */
    uint64_t slot = ((uint64_t)(row >> 4) * 0x9E3779B97F4A7C15u) >> 52 << 4 | (row & 15);
    for (; p->slot[slot]; slot = (slot + 1) & (MATCH_SET_SLOTS - 1))
        if (p->match_sets[p->slot[slot] - 1].row == row) {
            p->again++;
            return p->slot[slot] - 1;
        }
    int64_t time = ((const int64_t *)p->time->data)[row & p->time->mask], stop;
    MatchSet a = {.row = row, .slot = (int32_t)slot, .offset = p->used, .n_listed = -2};
    a.lo = subtract_saturated(time, p->target_window);
    if (a.lo < all->horizon)
        a.lo = all->horizon; /* a row that is bound may reach back to what expired */
    a.hi = add_saturated(time, p->own_window);
    if (ages && ages->start == p->stream) { /* only so much of its window is asked for */
        int64_t lo = subtract_saturated(time, ages->most),
                hi = subtract_saturated(time, ages->least);
        if (lo > a.lo) a.lo = lo;
        if (hi < a.hi) a.hi = hi;
    }
    a.first_block = blocks_between(all, a.lo, a.hi, &stop);
    a.n_blocks = stop - a.first_block;
    if (p->n_match_sets == MOST_MATCH_SETS) return NO_ROOM;
    if (p->used + a.n_blocks > MATCH_SET_ROOM && p->n_match_sets) return NO_ROOM;
    if (p->used + a.n_blocks > p->room && !part_grow(p, p->used + a.n_blocks)) return UNANSWERED;
    p->used += a.n_blocks;
    p->match_sets[p->n_match_sets] = a;
    p->slot[slot] = (int32_t)++p->n_match_sets;
    return (int32_t)p->n_match_sets - 1;
}

ALWAYS_INLINE Bits *match_bits(const MeasureMatches *p, const MatchSet *a, int64_t block) {
    return p->bits + a->offset + block - a->first_block;
}

/* Where an answer's bits for a block go; they are not empty. */
static inline Bits *match_set_store(MeasureMatches *p, const MatchSet *a, int64_t block) {
    int64_t at = a->offset + block - a->first_block;
    p->some[at >> 6] |= (uint64_t)1 << (at & 63);
    return p->bits + at;
}

/* The first block from `block` on with a bit in it; the end of the answer's blocks if there is
 * none. */
ALWAYS_INLINE int64_t next_block(const MeasureMatches *p, const MatchSet *a, int64_t block) {
    int64_t at = a->offset + block - a->first_block, stop = a->offset + a->n_blocks;
    while (at < stop) {
        uint64_t word = p->some[at >> 6] >> (at & 63);
        if (word) {
            at += __builtin_ctzll(word);
            break;
        }
        at = (at | 63) + 1;
    }
    return a->first_block + (at < stop ? at - a->offset : a->n_blocks);
}

#ifdef WINDJOIN_X86
TARGET_AVX512 static int bits_meet_avx512(Bits *out, const Bits *other) {
    __m512i both = _mm512_and_si512(_mm512_load_si512(out), _mm512_load_si512(other));
    _mm512_store_si512(out, both);
    return _mm512_test_epi64_mask(both, both) != 0;
}
#endif

/* out &= other; whether anything is left. */
static inline int bits_meet(Bits *out, const Bits *other) {
    uint64_t any = 0;
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) return bits_meet_avx512(out, other);
#endif
    for (int w = 0; w < WORDS; w++) any |= out->word[w] &= other->word[w];
    return any != 0;
}
#endif
