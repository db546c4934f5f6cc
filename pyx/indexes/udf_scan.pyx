"""Rows of a whole table that a user's function lets pass, window by window.

Unchecked: enter through ``kernels.udf_scan``.
"""
from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from windjoin.pyx.base.index cimport (
    Cursor, Index, Pairs, Probe, RowBounds, TimeBounds, out_of_memory,
)


cdef extern from "udf_scan.h" nogil:
    const int MOST_BOUND
    ctypedef struct Csr:
        const int64_t *time
        int64_t n
        int64_t first
    ctypedef void (*Sweep)() noexcept
    ctypedef struct UdfWindows:
        Csr rows
        Sweep function
        int64_t *operand
        int64_t stride
        int bound
        int64_t raised
    int udf_scan_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out)
    RowBounds udf_scan_locate(void *index, int64_t n, TimeBounds bounds)

cdef extern from "memory.h" nogil:
    int64_t *new_array(int64_t n)


cdef class UdfScanIndex(Index):
    """Rows in time order with the operands they bring to a function."""

    cdef UdfWindows all
    cdef const int64_t[::1] time  # keeps the array alive
    cdef int operands

    def __cinit__(self):
        memset(&self.all, 0, sizeof(UdfWindows))
        self.serve = udf_scan_serve
        self.locate = udf_scan_locate
        self.fills_bound = True
        self.raised = &self.all.raised
        self.state = &self.all

    def __dealloc__(self):
        free(self.all.operand)

    @staticmethod
    def load(columns, const int64_t[::1] times, size_t function, int bound, int64_t first=0):
        """Rows first, first + 1, ... with columns that a function takes, doubles as their bits.

        function: address of a ``Sweep``
        bound: operands that partial results bring
        """
        cdef UdfScanIndex self = UdfScanIndex()
        cdef const int64_t[::1] column
        cdef int64_t n = times.shape[0]
        cdef int k
        assert 0 <= bound <= MOST_BOUND
        self.time = times
        self.operands = len(columns)
        self.all.function = <Sweep>function
        self.all.bound = bound
        self.all.rows.first = first
        self.all.rows.n = self.all.stride = n
        self.all.operand = new_array(n * self.operands)
        if self.all.operand == NULL:
            out_of_memory(b"operands of a function", n * self.operands)
        if n:
            self.all.rows.time = &times[0]
            for k in range(self.operands):
                column = columns[k]
                memcpy(self.all.operand + k * n, &column[0], n * sizeof(int64_t))
        return self

    @property
    def nbytes(self):
        return 8 * self.operands * self.all.rows.n
