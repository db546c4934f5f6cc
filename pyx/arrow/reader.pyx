"""Rows of tables as plain columns where they lie, with flags of those that can join.

This is how all rows come in, of whole tables as of pushed ones.  Numbers and texts are read from
Arrow's memory (narrow numbers in room of their own), conditions that compare a column of numbers
with a constant become flags.  What is not there to be read is asked of whoever can compute it:
columns of expressions, and those that have nulls where compiled code has no flags for them.

Unchecked: enter through ``stream_rows.py`` of the bindings, which knows what the columns are.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

cimport numpy as cnp

import numpy as np

from windjoin.pyx.arrow.tables cimport (
    AS_THEY_LIE, COMPUTED, DECIMALS, INTEGERS, LISTS, TEXTS, set_wanted, viewed, widened_to,
)
from windjoin.pyx.base.column cimport copied
from windjoin.pyx.base.index cimport SLACK, out_of_memory

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
    FLAGS = 4  # bytes of a row
    MANY = 4  # times as many columns as are read, and a few: the others take time to be handed over
    FEW = 8
cdef dict OPERATORS = {"<": 0, "<=": 1, ">": 2, ">=": 3, "==": 4, "!=": 5}
cdef list NOTHING = []
cdef dict NONE = {}


cdef class Reading:
    """Rows that have been read, where they lie."""

    def __dealloc__(self):
        free(self.place)
        free(self.room)

    cdef int start(self, int64_t n, int numbers, int texts) except -1:
        """Room for n rows with some columns of narrow numbers, and codes of some of texts."""
        cdef int64_t bytes = n * (8 * numbers + 4 * texts + FLAGS) + SLACK
        if bytes > self.room_bytes:
            free(self.room)
            self.room_bytes = 0
            self.room = <char *>malloc(bytes)
            if self.room == NULL:
                out_of_memory(b"rows of a table", n)
            self.room_bytes = bytes
        self.n = n
        self.bad = self.usable = self.present = NULL
        self.wider = <int64_t *>self.room
        self.codes = <int32_t *>(self.room + n * 8 * numbers)
        self.late = <uint8_t *>(self.codes + n * texts)
        return 0

    cdef void give_back(self, int64_t kept) noexcept:
        """Let go of the rows, and of room unless it is small."""
        self.one = None
        self.varlen, self.held = NOTHING, NONE
        if self.room_bytes > kept:
            free(self.room)
            self.room = NULL
            self.room_bytes = 0


cdef class Reader:
    """Reads the rows of one stream.

    columns: (number, form, size, dtype) of time, operands, keys and wide columns; form: how it
    lies, a name of `FORMS`, size: bytes of a number, or how long vectors are; None: is computed
    n_varlen: of them, wide ones
    tests: (column, operator, constant); None: conditions are computed; owned: of them, those
    without which a row is none of its stream
    evaluate: is given rows with a time (None: all, or it is to find out), the table, the number of
    its first row, and the numbers of columns; gives rows with a time, usable and present ones
    (None: all), and the columns: arrays, (offsets, bytes) of texts, and wide ones for the kernels
    names: of all columns of a table, by number; table_type: of those that are in chunks
    """

    def __cinit__(self, columns, n_varlen, tests, owned, evaluate, names, table_type):
        cdef int k, n
        tested = [column for column, _, _ in tests or []]
        everything = [*columns, *tested]
        n = len(everything)
        self.n_varlen, self.n_tests, self.owned = n_varlen, len(tested), owned
        self.n_plain = len(columns) - self.n_varlen
        self.judges = tests is not None
        self.evaluate, self.table_type = evaluate, table_type
        self.wanted = <Wanted *>calloc(n + 1, sizeof(Wanted))
        self.narrow = <Wanted *>calloc(n + 1, sizeof(Wanted))
        self.tests = <Test *>calloc(self.n_tests + 1, sizeof(Test))
        if self.wanted == NULL or self.narrow == NULL or self.tests == NULL:
            out_of_memory(b"columns", n)
        numbers = list(dict.fromkeys(one[0] for one in everything if one is not None))
        self.numbers, self.names = numbers, [names[number] for number in numbers]
        self.to_compute = []
        for k, column in enumerate(everything):
            if column is None:
                self.wanted[k].form = self.narrow[k].form = COMPUTED
                self.to_compute.append(k)
                continue
            set_wanted(&self.wanted[k], column)
            self.narrow[k] = self.wanted[k]
            self.narrow[k].number = numbers.index(column[0])
            self.n_wider += INTEGERS <= self.wanted[k].form <= DECIMALS
        for k, (_, operator, constant) in enumerate(tests or []):
            self.tests[k].operator = OPERATORS[operator]
            self.tests[k].real = isinstance(constant, float)
            if self.tests[k].real:
                self.tests[k].floating = constant
            else:
                self.tests[k].whole = constant

    def __dealloc__(self):
        free(self.wanted)
        free(self.narrow)
        free(self.tests)

    def read(self, rows, int64_t first_row, bint named=False, bint lies=True):
        """Arrays of time, operands and keys, (offsets, bytes) of texts; wide columns; and masks,
        None if there is nothing to tell: rows without a time, usable ones, present ones.

        Arrays lie over the memory of the table where they can.  Wide columns are (offsets, values)
        as they lie, or as they were computed.  named: columns are found by their names; lies: and
        are of the types that they were told to have
        """
        cdef Reading seen = self.reading()
        cdef int64_t n = rows.num_rows
        cdef bint table = isinstance(rows, self.table_type)
        cdef list chosen = self.names if named else self.numbers
        cdef bint narrowed = named or rows.num_columns > MANY * len(self.names) + FEW
        cdef int k
        seen.start(n, self.n_wider, 0)
        seen.one = Borrowed.__new__(Borrowed)
        lies = lies and n > 0
        if lies and self.names:
            some = rows.select(chosen) if narrowed else rows
            seen.one.take(some, table)
            if seen.one.batch.length != n:  # it is in chunks
                try:
                    some, narrowed = rows.select(chosen).combine_chunks(), True
                    seen.one.take(some, table)
                    lies = seen.one.batch.length == n
                except (ValueError, NotImplementedError):
                    lies = False  # texts or lists are more than offsets can tell
        self.read_from(seen, rows, first_row, True, narrowed, lies)
        bad, usable, present = _mask(seen.bad, n), _mask(seen.usable, n), _mask(seen.present, n)
        if present is None and bad is not None:
            present = ~bad
        columns = [self._values(seen, k) for k in range(self.n_plain)]
        return columns, seen.varlen, bad, usable, present

    cdef object _values(self, Reading seen, int k):
        """A column that was read: an array, or offsets and bytes of texts."""
        cdef const Place *place = &seen.place[k]
        if k in seen.held:
            return seen.held[k]
        if not place.offset_bytes:
            return viewed(seen, place.at, seen.n, self.wanted[k].kind)
        if place.offset_bytes == 8:
            offsets = viewed(seen, place.at, seen.n + 1, cnp.NPY_INT64)
        else:
            offsets = viewed(seen, place.at, seen.n + 1, cnp.NPY_INT32).astype(np.int64)
        return offsets, viewed(seen, place.text, offsets[seen.n], cnp.NPY_UINT8)

    cdef Reading reading(self):
        """Room for rows to be read."""
        cdef Reading seen = Reading.__new__(Reading)
        seen.place = <Place *>calloc(self.n_plain + 1, sizeof(Place))
        if seen.place == NULL:
            out_of_memory(b"columns", self.n_plain)
        return seen

    cdef int read_from(
        self, Reading seen, rows, int64_t first_row, bint tracked, bint narrowed=False,
        bint lies=True,
    ) except -1:
        """Read the rows of ``seen``, which were begun; if they lie there, from its batch.

        tracked: also which rows are present; narrowed: the batch has the columns that are read, and
        no others
        """
        cdef const Wanted *wanted = self.narrow if narrowed else self.wanted
        cdef const Wanted *tested
        cdef list to_compute = self.to_compute
        cdef bint judged
        cdef int k
        seen.as_they_lie, seen.varlen, seen.held = True, NOTHING, NONE
        if not lies:
            to_compute = list(range(self.n_plain + self.n_varlen))
            seen.varlen = [None] * self.n_varlen
        else:
            for k in range(self.n_plain):
                if wanted[k].form != COMPUTED and not self._column(seen, k, &wanted[k]):
                    to_compute = [*to_compute, k]
            if self.n_varlen:
                seen.varlen = [self._wide(seen, &wanted[self.n_plain + k])
                               for k in range(self.n_varlen)]
        for k in range(self.n_varlen):
            if seen.varlen[k] is None:
                seen.as_they_lie = False
                if self.n_plain + k not in to_compute:
                    to_compute = [*to_compute, self.n_plain + k]
        tested = &wanted[self.n_plain + self.n_varlen]
        judged = lies and self.judges and not to_compute and self._test(seen, tested, tracked)
        if not judged:
            self._compute(seen, rows, first_row, to_compute, tracked)
        return 0

    cdef bint _column(self, Reading seen, int k, const Wanted *as_) except -1:
        """Whether numbers or texts are where they can be read; those without one are not usable."""
        cdef const ArrowArray *column = seen.one.batch.children[as_.number]
        cdef int64_t first = column.offset + seen.one.batch.offset
        cdef const char *values
        if as_.form == TEXTS:
            values = <const char *>column.buffers[1]
            if values == NULL:
                return False
            values += as_.size * first
            seen.place[k] = Place(values, <const uint8_t *>column.buffers[2], <int>as_.size)
        else:
            values = <const char *>_numbers(seen, as_)
            if values == NULL:
                return False
            seen.place[k] = Place(values, NULL, 0)
        if any_null(column, first, seen.n):
            leave_nulls(usable_of(seen), column, first, seen.n)
            if k == 0:
                _note_untimed(seen, seen.usable)
        if as_.kind == cnp.NPY_FLOAT64 and any_nan_double(<const double *>values, seen.n):
            leave_nan(usable_of(seen), <const double *>values, seen.n)
        return True

    cdef object _wide(self, Reading seen, const Wanted *as_):
        """(offsets, values) of sets or vectors; None: they have to be computed."""
        cdef const ArrowArray *column
        if as_.form == COMPUTED:
            return None
        column = seen.one.batch.children[as_.number]
        if as_.form == LISTS:
            return seen.one.lists(column, column.offset + seen.one.batch.offset, seen.n, as_)
        return seen.one.vectors(column, column.offset + seen.one.batch.offset, seen.n, as_)

    cdef bint _test(self, Reading seen, const Wanted *wanted, bint tracked) except -1:
        """Only rows that pass the tests are usable; False: they cannot be tested."""
        cdef const ArrowArray *column
        cdef const int64_t *values
        cdef int64_t first
        cdef int k
        for k in range(self.n_tests):
            values = _numbers(seen, &wanted[k])
            if values == NULL:
                return False
            column = seen.one.batch.children[wanted[k].number]
            first = column.offset + seen.one.batch.offset
            _apply(&self.tests[k], usable_of(seen), values, column, first, seen.n)
            if tracked and k < self.owned:
                _apply(&self.tests[k], present_of(seen), values, column, first, seen.n)
        return True

    cdef int _compute(
        self, Reading seen, rows, int64_t first_row, list wanted, bint tracked
    ) except -1:
        """Columns that are evaluated, and all conditions."""
        timed = None if seen.bad == NULL else ~_mask(seen.bad, seen.n)
        timed, usable, present, found = self.evaluate(timed, rows, first_row, wanted)
        if timed is not None and seen.bad == NULL:
            _leave(usable_of(seen), <const uint8_t *>cnp.PyArray_DATA(timed), seen.n)
            _note_untimed(seen, <const uint8_t *>cnp.PyArray_DATA(timed))
        if usable is not None:
            _leave(usable_of(seen), <const uint8_t *>cnp.PyArray_DATA(usable), seen.n)
        if present is not None and tracked:
            _leave(present_of(seen), <const uint8_t *>cnp.PyArray_DATA(present), seen.n)
        seen.held = dict(zip(wanted, found, strict=True))
        for k, values in seen.held.items():
            if k >= self.n_plain:
                seen.varlen[k - self.n_plain] = values
            elif type(values) is tuple:
                offsets, text = values
                seen.place[<int>k] = Place(
                    cnp.PyArray_DATA(offsets), <const uint8_t *>cnp.PyArray_DATA(text), 8
                )
            else:
                seen.place[<int>k] = Place(cnp.PyArray_DATA(values), NULL, 0)
        return 0


cdef object _mask(const uint8_t *flag, int64_t n):
    """Flags as an array; None: there are none."""
    return None if flag == NULL else copied(flag, n, cnp.NPY_BOOL)


cdef const int64_t *_numbers(Reading seen, const Wanted *as_) noexcept:
    """Values of 64 bits, nulls among them; NULL if there are none."""
    cdef const ArrowArray *column = seen.one.batch.children[as_.number]
    cdef int64_t first = column.offset + seen.one.batch.offset
    cdef const int64_t *data = <const int64_t *>column.buffers[1]
    if data == NULL or as_.form == AS_THEY_LIE:
        return data if data == NULL else data + first
    data = seen.wider
    widened_to(data, column.buffers[1], first, seen.n, as_)
    seen.wider += seen.n
    return data


cdef void _apply(
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


cdef uint8_t *usable_of(Reading seen) noexcept nogil:
    """Flags of usable rows; all are if there were none before."""
    if seen.usable == NULL:
        seen.usable = seen.late + seen.n
        memset(seen.usable, 1, seen.n)
    return seen.usable


cdef uint8_t *present_of(Reading seen) noexcept nogil:
    """Flags of rows that are rows of the stream, though they may match nothing: all with a time."""
    if seen.present == NULL:
        seen.present = seen.late + 3 * seen.n
        memset(seen.present, 1, seen.n)
        if seen.bad != NULL:
            _turned(seen.present, seen.bad, seen.n)
    return seen.present


cdef void _note_untimed(Reading seen, const uint8_t *timed) noexcept nogil:
    """Rows that are not ``timed`` have no time."""
    seen.bad = seen.late + 2 * seen.n
    _turned(seen.bad, timed, seen.n)


cdef void _turned(uint8_t *out, const uint8_t *flag, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        out[i] = not flag[i]


cdef void _leave(uint8_t *flag, const uint8_t *kept, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        flag[i] &= kept[i]
