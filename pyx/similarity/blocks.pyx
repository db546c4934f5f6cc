"""Rows in blocks: what the indexes of sets, vectors and images have in common.

Unchecked: enter through ``kernels.similarity``.
"""
from libc.stdint cimport INT64_MIN, int32_t, int64_t, intptr_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memmove, memset

import numpy as np

from windjoin.pyx.base.column cimport ColumnView
from windjoin.pyx.base.index cimport Prober, Index, Serve, out_of_memory
from windjoin.pyx.similarity.measures cimport set_measure


cdef extern from "<stdlib.h>" nogil:
    void *aligned_alloc(size_t alignment, size_t size)


cdef class GroupProber(Prober):
    """The measures that a hop asks one index for, and room for the answers.

    parts: for each measure (stream that asks, its times, its window, the target's window,
        (measure, views of asking rows, views of the target's rows))
    """

    def __cinit__(self):
        self.group = <ProbeGroup *>calloc(1, sizeof(ProbeGroup))
        if self.group == NULL:
            out_of_memory(b"a group of probes", 1)
        self.prober = self.group

    def __init__(self, parts):
        cdef MeasureMatches *part
        self._alive = parts
        for stream, time, own_window, target_window, asked in parts[:MOST_PARTS]:
            part = self.group.part + self.group.n_parts
            self.group.n_parts += 1
            part.stream = stream
            part.time = &(<ColumnView?>time).column
            part.own_window = own_window
            part.target_window = target_window
            part.compared = -1
            part.match_sets = <MatchSet *>malloc(MOST_MATCH_SETS * sizeof(MatchSet))
            part.slot = <int32_t *>calloc(MATCH_SET_SLOTS, sizeof(int32_t))
            if part.match_sets == NULL or part.slot == NULL:
                out_of_memory(b"match_sets", MOST_MATCH_SETS)
            set_measure(&part.measure, asked[0], asked[1], asked[2])
        if self.group.n_parts > 1:
            self.group.others = <Others *>calloc(1, sizeof(Others))
            if self.group.others == NULL:
                out_of_memory(b"match_sets", 1)

    @property
    def compared(self):
        cdef int64_t total = 0
        cdef int k
        for k in range(self.group.n_parts):
            if self.group.part[k].compared < 0:
                return -1
            total += self.group.part[k].compared
        return total

    @property
    def nbytes(self):
        cdef MeasureMatches *part
        cdef int64_t total = sizeof(ProbeGroup)
        cdef int k
        for k in range(self.group.n_parts):
            part = self.group.part + k
            total += MOST_MATCH_SETS * sizeof(MatchSet) + MATCH_SET_SLOTS * sizeof(int32_t)
            total += part.room * sizeof(Bits) + part.list_room * sizeof(int32_t)
        if self.group.others != NULL:
            total += self.group.others.room * sizeof(Bits)
        return total

    def __dealloc__(self):
        cdef int k
        if self.group != NULL:
            for k in range(self.group.n_parts):
                free(self.group.part[k].match_sets)
                free(self.group.part[k].bits)
                free(self.group.part[k].some)
                free(self.group.part[k].slot)
                free(self.group.part[k].list)
            if self.group.others != NULL:
                free(self.group.others.word)
            free(self.group.others)
        free(self.group)


cdef class BlockIndex(Index):
    """Blocks in order of arrival; a subclass calls `match_set_by` and knows their content."""

    def __dealloc__(self):
        cdef int64_t b
        if self.blocks == NULL:  # it was never made
            return
        for b in range(self.blocks.first, self.blocks.last):
            free(self.blocks.block[b])
        free(self.blocks.block)
        free(self.blocks.content)

    @property
    def nbytes(self):
        return self.held + 16 * self.blocks.room

    cdef void expire(self, int64_t horizon) noexcept:
        """Drop blocks whose last row is older; out of order, a block waits for those before it."""
        cdef Blocks *all = self.blocks
        all.horizon = horizon
        while all.first < all.last and all.block[all.first].latest < horizon:
            self.held -= sizeof(RowBlock)
            free(all.block[all.first])
            self.free_content(all.content[all.first])
            all.first += 1
            all.version += 1
        if all.first == all.last:
            all.first = all.last = 0
            all.ordered = True

    def compact(self):
        return b""

    cdef void match_set_by(
        self, Serve serve, void *state, Blocks *blocks, int64_t together
    ) noexcept:
        """Groups of ``together`` rows are best answered at once."""
        self.serve, self.state, self.blocks = serve, state, blocks
        self.fills_bound = True
        blocks.ordered = True
        blocks.horizon = INT64_MIN
        blocks.together = together

    cdef RowBlock *room_for_one(self) except NULL nogil:
        """The last block, with room for a row."""
        cdef Blocks *all = self.blocks
        if all.first == all.last or all.block[all.last - 1].n == BLOCK_ROWS:
            self.add_block()
        return all.block[all.last - 1]

    cdef int add_block(self) except -1 nogil:
        cdef Blocks *all = self.blocks
        cdef int64_t room
        cdef void *grown
        if all.last == all.room and 2 * all.first > all.last:
            memmove(all.block, all.block + all.first, (all.last - all.first) * sizeof(RowBlock *))
            memmove(all.content, all.content + all.first, (all.last - all.first) * sizeof(void *))
            all.last -= all.first
            all.first = 0
        elif all.last == all.room:
            room = 2 * all.room + 8
            grown = realloc(all.block, room * sizeof(RowBlock *))
            if grown == NULL:
                out_of_memory(b"blocks of rows", room)
            all.block = <RowBlock **>grown
            grown = realloc(all.content, room * sizeof(void *))
            if grown == NULL:
                out_of_memory(b"blocks of rows", room)
            all.content = <void **>grown
            all.room = room
        all.content[all.last] = self.new_content()
        all.block[all.last] = <RowBlock *>calloc(1, sizeof(RowBlock))
        if all.block[all.last] == NULL:
            self.free_content(all.content[all.last])
            out_of_memory(b"blocks of rows", 1)
        self.held += sizeof(RowBlock)
        all.last += 1
        return 0

    cdef void *new_content(self) except NULL nogil:
        return NULL

    cdef void free_content(self, void *content) noexcept nogil:
        pass


