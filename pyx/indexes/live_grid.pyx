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
from windjoin.pyx.indexes.cache_lines cimport CacheLineIndex, CacheLines


cdef extern from "live_grid.h" nogil:
    ctypedef struct LiveGrid:
        Grid grid
        CacheLines *rows
    int live_grid_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out)

cdef extern from "deferred.h" nogil:
    ctypedef struct Deferred:
        int64_t *time
        int64_t *value
        int64_t *row
        int64_t head
        int64_t tail
        int64_t room
    int64_t deferred_from(const Deferred *all)
    bint deferred_follow(const Deferred *all, const int64_t *time, int64_t n)
    bint deferred_add(
        Deferred *all, int64_t n, const int64_t *value, const int64_t *time, const int64_t *row
    )
    void deferred_drop(Deferred *all, int64_t n)
    void deferred_look(Deferred *all)
    bint times_in_order(const int64_t *time, int64_t n)
    int64_t times_expired(const int64_t *time, int64_t n, int64_t horizon)

cdef extern from "memory.h" nogil:
    size_t array_bytes(int64_t n)

cdef enum:
    TOGETHER = 256  # rows that are put at a time


cdef class LiveBandGrid(Index):
    """Rows by the cell of their value; a range of values may touch at most 8 cells."""

    cdef LiveGrid all
    cdef CacheLineIndex rows  # by code of their cell
    cdef KeySpace space
    cdef bint begun
    cdef Deferred later

    def __cinit__(self, double width, bint real):
        memset(&self.all, 0, sizeof(LiveGrid))
        memset(&self.later, 0, sizeof(Deferred))
        self.space = KeySpace()
        set_grid(&self.all.grid, width, real, self.space)
        self.rows = CacheLineIndex()
        self.rows.keep_values()
        self.all.rows = &self.rows.all
        self.begun = False
        self.serve = live_grid_serve
        self.fills_bound = True
        self.defers = True
        self.state = &self.all

    def __dealloc__(self):
        free(self.later.time)

    @property
    def nbytes(self):
        waiting = array_bytes(3 * self.later.room) if self.later.room else 0
        return <int64_t>(sizeof(LiveGrid) + waiting) + self.rows.nbytes + self.space.nbytes

    cdef int insert(
        self, int64_t n, const int32_t *code, const int64_t *const *value, const int64_t *time,
        const int64_t *row,
    ) except -1 nogil:
        """Add rows by one value: int64, or sortable doubles."""
        cdef int64_t now = n
        if time[n - 1] < self.rows.horizon and times_in_order(time, n):
            return 0  # all have expired: they need no cells
        if time[n - 1] > self.probed_until and deferred_follow(&self.later, time, n):
            now = self._before(time, n, self.probed_until)
            if not deferred_add(&self.later, n - now, value[0] + now, time + now, row + now):
                out_of_memory(b"rows of a band index", n - now)
            self.deferred_from = deferred_from(&self.later)
        return self._put_now(now, value[0], time, row)

    cdef int64_t _before(self, const int64_t *time, int64_t n, int64_t last) noexcept nogil:
        """How many of n times in order are up to ``last``."""
        return n if last == INT64_MAX else times_expired(time, n, last + 1)

    cdef int catch_up(self, int64_t time) except -1 nogil:
        cdef Deferred *later = &self.later
        cdef int64_t head = later.head
        cdef int64_t n = self._before(later.time + head, later.tail - head, time)
        deferred_drop(later, n)  # they stay where they are until others are added
        self.deferred_from = deferred_from(later)
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
            values = value + at
            self.rows.insert(some, codes, &values, time + at, row + at)
            at += some
        return 0

    cdef void expire(self, int64_t horizon) noexcept:
        self.rows.expire(horizon)
        deferred_drop(&self.later, times_expired(
            self.later.time + self.later.head, self.later.tail - self.later.head, horizon
        ))
        self.deferred_from = deferred_from(&self.later)

    def compact(self):
        """Forget empty cells, and room that nobody waits in."""
        deferred_look(&self.later)
        self.space.compact(self.rows.compact())

    @property
    def n_keys(self):
        return self.space.used
