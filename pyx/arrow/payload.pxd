from libc.stdint cimport int64_t, uint8_t

from windjoin.pyx.arrow.tables cimport ArrowArray


cdef extern from "payload.h" nogil:
    ctypedef struct Layout:
        int kind
        int64_t width
        int64_t items
        int child
        int offset_bytes
        int64_t valid
        int64_t values
    ctypedef struct SpillFile:
        int file
        int64_t end, most
    ctypedef struct Payload:
        int n
        int shift
        Layout *layout
        int64_t mask
        int64_t head
        int64_t tail
        int64_t *nulls
        int64_t *item_nulls
        int64_t *longest
        int64_t nbytes
        SpillFile disk
        int64_t cold
        int64_t mapped
        int logging


cdef extern from "gather.h" nogil:
    ctypedef struct Wish:
        const Payload *from_ "from"
        int number
        const int64_t *row
        const uint8_t *there
        int64_t missing


cdef class Pages:
    cdef Payload all
    cdef int *number
    cdef list lent  # (first row, behind the last, `Borrowed`) of batches, in order
    cdef int _bring(self, int64_t row) except -1
    cdef int _bring_all(self) except -1
    cdef int bring(self, const int64_t *row, int64_t n) except -1
    cdef int keep(self, const ArrowArray *batch, const int *number) except -1
    cpdef expire(self, int64_t head)


cdef class Gatherer:
    cdef Wish *wish  # without rows: these are of one call
    cdef int *stream  # of each column
    cdef int n
    cdef bint lacking
    cdef list pages  # kept alive
    cdef object taken_over
    cdef list some(self, const int64_t **rows, int64_t first, int64_t n)
    cdef int fill(
        self, const int64_t **rows, int64_t first, int64_t n, ArrowArray *batch, int *why
    ) except -1
    cdef object _leave_out(self, Wish *wish, int64_t n)
