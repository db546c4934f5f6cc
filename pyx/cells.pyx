"""Band index: a grid of cells over the values, an equality index over the cells.

Unchecked: enter through ``kernels.band``.
"""
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from windjoin.pyx.grid cimport Grid, grid_cells, grid_set_origin, set_grid
from windjoin.pyx.index cimport Cursor, Index, Pairs, Probe
from windjoin.pyx.keys cimport KeySpace
from windjoin.pyx.lines cimport KeyLines, Lines


cdef extern from "cells.h" nogil:
    ctypedef struct Cells:
        Grid grid
        Lines *rows
    int cells_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out)


cdef class ValueCells(Index):
    """Rows by the cell of their value; a range of values may touch at most 8 cells."""

    cdef Cells all
    cdef KeyLines rows  # by code of their cell
    cdef KeySpace space
    cdef bint begun

    def __cinit__(self, double width, bint real):
        memset(&self.all, 0, sizeof(Cells))
        self.space = KeySpace()
        set_grid(&self.all.grid, width, real, self.space)
        self.rows = KeyLines()
        self.rows.keep_values()
        self.all.rows = &self.rows.all
        self.begun = False
        self.serve = cells_serve
        self.binds = True
        self.puts = True
        self.state = &self.all

    @property
    def nbytes(self):
        return <int64_t>sizeof(Cells) + self.rows.nbytes + self.space.nbytes

    def insert(self, const int64_t[::1] values, const int64_t[::1] times, const int64_t[::1] rows):
        """Add rows; ``values``: int64, or sortable doubles."""
        if values.shape[0]:
            with nogil:
                self.put(values.shape[0], NULL, &values[0], &times[0], &rows[0])

    cdef int put(
        self, int64_t n, const int32_t *code, const int64_t *value, const int64_t *time,
        const int64_t *row,
    ) except -1 nogil:
        cdef int32_t codes[256]
        cdef int64_t cells[256]
        cdef int64_t at = 0, some
        if not self.begun:
            grid_set_origin(&self.all.grid, value[0])
            self.begun = True
        while at < n:
            some = min(n - at, 256)
            grid_cells(&self.all.grid, value + at, some, cells)
            self.space.add_integers(some, cells, codes)
            self.rows.fetch(some, codes)
            self.rows.put(some, codes, value + at, time + at, row + at)
            at += some
        return 0

    def expire(self, int64_t horizon):
        self.forget(horizon)

    cdef void forget(self, int64_t horizon) noexcept:
        self.rows.forget(horizon)

    def sweep(self):
        """Forget empty cells."""
        self.space.sweep(self.rows.sweep())

    @property
    def n_keys(self):
        return self.space.used
