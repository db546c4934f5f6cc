"""Equality index of a whole table that is asked in time order: row numbers per key code.

Unchecked: enter through ``kernels.equality``.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from windjoin.pyx.base.index cimport Cursor, Index, Pairs, Probe, RowBounds, TimeBounds
from windjoin.pyx.base.output cimport give_array, take_array


cdef extern from "csr_postings.h" nogil:
    int csr_serve(void *all, const Probe *probe, Cursor *cursor, Pairs *out)
    int64_t csr_exists(void *all, const Probe *probe, uint8_t *marks)
    RowBounds csr_locate(void *all, int64_t n, TimeBounds bounds)
    void csr_load(Csr *all, const int32_t *code)


cdef int csr_allocate(
    Csr *csr, const int64_t *time, int64_t n, int64_t n_postings, int64_t first
) except -1:
    """Room for the lists of n rows."""
    csr.n = n
    csr.first = first
    csr.n_postings = n_postings
    csr.time = time
    csr.postings = <CsrList *>take_array(n_postings + 1, &csr.list_room)
    csr.row = <int32_t *>take_array((n + CSR_SLACK + 1) // 2, &csr.row_room)
    return 0


cdef void csr_free(Csr *csr) noexcept:
    give_array(<int64_t *>csr.postings, csr.list_room)
    give_array(<int64_t *>csr.row, csr.row_room)


cdef class CsrPostings(Index):
    """Lists of row numbers per key code, for rows numbered in time order."""

    cdef Csr all
    cdef const int64_t[::1] time  # keeps the array alive

    def __cinit__(self):
        memset(&self.all, 0, sizeof(Csr))
        self.serve = csr_serve
        self.locate = csr_locate
        self.exists = csr_exists
        self.fills_bound = True
        self.state = &self.all

    def __dealloc__(self):
        csr_free(&self.all)

    @staticmethod
    def load(const int32_t[::1] codes, const int64_t[::1] times, int64_t n_codes, int64_t first=0):
        """Index of rows in time order: row first + i has code ``codes[i]``, or none if negative."""
        cdef CsrPostings self = CsrPostings()
        cdef int64_t n = codes.shape[0]
        self.time = times
        csr_allocate(&self.all, &times[0] if n else NULL, n, n_codes, first)
        with nogil:
            csr_load(&self.all, &codes[0] if n else NULL)
        return self

    @property
    def nbytes(self):
        return 8 * (self.all.n_postings + 1) + 4 * (self.all.n + CSR_SLACK)