cdef class RowIndex(BlockIndex):
    """Whole rows in blocks, all but a few of one length: vectors, or bytes.

    The content of a block begins with `BlockValues`.  A subclass sets ``content_bytes`` and
    ``least_room`` when it is made, and ``row_bytes`` in `begin`.
    """

    def __dealloc__(self):
        cdef int64_t b
        if self.blocks == NULL:
            return
        for b in range(self.blocks.first, self.blocks.last):
            self.free_content(self.blocks.content[b])

    cdef int insert(
        self, int64_t n, const int32_t *length, const int64_t *const *value, const int64_t *time,
        const int64_t *row,
    ) except -1 nogil:
        """Add rows: of a wide column, lengths stand for codes and starts for values."""
        cdef Blocks *all = self.blocks
        cdef const int64_t *start = value[0]
        cdef int64_t i
        cdef Components components
        if not self.begun:
            with gil:
                self.begin(
                    <int64_t[:n]><int64_t *>start, <int32_t[:n]><int32_t *>length, _usual(length, n)
                )
            self.begun = True
        for i in range(n):
            components.at = <const void *><intptr_t>start[i]
            components.n = length[i]
            self.make_room(self.room_for_one(), n - i)
            if all.last - all.first > 1 and time[i] < all.block[all.last - 2].latest:
                all.ordered = False
            self.put_row(components, time[i], row[i])
        return 0

    cdef int begin(
        self, const int64_t[::1] start, const int32_t[::1] length, int64_t width
    ) except -1:
        """The first rows say what all are about to be like; most of them are ``width`` long."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it begins")

    cdef void put_row(self, Components row, int64_t time, int64_t number) noexcept nogil:
        pass

    cdef int make_room(self, RowBlock *block, int64_t more) except -1 nogil:
        """Blocks begin small: a live window may never fill one.  ``more``: rows at hand."""
        cdef BlockValues *content = <BlockValues *>self.blocks.content[self.blocks.last - 1]
        cdef int64_t room
        cdef void *grown
        if block.n < content.room:
            return 0
        room = max(2 * content.room, self.least_room)
        while room < BLOCK_ROWS and room < block.n + more:
            room *= 2
        grown = realloc(content.values, room * self.row_bytes + 64)
        if grown == NULL:
            out_of_memory(b"rows of a block", room)
        content.values = grown
        memset(
            <char *>grown + content.room * self.row_bytes, 0,
            (room - content.room) * self.row_bytes,
        )
        self.held += (room - content.room) * self.row_bytes
        content.room = room
        return 0

    cdef void *new_content(self) except NULL nogil:
        cdef void *content = aligned_alloc(64, self.content_bytes)  # it holds Bits
        if content == NULL:
            out_of_memory(b"blocks of rows", 1)
        memset(content, 0, self.content_bytes)
        self.held += self.content_bytes
        return content

    cdef void free_content(self, void *content) noexcept nogil:
        self.held -= self.content_bytes + (<BlockValues *>content).room * self.row_bytes
        free((<BlockValues *>content).values)
        free(content)


cdef int64_t _usual(const int32_t *length, int64_t n):
    """The most frequent length of a few hundred rows."""
    lengths, counts = np.unique(
        [length[i] for i in range(0, n, max(n // 512, 1))], return_counts=True
    )
    return lengths[counts.argmax()]
