"""Images and other byte arrays in blocks, with sums of segments.

Unchecked: enter through ``kernels.images``.
"""
from libc.stdint cimport int32_t, int64_t, intptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

import numpy as np

from windjoin.pyx.blocks cimport BlockIndex, Blocks
from windjoin.pyx.index cimport Cursor, Pairs, Probe, out_of_memory
from windjoin.pyx.measures cimport Components


cdef extern from "segments.h" nogil:
    ctypedef struct SegmentContent:
        pass
    ctypedef struct Segments:
        Blocks blocks
        int64_t width
    int segments_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out)
    void segments_put(Segments *s, Components row, int64_t time, int64_t number)


cdef int64_t LONGEST = 1 << 23  # bytes: the sum over all segments fits int32


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

    def __dealloc__(self):
        cdef int64_t b
        for b in range(self.all.blocks.first, self.all.blocks.last):
            free(self.all.blocks.content[b])

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
            lengths, counts = np.unique(np.asarray(length)[:: max(n // 512, 1)], return_counts=True)
            # of longer rows no sums are kept: they are all odd
            self.all.width = lengths[counts.argmax()] if lengths[counts.argmax()] <= LONGEST else 0
        with nogil:
            for i in range(n):
                row.at = <const void *><intptr_t>start[i]
                row.n = length[i]
                self.room_for_one()
                if all.last - all.first > 1 and times[i] < all.block[all.last - 2].latest:
                    all.ordered = False
                segments_put(&self.all, row, times[i], rows[i])

    cdef void *new_content(self) except NULL nogil:
        cdef void *content = calloc(1, sizeof(SegmentContent))
        if content == NULL:
            out_of_memory(b"blocks of bytes", 1)
        self.held += sizeof(SegmentContent)
        return content

    cdef void free_content(self, void *content) noexcept nogil:
        self.held -= sizeof(SegmentContent)
        free(content)
