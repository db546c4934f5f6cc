"""Any index, asked for rows of some ages only: how load is shed without an index knowing of it.

A selective probe asks for the basic windows that are worth most.  Those are a few ranges of time,
so all that is needed are narrower bounds of time, which every index serves.
"""
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

import numpy as np

from windjoin.pyx.base.column cimport ColumnView
from windjoin.pyx.live.store cimport Extent
from windjoin.pyx.base.index cimport SLACK, Index, Serve, out_of_memory

cdef extern from "limited.h" nogil:
    int limits_serve(void *state, const Probe *probe, Cursor *cursor, Pairs *out)


cdef class Limited(Index):
    """An index of the hop from start rows to ``target``.

    block: partial results that ask at a time, at most
    width: length of a basic window in ticks
    first, n_windows: the basic window that begins at age 0, and how many there are
    before: the `Limited` of the hop before, and the times of its stream, if there is one
    rows: of the target, if the index looks at each of them: then they are what is counted
    """

    def __init__(
        self, Index index not None, int start, ColumnView start_time, int target,
        ColumnView time, int64_t block, int64_t width, int64_t first, int64_t n_windows,
        before=None, Extent rows=None,
    ):
        cdef double[::1] counts
        cdef AgeLimits *limits = &self.limits
        self.index = index
        self.target = target
        self.serve = <Serve>limits_serve
        self.state = limits
        self.fills_bound = index.fills_bound
        self.raised = index.raised
        self._alive = start_time, time, before, rows
        limits.conduct = &self.alone
        limits.serve, limits.locate, limits.index = index.serve, index.locate, index.state
        limits.start = start
        limits.start_time = &start_time.column
        limits.time = &time.column
        limits.lo = <int64_t *>malloc((block + SLACK) * sizeof(int64_t))
        limits.hi = <int64_t *>malloc((block + SLACK) * sizeof(int64_t))
        if limits.lo == NULL or limits.hi == NULL:
            out_of_memory(b"bounds of time", block)
        limits.width, limits.first, limits.n_windows = width, first, n_windows
        counts = self.proposed = np.zeros(n_windows)
        limits.proposed = &counts[0]
        limits.before = -1
        if rows is not None:
            limits.looks, limits.head, limits.tail = True, &rows.head, &rows.tail
        if before is not None:
            self._follow(before[0], before[1])

    cdef int _follow(self, Limited hop, ColumnView time) except -1:
        cdef double[::1] counts
        cdef AgeLimits *limits = &self.limits
        limits.before = hop.target
        limits.before_time = &time.column
        limits.before_first, limits.before_windows = hop.limits.first, hop.limits.n_windows
        counts = self.arrived = np.zeros(hop.limits.n_windows)
        limits.arrived = &counts[0]
        return 0

    def __dealloc__(self):
        free(self.limits.lo)
        free(self.limits.hi)

    def choose(self, ages):
        """From now on selective probes ask for rows with these ages: (least, most), apart."""
        cdef int k
        cdef int n = len(ages)
        if n > MOST_AGES:
            raise ValueError(f"{n} ranges of ages; an index is asked for {MOST_AGES} at most")
        for k in range(n):
            self.limits.least_age[k], self.limits.most_age[k] = ages[k]
        self.limits.n_ages = n

    @property
    def given(self):
        """Candidates so far."""
        return self.limits.given

    @property
    def nbytes(self):
        """Bytes allocated, without those of the index."""
        return self.proposed.nbytes + (0 if self.arrived is None else self.arrived.nbytes)

    @property
    def learned_text(self):
        return self.index.learned_text

    cdef int catch_up(self, int64_t time) except -1 nogil:
        return self.index.catch_up(time)

    cdef Index waiter(self):
        return self.index
