from libc.stdint cimport int64_t


cdef struct Pushed:
    int64_t stop  # the number of the row after its last
    int64_t nbytes


cdef class Contents:
    cdef readonly int64_t nbytes
    cdef list parts
    cdef Pushed *pushed  # of each part
    cdef int64_t first, last, capacity  # parts that are held, and how many there is room for
    cpdef int add(self, int64_t stop, part) except -1
    cdef int expire(self, int64_t head) except -1
