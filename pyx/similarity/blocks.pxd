from libc.stdint cimport int32_t, int64_t, uint64_t

from windjoin.pyx.base.index cimport Prober, Column, Cursor, Index, Pairs, Probe, Serve
from windjoin.pyx.similarity.measures cimport Components, Measure, VarlenView


cdef extern from "blocks.h" nogil:
    const int BLOCK_ROWS
    ctypedef struct Bits:
        pass
    ctypedef struct RowBlock:
        int64_t n
        int64_t earliest
        int64_t latest
    ctypedef struct Blocks:
        RowBlock **block
        void **content
        int64_t first
        int64_t last
        int64_t room
        int64_t ordered
        int64_t horizon
        int64_t version
        int64_t together
    ctypedef struct BlockValues:
        int64_t room
        void *values
    void block_add(RowBlock *block, int64_t time, int64_t row)


cdef extern from "probe_groups.h" nogil:
    const int MOST_PARTS, MOST_MATCH_SETS, MATCH_SET_SLOTS
    ctypedef struct MatchSet:
        pass
    ctypedef struct MeasureMatches:
        Measure measure
        int stream
        const Column *time
        int64_t own_window
        int64_t target_window
        int64_t compared
        int64_t room
        MatchSet *match_sets
        Bits *bits
        uint64_t *some
        int32_t *slot
        int64_t list_room
        int32_t *list
    ctypedef struct Others:
        int64_t room
        uint64_t *word
    ctypedef struct ProbeGroup:
        int64_t n_parts
        Others *others
        MeasureMatches part[4]


cdef class GroupProber(Prober):
    cdef ProbeGroup *group
    cdef object _alive


cdef class BlockIndex(Index):
    cdef Blocks *blocks
    cdef int64_t held
    cdef void match_set_by(
        self, Serve serve, void *state, Blocks *blocks, int64_t together
    ) noexcept
    cdef RowBlock *room_for_one(self) except NULL nogil
    cdef int add_block(self) except -1 nogil
    cdef void *new_content(self) except NULL nogil
    cdef void free_content(self, void *content) noexcept nogil


cdef class RowIndex(BlockIndex):
    cdef bint begun
    cdef int64_t content_bytes
    cdef int64_t row_bytes
    cdef int64_t least_room
    cdef int begin(
        self, const int64_t[::1] start, const int32_t[::1] length, int64_t width
    ) except -1
    cdef void put_row(self, Components row, int64_t time, int64_t number) noexcept nogil
    cdef int make_room(self, RowBlock *block, int64_t more) except -1 nogil
