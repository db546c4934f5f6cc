"""The base of a session that sheds: it tells the beat how long its pushes take."""
from windjoin.pyx.live.session_base cimport SessionBase
from windjoin.pyx.live.shedder cimport Beat


cdef class MeteredInput(SessionBase):
    """A `SessionBase` whose pushes are measured once it has a beat.

    `tell` is called before a push, and may refuse it by an error; `attend` after one.
    """

    cdef public Beat beat

    def push(self, stream, rows):
        """Join new rows of a stream with all that is here; the results that they complete."""
        cdef Beat beat = self.beat
        cdef bint measured
        if beat is None:
            return self.push_rows(stream, rows)
        if beat.to_tell:
            self.tell()
        beat.until_measured -= 1
        measured = beat.until_measured <= 0 and beat.measures()
        try:
            return self.push_rows(stream, rows)
        finally:
            if measured:
                beat.end()
            if beat.to_attend:
                beat.to_attend = False
                self.attend()
