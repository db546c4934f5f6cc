from libc.stdint cimport int64_t

from windjoin.pyx.index cimport Column


cdef class ColumnView:
    cdef Column column
    cdef object array
