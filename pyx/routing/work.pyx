"""Work in flight and the load that it makes.  Unchecked: `windjoin.diffusion.load` is the door."""

from collections import deque

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int64_t


cdef class WorkBook:
    """Per host number: what was reported, what was assigned since, and the load of both.

    Work is ``(due, hosts, rows, bytes)``, in the order it was assigned.
    """

    cdef readonly int size
    cdef readonly object pending
    cdef int64_t[::1] rows, bytes  # in flight
    cdef int64_t[:, ::1] overdue  # the part of these that the next report covers: rows, bytes
    cdef double[::1] base, per_row, per_byte

    def __cinit__(self):
        self.pending = deque()
        self.rows = self.bytes = np.zeros(0, np.int64)
        self.overdue = np.zeros((0, 2), np.int64)
        self.base = self.per_row = self.per_byte = np.zeros(0)

    def grow(self, int size):
        """Room for host numbers below ``size``; new ones have no host."""
        cdef int more = size - self.size
        self.rows = np.concatenate([self.rows, np.zeros(more, np.int64)])
        self.bytes = np.concatenate([self.bytes, np.zeros(more, np.int64)])
        self.overdue = np.concatenate([self.overdue, np.zeros((more, 2), np.int64)])
        self.base = np.concatenate([self.base, np.full(more, INFINITY)])
        self.per_row = np.concatenate([self.per_row, np.zeros(more)])
        self.per_byte = np.concatenate([self.per_byte, np.zeros(more)])
        self.size = size

    def start(self, int host, int64_t rows, int64_t bytes, double per_row, double per_byte):
        """A host joins with that much work to be covered, and what a row and a byte load it."""
        self.rows[host] = self.overdue[host, 0] = rows
        self.bytes[host] = self.overdue[host, 1] = bytes
        self.per_row[host], self.per_byte[host] = per_row, per_byte

    def charge(self, int host, double per_row, double per_byte):
        """What a row and a byte load a host was measured anew."""
        self.per_row[host], self.per_byte[host] = per_row, per_byte

    def set_base(self, int host, double load):
        """The load that a host reported; infinite where there is none."""
        self.base[host] = load

    def overdue_of(self, int host):
        """Rows and bytes that its next report covers."""
        return self.overdue[host, 0], self.overdue[host, 1]

    def dump(self):
        """``overdue``, as lists."""
        return np.asarray(self.overdue).tolist()

    def fill(self, overdue):
        """The way back from `dump`; nothing is pending."""
        self.overdue = np.array(overdue, np.int64).reshape(-1, 2)
        self.rows = np.asarray(self.overdue)[:, 0].copy()
        self.bytes = np.asarray(self.overdue)[:, 1].copy()

    # -- work ---------------------------------------------------------------------------------

    def assign(self, tuple hosts, int64_t rows, int64_t bytes, due):
        """Every one of ``hosts`` gets that much."""
        cdef int host
        for host in hosts:
            self.rows[host] += rows
            self.bytes[host] += bytes
        self.pending.append((due, hosts, rows, bytes))

    def settle(self, now):
        """What is due by ``now``, from the front, is covered by any report to come."""
        cdef int host
        cdef int64_t rows, bytes
        while self.pending and self.pending[0][0] <= now:
            _, hosts, rows, bytes = self.pending.popleft()
            for host in hosts:
                self.overdue[host, 0] += rows
                self.overdue[host, 1] += bytes

    def cover(self, now, hosts):
        """These hosts reported: their work due by ``now`` is part of that."""
        cdef int host
        cdef int64_t rows, bytes
        cdef char[::1] reported = np.zeros(self.size, np.int8)
        for host in hosts:
            reported[host] = 1
            self.rows[host] -= self.overdue[host, 0]
            self.bytes[host] -= self.overdue[host, 1]
            self.overdue[host, 0] = self.overdue[host, 1] = 0
        kept = deque()
        for entry in self.pending:
            due, targets, rows, bytes = <tuple>entry
            if due > now:
                kept.append(entry)
                continue
            left = []
            for host in <tuple>targets:
                if reported[host]:
                    self.rows[host] -= rows
                    self.bytes[host] -= bytes
                else:
                    left.append(host)
            if left:
                kept.append((due, tuple(left), rows, bytes))
        self.pending = kept

    # -- load ---------------------------------------------------------------------------------

    cdef double _load(self, int host) noexcept:
        cdef double load = self.base[host] + self.rows[host] * self.per_row[host]
        return load + self.bytes[host] * self.per_byte[host]

    def loads(self, int64_t rows=0):
        """Of every host number; with ``rows`` more at each, against what they cost the fastest."""
        cdef int host
        cdef double cheapest = INFINITY
        loads = np.empty(self.size)
        cdef double[::1] into = loads
        if rows:
            for host in range(self.size):
                if self.base[host] < INFINITY:
                    cheapest = min(cheapest, self.per_row[host])
        for host in range(self.size):
            into[host] = self._load(host)
            if rows and self.base[host] < INFINITY:
                into[host] += rows * (self.per_row[host] - cheapest)
        return loads

    def least(self, list hosts, int64_t rows=0, int64_t bytes=0):
        """The least loaded of some hosts with so much more, the first of them if several are."""
        cdef int host, best = hosts[0]
        cdef double load, lowest = INFINITY
        for host in hosts:
            load = self._load(host) + rows * self.per_row[host] + bytes * self.per_byte[host]
            if load < lowest:
                best, lowest = host, load
        return best
