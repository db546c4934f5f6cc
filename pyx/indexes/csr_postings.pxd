from libc.stdint cimport int32_t, int64_t


cdef extern from "csr_postings.h" nogil:
    const int CSR_SLACK
    ctypedef struct CsrList:
        pass
    ctypedef struct Csr:
        CsrList *postings
        int64_t n_postings
        int32_t *row
        const int64_t *time
        int64_t n
        int64_t first
        int64_t list_room
        int64_t row_room


cdef int csr_allocate(
    Csr *csr, const int64_t *time, int64_t n, int64_t n_postings, int64_t first
) except -1
cdef void csr_free(Csr *csr) noexcept
