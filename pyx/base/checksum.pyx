"""Checksums of what is written to files."""
from libc.stdint cimport int64_t, uint8_t, uint64_t


cdef extern from "checksum.h" nogil:
    uint64_t sum_bytes(const uint8_t *at, int64_t n)


def checksum(const uint8_t[::1] data):
    """XXH64 of some bytes, with seed 0."""
    cdef int64_t n = data.shape[0]
    cdef uint64_t out
    cdef const uint8_t *first = &data[0] if n else NULL
    with nogil:
        out = sum_bytes(first, n)
    return out
