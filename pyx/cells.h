/* Narrow bands: the axis of values is cut into cells, each with a time-ordered list of its rows.
 *
 * A probe for a range of values asks the lists of all cells the range touches.  cell_of() never
 * decreases with the value, so no row of the range can lie in another cell, whatever the rounding.
 */
#ifndef WINDJOIN_CELLS_H
#define WINDJOIN_CELLS_H
#include <math.h>

#include "hop.h"
#include "keys.h"
#include "lists.h"

#define CELLS_BLOCK 256 /* probes opened at a time */
#define CELLS_MOST 8    /* cells one range may touch: its length is at most twice the width */
#define CELLS_END 0x1p51 /* cells further out are one: there a double no longer tells them apart */

typedef struct {
    Lists *lists;
    Entry **table; /* cell -> code, NULL: dense */
    uint64_t *wrap;
    int64_t low, high; /* dense: cells low..high have codes 0.. */
    int real;          /* values are sortable() doubles */
    int64_t origin;    /* a value near which most others lie */
    double per_unit;   /* 1 / width of a cell */
    int64_t opened, n; /* probes opened so far: first of them, and number of list probes made */
    int32_t asker[CELLS_BLOCK * CELLS_MOST], code[CELLS_BLOCK * CELLS_MOST];
    int64_t lo[CELLS_BLOCK * CELLS_MOST], hi[CELLS_BLOCK * CELLS_MOST];
} Cells;

static inline int64_t cell_of(const Cells *all, int64_t value) {
    double distance = all->real ? from_sortable(value) - from_sortable(all->origin)
                                : (double)((__int128)value - all->origin);
    double cell = floor(distance * all->per_unit);
    if (!(cell < CELLS_END)) return (int64_t)CELLS_END;
    if (cell < -CELLS_END) return (int64_t)-CELLS_END;
    return (int64_t)cell;
}

static inline int32_t cell_code(const Cells *all, int64_t cell) {
    if (!all->table) return cell < all->low || cell > all->high ? -1 : (int32_t)(cell - all->low);
    return find_integer(*all->table, *all->wrap, cell)->code;
}

/* Open up to CELLS_BLOCK probes from `first` on: one list probe per cell they touch. */
static inline int64_t cells_open(Cells *all, const Probe *probe, int64_t first) {
    int64_t i = first, n = 0;
    for (; i < probe->n && n <= (CELLS_BLOCK - 1) * CELLS_MOST; i++) {
        if (probe->from[i] > probe->to[i] || probe->lo[i] > probe->hi[i]) continue;
        int64_t cell = cell_of(all, probe->from[i]), last = cell_of(all, probe->to[i]);
        for (int k = 0; k < CELLS_MOST && cell <= last; k++, cell++) {
            int32_t code = cell_code(all, cell);
            if (code < 0) continue;
            all->asker[n] = (int32_t)i;
            all->code[n] = code;
            all->lo[n] = probe->lo[i];
            all->hi[n] = probe->hi[i];
            n++;
        }
    }
    all->n = n;
    return i;
}

/* cursor: probe = where the next block starts, part = 1 while a block is open, position as in lists;
 * stop = which list probe of the open block is next. */
static int cells_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out) {
    Cells *all = index;
    for (;;) {
        if (!cursor->part) {
            if (cursor->probe >= probe->n) return 1;
            cursor->probe = cells_open(all, probe, cursor->probe);
            cursor->part = 1;
            cursor->stop = cursor->position = 0;
        }
        Probe inner = {all->n, all->lo, all->hi, all->code, NULL, NULL};
        Cursor at = {cursor->stop, 0, cursor->position, 0};
        int64_t before = out->n;
        int done = lists_serve(all->lists, &inner, &at, out);
        for (int64_t k = before; k < out->n; k++) out->probe[k] = all->asker[out->probe[k]];
        cursor->stop = at.probe;
        cursor->position = at.position;
        if (!done) return 0;
        cursor->part = 0;
    }
}
#endif
