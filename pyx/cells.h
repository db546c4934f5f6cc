/* Narrow bands on a live window: a grid over the values, the rows of a cell in time order.
 *
 * A probe for a range of values asks for the rows of all cells the range touches, and takes from them
 * the rows whose value lies in the range.
 */
#ifndef WINDJOIN_CELLS_H
#define WINDJOIN_CELLS_H
#include "grid.h"
#include "hop.h"

#define CELLS_BLOCK 256 /* probes opened at a time */

typedef struct {
    Grid grid;
    Serve serve; /* of the index that has the rows of every cell, which lies at `rows` */
    void *rows;
    const Column *value; /* of the rows, as they came: not sortable() */
    int64_t n;           /* list probes of the open block */
    int32_t asker[CELLS_BLOCK * GRID_MOST], code[CELLS_BLOCK * GRID_MOST];
    int64_t lo[CELLS_BLOCK * GRID_MOST], hi[CELLS_BLOCK * GRID_MOST];
} Cells;

/* Open up to CELLS_BLOCK probes from `first` on: one list probe per cell they touch. */
static inline int64_t cells_open(Cells *all, const Probe *probe, int64_t first) {
    int64_t i = first, n = 0;
    for (; i < probe->n && n <= (CELLS_BLOCK - 1) * GRID_MOST; i++) {
        if (probe->from[i] > probe->to[i] || probe->lo[i] > probe->hi[i]) continue;
        int64_t cell = grid_cell(&all->grid, probe->from[i]);
        int64_t last = grid_cell(&all->grid, probe->to[i]);
        for (int k = 0; k < GRID_MOST && cell <= last; k++, cell++) {
            int32_t code = grid_code(&all->grid, cell);
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

/* Of the candidates from `begin` on, keep those with a value in the range of who asked. */
static inline void cells_keep(const Cells *all, const Probe *probe, int64_t begin, Pairs *out) {
    const int64_t *value = all->value->data, mask = all->value->mask;
    int64_t m = begin;
    for (int64_t k = begin; k < out->n; k++) {
        int32_t asker = all->asker[out->probe[k]];
        int64_t row = out->row[k], v = value[row & mask];
        if (all->grid.real) v = sortable_bits(v);
        out->probe[m] = asker;
        out->row[m] = row;
        if (out->time) out->time[m] = out->time[k];
        m += (probe->from[asker] <= v) & (v <= probe->to[asker]);
    }
    out->n = m;
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
        Probe inner = {.n = all->n, .lo = all->lo, .hi = all->hi, .code = all->code};
        Cursor at = {cursor->stop, 0, cursor->position, 0};
        int64_t begin = out->n;
        int done = all->serve(all->rows, &inner, &at, out);
        cells_keep(all, probe, begin, out);
        cursor->stop = at.probe;
        cursor->position = at.position;
        if (!done) return 0;
        cursor->part = 0;
    }
}
#endif
