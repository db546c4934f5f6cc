from libc.stdint cimport int32_t, int64_t, uint64_t

from windjoin.pyx.keys cimport Entry, KeySpace


cdef extern from "grid.h" nogil:
    ctypedef struct Grid:
        Entry **table
        uint64_t *wrap
        int32_t **near
        uint64_t *start
        uint64_t *span
        int64_t low
        int64_t high
        int real
        int64_t origin
        double per_unit
    int64_t grid_cell(const Grid *grid, int64_t value)


cdef int set_grid(Grid *grid, double width, bint real, KeySpace space) except -1
cdef int set_origin(Grid *grid, int64_t value) except -1 nogil
cdef object codes_on(Grid *grid, const int64_t[::1] values, object space)
