from libc.stdint cimport int32_t, int64_t, uint8_t

from windjoin.pyx.base.output cimport Output
from windjoin.pyx.live.silence cimport Silence
from windjoin.pyx.live.store cimport Arrived, Store


cdef object rows_in_order(const Arrived *rows, const uint8_t *usable, bint ordered)


cdef class StoreStep:
    cdef Store own
    cdef int number
    cdef list clocks
    cdef Silence silence  # None: streams may be silent for as long as they like
    cdef Output out  # of results that are rows of all streams
    cdef public object give  # makes something of these; None: they are given out
    cdef list given  # by the last push, where somebody did
    cdef int32_t *code_room
    cdef int64_t *row_room
    cdef int64_t room
    cdef const void **places  # room for the pointers of what arrived, and of parts of it
    cdef void begin(self, Arrived *rows) noexcept nogil
    cdef void _point(self, Arrived *rows, int which) noexcept nogil
    cdef bint take(self, Arrived *rows, list varlen) except -1
    cdef int take_some(
        self, Arrived *all, list varlen_rows, const uint8_t *usable, bint ordered, int64_t newest
    ) except -1
    cdef list _found(self)
    cdef int _need_room(self, int64_t n) except -1
    cdef int32_t *_codes(self, int64_t key) noexcept nogil
    cdef int _encode(self, Arrived *rows) except -1
    cdef list _keep(self, Arrived *rows, list varlen)
    cdef list _store_varlen(self, int64_t first, list varlen)
    cdef object _pick(self, Arrived *all, pick, const uint8_t *usable, Arrived *rows)
    cdef int _give_codes(
        self, Arrived *all, int k, int64_t n, const int64_t *at, int64_t *keys, int32_t *codes
    ) except -1
