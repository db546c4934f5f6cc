from libc.stdint cimport int32_t, int64_t

from windjoin.pyx.base.index cimport Cursor, Index, Pairs, Probe


cdef extern from "postings.h" nogil:
    ctypedef struct PostingList:
        int64_t offset
        int32_t length
        int32_t capacity
        int32_t hint
    ctypedef struct Postings:
        PostingList *postings
        int64_t n_postings
        int64_t *time
        int64_t *row
        int64_t *value


cdef class KeyPostings(Index):
    cdef Postings all
    cdef bint valued
    cdef bint whole  # loaded once: its arrays are those of `take_array`
    cdef int64_t postings_room
    cdef int64_t arena_room
    cdef int64_t time_room  # of a whole one
    cdef int64_t row_room
    cdef int64_t arena_used
    cdef int64_t vacant[64]
    cdef int64_t horizon
    cdef int _need_postings(self, int64_t n) except -1 nogil
    cdef int64_t _segment(self, int size_class) except -1 nogil
    cdef void _put_value(self, PostingList *entry, int64_t at, int64_t value) noexcept nogil
    cdef void empty(self, int64_t code) noexcept nogil
    cdef int _make_room(self, PostingList *list) except -1 nogil
    cdef int _need_arena(self, int64_t more) except -1 nogil
    cdef int _move_together(self, int64_t room) except -1 nogil
    cdef int64_t *_grown(self, int64_t *old, int64_t room) except NULL nogil
    cdef void _drop_expired(self, PostingList *entry) noexcept nogil
    cdef void _vacate(self, PostingList *entry) noexcept nogil
