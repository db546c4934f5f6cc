"""Pushed tables, from Arrow's memory through the step of a live join to the table of its results.

Rows become plain columns where they lie (narrow numbers and texts in room of their own, computed
columns as arrays), with flags of those that can be part of a result; late ones, and those without a
time, are set aside.  What needs more than that is told by None, before anything was taken.

Unchecked: enter through ``ingesting.py`` of the bindings, which knows what the columns are.
"""
from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

cimport numpy as cnp

from windjoin.pyx.base.index cimport SLACK, out_of_memory
from windjoin.pyx.encoding.string_keys cimport BytesSpace, Strings
from windjoin.pyx.live.store cimport Extent
from windjoin.pyx.arrow.tables cimport (
    AS_THEY_LIE, COMPUTED, DECIMALS, INTEGERS, LISTS, TEXTS, set_wanted, widened_to,
)

cdef extern from "arrow_c.h" nogil:
    int any_null(const ArrowArray *array, int64_t first, int64_t n)
    void leave_nulls(uint8_t *flag, const ArrowArray *array, int64_t first, int64_t n)
    void leave_nan(uint8_t *flag, const double *values, int64_t n)
    int any_nan_double(const double *values, int64_t n)

cdef extern from "where.h" nogil:
    void test_whole(uint8_t *flag, const int64_t *x, int64_t n, int operator, int64_t c)
    void test_real(uint8_t *flag, const double *x, int64_t n, int operator, double c)

cnp.import_array()

cdef enum:
    ROOM_KEPT = 1 << 20  # bytes, for the next push
    DIRECT_ROWS = 1 << 18  # results that are gathered by numbers where they were found
cdef dict OPERATORS = {"<": 0, "<=": 1, ">": 2, ">=": 3, "==": 4, "!=": 5}


cdef object _mask(const uint8_t *flag, int64_t n):
    """A copy of flags as an array."""
    cdef cnp.npy_intp length = n
    mask = cnp.PyArray_SimpleNew(1, &length, cnp.NPY_BOOL)
    memcpy(cnp.PyArray_DATA(mask), flag, n)
    return mask


