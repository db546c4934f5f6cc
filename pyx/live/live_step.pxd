from libc.stdint cimport int32_t, int64_t

from windjoin.pyx.base.column cimport Ring
from windjoin.pyx.base.index cimport Index
from windjoin.pyx.base.output cimport Output, Runner
from windjoin.pyx.encoding.keys cimport KeySpace
from windjoin.pyx.live.store cimport Arrived, Store, Taker
from windjoin.pyx.live.store_step cimport StoreStep


cdef class LiveStep(StoreStep):
    cdef Runner pipeline
    cdef bint by_code  # time and one key are all of a row; then these are what it goes to
    cdef bint by_value  # time and one number are
    cdef bint real  # whether that is a double
    cdef KeySpace space
    cdef Ring times
    cdef Ring codes  # or values
    cdef Index index
    cdef int _join(self, const Arrived *rows) except -1
    cdef int _run(self, const Arrived *rows) except -1 nogil
    cdef int _carry(self, Arrived *rows, list varlen) except -1
    cdef int _carry_blocks(self, const Arrived *rows) except -1 nogil
    cdef int _carry_by_code(self, const Arrived *rows) except -1 nogil
    cdef int _carry_by_value(self, const Arrived *rows) except -1 nogil
    cdef int _carry_any(self, Arrived *rows, list varlen) except -1
    cdef int _insert(self, const Arrived *rows, list varlen, int64_t at) except -1
    cdef int _insert_into(
        self, Taker taker, const Arrived *rows, list varlen, int64_t at
    ) except -1
    cdef const int32_t *_composite(self, const Arrived *rows, Taker taker) except NULL
    cdef const int64_t *_sortable(
        self, int64_t n, const int64_t *values, bint real, int place
    ) noexcept nogil
