"""Sets in blocks: one bitmap of rows per item, or per hash of the rarer ones.

Unchecked: enter through ``kernels.sets``.
"""
from libc.stdint cimport int16_t, int32_t, int64_t, intptr_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

import numpy as np

from windjoin.pyx.similarity.blocks cimport Bits, BlockIndex, Blocks
from windjoin.pyx.base.index cimport Cursor, Pairs, Probe, out_of_memory
from windjoin.pyx.similarity.measures cimport Components


cdef extern from "bitmaps.h" nogil:
    const int TOGETHER
    ctypedef struct Lanes:
        int64_t users
        int64_t n_own
        int64_t n_shared
        int64_t n_codes
        int64_t sharing
        int16_t *own
    ctypedef struct SetProbes:
        uint32_t *lane
        int64_t room
        Bits *bits
    ctypedef struct SetContent:
        Lanes *lanes
        int64_t exact
        int64_t ascending
        Bits *lane
    ctypedef struct Bitmaps:
        Blocks blocks
        int weighted
        SetProbes *asked
    int64_t n_lanes(const Lanes *l)
    const int32_t *codes_of(const Bitmaps *b, Components row)
    int bitmaps_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out)
    void bitmaps_insert(Bitmaps *b, Components row, int64_t time, int64_t number)
    void *aligned_alloc(size_t alignment, size_t size)


cdef int64_t ALL_OWN = 1024  # items up to which every one owns a lane
cdef int64_t OWN = 512  # lanes of the most popular items, where there are more
cdef int64_t LEAST_SHARED = 1024
cdef int64_t MOST_SHARED = 16384
cdef int64_t LOOKED_AT = 4096  # rows of a first batch, before any is stored
cdef int64_t LOOK_EVERY = 32  # blocks
cdef int64_t AGAIN_AFTER = 4  # blocks, where the first batch was small
cdef int32_t MOST_TOLD_APART = 1 << 16  # times that an item came
cdef double WORTH_IT = 1.2  # how much more often new own lanes must be used to replace the old


