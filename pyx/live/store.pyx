"""What a live join knows of each stream: how far it has come, what was counted, what is held."""
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint8_t

cimport numpy as cnp

import numpy as np

from windjoin.pyx.live.contents cimport Contents
from windjoin.pyx.base.index cimport Column, life_expires, subtract_saturated

cdef extern from "times.h" nogil:
    bint times_in_order(const int64_t *time, int64_t n)
    int64_t times_first_alive(const Column *time, int64_t head, int64_t tail, int64_t horizon)

cnp.import_array()

cdef dict NEEDS = {
    "nothing": NOTHING, "keys": KEYS, "columns": COLUMNS, "operands": OPERANDS, "wide": VARLEN,
}


cdef class Watermark:
    """How far a stream has come.

    promised: no row before it will come; silenced: the same, the last time that it was promised
    because nothing came for long
    """

    def __init__(self, int64_t lateness=0):
        self.newest = self.promised = self.silenced = INT64_MIN
        self.lateness = lateness

    @property
    def watermark(self):
        """No row older than this will be taken any more."""
        return self.mark()

    cdef int64_t mark(self) noexcept nogil:
        return self.mark_after(self.newest)

    cdef int64_t mark_after(self, int64_t newest) noexcept nogil:
        if newest == INT64_MIN:
            return self.promised
        return max(subtract_saturated(newest, self.lateness), self.promised)

    def split_late(self, const int64_t[::1] times, const uint8_t[::1] bad):
        """Which rows would come too late, going through them in order of arrival.

        bad: rows with no time, None if there are none
        Returns (newest time after them, whether times never decrease, mask of late rows or None,
        the watermark that the first of those met); the clock itself stays where it is.
        """
        cdef int64_t n = times.shape[0]
        cdef Verdict said
        cdef uint8_t[::1] late
        if n == 0:
            return self.newest, True, None, self.mark()
        if bad is None and self.in_order(n, &times[0]):
            return max(self.newest, times[n - 1]), True, None, self.mark()
        mask = np.empty(n, np.bool_)
        late = mask.view(np.uint8)
        said = self.classify_rows(n, &times[0], NULL if bad is None else &bad[0], &late[0])
        return said.newest, said.ordered, mask if said.late else None, said.watermark

    cdef bint in_order(self, int64_t n, const int64_t *time) noexcept nogil:
        """Whether none of n rows, at least one, is late and their times never decrease.

        Of rows of which one has the least time there is, False.
        """
        return time[0] > INT64_MIN and time[0] >= self.mark() and times_in_order(time, n)

    cdef Verdict classify_rows(
        self, int64_t n, const int64_t *time, const uint8_t *bad, uint8_t *late
    ) noexcept nogil:
        """The same as `split_late`, with flags of late rows in ``late``; ``bad`` may be NULL."""
        cdef int64_t i, last = INT64_MIN, watermark = self.mark()
        cdef Verdict said = Verdict(self.newest, watermark, 0, True, False)
        for i in range(n):
            late[i] = False
            if bad != NULL and bad[i]:
                continue
            if time[i] < watermark:
                if said.late == 0:
                    said.watermark = watermark
                late[i] = True
                said.late += 1
                continue
            if time[i] > said.newest:
                said.newest = time[i]
                watermark = self.mark_after(said.newest)
            said.ordered = said.ordered and time[i] >= last
            said.least = said.least or time[i] == INT64_MIN
            last = time[i]
        return said


cdef class Allowance:
    """How many rows may come to a session before somebody looks what they take.

    rows: -1: as many as there are
    until: and as long as not all streams have passed this time
    """

    def __cinit__(self):
        self.rows, self.until, self.clocks = -1, INT64_MAX, ()

    def follow(self, clocks):
        """These are the clocks that ``until`` is about."""
        self.clocks = tuple(clocks)

    @property
    def over(self):
        """Whether all streams have passed ``until``."""
        return self.passed()

    cdef bint passed(self) noexcept:
        cdef Watermark clock
        for clock in self.clocks:
            if clock.mark() <= self.until:
                return False
        return self.until < INT64_MAX

    cdef bint takes(self, int64_t n) noexcept:
        """Whether n rows may come; then they have."""
        if self.rows < 0:
            return True
        if n > self.rows or self.passed():
            return False
        self.rows -= n
        return True


