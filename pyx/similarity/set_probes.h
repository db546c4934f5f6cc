/* Rows that ask blocks of sets together, those of equally many lanes one after the other. */
#ifndef WINDJOIN_SET_PROBES_H
#define WINDJOIN_SET_PROBES_H
#include "probe_groups.h"
#include "hits.h"

#define TOGETHER 2048  /* asking rows that go over a block while it is in cache, at most */
#define MOST_COUNTS 256 /* numbers of items that are told apart when rows are put in order */
/* common items that are asked for where only the rarest items are counted */
#define PREFIX_COUNT 4
#define PREFIX_FROM 6  /* items that a row must share for that to be worth it */

/* Items to lanes; those of popular items come first, the most popular one first of all. */
typedef struct {
    int64_t users;
    int64_t n_own, n_shared; /* n_shared: a power of two */
    int64_t n_codes;
    int64_t sharing;  /* there are more items than lanes */
    int16_t own[]; /* by code: its lane, -1: a shared one */
} Lanes;

typedef struct {
    int64_t row;    /* that asks */
    int64_t lo, hi; /* times of the rows that it can meet */
    int64_t first_block, stop_block;
    int64_t items, needed; /* how many it has, and must share */
    int64_t least, most;   /* items of rows that can pass at all */
    int64_t match_set; /* number of its answer, if it is to be kept */
} SetProbe;

/* Rows that ask for k of m lanes each. */
typedef struct {
    int64_t first, n, m, k;
    int64_t at;    /* of their lanes */
    int64_t whole; /* k is all that the measure needs: no item is left out */
} LaneRun;

typedef struct { /* begins with what must be zero at first */
    int64_t n, n_runs;
    int64_t first_block, stop_block; /* of all rows */
    int64_t lo, hi;                  /* times that every row can meet */
    const Lanes *lanes;              /* that the runs are about */
    uint32_t *lane;                  /* in bytes, see count_lanes */
    int64_t used, room;
    int64_t block, next; /* where serving goes on: the block, and the run to be counted next */
    Hits hits;           /* of the run before that, not given out yet */
    Bits bits[MOST_COUNTED];
    SetProbe row[TOGETHER];
    SetProbe given[TOGETHER]; /* the same before they are put in order */
    int64_t bound[TOGETHER];
    LaneRun run[TOGETHER];
} SetProbes;

static inline int64_t n_lanes(const Lanes *l) { return l->n_own + l->n_shared; }

static inline int64_t lane_of(const Lanes *l, int32_t code) {
    if (code < l->n_codes && l->own[code] >= 0) return l->own[code];
    uint64_t hash = (uint64_t)code * 0x9E3779B97F4A7C15u >> 32;
    return l->n_own + (int64_t)(hash & (uint64_t)(l->n_shared - 1));
}

/* The greatest measure that a set of n items can have with any other, `common` items in common. */
static inline double most_similar(const Measure *m, int64_t n, int64_t common) {
    switch (m->measure) {
    case OVERLAP: return (double)common;
    case JACCARD: return (double)common / (double)n;
    case CONTAINMENT: return m->turned ? 1.0 : (double)common / (double)n;
    case COSINE_SETS: return (double)common / sqrt((double)(n * common));
    default: return INFINITY;
    }
}

/* How many items a row must share with a set of n to pass; n + 1: none can. */
static inline int64_t items_needed(const Measure *m, int64_t n) {
    int64_t low = 1, past = n + 1;
    while (low < past) { /* what more common items allow never gets less */
        int64_t middle = (low + past) >> 1;
        if (passes(m, most_similar(m, n, middle))) past = middle;
        else low = middle + 1;
    }
    return low;
}

/* Whether a set of `other` items can pass beside one of n that asks: where one lies in the other.
 */
static inline int size_fits(const Measure *m, int64_t n, int64_t other) {
    int64_t common = n < other ? n : other;
    return passes(m, m->turned ? set_value(m->measure, common, other, n)
                               : set_value(m->measure, common, n, other));
}

#define MOST_ITEMS ((int64_t)INT32_MAX)

/* The least and the greatest number of items of a set that can pass; the nearer to n, the better.
 * One of n must have `needed` in common with it. */
