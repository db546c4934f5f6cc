from libc.stdint cimport int64_t, uint8_t

from windjoin.pyx.base.column cimport Ring


cdef struct Early:
    int64_t time
    int64_t row


cdef class Unmatched:
    cdef uint8_t *bits
    cdef int64_t room  # rows; a power of two
    cdef readonly int64_t first
    cdef readonly int64_t tail
    cdef readonly int64_t passed
    cdef int64_t newest
    cdef Early *heap
    cdef int64_t n_heap
    cdef int64_t heap_room
    cdef int take(self, int64_t n, const int64_t *times, const uint8_t *usable) except -1
    cdef int64_t _until(self, Ring times, int64_t horizon, bint all_of_them) noexcept nogil
    cdef object _decide(self, Ring times, int64_t last)
    cdef void _mark(self, int64_t row) noexcept nogil
    cdef bint _has(self, int64_t row) noexcept nogil
    cdef int _need(self, int64_t rows) except -1
    cdef int _push(self, int64_t time, int64_t row) except -1
    cdef Early _pop(self) noexcept nogil