cdef class Counts:
    """What happened to the rows of one stream.

    unusable: rows that fail where=, or have a null operand: they can match nothing
    """

    def __cinit__(self):
        self.rows_in = self.unusable = self.late = self.expired = 0


cdef class Extent:
    """Rows [head, tail) of a window, and the time before which nothing is needed.

    hold: rows from that time on stay, also when no row to come can reach them
    owed: the first row that is on disk, whose columns are still asked for when its results leave
    """

    def __cinit__(self):
        self.head = self.tail = self.held[0] = self.held[1] = 0
        self.horizon = INT64_MIN
        self.hold = self.owed = INT64_MAX

    cdef void note(self, int64_t rows) noexcept:
        """So many rows have to be here during a push."""
        self.held[0] = self.held[1]
        self.held[1] = rows

    def settle(self):
        """What is here now is what there will be."""
        self.held[0] = self.held[1] = self.tail - self.head

    @property
    def most(self):
        """Rows that are here, or were during one of the last two pushes."""
        return max(self.tail - self.head, max(self.held[0], self.held[1]))

    def copy(self):
        """One that goes its own way from here."""
        cdef Extent other = Extent()
        other.head, other.tail, other.horizon = self.head, self.tail, self.horizon
        return other


cdef class Taker:
    """An index and what it takes of a row: see ``Access.source``."""

    def __init__(self, index, source, spaces):
        cdef int k
        what, numbers = source
        self.index = index
        self.needs = NEEDS[what]
        self.n = len(numbers)
        assert self.n <= MOST_VALUES
        for k in range(self.n):
            self.number[k] = numbers[k]
        self.spaces = spaces


