"""Vectors in blocks, compared tile by tile.

Unchecked: enter through ``kernels.vectors``.
"""
from libc.stdint cimport int8_t, int32_t, int64_t, intptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

import numpy as np

from windjoin.pyx.similarity.blocks cimport Blocks, RowIndex
from windjoin.pyx.base.index cimport Cursor, Pairs, Probe, out_of_memory
from windjoin.pyx.similarity.measures cimport COSINE, DOT, L1, L2, LINF, Components


cdef extern from "tiles.h" nogil:
    const int MOST_PACK
    ctypedef struct ValueRange:
        pass
    ctypedef struct QuantizedPack:
        int8_t *bytes
    ctypedef struct TileContent:
        pass
    ctypedef struct Tiles:
        Blocks blocks
        int measure
        int doubles
        int64_t width
        double *centre
        double error
        int64_t quads
        ValueRange value_range
        float *rows
        float *pack
        QuantizedPack quantized
    int holds_bytes(int measure, int64_t width)
    int64_t quads_of(int64_t width)
    double tile_vector(const Tiles *t, Components row, float *out)
    void range_note(ValueRange *value_range, const float *values, int64_t width)
    double component(const Tiles *t, const void *at, int64_t k)
    int tiles_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out)
    void tiles_insert(Tiles *t, Components row, int64_t time, int64_t number)


cdef double UNIT = 5.9604644775390625e-08
cdef int64_t SAMPLE = 512
KINDS = {"l2": L2, "l1": L1, "linf": LINF, "dot": DOT, "cosine": COSINE}


cdef class VectorTiles(RowIndex):
    """Vectors of one measure; all but a few of one length."""

    cdef Tiles all

    def __cinit__(self, measure, bint doubles):
        memset(&self.all, 0, sizeof(Tiles))
        self.all.measure = KINDS[measure]
        self.all.doubles = doubles
        self.all.width = -1
        # Groups so large that packs of new rows are nearly full.
        self.match_set_by(tiles_serve, &self.all, &self.all.blocks, 4096)
        self.content_bytes = sizeof(TileContent)
        self.least_room = 32

    def __dealloc__(self):
        self._free_room()

    cdef void _free_room(self) noexcept:
        free(self.all.centre)
        free(self.all.pack)
        free(self.all.rows)
        free(self.all.quantized.bytes)

    @staticmethod
    def load(measure, bint doubles, varlen_rows, const int64_t[::1] times, int64_t first=0):
        """Index of rows first, first + 1, ... in time order."""
        self = VectorTiles(measure, doubles)
        start, length = varlen_rows
        self.insert_arrays((length, [start]), times, np.arange(first, first + len(times)))
        return self

    cdef int begin(
        self, const int64_t[::1] start, const int32_t[::1] length, int64_t width
    ) except -1:
        """The first rows say how long vectors are, and about where they lie."""
        cdef int64_t n = start.shape[0], step = max(n // SAMPLE, 1), i, k, used = 0
        cdef const void *at
        cdef int64_t quads = quads_of(width) if holds_bytes(self.all.measure, width) else 0
        self._free_room()  # of a beginning that found no memory
        self.all.centre = <double *>calloc(width + 1, sizeof(double))
        self.all.pack = <float *>malloc((width + 1) * MOST_PACK * sizeof(float))
        self.all.rows = <float *>malloc((width + 1) * MOST_PACK * sizeof(float))
        self.all.quantized.bytes = <int8_t *>malloc((quads + 1) * 4 * MOST_PACK)
        if not (self.all.centre and self.all.pack and self.all.rows and self.all.quantized.bytes):
            out_of_memory(b"components of a vector", width)
        self.all.width = width
        self.all.quads = quads
        self.row_bytes = (width + self.all.quads) * sizeof(float)
        self.all.error = 1.05 * (width + 16) * UNIT
        self.held += (width + 1) * (8 + 8 * MOST_PACK) + self.all.quads * 4 * MOST_PACK
        for i in range(0, n if self.all.measure not in (DOT, COSINE) else 0, step):
            if length[i] == width:
                at = <const void *><intptr_t>start[i]
                used += 1
                for k in range(width):
                    self.all.centre[k] += (component(&self.all, at, k) - self.all.centre[k]) / used
        for k in range(width):
            if not -1e30 < self.all.centre[k] < 1e30:
                self.all.centre[k] = 0
        if self.all.quads:
            self._note_range(start, length, step)
        return 0

    cdef void _note_range(
        self, const int64_t[::1] start, const int32_t[::1] length, int64_t step
    ) noexcept:
        """How large components are, which says how they are rounded."""
        cdef Components row
        cdef int64_t i
        for i in range(0, start.shape[0], step):
            row.at = <const void *><intptr_t>start[i]
            row.n = length[i]
            if tile_vector(&self.all, row, self.all.rows) >= 0:
                range_note(&self.all.value_range, self.all.rows, self.all.width)

    cdef void put_row(self, Components row, int64_t time, int64_t number) noexcept nogil:
        tiles_insert(&self.all, row, time, number)
