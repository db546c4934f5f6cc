/* Time-sorted inverted lists: for every item the rows that have it, in order of time.
 *
 * Where sets have one item each this is a hash index.  A row that shares several items with the one
 * that asks stands in several of its lists, and is taken from the list of the first of them.
 */
#ifndef WINDJOIN_ITEMS_H
#define WINDJOIN_ITEMS_H
#include "probe_groups.h"
#include "postings.h"

#define ITEMS_AT_ONCE (1 << 20) /* rows looked at, then the pipeline may look for Ctrl-C */

typedef struct {
    Postings *postings;
    int64_t rows, larger; /* that have come; of those, with more than one item */
} ItemsOf;

/* Whether a row from the list of `code` is one to take, for a row that asks. */
static inline int items_take(const Measure *m, Components asks, int32_t code, int64_t row,
                             int alone) {
    Components target = components(&m->target, row);
    const int32_t *a = asks.at, *b = target.at;
    if (asks.n == 1 && target.n == 1) return alone;
    while (*a != *b) { /* both have `code` */
        if (*a < *b) a++;
        else b++;
    }
    return *a == code && rows_pass(m, asks, target);
}

/* The rows of the list of `code`; 0: `out` is full, or it is time to look up. */
static inline int items_walk(const ItemsOf *index, const Probe *probe, Cursor *cursor, Pairs *out,
                             const Measure *m, Components asks, int64_t *left) {
    const Postings *all = index->postings;
    const int32_t code = ((const int32_t *)asks.at)[cursor->part];
    if (code >= all->n_postings) return 1;
    PostingList *list = all->postings + code;
    const int64_t *time = all->time + list->offset, *row = all->row + list->offset;
    const int64_t i = cursor->probe, lo = probe->lo[i], hi = probe->hi[i];
    const int alone = passes(m, set_value(m->measure, 1, 1, 1)),
              equal = asks.n == 1 && !index->larger;
    int64_t at = cursor->position - 1;
    if (at < 0) {
        at = postings_search(time, postings_begin(list, time, lo), list->length, lo);
        list->hint = (int32_t)at;
    }
    for (; at < list->length && time[at] <= hi; at++) {
        if (out->n == out->capacity || --*left < 0) {
            cursor->position = at + 1;
            return 0;
        }
        if (!(equal ? alone : items_take(m, asks, code, row[at], alone))) continue;
        out->row[out->n] = row[at];
        if (out->time) out->time[out->n] = time[at];
        if (out->bound) out->bound[out->n++] = probe->bound[i];
        else out->probe[out->n++] = (int32_t)i;
    }
    return 1;
}

static int items_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out) {
    const MeasureMatches *p = ((const ProbeGroup *)probe->prober)->part;
    int64_t left = ITEMS_AT_ONCE;
    for (; cursor->probe < probe->n; cursor->probe++, cursor->part = 0) {
        Components asks = components(&p->measure.probing, probe->row[p->stream][cursor->probe]);
        for (; cursor->part < asks.n; cursor->part++, cursor->position = 0)
            if (!items_walk(index, probe, cursor, out, &p->measure, asks, &left)) return 0;
    }
    return 1;
}
#endif
