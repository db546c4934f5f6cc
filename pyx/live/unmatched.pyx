"""Which rows of a live stream have been in a result, and which of the others can be in none.

A bit per live row, by arrival number.  Rows come out in order of their times as soon as these are
before a horizon, however they arrived: rows that were overtaken wait in a heap, all others in the
order of their arrival.
"""
from libc.stdint cimport INT64_MIN, int64_t, uint8_t
from libc.stdlib cimport calloc, free, realloc

cimport numpy as cnp

import numpy as np

from windjoin.pyx.base.column cimport Ring
from windjoin.pyx.base.index cimport out_of_memory

cnp.import_array()

cdef enum:
    FIRST_ROWS = 1024
    FIRST_EARLY = 64


cdef class Unmatched:
    """Rows [first, tail) of one stream, by arrival number.

    first: rows before it are decided: they have been in a result, or have come out
    passed: newest time of those
    newest: of all rows
    """

    def __cinit__(self):
        self.bits = NULL
        self.heap = NULL
        self.room = self.first = self.tail = self.n_heap = self.heap_room = 0
        self.passed = self.newest = INT64_MIN

    def __dealloc__(self):
        free(self.bits)
        free(self.heap)

    @property
    def nbytes(self):
        """Bytes allocated."""
        return self.room // 8 + self.heap_room * sizeof(Early)

    def begin_at(self, int64_t first, int64_t passed):
        """Go on where another left off, which had decided all rows before the first; `admit` the
        others again, and `mark` them.
        """
        self.first = self.tail = first
        self.passed = self.newest = passed

    def admit(self, const int64_t[::1] times, usable):
        """Rows that arrive; usable: those that may be in a result, None: all of them."""
        cdef const uint8_t[::1] mask
        if usable is not None and len(usable):
            mask = usable.view(np.uint8)
        if times.shape[0]:
            self.take(times.shape[0], &times[0], NULL if usable is None else &mask[0])

    cdef int take(self, int64_t n, const int64_t *times, const uint8_t *usable) except -1:
        """The same of n rows where they lie; ``usable``: NULL if all may be."""
        cdef int64_t i, time
        self._need(self.tail + n - self.first)
        for i in range(n):
            if usable != NULL and not usable[i]:
                continue
            time = times[i]
            if time < self.newest or time == INT64_MIN:
                self._push(time, self.tail + i)
            else:
                self.newest = time
        self.tail += n
        return 0

    def mark(self, const int64_t[::1] rows):
        """These have been in a result."""
        cdef int64_t i, n = rows.shape[0]
        with nogil:
            for i in range(n):
                self._mark(rows[i])

    def mark_new(self, const int64_t[::1] rows):
        """The same; gives those that had not been, each once."""
        cdef int64_t i, row, n = rows.shape[0], found = 0
        new = np.empty(n, np.int64)
        cdef int64_t[::1] out = new
        with nogil:
            for i in range(n):
                row = rows[i]
                if row >= self.first and not self._has(row):
                    self._mark(row)
                    out[found] = row
                    found += 1
        return new[:found].copy()

    def has(self, const int64_t[::1] rows):
        """Which of some live rows have been in a result."""
        cdef int64_t i, n = rows.shape[0]
        marked = np.empty(n, np.bool_)
        cdef uint8_t[::1] out = marked.view(np.uint8)
        for i in range(n):
            out[i] = self._has(rows[i])
        return marked

    def before(self, Ring times, int64_t horizon, bint all_of_them=False):
        """Rows with time < ``horizon`` that have been in no result; they are decided now.

        times: of the rows; those that cannot be in a result have INT64_MIN there
        """
        cdef int64_t last
        cdef list early = []
        cdef Early one
        if horizon == INT64_MIN and not all_of_them:
            return np.empty(0, np.int64)
        while self.n_heap and (all_of_them or self.heap[0].time < horizon):
            one = self._pop()
            if not self._has(one.row):
                early.append(one.row)
                self._mark(one.row)  # it is decided before others that came before it
        last = self._until(times, horizon, all_of_them)
        rows = self._decide(times, last)
        return np.concatenate([np.array(early, np.int64), rows]) if early else rows

    cdef int64_t _until(self, Ring times, int64_t horizon, bint all_of_them) noexcept nogil:
        """The first row with a time at or after the horizon that no row before it overtook."""
        cdef const int64_t *time = <const int64_t *>times.column.data
        cdef int64_t mask = times.column.mask, row = self.first, at
        if all_of_them:
            return self.tail
        while row < self.tail:
            at = time[row & mask]
            if at >= horizon and at >= self.passed:
                break
            row += 1
        return row

    cdef object _decide(self, Ring times, int64_t last):
        """Of rows [first, last) those in no result that did not wait in the heap."""
        cdef const int64_t *time = <const int64_t *>times.column.data
        cdef int64_t mask = times.column.mask, row, at, found = 0
        cdef cnp.npy_intp most = last - self.first
        cdef object rows = cnp.PyArray_EMPTY(1, &most, cnp.NPY_INT64, 0)
        cdef int64_t *out = <int64_t *>cnp.PyArray_DATA(rows)
        with nogil:
            for row in range(self.first, last):
                at = time[row & mask]
                if at == INT64_MIN or at < self.passed:
                    continue
                self.passed = at
                if not self._has(row):
                    out[found] = row
                    found += 1
            for row in range(self.first, last):
                at = row & (self.room - 1)
                self.bits[at >> 3] &= <uint8_t>~(1 << (at & 7))
        self.first = last
        return rows[:found].copy() if found < most else rows

    cdef void _mark(self, int64_t row) noexcept nogil:
        cdef int64_t at = row & (self.room - 1)
        if row >= self.first:
            self.bits[at >> 3] |= <uint8_t>(1 << (at & 7))

    cdef bint _has(self, int64_t row) noexcept nogil:
        cdef int64_t at = row & (self.room - 1)
        return (self.bits[at >> 3] >> (at & 7)) & 1

    cdef int _need(self, int64_t rows) except -1:
        """Let there be bits for so many rows, and not for very many more."""
        cdef int64_t room = FIRST_ROWS, row, at, to
        cdef uint8_t *bits
        if rows <= self.room <= max(<int64_t>FIRST_ROWS, 16 * rows):
            return 0
        while room < 2 * rows:
            room *= 2
        bits = <uint8_t *>calloc(room // 8, 1)
        if bits == NULL:
            out_of_memory(b"unmatched rows", rows)
        for row in range(self.first, self.tail):
            at, to = row & (self.room - 1), row & (room - 1)
            bits[to >> 3] |= <uint8_t>(((self.bits[at >> 3] >> (at & 7)) & 1) << (to & 7))
        free(self.bits)
        self.bits, self.room = bits, room
        return 0

    # -- the rows that were overtaken, the earliest on top ----------------------------------------

    cdef int _push(self, int64_t time, int64_t row) except -1:
        cdef int64_t at = self.n_heap, above, room
        cdef void *grown
        if at == self.heap_room:
            room = max(<int64_t>FIRST_EARLY, 2 * at)
            grown = realloc(self.heap, room * sizeof(Early))
            if grown == NULL:
                out_of_memory(b"unmatched rows", room)
            self.heap, self.heap_room = <Early *>grown, room
        self.n_heap += 1
        while at:
            above = (at - 1) // 2
            if self.heap[above].time <= time:
                break
            self.heap[at] = self.heap[above]
            at = above
        self.heap[at].time, self.heap[at].row = time, row
        return 0

    cdef Early _pop(self) noexcept nogil:
        cdef Early top = self.heap[0], last
        cdef int64_t at = 0, below
        self.n_heap -= 1
        last = self.heap[self.n_heap]
        while True:
            below = 2 * at + 1
            if below >= self.n_heap:
                break
            if below + 1 < self.n_heap and self.heap[below + 1].time < self.heap[below].time:
                below += 1
            if self.heap[below].time >= last.time:
                break
            self.heap[at] = self.heap[below]
            at = below
        self.heap[at] = last
        return top
