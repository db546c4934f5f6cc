"""Rows of a stream that are joined later, on hosts or once nothing earlier can come.

They are stored as they come; what joins them is told their times and numbers.
"""
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

cimport numpy as cnp

from windjoin.pyx.live.silence cimport Silence
from windjoin.pyx.live.store cimport Watermark
from windjoin.pyx.live.store_step cimport rows_in_order

cnp.import_array()


cdef object _copied(const int64_t *values, int64_t n):
    """Values as an array of their own."""
    cdef cnp.npy_intp length = n
    array = cnp.PyArray_SimpleNew(1, &length, cnp.NPY_INT64)
    memcpy(cnp.PyArray_DATA(array), values, n * sizeof(int64_t))
    return array


cdef class StreamStorer(StoreStep):
    """Stores the rows of one stream for whoever joins them."""

    def __init__(self, int number, stores, clocks, give, Silence silence=None):
        """``give``: told the stream, times and numbers of usable rows in order of time, the number
        of the first row of all and how many there are; gives results.
        """
        StoreStep.__init__(self, number, stores, clocks, silence)
        self.give = give

    cdef bint take(self, Arrived *rows, list varlen) except -1:
        cdef int64_t first = self.own.extent.tail, i
        cdef Watermark clock = <Watermark>self.clocks[self.number]
        if rows.n == 0 or not clock.in_order(rows.n, rows.time):
            return False
        self.own.need_room(rows.n)
        if rows.n > self.room:
            self._need_room(rows.n)
        self._encode(rows)
        for i in range(rows.n):
            self.row_room[i] = first + i
        rows.row = self.row_room
        self.own.write(rows)
        if varlen:
            self._store_varlen(first, varlen)
        self._hand_over(rows, first, rows.n, rows.time[rows.n - 1])
        return True

    cdef int take_some(
        self, Arrived *all, list varlen_rows, const uint8_t *usable, bint ordered, int64_t newest
    ) except -1:
        cdef Arrived rows
        cdef int64_t first = self.own.extent.tail
        cdef int k
        pick = None if usable == NULL and ordered else rows_in_order(all, usable, ordered)
        _memory = self._pick(all, pick, usable, &rows)
        self.own.need_room(all.n)
        for k in range(len(varlen_rows)):
            starts, lengths, content = varlen_rows[k]
            self.own.write_varlen(k, first, starts, lengths, content)
        self.own.write(all)
        return self._hand_over(&rows, first, all.n, newest)

    cdef int _hand_over(
        self, const Arrived *rows, int64_t first, int64_t n, int64_t newest
    ) except -1:
        """All rows from number ``first`` on are here; ``rows``: those that are to be joined."""
        cdef Watermark clock = <Watermark>self.clocks[self.number]
        clock.newest = max(clock.newest, newest)
        if self.silence is not None:
            self.silence.heard(self.number if n else -1)
        self.own.counts.rows_in += n
        self.given = self.give(
            self.number, _copied(rows.time, rows.n), _copied(rows.row, rows.n), first, n
        )
        return 0
