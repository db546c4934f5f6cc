/* Probes that are answered together, and answers that are kept.
 *
 * The answer to a row that asks is one bit per row of all blocks that its time lets it meet.  A
 * group is a run of probes whose answers fit into a room that stays in cache: an index fills what
 * is missing at once, which is where tiles of many probes against many rows are computed.  Then
 * results are given out probe by probe, in order, over as many calls as it takes.  A row that asks
 * again, in this group or a later one, is answered from what is kept.  Several measures that one
 * index decides, asked by rows of several streams, are the parts of a group: their answers meet,
 * bit by bit or, where one has few rows, row by row.
 */
#ifndef WINDJOIN_PROBE_GROUPS_H
#define WINDJOIN_PROBE_GROUPS_H
#include "match_lists.h"

/* Computes the answers of a part from number `filled` on; 0: no memory. */
typedef int (*Fill)(void *index, MeasureMatches *p);

/* No answer is kept. */
static inline void group_flush(ProbeGroup *g) {
    for (int k = 0; k < g->n_parts; k++) part_flush(g->part + k);
}

/* Take probes from `begin` on into the group while their answers fit; 0: no memory for one. */
static inline int group_begin(ProbeGroup *g, const Blocks *all, const Probe *probe, int64_t begin) {
    int64_t i = begin, changes[MOST_PARTS] = {0};
    g->begin = begin;
    if (g->others) g->others->valid = 0;
    for (int k = 0; k < g->n_parts; k++) /* rows that do not ask again need no keeping */
        if (g->part[k].used > WORTH_KEEPING && g->part[k].again < g->part[k].n_match_sets)
            part_flush(g->part + k);
    for (; i < probe->n && i - begin < all->together; i++)
        for (int k = 0; k < g->n_parts; k++) {
            MeasureMatches *p = g->part + k;
            const int64_t *row = probe->row[p->stream];
            if (i > begin &&
                row[i] == row[i - 1]) { /* partial results of one row follow each other */
                p->place[i - begin] = p->place[i - 1 - begin];
                p->again++;
                continue;
            }
            int32_t place = part_match_set(p, all, probe->ages, row[i]);
            if (place == NO_ROOM && i > begin) goto full;
            if (place == NO_ROOM) {
                part_flush(p);
                place = part_match_set(p, all, probe->ages, row[i]);
            }
            if (place < 0) return 0;
            p->place[i - begin] = place;
            changes[k]++;
        }
full:
    g->end = i;
    g->moving = 0;
    for (int k = 1; k < g->n_parts; k++)
        if (changes[k] > changes[g->moving]) g->moving = k;
    return 1;
}

/* The rows of one block that probe i is to get. */
ALWAYS_INLINE int group_bits(const ProbeGroup *g, const RowBlock *block, int64_t b,
                             const Probe *probe, int64_t i, Bits *out) {
    int any = 0;
    for (int k = 0; k < g->n_parts; k++) {
        const MeasureMatches *p = g->part + k;
        const MatchSet *a = p->match_sets + p->place[i - g->begin];
        if (b < a->first_block || next_block(p, a, b) != b || b >= a->first_block + a->n_blocks)
            return 0;
        const Bits *bits = match_bits(p, a, b);
        if (k == 0) *out = *bits;
        any = k ? bits_meet(out, bits) : 1; /* what is stored is not empty */
    }
    if (any && !block_within(block, probe->lo[i], probe->hi[i]))
        for (int w = 0; w < WORDS; w++)
            if (out->word[w]) out->word[w] &= time_word(block, w, probe->lo[i], probe->hi[i]);
    return any;
}

#define NO_LIST (-2) /* it has too many rows */

/* The same where the moving answer has few rows; 1: all are given out, 0: `out` is full; or
 * NO_LIST, or UNANSWERED. */
ALWAYS_INLINE int group_emit_few(ProbeGroup *g, const Blocks *all, const Probe *probe,
                                 Cursor *cursor, Pairs *out) {
    const int64_t i = cursor->probe;
    MeasureMatches *p = g->part + g->moving;
    MatchSet *a = p->match_sets + p->place[i - g->begin];
    if (a->n_listed == -2 && !list_match_set(p, a)) return UNANSWERED;
    if (a->n_listed < 0) return NO_LIST;
    while (cursor->part >= 0) {
        if (out->n + LIST_STEP > out->capacity) return 0;
        if (!same_others(g, g->others, i) && !meet_others(g, all, g->others, i)) return UNANSWERED;
        cursor->part = emit_few(g, all, probe, i, a, cursor->part, out);
    }
    return 1;
}

