"""Band index: a grid of cells over the values, a time-ordered list per cell.

Unchecked: enter through ``kernels.band``.
"""
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from windjoin.pyx.column cimport ColumnView
from windjoin.pyx.grid cimport Grid, codes_on, grid_cell, set_grid, set_origin
from windjoin.pyx.index cimport Column, Cursor, Index, Pairs, Probe
from windjoin.pyx.keys cimport KeySpace
from windjoin.pyx.lists cimport KeyLists, Lists


cdef extern from "cells.h" nogil:
    ctypedef struct Cells:
        Grid grid
        Lists *lists
        const Column *value
    int cells_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out)


cdef class ValueCells(Index):
    """Rows by the cell of their value; a range of values may touch at most 8 cells."""

    cdef Cells all
    cdef ColumnView column
    cdef KeyLists lists
    cdef KeySpace space
    cdef bint begun

    def __cinit__(self, double width, bint real, ColumnView column not None):
        memset(&self.all, 0, sizeof(Cells))
        set_grid(&self.all.grid, width, real)
        self.column = column
        self.lists = KeyLists()
        self.space = KeySpace()
        self.all.value = &column.column
        self.all.lists = &self.lists.all
        self.all.grid.table = &self.space.table
        self.all.grid.wrap = &self.space.wrap
        self.begun = False
        self.serve = cells_serve
        self.puts = True
        self.state = &self.all

    @staticmethod
    def load(
        const int64_t[::1] values, const int64_t[::1] times, double width, bint real,
        ColumnView column not None, int64_t first=0,
    ):
        """Index of rows first, first + 1, ... in time order.

        values: int64, or sortable doubles
        column: the same by row number, as they came
        """
        cdef ValueCells self = ValueCells(width, real, column)
        codes, count = codes_on(&self.all.grid, values, self.space)
        self.lists = KeyLists.load(codes, times, count, first)
        self.all.lists = &self.lists.all
        self.begun = True
        return self

    @property
    def nbytes(self):
        return <int64_t>sizeof(Cells) + self.lists.nbytes + self.space.nbytes

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
        cdef int64_t at = 0, i, some
        if not self.begun:
            set_origin(&self.all.grid, value[0])
            self.begun = True
        while at < n:
            some = min(n - at, 256)
            for i in range(some):
                codes[i] = self.space.add_integer(grid_cell(&self.all.grid, value[at + i]))
            self.lists.put(some, codes, NULL, time + at, row + at)
            at += some
        return 0

    def expire(self, int64_t horizon):
        self.forget(horizon)

    cdef void forget(self, int64_t horizon) noexcept:
        self.lists.forget(horizon)

    def sweep(self):
        """Forget empty cells."""
        self.space.sweep(self.lists.sweep())

    @property
    def n_keys(self):
        return self.space.used
