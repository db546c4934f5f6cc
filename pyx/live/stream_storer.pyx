"""Rows of a stream that are joined later, on hosts or once nothing earlier can come.

They are stored as they come; what joins them is told their times and numbers.
"""
from libc.stdint cimport INT64_MAX, int64_t, uint8_t

cimport numpy as cnp

import numpy as np

from windjoin.pyx.base.column cimport copied
from windjoin.pyx.live.silence cimport Silence
from windjoin.pyx.live.store cimport Watermark
from windjoin.pyx.live.store_step cimport rows_in_order

cnp.import_array()


cdef class StreamStorer(StoreStep):
    """Stores the rows of one stream for whoever joins them."""

    def __init__(self, int number, stores, clocks, give, Silence silence=None, int added=0):
        """``give``: told the stream, times and numbers of usable rows in order of time, the number
        of the first row of all and how many there are; gives results.

        added: columns of the store that no table has: times, and others with the greatest time
        """
        StoreStep.__init__(self, number, stores, clocks, silence)
        self.give, self.added = give, added

    cdef bint take(self, Arrived *rows, list varlen) except -1:
        cdef int64_t first = self.own.extent.tail
        cdef Watermark clock = <Watermark>self.clocks[self.number]
        if rows.n == 0 or not clock.in_order(rows.n, rows.time):
            return False
        self.own.need_room(rows.n)
        _last = self._add_columns(rows)
        self._keep(rows, varlen)
        self._hand_over(
            copied(rows.time, rows.n, cnp.NPY_INT64), copied(rows.row, rows.n, cnp.NPY_INT64),
            first, rows.n, rows.time[rows.n - 1],
        )
        return True

    cdef int take_some(
        self, Arrived *all, list varlen_rows, const uint8_t *usable, bint ordered, int64_t newest
    ) except -1:
        cdef Arrived rows
        cdef int64_t first = self.own.extent.tail
        cdef int k
        pick = None if usable == NULL and ordered else rows_in_order(all, usable, ordered)
        times = numbers = None
        if all.counted != NULL:
            numbers = rows_in_order(all, all.counted, ordered)
            times = copied(all.time, all.n, cnp.NPY_INT64)[numbers]
            numbers += first
        _last = self._add_columns(all)
        _memory = self._pick(all, pick, usable, &rows)
        if times is None:
            times = copied(rows.time, rows.n, cnp.NPY_INT64)
            numbers = copied(rows.row, rows.n, cnp.NPY_INT64)
        self.own.need_room(all.n)
        for k in range(len(varlen_rows)):
            starts, lengths, content = varlen_rows[k]
            self.own.write_varlen(k, first, starts, lengths, content)
        self.own.write(all)
        return self._hand_over(times, numbers, first, all.n, newest)

    cdef object _add_columns(self, Arrived *rows):
        """Point to the columns that no table has, which what comes back owns."""
        cdef int k = self.own.n_columns - self.added
        if not self.added:
            return None
        last = np.full(rows.n, INT64_MAX, np.int64)
        rows.column[k] = rows.time
        for k in range(k + 1, self.own.n_columns):
            rows.column[k] = <const int64_t *>cnp.PyArray_DATA(last)
        return last

    cdef int _hand_over(
        self, times, numbers, int64_t first, int64_t n, int64_t newest
    ) except -1:
        """All rows from number ``first`` on are here; ``numbers``: those that are to be joined."""
        cdef Watermark clock = <Watermark>self.clocks[self.number]
        clock.newest = max(clock.newest, newest)
        if self.silence is not None:
            self.silence.heard(self.number if n else -1)
        self.own.counts.rows_in += n
        self.given = self.give(self.number, times, numbers, first, n)
        return 0
