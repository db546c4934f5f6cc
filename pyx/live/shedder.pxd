cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t

from windjoin.pyx.base.column cimport ColumnView
from windjoin.pyx.live.limited cimport AgeLimits, Conduct
from windjoin.pyx.base.output cimport Output, Runner


@cython.final
cdef class Beat:
    cdef int kind
    cdef object clock
    cdef object call
    cdef double tick_s  # seconds per tick of event time
    cdef int64_t longest
    cdef int64_t base
    cdef bint begun
    cdef int64_t newest[16]
    cdef int64_t batch_first  # time of the rows that a host joins now, the first
    cdef int64_t batch_last
    cdef int64_t batch_before  # and the last of its turn before
    cdef double now
    cdef int64_t unread  # times that it is asked whether it is due until the clock is read
    cdef public int64_t look_of  # as many, then
    cdef public double next
    cdef public double spent
    cdef public double alarm
    cdef public bint by_time
    cdef public bint to_tell  # before the next push
    cdef public bint to_attend  # after this one
    cdef public int64_t begun_at  # of the push that is on, nanoseconds; 0: none is
    cdef public int64_t joining  # nanoseconds in pushes
    cdef public int64_t measured_of  # one of so many pushes is measured, drawn at random
    cdef public int64_t most_charged  # nanoseconds for others that were not, at most
    cdef public int64_t longest_push  # that was measured, since this was set to 0
    cdef int64_t until_measured  # pushes
    cdef int64_t gap  # pushes from the last that was measured to the next
    cdef int64_t begun_of  # as many as the push that is on stands for
    cdef readonly uint64_t pushes  # up to the last that was measured
    cdef bint measures(self) noexcept
    cdef bint rests(self) noexcept nogil
    cdef int64_t _charged(self, int64_t took) noexcept
    cpdef void end(self) noexcept
    cdef void first_turn(self, int number, int *targets, int n) noexcept nogil
    cdef void come(self, int stream, int64_t time) noexcept nogil
    cdef bint due(self) except -1 nogil


@cython.final
cdef class Shedder(Runner):
    cdef Runner inner
    cdef Beat beat
    cdef int number
    cdef ColumnView time
    cdef Conduct conduct
    cdef AgeLimits *limits[16]
    cdef readonly list hops
    cdef int targets[16]
    cdef int n_hops
    cdef uint64_t seed
    cdef uint64_t full_below
    cdef uint64_t probe_below
    cdef public bint exact
    cdef public bint probes  # whether selective rows ask at all
    cdef public int64_t chunk  # rows between two looks at the clock
    cdef public int64_t chunk_ns  # that they may take, while nobody knows how many that are; or 0
    cdef public int64_t looks_every  # rows, where all is joined: then some are learned from
    cdef public double unknown  # rows that have still to be learned from
    cdef int64_t since_look
    cdef public int64_t calm  # rows that may be joined before anything is looked at
    cdef readonly list found
    cdef double *result[16]
    cdef readonly object sums
    cdef double *sum
    cdef public object value
    cdef int64_t *full_room
    cdef int64_t *rest_room
    cdef int64_t *ends
    cdef readonly int64_t rows
    cdef readonly int64_t full
    cdef readonly int64_t full_ns  # that they took
    cdef readonly int64_t skipped
    cdef readonly int64_t probing  # nanoseconds, of rows in `timed`
    cdef readonly int64_t timed
    cdef bint _passes(self, int64_t n) noexcept nogil
    cdef int64_t _calm(self) noexcept nogil
    cdef int64_t given(self) noexcept nogil
    cdef bint _asks(self, int64_t row) noexcept nogil
    cdef void _tally(self, int64_t found, int64_t missed) noexcept nogil
    cdef int _carry(self, int64_t first, int64_t n, const int64_t *row, Output out) except -1 nogil
    cdef int _carry_some(
        self, int64_t first, int64_t n, const int64_t *row, Output out
    ) except -1 nogil
    cdef int _after(self, int64_t first, int64_t n, const int64_t *row, int64_t given,
                    int64_t begun) except -1 nogil
    cdef int _all(
        self, int64_t first, int64_t n, const int64_t *row, const int64_t *time,
        const int32_t *code, Output out,
    ) except -1 nogil
    cdef int64_t _patience(self) noexcept nogil
    cdef int _plainly(
        self, int64_t first, int64_t n, const int64_t *row, const int64_t *time,
        const int32_t *code, Output out,
    ) except -1 nogil
    cdef int _choose(self, int64_t first, int64_t n, const int64_t *row, Output out) except -1 nogil
    cdef int _fully(self, int64_t n, Output out) except -1 nogil
    cdef int64_t _learn(self, Output out, int64_t start, int64_t first, int64_t last,
                        const double *worth) noexcept nogil
    cdef object _values(self, Output out, int64_t first, int64_t last)