cdef class Ingest:
    """Takes tables to the feed of one stream; see ``Ingesting`` for what it is made of."""

    def __cinit__(self, given):
        cdef int k, n
        self.joiners, self.number = given.joiners, given.number
        self.clock, self.counts = given.clock, given.counts
        self.extents = given.extents
        self.schema, (self.table_type, self.batch_type) = given.schema, given.types
        self.n_columns, self.n_keys = given.n_columns, given.n_keys
        self.n_varlen, self.n_tests = given.n_varlen, len(given.tests)
        n = 1 + self.n_columns + self.n_keys + self.n_varlen + self.n_tests
        self.most_columns = given.most_columns
        self.wanted = <Wanted *>calloc(n, sizeof(Wanted))
        self.tests = <Test *>calloc(self.n_tests + 1, sizeof(Test))
        if self.wanted == NULL or self.tests == NULL:
            out_of_memory(b"columns", n)
        tested = [column for column, _, _ in given.tests]
        for k, column in enumerate([*given.columns, *tested]):
            if column is None:
                self.wanted[k].form = COMPUTED
                self.n_texts += k > self.n_columns
                continue
            set_wanted(&self.wanted[k], column)
            self.n_texts += self.wanted[k].form == TEXTS
            self.n_wider += INTEGERS <= self.wanted[k].form <= DECIMALS
        for k, (_, operator, constant) in enumerate(given.tests):
            self.tests[k].operator = OPERATORS[operator]
            self.tests[k].real = isinstance(constant, float)
            if self.tests[k].real:
                self.tests[k].floating = constant
            else:
                self.tests[k].whole = constant
        self.evaluate = given.evaluate
        self.own, self.pages = given.own, given.pages
        self.append, self.expire = given.append, given.expire
        self.gatherer, self.names = given.gatherer, given.names
        self.empty, self.tabled, self.results = given.empty, given.tabled, given.results
        self.told, self.reject = given.told, given.reject
        self.allowance, self.owned = given.allowance, given.owned
        self.tracked, self.alone, self.settle = given.tracked, given.alone, given.settle

    def __dealloc__(self):
        free(self.wanted)
        free(self.tests)
        free(self.room)

    cpdef object push(self, rows, session_lock, int64_t sequence, bint told=False):
        """Results of push number ``sequence``; None: it is for another way, nothing was done.

        told: what is to be said of late rows has been said
        """
        cdef Borrowed one = Borrowed.__new__(Borrowed)
        cdef StoreStep joiner = <StoreStep>self.joiners[self.number]
        cdef Arrived arrived
        cdef Seen seen
        cdef Verdict said
        cdef list varlen = [], computed = []
        rows = self._borrow(rows, one)
        if rows is None:
            return None
        if self.allowance is not None and not self.allowance.takes(one.batch.length):
            return None
        self._need(one.batch.length, &seen)
        joiner.begin(&arrived)
        if not self._read(rows, one, &seen, &arrived, computed):
            return None
        if not self._varlen(one, &seen, varlen) or not self._test(&one.batch, &seen):
            return None
        said = self._classify(&seen, arrived.time, told)
        if said.least or (varlen and (seen.usable != NULL or not said.ordered)):
            return None  # these may be refused, those are copied
        session_lock.begin()
        self._keep(rows, one)
        self._encode(&one.batch, &seen, &arrived, computed)
        if self.tracked is not None:
            self._track(&seen, arrived.time)
        if seen.usable == NULL and said.ordered:
            joiner.take(&arrived, varlen)
        else:
            joiner.take_some(&arrived, varlen, seen.usable, said.ordered, said.newest)
            self._count(rows, &seen, said.late)
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

    cdef int _need(self, int64_t n, Seen *seen) except -1:
        """Room for the columns and flags of n rows."""
        cdef int64_t bytes = n * (8 * self.n_wider + 4 * self.n_texts + 4) + SLACK
        if bytes > self.room_bytes:
            free(self.room)
            self.room_bytes = 0
            self.room = <char *>malloc(bytes)
            if self.room == NULL:
                out_of_memory(b"rows of a push", n)
            self.room_bytes = bytes
        seen.n = n
        seen.bad = seen.usable = seen.present = NULL
        seen.wider = <int64_t *>self.room
        seen.codes = <int32_t *>(self.room + n * 8 * self.n_wider)
        seen.late = <uint8_t *>(seen.codes + n * self.n_texts)
        return 0

    # -- columns -----------------------------------------------------------------------------------

    cdef bint _read(
        self, rows, Borrowed one, Seen *seen, Arrived *arrived, list computed
    ) except -1:
        """Whether all numbers and texts are where they can be read, and no more; then they are
        there.
        """
        cdef int k
        arrived.n = seen.n
        if self.wanted[0].form != COMPUTED and not self._column(&one.batch, 0, seen, arrived):
            return False
        if self.evaluate is not None:
            self._compute(rows, seen, arrived, computed)
        for k in range(1, 1 + self.n_columns + self.n_keys):
            if self.wanted[k].form != COMPUTED:
                if not self._column(&one.batch, k, seen, arrived):
                    return False
        return True

    cdef bint _column(
        self, const ArrowArray *batch, int k, Seen *seen, Arrived *arrived
    ) except -1:
        """The same of one column; rows without a value are not usable."""
        cdef const Wanted *as_ = self.wanted + k
        cdef const ArrowArray *column = batch.children[as_.number]
        cdef int64_t first = column.offset + batch.offset
        cdef const int64_t *values = NULL
        if as_.form != TEXTS:
            values = self._numbers(batch, as_, seen)
            if values == NULL:
                return False
        elif column.buffers[1] == NULL:
            return False
        self._put(arrived, k, values)
        if any_null(column, first, seen.n):
            leave_nulls(_usable(seen), column, first, seen.n)
            if k == 0:
                _note_untimed(seen, seen.usable)
        if as_.kind == cnp.NPY_FLOAT64 and any_nan_double(<const double *>values, seen.n):
            leave_nan(_usable(seen), <const double *>values, seen.n)
        return True

    cdef void _put(self, Arrived *arrived, int k, const int64_t *values) noexcept:
        """Values of column number ``k`` of those that are read; NULL: texts."""
        if k == 0:
            arrived.time = values
        elif k <= self.n_columns:
            arrived.column[k - 1] = values
        else:
            arrived.key[k - 1 - self.n_columns] = values

    cdef int _compute(self, rows, Seen *seen, Arrived *arrived, list computed) except -1:
        """Columns and conditions that are evaluated; arrays of these columns in ``computed``."""
        cdef Extent extent = <Extent>self.extents[self.number]
        cdef int k, at = 0
        timed = None if seen.bad == NULL else ~_mask(seen.bad, seen.n)
        timed, usable, present, arrays = self.evaluate(timed, rows, extent.tail)
        if timed is not None and seen.bad == NULL:
            leave(_usable(seen), <const uint8_t *>cnp.PyArray_DATA(timed), seen.n)
            _note_untimed(seen, <const uint8_t *>cnp.PyArray_DATA(timed))
        if usable is not None:
            leave(_usable(seen), <const uint8_t *>cnp.PyArray_DATA(usable), seen.n)
        if present is not None and self.tracked is not None:
            leave(_present(seen), <const uint8_t *>cnp.PyArray_DATA(present), seen.n)
        computed += arrays
        for k in range(1 + self.n_columns + self.n_keys):
            if self.wanted[k].form != COMPUTED:
                continue
            values, at = arrays[at], at + 1
            if type(values) is tuple:  # offsets and bytes of texts
                self._put(arrived, k, NULL)
            else:
                self._put(arrived, k, <const int64_t *>cnp.PyArray_DATA(values))
        return 0

    cdef bint _varlen(self, Borrowed one, Seen *seen, list varlen) except -1:
        """The same of columns of sets and vectors."""
        cdef const Wanted *as_ = self.wanted + 1 + self.n_columns + self.n_keys
        cdef const ArrowArray *column
        cdef int64_t first
        cdef int k
        for k in range(self.n_varlen):
            column = one.batch.children[as_[k].number]
            first = column.offset + one.batch.offset
            if as_[k].form == LISTS:
                read = one.lists(column, first, seen.n, &as_[k])
            else:
                read = one.vectors(column, first, seen.n, &as_[k])
            if read is None:
                return False
            varlen.append(read)
        return True

    cdef const int64_t *_numbers(
        self, const ArrowArray *batch, const Wanted *as_, Seen *seen
    ) noexcept:
        """Values of 64 bits, nulls among them; NULL if there are none."""
        cdef const ArrowArray *column = batch.children[as_.number]
        cdef int64_t first = column.offset + batch.offset
        cdef const int64_t *data = <const int64_t *>column.buffers[1]
        if data == NULL or as_.form == AS_THEY_LIE:
            return data if data == NULL else data + first
        data = seen.wider
        widened_to(data, column.buffers[1], first, seen.n, as_)
        seen.wider += seen.n
        return data

    # -- rows --------------------------------------------------------------------------------------

    cdef bint _test(self, const ArrowArray *batch, Seen *seen) except -1:
        """Only rows that pass the tests are usable."""
        cdef const Wanted *as_ = self.wanted + 1 + self.n_columns + self.n_keys + self.n_varlen
        cdef const ArrowArray *column
        cdef const int64_t *values
        cdef const Test *test
        cdef int k
        for k in range(self.n_tests):
            values = self._numbers(batch, &as_[k], seen)
            if values == NULL:
                return False
            column, test = batch.children[as_[k].number], &self.tests[k]
            apply(test, _usable(seen), values, column, column.offset + batch.offset, seen.n)
            if self.tracked is not None and k < self.owned:
                apply(test, _present(seen), values, column, column.offset + batch.offset, seen.n)
        return True

    cdef Verdict _classify(self, Seen *seen, const int64_t *time, bint told) except *:
        """What the clock says of the rows, of which late ones are set aside."""
        cdef Verdict said
        if seen.bad == NULL and self.clock.in_order(seen.n, time):
            return Verdict(max(self.clock.newest, time[seen.n - 1]), INT64_MIN, 0, True, False)
        said = self.clock.classify_rows(seen.n, time, seen.bad, seen.late)
        if said.late and not said.least:
            self._set_aside(seen, time, said.watermark, told)
        return said

    cdef int _track(self, Seen *seen, const int64_t *time) except -1:
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

    cdef int _count(self, rows, Seen *seen, int64_t late) except -1:
        """Count the rows that can match nothing; those that are rejected are kept."""
        if seen.usable == NULL:
            return 0
        self.counts.unusable += seen.n - _sum(seen.usable, seen.n)
        self.counts.late += late
        if late or seen.bad != NULL:
            self.reject(
                rows,
                None if seen.bad == NULL else _mask(seen.bad, seen.n),
                _mask(seen.late, seen.n) if late else None,
            )
        return 0

    cdef int _set_aside(
        self, Seen *seen, const int64_t *time, int64_t watermark, bint told
    ) except -1:
        """Late rows are not usable, and told of before anything is taken."""
        cdef uint8_t *flag = _usable(seen)
        cdef uint8_t *present = NULL if self.tracked is None else _present(seen)
        cdef cnp.npy_intp length = seen.n
        cdef int64_t i
        for i in range(seen.n):
            flag[i] &= not seen.late[i]
            if present != NULL:
                present[i] &= not seen.late[i]
        if self.told is not None and not told:
            times = cnp.PyArray_SimpleNew(1, &length, cnp.NPY_INT64)
            memcpy(cnp.PyArray_DATA(times), time, seen.n * sizeof(int64_t))
            self.told(times, _mask(seen.late, seen.n), watermark)
        return 0

    cdef int _encode(
        self, const ArrowArray *batch, Seen *seen, Arrived *rows, list computed
    ) except -1:
        """Codes of keys that are texts, -1 where rows are not usable."""
        cdef StoreStep joiner = <StoreStep>self.joiners[self.number]
        cdef const Wanted *as_ = self.wanted + 1 + self.n_columns
        cdef const ArrowArray *column
        cdef BytesSpace space
        cdef Strings all
        cdef int k, at = -1  # the computed keys are the last of what is computed
        for k in range(self.n_keys - 1, -1, -1):
            if as_[k].form == COMPUTED:
                at += 1
            if rows.key[k] != NULL:
                continue
            if as_[k].form == COMPUTED:
                offsets, data = computed[len(computed) - 1 - at]
                all.data, all.offset_bytes = <const uint8_t *>cnp.PyArray_DATA(data), 8
                all.offset = cnp.PyArray_DATA(offsets)
            else:
                column = batch.children[as_[k].number]
                all.data, all.offset_bytes = <const uint8_t *>column.buffers[2], as_[k].size
                all.offset = (
                    <const char *>column.buffers[1] + as_[k].size * (column.offset + batch.offset)
                )
            space = <BytesSpace>joiner.own.spaces[k]
            rows.code[k] = seen.codes
            with nogil:
                space.add_strings(&all, seen.n, seen.usable, seen.codes)
            seen.codes += seen.n
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
        if self.room_bytes > ROOM_KEPT:
            free(self.room)
            self.room = NULL
            self.room_bytes = 0
        if self.expire is not None:
            self.expire()
            return 0
        for k in range(len(self.pages)):
            extent = <Extent>self.extents[k]
            (<Pages>self.pages[k]).expire(min(extent.head, extent.owed))
        return 0


