/* Sets in blocks, turned on their side: for every item one bit per row of the block.
 *
 * Popular items own a bitmap each ("lane"); the rest share lanes by their hash, and what the shared
 * lanes propose is verified.  A probe adds up the lanes of its items, 512 rows at a time.  Which
 * items are popular is learned while rows come in; blocks remember the lanes they were made with.
 */
#ifndef WINDJOIN_BITMAPS_H
#define WINDJOIN_BITMAPS_H
#include "set_probes.h"

typedef struct {
    Lanes *lanes;
    int64_t exact;     /* no shared lane is in use */
    int64_t ascending; /* times never fall */
    Bits *lane;        /* n_own + n_shared, and an empty one at the end */
} SetContent;

typedef struct {
    Blocks blocks;
    int weighted;
    SetProbes *asked;
} Bitmaps;

static inline const int32_t *codes_of(const Bitmaps *b, Components row) {
    return b->weighted ? WEIGHTED_CODES(row.at, row.n) : (const int32_t *)row.at;
}

/* The lanes of all asking rows, and runs of those that ask for as many of as many; 0: no memory. */
static inline int find_lanes(Bitmaps *all, const Measure *m, const Lanes *lanes) {
    SetProbes *q = all->asked;
    LaneRun *last = NULL;
    if (!room_for_lanes(q)) return 0;
    q->lanes = lanes;
    q->used = q->n_runs = 0;
    for (int64_t i = 0; i < q->n; i++) {
        const int32_t *codes = codes_of(all, components(&m->probing, q->row[i].row));
        LaneRun run = row_lanes(q, lanes, codes, q->row + i, (int)lanes->sharing);
        if (!last || last->n == MOST_COUNTED || last->m != run.m || last->k != run.k ||
            last->whole != run.whole) {
            last = q->run + q->n_runs++;
            *last = run;
            last->first = i;
            last->n = 0;
        }
        last->n++;
    }
    return 1;
}

/* Prepare a block to be counted; 0: no memory. */
static inline int begin_block(Bitmaps *all, const Measure *m, int64_t b) {
    const SetContent *content = all->blocks.content[b];
    if (content->lanes != all->asked->lanes && !find_lanes(all, m, content->lanes)) return 0;
    if (all->asked->used > 4 * n_lanes(content->lanes))
        fetch_lanes(content->lane, n_lanes(content->lanes));
    return 1;
}

/* Drop the rows of a block whose time does not fit; whether any is left. */
static inline int keep_in_time(const RowBlock *block, int ascending, int64_t lo, int64_t hi,
                               Bits *bits) {
    Bits fits;
    int64_t from = 0, to = block->n;
    if (!ascending) {
        time_bits(block, lo, hi, &fits);
        return bits_meet(bits, &fits);
    }
    for (int64_t length = lo > block->earliest ? to : 0;
         length > 0;) { /* the first at lo or later */
        int64_t half = length >> 1;
        if (block->time[from + half] < lo) from += half + 1, length -= half + 1;
        else length = half;
    }
    for (int64_t length = hi < block->latest ? to : 0; length > 0;) { /* the first after hi */
        int64_t half = length >> 1;
        if (block->time[to - 1 - half] > hi) to -= half + 1, length -= half + 1;
        else length = half;
    }
    for (int w = 0; w < WORDS; w++)
        fits.word[w] = first_bits(to - w * 64) & ~first_bits(from - w * 64);
    return bits_meet(bits, &fits);
}

/* Drop the rows whose sets have too few or too many items to pass; whether any is left. */
static inline int keep_passing_sizes(const Measure *m, const RowBlock *block, const SetProbe *a,
                                     Bits *bits) {
    const Column *length = m->target.length;
    uint64_t any = 0;
    for (int w = 0; w < WORDS; w++) {
        for (uint64_t word = bits->word[w]; word; word &= word - 1) {
            int64_t row = block->row[w * 64 + __builtin_ctzll(word)];
            int64_t n = ((const int32_t *)length->data)[row & length->mask];
            if (n < a->least || n > a->most) bits->word[w] &= ~(word & -word);
        }
        any |= bits->word[w];
    }
    return any != 0;
}

/* As decide(), where all items were counted: reading both sets again would only count them. */
static inline void decide_counted(const Measure *m, const RowBlock *block, const SetProbe *a,
                                  const SetContent *content, const uint32_t *lane, int64_t lanes,
                                  const Bits *maybe, Bits *sure) {
    Bits plane[MOST_PLANES];
    const Column *length = m->target.length;
    int n = count_planes(content->lane, lane, lanes, plane);
    for (int w = 0; w < WORDS; w++)
        for (uint64_t word = maybe->word[w]; word; word &= word - 1) {
            int at = __builtin_ctzll(word);
            int64_t row = block->row[w * 64 + at], common = counted(plane, n, w, at);
            int64_t items = ((const int32_t *)length->data)[row & length->mask];
            if (passes(m, m->turned ? set_value(m->measure, common, items, a->items)
                                    : set_value(m->measure, common, a->items, items)))
                sure->word[w] |= (uint64_t)1 << at;
        }
}

