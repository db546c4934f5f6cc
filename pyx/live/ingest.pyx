"""Pushed tables, from Arrow's memory through the step of a live join to the table of its results.

Rows are read where they lie; late ones are set aside, with those that have no time.  What cannot be
taken that way, such as a table of another schema, is told by None before anything was taken.

Unchecked: enter through ``ingesting.py`` of the bindings, which knows what the columns are.
"""
from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t

cimport numpy as cnp

from windjoin.pyx.arrow.reader cimport Place, present_of, usable_of
from windjoin.pyx.base.column cimport copied
from windjoin.pyx.encoding.string_keys cimport BytesSpace, Strings
from windjoin.pyx.live.store cimport Extent

cnp.import_array()

cdef enum:
    ROOM_KEPT = 1 << 20  # bytes, for the next push
    DIRECT_ROWS = 1 << 18  # results that are gathered by numbers where they were found


cdef class Ingest:
    """Takes tables to the feed of one stream; see ``Ingesting`` for what it is made of."""

    def __cinit__(self, given):
        self.joiners, self.number = given.joiners, given.number
        self.clock, self.counts = given.clock, given.counts
        self.extents = given.extents
        self.schema, (self.table_type, self.batch_type) = given.schema, given.types
        self.reader = given.reader
        self.n_columns, self.n_keys, self.n_texts = given.n_columns, given.n_keys, given.n_texts
        self.most_columns = given.most_columns
        self.seen = self.reader.reading()
        self.varlen_rows = given.varlen_rows
        self.own, self.pages = given.own, given.pages
        self.append, self.expire = given.append, given.expire
        self.gatherer, self.names = given.gatherer, given.names
        self.empty, self.tabled, self.results = given.empty, given.tabled, given.results
        self.told, self.reject = given.told, given.reject
        self.allowance = given.allowance
        self.tracked, self.alone, self.settle = given.tracked, given.alone, given.settle
        self.all_count = given.all_count
        self.tells_present = self.tracked is not None or self.all_count

    cpdef object push(self, rows, session_lock, int64_t sequence, bint told=False):
        """Results of push number ``sequence``; None: it is for another way, nothing was done.

        told: what is to be said of late rows has been said
        """
        cdef Reading seen = self.seen
        cdef Borrowed one = Borrowed.__new__(Borrowed)
        rows = self._borrow(rows, one)
        if rows is None:
            return None
        if self.allowance is not None and not self.allowance.takes(one.batch.length):
            return None
        seen.start(one.batch.length, self.reader.n_wider, self.n_texts)
        seen.one = one
        try:
            return self._take(rows, seen, session_lock, sequence, told)
        finally:
            seen.give_back(ROOM_KEPT)

    cdef object _take(self, rows, Reading seen, session_lock, int64_t sequence, bint told):
        cdef StoreStep joiner = <StoreStep>self.joiners[self.number]
        cdef Extent extent = <Extent>self.extents[self.number]
        cdef Arrived arrived
        cdef Verdict said
        self.reader.read_from(seen, rows, extent.tail, self.tells_present)
        self._point(joiner, seen, &arrived)
        said = self._classify(seen, arrived.time, told)
        if said.least:
            return None  # it is refused
        session_lock.begin()
        self._keep(rows, seen.one)
        self._encode(joiner, seen, &arrived)
        if self.tracked is not None:
            self._track(seen, arrived.time)
        if seen.usable == NULL and said.ordered and seen.as_they_lie:
            joiner.take(&arrived, seen.varlen)
        else:
            if self.all_count and seen.usable != NULL:
                arrived.counted = present_of(seen)
            joiner.take_some(&arrived, self._varlen(seen), seen.usable, said.ordered, said.newest)
            self._count(rows, seen, said.late)
        if self.settle is not None:
            self.settle()
        found = self._given(joiner, sequence)
        self._let_go()
        return found

    cdef object _borrow(self, rows, Borrowed one):
        """Rows of the schema that lie in one batch, which is ours then; None: there are none."""
        cdef bint table = type(rows) is self.table_type
        if not table and type(rows) is not self.batch_type:
            return None
        if rows.num_columns > self.most_columns or not self.schema.equals(rows.schema):
            return None
        if rows.num_rows == 0:
            return None
        one.take(rows, table)
        if one.batch.length != rows.num_rows:
            try:
                rows = rows.combine_chunks()
            except (ValueError, NotImplementedError):  # such as dictionaries with null values
                return None
            one.take(rows, table)
        return rows if one.batch.length == rows.num_rows and one.lies_here() else None

    # -- rows --------------------------------------------------------------------------------------

    cdef int _point(self, StoreStep joiner, Reading seen, Arrived *arrived) except -1:
        """Time, operands and keys that are numbers as the joiner takes them."""
        cdef const Place *place = seen.place
        cdef int k
        joiner.begin(arrived)
        arrived.n, arrived.time = seen.n, <const int64_t *>place.at
        for k in range(self.n_columns):
            arrived.column[k] = <const int64_t *>place[1 + k].at
        place += 1 + self.n_columns
        for k in range(self.n_keys):
            arrived.key[k] = NULL if place[k].offset_bytes else <const int64_t *>place[k].at
        return 0

    cdef list _varlen(self, Reading seen):
        """(starts, lengths, content) of every wide column."""
        if not seen.varlen:
            return seen.varlen
        usable = None if seen.usable == NULL else copied(seen.usable, seen.n, cnp.NPY_BOOL)
        return self.varlen_rows(seen.varlen, usable)

    cdef Verdict _classify(self, Reading seen, const int64_t *time, bint told) except *:
        """What the clock says of the rows, of which late ones are set aside."""
        cdef Verdict said
        if seen.bad == NULL and self.clock.in_order(seen.n, time):
            return Verdict(max(self.clock.newest, time[seen.n - 1]), INT64_MIN, 0, True, False)
        said = self.clock.classify_rows(seen.n, time, seen.bad, seen.late)
        if said.late and not said.least:
            self._set_aside(seen, time, said.watermark, told)
        return said

    cdef int _track(self, Reading seen, const int64_t *time) except -1:
        """Rows that may come out alone arrive; those that nothing can match do so at once."""
        cdef Extent extent = <Extent>self.extents[self.number]
        cdef cnp.npy_intp alone = 0
        cdef int64_t *row
        cdef int64_t i
        self.tracked.take(seen.n, time, seen.usable)
        if seen.usable == NULL:
            return 0
        for i in range(seen.n):
            alone += is_alone(seen, i)
        if alone == 0:
            return 0
        rows = cnp.PyArray_SimpleNew(1, &alone, cnp.NPY_INT64)
        row = <int64_t *>cnp.PyArray_DATA(rows)
        for i in range(seen.n):
            if is_alone(seen, i):
                row[0] = extent.tail + i
                row += 1
        self.alone(self.number, rows)
        return 0

    cdef int _count(self, rows, Reading seen, int64_t late) except -1:
        """Count the rows that can match nothing; those that are rejected are kept."""
        if seen.usable == NULL:
            return 0
        self.counts.unusable += seen.n - _sum(seen.usable, seen.n)
        self.counts.late += late
        if late or seen.bad != NULL:
            self.reject(
                rows,
                None if seen.bad == NULL else copied(seen.bad, seen.n, cnp.NPY_BOOL),
                copied(seen.late, seen.n, cnp.NPY_BOOL) if late else None,
            )
        return 0

    cdef int _set_aside(
        self, Reading seen, const int64_t *time, int64_t watermark, bint told
    ) except -1:
        """Late rows are not usable, and told of before anything is taken."""
        cdef uint8_t *flag = usable_of(seen)
        cdef uint8_t *present = present_of(seen) if self.tells_present else NULL
        cdef int64_t i
        for i in range(seen.n):
            flag[i] &= not seen.late[i]
            if present != NULL:
                present[i] &= not seen.late[i]
        if self.told is not None and not told:
            times = copied(time, seen.n, cnp.NPY_INT64)
            self.told(times, copied(seen.late, seen.n, cnp.NPY_BOOL), watermark)
        return 0

    cdef int _encode(self, StoreStep joiner, Reading seen, Arrived *rows) except -1:
        """Codes of keys that are texts, -1 where rows are not usable."""
        cdef const Place *place = seen.place + 1 + self.n_columns
        cdef int32_t *codes = seen.codes
        cdef BytesSpace space
        cdef Strings all
        cdef int k
        for k in range(self.n_keys):
            if not place[k].offset_bytes:
                continue
            all.data, all.offset = place[k].text, place[k].at
            all.offset_bytes = place[k].offset_bytes
            space = <BytesSpace>joiner.own.spaces[k]
            rows.code[k] = codes
            with nogil:
                space.add_strings(&all, seen.n, seen.usable, codes)
            codes += seen.n
        return 0

    # -- payload and results -----------------------------------------------------------------------

    cdef int _keep(self, rows, Borrowed one) except -1:
        """Keep the columns that somebody will ask for."""
        if self.own is not None:
            self.own.keep(&one.batch, self.own.number)
        elif self.append is not None:
            self.append(rows)
        return 0

    cdef object _given(self, StoreStep joiner, int64_t sequence):
        """What is given out of the results."""
        if joiner.given is not None:  # whatever `give` is by now
            return self.results(joiner._found(), sequence)
        if self.names is not None:
            return joiner.out.finish_named(self.names)
        if self.gatherer is not None:
            return self._gathered(joiner.out, sequence)
        return self.results(joiner.out.finish(), sequence)

    cdef object _gathered(self, Output out, int64_t sequence):
        """The table of the results that an output has."""
        cdef int64_t n = out.used
        if n == 0:
            return self.empty
        if n > DIRECT_ROWS:
            return self.tabled(self.gatherer.gather(out.finish()), sequence)
        batches = self.gatherer.some(<const int64_t **>out.column, 0, n)
        out.used = 0
        return self.tabled(batches, sequence)

    cdef int _let_go(self) except -1:
        """Forget the payload of rows that have gone."""
        cdef Extent extent
        cdef int k
        if self.expire is not None:
            self.expire()
            return 0
        for k in range(len(self.pages)):
            extent = <Extent>self.extents[k]
            (<Pages>self.pages[k]).expire(min(extent.head, extent.owed))
        return 0


cdef int64_t _sum(const uint8_t *flag, int64_t n) noexcept nogil:
    cdef int64_t i, total = 0
    for i in range(n):
        total += flag[i]
    return total


cdef inline bint is_alone(Reading seen, int64_t i) noexcept:
    """Whether a row is one of its stream that can match nothing, whatever comes."""
    if seen.usable[i] or (seen.bad != NULL and seen.bad[i]):
        return False
    return seen.present == NULL or seen.present[i]
