"""Vectors in blocks, compared tile by tile.

Unchecked: enter through ``kernels.vectors``.
"""
from libc.stdint cimport int32_t, int64_t, intptr_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

import numpy as np

from windjoin.pyx.blocks cimport Block, BlockIndex, Blocks
from windjoin.pyx.index cimport Cursor, Pairs, Probe, out_of_memory
from windjoin.pyx.measures cimport COSINE, DOT, L1, L2, LINF, Components


cdef extern from "tiles.h" nogil:
    const int MOST_PACK
    ctypedef struct TileContent:
        int64_t parts
        float *values
    ctypedef struct Tiles:
        Blocks blocks
        int measure
        int doubles
        int64_t width
        double *centre
        double error
        float *pack
    double component(const Tiles *t, const void *at, int64_t k)
    int tiles_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out)
    void tiles_put(Tiles *t, Components row, int64_t time, int64_t number)


cdef double UNIT = 5.9604644775390625e-08
cdef int64_t SAMPLE = 512
KINDS = {"l2": L2, "l1": L1, "linf": LINF, "dot": DOT, "cosine": COSINE}


cdef class VectorTiles(BlockIndex):
    """Vectors of one measure; all but a few of one length."""

    cdef Tiles all

    def __cinit__(self, measure, bint doubles):
        memset(&self.all, 0, sizeof(Tiles))
        self.all.measure = KINDS[measure]
        self.all.doubles = doubles
        self.all.width = -1
        self.all.blocks.ordered = True
        self.all.blocks.together = 1024
        self.blocks = &self.all.blocks
        self.serve = tiles_serve
        self.state = &self.all
        self.binds = True

    def __dealloc__(self):
        cdef int64_t b
        for b in range(self.all.blocks.first, self.all.blocks.last):
            self.free_content(self.all.blocks.content[b])
        free(self.all.centre)
        free(self.all.pack)

    @staticmethod
    def load(measure, bint doubles, records, const int64_t[::1] times, int64_t first=0):
        """Index of rows first, first + 1, ... in time order."""
        self = VectorTiles(measure, doubles)
        self.insert(records, times, np.arange(first, first + len(times)))
        return self

    def insert(self, records, const int64_t[::1] times, const int64_t[::1] rows):
        """Add rows: ``records`` has their starts and lengths."""
        cdef const int64_t[::1] start = records[0]
        cdef const int32_t[::1] length = records[1]
        cdef int64_t i, n = times.shape[0]
        cdef Components row
        cdef Block *block
        if n == 0:
            return
        if self.all.width < 0:
            self._begin(start, length)
        with nogil:
            for i in range(n):
                row.at = <const void *><intptr_t>start[i]
                row.n = length[i]
                block = self.room_for_one()
                self._room_for_values(block)
                self._note_order(block, times[i])
                tiles_put(&self.all, row, times[i], rows[i])

    cdef void _note_order(self, Block *block, int64_t time) noexcept nogil:
        """Whether blocks still lie in time order once a row of ``time`` is in the last one."""
        cdef Blocks *all = &self.all.blocks
        if all.last - all.first > 1 and time < all.block[all.last - 2].latest:
            all.ordered = False

    cdef int _begin(self, const int64_t[::1] start, const int32_t[::1] length) except -1:
        """The first rows say how long vectors are, and about where they lie."""
        cdef int64_t n = start.shape[0], step = max(n // SAMPLE, 1), i, k, used = 0
        cdef const void *at
        lengths, counts = np.unique(np.asarray(length)[::step], return_counts=True)
        cdef int64_t width = lengths[counts.argmax()]
        self.all.centre = <double *>calloc(width + 1, sizeof(double))
        self.all.pack = <float *>malloc((width + 1) * MOST_PACK * sizeof(float))
        if self.all.centre == NULL or self.all.pack == NULL:
            out_of_memory(b"components of a vector", width)
        self.all.width = width
        self.all.error = 1.05 * (width + 16) * UNIT
        self.held += (width + 1) * (8 + 4 * MOST_PACK)
        for i in range(0, n, step):
            if length[i] == width:
                at = <const void *><intptr_t>start[i]
                used += 1
                for k in range(width):
                    self.all.centre[k] += (component(&self.all, at, k) - self.all.centre[k]) / used
        for k in range(width):
            if not -1e30 < self.all.centre[k] < 1e30:
                self.all.centre[k] = 0
        return 0

    cdef int _room_for_values(self, Block *block) except -1 nogil:
        """Blocks begin small: a live window may never fill one."""
        cdef TileContent *content = <TileContent *>self.all.blocks.content[self.all.blocks.last - 1]
        cdef int64_t parts, size = self.all.width * 32 * sizeof(float)
        cdef void *grown
        if block.n < content.parts * 32:
            return 0
        parts = 2 * content.parts if content.parts else 1
        grown = realloc(content.values, parts * size + 64)
        if grown == NULL:
            out_of_memory(b"vectors", parts * 32)
        content.values = <float *>grown
        memset(
            content.values + content.parts * self.all.width * 32, 0, (parts - content.parts) * size
        )
        self.held += (parts - content.parts) * size
        content.parts = parts
        return 0

    cdef void *new_content(self) except NULL nogil:
        cdef void *content = calloc(1, sizeof(TileContent))
        if content == NULL:
            out_of_memory(b"blocks of vectors", 1)
        self.held += sizeof(TileContent)
        return content

    cdef void free_content(self, void *content) noexcept nogil:
        cdef TileContent *own = <TileContent *>content
        self.held -= sizeof(TileContent) + own.parts * self.all.width * 32 * <int64_t>sizeof(float)
        free(own.values)
        free(own)
