from libc.stdint cimport int64_t


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


cdef class Turn:
    cdef bint taken
