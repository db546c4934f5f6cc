"""As-of joins: a merge of whole tables in order of time, and the live index of the nearest rows.

Unchecked: enter through ``kernels.asof``.
"""
from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memmove, memset

from windjoin.pyx.base.index cimport Cursor, Index, Pairs, Probe, out_of_memory

cdef extern from "asof.h" nogil:
    ctypedef struct AsofSlot:
        int64_t time
        int64_t row
    ctypedef struct AsofSides:
        int64_t n_left
        int64_t n_right
        const int64_t *left_time
        const int64_t *right_time
        const int32_t *left_code
        const int32_t *right_code
    ctypedef struct AsofFound:
        const int64_t *back
        const int64_t *ahead
        const int64_t *before
        const int64_t *after
        uint64_t tolerance_back
        uint64_t tolerance_ahead
        int64_t most
    ctypedef struct AsofRun:
        AsofSlot *slot
        int32_t length
        int32_t capacity
    ctypedef struct AsofRuns:
        AsofRun *run
        int64_t n_runs
        int keyed
        int back
        int ahead
        int64_t window_back
        int64_t window_ahead
        int64_t most
    int64_t asof_backward(
        const AsofSides *sides, AsofSlot *slot, int64_t first, int64_t last, int64_t at,
        uint64_t tolerance, int64_t *found, int64_t *chain,
    )
    int64_t asof_forward(
        const AsofSides *sides, AsofSlot *slot, int64_t first, int64_t last, int64_t at,
        uint64_t tolerance, int strict, int64_t *found, int64_t *chain,
    )
    int64_t asof_pairs(
        const AsofSides *sides, const AsofFound *found, int64_t first, int64_t last,
        int64_t *left, int64_t *right,
    )
    int64_t asof_search(const AsofRun *run, int64_t time)
    int64_t asof_search_after(const AsofRun *run, int64_t time)
    int asof_serve(void *all, const Probe *probe, Cursor *cursor, Pairs *out)

cdef enum:
    FIRST_ROOM = 4  # rows of a key
    MOST_ROOM = 2147483647


cdef class AsofMerge:
    """Both sides of a join of whole tables, in order of time, gone through by one thread.

    codes: of one key, None where there is none; n_codes: how many
    """

    cdef AsofSides sides
    cdef AsofSlot *slot
    cdef int64_t n_codes
    cdef tuple _alive

    def __cinit__(
        self, const int64_t[::1] left_time, left_codes, const int64_t[::1] right_time, right_codes,
        int64_t n_codes,
    ):
        cdef const int32_t[::1] left
        cdef const int32_t[::1] right
        memset(&self.sides, 0, sizeof(AsofSides))
        self.sides.n_left, self.sides.n_right = left_time.shape[0], right_time.shape[0]
        if self.sides.n_left:
            self.sides.left_time = &left_time[0]
        if self.sides.n_right:
            self.sides.right_time = &right_time[0]
        if left_codes is not None:
            left, right = left_codes, right_codes
            if self.sides.n_left:
                self.sides.left_code = &left[0]
            if self.sides.n_right:
                self.sides.right_code = &right[0]
        self._alive = (left_time, left_codes, right_time, right_codes)
        self.n_codes = n_codes
        self.slot = <AsofSlot *>malloc((n_codes + 1) * sizeof(AsofSlot))
        if self.slot == NULL:
            out_of_memory(b"keys of an as-of join", n_codes)

    def __dealloc__(self):
        free(self.slot)

    def restart(self):
        """No key remembers a row."""
        memset(self.slot, 0xff, (self.n_codes + 1) * sizeof(AsofSlot))

    def backward(
        self, int64_t first, int64_t last, int64_t at, uint64_t tolerance, int64_t[::1] found,
        int64_t[::1] chain=None,
    ):
        """Set ``found`` of left rows [first, last) to the newest right row at or before each.

        at: the first right row that no key remembers yet; the same for the next left rows is given
        """
        cdef int64_t *chained = NULL if chain is None or not chain.shape[0] else &chain[0]
        if first < last:
            with nogil:
                at = asof_backward(
                    &self.sides, self.slot, first, last, at, tolerance, &found[0], chained
                )
        return at

    def forward(
        self, int64_t first, int64_t last, int64_t at, uint64_t tolerance, bint strict,
        int64_t[::1] found, int64_t[::1] chain=None,
    ):
        """The oldest right row at or after each, or after each if ``strict``; from the end on."""
        cdef int64_t *chained = NULL if chain is None or not chain.shape[0] else &chain[0]
        if first < last:
            with nogil:
                at = asof_forward(
                    &self.sides, self.slot, first, last, at, tolerance, strict, &found[0], chained
                )
        return at

    def pairs(
        self, int64_t first, int64_t last, int64_t most, ways, chains, tolerances,
        int64_t[::1] left=None, int64_t[::1] right=None,
    ):
        """Rows of both sides of each pair of left rows [first, last), nearest first; how many.

        ways: what `backward` and `forward` found, None where that was not asked; chains: theirs
        left, right: None: pairs are counted only
        """
        cdef AsofFound found
        cdef const int64_t[::1] view
        cdef const int64_t *place[4]
        cdef int k
        cdef int64_t *to_left = NULL
        cdef int64_t *to_right = NULL
        cdef int64_t n
        for k in range(4):
            place[k] = NULL
            array = (*ways, *chains)[k]
            if array is not None and len(array):
                view = array
                place[k] = &view[0]
        found.back, found.ahead, found.before, found.after = place[0], place[1], place[2], place[3]
        found.tolerance_back, found.tolerance_ahead = tolerances
        found.most = most
        if left is not None:
            if not left.shape[0]:
                return 0
            to_left, to_right = &left[0], &right[0]
        with nogil:
            n = asof_pairs(&self.sides, &found, first, last, to_left, to_right)
        return n


