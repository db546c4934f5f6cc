"""`cover.h` for the other modules of this room."""

from libc.stdint cimport int32_t, int64_t, uint64_t


cdef extern from "cover.h":
    ctypedef struct wj_cover:
        int hosts
        int host_words
        int first_word
        int last_word
        int words
        const uint64_t *held
        const uint64_t *holders
        const double *weight
        int32_t *count
        int64_t *key
        uint64_t *random
    int wj_cover_greedy(const wj_cover *, uint64_t *, int32_t *) nogil
