/* Answers of few rows as lists, and how they meet the answers of the other parts of a group.
 *
 * Partial results come in an order in which one member changes from one to the next while the
 * others stay: what those allow is put together once, as bits, and the few rows of the one that
 * changes are looked up in it, without a branch on what is found.
 */
#ifndef WINDJOIN_MATCH_LISTS_H
#define WINDJOIN_MATCH_LISTS_H
#include "match_sets.h"

#define LIST_SHARE 16  /* a list is worth it of answers with at most one row in so many */
#define LIST_STEP 512 /* rows of a list that are looked up at a time */

/* The rows that all parts but one allow, from block `first` on. */
typedef struct Others {
    int64_t first, n, room;
    int valid, moving;
    int64_t lo, hi; /* times that their answers allow */
    int straight;   /* row numbers follow each other from block to block: */
    int64_t shift;  /* 512 * block + place is less by so much */
    int32_t place[MOST_PARTS];
    uint64_t *word;
} Others;

/* How many rows an answer has; -1: too many for a list. */
static inline int64_t count_listable(const MeasureMatches *p, const MatchSet *a) {
    const int64_t stop = a->first_block + a->n_blocks, most = a->n_blocks * BLOCK_ROWS / LIST_SHARE;
    int64_t count = 0;
    for (int64_t b = next_block(p, a, a->first_block); b < stop && count <= most;
         b = next_block(p, a, b + 1))
        for (int w = 0; w < WORDS; w++) count += __builtin_popcountll(match_bits(p, a, b)->word[w]);
    return count <= most && stop < INT32_MAX / BLOCK_ROWS ? count : -1;
}

/* Make an answer's list, if it has few rows; 0: no memory. */
static inline int list_match_set(MeasureMatches *p, MatchSet *a) {
    const int64_t count = count_listable(p, a), stop = a->first_block + a->n_blocks;
    if (count > 0 && p->list_used + count > p->list_room) {
        const int64_t room = 2 * (p->list_used + count);
        int32_t *grown = realloc(p->list, (size_t)room * sizeof(int32_t));
        if (!grown) return 0;
        p->list = grown;
        p->list_room = room;
    }
    a->n_listed = (int32_t)count;
    a->listed = p->list_used;
    if (count <= 0) return 1;
    int32_t *next = p->list + p->list_used;
    for (int64_t b = next_block(p, a, a->first_block); b < stop; b = next_block(p, a, b + 1))
        for (int w = 0; w < WORDS; w++)
            for (uint64_t word = match_bits(p, a, b)->word[w]; word; word &= word - 1)
                *next++ = (int32_t)(b * BLOCK_ROWS + w * 64 + __builtin_ctzll(word));
    p->list_used += count;
    return 1;
}

/* One answer's bits for a block, none where it has none. */
ALWAYS_INLINE const Bits *bits_or_none(const MeasureMatches *p, const MatchSet *a, int64_t b) {
    static const Bits none = {{0}};
    int64_t at = a->offset + b - a->first_block;
    if (b < a->first_block || b >= a->first_block + a->n_blocks) return &none;
    return p->some[at >> 6] >> (at & 63) & 1 ? p->bits + at : &none;
}

/* What the answers of all parts but the moving one to probe i have in common; 0: no memory. */
static inline int meet_others(const ProbeGroup *g, const Blocks *all, Others *o, int64_t i) {
    int64_t stop = INT64_MAX;
    o->first = 0, o->lo = INT64_MIN, o->hi = INT64_MAX;
    o->valid = 0, o->moving = g->moving;
    for (int k = 0; k < g->n_parts; k++) {
        const MatchSet *a = g->part[k].match_sets + (o->place[k] = g->part[k].place[i - g->begin]);
        if (k == g->moving) continue;
        if (a->first_block > o->first) o->first = a->first_block;
        if (a->first_block + a->n_blocks < stop) stop = a->first_block + a->n_blocks;
        if (a->lo > o->lo) o->lo = a->lo;
        if (a->hi < o->hi) o->hi = a->hi;
    }
    o->n = stop > o->first ? stop - o->first : 0;
    if (o->n >= o->room) { /* and a word behind the last */
        const int64_t room = 2 * o->n + 1;
        uint64_t *wider = malloc((size_t)room * sizeof(Bits));
        if (!wider) return 0;
        free(o->word);
        o->word = wider;
        o->room = room;
    }
    o->valid = o->straight = 1;
    o->word[o->n * WORDS] = 0;
    for (int64_t b = 0; b < o->n; b++) {
        const RowBlock *block = all->block[o->first + b];
        const int64_t shift = block->row[0] - (o->first + b) * BLOCK_ROWS;
        uint64_t *word = o->word + b * WORDS;
        o->straight &= block->in_row && (b == 0 || shift == o->shift);
        o->shift = shift;
        for (int w = 0; w < WORDS; w++) word[w] = ~(uint64_t)0;
        for (int k = 0; k < g->n_parts; k++) {
            if (k == g->moving) continue;
            const Bits *bits =
                bits_or_none(g->part + k, g->part[k].match_sets + o->place[k], o->first + b);
            for (int w = 0; w < WORDS; w++) word[w] &= bits->word[w];
        }
    }
    return 1;
}

