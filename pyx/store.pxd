from libc.stdint cimport int64_t

from windjoin.pyx.column cimport Ring

cdef enum:
    MOST_COLUMNS = 16  # operands, and keys, of a stream
    MOST_INDEXES = 32  # of a stream

cdef enum Needs:  # of an index, to take rows
    NOTHING
    KEYS
    COLUMN
    WIDE


cdef class Clock:
    cdef public int64_t newest
    cdef public int64_t promised
    cdef public int64_t lateness
    cdef int64_t mark(self) noexcept nogil


cdef class Counts:
    cdef public int64_t rows_in
    cdef public int64_t unusable
    cdef public int64_t late
    cdef public int64_t expired


cdef class Extent:
    cdef public int64_t head
    cdef public int64_t tail
    cdef public int64_t horizon
    cdef int64_t held[2]
    cpdef void note(self) noexcept


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
    cdef list indexes
    cdef list sources
    cdef list pair_spaces
    cdef list wides
    cdef int n_columns, n_keys, n_indexes
    cdef bint real[MOST_COLUMNS]
    cdef Needs needs[MOST_INDEXES]
    cdef readonly bint whole  # every index can be fed from here
    cdef bint takes_codes(self)
    cdef bint takes_values(self)
    cdef int forget(self, int64_t horizon) except -1
