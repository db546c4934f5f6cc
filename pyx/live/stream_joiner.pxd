from libc.stdint cimport int32_t, int64_t, uint8_t

from windjoin.pyx.live.live_step cimport LiveStep
from windjoin.pyx.live.silence cimport Silence
from windjoin.pyx.live.store cimport Arrived


cdef class StreamJoiner(LiveStep):
    cdef int number
    cdef list stores
    cdef list clocks
    cdef Silence silence  # None: streams may be silent for as long as they like
    cdef readonly int64_t results
    cdef public int64_t since_maintenance  # rows that came, and half of those that went
    cdef public int64_t patience  # after so many `maintain` is called
    cdef object maintain
    cdef public object give
    cdef list given  # by the last push
    cdef const void **places  # room for the pointers of what arrived, and of a stretch of it
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