cdef class AsofRows(Index):
    """Live rows of each key in order of time; proposes those next to the time that asks.

    keyed: whether rows have keys; back, ahead: which side of that time is wanted
    window_back, window_ahead: how far before and after it they may be, as bounds of time are made
    most: so many on either side
    """

    cdef AsofRuns all
    cdef int64_t runs_room
    cdef int64_t slots  # allocated
    cdef int64_t horizon

    def __cinit__(
        self, bint keyed, bint back, bint ahead, int64_t window_back, int64_t window_ahead,
        int64_t most,
    ):
        memset(&self.all, 0, sizeof(AsofRuns))
        self.all.keyed, self.all.back, self.all.ahead = keyed, back, ahead
        self.all.window_back, self.all.window_ahead = window_back, window_ahead
        self.all.most = most
        self.serve = asof_serve
        self.state = &self.all
        self.horizon = INT64_MIN
        self.runs_room = self.slots = 0

    def __dealloc__(self):
        cdef int64_t code
        for code in range(self.all.n_runs):
            free(self.all.run[code].slot)
        free(self.all.run)

    @property
    def nbytes(self):
        """Bytes allocated."""
        return self.runs_room * <int64_t>sizeof(AsofRun) + self.slots * <int64_t>sizeof(AsofSlot)

    cdef void expire(self, int64_t horizon) noexcept:
        self.horizon = max(self.horizon, horizon)

    cdef int insert(
        self, int64_t n, const int32_t *code, const int64_t *const *value, const int64_t *time,
        const int64_t *row,
    ) except -1 nogil:
        cdef int64_t i, at, key
        cdef AsofRun *run
        for i in range(n):
            key = code[i] if self.all.keyed else 0
            if key < 0:
                continue
            if key >= self.all.n_runs:
                self._need_runs(key + 1)
            run = self.all.run + key
            if run.length == run.capacity:
                self._make_room(run)
            at = run.length
            if at and run.slot[at - 1].time > time[i]:  # out of order; ties by arrival
                at = asof_search_after(run, time[i])
                memmove(
                    run.slot + at + 1, run.slot + at, (run.length - at) * sizeof(AsofSlot)
                )
            run.slot[at].time, run.slot[at].row = time[i], row[i]
            run.length += 1
        return 0

    cdef int _need_runs(self, int64_t n) except -1 nogil:
        cdef int64_t room = max(n, 2 * self.runs_room)
        cdef void *grown
        if n > self.runs_room:
            grown = realloc(self.all.run, room * sizeof(AsofRun))
            if grown == NULL:
                out_of_memory(b"keys of an as-of join", room)
            self.all.run = <AsofRun *>grown
            self.runs_room = room
        memset(self.all.run + self.all.n_runs, 0, (n - self.all.n_runs) * sizeof(AsofRun))
        self.all.n_runs = n
        return 0

    cdef int _make_room(self, AsofRun *run) except -1 nogil:
        """Drop expired rows; double the room if that freed less than a quarter of it."""
        cdef int64_t room
        cdef void *grown
        self._drop_expired(run)
        if run.length + (run.capacity >> 2) < run.capacity:
            return 0
        room = max(2 * <int64_t>run.capacity, <int64_t>FIRST_ROOM)
        grown = realloc(run.slot, room * sizeof(AsofSlot)) if room < MOST_ROOM else NULL
        if grown == NULL:
            out_of_memory(b"rows of an as-of join", room)
        self.slots += room - run.capacity
        run.slot = <AsofSlot *>grown
        run.capacity = <int32_t>room
        return 0

    cdef void _drop_expired(self, AsofRun *run) noexcept nogil:
        cdef int64_t gone
        if run.length == 0 or run.slot[0].time >= self.horizon:
            return
        gone = asof_search(run, self.horizon)
        run.length -= <int32_t>gone
        memmove(run.slot, run.slot + gone, run.length * sizeof(AsofSlot))

    def compact(self):
        """Drop all expired rows.

        Returns one byte per code: whether any row is left.
        """
        cdef int64_t code
        cdef AsofRun *run
        cdef object live = bytearray(self.all.n_runs)
        cdef uint8_t[::1] flags = live
        for code in range(self.all.n_runs):
            run = self.all.run + code
            self._drop_expired(run)
            flags[code] = run.length != 0
            if run.length == 0 and run.slot != NULL:
                self.slots -= run.capacity
                free(run.slot)
                memset(run, 0, sizeof(AsofRun))
        return live
