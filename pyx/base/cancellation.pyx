"""What long work that holds no GIL still has to hear of: Ctrl-C, a stop, a progress bar.

A thread of a crew hears of the crew's stop, any other of signals.
"""
from cpython.exc cimport PyErr_CheckSignals

cdef extern from "clock.h" nogil:
    const int64_t CANCELLATION_NANOSECONDS
    int64_t clock_nanoseconds()

cdef extern from "cancellation.h" nogil:
    int64_t *cancellation_due()
    void cancellation_obey(const int *stopped)
    bint cancellation_obeys()
    bint cancellation_is_stopped()


cdef void obey(const int *stopped) noexcept:
    """This thread ends when that becomes true; NULL: it hears of signals again."""
    cancellation_obey(stopped)


cdef int hear() except -1 nogil:
    """Let what has come in the meantime have its moment."""
    if cancellation_is_stopped():
        with gil:
            raise KeyboardInterrupt("the join was stopped")
    if not cancellation_obeys():
        with gil:
            PyErr_CheckSignals()
    return 0


cdef int look_up() except -1 nogil:
    """The same now and then; as cheap as reading a clock, and called between blocks of work."""
    cdef int64_t now = clock_nanoseconds()
    if now < cancellation_due()[0]:
        return 0
    cancellation_due()[0] = now + CANCELLATION_NANOSECONDS
    return hear()


cdef class Cancellation:
    """The same for all that takes part in a run, with its progress."""

    cdef int look_up(self) except -1 nogil:
        cdef int64_t now = clock_nanoseconds()
        if now < self.next:
            return 0
        self.next = now + CANCELLATION_NANOSECONDS
        hear()
        if self.on_progress is not None:
            with gil:
                if self.on_progress is not None:
                    self.on_progress(self.started)
        return 0
