from libc.stdint cimport int64_t

from windjoin.pyx.base.index cimport Column


cdef class ColumnView:
    cdef Column column
    cdef object array


cdef class Ring(ColumnView):
    cdef char *slots
    cdef readonly int64_t capacity
    cdef readonly int itemsize
    cdef readonly object dtype
    cdef int _allocate(self, int64_t capacity) except -1
    cdef void write(self, int64_t row, int64_t n, const char *data) noexcept nogil


cdef object copied(const void *values, int64_t n, int kind)
