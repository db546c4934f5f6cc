from libc.stdint cimport int64_t

from windjoin.pyx.base.column cimport ColumnView
from windjoin.pyx.base.index cimport Locate, Column, Cursor, Index, Pairs, Probe, Serve


cdef extern from "limited.h" nogil:
    const int MOST_AGES
    ctypedef struct Conduct:
        int limited
        int learning
    ctypedef struct AgeLimits:
        const Conduct *conduct
        Serve serve
        Locate locate
        void *index
        int start
        const Column *start_time
        const Column *time
        int n_ages
        int64_t *least_age
        int64_t *most_age
        int64_t *lo
        int64_t *hi
        int64_t given
        int looks
        const int64_t *head
        const int64_t *tail
        int64_t width
        int64_t first
        int64_t n_windows
        double *proposed
        int before
        const Column *before_time
        int64_t before_first
        int64_t before_windows
        double *arrived
    int64_t basic_window(int64_t age, int64_t width, int64_t first, int64_t n)
    int64_t time_at(const Column *time, int64_t row)
    bint limits_chosen(const AgeLimits *limits, int64_t age)


cdef class Limited(Index):
    cdef AgeLimits limits
    cdef Conduct alone  # of one that nobody has taken over yet
    cdef Index index
    cdef readonly int target
    cdef readonly object proposed
    cdef readonly object arrived
    cdef object _alive
    cdef int _follow(self, Limited hop, ColumnView time) except -1
