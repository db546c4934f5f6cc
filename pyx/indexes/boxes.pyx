"""Boxes: the index of rows that must lie in a range of two or more values at once.

Unchecked: enter through ``kernels.boxes``.
"""
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from windjoin.pyx.base.index cimport (
    SLACK, Cursor, Index, Pairs, Probe, out_of_memory, subtract_saturated,
)


cdef extern from "boxes.h" nogil:
    const int MOST_RANGES
    ctypedef struct BoxRun:
        int64_t earliest
        int64_t latest
        int64_t latest_so_far
        int64_t earliest_left
        int64_t length
        int64_t capacity
        int rank
        int64_t *time
        int64_t *row
        int64_t *value[4]
    ctypedef struct Boxes:
        BoxRun *runs
        int64_t first
        int64_t last
        int64_t hint
        int values
    int64_t run_nodes(int64_t length, int values)
    void run_pack(BoxRun *run, int values, int64_t *nodes, int64_t *spare)
    int boxes_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out)


cdef extern from "memory.h" nogil:
    void move_bytes(void *to, const void *source, size_t bytes)


cdef enum:
    RAW_ROWS = 256  # rows that wait unsorted
    MERGED = 4  # runs of one rank that become one of the next


cdef class ValueBoxes(Index):
    """Rows by ``values`` int64 or sortable doubles each; a live one merges runs up to ``span``."""

    cdef Boxes all
    cdef int64_t room
    cdef int64_t span
    cdef int64_t bytes

    def __cinit__(self, int values, int64_t span):
        assert 1 <= values <= MOST_RANGES
        memset(&self.all, 0, sizeof(Boxes))
        self.all.values = values
        self.span = span
        self.room = self.bytes = 0
        self.serve = boxes_serve
        self.state = &self.all

    def __dealloc__(self):
        cdef int64_t r
        for r in range(self.all.first, self.all.last):
            free(self.all.runs[r].time)
        free(self.all.runs)

    @staticmethod
    def load(values, const int64_t[::1] times, int64_t rows_per_run, int64_t first=0):
        """Index of rows first, first + 1, ... in time order, cut every ``rows_per_run`` rows."""
        cdef ValueBoxes self = ValueBoxes(len(values), 0)
        cdef int64_t n = times.shape[0], begin = 0, length, i
        cdef const int64_t[::1] column
        cdef BoxRun *run
        while begin < n:
            length = min(rows_per_run, n - begin)
            run = self._append(length, 1)
            for v in range(self.all.values):
                column = values[v]
                memcpy(run.value[v], &column[begin], length * sizeof(int64_t))
            with nogil:
                memcpy(run.time, &times[begin], length * sizeof(int64_t))
                for i in range(length):
                    run.row[i] = first + begin + i
                run.length = length
                run.earliest = run.earliest_left = times[begin]
                run.latest = run.latest_so_far = times[begin + length - 1]
                self._pack(run)
            begin += length
        return self

    @property
    def nbytes(self):
        return self.room * <int64_t>sizeof(BoxRun) + self.bytes

    cdef int insert(
        self, int64_t n, const int32_t *code, const int64_t *const *value, const int64_t *time,
        const int64_t *row,
    ) except -1 nogil:
        """Add rows by their values: int64, or sortable doubles."""
        cdef int64_t i
        for i in range(n):
            self._put_one(value, i, time[i], row[i])
        return 0

    cdef int _put_one(
        self, const int64_t *const *value, int64_t i, int64_t time, int64_t row
    ) except -1 nogil:
        cdef Boxes *all = &self.all
        cdef BoxRun *run
        cdef int v
        if all.first == all.last or all.runs[all.last - 1].length == RAW_ROWS:
            self._tidy()
        run = all.runs + all.last - 1
        run.time[run.length] = time
        run.row[run.length] = row
        for v in range(all.values):
            run.value[v][run.length] = value[v][i]
        run.length += 1
        run.earliest = min(run.earliest, time)
        run.latest = max(run.latest, time)
        run.latest_so_far = max(run.latest_so_far, time)
        while run >= all.runs + all.first and run.earliest_left > time:
            run.earliest_left = time
            run -= 1
        return 0

    cdef void expire(self, int64_t horizon) noexcept:
        """Drop the oldest runs while all their rows lie before ``horizon``."""
        cdef Boxes *all = &self.all
        while all.first < all.last and all.runs[all.first].latest < horizon:
            self._release(all.runs + all.first)
            all.first += 1

    def compact(self):
        """Nothing is left to do: runs go as they expire."""

    cdef int _tidy(self) except -1 nogil:
        """Pack the raw run, merge runs of one rank, begin a new raw run."""
        cdef Boxes *all = &self.all
        if all.first < all.last:
            self._merge(1)
            while self._mergeable():
                self._merge(MERGED)
        self._append(RAW_ROWS, 0)
        self._link()
        return 0

    cdef bint _mergeable(self) noexcept nogil:
        """Whether the last runs are of one rank, and close enough to expire together."""
        cdef Boxes *all = &self.all
        cdef int64_t earliest = INT64_MAX, latest = INT64_MIN, r
        if all.last - all.first < MERGED:
            return False
        for r in range(all.last - MERGED, all.last):
            if all.runs[r].rank != all.runs[all.last - 1].rank:
                return False
            earliest = min(earliest, all.runs[r].earliest)
            latest = max(latest, all.runs[r].latest)
        return subtract_saturated(latest, earliest) <= self.span

    cdef int _merge(self, int64_t n) except -1 nogil:
        """Make one packed run of the last n."""
        cdef Boxes *all = &self.all
        cdef int64_t length = 0, r
        cdef int v
        cdef BoxRun *run
        cdef BoxRun *old
        for r in range(all.last - n, all.last):
            length += all.runs[r].length
        run = self._append(length, all.runs[all.last - 1].rank + 1)
        for r in range(all.last - 1 - n, all.last - 1):
            old = all.runs + r
            memcpy(run.time + run.length, old.time, old.length * sizeof(int64_t))
            memcpy(run.row + run.length, old.row, old.length * sizeof(int64_t))
            for v in range(all.values):
                memcpy(run.value[v] + run.length, old.value[v], old.length * sizeof(int64_t))
            run.length += old.length
            run.earliest = min(run.earliest, old.earliest)
            run.latest = max(run.latest, old.latest)
        self._pack(run)
        for r in range(all.last - 1 - n, all.last - 1):
            self._release(all.runs + r)
        all.runs[all.last - 1 - n] = run[0]
        all.last -= n
        return 0

    cdef void _link(self) noexcept nogil:
        """Set what runs know of their neighbours."""
        cdef Boxes *all = &self.all
        cdef int64_t r, latest = INT64_MIN, earliest = INT64_MAX
        for r in range(all.first, all.last):
            latest = max(latest, all.runs[r].latest)
            all.runs[r].latest_so_far = latest
        for r in range(all.last - 1, all.first - 1, -1):
            earliest = min(earliest, all.runs[r].earliest)
            all.runs[r].earliest_left = earliest

    cdef BoxRun *_append(self, int64_t rows, int rank) except NULL nogil:
        """A new last run with room for rows, and for their boxes if it is not a raw one."""
        cdef Boxes *all = &self.all
        cdef BoxRun *run
        cdef int64_t stride = rows + SLACK, v
        cdef int64_t *block = <int64_t *>malloc(self._size(rows, rank))
        if block == NULL:
            out_of_memory(b"rows of a run", rows)
        if all.last == self.room:
            self._need_runs(block)
        run = all.runs + all.last
        memset(run, 0, sizeof(BoxRun))
        run.earliest = INT64_MAX
        run.latest = INT64_MIN
        run.rank = rank
        run.capacity = rows
        run.time = block
        run.row = block + stride
        for v in range(all.values):
            run.value[v] = block + (2 + v) * stride
        all.last += 1
        self.bytes += self._size(rows, rank)
        return run

    cdef int64_t _size(self, int64_t rows, int rank) noexcept nogil:
        """Bytes of the block of a run."""
        cdef int64_t boxes = run_nodes(rows, self.all.values) if rank else 0
        return ((2 + self.all.values) * (rows + SLACK) + boxes) * <int64_t>sizeof(int64_t)

    cdef int _need_runs(self, int64_t *block) except -1 nogil:
        """Room for one run more; block: freed if there is none."""
        cdef Boxes *all = &self.all
        cdef int64_t room = max(<int64_t>16, 2 * (all.last - all.first))
        cdef void *grown
        move_bytes(all.runs, all.runs + all.first, (all.last - all.first) * sizeof(BoxRun))
        all.last -= all.first
        all.first = all.hint = 0
        grown = realloc(all.runs, room * sizeof(BoxRun))
        if grown == NULL:
            free(block)
            out_of_memory(b"runs of rows", room)
        all.runs = <BoxRun *>grown
        self.room = room
        return 0

    cdef void _release(self, BoxRun *run) noexcept nogil:
        self.bytes -= self._size(run.capacity, run.rank)
        free(run.time)

    cdef int _pack(self, BoxRun *run) except -1 nogil:
        """Sort the rows of a full run into boxes."""
        cdef int64_t *spare = <int64_t *>malloc(4 * run.length * sizeof(int64_t))
        cdef int64_t *nodes
        if spare == NULL:
            out_of_memory(b"rows of a run", run.length)
        nodes = run.time + (2 + self.all.values) * (run.capacity + SLACK)
        run_pack(run, self.all.values, nodes, spare)
        free(spare)
        return 0
