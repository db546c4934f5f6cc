"""The short way into a live join, for rows that need no second look.

Rows with nothing null, in time order and not late are encoded, joined, stored and expired here in
one go, without Python in between.  Whatever else comes is left to ``kernels.live``, which does the
same step by step.
"""
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t
from libc.stdlib cimport free, realloc

cimport numpy as cnp

from windjoin.pyx.column cimport Ring
from windjoin.pyx.index cimport (
    RELEASE_ABOVE, SLACK, Index, out_of_memory, sortable_bits, subtract_saturated,
)
from windjoin.pyx.keys cimport KeySpace
from windjoin.pyx.records import array_rows, set_rows, vector_rows
from windjoin.pyx.store cimport COLUMN, KEYS, WIDE, Clock, Store

cdef extern from "times.h" nogil:
    bint times_in_order(const int64_t *time, int64_t n)

cnp.import_array()

cdef enum:
    BLOCK = 256  # rows whose keys are in a near cache until they are joined and kept
    STRETCH = 1024  # rows of a push after which others forget what no later row can meet
    CARE_FIRST = 1024  # rows; then rings, keys and the plan are looked after,
    CARE_EVERY = 8192  # seldom in an old session, whose next rows tell little that is new
    CARE_SHARE = 16  # in between after this part of the rows that came so far


