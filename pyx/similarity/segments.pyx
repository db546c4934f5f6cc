"""Images and other byte arrays in blocks, with means of segments.

Unchecked: enter through ``kernels.images``.
"""
from libc.stdint cimport int32_t, int64_t, intptr_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

import numpy as np

from windjoin.pyx.similarity.blocks cimport Blocks, RowIndex
from windjoin.pyx.base.index cimport Cursor, Pairs, Probe, out_of_memory
from windjoin.pyx.similarity.measures cimport Components


cdef extern from "<stdlib.h>" nogil:
    void *aligned_alloc(size_t alignment, size_t size)

cdef extern from "segments.h" nogil:
    const int MOST_TOGETHER, MOST_LAG, LEAST_SIZE, MOST_SIZE, STEP_SIZE
    ctypedef struct Looseness:
        int64_t rest
        int64_t spread
    ctypedef struct Cut:
        int64_t stride
    ctypedef struct ImageProbe:
        pass
    ctypedef struct SegmentContent:
        pass
    ctypedef struct Segments:
        Blocks blocks
        int64_t width
        Cut cut
        uint8_t *means
        ImageProbe *probing
    int64_t unlike(const uint8_t *at, int64_t n, int64_t lag)
    int cut_shape(Cut *c, int64_t width, int64_t lag, int64_t size)
    int64_t cut_bytes(const Cut *c)
    void cut_free(Cut *c)
    Looseness row_means(const Cut *c, const uint8_t *at, uint8_t *mean)
    int segments_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out)
    void segments_insert(Segments *s, Components row, int64_t time, int64_t number)


cdef int64_t SAMPLE = 8  # rows that say how channels and segments lie


cdef class ByteSegments(RowIndex):
    """Byte arrays; all but a few of one length."""

    cdef Segments all
    cdef int64_t lag
    cdef int64_t size

    def __cinit__(self):
        memset(&self.all, 0, sizeof(Segments))
        self.all.width = -1
        self.match_set_by(segments_serve, &self.all, &self.all.blocks, 1024)
        self.content_bytes = sizeof(SegmentContent)
        self.least_room = 16

    def __dealloc__(self):
        self._free_room()
        cut_free(&self.all.cut)

    cdef void _free_room(self) noexcept:
        free(self.all.means)
        free(self.all.probing)

    @staticmethod
    def load(varlen_rows, const int64_t[::1] times, int64_t first=0):
        """Index of rows first, first + 1, ... in time order."""
        self = ByteSegments()
        start, length = varlen_rows
        self.insert_arrays((length, [start]), times, np.arange(first, first + len(times)))
        return self

    @property
    def shape(self):
        """(bytes between neighbours of a channel, bytes in a segment); None: not known yet."""
        if self.all.width < 0:
            return None
        return self.lag, self.size

    cdef int begin(
        self, const int64_t[::1] start, const int32_t[::1] length, int64_t width
    ) except -1:
        """The first rows say how far apart like bytes lie, and how long they stay alike."""
        cdef int64_t i, n = start.shape[0], step = max(n // SAMPLE, 1)
        cdef list few = [start[i] for i in range(0, n, step) if length[i] == width]
        self.lag = _channels(few, width)
        self.size = self._longest(few, width)
        self._shape(width, self.size)
        self.row_bytes = self.all.cut.stride
        self._free_room()  # of a beginning that found no memory
        self.all.means = <uint8_t *>calloc(MOST_TOGETHER, self.row_bytes + 1)
        self.all.probing = <ImageProbe *>aligned_alloc(64, MOST_TOGETHER * sizeof(ImageProbe))
        if self.all.means == NULL or self.all.probing == NULL:
            out_of_memory(b"bytes of means", MOST_TOGETHER * self.row_bytes)
        self.held += MOST_TOGETHER * (self.row_bytes + sizeof(ImageProbe))
        self.held += cut_bytes(&self.all.cut)
        self.all.width = width
        return 0

    cdef int _shape(self, int64_t width, int64_t size) except -1:
        if not cut_shape(&self.all.cut, width, self.lag, size):
            out_of_memory(b"bytes to cut rows in", width)
        return 0

    cdef int64_t _longest(self, list rows, int64_t width) except -1:
        """The size of segments that costs least: bytes of means, and what they do not follow."""
        cdef int64_t size
        cdef dict spread = {}
        for size in range(LEAST_SIZE, MOST_SIZE + 1, STEP_SIZE):
            self._shape(width, size)
            means = np.empty(self.all.cut.stride + 1, np.uint8)
            spread[size] = self._spread(rows, means)
        whole = max(spread.values()) or 1
        return min(spread, key=lambda size: 1 / size + spread[size] / whole)

    cdef int64_t _spread(self, list rows, uint8_t[::1] means) except -1:
        cdef int64_t at, sum = 0
        for at in rows:
            sum += row_means(&self.all.cut, <const uint8_t *><intptr_t>at, &means[0]).spread
        return sum

    cdef void put_row(self, Components row, int64_t time, int64_t number) noexcept nogil:
        segments_insert(&self.all, row, time, number)


cdef int64_t _channels(list rows, int64_t width):
    """How far apart bytes lie that are most alike."""
    cdef int64_t at, lag, best = 1
    cdef int64_t apart[8]
    for lag in range(1, MOST_LAG + 1):
        apart[lag] = 0
        for at in rows:
            apart[lag] += unlike(<const uint8_t *><intptr_t>at, width, lag)
        if 10 * apart[lag] < 9 * apart[best]:  # clearly more alike
            best = lag
    return best
