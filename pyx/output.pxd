from libc.stdint cimport int64_t


cdef struct Chunk:
    int64_t *column[16]
    int64_t used
    int64_t room


cdef class Output:
    cdef readonly int n_columns
    cdef Chunk *chunks
    cdef int64_t n_chunks
    cdef int64_t length
    cdef Chunk *reserve(self, int64_t n) except NULL nogil
    cdef int64_t size(self) noexcept nogil
    cdef void _drop(self, int column) noexcept