cdef class Store:
    """The compiled side of one live window: its rings, and what goes into its indexes.

    wides: of every wide column, the space of its items (None: there are none), its rings, and
    what they point at
    """

    def __init__(self, window, Counts counts not None, spaces):
        cdef Taker taker
        self.rows = window
        self.extent = window.extent
        self.counts = counts
        self.window = window.spec.window
        self.time, self.columns, self.codes, self.numbers = window.rings
        self.spaces = [spaces[space] for space in window.spec.spaces]
        self.varlen = [
            (spaces.get(wide.space), rings.start, rings.length, rings.contents)
            for wide, rings in zip(window.spec.varlen, window.wide_rings, strict=True)
        ]
        self.n_columns, self.n_keys = len(self.columns), len(self.codes)
        self.real = [ring.dtype.kind == "f" for ring in self.columns]
        self.takers = []
        self.n_sorted = 0
        for access in window.accesses:
            taker = Taker(
                window.indexes[access.identity], access.source,
                window.pair_spaces.get(access.identity, []),
            )
            self.takers.append(taker)
            if taker.needs == COLUMNS:
                self.n_sorted = max(self.n_sorted, taker.n)

    cdef bint takes(self, Needs needs):
        """Whether a row is a time and one key, or one number, which one index takes alone."""
        cdef Taker taker
        if self.n_keys + self.n_columns != 1 or len(self.takers) != 1 or self.varlen:
            return False
        taker = <Taker>self.takers[0]
        return self.numbers is None and taker.needs == needs and taker.n == 1

    cdef int need_room(self, int64_t n) except -1:
        """Let the rings hold the n rows of a push."""
        cdef int64_t rows = self.extent.tail + n - self.extent.head
        if rows > self.time.capacity:
            self.rows.make_room(n)
        self.extent.note(rows)
        return 0

    cdef int write(self, const Arrived *rows) except -1:
        """Store rows whose keys have codes; there is room, and their numbers follow the last."""
        cdef int k
        cdef int64_t first = self.extent.tail
        self.time.write(first, rows.n, <const char *>rows.time)
        for k in range(self.n_columns):
            (<Ring>self.columns[k]).write(first, rows.n, <const char *>rows.column[k])
        for k in range(self.n_keys):
            (<Ring>self.codes[k]).write(first, rows.n, <const char *>rows.code[k])
        if self.numbers is not None:
            self.numbers.write(first, rows.n, <const char *>rows.row)
        self.extent.tail = first + rows.n
        return 0

    cpdef append(self, time, list columns, list codes, list varlen_rows, numbers):
        """The same for rows in contiguous arrays; records: (starts, lengths, content)."""
        cdef int64_t first = self.extent.tail, n = cnp.PyArray_DIM(time, 0)
        cdef int k
        self.need_room(n)
        self.time.write(first, n, <const char *>cnp.PyArray_DATA(time))
        for k in range(self.n_columns):
            (<Ring>self.columns[k]).write(first, n, <const char *>cnp.PyArray_DATA(columns[k]))
        for k in range(self.n_keys):
            (<Ring>self.codes[k]).write(first, n, <const char *>cnp.PyArray_DATA(codes[k]))
        for k in range(len(varlen_rows)):
            starts, lengths, content = varlen_rows[k]
            self.write_varlen(k, first, starts, lengths, content)
        if self.numbers is not None:
            self.numbers.write(first, n, <const char *>cnp.PyArray_DATA(numbers))
        self.extent.tail = first + n

    cdef int write_varlen(self, int number, int64_t first, starts, lengths, content) except -1:
        """Store starts and lengths of rows from ``first`` on, and what they point at."""
        cdef int64_t n = cnp.PyArray_DIM(starts, 0)
        _, start, length, contents = <tuple>self.varlen[number]
        (<Ring>start).write(first, n, <const char *>cnp.PyArray_DATA(starts))
        (<Ring>length).write(first, n, <const char *>cnp.PyArray_DATA(lengths))
        if n:
            (<Contents>contents).add(first + n, content)
        return 0

    cpdef int64_t expire(self, int64_t horizon) except -1:
        """Forget rows with time < ``horizon``: heads move, rings stay as large as they are.

        How many rows that were.
        """
        horizon = min(horizon, self.extent.hold)
        if horizon <= self.extent.horizon:
            return 0
        self.extent.horizon = horizon
        return self._move_head()

    cdef int64_t drop_useless(self) except -1:
        """Forget the oldest rows if they were of no use any more when they came."""
        cdef int64_t oldest = self.extent.head & self.time.column.mask
        if self.extent.head == self.extent.tail:
            return 0
        if (<const int64_t *>self.time.column.data)[oldest] >= self.extent.horizon:
            return 0
        return self._move_head()

    cdef int64_t _move_head(self) except -1:
        cdef int64_t horizon = self.extent.horizon, gone
        cdef int64_t head = times_first_alive(
            &self.time.column, self.extent.head, self.extent.tail, horizon
        )
        cdef Taker taker
        gone = head - self.extent.head
        self.counts.expired += gone
        self.extent.head = head
        for wide in self.varlen:
            (<Contents>(<tuple>wide)[3]).expire(head)
        for taker in self.takers:
            life_expires(&taker.index.life, horizon)
            taker.index.expire(horizon)
        return gone


cdef int64_t expire_others(list stores, list clocks, int but) except -1:
    """Forget, in all streams but one (-1: in all), what no row to come can reach; how many rows.

    A row can still meet rows of other streams from the least of their watermarks on.
    """
    cdef int64_t least, gone = 0
    cdef int s, k, n = len(stores)
    for s in range(n):
        if s == but:
            continue
        least = INT64_MAX
        for k in range(n):
            if k != s:
                least = min(least, (<Watermark>clocks[k]).mark())
        if least != INT64_MIN:
            gone += (<Store>stores[s]).expire(
                subtract_saturated(least, (<Store>stores[s]).window)
            )
    return gone


def expire(list stores, list clocks):
    """The same after clocks have been moved, in all streams."""
    return expire_others(stores, clocks, -1)