cdef class Feed:
    """Takes the rows of one stream of a live join."""

    def __init__(self, int number, stores, clocks, pipeline, care):
        self.number = number
        self.own = stores[number]
        self.stores = stores
        self.clocks = clocks
        self.n_streams = len(stores)
        self.pipeline = pipeline
        self.out = Output(len(stores))
        self.out.stays = True
        self.results = self.since_care = self.room = 0
        self.care = care
        self.by_code = self.own.takes_codes() and self.pipeline.takes_codes()
        self.by_value = self.own.takes_values() and self.pipeline.runs_in_blocks()
        if self.by_code or self.by_value:
            self.times, self.index = self.own.time, self.own.indexes[0]
            self.codes = self.own.codes[0] if self.by_code else self.own.columns[0]
        if self.by_code:
            self.space = self.own.spaces[0]
        self.code_room = NULL
        self.row_room = NULL

    def __dealloc__(self):
        free(self.code_room)
        free(self.row_room)

    @property
    def nbytes(self):
        """Bytes allocated for rows on their way."""
        cdef int64_t per_row = 4 * (self.own.n_keys + 1) + 16
        return per_row * (self.room + SLACK) + self.out.held()

    def push(self, time, list columns, list keys, list wides):
        """Rows of every stream in each result; None if these rows must go the long way.

        wides: (offsets, items) of every column of sets or vectors; (None, matrix) of vectors
        """
        return self.out.finish() if self.take_arrays(time, columns, keys, wides) else None

    cdef bint take_arrays(self, time, list columns, list keys, list wides) except -1:
        cdef Arrived rows
        cdef int k
        rows.n = cnp.PyArray_DIM(time, 0)
        rows.time = <const int64_t *>cnp.PyArray_DATA(time)
        for k in range(len(columns)):
            rows.column[k] = <const int64_t *>cnp.PyArray_DATA(columns[k])
        for k in range(len(keys)):
            rows.key[k] = <const int64_t *>cnp.PyArray_DATA(keys[k])
        return self.take(&rows, wides)

    cdef bint take(self, const Arrived *rows, list wides) except -1:
        """Leaves results in ``out``; False, and nothing done, if rows must go the long way."""
        cdef Store own = self.own
        cdef int64_t n = rows.n, first = own.extent.tail
        cdef int64_t mark = (<Clock>self.clocks[self.number]).mark()
        if n == 0 or rows.time[0] < mark or not times_in_order(rows.time, n):
            return False
        if first + n - own.extent.head > own.time.capacity:
            own.rows.make_room(n)
        if n <= STRETCH or wides:
            self._carry(rows, first, wides)
        else:
            self._carry_stretches(rows, first)
        own.extent.note()
        own.counts.rows_in += n
        self.results += self.out.used
        self._come_to(rows.time[n - 1])
        self.since_care += n
        if self.since_care >= min(max(own.counts.rows_in // CARE_SHARE, CARE_FIRST), CARE_EVERY):
            self.since_care = 0
            self.care()
        return True

    cdef int _carry_stretches(self, const Arrived *rows, int64_t first) except -1:
        """Many rows, some at a time: what others hold for the next of them stays in near caches."""
        cdef Arrived some
        cdef int64_t at = 0
        cdef int k
        while at < rows.n:
            some.n = min(rows.n - at, <int64_t>STRETCH)
            some.time = rows.time + at
            for k in range(self.own.n_columns):
                some.column[k] = rows.column[k] + at
            for k in range(self.own.n_keys):
                some.key[k] = rows.key[k] + at
            self._carry(&some, first + at, [])
            at += some.n
            self._come_to(rows.time[at - 1])
        return 0

    cdef int _come_to(self, int64_t time) except -1:
        """The stream has rows up to ``time``."""
        cdef Clock clock = <Clock>self.clocks[self.number]
        clock.newest = max(clock.newest, time)
        return self._expire()

    cdef int _carry(self, const Arrived *rows, int64_t first, list wides) except -1:
        """Join and keep rows."""
        if not self.by_code and not self.by_value:
            return self._carry_any(rows, first, wides)
        if self.room < BLOCK:
            self._need_room(BLOCK)
        if rows.n <= RELEASE_ABOVE:
            return self._carry_blocks(rows, first)
        with nogil:
            return self._carry_blocks(rows, first)

    cdef int _carry_blocks(self, const Arrived *rows, int64_t first) except -1 nogil:
        if self.by_code:
            return self._carry_by_code(rows, first)
        return self._carry_by_value(rows, first)

    cdef int _carry_by_code(self, const Arrived *rows, int64_t first) except -1 nogil:
        """Join and keep rows of which time and one key are all there is."""
        cdef int32_t *codes = self.code_room
        cdef int64_t *numbers = self.row_room
        cdef const int64_t *time
        cdef int64_t at = 0, i, n
        while at < rows.n:
            n = min(<int64_t>BLOCK, rows.n - at)
            time = rows.time + at
            self.space.add_integers(n, rows.key[0] + at, codes)
            self.pipeline.fetch(n, codes)
            self.index.fetch(n, codes)
            self.times.write(first, n, <const char *>time)
            self.codes.write(first, n, <const char *>codes)
            for i in range(n):
                numbers[i] = first + i
            self.own.extent.tail = first + n
            self.pipeline.run_codes(first, n, time, codes, self.out)
            self.index.put(n, codes, NULL, time, numbers)
            at += n
            first += n
        return 0

    cdef int _carry_by_value(self, const Arrived *rows, int64_t first) except -1 nogil:
        """The same where time and one number are all there is."""
        cdef int64_t *numbers = self.row_room
        cdef const int64_t *time
        cdef const int64_t *values
        cdef int64_t at = 0, i, n
        while at < rows.n:
            n = min(<int64_t>BLOCK, rows.n - at)
            time = rows.time + at
            self.times.write(first, n, <const char *>time)
            self.codes.write(first, n, <const char *>(rows.column[0] + at))
            for i in range(n):
                numbers[i] = first + i
            self.own.extent.tail = first + n
            self.pipeline.run(first, first + n, self.out)
            values = self._sortable(n, rows.column[0] + at, 0)
            self.index.put(n, NULL, values, time, numbers)
            at += n
            first += n
        return 0

    cdef int _carry_any(self, const Arrived *rows, int64_t first, list wides) except -1:
        """The same whatever their columns."""
        if rows.n > self.room:
            self._need_room(rows.n)
        self._encode(rows)
        self._store(rows, first)
        stored = self._store_wides(first, wides) if wides else wides
        if rows.n <= RELEASE_ABOVE:
            self.pipeline.run(first, first + rows.n, self.out)
        else:
            with nogil:
                self.pipeline.run(first, first + rows.n, self.out)
        self._insert(rows, stored)
        return 0

    cdef int _need_room(self, int64_t n) except -1:
        cdef void *grown
        grown = realloc(self.code_room, (n + SLACK) * (self.own.n_keys + 1) * sizeof(int32_t))
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

    cdef int _encode(self, const Arrived *rows) except -1:
        cdef KeySpace space
        cdef int k
        for k in range(self.own.n_keys):
            space = <KeySpace>self.own.spaces[k]
            if rows.n <= RELEASE_ABOVE:
                space.add_integers(rows.n, rows.key[k], self._codes(k))
            else:
                with nogil:
                    space.add_integers(rows.n, rows.key[k], self._codes(k))
        return 0

    cdef int _store(self, const Arrived *rows, int64_t first) except -1:
        cdef Store own = self.own
        cdef int64_t *numbers = self.row_room
        cdef int64_t i
        cdef int k
        own.time.write(first, rows.n, <const char *>rows.time)
        for k in range(own.n_columns):
            (<Ring>own.columns[k]).write(first, rows.n, <const char *>rows.column[k])
        for k in range(own.n_keys):
            (<Ring>own.codes[k]).write(first, rows.n, <const char *>self._codes(k))
        for i in range(rows.n):
            numbers[i] = first + i
        if own.numbers is not None:
            own.numbers.write(first, rows.n, <const char *>numbers)
        own.extent.tail = first + rows.n
        return 0

    cdef list _store_wides(self, int64_t first, list wides):
        """Starts and lengths of the rows of every wide column."""
        cdef list stored = []
        for (space, rings), (offsets, items) in zip(self.own.wides, wides, strict=True):
            if offsets is None:
                starts, lengths, content = vector_rows(items)
            elif space is None:
                starts, lengths, content = array_rows(offsets, items)
            else:
                starts, lengths, content = set_rows(space, offsets, items)
            (<Ring>rings.start).write(first, len(starts), <const char *>cnp.PyArray_DATA(starts))
            (<Ring>rings.length).write(first, len(starts), <const char *>cnp.PyArray_DATA(lengths))
            rings.hold(first + len(starts), content)
            stored.append((starts, lengths))
        return stored

    cdef int _insert(self, const Arrived *rows, list wides) except -1:
        cdef Index index
        cdef const int32_t *codes
        cdef const int64_t *values
        cdef int k
        for k in range(self.own.n_indexes):
            index = <Index>self.own.indexes[k]
            codes = NULL
            values = NULL
            if self.own.needs[k] == KEYS:
                codes = self._composite(rows.n, self.own.sources[k][1], self.own.pair_spaces[k])
            elif self.own.needs[k] == COLUMN:
                values = self._sortable(
                    rows.n, rows.column[<int>self.own.sources[k][1]], self.own.sources[k][1]
                )
            elif self.own.needs[k] == WIDE:
                starts, lengths = wides[self.own.sources[k][1]]
                values = <const int64_t *>cnp.PyArray_DATA(starts)
                codes = <const int32_t *>cnp.PyArray_DATA(lengths)
            if rows.n <= RELEASE_ABOVE:
                index.put(rows.n, codes, values, rows.time, self.row_room)
            else:
                with nogil:
                    index.put(rows.n, codes, values, rows.time, self.row_room)
        return 0

    cdef const int32_t *_composite(self, int64_t n, tuple keys, list spaces) except NULL:
        """Codes of a key, or of several together (in the room behind those of all keys)."""
        cdef int32_t *codes = self._codes(keys[0])
        cdef int32_t *out = self._codes(self.own.n_keys)
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

    cdef const int64_t *_sortable(
        self, int64_t n, const int64_t *values, int column
    ) noexcept nogil:
        cdef int64_t *out = self.row_room + self.room + SLACK
        cdef int64_t i
        if not self.own.real[column]:
            return values
        for i in range(n):
            out[i] = sortable_bits(values[i])
        return out

    cdef int _expire(self) except -1:
        """As ``LiveJoin._expire`` after a push here, but no key is swept."""
        cdef Store store
        cdef int64_t least, horizon
        cdef int s, k
        for s in range(self.n_streams):
            if s == self.number:
                continue
            least = INT64_MAX
            for k in range(self.n_streams):
                if k != s:
                    least = min(least, (<Clock>self.clocks[k]).mark())
            store = <Store>self.stores[s]
            horizon = subtract_saturated(least, store.window)
            if least != INT64_MIN and horizon > store.extent.horizon:
                store.forget(horizon)
        return 0
