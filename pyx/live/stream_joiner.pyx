"""How rows of a stream are taken: in order of time, some at a time; what others hold expires.

Rows come as plain columns.  Where all of them can be part of a result and come in order of time,
they are taken as they lie (`take`); else with a mask of those that can, and the codes of their keys
(`take_some`).  The steps that they take then are those of `LiveStep`.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t

cimport numpy as cnp

from windjoin.pyx.live.live_step cimport LiveStep
from windjoin.pyx.live.silence cimport Silence
from windjoin.pyx.live.store cimport Watermark, expire_others
from windjoin.pyx.live.store_step cimport rows_in_order

cnp.import_array()

cdef enum:
    STRETCH = 1024  # rows of a push after which others forget what no later row can meet
    CARE_FIRST = 1024  # rows; then rings, keys and the plan are looked after,
    MAINTAIN_EVERY = 8192  # seldom in an old session, whose next rows tell little that is new
    CARE_SHARE = 16  # in between after this part of the rows that came so far


cdef class StreamJoiner(LiveStep):
    """Takes the rows of one stream of a live join."""

    def __init__(
        self, int number, stores, clocks, pipeline, maintain, give=None, Silence silence=None
    ):
        """``give``: makes of the rows of new results what is given out; before any is forgotten."""
        LiveStep.__init__(self, number, stores, clocks, silence, pipeline)
        self.stores = stores
        self.results = self.since_maintenance = 0
        self.maintain = maintain
        self.patience = CARE_FIRST
        self.give = give

    # -- rows as they lie --------------------------------------------------------------------------

    def push(self, time, list columns, list keys, list varlen):
        """Rows of every stream in each result; None if these are late or out of order.

        wides: (offsets, items) of every column of sets or vectors; (None, matrix) of vectors
        """
        return self._found() if self.take_arrays(time, columns, keys, varlen) else None

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
        pick = None if usable == NULL and ordered else rows_in_order(all, usable, ordered)
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
