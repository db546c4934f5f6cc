"""Band index: a grid of cells over the values, a time-ordered list per cell.

Unchecked: enter through ``kernels.band``.
"""
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.math cimport isfinite
from libc.string cimport memset

import numpy as np

from windjoin.pyx.index cimport Cursor, Index, Pairs, Probe, from_sortable
from windjoin.pyx.keys cimport Entry, KeySpace
from windjoin.pyx.lists cimport KeyLists, Lists


cdef extern from "cells.h" nogil:
    ctypedef struct Cells:
        Lists *lists
        Entry **table
        uint64_t *wrap
        int64_t low
        int64_t high
        int real
        int64_t origin
        double per_unit
    int cells_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out)
    int64_t cell_of(const Cells *all, int64_t value)


cdef class ValueCells(Index):
    """Rows by the cell of their value; a range of values may touch at most 8 cells."""

    cdef Cells all
    cdef KeyLists lists
    cdef KeySpace space
    cdef bint begun

    def __cinit__(self, double width, bint real):
        memset(&self.all, 0, sizeof(Cells))
        self.lists = KeyLists()
        self.space = KeySpace()
        self.all.lists = &self.lists.all
        self.all.table = &self.space.table
        self.all.wrap = &self.space.wrap
        self.all.per_unit = 1 / width
        self.all.real = real
        self.begun = False
        self.serve = cells_serve
        self.state = &self.all

    @staticmethod
    def load(
        const int64_t[::1] values, const int64_t[::1] times, double width, bint real,
        int64_t first=0,
    ):
        """Index of rows first, first + 1, ... in time order.

        values: int64, or sortable doubles
        """
        cdef int64_t i, n = values.shape[0], low = 0, high = -1
        cdef ValueCells self = ValueCells(width, real)
        self._begin(values[n >> 1] if n else 0)
        cells = np.empty(n, np.int64)
        cdef int64_t[::1] out = cells
        with nogil:
            for i in range(n):
                out[i] = cell_of(&self.all, values[i])
                low = out[i] if i == 0 else min(low, out[i])
                high = out[i] if i == 0 else max(high, out[i])
        if <uint64_t>high - <uint64_t>low <= <uint64_t>(4 * n + 1024):
            self.all.table = NULL
            self.all.low = low
            self.all.high = high
            codes = (cells - low).astype(np.int32)
            self.lists = KeyLists.load(codes, times, high - low + 1, first)
        else:
            codes = self.space.encode(cells)
            self.lists = KeyLists.load(codes, times, self.space.n_codes, first)
        self.all.lists = &self.lists.all
        return self

    @property
    def nbytes(self):
        return <int64_t>sizeof(Cells) + self.lists.nbytes + self.space.nbytes

    def insert(self, const int64_t[::1] values, const int64_t[::1] times, const int64_t[::1] rows):
        """Add rows; ``values``: int64, or sortable doubles."""
        cdef int64_t i, n = values.shape[0]
        codes = np.empty(n, np.int32)
        cdef int32_t[::1] out = codes
        if n and not self.begun:
            self._begin(values[0])
        with nogil:
            for i in range(n):
                out[i] = self.space.add_integer(cell_of(&self.all, values[i]))
        self.lists.insert(codes, times, rows)

    cdef void _begin(self, int64_t origin) noexcept:
        """Cells count from a value that occurs, where doubles are finest."""
        if self.all.real and not isfinite(from_sortable(origin)):
            origin = 0
        self.all.origin = origin
        self.begun = True

    def expire(self, int64_t horizon):
        self.lists.expire(horizon)

    def sweep(self):
        """Forget empty cells."""
        self.space.sweep(self.lists.sweep())

    @property
    def n_keys(self):
        return self.space.used
