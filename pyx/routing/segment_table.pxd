"""The state of a `SegmentTable`, and bitsets, for the modules that search in it."""

from libc.stdint cimport int64_t, uint64_t


cdef extern from *:
    """
    static inline int wj_low_bit(uint64_t x) { return __builtin_ctzll(x); }
    static inline int wj_count_bits(uint64_t x) { return __builtin_popcountll(x); }
    """
    int low_bit "wj_low_bit"(uint64_t) noexcept nogil
    int count_bits "wj_count_bits"(uint64_t) noexcept nogil


cdef class SegmentTable:
    cdef readonly int streams, hosts, slots
    cdef int host_words, words
    cdef int64_t[::1] windows, head, tail
    cdef int64_t[:, ::1] start, stop  # [stream, slot]
    cdef uint64_t[:, :, ::1] held  # [stream, host]: bits of slots
    cdef uint64_t[:, :, ::1] holders  # [stream, slot]: bits of hosts
    cdef uint64_t[::1] base  # scratch: a set of hosts

    cdef int64_t _first(self, int k, int64_t oldest) noexcept
    cdef int64_t _behind(self, int k, int64_t until) noexcept
    cdef int64_t _find(self, int stream, int64_t start) noexcept
    cdef int _append(self, int stream, int64_t start, int64_t stop, uint64_t *hosts) except -1
    cdef int _clear(self, int stream, int64_t slot) except -1


cdef inline bint has_bit(const uint64_t *bits, int64_t number) noexcept nogil:
    return (bits[number >> 6] >> (number & 63)) & 1


cdef inline void set_bit(uint64_t *bits, int64_t number) noexcept nogil:
    bits[number >> 6] |= <uint64_t>1 << (number & 63)


cdef tuple members(const uint64_t *bits, int words)
