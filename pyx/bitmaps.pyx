"""Sets in blocks: one bitmap of rows per item, or per hash of the rarer ones.

Unchecked: enter through ``kernels.sets``.
"""
from libc.stdint cimport int32_t, int64_t, intptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

import numpy as np

from windjoin.pyx.blocks cimport Bits, BlockIndex, Blocks
from windjoin.pyx.index cimport Cursor, Pairs, Probe, out_of_memory
from windjoin.pyx.measures cimport Components


cdef extern from "bitmaps.h" nogil:
    ctypedef struct Lanes:
        int64_t users
        int64_t n_own
        int64_t n_shared
        int64_t n_codes
        int32_t *own
    ctypedef struct SetContent:
        Lanes *lanes
        int64_t exact
        Bits *lane
    ctypedef struct Bitmaps:
        Blocks blocks
        int weighted
        int32_t *lane_of
        int64_t room
    int64_t n_lanes(const Lanes *l)
    const int32_t *codes_of(const Bitmaps *b, Components row)
    int bitmaps_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out)
    void bitmaps_put(Bitmaps *b, Components row, int64_t time, int64_t number)
    void *aligned_alloc(size_t alignment, size_t size)


cdef int64_t ALL_OWN = 1024  # items up to which every one owns a lane
cdef int64_t OWN = 512  # lanes of the most popular items, where there are more
cdef int64_t LEAST_SHARED = 1024
cdef int64_t MOST_SHARED = 16384
cdef int64_t LEARN_EVERY = 32  # blocks