cdef class SetBitmaps(BlockIndex):
    """Sets, or the items of weighted sets."""

    cdef Bitmaps all
    cdef Lanes *lanes  # of blocks to come
    cdef object counts  # int32, how often each code was seen lately
    cdef int32_t *count  # the same
    cdef int64_t n_counts
    cdef object popular  # codes that own a lane, in the order of their lanes
    cdef int64_t codes  # that were seen lately
    cdef int64_t since  # blocks made since the counts were last looked at
    cdef int64_t rows, items  # seen lately
    cdef readonly int64_t learned  # times

    def __cinit__(self, bint weighted):
        memset(&self.all, 0, sizeof(Bitmaps))
        self.all.weighted = weighted
        self.all.asked = <SetProbes *>aligned_alloc(64, sizeof(SetProbes))
        if self.all.asked == NULL:
            out_of_memory(b"rows that ask", TOGETHER)
        memset(self.all.asked, 0, <char *>self.all.asked.bits - <char *>self.all.asked)
        self.match_set_by(bitmaps_serve, &self.all, &self.all.blocks, TOGETHER)
        self._keep(np.zeros(64, np.int32))
        self.popular = np.zeros(0, np.int64)

    def __dealloc__(self):
        cdef int64_t b
        for b in range(self.all.blocks.first, self.all.blocks.last):
            self.free_content(self.all.blocks.content[b])
        self._leave(self.lanes)
        if self.all.asked != NULL:
            free(self.all.asked.lane)
        free(self.all.asked)

    @staticmethod
    def load(bint weighted, varlen_rows, const int64_t[::1] times, int64_t first=0):
        """Index of rows first, first + 1, ... in time order."""
        self = SetBitmaps(weighted)
        start, length = varlen_rows
        self.insert_arrays((length, [start]), times, np.arange(first, first + len(times)))
        return self

    @property
    def nbytes(self):
        own = sizeof(SetProbes) + 4 * self.all.asked.room + self.counts.nbytes + self.popular.nbytes
        return self.held + 16 * self.blocks.room + own

    @property
    def exact_blocks(self):
        """Share of the blocks in which every item owns a lane."""
        cdef int64_t b, exact = 0, n = self.all.blocks.last - self.all.blocks.first
        for b in range(self.all.blocks.first, self.all.blocks.last):
            exact += (<SetContent *>self.all.blocks.content[b]).exact
        return <double>exact / n if n else 1.0

    @property
    def owners(self):
        """How many items own a lane, and which share of all items seen lately they are."""
        cdef int64_t code, total = 0, number = 0, served = 0
        for code in range(self.n_counts):
            if self.count[code]:
                total += self.count[code]
                if self._owns(code):
                    number += 1
                    served += self.count[code]
        return number, <double>served / total if total else 0.0

    cdef bint _owns(self, int64_t code) noexcept nogil:
        return self.lanes != NULL and code < self.lanes.n_codes and self.lanes.own[code] >= 0

    @property
    def learned_text(self):
        number, share = self.owners
        sharing = self.lanes != NULL and self.lanes.sharing
        others = f"; the others share {self.lanes.n_shared}" if sharing else ""
        return f"{number} items own a bitmap, {share:.0%} of all items seen lately{others}"

    cdef int insert(
        self, int64_t n, const int32_t *length, const int64_t *const *value, const int64_t *time,
        const int64_t *row,
    ) except -1 nogil:
        """Add rows: of a wide column, lengths stand for codes and starts for values."""
        cdef const int64_t *start = value[0]
        cdef int64_t i = 0, stop, counted = 0
        cdef Blocks *all = &self.all.blocks
        if self.lanes == NULL:
            counted = min(n, LOOKED_AT)
            self._count(length, start, 0, counted)
            with gil:
                self._learn()
            if counted < LOOKED_AT:
                self.since = LOOK_EVERY - AGAIN_AFTER
        while i < n:
            if all.first == all.last or all.block[all.last - 1].n == 512:
                if self._must_look():
                    with gil:
                        self._choose_popular()
                self.add_block()
                self.since += 1
            stop = min(i + 512 - all.block[all.last - 1].n, n)
            self._count(length, start, max(i, counted), stop)
            self._store(length, start, time, row, i, stop)
            i = stop
        return 0

    cdef void _store(
        self, const int32_t *length, const int64_t *start, const int64_t *time,
        const int64_t *row, int64_t i, int64_t stop,
    ) noexcept nogil:
        cdef Components components
        cdef Blocks *all = &self.all.blocks
        for i in range(i, stop):
            components.at = <const void *><intptr_t>start[i]
            components.n = length[i]
            if all.last - all.first > 1 and time[i] < all.block[all.last - 2].latest:
                all.ordered = False
            bitmaps_insert(&self.all, components, time[i], row[i])

    cdef int _count(
        self, const int32_t *length, const int64_t *start, int64_t i, int64_t stop
    ) except -1 nogil:
        """Note which codes rows [i, stop) have."""
        cdef Components row
        cdef const int32_t *codes
        cdef int64_t k
        for i in range(i, stop):
            row.at = <const void *><intptr_t>start[i]
            row.n = length[i]
            codes = codes_of(&self.all, row)
            self.rows += 1
            self.items += row.n
            for k in range(row.n):
                if codes[k] >= self.n_counts:
                    with gil:
                        self._keep(np.concatenate([self.counts, np.zeros(codes[k] + 1, np.int32)]))
                self.codes += self.count[codes[k]] == 0
                self.count[codes[k]] += 1
        return 0

    cdef int _keep(self, counts) except -1:
        cdef int32_t[::1] view = counts
        self.counts = counts
        self.count = &view[0]
        self.n_counts = view.shape[0]
        return 0

    cdef bint _must_look(self) noexcept nogil:
        return self._outgrown() or self.since >= LOOK_EVERY

    cdef bint _outgrown(self) noexcept nogil:
        """Whether there are more items than lanes, not yet enough of them to share any."""
        return not self.lanes.sharing and self.lanes.n_own < self.codes

    cdef int _fade(self) except -1:
        """Let what was seen count half."""
        self.counts >>= 1
        self.codes = np.count_nonzero(self.counts)
        self.rows = (self.rows + 1) // 2
        self.items = (self.items + 1) // 2
        self.since = 0
        return 0

    cdef int _choose_popular(self) except -1:
        """Now and then, learn which items are popular, if other own lanes were used much more."""
        cdef bint learn = self._outgrown() or (self.lanes.sharing and self.codes <= ALL_OWN)
        if not learn and self.codes > ALL_OWN:
            best = self.counts[self._most_popular()].sum()
            learn = best > WORTH_IT * self.counts[self.popular].sum()
        if learn:
            self._learn()
        self._fade()
        return 0

    cdef object _most_popular(self):
        """The OWN codes that came most often lately; a histogram, as most came equally often."""
        counts = np.minimum(self.counts, MOST_TOLD_APART)
        above = np.cumsum(np.bincount(counts)[::-1])  # codes by least count
        least = len(above) - 1 - np.searchsorted(above, OWN)
        more = np.flatnonzero(counts > least)
        return np.concatenate([more, np.flatnonzero(counts == least)[: OWN - len(more)]])

    cdef int64_t _expected_codes(self) except -1:
        """How many codes there are, those that did not come yet included.

        Chao's estimate: the more of what came has come only once, the more has not come at all.  A
        block of rows whose items share no lanes, as there seemed to be few, would have to compare
        every row that has others.
        """
        cdef int64_t once = np.count_nonzero(self.counts == 1)
        cdef int64_t twice = np.count_nonzero(self.counts == 2)
        return np.count_nonzero(self.counts) + once * max(once - 1, 0) // (2 * (twice + 1))

    cdef int _learn(self) except -1:
        """Give the items that came most often lately a lane of their own."""
        seen = np.flatnonzero(self.counts)
        sharing = self._expected_codes() > ALL_OWN
        shared = 16
        if sharing:
            seen = self._most_popular()
            shared = LEAST_SHARED
            while shared < min(100 * self.items // max(self.rows, 1), MOST_SHARED):
                shared *= 2
        self.popular = seen[np.argsort(-self.counts[seen], kind="stable")]
        own = np.full(max(len(self.counts), ALL_OWN), -1, np.int16)
        own[self.popular] = np.arange(len(seen))
        owners = len(seen)
        if not sharing:  # items to come get the lowest codes that are not in use
            few = self.rows < LOOKED_AT
            most = min(len(seen) // (1 if few else 8) + 64, ALL_OWN - owners)
            to_come = np.flatnonzero(own < 0)[:most]
            own[to_come] = owners + np.arange(len(to_come))
            owners += len(to_come)
        self.learned += 1
        self._use(own, owners, shared, sharing)
        return 0

    cdef int _use(
        self, const int16_t[::1] own, int64_t n_own, int64_t n_shared, bint sharing
    ) except -1:
        cdef int64_t i, n = own.shape[0]
        cdef Lanes *lanes = <Lanes *>malloc(sizeof(Lanes) + n * sizeof(int16_t))
        if lanes == NULL:
            out_of_memory(b"items", n)
        lanes.users = 1
        lanes.n_own = n_own
        lanes.n_shared = n_shared
        lanes.n_codes = n
        lanes.sharing = sharing
        for i in range(n):
            lanes.own[i] = own[i]
        self._leave(self.lanes)
        self.lanes = lanes
        self.held += sizeof(Lanes) + n * <int64_t>sizeof(int16_t)
        # lanes that outgrow the first-level cache are best read for many probes at once
        self.all.blocks.together = TOGETHER if sharing else 256
        return 0

    cdef void _leave(self, Lanes *lanes) noexcept nogil:
        if lanes != NULL:
            lanes.users -= 1
            if lanes.users == 0:
                self.held -= sizeof(Lanes) + lanes.n_codes * <int64_t>sizeof(int16_t)
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
            return NULL
        memset(content.lane, 0, size)
        content.exact = 1
        content.ascending = 1
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
