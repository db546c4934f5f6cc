from libc.stdint cimport int64_t


cdef extern from "arrow_c.h" nogil:
    ctypedef struct ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void **buffers
        ArrowArray **children
        void (*release)(ArrowArray *)
    ctypedef struct ArrowArrayStream:
        int (*get_next)(ArrowArrayStream *, ArrowArray *)
        const char *(*get_last_error)(ArrowArrayStream *)
        void (*release)(ArrowArrayStream *)


cdef enum Form:
    AS_THEY_LIE
    INTEGERS  # of fewer bytes than 8
    NATURALS  # the same without a sign
    REALS  # of 4 bytes
    DECIMALS  # that fit int64
    TEXTS
    LISTS
    VECTORS
    COMPUTED  # of other columns


cdef struct Wanted:
    int64_t number
    int form
    int64_t size  # bytes of a number as it comes, or how long vectors are
    int kind
    int itemsize


cdef int set_wanted(Wanted *wanted, column) except -1
cdef void widened_to(
    const void *out, const void *values, int64_t first, int64_t n, const Wanted *as_
) noexcept nogil
cdef ArrowArrayStream *stream_of(capsule) except NULL
cdef object viewed(owner, const void *values, int64_t n, int kind)


cdef class Borrowed:
    cdef ArrowArray batch
    cdef bint next(self, ArrowArrayStream *stream) except -1
    cdef int take(self, rows, bint table) except -1
    cdef bint lies_here(self) noexcept
    cdef object numbers(
        self, const ArrowArray *values, int64_t first, int64_t n, const Wanted *as_
    )
    cdef object lists(self, const ArrowArray *column, int64_t first, int64_t n, const Wanted *as_)
    cdef object vectors(
        self, const ArrowArray *column, int64_t first, int64_t n, const Wanted *as_
    )
