from libc.stdint cimport int64_t


cdef extern from "memory.h" nogil:
    ctypedef struct Block:
        void *data
        size_t bytes


cdef class Output:
    cdef readonly int n_columns
    cdef int64_t *column[16]
    cdef Block block[16]
    cdef int64_t used
    cdef int64_t room
    cdef int64_t held(self) noexcept
    cdef int reserve(self, int64_t n) except -1 nogil
