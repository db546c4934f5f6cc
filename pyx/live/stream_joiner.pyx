"""How rows of a stream are taken: in order of time, some at a time; what others hold expires.

Rows come as plain columns.  Where all of them can be part of a result and come in order of time,
they are taken as they lie (`take`); else with a mask of those that can, and the codes of their keys
(`take_some`).  The steps that they take then are those of `LiveStep`.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

cimport numpy as cnp

from windjoin.pyx.base.column import time_order

from windjoin.pyx.base.index cimport RELEASE_ABOVE, SLACK, out_of_memory
from windjoin.pyx.encoding.keys cimport KeySpace
from windjoin.pyx.live.silence cimport Silence
from windjoin.pyx.live.live_step cimport LiveStep
from windjoin.pyx.live.store cimport Watermark, expire_others

cdef extern from "sort.h" nogil:
    void sort_pairs(int64_t *key, int64_t *order, int64_t n, int64_t *spare)

cnp.import_array()

cdef enum:
    STRETCH = 1024  # rows of a push after which others forget what no later row can meet
    CARE_FIRST = 1024  # rows; then rings, keys and the plan are looked after,
    MAINTAIN_EVERY = 8192  # seldom in an old session, whose next rows tell little that is new
    SORTED_AT_ONCE = 1 << 20  # rows; more are sorted so that interrupts are heard
    CARE_SHARE = 16  # in between after this part of the rows that came so far


cdef void _copy_picked(
    int64_t n, const int64_t *at, const int64_t *given, int64_t *out
) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        out[i] = given[at[i]]


cdef object _in_order(const Arrived *rows, const uint8_t *usable, bint ordered):
    """The usable rows (NULL: all are), in order of time if they are not ``ordered`` by it."""
    cdef cnp.npy_intp n = rows.n
    pick = cnp.PyArray_EMPTY(1, &n, cnp.NPY_INT64, 0)
    cdef int64_t *at = <int64_t *>cnp.PyArray_DATA(pick)
    cdef int64_t *time
    cdef int64_t i
    n = 0
    for i in range(rows.n):
        at[n] = i
        n += usable == NULL or usable[i] != 0
    pick = pick[:n]
    if ordered or n < 2:
        return pick
    if n > SORTED_AT_ONCE:
        times = cnp.PyArray_EMPTY(1, &n, cnp.NPY_INT64, 0)
        _copy_picked(n, at, rows.time, <int64_t *>cnp.PyArray_DATA(times))
        return pick[time_order(times)]
    room = PyBytes_FromStringAndSize(NULL, 3 * n * sizeof(int64_t))
    time = <int64_t *>PyBytes_AS_STRING(room)
    _copy_picked(n, at, rows.time, time)
    sort_pairs(time, at, n, time + n)
    return pick


cdef class StreamJoiner(LiveStep):
    """Takes the rows of one stream of a live join."""

    def __init__(
        self, int number, stores, clocks, pipeline, maintain, give=None, Silence silence=None
    ):
        """``give``: makes of the rows of new results what is given out; before any is forgotten."""
        cdef int pointers
        LiveStep.__init__(self, stores[number], pipeline, len(stores))
        self.number = number
        self.stores = stores
        self.clocks = clocks
        self.results = self.since_maintenance = 0
        self.maintain = maintain
        self.patience = CARE_FIRST
        self.give = give
        self.silence = silence
        pointers = self.own.n_columns + 2 * self.own.n_keys
        self.places = <const void **>calloc(3 * pointers + 1, sizeof(void *))
        if self.places == NULL:
            out_of_memory(b"columns", pointers)

    def __dealloc__(self):
        free(self.places)

    # -- rows as they lie --------------------------------------------------------------------------

    def push(self, time, list columns, list keys, list varlen):
        """Rows of every stream in each result; None if these are late or out of order.

        wides: (offsets, items) of every column of sets or vectors; (None, matrix) of vectors
        """
        return self._found() if self.take_arrays(time, columns, keys, varlen) else None

    cdef void begin(self, Arrived *rows) noexcept nogil:
        """Give room for the pointers to columns and keys."""
        self._point(rows, 0)

    cdef bint take_arrays(self, time, list columns, list keys, list varlen) except -1:
        cdef Arrived rows
        cdef int k
        self.begin(&rows)
        rows.n = cnp.PyArray_DIM(time, 0)
        rows.time = <const int64_t *>cnp.PyArray_DATA(time)
        for k in range(len(columns)):
            rows.column[k] = <const int64_t *>cnp.PyArray_DATA(columns[k])
        for k in range(len(keys)):
            rows.key[k] = <const int64_t *>cnp.PyArray_DATA(keys[k])
        return self.take(&rows, varlen)

    cdef bint take(self, Arrived *rows, list varlen) except -1:
        """Leaves results in ``out``; False, and nothing done, if rows are late or out of order."""
        if rows.n == 0 or not (<Watermark>self.clocks[self.number]).in_order(rows.n, rows.time):
            return False
        self.own.need_room(rows.n)
        if rows.n <= STRETCH or varlen:
            self._carry(rows, varlen)
        else:
            self._take_stretches(rows, varlen)
        self._end_push(rows.n, rows.time[rows.n - 1])
        return True

    cdef int _take_stretches(self, Arrived *rows, list varlen) except -1:
        """Many rows, some at a time: what others hold for the next of them stays in near caches."""
        cdef Arrived some
        cdef int64_t at = 0
        while at < rows.n:
            some = self._stretch(rows, at, min(rows.n - at, <int64_t>STRETCH))
            self._carry(&some, varlen)
            at += some.n
            self._come_to(rows.time[at - 1], at)
        return 0

    cdef void _point(self, Arrived *rows, int which) noexcept nogil:
        cdef const void **place = self.places
        place += which * (self.own.n_columns + 2 * self.own.n_keys)
        rows.column = <const int64_t **>place
        rows.key = <const int64_t **>(place + self.own.n_columns)
        rows.code = <const int32_t **>(place + self.own.n_columns + self.own.n_keys)
        rows.row = NULL

    cdef Arrived _stretch(self, const Arrived *rows, int64_t at, int64_t n) noexcept nogil:
        """Rows [at, at + n) of what arrived; there is room for one stretch at a time."""
        cdef Arrived some
        cdef int k
        self._point(&some, 2)
        some.n = n
        some.time = rows.time + at
        for k in range(self.own.n_columns):
            some.column[k] = rows.column[k] + at
        for k in range(self.own.n_keys):
            some.key[k] = NULL
            if rows.key[k] == NULL:
                some.code[k] = rows.code[k] + at
            else:
                some.key[k] = rows.key[k] + at
        if rows.row != NULL:
            some.row = rows.row + at
        return some

    cdef int _end_push(self, int64_t n, int64_t newest) except -1:
        """n rows have taken all steps, and their stream has come to ``newest``."""
        cdef Watermark clock
        self.own.counts.rows_in += n
        self.results += self.out.used
        self.given = None
        if self.give is not None:
            clock = <Watermark>self.clocks[self.number]
            clock.newest = max(clock.newest, newest)
            self.given = self.give(self.out.finish())
        self._come_to(newest, n)
        self.since_maintenance += n
        if self.since_maintenance >= self.patience:
            self._maintain_sometimes()
        return 0

    cdef int _maintain_sometimes(self) except -1:
        cdef int64_t sooner = self.maintain()
        self.since_maintenance = 0
        self.patience = min(max(self.own.counts.rows_in // CARE_SHARE, CARE_FIRST), MAINTAIN_EVERY)
        if sooner:
            self.patience = min(self.patience, sooner)
        return 0

    cdef list _found(self):
        """Rows of every stream in each result of the last push, or what was made of them."""
        if self.given is None:  # whatever `give` is now: looking after itself may change it
            return self.out.finish()
        found, self.given = self.given, None
        return found

    cdef int _come_to(self, int64_t time, int64_t n) except -1:
        """The stream has rows up to ``time``; n: of this push, none of an empty one."""
        cdef Watermark clock = <Watermark>self.clocks[self.number]
        cdef int64_t gone
        cdef int but = self.number
        clock.newest = max(clock.newest, time)
        if self.silence is not None and self.silence.heard(self.number if n else -1):
            but = -1  # others have come further, too
        gone = expire_others(self.stores, self.clocks, but) + self.own.drop_useless()
        self.since_maintenance += gone >> 1
        return 0

    # -- any rows ----------------------------------------------------------------------------------

    def push_some(
        self, time, list columns, list codes, list varlen_rows, usable, bint ordered, int64_t newest
    ):
        """Join and keep rows of which some can match nothing, or that are out of order.

        codes: of every key; records: (starts, lengths, content) of every wide column
        usable: mask of the rows that can be part of a result, None: all
        newest: time of the stream after them
        Returns the rows of every stream in each result.
        """
        cdef Arrived rows
        cdef const uint8_t *flag = NULL
        cdef int k
        self.begin(&rows)
        rows.n = cnp.PyArray_DIM(time, 0)
        rows.time = <const int64_t *>cnp.PyArray_DATA(time)
        for k in range(self.own.n_columns):
            rows.column[k] = <const int64_t *>cnp.PyArray_DATA(columns[k])
        for k in range(self.own.n_keys):
            rows.key[k] = NULL
            rows.code[k] = <const int32_t *>cnp.PyArray_DATA(codes[k])
        if usable is not None:
            flag = <const uint8_t *>cnp.PyArray_DATA(usable)
        self.take_some(&rows, varlen_rows, flag, ordered, newest)
        return self._found()

    cdef int take_some(
        self, Arrived *all, list varlen_rows, const uint8_t *usable, bint ordered, int64_t newest
    ) except -1:
        """The same for rows where they lie, with codes or keys; ``usable``: NULL if all are.

        Those that can match nothing stay in the rings with a time that nothing reaches.
        """
        cdef Arrived rows
        cdef int64_t first = self.own.extent.tail, at = 0, most
        cdef int k
        pick = None if usable == NULL and ordered else _in_order(all, usable, ordered)
        _memory = self._pick(all, pick, usable, &rows)
        # rows of wide columns are best joined at once
        most = rows.n if varlen_rows else min(rows.n, <int64_t>STRETCH)
        if self.room < most:
            self._need_room(most)
        self.own.need_room(all.n)
        varlen = []
        for k in range(len(varlen_rows)):
            starts, lengths, content = varlen_rows[k]
            self.own.write_varlen(k, first, starts, lengths, content)
            varlen.append((starts, lengths) if pick is None else (starts[pick], lengths[pick]))
        self.own.write(all)
        while at < rows.n:
            some = self._stretch(&rows, at, min(rows.n - at, most))
            self._join(&some)
            self._insert(&some, varlen, at)
            at += some.n
            if at < rows.n:
                self._come_to(rows.time[at - 1], at)
        return self._end_push(all.n, newest)

    cdef object _pick(self, Arrived *all, pick, const uint8_t *usable, Arrived *rows):
        """The rows that are joined, in order of time: those of ``pick`` (None: all of them).

        All rows get codes, numbers, and the times that rings keep.  What comes back owns what
        ``all`` and ``rows`` point to.
        """
        cdef int64_t n = all.n if pick is None else cnp.PyArray_DIM(pick, 0)
        cdef int64_t wide = 2 * all.n + (0 if pick is None else n * (2 + self.own.n_columns)) + n
        cdef int64_t narrow = self.own.n_keys * (all.n + n)
        memory = PyBytes_FromStringAndSize(NULL, 8 * (wide + SLACK) + 4 * (narrow + SLACK))
        cdef int64_t *room = <int64_t *>PyBytes_AS_STRING(memory)
        cdef int32_t *codes = <int32_t *>(room + wide + SLACK)
        cdef int64_t *numbers = room + all.n
        cdef const int64_t *at = NULL if pick is None else <const int64_t *>cnp.PyArray_DATA(pick)
        cdef int64_t i
        cdef int k
        for i in range(all.n):
            room[i] = all.time[i] if usable == NULL or usable[i] else INT64_MIN
            numbers[i] = self.own.extent.tail + i
        self._point(rows, 1)
        rows.n, rows.row, rows.time = n, numbers, all.time
        all.row = numbers
        room += 2 * all.n
        if pick is not None:
            rows.row, rows.time = room, room + n
            for i in range(n):
                room[i], room[n + i] = numbers[at[i]], all.time[at[i]]
            room += 2 * n
        for k in range(self.own.n_columns):
            rows.column[k] = all.column[k]
            if pick is not None:
                rows.column[k] = room
                _copy_picked(n, at, all.column[k], room)
                room += n
        for k in range(self.own.n_keys):
            rows.key[k], rows.code[k] = NULL, codes + all.n
            self._give_codes(all, k, n, at, room, codes)
            codes += all.n + n
        all.time = <const int64_t *>PyBytes_AS_STRING(memory)
        return memory

    cdef int _give_codes(
        self, Arrived *all, int k, int64_t n, const int64_t *at, int64_t *keys, int32_t *codes
    ) except -1:
        """Codes of the n rows ``at`` (NULL: all) behind those of all rows, -1 of the others."""
        cdef KeySpace space = <KeySpace>self.own.spaces[k]
        cdef int32_t *picked = codes + all.n
        cdef const int64_t *given = all.key[k]
        cdef int64_t i
        if given == NULL:
            for i in range(n):
                picked[i] = all.code[k][at[i] if at != NULL else i]
            return 0
        if at != NULL:
            _copy_picked(n, at, given, keys)
            given = keys
            memset(codes, 0xff, all.n * sizeof(int32_t))
        if n <= RELEASE_ABOVE:
            space.add_integers(n, given, picked)
        else:
            with nogil:
                space.add_integers(n, given, picked)
        for i in range(n):
            codes[at[i] if at != NULL else i] = picked[i]
        all.key[k], all.code[k] = NULL, codes
        return 0
