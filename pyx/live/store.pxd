from libc.stdint cimport int32_t, int64_t, uint8_t

from windjoin.pyx.base.column cimport Ring
from windjoin.pyx.base.index cimport MOST_VALUES, Index

cdef enum Needs:  # of an index, to take rows
    NOTHING
    KEYS
    COLUMNS
    OPERANDS
    VARLEN


cdef struct Verdict:  # of a clock on rows
    int64_t newest  # time of the stream after them
    int64_t watermark  # that the first late row met
    int64_t late  # how many are
    bint ordered  # whether times never decrease, but for those of late rows
    bint least  # whether a row has the least time there is, which stands for none


cdef class Watermark:
    cdef public int64_t newest
    cdef public int64_t promised
    cdef public int64_t silenced
    cdef public int64_t lateness
    cdef int64_t mark(self) noexcept nogil
    cdef int64_t mark_after(self, int64_t newest) noexcept nogil
    cdef bint in_order(self, int64_t n, const int64_t *time) noexcept nogil
    cdef Verdict classify_rows(
        self, int64_t n, const int64_t *time, const uint8_t *bad, uint8_t *late
    ) noexcept nogil


cdef class Allowance:
    cdef public int64_t rows
    cdef public int64_t until
    cdef tuple clocks
    cdef bint passed(self) noexcept
    cdef bint takes(self, int64_t n) noexcept


cdef class Counts:
    cdef public int64_t rows_in
    cdef public int64_t unusable
    cdef public int64_t late
    cdef public int64_t expired


cdef class Extent:
    cdef public int64_t head
    cdef public int64_t tail
    cdef public int64_t horizon
    cdef public int64_t hold
    cdef public int64_t owed
    cdef int64_t held[2]
    cdef void note(self, int64_t rows) noexcept


cdef struct Arrived:
    int64_t n
    const int64_t *time
    const int64_t **column  # or doubles
    const int64_t **key  # as they came; NULL where they have codes
    const int32_t **code
    const int64_t *row
    const uint8_t *counted  # rows that count for others, NULL: those that can be in a result


cdef class Taker:
    cdef Index index
    cdef Needs needs
    cdef int n
    cdef int number[MOST_VALUES]
    cdef list spaces


cdef class Store:
    cdef object rows
    cdef Extent extent
    cdef Counts counts
    cdef int64_t window
    cdef Ring time
    cdef Ring numbers
    cdef list columns
    cdef list codes
    cdef list spaces
    cdef list varlen
    cdef list takers
    cdef int n_columns, n_keys
    cdef int n_sorted  # columns that an index takes as sortable integers, at most
    cdef list real  # whether a column has doubles
    cdef bint takes(self, Needs needs)
    cdef int need_room(self, int64_t n) except -1
    cdef int write(self, const Arrived *rows) except -1
    cpdef int64_t expire(self, int64_t horizon) except -1
    cdef int64_t drop_useless(self) except -1
    cdef int64_t _move_head(self) except -1
    cpdef append(self, time, list columns, list codes, list varlen_rows, numbers)
    cdef int write_varlen(self, int number, int64_t first, starts, lengths, content) except -1


cdef int64_t expire_others(list stores, list clocks, int but) except -1
