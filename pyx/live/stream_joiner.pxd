from libc.stdint cimport int32_t, int64_t, uint8_t

from windjoin.pyx.base.column cimport Ring
from windjoin.pyx.base.index cimport Index
from windjoin.pyx.encoding.keys cimport KeySpace
from windjoin.pyx.base.output cimport Output, Runner
from windjoin.pyx.live.silence cimport Silence
from windjoin.pyx.live.store cimport Arrived, Store, Taker


cdef class StreamJoiner:
    cdef int number
    cdef Store own
    cdef list stores
    cdef list clocks
    cdef Silence silence  # None: streams may be silent for as long as they like
    cdef Runner pipeline
    cdef Output out
    cdef readonly int64_t results
    cdef public int64_t since_maintenance  # rows that came, and half of those that went
    cdef public int64_t patience  # after so many `maintain` is called
    cdef bint by_code  # time and one key are all of a row; then these are what it goes to
    cdef bint by_value  # time and one number are
    cdef bint real  # whether that is a double
    cdef KeySpace space
    cdef Ring times
    cdef Ring codes  # or values
    cdef Index index
    cdef object maintain
    cdef public object give
    cdef list given  # by the last push
    cdef const void **places  # room for the pointers of what arrived, and of a stretch of it
    cdef int32_t *code_room
    cdef int64_t *row_room
    cdef int64_t room
    cdef void begin(self, Arrived *rows) noexcept nogil
    cdef bint take_arrays(self, time, list columns, list keys, list varlen) except -1
    cdef bint take(self, Arrived *rows, list varlen) except -1
    cdef int _take_stretches(self, Arrived *rows, list varlen) except -1
    cdef void _point(self, Arrived *rows, int which) noexcept nogil
    cdef Arrived _stretch(self, const Arrived *rows, int64_t at, int64_t n) noexcept nogil
    cdef int _maintain_sometimes(self) except -1
    cdef int _end_push(self, int64_t n, int64_t newest) except -1
    cdef list _found(self)
    cdef int _come_to(self, int64_t time, int64_t n) except -1
    cdef int take_some(
        self, Arrived *all, list varlen_rows, const uint8_t *usable, bint ordered, int64_t newest
    ) except -1
    cdef object _pick(self, Arrived *all, pick, const uint8_t *usable, Arrived *rows)
    cdef int _give_codes(
        self, Arrived *all, int k, int64_t n, const int64_t *at, int64_t *keys, int32_t *codes
    ) except -1
    cdef int _join(self, const Arrived *rows) except -1
    cdef int _run(self, const Arrived *rows) except -1 nogil
    cdef int _carry(self, Arrived *rows, list varlen) except -1
    cdef int _carry_blocks(self, const Arrived *rows) except -1 nogil
    cdef int _carry_by_code(self, const Arrived *rows) except -1 nogil
    cdef int _carry_by_value(self, const Arrived *rows) except -1 nogil
    cdef int _carry_any(self, Arrived *rows, list varlen) except -1
    cdef int _need_room(self, int64_t n) except -1
    cdef int32_t *_codes(self, int64_t key) noexcept nogil
    cdef int _encode(self, Arrived *rows) except -1
    cdef list _store_varlen(self, int64_t first, list varlen)
    cdef int _insert(self, const Arrived *rows, list varlen, int64_t at) except -1
    cdef int _insert_into(
        self, Taker taker, const Arrived *rows, list varlen, int64_t at
    ) except -1
    cdef const int32_t *_composite(self, const Arrived *rows, Taker taker) except NULL
    cdef const int64_t *_sortable(
        self, int64_t n, const int64_t *values, bint real, int place
    ) noexcept nogil
