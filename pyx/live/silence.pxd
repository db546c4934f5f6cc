from libc.stdint cimport int64_t


cdef class Silence:
    cdef list clocks
    cdef object now
    cdef double *last
    cdef double *limit
    cdef int n
    cpdef bint heard(self, int stream) except -1
