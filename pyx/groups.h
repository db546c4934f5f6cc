/* Probes that are answered together, and answers that are kept.
 *
 * The answer to a row that asks is one bit per row of all blocks that its time lets it meet.  A
 * group is a run of probes whose answers fit into a room that stays in cache: an index fills what is
 * missing at once, which is where tiles of many probes against many rows are computed.  Then results
 * are given out probe by probe, in order, over as many calls as it takes.  A row that asks again, in
 * this group or a later one, is answered from what is kept.  Blocks without a bit are not stored.  Several measures that one index
 * decides, asked by rows of several streams, are the parts of a group: their answers meet bit by bit.
 */
#ifndef WINDJOIN_GROUPS_H
#define WINDJOIN_GROUPS_H
#include <stdio.h>

#include "blocks.h"
#include "quick.h"

#define MOST_PARTS 4
#define MOST_PROBES 4096
#define MOST_ANSWERS 16384
#define ANSWER_SLOTS 65536
#define ANSWER_ROOM ((int64_t)1 << 19) /* Bits: 32 MiB, of which only what is not empty is touched */
#define WORTH_KEEPING ((int64_t)1 << 14)

typedef struct {
    int64_t row;
    int64_t lo, hi; /* times of the rows it can meet */
    int64_t slot;
    int64_t first_block, n_blocks;
    int64_t offset; /* of its bits */
} Answer;

typedef struct {
    Measure measure;
    int stream;         /* of the rows that ask */
    const Column *time; /* of that stream */
    int64_t own_window, target_window;
    int64_t n_answers, filled, used, room, again; /* again: probes answered from what is kept */
    Answer *answers;
    Bits *bits;
    uint64_t *some;             /* by Bits: whether it is not empty */
    int32_t *slot;              /* answer + 1; 0: empty */
    int32_t place[MOST_PROBES]; /* probe - begin -> answer */
} Part;

typedef struct {
    int64_t n_parts;
    int64_t begin, end; /* probes of the group that is answered now; none: equal */
    int64_t version;    /* of the blocks that the answers are about */
    void *more;         /* an index's own */
    Part part[MOST_PARTS];
} Group;

static inline void part_flush(Part *p) {
    for (int64_t k = 0; k < p->n_answers; k++) p->slot[p->answers[k].slot] = 0;
    memset(p->some, 0, (size_t)(p->used + 63) / 64 * 8);
    p->n_answers = p->filled = p->used = p->again = 0;
}

static inline void no_memory(const char *what, int64_t n) {
    fprintf(stderr, "windjoin: no memory for %lld %s\n", (long long)n, what);
    abort();
}

/* The answer of an asking row, to be filled if it is new; -1: there is no room. */
static inline int32_t part_answer(Part *p, const Blocks *all, int64_t row) {
    uint64_t slot = ((uint64_t)row * 0x9E3779B97F4A7C15u) >> 48;
    for (; p->slot[slot]; slot = (slot + 1) & (ANSWER_SLOTS - 1))
        if (p->answers[p->slot[slot] - 1].row == row) {
            p->again++;
            return p->slot[slot] - 1;
        }
    int64_t time = ((const int64_t *)p->time->data)[row & p->time->mask], stop;
    Answer a = {.row = row, .slot = (int64_t)slot, .offset = p->used};
    a.lo = subtract_saturated(time, p->target_window);
    a.hi = add_saturated(time, p->own_window);
    a.first_block = blocks_between(all, a.lo, a.hi, &stop);
    a.n_blocks = stop - a.first_block;
    if (p->n_answers == MOST_ANSWERS) return -1;
    if (p->used + a.n_blocks > ANSWER_ROOM && p->n_answers) return -1;
    if (p->used + a.n_blocks > p->room) {
        int64_t room = (2 * (p->used + a.n_blocks) + 63) & ~(int64_t)63;
        Bits *grown = aligned_alloc(64, (size_t)room * sizeof(Bits));
        uint64_t *some = calloc((size_t)room / 64, 8);
        if (!grown || !some) no_memory("answers", room);
        if (p->used) memcpy(grown, p->bits, (size_t)p->used * sizeof(Bits));
        if (p->used) memcpy(some, p->some, (size_t)(p->used + 63) / 64 * 8);
        free(p->bits);
        free(p->some);
        p->bits = grown;
        p->some = some;
        p->room = room;
    }
    p->used += a.n_blocks;
    p->answers[p->n_answers] = a;
    p->slot[slot] = (int32_t)++p->n_answers;
    return (int32_t)p->n_answers - 1;
}

