"""The tasks of aligned routing, and which of them want a segment.  Unchecked: see `diffusion.atr`.

A task is a box: a host, the number of its mark, and per stream a range ``low <= t < high``.
"""

import numpy as np

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from windjoin.pyx.routing.named cimport named, plain, put
from windjoin.pyx.routing.segment_table cimport members, set_bit


cdef class TaskTable:
    """Tasks in the order they were added; those that ended leave room in front."""

    cdef readonly int streams
    cdef Py_ssize_t first, behind, room
    cdef int64_t[::1] host, mark, end
    cdef int64_t[:, ::1] low, high  # [stream, task]
    cdef int64_t[::1] pieces  # of the segment asked for: tasks that want some of it
    cdef int64_t[::1] cuts  # of the pieces of one host
    cdef int64_t[::1] wanted  # per host: marks of tasks that want all of the segment
    cdef char[::1] parted  # per host: whether a task there wants some of it
    cdef uint64_t[::1] touched  # hosts that get any of it
    cdef type part  # (host, start, stop, marks, groups)

    def __init__(self, int streams, type part):
        self.streams, self.part = streams, part
        self.room = 0
        self.host = self.mark = self.end = self.pieces = np.zeros(0, np.int64)
        self.cuts = np.zeros(0, np.int64)
        self.low = self.high = np.zeros((streams, 0), np.int64)
        self.wanted = np.zeros(0, np.int64)
        self._grow_hosts(0)

    def __len__(self):
        return self.behind - self.first

    def add(self, int64_t host, int64_t mark, low, high):
        """One more task; it ends with the last of its ranges."""
        cdef int stream
        cdef Py_ssize_t at
        if self.behind == self.room:
            self._make_room()
        if host >= self.wanted.shape[0]:
            self._grow_hosts(host)
        at = self.behind
        self.host[at], self.mark[at], self.end[at] = host, mark, high[0]
        for stream in range(self.streams):
            self.low[stream, at], self.high[stream, at] = low[stream], high[stream]
            self.end[at] = max(self.end[at], self.high[stream, at])
        self.behind += 1

    def clear(self):
        """No tasks."""
        self.first = self.behind = 0

    def rehome(self, Py_ssize_t position, int64_t host):
        """Another host takes a task over."""
        if host >= self.wanted.shape[0]:
            self._grow_hosts(host)
        self.host[self.first + position] = host

    def expire(self, int64_t watermark):
        """Forget tasks that end at or before the watermark."""
        cdef Py_ssize_t at, kept
        cdef int stream
        while self.first < self.behind and self.end[self.first] <= watermark:
            self.first += 1
        kept = self.first
        for at in range(self.first, self.behind):
            if self.end[at] <= watermark:
                continue
            if kept < at:
                self.host[kept], self.mark[kept] = self.host[at], self.mark[at]
                self.end[kept] = self.end[at]
                for stream in range(self.streams):
                    self.low[stream, kept] = self.low[stream, at]
                    self.high[stream, kept] = self.high[stream, at]
            kept += 1
        self.behind = kept

    def ends_after(self, int64_t host, int64_t watermark):
        """Whether a host has a task that ends after the watermark."""
        cdef Py_ssize_t at
        for at in range(self.first, self.behind):
            if self.host[at] == host and self.end[at] > watermark:
                return True
        return False

    def dump(self):
        """[host, mark, low, high] of each."""
        cdef Py_ssize_t at
        low, high = np.asarray(self.low), np.asarray(self.high)
        return [
            [self.host[at], self.mark[at], low[:, at].tolist(), high[:, at].tolist()]
            for at in range(self.first, self.behind)
        ]

    # -- who wants a segment ------------------------------------------------------------------

    def parts(self, int stream, int64_t start, int64_t stop):
        """What each host gets of a segment: parts by host and time, hosts, time in all parts.

        Parts of a host are disjoint, with the marks of all tasks that want them.
        """
        cdef int64_t host, low, high, total = 0
        cdef Py_ssize_t at, n = 0
        memset(&self.touched[0], 0, self.touched.shape[0] * sizeof(uint64_t))
        for at in range(self.first, self.behind):
            low, high, host = self.low[stream, at], self.high[stream, at], self.host[at]
            if low >= stop or start >= high or low >= high:
                continue
            set_bit(&self.touched[0], host)
            if low <= start and stop <= high:
                self.wanted[host] |= <int64_t>1 << self.mark[at]
            else:
                self.pieces[n] = at
                self.parted[host] = True
                n += 1
        hosts = members(&self.touched[0], <int>self.touched.shape[0])
        parts = []
        for host in hosts:
            if self.parted[host]:
                total += self._sweep(parts, stream, host, start, stop, n)
                self.parted[host] = False
            else:
                parts.append(self._part(host, start, stop, self.wanted[host]))
                total += stop - start
            self.wanted[host] = 0
        return tuple(parts), hosts, total

    cdef int64_t _sweep(
        self, list parts, int stream, int64_t host, int64_t start, int64_t stop, Py_ssize_t n
    ) except -1:
        """Parts of a host some of whose tasks want less than all; returns their time."""
        cdef Py_ssize_t i, k, at, n_cuts = 2
        cdef int64_t marks, opened = start, carried = 0, total = 0
        self.cuts[0], self.cuts[1] = start, stop
        for i in range(n):
            at = self.pieces[i]
            if self.host[at] == host:
                n_cuts = self._cut(n_cuts, self.low[stream, at])
                n_cuts = self._cut(n_cuts, self.high[stream, at])
        for k in range(n_cuts - 1):
            marks = self.wanted[host]
            for i in range(n):
                at = self.pieces[i]
                if (
                    self.host[at] == host
                    and self.low[stream, at] <= self.cuts[k]
                    and self.high[stream, at] >= self.cuts[k + 1]
                ):
                    marks |= <int64_t>1 << self.mark[at]
            if marks != carried:
                if carried:
                    parts.append(self._part(host, opened, self.cuts[k], carried))
                opened, carried = self.cuts[k], marks
            if marks:
                total += self.cuts[k + 1] - self.cuts[k]
        if carried:
            parts.append(self._part(host, opened, stop, carried))
        return total

    cdef Py_ssize_t _cut(self, Py_ssize_t n, int64_t cut) noexcept:
        """One more cut, in order, if it lies between the first and the last and is new."""
        cdef Py_ssize_t i, at = n - 1
        if cut <= self.cuts[0] or cut >= self.cuts[n - 1]:
            return n
        while self.cuts[at - 1] > cut:
            at -= 1
        if self.cuts[at - 1] == cut:
            return n
        for i in range(n, at, -1):
            self.cuts[i] = self.cuts[i - 1]
        self.cuts[at] = cut
        return n + 1

    cdef object _part(self, int64_t host, int64_t start, int64_t stop, int64_t marks):
        part = named(self.part, 5)
        put(part, 0, host)
        put(part, 1, start)
        put(part, 2, stop)
        put(part, 3, marks)
        put(part, 4, ())
        plain(part)
        return part

    # -- room ---------------------------------------------------------------------------------

    cdef int _make_room(self) except -1:
        """At least as much behind the tasks as they take; they move to the front."""
        cdef Py_ssize_t first = self.first, n = self.behind - self.first
        self.room = max(64, 2 * n)
        self.host = self._moved(self.host, first, n)
        self.mark = self._moved(self.mark, first, n)
        self.end = self._moved(self.end, first, n)
        self.low = self._moved(self.low, first, n)
        self.high = self._moved(self.high, first, n)
        self.pieces = np.zeros(self.room, np.int64)
        self.cuts = np.zeros(2 * self.room + 2, np.int64)
        self.first, self.behind = 0, n
        return 0

    def _moved(self, column, Py_ssize_t first, Py_ssize_t n):
        old = np.asarray(column)
        new = np.zeros((*old.shape[:old.ndim - 1], self.room), np.int64)
        new[..., :n] = old[..., first:first + n]
        return new

    cdef int _grow_hosts(self, int64_t host) except -1:
        """Room for host numbers up to ``host``."""
        words = host // 64 + 1
        self.wanted = np.zeros(64 * words, np.int64)
        self.parted = np.zeros(64 * words, np.int8)
        self.touched = np.zeros(words, np.uint64)
        return 0
