"""Band index: a grid of cells over the values, an equality index over the cells.

Rows later than any time that was asked for wait beside it, so that it stays small where streams
come in large parts, each ahead of the other in turn.

Unchecked: enter through ``kernels.band``.
"""
from libc.stdint cimport INT64_MAX, int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from windjoin.pyx.indexes.grid cimport Grid, grid_cells, grid_set_origin, set_grid
from windjoin.pyx.base.index cimport Cursor, Index, Pairs, Probe, out_of_memory
from windjoin.pyx.encoding.keys cimport KeySpace
from windjoin.pyx.indexes.lines cimport KeyLines, Lines


cdef extern from "cells.h" nogil:
    ctypedef struct Cells:
        Grid grid
        Lines *rows
    int cells_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out)

cdef extern from "waiting.h" nogil:
    ctypedef struct Waiting:
        int64_t *time
        int64_t *value
        int64_t *row
        int64_t head
        int64_t tail
        int64_t room
    int64_t waiting_from(const Waiting *all)
    bint waiting_follow(const Waiting *all, const int64_t *time, int64_t n)
    bint waiting_add(
        Waiting *all, int64_t n, const int64_t *value, const int64_t *time, const int64_t *row
    )
    void waiting_drop(Waiting *all, int64_t n)
    void waiting_look(Waiting *all)
    bint times_in_order(const int64_t *time, int64_t n)
    int64_t times_expired(const int64_t *time, int64_t n, int64_t horizon)

cdef extern from "memory.h" nogil:
    size_t array_bytes(int64_t n)

cdef enum:
    TOGETHER = 256  # rows that are put at a time


cdef class ValueCells(Index):
    """Rows by the cell of their value; a range of values may touch at most 8 cells."""

    cdef Cells all
    cdef KeyLines rows  # by code of their cell
    cdef KeySpace space
    cdef bint begun
    cdef Waiting later

    def __cinit__(self, double width, bint real):
        memset(&self.all, 0, sizeof(Cells))
        memset(&self.later, 0, sizeof(Waiting))
        self.space = KeySpace()
        set_grid(&self.all.grid, width, real, self.space)
        self.rows = KeyLines()
        self.rows.keep_values()
        self.all.rows = &self.rows.all
        self.begun = False
        self.serve = cells_serve
        self.binds = True
        self.waits = True
        self.state = &self.all

    def __dealloc__(self):
        free(self.later.time)

    @property
    def nbytes(self):
        waiting = array_bytes(3 * self.later.room) if self.later.room else 0
        return <int64_t>(sizeof(Cells) + waiting) + self.rows.nbytes + self.space.nbytes

    cdef int put(
        self, int64_t n, const int32_t *code, const int64_t *const *value, const int64_t *time,
        const int64_t *row,
    ) except -1 nogil:
        """Add rows by one value: int64, or sortable doubles."""
        cdef int64_t now = n
        if time[n - 1] < self.rows.horizon and times_in_order(time, n):
            return 0  # all have expired: they need no cells
        if time[n - 1] > self.asked_until and waiting_follow(&self.later, time, n):
            now = self._before(time, n, self.asked_until)
            if not waiting_add(&self.later, n - now, value[0] + now, time + now, row + now):
                out_of_memory(b"rows of a band index", n - now)
            self.waiting_from = waiting_from(&self.later)
        return self._put_now(now, value[0], time, row)

    cdef int64_t _before(self, const int64_t *time, int64_t n, int64_t last) noexcept nogil:
        """How many of n times in order are up to ``last``."""
        return n if last == INT64_MAX else times_expired(time, n, last + 1)

    cdef int reach(self, int64_t time) except -1 nogil:
        cdef Waiting *later = &self.later
        cdef int64_t head = later.head
        cdef int64_t n = self._before(later.time + head, later.tail - head, time)
        waiting_drop(later, n)  # they stay where they are until others are added
        self.waiting_from = waiting_from(later)
        return self._put_now(n, later.value + head, later.time + head, later.row + head)

    cdef int _put_now(
        self, int64_t n, const int64_t *value, const int64_t *time, const int64_t *row
    ) except -1 nogil:
        cdef int32_t codes[TOGETHER]
        cdef int64_t cells[TOGETHER]
        cdef const int64_t *values
        cdef int64_t at = 0, some
        if n and not self.begun:
            grid_set_origin(&self.all.grid, value[0])
            self.begun = True
        while at < n:
            some = min(n - at, <int64_t>TOGETHER)
            grid_cells(&self.all.grid, value + at, some, cells)
            self.space.add_integers(some, cells, codes)
            self.rows.fetch(some, codes)
            values = value + at
            self.rows.put(some, codes, &values, time + at, row + at)
            at += some
        return 0

    cdef void forget(self, int64_t horizon) noexcept:
        self.rows.forget(horizon)
        waiting_drop(&self.later, times_expired(
            self.later.time + self.later.head, self.later.tail - self.later.head, horizon
        ))
        self.waiting_from = waiting_from(&self.later)

    def sweep(self):
        """Forget empty cells, and room that nobody waits in."""
        waiting_look(&self.later)
        self.space.sweep(self.rows.sweep())

    @property
    def n_keys(self):
        return self.space.used
