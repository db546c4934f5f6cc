from libc.stdint cimport int64_t


cdef void obey(const int *stopped) noexcept
cdef int hear() except -1 nogil
cdef int look_up() except -1 nogil


cdef class Cancellation:
    cdef int64_t next
    cdef object on_progress  # called now and then with the start rows done so far
    cdef int64_t started  # start rows
    cdef int look_up(self) except -1 nogil
