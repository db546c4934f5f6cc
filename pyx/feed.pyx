"""The short way into a live join, for rows that need no second look.

Rows with nothing null, in time order and not late are encoded, joined, stored and expired here in
one go, without Python in between.  Whatever else comes is left to ``kernels.live``, which does the
same step by step.
"""
from libc.stdint cimport INT64_MIN, int32_t, int64_t
from libc.stdlib cimport free, realloc

cimport numpy as cnp

from windjoin.pyx.column cimport Ring
from windjoin.pyx.index cimport (
    SLACK, Index, out_of_memory, sortable_bits, subtract_saturated,
)
from windjoin.pyx.keys cimport KeySpace
from windjoin.pyx.output cimport Output

from windjoin.pyx.records import array_rows, set_rows

cnp.import_array()

cdef enum:
    MOST_PARTS = 16
    RELEASE_AT = 64  # rows; the GIL is not given back for fewer
    CARE_EVERY = 8192  # rows; then rings, keys and the plan are looked after


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
        self.head = self.tail = 0
        self.horizon = INT64_MIN

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

    cdef Extent extent
    cdef Counts counts
    cdef int64_t window
    cdef Ring time
    cdef Ring numbers
    cdef list columns
    cdef list codes
    cdef list spaces
    cdef list indexes
    cdef list sources
    cdef list pair_spaces
    cdef list wides
    cdef readonly bint whole  # every index can be fed from here

    def __init__(self, window, Counts counts not None, spaces):
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
        self.whole = True
        cdef Index index
        for access in window.accesses:
            index = window.indexes[access.identity]
            self.indexes.append(index)
            self.sources.append(access.source)
            self.pair_spaces.append(window.pair_spaces.get(access.identity, []))
            if access.source is None or not index.puts:
                self.whole = False

    cdef void forget(self, int64_t horizon) noexcept:
        """As ``Window.expire``, but rings stay as large as they are."""
        cdef Index index
        cdef const int64_t *times = <const int64_t *>self.time.slots
        cdef int64_t head = self.extent.head, mask = self.time.column.mask
        self.extent.horizon = horizon
        while head < self.extent.tail and times[head & mask] < horizon:
            head += 1
        self.counts.expired += head - self.extent.head
        self.extent.head = head
        for _, rings in self.wides:
            rings.expire(head)
        for index in self.indexes:
            index.forget(horizon)