cdef inline uint8_t *_usable(Seen *seen) noexcept nogil:
    """Flags of usable rows; all are if there were none before."""
    if seen.usable == NULL:
        seen.usable = seen.late + seen.n
        memset(seen.usable, 1, seen.n)
    return seen.usable


cdef void _note_untimed(Seen *seen, const uint8_t *timed) noexcept nogil:
    """Rows that are not ``timed`` have no time."""
    seen.bad = seen.late + 2 * seen.n
    _turned(seen.bad, timed, seen.n)


cdef void _turned(uint8_t *out, const uint8_t *flag, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        out[i] = not flag[i]


cdef int64_t _sum(const uint8_t *flag, int64_t n) noexcept nogil:
    cdef int64_t i, total = 0
    for i in range(n):
        total += flag[i]
    return total


cdef inline uint8_t *_present(Seen *seen) noexcept nogil:
    """Flags of rows that are rows of the stream, though they may match nothing: all with a time."""
    if seen.present == NULL:
        seen.present = seen.late + 3 * seen.n
        memset(seen.present, 1, seen.n)
        if seen.bad != NULL:
            _turned(seen.present, seen.bad, seen.n)
    return seen.present


cdef inline bint is_alone(const Seen *seen, int64_t i) noexcept nogil:
    """Whether a row is one of its stream that can match nothing, whatever comes."""
    if seen.usable[i] or (seen.bad != NULL and seen.bad[i]):
        return False
    return seen.present == NULL or seen.present[i]


cdef void leave(uint8_t *flag, const uint8_t *kept, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        flag[i] &= kept[i]


cdef void apply(
    const Test *test, uint8_t *flag, const int64_t *values, const ArrowArray *column,
    int64_t first, int64_t n,
) noexcept nogil:
    """Only rows whose value is there and passes a test keep their flag."""
    if any_null(column, first, n):
        leave_nulls(flag, column, first, n)
    if test.real:
        test_real(flag, <const double *>values, n, test.operator, test.floating)
    else:
        test_whole(flag, values, n, test.operator, test.whole)
