from libc.stdint cimport int64_t

from windjoin.pyx.live.live_step cimport LiveStep
from windjoin.pyx.live.store cimport Arrived


cdef class StreamJoiner(LiveStep):
    cdef list stores
    cdef readonly int64_t results
    cdef public int64_t since_maintenance  # rows that came, and half of those that went
    cdef public int64_t patience  # after so many `maintain` is called
    cdef object maintain
    cdef bint take_arrays(self, time, list columns, list keys, list varlen) except -1
    cdef int _take_stretches(self, Arrived *rows, list varlen) except -1
    cdef Arrived _stretch(self, const Arrived *rows, int64_t at, int64_t n) noexcept nogil
    cdef int _maintain_sometimes(self) except -1
    cdef int _end_push(self, int64_t n, int64_t newest) except -1
    cdef int _come_to(self, int64_t time, int64_t n) except -1
