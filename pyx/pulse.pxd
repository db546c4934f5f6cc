from libc.stdint cimport int64_t


cdef class Pulse:
    cdef int64_t next
    cdef object on_pulse  # called now and then with the start rows done so far
    cdef bint stopped
    cdef int64_t started  # start rows
    cdef int look_up(self) except -1 nogil
