"""Greedy weighted minimum set cover, on its own: `cover.h` behind arrays.  Unchecked."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy
from libc.time cimport clock, clock_t, CLOCKS_PER_SEC


cdef class CoverProblem:
    """Which of some hosts hold all of some segments?  Bitsets of both views, and scratch."""

    cdef wj_cover problem
    cdef object arrays
    cdef uint64_t[::1] need
    cdef uint64_t[::1] left
    cdef int32_t[::1] chosen

    def __init__(self, held, weights):
        """``held[h, s]``: host h holds segment s; ``weights``: whole numbers 1 .. 1024."""
        cdef int hosts = held.shape[0], segments = held.shape[1]
        cdef const uint64_t[:, ::1] by_host = _packed(held)
        cdef const uint64_t[:, ::1] by_segment = _packed(held.T)
        cdef const double[::1] weight = np.ascontiguousarray(weights, dtype=np.float64)
        cdef int32_t[::1] count = np.zeros(hosts, np.int32)
        cdef int64_t[::1] key = np.zeros(hosts, np.int64)
        self.need = _packed(np.ones((1, segments), bool))[0]
        self.left = np.zeros_like(self.need)
        self.chosen = np.zeros(hosts, np.int32)
        self.arrays = by_host, by_segment, weight, count, key
        self.problem = wj_cover(
            hosts=hosts, host_words=by_segment.shape[1], first_word=0,
            last_word=by_host.shape[1] - 1, words=by_host.shape[1], held=&by_host[0, 0],
            holders=&by_segment[0, 0], weight=&weight[0], count=&count[0], key=&key[0], random=NULL,
        )

    def cover(self):
        """The chosen hosts in order of choice, or None if a segment is held by nobody."""
        cdef int n = self._cover()
        return None if n < 0 else [self.chosen[i] for i in range(n)]

    def seconds(self, int rounds):
        """CPU seconds of one cover, over that many: what a call costs is not in it."""
        cdef int _
        cdef clock_t start = clock()
        with nogil:
            for _ in range(rounds):
                self._cover()
        return (clock() - start) / <double>CLOCKS_PER_SEC / rounds

    cdef int _cover(self) noexcept nogil:
        memcpy(&self.left[0], &self.need[0], self.need.shape[0] * sizeof(uint64_t))
        return wj_cover_greedy(&self.problem, &self.left[0], &self.chosen[0])


def _packed(bits):
    """Rows of booleans as rows of 64-bit words."""
    rows, columns = bits.shape
    padded = np.zeros((rows, max(1, (columns + 63) // 64) * 64), dtype=bool)
    padded[:, :columns] = bits
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)
