"""A grid over values: which cell each lies in, and the codes of the cells that are in use."""
from libc.string cimport memset

from windjoin.pyx.encoding.keys cimport KeySpace


cdef int set_grid(Grid *grid, double width, bint real, KeySpace space) except -1:
    """``space`` will have the codes of the cells; it must live as long."""
    memset(grid, 0, sizeof(Grid))
    grid.per_unit = 1 / width
    grid.real = real
    grid.table, grid.wrap = &space.table, &space.wrap
    grid.near, grid.start, grid.span = &space.near, &space.low, &space.span
    return 0