static inline void sizes_that_fit(const Measure *m, int64_t n, int64_t needed, int64_t *least,
                                  int64_t *most) {
    int64_t low = 1, high = n;
    *least = m->measure == OVERLAP ? needed : 0, *most = MOST_ITEMS;
    if (m->measure > COSINE_SETS || m->measure == OVERLAP) return;
    while (low < high) {
        int64_t middle = (low + high) >> 1;
        if (size_fits(m, n, middle)) high = middle;
        else low = middle + 1;
    }
    *least = low;
    for (low = n, high = MOST_ITEMS; low < high;) {
        int64_t middle = (low + high + 1) >> 1;
        if (size_fits(m, n, middle)) low = middle;
        else high = middle - 1;
    }
    *most = low;
}

/* Whether the number of common items alone decides. */
static inline int count_decides(const Measure *m) {
    return m->measure == OVERLAP || (m->measure == CONTAINMENT && !m->turned);
}

/* Take rows [0, n) of q->given that can find anything, fewer items first. */
static inline void put_in_order(SetProbes *q, const Measure *m, int64_t n) {
    int64_t place[MOST_COUNTS + 1] = {0};
    int64_t items = 0, needed = 0, least = 0, most = 0;
    q->n = 0;
    q->lanes = NULL;
    q->first_block = INT64_MAX, q->stop_block = INT64_MIN;
    q->lo = INT64_MIN, q->hi = INT64_MAX;
    for (int64_t i = 0; i < n; i++)
        place[(q->given[i].items < MOST_COUNTS ? q->given[i].items : MOST_COUNTS - 1) + 1]++;
    for (int64_t k = 0; k < MOST_COUNTS; k++) place[k + 1] += place[k];
    for (int64_t i = 0; i < n; i++) {
        SetProbe a = q->given[i];
        int64_t count = a.items < MOST_COUNTS ? a.items : MOST_COUNTS - 1;
        q->row[place[count]++] = a;
        if (a.lo > q->lo) q->lo = a.lo;
        if (a.hi < q->hi) q->hi = a.hi;
        if (a.first_block < q->first_block) q->first_block = a.first_block;
        if (a.stop_block > q->stop_block) q->stop_block = a.stop_block;
    }
    for (int64_t i = 0; i < n; i++) {
        SetProbe a = q->row[i];
        if (i == 0 || a.items != items) {
            items = a.items;
            needed = items_needed(m, items);
            sizes_that_fit(m, items, needed, &least, &most);
        }
        a.needed = needed, a.least = least, a.most = most;
        if (a.needed > a.items || a.first_block >= a.stop_block) continue;
        q->bound[q->n] = a.row;
        q->row[q->n++] = a;
    }
    if (!q->n) q->stop_block = q->first_block;
}

static int rarer_first(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

/* Room for the lanes of all rows, whichever of them are counted; 0: no memory. */
static inline int room_for_lanes(SetProbes *q) {
    int64_t n = 0;
    for (int64_t i = 0; i < q->n; i++) n += q->row[i].items + 1;
    if (n <= q->room) return 1;
    uint32_t *grown = malloc((size_t)(n + n / 2) * sizeof(uint32_t));
    if (!grown) return 0;
    free(q->lane);
    q->lane = grown;
    q->room = n + n / 2;
    return 1;
}

/* The lanes that are counted for one row, an even number; there is room for them.  A row that
 * shares `needed` of n items shares PREFIX_COUNT of any n - needed + PREFIX_COUNT of them: the
 * rarest ones find the fewest rows. */
static inline LaneRun row_lanes(SetProbes *q, const Lanes *lanes, const int32_t *codes,
                                const SetProbe *a, int prefix) {
    LaneRun run = {.m = a->items, .k = a->needed, .at = q->used, .whole = 1};
    uint32_t *lane = q->lane + q->used;
    for (int64_t k = 0; k < a->items; k++)
        lane[k] = (uint32_t)(lane_of(lanes, codes[k]) * (int64_t)sizeof(Bits));
    if (prefix && a->needed >= PREFIX_FROM) {
        qsort(lane, (size_t)a->items, sizeof(uint32_t), rarer_first);
        run.m = a->items - a->needed + PREFIX_COUNT;
        run.k = PREFIX_COUNT;
        run.whole = 0;
    }
    if (run.m & 1) lane[run.m++] = (uint32_t)(n_lanes(lanes) * (int64_t)sizeof(Bits));
    q->used += run.m;
    return run;
}
#endif
