from libc.stdint cimport int32_t, int64_t

from windjoin.pyx.column cimport Ring
from windjoin.pyx.index cimport Index
from windjoin.pyx.keys cimport KeySpace
from windjoin.pyx.output cimport Output, Runner

cdef enum:
    MOST_COLUMNS = 16  # operands, and keys, of a stream
    MOST_INDEXES = 32  # of a stream
    RELEASE_ABOVE = 64  # rows; the GIL is not given back for so few

cdef enum Needs:  # of an index, to take rows
    NOTHING
    KEYS
    COLUMN
    WIDE


cdef struct Arrived:
    int64_t n
    const int64_t *time
    const int64_t *column[MOST_COLUMNS]  # or doubles
    const int64_t *key[MOST_COLUMNS]


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


cdef class Feed:
    cdef int number
    cdef Store own
    cdef list stores
    cdef list clocks
    cdef int n_streams
    cdef Runner pipeline
    cdef Output out
    cdef readonly int64_t results
    cdef int64_t since_care
    cdef bint by_code  # time and one key are all of a row; then these are what it goes to
    cdef bint by_value  # time and one number are
    cdef KeySpace space
    cdef Ring times
    cdef Ring codes  # or values
    cdef Index index
    cdef object care
    cdef int32_t *code_room
    cdef int64_t *row_room
    cdef int64_t room
    cdef bint take_arrays(self, time, list columns, list keys, list wides) except -1
    cdef bint take(self, const Arrived *rows, list wides) except -1
    cdef int _carry_blocks(self, const Arrived *rows, int64_t first) except -1 nogil
    cdef int _carry_stretches(self, const Arrived *rows, int64_t first) except -1
    cdef int _carry_any(self, const Arrived *rows, int64_t first, list wides) except -1
    cdef int _come_to(self, int64_t time) except -1
    cdef int _carry_by_code(self, const Arrived *rows, int64_t first) except -1 nogil
    cdef int _carry_by_value(self, const Arrived *rows, int64_t first) except -1 nogil
    cdef int _carry(self, const Arrived *rows, int64_t first, list wides) except -1
    cdef int _need_room(self, int64_t n) except -1
    cdef int32_t *_codes(self, int64_t key) noexcept nogil
    cdef int _encode(self, const Arrived *rows) except -1
    cdef int _store(self, const Arrived *rows, int64_t first) except -1
    cdef list _store_wides(self, int64_t first, list wides)
    cdef int _insert(self, const Arrived *rows, list wides) except -1
    cdef const int32_t *_composite(self, int64_t n, tuple keys, list spaces) except NULL
    cdef const int64_t *_sortable(
        self, int64_t n, const int64_t *values, int column
    ) noexcept nogil
    cdef int _expire(self) except -1
