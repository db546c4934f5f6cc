"""The base of a session that sheds: it tells the beat how long its pushes take."""
from libc.stdint cimport int64_t

from windjoin.pyx.live.session_base cimport SessionBase
from windjoin.pyx.live.shedder cimport Beat

cdef extern from "clock.h" nogil:
    int64_t fine_nanoseconds()


cdef class MeteredInput(SessionBase):
    """A `SessionBase` whose pushes are measured once it has a beat.

    `tell` is called before a push, and may refuse it by an error; `attend` after one.
    """

    cdef public Beat beat

    def push(self, stream, rows):
        """Join new rows of a stream with all that is here; the results that they complete."""
        cdef Beat beat = self.beat
        cdef int64_t begun = 0
        if beat is None:
            return SessionBase.push(self, stream, rows)
        if beat.to_tell:
            self.tell()
        if beat.measures():
            beat.begun_of = beat.measured_of
            begun = beat.begun_at = fine_nanoseconds()
        try:
            return SessionBase.push(self, stream, rows)
        finally:
            if begun:
                beat.joining += beat.begun_of * (fine_nanoseconds() - beat.begun_at)
                beat.begun_at = 0
            if beat.to_attend:
                beat.to_attend = False
                self.attend()
