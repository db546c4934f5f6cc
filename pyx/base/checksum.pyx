"""Checksums of what is written to files."""
from libc.stdint cimport int64_t, uint8_t, uint64_t


cdef extern from "checksum.h" nogil:
    ctypedef struct Sum:
        pass
    void sum_begin(Sum *sum)
    void sum_add(Sum *sum, const uint8_t *at, int64_t n)
    uint64_t sum_value(const Sum *sum)


cdef class Checksum:
    """XXH64 of bytes that come one part after the other, with seed 0."""

    cdef Sum sum

    def __cinit__(self):
        sum_begin(&self.sum)

    def add(self, const uint8_t[::1] data):
        """These bytes follow."""
        cdef int64_t n = data.shape[0]
        cdef const uint8_t *first = &data[0] if n else NULL
        if n:
            with nogil:
                sum_add(&self.sum, first, n)

    @property
    def value(self):
        """Of all that came."""
        return sum_value(&self.sum)


def checksum(const uint8_t[::1] data):
    """The same of bytes that are there."""
    cdef Checksum whole = Checksum()
    whole.add(data)
    return whole.value
