"""Images and other byte arrays in blocks, with means of segments.

Unchecked: enter through ``kernels.images``.
"""
from libc.stdint cimport int32_t, int64_t, intptr_t, uint8_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

import numpy as np

from windjoin.pyx.blocks cimport Block, BlockIndex, Blocks
from windjoin.pyx.index cimport Cursor, Pairs, Probe, out_of_memory
from windjoin.pyx.measures cimport Components


cdef extern from "segments.h" nogil:
    const int AT_ONCE, MOST_LAG
    ctypedef struct SegmentContent:
        int64_t room
        uint8_t *mean
    ctypedef struct Segments:
        Blocks blocks
        int64_t width
        int64_t stride
        uint8_t *asking
    int64_t unlike(const uint8_t *at, int64_t n, int64_t lag)
    void segments_shape(Segments *s, int64_t width, int64_t lag)
    int segments_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out)
    void segments_put(Segments *s, Components row, int64_t time, int64_t number)


cdef int64_t SAMPLE = 16  # rows that say how channels lie


cdef class ByteSegments(BlockIndex):
    """Byte arrays; all but a few of one length."""

    cdef Segments all

    def __cinit__(self):
        memset(&self.all, 0, sizeof(Segments))
        self.all.width = -1
        self.all.blocks.ordered = True
        self.all.blocks.together = 1024
        self.blocks = &self.all.blocks
        self.serve = segments_serve
        self.state = &self.all
        self.binds = True

    def __dealloc__(self):
        cdef int64_t b
        for b in range(self.all.blocks.first, self.all.blocks.last):
            self.free_content(self.all.blocks.content[b])
        free(self.all.asking)

    @staticmethod
    def load(records, const int64_t[::1] times, int64_t first=0):
        """Index of rows first, first + 1, ... in time order."""
        self = ByteSegments()
        self.insert(records, times, np.arange(first, first + len(times)))
        return self

    def insert(self, records, const int64_t[::1] times, const int64_t[::1] rows):
        """Add rows: ``records`` has their starts and lengths."""
        cdef const int64_t[::1] start = records[0]
        cdef const int32_t[::1] length = records[1]
        cdef int64_t i, n = times.shape[0]
        cdef Components row
        cdef Blocks *all = &self.all.blocks
        if n == 0:
            return
        if self.all.width < 0:
            self._begin(start, length)
        with nogil:
            for i in range(n):
                row.at = <const void *><intptr_t>start[i]
                row.n = length[i]
                self._room_for_means(self.room_for_one())
                if all.last - all.first > 1 and times[i] < all.block[all.last - 2].latest:
                    all.ordered = False
                segments_put(&self.all, row, times[i], rows[i])

    cdef int _begin(self, const int64_t[::1] start, const int32_t[::1] length) except -1:
        """The first rows say how long rows are, and how far apart like bytes lie."""
        cdef int64_t n = start.shape[0], step, i, lag, best = 1
        cdef int64_t apart[8]
        lengths, counts = np.unique(np.asarray(length)[:: max(n // 512, 1)], return_counts=True)
        cdef int64_t width = lengths[counts.argmax()]
        step = max(n // SAMPLE, 1)
        for lag in range(1, MOST_LAG + 1):
            apart[lag] = 0
            for i in range(0, n, step):
                if length[i] == width:
                    apart[lag] += unlike(<const uint8_t *><intptr_t>start[i], width, lag)
            if 10 * apart[lag] < 9 * apart[best]:  # clearly more alike
                best = lag
        segments_shape(&self.all, width, best)
        self.all.asking = <uint8_t *>calloc(AT_ONCE, self.all.stride + 64)
        if self.all.asking == NULL:
            out_of_memory(b"bytes of means", AT_ONCE * self.all.stride)
        self.held += AT_ONCE * (self.all.stride + 64)
        return 0

    cdef int _room_for_means(self, Block *block) except -1 nogil:
        """Blocks begin small: a live window may never fill one."""
        cdef Blocks *all = &self.all.blocks
        cdef SegmentContent *content = <SegmentContent *>all.content[all.last - 1]
        cdef int64_t room, stride = self.all.stride
        cdef void *grown
        if block.n < content.room:
            return 0
        room = 2 * content.room if content.room else 16
        grown = realloc(content.mean, room * stride + 64)
        if grown == NULL:
            out_of_memory(b"bytes of means", room * stride)
        content.mean = <uint8_t *>grown
        memset(content.mean + content.room * stride, 0, (room - content.room) * stride)
        self.held += (room - content.room) * stride
        content.room = room
        return 0

    cdef void *new_content(self) except NULL nogil:
        cdef void *content = calloc(1, sizeof(SegmentContent))
        if content == NULL:
            out_of_memory(b"blocks of bytes", 1)
        self.held += sizeof(SegmentContent)
        return content

    cdef void free_content(self, void *content) noexcept nogil:
        cdef SegmentContent *own = <SegmentContent *>content
        self.held -= sizeof(SegmentContent) + own.room * self.all.stride
        free(own.mean)
        free(own)
