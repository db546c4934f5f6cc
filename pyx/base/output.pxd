from libc.stdint cimport int32_t, int64_t


cdef extern from "pages.h" nogil:
    ctypedef struct OutputBlock:
        char *data
        size_t bytes
        size_t space


cdef int64_t *take_array(int64_t n, int64_t *room) except NULL
cdef void give_array(int64_t *array, int64_t room) noexcept


ctypedef void (*GiveBack)() noexcept  # what is kept for results to come


cdef int at_release(GiveBack more) except -1


cdef class Output:
    cdef readonly int n_columns
    cdef int64_t *column[16]
    cdef OutputBlock block[16]
    cdef int64_t used
    cdef int64_t room
    cdef bint stays  # for more results after these
    cdef int64_t held(self) noexcept
    cdef int reserve(self, int64_t n) except -1 nogil
    cdef int _copy(self, Output part, int64_t first, int64_t rows) except -1
    cdef int _grow(self, int64_t rows) except -1
    cdef int _set_room(self) except -1
    cpdef list finish(self)
    cdef list peek(self)
    cdef object _copied(self, int k)
    cdef object _pooled(self, int k)
    cdef dict finish_named(self, tuple names)


cdef class Runner:
    cdef int run(self, int64_t first, int64_t last, Output out) except -1 nogil
    cdef int run_some(self, int64_t n, const int64_t *row, Output out) except -1 nogil
    cdef bint runs_in_blocks(self) noexcept nogil
    cdef bint takes_codes(self) noexcept nogil
    cdef int run_codes(
        self, int64_t n, const int64_t *row, const int64_t *time, const int32_t *code, Output out
    ) except -1 nogil
