from libc.stdint cimport int32_t, int64_t, uint32_t

from windjoin.pyx.base.index cimport Index
from windjoin.pyx.indexes.postings cimport KeyPostings, Postings


cdef extern from "cache_lines.h" nogil:
    ctypedef struct CacheLine:
        int32_t time[8]
        uint32_t row[8]
    ctypedef struct CacheLines:
        CacheLine *lines
        int64_t (*value)[8]
        int64_t (*exact)[8]
        uint32_t *more
        int64_t n_lines
        int64_t *memory
        int64_t newest
        int64_t latest
        Postings *older


cdef class CacheLineIndex(Index):
    cdef CacheLines all
    cdef bint valued
    cdef int64_t room
    cdef int64_t horizon
    cdef bint begun
    cdef int64_t oldest  # time of all that may be alive
    cdef KeyPostings older
    cdef int32_t *vacant  # lists that no key has
    cdef int32_t n_vacant
    cdef int32_t n_lists
    cdef void keep_values(self) noexcept
    cdef int _refit(self) except -1 nogil
    cdef int _put_one(
        self, int64_t code, int64_t time, int64_t row, int64_t value
    ) except -1 nogil
    cdef int _keep_older(
        self, int64_t code, int64_t time, int64_t row, int64_t value
    ) except -1 nogil
    cdef int _new_list(self) except -1 nogil
    cdef void _give_list(self, int64_t code) noexcept nogil
    cdef void _give_list_if_vacant(self, int64_t code) noexcept nogil
    cdef int _need_lines(self, int64_t n) except -1 nogil
    cdef int _set_room(self, int64_t n, bint exact) except -1 nogil
