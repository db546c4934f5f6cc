from libc.stdint cimport int64_t

cimport cython


@cython.final
cdef class SessionLock:
    cdef bint taken
    cdef bint begun
    cdef bint take(self) noexcept


cdef class SessionBase:
    cdef public dict _stream_inputs  # StreamInput by name of stream
    cdef public int64_t sequence  # pushes that were taken so far
    cdef public str _ended  # why nothing can be done to the session any more
    cdef readonly SessionLock _session_lock
    cdef object push_rows(self, stream, rows)
    cdef object _do(self, call, tuple arguments, dict options)
    cdef int _break_off(self) except -1