/* Rows of block b that a run of asking rows finds, in q->bits; one bit for each that finds any. */
static inline uint64_t count_run(Bitmaps *all, const MeasureMatches *p, int64_t b,
                                 const LaneRun *run) {
    const RowBlock *block = all->blocks.block[b];
    const SetContent *content = all->blocks.content[b];
    SetProbes *q = all->asked;
    int inside = block_within(block, q->lo, q->hi);
    int known = content->exact && run->whole && p->measure.measure <= COSINE_SETS;
    int clear = known && count_decides(&p->measure);
    uint64_t any = count_lanes(content->lane, q->lane + run->at, run->m, run->n, run->k, q->bits);
    if (inside && clear) return any;
    for (uint64_t left = any; left; left &= left - 1) {
        int64_t i = __builtin_ctzll(left);
        const SetProbe *a = q->row + run->first + i;
        int fits = b >= a->first_block && b < a->stop_block;
        if (fits && !inside)
            fits = keep_in_time(block, (int)content->ascending, a->lo, a->hi, q->bits + i);
        if (fits && !clear && (a->least > 1 || a->most < MOST_ITEMS))
            fits = keep_passing_sizes(&p->measure, block, a, q->bits + i);
        if (fits && !clear) {
            Bits sure = {{0}};
            if (known)
                decide_counted(&p->measure, block, a, content, q->lane + run->at + i * run->m,
                               run->m, q->bits + i, &sure);
            else decide(p, block, a->row, q->bits + i, &sure);
            fits = bits_meet(q->bits + i, &sure);
        }
        if (!fits) any &= ~((uint64_t)1 << i);
    }
    return any;
}

/* Compute answers that are kept; 0: no memory. */
static int bitmaps_fill(void *index, MeasureMatches *p) {
    Bitmaps *all = index;
    SetProbes *q = all->asked;
    for (int64_t from = p->filled; from < p->n_match_sets; from += TOGETHER) {
        int64_t n = p->n_match_sets - from < TOGETHER ? p->n_match_sets - from : TOGETHER;
        for (int64_t i = 0; i < n; i++) {
            const MatchSet *a = p->match_sets + from + i;
            int64_t items = components(&p->measure.probing, a->row).n,
                    stop = a->first_block + a->n_blocks;
            q->given[i] =
                (SetProbe){a->row, a->lo, a->hi, a->first_block, stop, items, 0, 0, 0, from + i};
        }
        put_in_order(q, &p->measure, n);
        for (int64_t b = q->first_block; b < q->stop_block; b++) {
            if (!begin_block(all, &p->measure, b)) return 0;
            for (int64_t r = 0; r < q->n_runs; r++) {
                uint64_t any = count_run(all, p, b, q->run + r);
                for (; any; any &= any - 1) {
                    int64_t i = __builtin_ctzll(any);
                    const MatchSet *a = p->match_sets + q->row[q->run[r].first + i].match_set;
                    *match_set_store(p, a, b) = q->bits[i];
                }
            }
        }
    }
    return 1;
}

/* Take probes from `from` on as rows that ask; the one after the last. */
static inline int64_t ask_next(Bitmaps *all, const MeasureMatches *p, const Probe *probe,
                               int64_t from) {
    SetProbes *q = all->asked;
    int64_t n = probe->n - from < all->blocks.together ? probe->n - from : all->blocks.together;
    for (int64_t i = 0; i < n; i++) {
        SetProbe a = {probe->row[p->stream][from + i],
                      probe->lo[from + i],
                      probe->hi[from + i],
                      0,
                      0,
                      0,
                      0,
                      0,
                      0,
                      0};
        a.first_block = blocks_between(&all->blocks, a.lo, a.hi, &a.stop_block);
        a.items = components(&p->measure.probing, a.row).n;
        q->given[i] = a;
    }
    put_in_order(q, &p->measure, n);
    q->block = q->first_block - 1;
    q->next = q->n_runs = 0;
    return from + n;
}

/* Serve rows that ask once, for one measure: what they find is written at once. */
static inline int serve_once(Bitmaps *all, const MeasureMatches *p, const Probe *probe,
                             Cursor *cursor, Pairs *out) {
    SetProbes *q = all->asked;
    if (!cursor->stop) {
        q->n_runs = q->next = q->block = q->stop_block = 0;
        q->hits.any = 0;
        cursor->stop = 1; /* begun */
    }
    for (;;) {
        if (q->hits.any) emit_hits(all->blocks.block[q->block], &q->hits, out);
        if (q->hits.any) return 0;
        if (q->next < q->n_runs) {
            const LaneRun *run = q->run + q->next++;
            q->hits = (Hits){q->bits, q->bound + run->first, count_run(all, p, q->block, run)};
        } else if (q->block + 1 < q->stop_block) {
            if (!begin_block(all, &p->measure, ++q->block)) return UNANSWERED;
            q->next = 0;
        } else if (cursor->probe < probe->n) {
            cursor->probe = ask_next(all, p, probe, cursor->probe);
        } else {
            return 1;
        }
    }
}

static int bitmaps_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out) {
    Bitmaps *all = index;
    ProbeGroup *g = probe->prober;
    if (g->n_parts == 1 && out->bound) return serve_once(all, g->part, probe, cursor, out);
    return serve_groups(&all->blocks, probe, cursor, out, bitmaps_fill, all);
}

static inline void bitmaps_insert(Bitmaps *all, Components row, int64_t time, int64_t number) {
    RowBlock *block = all->blocks.block[all->blocks.last - 1];
    SetContent *content = all->blocks.content[all->blocks.last - 1];
    const int32_t *codes = codes_of(all, row);
    uint64_t bit = (uint64_t)1 << (block->n & 63);
    for (int64_t k = 0; k < row.n; k++) {
        int64_t lane = lane_of(content->lanes, codes[k]);
        if (lane >= content->lanes->n_own) content->exact = 0;
        content->lane[lane].word[block->n >> 6] |= bit;
    }
    content->ascending &= block->n == 0 || time >= block->time[block->n - 1];
    block_add(block, time, number);
    all->blocks.version++;
}
#endif