cdef class Feed:
    """Takes the rows of one stream of a live join."""

    cdef int number
    cdef Store own
    cdef list stores
    cdef list clocks
    cdef object pipeline
    cdef Output out
    cdef readonly int64_t results
    cdef int64_t since_care
    cdef object care
    cdef int32_t *code_room
    cdef int64_t *row_room
    cdef int64_t room

    def __init__(self, int number, stores, clocks, pipeline, care):
        self.number = number
        self.own = stores[number]
        self.stores = stores
        self.clocks = clocks
        self.pipeline = pipeline
        self.out = Output(len(stores))
        self.results = self.since_care = self.room = 0
        self.care = care
        self.code_room = NULL
        self.row_room = NULL

    def __dealloc__(self):
        free(self.code_room)
        free(self.row_room)

    @property
    def nbytes(self):
        """Bytes allocated for rows on their way."""
        cdef int64_t per_row = 4 * (len(self.own.codes) + 1) + 16
        return per_row * (self.room + SLACK) + self.out.held()

    def push(self, time, list columns, list keys, list wides):
        """Rows of every stream in each result; None if these rows must go the long way.

        wides: (offsets, items) of every column of sets
        """
        cdef Clock clock = self.clocks[self.number]
        cdef Store own = self.own
        cdef int64_t n = cnp.PyArray_DIM(time, 0), first = own.extent.tail
        cdef const int64_t *times = <const int64_t *>cnp.PyArray_DATA(time)
        if n == 0 or first + n - own.extent.head > own.time.capacity:
            return None
        if not _in_order(n, times, clock.mark()):
            return None
        self._need_room(n, len(keys))
        self._encode(n, keys)
        self._store(n, first, time, columns)
        sets = self._store_sets(first, wides)
        self.pipeline.run_range(first, first + n, self.out)
        self._insert(n, first, times, columns, sets)
        clock.newest = max(clock.newest, times[n - 1])
        own.counts.rows_in += n
        self.results += self.out.used
        self._expire()
        found = self.out.finish()
        self.since_care += n
        if self.since_care >= CARE_EVERY:
            self.since_care = 0
            self.care()
        return found

    cdef int _need_room(self, int64_t n, int64_t keys) except -1:
        cdef void *grown
        if n <= self.room:
            return 0
        grown = realloc(self.code_room, (n + SLACK) * (keys + 1) * sizeof(int32_t))
        if grown == NULL:
            out_of_memory(b"key codes", n)
        self.code_room = <int32_t *>grown
        grown = realloc(self.row_room, 2 * (n + SLACK) * sizeof(int64_t))
        if grown == NULL:
            out_of_memory(b"row numbers", n)
        self.row_room = <int64_t *>grown
        self.room = n
        return 0

    cdef int32_t *_codes(self, int64_t key) noexcept nogil:
        return self.code_room + key * (self.room + SLACK)

    cdef int _encode(self, int64_t n, list keys) except -1:
        cdef KeySpace space
        cdef const int64_t *values
        cdef int k
        for k in range(len(keys)):
            space = self.own.spaces[k]
            values = <const int64_t *>cnp.PyArray_DATA(keys[k])
            if n < RELEASE_AT:
                space.add_integers(n, values, self._codes(k))
            else:
                with nogil:
                    space.add_integers(n, values, self._codes(k))
        return 0

    cdef int _store(self, int64_t n, int64_t first, time, list columns) except -1:
        cdef Store own = self.own
        cdef int64_t i
        cdef int k
        own.time.write(first, n, <const char *>cnp.PyArray_DATA(time))
        for k in range(len(columns)):
            (<Ring>own.columns[k]).write(first, n, <const char *>cnp.PyArray_DATA(columns[k]))
        for k in range(len(own.codes)):
            (<Ring>own.codes[k]).write(first, n, <const char *>self._codes(k))
        for i in range(n):
            self.row_room[i] = first + i
        if own.numbers is not None:
            own.numbers.write(first, n, <const char *>self.row_room)
        own.extent.tail = first + n
        return 0

    cdef list _store_sets(self, int64_t first, list wides):
        """Starts and lengths of the rows of every wide column."""
        cdef list sets = []
        for (space, rings), (offsets, items) in zip(self.own.wides, wides, strict=True):
            if space is None:
                starts, lengths, content = array_rows(offsets, items)
            else:
                starts, lengths, content = set_rows(space, offsets, items)
            (<Ring>rings.start).write(first, len(starts), <const char *>cnp.PyArray_DATA(starts))
            (<Ring>rings.length).write(first, len(starts), <const char *>cnp.PyArray_DATA(lengths))
            rings.hold(first + len(starts), content)
            sets.append((starts, lengths))
        return sets

    cdef int _insert(
        self, int64_t n, int64_t first, const int64_t *times, list columns, list sets
    ) except -1:
        cdef Index index
        cdef const int32_t *codes
        cdef const int64_t *values
        cdef int k
        for k in range(len(self.own.indexes)):
            index = self.own.indexes[k]
            codes = NULL
            values = NULL
            kind, numbers = self.own.sources[k]
            if kind == "keys":
                codes = self._composite(n, numbers, self.own.pair_spaces[k])
            elif kind == "column":
                values = self._sortable(n, columns[numbers])
            elif kind == "wide":
                starts, lengths = sets[numbers]
                values = <const int64_t *>cnp.PyArray_DATA(starts)
                codes = <const int32_t *>cnp.PyArray_DATA(lengths)
            if n < RELEASE_AT:
                index.put(n, codes, values, times, self.row_room)
            else:
                with nogil:
                    index.put(n, codes, values, times, self.row_room)
        return 0

    cdef const int32_t *_composite(self, int64_t n, tuple keys, list spaces) except NULL:
        """Codes of a key, or of several together (in the room behind those of all keys)."""
        cdef int32_t *codes = self._codes(keys[0])
        cdef int32_t *out = self._codes(len(self.own.codes))
        cdef int32_t *more
        cdef KeySpace space
        cdef int64_t i
        cdef int k
        for k in range(1, len(keys)):
            space = spaces[k - 1]
            more = self._codes(keys[k])
            for i in range(n):
                out[i] = space.add_integer((<int64_t>codes[i] << 32) | more[i])
            codes = out
        return codes

    cdef const int64_t *_sortable(self, int64_t n, column) except NULL:
        cdef const int64_t *values = <const int64_t *>cnp.PyArray_DATA(column)
        cdef int64_t *out = self.row_room + self.room + SLACK
        cdef int64_t i
        if cnp.PyArray_TYPE(column) == cnp.NPY_INT64:
            return values
        for i in range(n):
            out[i] = sortable_bits(values[i])
        return out

    cdef void _expire(self) noexcept:
        """As ``LiveJoin._expire``, but no key is swept."""
        cdef Store store
        cdef Clock clock
        cdef int64_t least, horizon
        cdef int s, k
        for s in range(len(self.stores)):
            least = INT64_MIN
            for k in range(len(self.clocks)):
                if k != s:
                    clock = self.clocks[k]
                    least = clock.mark() if least == INT64_MIN else min(least, clock.mark())
                    if least == INT64_MIN:
                        break
            store = self.stores[s]
            horizon = subtract_saturated(least, store.window)
            if least != INT64_MIN and horizon > store.extent.horizon:
                store.forget(horizon)


