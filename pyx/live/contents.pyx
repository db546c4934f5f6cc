"""What rows of a wide column point at, push by push, until all rows of a push have gone."""
from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memmove

cimport numpy as cnp

from windjoin.pyx.base.index cimport out_of_memory

cnp.import_array()

cdef enum:
    FIRST_PARTS = 16


cdef class Contents:
    """Keeps arrays alive, and knows how many bytes they take."""

    def __cinit__(self):
        self.parts = []

    def __dealloc__(self):
        free(self.pushed)

    cpdef int add(self, int64_t stop, part) except -1:
        """Keep what rows before ``stop`` point at that nothing kept before has."""
        cdef int64_t nbytes = cnp.PyArray_NBYTES(part) if cnp.PyArray_Check(part) else part.nbytes
        if self.last == self.capacity:
            self._make_room()
        self.parts.append(part)
        self.pushed[self.last] = Pushed(stop, nbytes)
        self.last += 1
        self.nbytes += nbytes
        return 0

    def clear(self):
        """Let go of everything."""
        self.parts.clear()
        self.first = self.last = self.nbytes = 0

    cdef int expire(self, int64_t head) except -1:
        """Let go of parts whose rows all lie before ``head``."""
        while self.first < self.last and self.pushed[self.first].stop <= head:
            self.nbytes -= self.pushed[self.first].nbytes
            self.parts[self.first] = None
            self.first += 1
        if self.first == self.last and self.last:
            self.clear()
        return 0

    def _make_room(self):
        """For one part more: where those were that have gone, if they are half of all."""
        cdef int64_t held = self.last - self.first
        cdef void *grown
        if self.first <= held:
            grown = realloc(self.pushed, max(2 * self.capacity, FIRST_PARTS) * sizeof(Pushed))
            if grown == NULL:
                out_of_memory(b"pushes of wide columns", 2 * self.capacity)
            self.pushed = <Pushed *>grown
            self.capacity = max(2 * self.capacity, FIRST_PARTS)
            return
        memmove(self.pushed, self.pushed + self.first, held * sizeof(Pushed))
        del self.parts[:self.first]
        self.first, self.last = 0, held
