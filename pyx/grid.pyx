"""A grid over values: which cell each lies in, and the codes of the cells that are in use."""
from libc.math cimport isfinite
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

import numpy as np

from windjoin.pyx.index cimport from_sortable
from windjoin.pyx.keys cimport KeySpace


cdef int set_grid(Grid *grid, double width, bint real, KeySpace space) except -1:
    """``space`` will have the codes of the cells; it must live as long."""
    memset(grid, 0, sizeof(Grid))
    grid.per_unit = 1 / width
    grid.real = real
    grid.table, grid.wrap = &space.table, &space.wrap
    grid.near, grid.start, grid.span = &space.near, &space.low, &space.span
    return 0


cdef int set_origin(Grid *grid, int64_t value) except -1 nogil:
    """Cells count from a value that occurs, where doubles are finest."""
    grid.origin = 0 if grid.real and not isfinite(from_sortable(value)) else value
    return 0


cdef object codes_on(Grid *grid, const int64_t[::1] values, object space):
    """(codes of all values' cells, number of codes); dense if the cells lie close together."""
    cdef int64_t i, n = values.shape[0], low = 0, high = -1
    set_origin(grid, values[n >> 1] if n else 0)
    cells = np.empty(n, np.int64)
    cdef int64_t[::1] out = cells
    with nogil:
        for i in range(n):
            out[i] = grid_cell(grid, values[i])
            low = out[i] if i == 0 else min(low, out[i])
            high = out[i] if i == 0 else max(high, out[i])
    if <uint64_t>high - <uint64_t>low <= <uint64_t>(4 * n + 1024):
        grid.table = NULL
        grid.low = low
        grid.high = high
        return (cells - low).astype(np.int32), high - low + 1
    return space.encode(cells), space.n_codes
