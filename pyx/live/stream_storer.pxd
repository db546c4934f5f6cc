from libc.stdint cimport int64_t

from windjoin.pyx.live.store cimport Arrived
from windjoin.pyx.live.store_step cimport StoreStep


cdef class StreamStorer(StoreStep):
    cdef int added
    cdef object _add_columns(self, Arrived *rows)
    cdef int _hand_over(
        self, times, numbers, int64_t first, int64_t n, int64_t newest
    ) except -1
