"""What a long run that holds no GIL still has to hear of: Ctrl-C, a stop, a progress bar."""
from cpython.exc cimport PyErr_CheckSignals

cdef extern from "clock.h" nogil:
    const int64_t PULSE_NANOSECONDS
    int64_t clock_nanoseconds()


cdef class Pulse:
    """One for all that takes part in a run, so that they look up no more often than one would."""

    cdef int look_up(self) except -1 nogil:
        """Now and then, let Ctrl-C, a stop and a progress bar have their moment."""
        cdef int64_t now = clock_nanoseconds()
        if now < self.next:
            return 0
        self.next = now + PULSE_NANOSECONDS
        with gil:
            PyErr_CheckSignals()
            if self.stopped:
                raise KeyboardInterrupt("the join was stopped")
            if self.on_pulse is not None:
                self.on_pulse(self.started)
        return 0
