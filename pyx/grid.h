/* The axis of values cut into cells.
 *
 * grid_cell() never decreases with the value, so no row of a range of values can lie outside the cells
 * from that of its least to that of its greatest value, whatever the rounding.
 */
#ifndef WINDJOIN_GRID_H
#define WINDJOIN_GRID_H
#include <math.h>

#include "hop.h"
#include "keys.h"

#define GRID_MOST 8      /* cells one range may touch: its length is at most twice the width */
#define GRID_END 0x1p51  /* cells further out are one: there a double no longer tells them apart */

typedef struct {
    Entry **table; /* cell -> code, NULL: dense */
    uint64_t *wrap;
    int32_t **near; /* the same for the *span cells from *start on */
    uint64_t *start, *span;
    int64_t low, high; /* dense: cells low..high have codes 0.. */
    int real;          /* values are sortable() doubles */
    int64_t origin;    /* a value near which most others lie */
    double per_unit;   /* 1 / width of a cell */
} Grid;

static inline int64_t grid_cell(const Grid *grid, int64_t value) {
    double distance = grid->real ? from_sortable(value) - from_sortable(grid->origin)
                                 : (double)((__int128)value - grid->origin);
    double cell = distance * grid->per_unit;
    if (!(cell < GRID_END)) return (int64_t)GRID_END;
    if (cell < -GRID_END) return (int64_t)-GRID_END;
    int64_t down = (int64_t)cell; /* floor(), which old processors have no instruction for */
    return down - ((double)down > cell);
}

static inline int32_t grid_code(const Grid *grid, int64_t cell) {
    if (!grid->table) return cell < grid->low || cell > grid->high ? -1 : (int32_t)(cell - grid->low);
    uint64_t at = (uint64_t)cell - *grid->start;
    if (at < *grid->span) return (*grid->near)[at];
    return find_integer(*grid->table, *grid->wrap, cell)->code;
}
#endif
