from libc.stdint cimport int32_t, int64_t

from windjoin.pyx.column cimport Ring
from windjoin.pyx.index cimport Index
from windjoin.pyx.keys cimport KeySpace
from windjoin.pyx.output cimport Output, Runner
from windjoin.pyx.store cimport MOST_COLUMNS, Store


cdef struct Arrived:
    int64_t n
    const int64_t *time
    const int64_t *column[MOST_COLUMNS]  # or doubles
    const int64_t *key[MOST_COLUMNS]


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
