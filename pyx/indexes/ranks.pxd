from libc.stdint cimport int32_t, int64_t


cdef extern from "ranks.h" nogil:
    const int RANKS_SLACK
    ctypedef struct RankList:
        pass
    ctypedef struct Ranks:
        RankList *lists
        int64_t n_lists
        int32_t *row
        const int64_t *time
        int64_t n
        int64_t first
        int64_t list_room
        int64_t row_room


cdef int new_ranks(
    Ranks *ranks, const int64_t *time, int64_t n, int64_t n_lists, int64_t first
) except -1
cdef void free_ranks(Ranks *ranks) noexcept
