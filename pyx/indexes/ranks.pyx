"""Equality index of a whole table that is asked in time order: row numbers per key code.

Unchecked: enter through ``kernels.equality``.
"""
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from windjoin.pyx.base.index cimport Cursor, Index, Pairs, Probe
from windjoin.pyx.base.output cimport give_array, take_array


cdef extern from "ranks.h" nogil:
    int ranks_serve(void *all, const Probe *probe, Cursor *cursor, Pairs *out)
    void ranks_aim(void *all, int64_t n, int64_t *lo, int64_t *hi)
    void ranks_load(Ranks *all, const int32_t *code)


cdef int new_ranks(
    Ranks *ranks, const int64_t *time, int64_t n, int64_t n_lists, int64_t first
) except -1:
    """Room for the lists of n rows."""
    ranks.n = n
    ranks.first = first
    ranks.n_lists = n_lists
    ranks.time = time
    ranks.lists = <RankList *>take_array(n_lists + 1, &ranks.list_room)
    ranks.row = <int32_t *>take_array((n + RANKS_SLACK + 1) // 2, &ranks.row_room)
    return 0


cdef void free_ranks(Ranks *ranks) noexcept:
    give_array(<int64_t *>ranks.lists, ranks.list_room)
    give_array(<int64_t *>ranks.row, ranks.row_room)


cdef class KeyRanks(Index):
    """Lists of row numbers per key code, for rows numbered in time order."""

    cdef Ranks all
    cdef const int64_t[::1] time  # keeps the array alive

    def __cinit__(self):
        memset(&self.all, 0, sizeof(Ranks))
        self.serve = ranks_serve
        self.aim = ranks_aim
        self.binds = True
        self.state = &self.all

    def __dealloc__(self):
        free_ranks(&self.all)

    @staticmethod
    def load(const int32_t[::1] codes, const int64_t[::1] times, int64_t n_codes, int64_t first=0):
        """Index of rows in time order: row first + i has code ``codes[i]``, or none if negative."""
        cdef KeyRanks self = KeyRanks()
        cdef int64_t n = codes.shape[0]
        self.time = times
        new_ranks(&self.all, &times[0] if n else NULL, n, n_codes, first)
        with nogil:
            ranks_load(&self.all, &codes[0] if n else NULL)
        return self

    @property
    def nbytes(self):
        return 8 * (self.all.n_lists + 1) + 4 * (self.all.n + RANKS_SLACK)
