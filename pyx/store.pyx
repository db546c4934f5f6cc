"""What a live join knows of each stream: how far it has come, what was counted, what is held.

Clocks, counts and extents are there once: ``kernels.live`` and ``feed`` change the same ones.
"""
from libc.stdint cimport INT64_MIN, int64_t

from windjoin.pyx.index cimport Column, Index, subtract_saturated

cdef extern from "times.h" nogil:
    int64_t times_first_alive(const Column *time, int64_t head, int64_t tail, int64_t horizon)

cdef dict NEEDS = {"nothing": NOTHING, "keys": KEYS, "column": COLUMN, "wide": WIDE}


cdef class Clock:
    """How far a stream has come."""

    def __init__(self, int64_t lateness=0):
        self.newest = self.promised = INT64_MIN
        self.lateness = lateness

    @property
    def watermark(self):
        """No row older than this will be taken any more."""
        return self.mark()

    cdef int64_t mark(self) noexcept nogil:
        if self.newest == INT64_MIN:
            return self.promised
        return max(subtract_saturated(self.newest, self.lateness), self.promised)


cdef class Counts:
    """What happened to the rows of one stream.

    unusable: rows that fail where=, or have a null operand: they can match nothing
    """

    def __cinit__(self):
        self.rows_in = self.unusable = self.late = self.expired = 0


cdef class Extent:
    """Rows [head, tail) of a window, and the time before which nothing is needed."""

    def __cinit__(self):
        self.head = self.tail = self.held[0] = self.held[1] = 0
        self.horizon = INT64_MIN

    cpdef void note(self) noexcept:
        """Rows have been pushed."""
        self.held[0] = self.held[1]
        self.held[1] = self.tail - self.head

    @property
    def most(self):
        """Rows that are here, or were after one of the last two pushes."""
        return max(self.tail - self.head, max(self.held[0], self.held[1]))

    def copy(self):
        """One that goes its own way from here."""
        cdef Extent other = Extent()
        other.head, other.tail, other.horizon = self.head, self.tail, self.horizon
        return other


cdef class Store:
    """The compiled side of one live window: its rings and what goes into its indexes.

    index, source: every index with the numbers of the keys it wants codes of, or of the column
    wides: of every wide column, the space of its items (None: there are none) and its rings
    """

    def __init__(self, window, Counts counts not None, spaces):
        self.rows = window
        self.extent = window.extent
        self.counts = counts
        self.window = window.spec.window
        self.time, self.columns, self.codes, self.numbers = window.rings
        self.spaces = [spaces[space] for space in window.spec.spaces]
        self.wides = [
            (spaces.get(wide.space), rings)
            for wide, rings in zip(window.spec.wides, window.wide_rings, strict=True)
        ]
        self.indexes, self.sources, self.pair_spaces = [], [], []
        self.n_columns, self.n_keys = len(self.columns), len(self.codes)
        self.whole = self.n_columns <= MOST_COLUMNS and self.n_keys <= MOST_COLUMNS
        cdef Index index
        cdef int k
        for access in window.accesses:
            index = window.indexes[access.identity]
            self.indexes.append(index)
            self.sources.append(access.source)
            self.pair_spaces.append(window.pair_spaces.get(access.identity, []))
            if access.source is None or not index.puts:
                self.whole = False
        self.n_indexes = len(self.indexes)
        self.whole = self.whole and self.n_indexes <= MOST_INDEXES
        if self.whole:
            for k in range(self.n_columns):
                self.real[k] = self.columns[k].dtype.kind == "f"
            for k in range(self.n_indexes):
                self.needs[k] = NEEDS[self.sources[k][0]]

    cdef bint takes_codes(self):
        """Whether a row is a time and one key, and one index by that key is all it goes into."""
        return (
            self.n_keys == 1 and self.n_columns == 0 and self.n_indexes == 1 and not self.wides
            and self.numbers is None and self.sources[0] == ("keys", (0,))
        )

    cdef bint takes_values(self):
        """Whether a row is a time and one number, and one index by that is all it goes into."""
        return (
            self.n_keys == 0 and self.n_columns == 1 and self.n_indexes == 1 and not self.wides
            and self.numbers is None and self.sources[0] == ("column", 0)
        )

    cdef int forget(self, int64_t horizon) except -1:
        """As ``Window.expire``, but rings stay as large as they are."""
        cdef int64_t head = times_first_alive(
            &self.time.column, self.extent.head, self.extent.tail, horizon
        )
        cdef int k
        self.extent.horizon = horizon
        self.counts.expired += head - self.extent.head
        self.extent.head = head
        for _, rings in self.wides:
            rings.expire(head)
        for k in range(self.n_indexes):
            (<Index>self.indexes[k]).forget(horizon)
        return 0