cdef class SetBitmaps(BlockIndex):
    """Sets, or the items of weighted sets."""

    cdef Bitmaps all
    cdef Lanes *lanes  # of blocks to come
    cdef object counts  # how often each code was seen lately
    cdef int64_t since  # blocks made since the lanes were last learned
    cdef int64_t rows, items
    cdef readonly int64_t learned  # times

    def __cinit__(self, bint weighted):
        memset(&self.all, 0, sizeof(Bitmaps))
        self.all.weighted = weighted
        self.all.blocks.ordered = True
        self.all.blocks.together = 256
        self.blocks = &self.all.blocks
        self.serve = bitmaps_serve
        self.state = &self.all
        self.binds = True
        self.counts = np.zeros(64, np.int64)

    def __dealloc__(self):
        cdef int64_t b
        for b in range(self.all.blocks.first, self.all.blocks.last):
            self.free_content(self.all.blocks.content[b])
        self._leave(self.lanes)
        free(self.all.lane_of)

    @staticmethod
    def load(bint weighted, records, const int64_t[::1] times, int64_t first=0):
        """Index of rows first, first + 1, ... in time order."""
        self = SetBitmaps(weighted)
        self.insert(records, times, np.arange(first, first + len(times)))
        return self

    @property
    def exact_blocks(self):
        """Share of the blocks in which every item owns a lane."""
        cdef int64_t b, exact = 0, n = self.all.blocks.last - self.all.blocks.first
        for b in range(self.all.blocks.first, self.all.blocks.last):
            exact += (<SetContent *>self.all.blocks.content[b]).exact
        return exact / n if n else 1.0

    def insert(self, records, const int64_t[::1] times, const int64_t[::1] rows):
        """Add rows: ``records`` has their starts and lengths."""
        cdef const int64_t[::1] start = records[0]
        cdef const int32_t[::1] length = records[1]
        cdef int64_t i = 0, n = times.shape[0], stop
        cdef Blocks *all = &self.all.blocks
        while i < n:
            stop = 512
            if all.first < all.last and all.block[all.last - 1].n < 512:
                stop -= all.block[all.last - 1].n
            stop = min(i + stop, n)
            # a first batch may be looked at further ahead than its first block
            self._count(start, length, i, stop if self.lanes != NULL else min(n, 4096))
            if all.first == all.last or all.block[all.last - 1].n == 512:
                if self.lanes == NULL or self.since >= LEARN_EVERY or self._outgrown():
                    self._learn()
                self.add_block()
                self.since += 1
            self._put(start, length, times, rows, i, stop)
            i = stop

    cdef int _put(
        self, const int64_t[::1] start, const int32_t[::1] length, const int64_t[::1] times,
        const int64_t[::1] rows, int64_t i, int64_t stop,
    ) except -1:
        cdef Components row
        cdef Blocks *all = &self.all.blocks
        with nogil:
            for i in range(i, stop):
                row.at = <const void *><intptr_t>start[i]
                row.n = length[i]
                if all.last - all.first > 1 and times[i] < all.block[all.last - 2].latest:
                    all.ordered = False
                bitmaps_put(&self.all, row, times[i], rows[i])
        return 0

    cdef int _count(
        self, const int64_t[::1] start, const int32_t[::1] length, int64_t i, int64_t stop
    ) except -1:
        """Note which codes rows [i, stop) have."""
        cdef Components row
        cdef const int32_t *codes
        cdef int64_t k
        cdef int64_t[::1] counts = self.counts
        for i in range(i, stop):
            row.at = <const void *><intptr_t>start[i]
            row.n = length[i]
            codes = codes_of(&self.all, row)
            self.rows += 1
            self.items += row.n
            for k in range(row.n):
                if codes[k] >= counts.shape[0]:
                    self.counts = np.concatenate([self.counts, np.zeros(codes[k] + 1, np.int64)])
                    counts = self.counts
                counts[codes[k]] += 1
        return 0

    cdef bint _outgrown(self):
        """Whether there are items without a lane that could all have one."""
        return self.lanes.n_own < np.count_nonzero(self.counts) <= ALL_OWN

    cdef int _learn(self) except -1:
        """Give the items that came most often lately a lane of their own."""
        counts = self.counts
        popular = np.flatnonzero(counts)
        if len(popular) > ALL_OWN:
            popular = np.sort(np.argpartition(-counts, OWN)[:OWN])
            shared = LEAST_SHARED
            while shared < min(100 * self.items // max(self.rows, 1), MOST_SHARED):
                shared *= 2
        else:
            shared = 64
        own = np.full(len(counts), -1, np.int32)
        own[popular] = np.arange(len(popular))
        self.counts = counts // 2
        self.learned += 1
        self.since = 0
        self._use(own, len(popular), shared)
        return 0

    cdef int _use(self, const int32_t[::1] own, int64_t n_own, int64_t n_shared) except -1:
        cdef int64_t i, n = own.shape[0]
        self._leave(self.lanes)
        self.lanes = <Lanes *>malloc(sizeof(Lanes) + n * sizeof(int32_t))
        if self.lanes == NULL:
            out_of_memory(b"items", n)
        self.lanes.users = 1
        self.lanes.n_own = n_own
        self.lanes.n_shared = n_shared
        self.lanes.n_codes = n
        for i in range(n):
            self.lanes.own[i] = own[i]
        self.held += sizeof(Lanes) + n * <int64_t>sizeof(int32_t)
        # lanes that outgrow the first-level cache are best read for many probes at once
        self.all.blocks.together = 256 if n_own + n_shared < 512 else 2048
        return 0

    cdef void _leave(self, Lanes *lanes) noexcept nogil:
        if lanes != NULL:
            lanes.users -= 1
            if lanes.users == 0:
                self.held -= sizeof(Lanes) + lanes.n_codes * <int64_t>sizeof(int32_t)
                free(lanes)

    cdef void *new_content(self) except NULL nogil:
        cdef SetContent *content = <SetContent *>calloc(1, sizeof(SetContent))
        cdef int64_t size = (n_lanes(self.lanes) + 1) * <int64_t>sizeof(Bits)
        if content == NULL:
            out_of_memory(b"blocks of sets", 1)
        content.lane = <Bits *>aligned_alloc(64, size)
        if content.lane == NULL:
            free(content)
            out_of_memory(b"bitmaps", size)
        memset(content.lane, 0, size)
        content.exact = 1
        content.lanes = self.lanes
        self.lanes.users += 1
        self.held += sizeof(SetContent) + size
        return content

    cdef void free_content(self, void *content) noexcept nogil:
        cdef SetContent *own = <SetContent *>content
        self.held -= sizeof(SetContent) + (n_lanes(own.lanes) + 1) * <int64_t>sizeof(Bits)
        self._leave(own.lanes)
        free(own.lane)
        free(own)
