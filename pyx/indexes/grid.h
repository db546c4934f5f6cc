/* The axis of values cut into cells.
 *
 * grid_cell() never decreases with the value, so no row of a range of values can lie outside the
 * cells from that of its least to that of its greatest value, whatever the rounding.
 */
#ifndef WINDJOIN_GRID_H
#define WINDJOIN_GRID_H
#include <math.h>

#include "hop.h"
#include "isa.h"
#include "keys.h"

#define GRID_MOST 8      /* cells one range may touch: its length is at most twice the width */
#define GRID_END 0x1p51 /* cells further out are one: there a double no longer tells them apart */

typedef struct {
    Entry **table; /* cell -> code */
    uint64_t *wrap;
    int32_t **near; /* the same for the *span cells from *start on */
    uint64_t *start, *span;
    int real; /* values are sortable() doubles */
    int64_t origin; /* an integer near which most others lie, */
    int64_t least, most; /* and how far from it they are told apart: differences are int64 */
    double real_origin;
    double per_unit; /* 1 / width of a cell */
} Grid;

static inline void grid_set_origin(Grid *grid, int64_t value) {
    grid->origin = grid->real ? 0 : value;
    grid->least = subtract_saturated(grid->origin, INT64_MAX);
    grid->most = add_saturated(grid->origin, INT64_MAX);
    grid->real_origin = grid->real ? from_sortable(value) : 0;
    if (!isfinite(grid->real_origin)) grid->real_origin = 0;
}

/* floor(), which old processors have no instruction for, without a branch. */
static inline int64_t grid_floor(double cell) {
    cell = cell < GRID_END ? cell : GRID_END;
    cell = cell > -GRID_END ? cell : -GRID_END;
    int64_t down = (int64_t)cell;
    return down - ((double)down > cell);
}

static inline int64_t grid_cell_of_real(const Grid *grid, int64_t value) {
    return grid_floor((from_sortable(value) - grid->real_origin) * grid->per_unit);
}

static inline int64_t grid_cell_of_integer(const Grid *grid, int64_t value) {
    value = value < grid->least ? grid->least : value;
    value = value > grid->most ? grid->most : value;
    return grid_floor((double)(value - grid->origin) * grid->per_unit);
}

static inline int64_t grid_cell(const Grid *grid, int64_t value) {
    return grid->real ? grid_cell_of_real(grid, value) : grid_cell_of_integer(grid, value);
}

#ifdef WINDJOIN_X86
/* grid_cell_of_real() of n values, 8 at a time: room for a multiple of that can be written. */
TARGET_AVX512 static inline void grid_cells_of_reals(const Grid *grid, const int64_t *value,
                                                     int64_t n, int64_t *cell) {
    for (int64_t i = 0; i < n; i += 8) {
        __mmask8 here = n - i < 8 ? (__mmask8)((1u << (n - i)) - 1) : 0xff;
        __m512i key = _mm512_maskz_loadu_epi64(here, value + i);
        __m512i sign = _mm512_and_si512(_mm512_srai_epi64(key, 63), _mm512_set1_epi64(INT64_MAX));
        __m512d x = _mm512_castsi512_pd(_mm512_xor_si512(key, sign));
        x = _mm512_mul_pd(_mm512_sub_pd(x, _mm512_set1_pd(grid->real_origin)),
                          _mm512_set1_pd(grid->per_unit));
        x = _mm512_min_pd(x, _mm512_set1_pd(GRID_END));
        x = _mm512_max_pd(x, _mm512_set1_pd(-GRID_END));
        x = _mm512_roundscale_pd(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
        _mm512_storeu_si512(cell + i, _mm512_cvttpd_epi64(x));
    }
}
#endif

/* The cells of n values; room for a multiple of 8 can be written. */
static inline void grid_cells(const Grid *grid, const int64_t *value, int64_t n, int64_t *cell) {
#ifdef WINDJOIN_X86
    if (grid->real && isa_level() == ISA_AVX512) {
        grid_cells_of_reals(grid, value, n, cell);
        return;
    }
#endif
    for (int64_t i = 0; i < n; i++) cell[i] = grid_cell(grid, value[i]);
}

static inline int32_t grid_code(const Grid *grid, int64_t cell) {
    uint64_t at = (uint64_t)cell - *grid->start;
    if (at < *grid->span) return (*grid->near)[at];
    return find_integer(*grid->table, *grid->wrap, cell)->code;
}
#endif
