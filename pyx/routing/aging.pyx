"""Rows of a stream on their way round a ring of hosts.  Unchecked: see `diffusion.psp`."""

import numpy as np

from libc.stdint cimport int64_t

from windjoin.pyx.routing.named cimport named, plain, put


cdef class AgingRows:
    """Which stretch of time lies at which host, oldest first, and where it has to be by its age."""

    cdef Py_ssize_t n
    cdef int64_t[:, ::1] held, renewed  # [stretch]: host, start, stop
    cdef int64_t[::1] slice_host, slice_age, rank  # oldest slice first; rank by host: 0 is the head
    cdef type move  # (stream, start, stop, source, target, marks, groups, keep)

    def __init__(self, type move):
        self.move = move
        self.held = np.zeros((16, 3), np.int64)
        self.renewed = np.zeros((16, 3), np.int64)
        self.slice_host = self.slice_age = self.rank = np.zeros(0, np.int64)

    def __len__(self):
        return self.n

    def set_slices(self, hosts, ages):
        """The ring, head first; host i has rows less than ``ages[i]`` old, the last all others."""
        self.slice_host = np.ascontiguousarray(hosts[::-1], np.int64)
        self.slice_age = np.ascontiguousarray(ages[::-1], np.int64)
        rank = np.zeros(max(hosts) + 1, np.int64)
        rank[hosts] = np.arange(len(hosts))
        self.rank = rank

    def add(self, int64_t host, int64_t start, int64_t stop):
        """Rows that are newer than all others; False if they are there already."""
        if self.n and self.held[self.n - 1, 2] >= stop:
            return False
        self.n = self._extend(self.held, self.n, host, start, stop)
        if self.n == self.held.shape[0]:
            self._grow(2 * self.n)
        return True

    def expire(self, int64_t horizon):
        """Drop what is before it."""
        cdef Py_ssize_t i, kept = 0
        for i in range(self.n):
            if self.held[i, 2] <= horizon:
                continue
            self.held[kept, 0] = self.held[i, 0]
            self.held[kept, 1] = max(self.held[i, 1], horizon)
            self.held[kept, 2] = self.held[i, 2]
            kept += 1
        self.n = kept

    def holds(self, int64_t host):
        """Whether anything lies at the host."""
        cdef Py_ssize_t i
        for i in range(self.n):
            if self.held[i, 0] == host:
                return True
        return False

    def dump(self):
        """(host, start, stop) of each stretch."""
        return [(self.held[i, 0], self.held[i, 1], self.held[i, 2]) for i in range(self.n)]

    def fill(self, stretches):
        """The way back from `dump`."""
        self.n = len(stretches)
        self._grow(max(16, 2 * self.n))
        np.asarray(self.held)[:self.n] = np.array(stretches, np.int64).reshape(-1, 3)

    def settle(self, int stream, int64_t now, int64_t never, int64_t forever, bint onward):
        """Everything to the host of its slice; ``onward``: but never back towards the head.

        Returns the moves.
        """
        cdef Py_ssize_t i, k, first = 0, n = 0, slices = self.slice_host.shape[0]
        cdef int64_t host, target, low, high, start, stop
        if self.renewed.shape[0] < self.n + slices + 1:
            self.renewed = np.zeros((2 * (self.n + slices + 1), 3), np.int64)
        number = stream
        moves = []
        for i in range(self.n):
            host, start, stop = self.held[i, 0], self.held[i, 1], self.held[i, 2]
            while first < slices and self._slice_stop(first, now, forever) <= start:
                first += 1
            k = first
            while k < slices and self._slice_start(k, now, never) < stop:
                low = max(self._slice_start(k, now, never), start)
                high = min(self._slice_stop(k, now, forever), stop)
                target = self.slice_host[k]
                k += 1
                if low >= high:
                    continue
                if onward and self.rank[target] < self.rank[host]:
                    target = host
                if target != host:
                    moves.append(self._move(number, low, high, host, target))
                n = self._extend(self.renewed, n, target, low, high)
        self.held, self.renewed, self.n = self.renewed, self.held, n
        return moves

    cdef object _move(
        self, object stream, int64_t start, int64_t stop, int64_t source, int64_t target
    ):
        move = named(self.move, 8)
        put(move, 0, stream)
        put(move, 1, start)
        put(move, 2, stop)
        put(move, 3, source)
        put(move, 4, target)
        put(move, 5, 1)
        put(move, 6, ())
        put(move, 7, False)
        plain(move)
        return move

    cdef int64_t _slice_start(self, Py_ssize_t k, int64_t now, int64_t never) noexcept:
        return never if k == 0 else now - self.slice_age[k]

    cdef int64_t _slice_stop(self, Py_ssize_t k, int64_t now, int64_t forever) noexcept:
        return forever if k + 1 == self.slice_host.shape[0] else now - self.slice_age[k + 1]

    cdef Py_ssize_t _extend(
        self, int64_t[:, ::1] into, Py_ssize_t n, int64_t host, int64_t start, int64_t stop
    ) noexcept:
        """Append a stretch, joined with the last one where they touch at one host."""
        if n and into[n - 1, 0] == host and into[n - 1, 2] == start:
            into[n - 1, 2] = stop
            return n
        into[n, 0], into[n, 1], into[n, 2] = host, start, stop
        return n + 1

    def _grow(self, Py_ssize_t room):
        held = np.zeros((room, 3), np.int64)
        held[:min(self.n, len(self.held))] = np.asarray(self.held)[:self.n]
        self.held = held
