from libc.stdint cimport int32_t, int64_t, uint64_t

from windjoin.pyx.encoding.keys cimport Entry, KeySpace


cdef extern from "grid.h" nogil:
    ctypedef struct Grid:
        Entry **table
        uint64_t *wrap
        int32_t **near
        uint64_t *start
        uint64_t *span
        int real
        double per_unit
    void grid_set_origin(Grid *grid, int64_t value)
    void grid_cells(const Grid *grid, const int64_t *value, int64_t n, int64_t *cell)


cdef int set_grid(Grid *grid, double width, bint real, KeySpace space) except -1
