"""Rows that start a probing order, put into blocks for its hops, without the GIL.

Unchecked: enter through ``kernels.hops``.
"""
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy, memset

from windjoin.pyx.base.index cimport Column, Cursor, Probe, TimeBounds, add_saturated
from windjoin.pyx.base.output cimport Output
from windjoin.pyx.indexes.postings cimport KeyPostings, PostingList
from windjoin.pyx.probing.hop_chain cimport HopChain, PipelineHop

cdef extern from "times.h" nogil:
    void times_windows(
        const int64_t *time, int64_t n, int64_t before, int64_t after, int64_t *lo, int64_t *hi
    )

cdef enum:
    ROWS_AT_HAND = 256  # their bounds stay in the nearest cache until they are asked for
    ROWS_LOCATED = 1024  # of an index that locates: each block begins with searches
    LOOK_EVERY = 4096  # rows


cdef class Pipeline(HopChain):
    """Start rows in, results out: whole stretches, chosen rows, partial results, or key by key."""

    def run_range(self, int64_t first, int64_t last, Output out):
        """Join rows [first, last) of the start stream, appending results to ``out``."""
        with nogil:
            self.run(first, last, out)

    cdef int run(self, int64_t first, int64_t last, Output out) except -1 nogil:
        cdef const Column *code = self.hops[0].code[0]
        cdef int64_t *row = self.start.row[self.stream]
        cdef int64_t k, n
        if self.takes_codes() and self.time.column.mask == -1 and code.mask == -1:
            return self._run_codes(
                NULL, first, last - first, <const int64_t *>self.time.column.data + first,
                <const int32_t *>code.data + first, out,
            )
        if <void *>self.out != <void *>out:
            with gil:
                self.out = out
        while first < last:
            self.start.n = n = min(self.block, last - first)
            for k in range(n):
                row[k] = first + k
            if self._lie_together(first):
                times_windows(
                    <const int64_t *>self.time.column.data + (first & self.time.column.mask),
                    n, 0, self.window, self.start.latest, self.start.deadline,
                )
                self._hop_on()
            else:
                self._run()
            first += n
        return 0

    cdef bint _lie_together(self, int64_t first) noexcept nogil:
        """Whether the times of the start rows do, as they do but at the end of a ring."""
        cdef uint64_t mask = <uint64_t>self.time.column.mask
        return (<uint64_t>first & mask) + <uint64_t>self.start.n - 1 <= mask

    cdef int run_some(self, int64_t n, const int64_t *row, Output out) except -1 nogil:
        cdef int64_t at = 0
        if <void *>self.out != <void *>out:
            with gil:
                self.out = out
        while at < n:
            self.start.n = min(self.block, n - at)
            memcpy(self.start.row[self.stream], row + at, self.start.n * sizeof(int64_t))
            self._run()
            at += self.start.n
        return 0

    def run_partials(self, rows, Output out):
        """The same for partial results: row numbers of every stream they bind, in that order."""
        cdef int64_t at = 0, n = len(rows[0])
        cdef const int64_t[::1] column
        cdef int s
        self.out = out
        while at < n:
            self.start.n = min(self.block, n - at)
            for s, numbers in zip(self._bound, rows, strict=True):
                column = numbers
                memcpy(self.start.row[s], &column[at], self.start.n * sizeof(int64_t))
            with nogil:
                self._run()
            at += self.start.n

    def run_postings(self, KeyPostings postings, Output out):
        """The same for all rows of an index on the start stream, key after key.

        The first hop must ask by the key of that index: its lists are read one after the other.
        """
        cdef int64_t code, at, taken
        cdef PostingList *entry
        self.out = out
        self.start.n = 0
        with nogil:
            for code in range(postings.all.n_postings):
                entry = postings.all.postings + code
                at = 0
                while at < entry.length:
                    taken = min(self.block - self.start.n, entry.length - at)
                    self._take(postings, entry, at, taken, <int32_t>code)
                    at += taken
                    if self.start.n == self.block:
                        self._hops_from_start()
                        self.start.n = 0
            self._hops_from_start()

    cdef void _take(
        self, KeyPostings postings, PostingList *entry, int64_t at, int64_t n, int32_t code
    ) noexcept nogil:
        """Append rows of one list to the block of start rows."""
        cdef int64_t place = self.start.n, k
        cdef int64_t *row = self.start.row[self.stream] + place
        cdef int64_t *latest = self.start.latest + place
        memcpy(row, postings.all.row + entry.offset + at, n * sizeof(int64_t))
        memcpy(latest, postings.all.time + entry.offset + at, n * sizeof(int64_t))
        for k in range(n):
            self.start_codes[place + k] = code
        self.start.n += n

    cdef int _hops_from_start(self) except -1 nogil:
        cdef int64_t k
        for k in range(self.start.n):
            self.start.deadline[k] = add_saturated(self.start.latest[k], self.window)
        self.codes_given = True
        self._hop_on()
        self.codes_given = False
        return 0

    cdef bint _only_asks(self) noexcept nogil:
        """Whether its one hop has nothing to do but ask an index that decides."""
        cdef PipelineHop *hop = self.hops
        return (
            self.n_hops == 1 and self.n_bound == 1 and hop.fills_bound
            and hop.n_operands + hop.n_filters + hop.n_voids == 0
        )

    cdef bint runs_in_blocks(self) noexcept nogil:
        return self._only_asks() and self.hops[0].locate == NULL

    cdef bint takes_codes(self) noexcept nogil:
        cdef PipelineHop *hop = self.hops
        return (
            self._only_asks() and hop.n_codes == 1 and hop.n_ranges == 0 and not hop.before
        )

    cdef int run_codes(
        self, int64_t n, const int64_t *row, const int64_t *time, const int32_t *code, Output out
    ) except -1 nogil:
        return self._run_codes(row, 0, n, time, code, out)

    cdef int _run_codes(
        self, const int64_t *numbers, int64_t first, int64_t n, const int64_t *time,
        const int32_t *code, Output out,
    ) except -1 nogil:
        """The rows with these numbers; NULL: those from ``first`` on."""
        cdef PipelineHop *hop = self.hops
        cdef int64_t *row = self.start.row[self.stream]
        cdef int64_t at = 0, most = min(<int64_t>ROWS_AT_HAND, self.block), n_probes, i
        cdef Probe probe
        cdef Cursor cursor
        if hop.locate != NULL:
            most = min(<int64_t>ROWS_LOCATED, self.block)
        if <void *>self.out != <void *>out:
            with gil:
                self.out = out
        memset(&probe, 0, sizeof(Probe))
        probe.lo = hop.lo
        probe.hi = hop.hi
        probe.row = self.start.row
        while at < n:
            n_probes = min(most, n - at)
            times_windows(time + at, n_probes, hop.window, self.window, hop.lo, hop.hi)
            for i in range(n_probes):
                row[i] = first + at + i if numbers == NULL else numbers[at + i]
            if hop.locate != NULL:
                hop.locate(hop.index, n_probes, TimeBounds(hop.lo, hop.hi))
            probe.n = n_probes
            probe.code = code + at
            memset(&cursor, 0, sizeof(Cursor))
            while self._serve_output(hop, &self.start, &probe, &cursor) == 0:
                self.cancellation.look_up()
            at += n_probes
            hop.asked += n_probes
            self.cancellation.started += n_probes
            if self.cancellation.started % LOOK_EVERY < n_probes:
                self.cancellation.look_up()
        return 0

    cdef int _run(self) except -1 nogil:
        cdef const int64_t *time = <const int64_t *>self.time.column.data
        cdef int64_t mask = self.time.column.mask
        cdef int64_t k
        for k in range(self.start.n):
            self.start.latest[k] = time[self.start.row[self.stream][k] & mask]
            self.start.deadline[k] = add_saturated(self.start.latest[k], self.window)
        return self._hop_on()