cdef bint _in_order(int64_t n, const int64_t *times, int64_t least) noexcept nogil:
    cdef int64_t i
    cdef bint ordered = times[0] >= least
    for i in range(1, n):
        ordered = ordered & (times[i] >= times[i - 1])
    return ordered


cdef class Turn:
    """Whose turn it is in a session: one caller's at a time."""

    def take(self):
        """Whether it was free, and is now the caller's."""
        if self.taken:
            return False
        self.taken = True
        return True

    def give_back(self):
        """Let others have it."""
        self.taken = False


cdef class Entrance:
    """Takes rows to the feed of one stream, if they are plain enough.

    They may be dictionaries of NumPy arrays, or tables from which ``plain`` makes time, operands,
    keys and sets.
    """

    cdef object live
    cdef int number
    cdef Turn turn
    cdef tuple names  # of the streams, for results
    cdef str time
    cdef tuple columns
    cdef tuple keys
    cdef int wanted  # columns of a dictionary; -1: there is none that would do
    cdef object plain

    def __init__(self, live, int number, Turn turn not None, names, columns, int n_operands, plain):
        """``columns``: (name, dtype) of the time column, the operands and the keys."""
        self.live = live
        self.number = number
        self.turn = turn
        self.names = tuple(names)
        self.plain = plain
        self.wanted = -1
        if columns is not None:
            self.time = columns[0][0]
            self.columns = tuple((name, dtype.num) for name, dtype in columns[1:1 + n_operands])
            self.keys = tuple((name, dtype.num) for name, dtype in columns[1 + n_operands:])
            self.wanted = len({name for name, _ in columns})

    def push(self, rows):
        """Row numbers per stream; None if these rows must go the long way."""
        cdef list feeds = self.live.feeds
        cdef int k
        if not feeds or self.turn.taken:
            return None
        parts = self._of_dict(<dict>rows) if type(rows) is dict else self.plain(rows)
        if parts is None:
            return None
        self.turn.taken = True
        try:
            found = (<Feed>feeds[self.number]).push(parts[0], parts[1], parts[2], parts[3])
        finally:
            self.turn.taken = False
        if found is None:
            return None
        results = {}
        for k in range(len(self.names)):
            results[self.names[k]] = found[k]
        return results

    cdef tuple _of_dict(self, dict rows):
        """Time, operands and keys; no sets."""
        if len(rows) != self.wanted:
            return None
        time = rows.get(self.time)
        if not _is_plain(time, cnp.NPY_INT64, -1):
            return None
        operands = _plain(rows, self.columns, time)
        keys = _plain(rows, self.keys, time)
        return None if operands is None or keys is None else (time, operands, keys, [])


cdef list _plain(dict rows, tuple columns, time):
    """The arrays of these columns, None if any of them needs a second look."""
    cdef list arrays = []
    for name, dtype in columns:
        array = rows.get(name)
        if not _is_plain(array, dtype, cnp.PyArray_DIM(time, 0)):
            return None
        if dtype == cnp.NPY_FLOAT64 and _has_nan(
            cnp.PyArray_DIM(time, 0), <const double *>cnp.PyArray_DATA(array)
        ):
            return None
        arrays.append(array)
    return arrays


cdef bint _has_nan(int64_t n, const double *values) noexcept nogil:
    cdef int64_t i
    cdef bint found = False
    for i in range(n):
        found = found | (values[i] != values[i])
    return found


cdef bint _is_plain(array, int dtype, int64_t length) noexcept:
    """A contiguous native vector of this dtype and, unless -1, length."""
    return (
        cnp.PyArray_CheckExact(array)
        and cnp.PyArray_NDIM(array) == 1
        and cnp.PyArray_TYPE(array) == dtype
        and cnp.PyArray_ISCARRAY_RO(array)
        and (length < 0 or cnp.PyArray_DIM(array, 0) == length)
    )