ALWAYS_INLINE Bits *answer_bits(const Part *p, const Answer *a, int64_t block) {
    return p->bits + a->offset + block - a->first_block;
}

/* Where an answer's bits for a block go; they are not empty. */
static inline Bits *answer_store(Part *p, const Answer *a, int64_t block) {
    int64_t at = a->offset + block - a->first_block;
    p->some[at >> 6] |= (uint64_t)1 << (at & 63);
    return p->bits + at;
}

/* The first block from `block` on with a bit in it; the end of the answer's blocks if there is none. */
ALWAYS_INLINE int64_t next_block(const Part *p, const Answer *a, int64_t block) {
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

/* Take probes from `begin` on into the group while their answers fit. */
static inline void group_begin(Group *g, const Blocks *all, const Probe *probe, int64_t begin) {
    int64_t i = begin;
    g->begin = begin;
    for (int k = 0; k < g->n_parts; k++) /* rows that do not ask again need no keeping */
        if (g->part[k].used > WORTH_KEEPING && g->part[k].again < g->part[k].n_answers)
            part_flush(g->part + k);
    for (; i < probe->n && i - begin < all->together; i++)
        for (int k = 0; k < g->n_parts; k++) {
            Part *p = g->part + k;
            const int64_t *row = probe->row[p->stream];
            if (i > begin && row[i] == row[i - 1]) { /* partial results of one row follow each other */
                p->place[i - begin] = p->place[i - 1 - begin];
                p->again++;
                continue;
            }
            int32_t place = part_answer(p, all, row[i]);
            if (place < 0 && i > begin) goto full;
            if (place < 0) {
                part_flush(p);
                place = part_answer(p, all, probe->row[p->stream][i]);
            }
            p->place[i - begin] = place;
        }
full:
    g->end = i;
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

/* The rows of one block that probe i is to get. */
ALWAYS_INLINE int group_bits(const Group *g, const Block *block, int64_t b, const Probe *probe,
                             int64_t i, Bits *out) {
    int any = 0;
    for (int k = 0; k < g->n_parts; k++) {
        const Part *p = g->part + k;
        const Answer *a = p->answers + p->place[i - g->begin];
        if (b < a->first_block || next_block(p, a, b) != b || b >= a->first_block + a->n_blocks) return 0;
        const Bits *bits = answer_bits(p, a, b);
        if (k == 0) *out = *bits;
        any = k ? bits_meet(out, bits) : 1; /* what is stored is not empty */
    }
    if (any && !block_within(block, probe->lo[i], probe->hi[i]))
        for (int w = 0; w < WORDS; w++)
            if (out->word[w]) out->word[w] &= time_word(block, w, probe->lo[i], probe->hi[i]);
    return any;
}

ALWAYS_INLINE int group_emit_with(Group *g, const Blocks *all, const Probe *probe, Cursor *cursor, Pairs *out) {
    for (; cursor->probe < g->end; cursor->probe++, cursor->part = 0) {
        int64_t i = cursor->probe;
        const Part *p = g->part;
        const Answer *a = p->answers + p->place[i - g->begin];
        for (; cursor->part < a->n_blocks; cursor->part++) {
            int64_t b = next_block(p, a, a->first_block + cursor->part);
            cursor->part = b - a->first_block;
            if (cursor->part == a->n_blocks) break;
            const Block *block = all->block[b];
            Bits bits;
            if (!block_meets(block, probe->lo[i], probe->hi[i])) continue;
            if (out->n + BLOCK_ROWS > out->capacity) return 0;
            if (group_bits(g, block, b, probe, i, &bits)) emit_bits(block, &bits, probe, i, out);
        }
    }
    return 1;
}

#ifdef WINDJOIN_X86
TARGET_VBMI2 static int group_emit_vbmi2(Group *g, const Blocks *all, const Probe *probe, Cursor *cursor, Pairs *out) {
    return group_emit_with(g, all, probe, cursor, out);
}
#endif

/* Give out answers from the cursor on; 0: `out` is full.  cursor->part: blocks of part 0 done. */
static inline int group_emit(Group *g, const Blocks *all, const Probe *probe, Cursor *cursor, Pairs *out) {
#ifdef WINDJOIN_X86
    if (has_vbmi2()) return group_emit_vbmi2(g, all, probe, cursor, out);
#endif
    return group_emit_with(g, all, probe, cursor, out);
}

/* Serve a block of probes; `fill` computes the answers of a part from number `filled` on. */
static inline int serve_groups(const Blocks *all, const Probe *probe, Cursor *cursor, Pairs *out,
                               void (*fill)(void *index, Part *p), void *index) {
    Group *g = probe->asker;
    if (!cursor->stop) {
        g->begin = g->end = 0;
        if (g->version != all->version)
            for (int k = 0; k < g->n_parts; k++) part_flush(g->part + k);
        g->version = all->version;
        cursor->stop = 1; /* begun */
    }
    while (cursor->probe < probe->n) {
        if (cursor->probe >= g->end) {
            group_begin(g, all, probe, cursor->probe);
            for (int k = 0; k < g->n_parts; k++) {
                Part *p = g->part + k;
                if (p->filled < p->n_answers) fill(index, p);
                p->filled = p->n_answers;
            }
        }
        if (!group_emit(g, all, probe, cursor, out)) return 0;
    }
    return 1;
}

/* Add to `sure` those of the rows `maybe` of a block that pass. */
static inline void decide(const Part *p, const Block *block, int64_t asking, const Bits *maybe, Bits *sure) {
    Components asks = components(&p->measure.asking, asking);
    for (int w = 0; w < WORDS; w++)
        for (uint64_t word = maybe->word[w]; word; word &= word - 1) {
            int64_t at = __builtin_ctzll(word), row = block->row[w * 64 + at];
            if (rows_pass(&p->measure, asks, components(&p->measure.target, row)))
                sure->word[w] |= (uint64_t)1 << at;
        }
}

#ifdef WINDJOIN_X86
/* The same for L2 and L1 of vectors, without a branch on what a quick sum says where it is clear. */
TARGET_AVX512 static void decide_quickly(const Part *p, const Block *block, int64_t asking, const Bits *maybe,
                                         Bits *sure) {
    const Measure *m = &p->measure;
    const Components asks = components(&m->asking, asking);
    const QuickLimits limits = quick_limits(m, asks.n);
    const int squared = m->measure == L2, near = m->operation == BELOW || m->operation == UP_TO;
    const double most = m->doubles ? 1e280 : 1e30;
    uint16_t place[BLOCK_ROWS];
    int n = 0;
    for (int w = 0; w < WORDS; w++)
        for (uint64_t word = maybe->word[w]; word; word &= word - 1) place[n++] = (uint16_t)(w * 64 + __builtin_ctzll(word));
    for (int k = 0; k < n; k++) {
        const Components row = components(&m->target, block->row[place[k]]);
        const uint64_t bit = (uint64_t)1 << (place[k] & 63);
        double sum = NAN;
        if (row.n == asks.n)
            sum = m->doubles ? quick_sum_double(squared, asks.at, row.at, row.n) : quick_sum_float(squared, asks.at, row.at, row.n);
        int below = sum < limits.low, above = sum > limits.high && sum < most;
        if (!(below | above)) below = (near ? rows_pass(m, asks, row) : !rows_pass(m, asks, row)), above = !below;
        sure->word[place[k] >> 6] |= (near ? below : above) ? bit : 0;
    }
}
#endif

static inline void decide_vectors(const Part *p, const Block *block, int64_t asking, const Bits *maybe, Bits *sure) {
#ifdef WINDJOIN_X86
    const int by_sum = p->measure.measure == L2 || p->measure.measure == L1;
    const int ordered = p->measure.operation != EXACTLY && p->measure.operation != OTHER_THAN;
    if (isa_level() == ISA_AVX512 && by_sum && ordered) {
        decide_quickly(p, block, asking, maybe, sure);
        return;
    }
#endif
    decide(p, block, asking, maybe, sure);
}
#endif