/* Whether `others` are those of probe i. */
ALWAYS_INLINE int same_others(const ProbeGroup *g, const Others *o, int64_t i) {
    if (!o->valid || o->moving != g->moving) return 0;
    for (int k = 0; k < g->n_parts; k++)
        if (k != g->moving && g->part[k].place[i - g->begin] != o->place[k]) return 0;
    return 1;
}

/* Those of n rows that the others allow, in order and `shift` more; how many. */
static inline int64_t allowed_rows(const Others *o, const int32_t *rows, int64_t n, int64_t shift,
                                   int64_t *out) {
    const uint64_t first = (uint64_t)(o->first * BLOCK_ROWS), most = (uint64_t)(o->n * BLOCK_ROWS);
    const uint64_t *word = o->word;
    int64_t found = 0;
    for (int64_t k = 0; k < n; k++) {
        uint64_t at = (uint64_t)rows[k] - first;
        at = at < most ? at : most; /* where there is no bit */
        out[found] = rows[k] + shift;
        found += (int64_t)(word[at >> 6] >> (at & 63) & 1);
    }
    return found;
}

/* Rows as 512 * block + place become row numbers, with their times if wanted; those out of time are
 * left out unless all are `in_time`. */
static inline int64_t name_rows(const Blocks *all, int64_t lo, int64_t hi, int in_time, int64_t n,
                                int64_t *rows, int64_t *times) {
    int64_t kept = 0;
    for (int64_t k = 0; k < n; k++) {
        const uint64_t at = (uint64_t)rows[k];
        const RowBlock *block = all->block[at / BLOCK_ROWS];
        const int64_t time = block->time[at % BLOCK_ROWS];
        rows[kept] = block->row[at % BLOCK_ROWS];
        if (times) times[kept] = time;
        kept += in_time | ((time >= lo) & (time <= hi));
    }
    return kept;
}

/* The results of probe i, whose moving answer `a` has a list and whose others are at hand, from
 * number `from` of it on; where to go on, -1: it is done.  There is room for LIST_STEP more. */
static inline int64_t emit_few(const ProbeGroup *g, const Blocks *all, const Probe *probe,
                               int64_t i, const MatchSet *a, int64_t from, Pairs *out) {
    const Others *o = g->others;
    const int64_t left = a->n_listed - from, n = left < LIST_STEP ? left : LIST_STEP, at = out->n;
    /* the answers keep to the times that their rows allow, which is mostly all that is asked for */
    const int64_t least = a->lo > o->lo ? a->lo : o->lo, most = a->hi < o->hi ? a->hi : o->hi;
    const int in_time = probe->lo[i] <= least && probe->hi[i] >= most;
    const int32_t *rows = g->part[g->moving].list + a->listed + from;
    const int named = in_time && o->straight && !out->time;
    int64_t found = allowed_rows(o, rows, n, named ? o->shift : 0, out->row + at);
    if (!named)
        found = name_rows(all, probe->lo[i], probe->hi[i], in_time, found, out->row + at,
                          out->time ? out->time + at : NULL);
    if (out->bound)
        for (int64_t k = 0; k < found; k++) out->bound[at + k] = probe->bound[i];
    else
        for (int64_t k = 0; k < found; k++) out->probe[at + k] = (int32_t)i;
    out->n += found;
    return left > n ? from + n : -1;
}
#endif