ALWAYS_INLINE int group_emit_with(ProbeGroup *g, const Blocks *all, const Probe *probe,
                                  Cursor *cursor, Pairs *out) {
    for (; cursor->probe < g->end; cursor->probe++, cursor->part = 0) {
        int64_t i = cursor->probe;
        const MeasureMatches *p = g->part;
        const MatchSet *a = p->match_sets + p->place[i - g->begin];
        if (g->others) {
            int done = group_emit_few(g, all, probe, cursor, out);
            if (done > 0) continue;
            if (done != NO_LIST) return done;
        }
        for (; cursor->part < a->n_blocks; cursor->part++) {
            int64_t b = next_block(p, a, a->first_block + cursor->part);
            cursor->part = b - a->first_block;
            if (cursor->part == a->n_blocks) break;
            const RowBlock *block = all->block[b];
            Bits bits;
            if (!block_meets(block, probe->lo[i], probe->hi[i])) continue;
            if (out->n + BLOCK_ROWS > out->capacity) return 0;
            if (group_bits(g, block, b, probe, i, &bits)) emit_bits(block, &bits, probe, i, out);
        }
    }
    return 1;
}

#ifdef WINDJOIN_X86
TARGET_VBMI2 static int group_emit_vbmi2(ProbeGroup *g, const Blocks *all, const Probe *probe,
                                         Cursor *cursor, Pairs *out) {
    return group_emit_with(g, all, probe, cursor, out);
}
#endif

/* Give out answers from the cursor on; 0: `out` is full; or UNANSWERED.  cursor->part: blocks of
 * part 0 done. */
static inline int group_emit(ProbeGroup *g, const Blocks *all, const Probe *probe, Cursor *cursor,
                             Pairs *out) {
#ifdef WINDJOIN_X86
    if (has_vbmi2()) return group_emit_vbmi2(g, all, probe, cursor, out);
#endif
    return group_emit_with(g, all, probe, cursor, out);
}

/* Answer the probes from the cursor on, as many as fit, and put the answers together; 0: no memory.
 */
static inline int group_fill(ProbeGroup *g, const Blocks *all, const Probe *probe, int64_t begin,
                             Fill fill, void *index) {
    if (!group_begin(g, all, probe, begin)) return 0;
    for (int k = 0; k < g->n_parts; k++) {
        MeasureMatches *p = g->part + k;
        if (p->filled < p->n_match_sets && !fill(index, p)) return 0;
        p->filled = p->n_match_sets;
    }
    return 1;
}

/* Serve a block of probes. */
static inline int serve_groups(const Blocks *all, const Probe *probe, Cursor *cursor, Pairs *out,
                               Fill fill, void *index) {
    ProbeGroup *g = probe->prober;
    if (!cursor->stop) {
        g->begin = g->end = 0;
        if (g->version != all->version || g->narrowed || probe->ages) group_flush(g);
        g->version = all->version;
        g->narrowed = probe->ages != NULL;
        cursor->stop = 1; /* begun */
    }
    while (cursor->probe < probe->n) {
        int done = cursor->probe < g->end || group_fill(g, all, probe, cursor->probe, fill, index)
                       ? group_emit(g, all, probe, cursor, out)
                       : UNANSWERED;
        if (done == UNANSWERED) group_flush(g);
        if (done <= 0) return done;
    }
    return 1;
}

/* Add to `sure` those of the rows `maybe` of a block that pass. */
static inline void decide(const MeasureMatches *p, const RowBlock *block, int64_t probing,
                          const Bits *maybe, Bits *sure) {
    Components asks = components(&p->measure.probing, probing);
    for (int w = 0; w < WORDS; w++)
        for (uint64_t word = maybe->word[w]; word; word &= word - 1) {
            int64_t at = __builtin_ctzll(word), row = block->row[w * 64 + at];
            if (rows_pass(&p->measure, asks, components(&p->measure.target, row)))
                sure->word[w] |= (uint64_t)1 << at;
        }
}
#endif
