"""Streams that have sent nothing for too long do not hold others back."""
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t
from libc.stdlib cimport free, malloc

from windjoin.pyx.base.index cimport out_of_memory
from windjoin.pyx.live.store cimport Watermark


cdef class Silence:
    """Makes promises in the name of streams that are silent, on the clock of whoever uses them.

    A silent stream is promised to come no earlier than the least watermark of those that are not,
    so all that asks watermarks works as ever, and what the stream sends later is judged by the
    promise.  Where all are silent nothing is promised.

    limits: seconds after which each stream is silent; infinity: never
    now: a function that gives seconds, which never go back
    """

    def __cinit__(self, list clocks, limits, now):
        self.n = len(clocks)
        self.last = <double *>malloc(2 * self.n * sizeof(double))
        if self.last == NULL:
            out_of_memory(b"streams", self.n)
        self.limit = self.last + self.n

    def __init__(self, list clocks, limits, now):
        cdef double begun = now()
        cdef int s
        self.clocks = clocks
        self.now = now
        for s in range(self.n):
            self.last[s] = begun
            self.limit[s] = limits[s]

    def __dealloc__(self):
        free(self.last)

    cpdef bint heard(self, int stream) except -1:
        """Stream number ``stream`` has sent rows or a promise, -1: none has; whether that moved the
        watermark of a silent one.
        """
        cdef double now = self.now()
        cdef int64_t least = INT64_MAX
        cdef Watermark clock
        cdef bint moved = False
        cdef int s
        if stream >= 0:
            self.last[stream] = now
        for s in range(self.n):
            if now - self.last[s] < self.limit[s]:
                least = min(least, (<Watermark>self.clocks[s]).mark())
        if least == INT64_MIN or least == INT64_MAX:  # some have not begun, or all have ended
            return False
        for s in range(self.n):
            clock = <Watermark>self.clocks[s]
            if now - self.last[s] >= self.limit[s] and clock.mark() < least:
                clock.promised = clock.silenced = least
                moved = True
        return moved

    def silent(self, int stream):
        """Whether a stream that has not ended has been silent for too long, now."""
        cdef double now = self.now()
        if (<Watermark>self.clocks[stream]).mark() == INT64_MAX:
            return False
        return now - self.last[stream] >= self.limit[stream]
