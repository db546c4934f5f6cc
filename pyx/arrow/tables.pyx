"""Columns of a table as they lie in its memory, by Arrow's C stream interface.

Unchecked: enter through ``plain.py`` of the bindings, which knows what the columns are.
"""
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

cimport numpy as cnp

import numpy as np

from windjoin.pyx.base.index cimport out_of_memory


cdef extern from "arrow_c.h" nogil:
    int any_null(const ArrowArray *array, int64_t first, int64_t n)
    void leave_nulls(uint8_t *flag, const ArrowArray *array, int64_t first, int64_t n)
    void leave_nan(uint8_t *flag, const double *values, int64_t n)
    void widen(const void *values, int64_t first, int64_t n, int kind, int size, void *out)
    int SIGNED, UNSIGNED, REAL, DECIMAL
    int any_nan_double(const double *values, int64_t n)
    int any_nan_float(const float *values, int64_t n)

cnp.import_array()

cdef dict FORMS = {
    "as they lie": AS_THEY_LIE, "integers": INTEGERS, "naturals": NATURALS, "reals": REALS,
    "decimals": DECIMALS, "texts": TEXTS, "lists": LISTS, "vectors": VECTORS,
}
cdef int *KIND = [SIGNED, SIGNED, UNSIGNED, REAL, DECIMAL]


cdef int set_wanted(Wanted *wanted, column) except -1:
    """Write what ``column`` says: (number, form, size, dtype)."""
    number, form, size, dtype = column
    wanted[0] = Wanted(number, FORMS[form], size, dtype.num, dtype.itemsize)
    return 0


cdef void widened_to(
    const void *out, const void *values, int64_t first, int64_t n, const Wanted *as_
) noexcept nogil:
    """Numbers of any form as values of 64 bits."""
    widen(values, first, n, KIND[as_.form], <int>as_.size, <void *>out)


cdef ArrowArrayStream *stream_of(capsule) except NULL:
    """What ``__arrow_c_stream__`` gave; it lives as long as the capsule."""
    return <ArrowArrayStream *>PyCapsule_GetPointer(capsule, b"arrow_array_stream")


cdef class Borrowed:
    """A batch of another library, which lives as long as the arrays over it."""

    def __cinit__(self):
        memset(&self.batch, 0, sizeof(ArrowArray))

    def __dealloc__(self):
        if self.batch.release != NULL:
            self.batch.release(&self.batch)

    cdef bint next(self, ArrowArrayStream *stream) except -1:
        """Take the next batch of a stream in place of the last one; False: there is none."""
        if self.batch.release != NULL:
            self.batch.release(&self.batch)
        if stream.get_next(stream, &self.batch):
            said = stream.get_last_error(stream)
            raise ValueError("no reason given" if said == NULL else said.decode())
        return self.batch.release != NULL

    cdef int take(self, rows, bint table) except -1:
        """Take a batch, or the rows of a table before a column of it begins a new chunk.

        ``__arrow_c_stream__`` of a table looks up the device of every column first: ten times as
        long as all of this.
        """
        cdef ArrowArrayStream stream
        if not table:
            if self.batch.release != NULL:
                self.batch.release(&self.batch)
            rows._export_to_c(<size_t>&self.batch)
            return 0
        rows.to_reader()._export_to_c(<size_t>&stream)
        try:
            self.next(&stream)
        finally:
            stream.release(&stream)
        return 0

    cdef bint lies_here(self) noexcept:
        """Whether its columns lie in this processor's memory: others have no addresses."""
        cdef const ArrowArray *column
        cdef int64_t k
        for k in range(self.batch.n_children):
            column = self.batch.children[k]
            if column.n_buffers > 1 and column.buffers[1] == NULL:
                return False
        return True

    cdef object over(self, const void *data, int64_t first, int64_t n, int kind, int size):
        """Values [first, first + n) as an array that cannot be written."""
        cdef cnp.npy_intp length = n
        array = cnp.PyArray_SimpleNewFromData(1, &length, kind, <char *>data + first * size)
        cnp.PyArray_CLEARFLAGS(array, cnp.NPY_ARRAY_WRITEABLE)
        cnp.set_array_base(array, self)
        return array

    cdef object widened(
        self, const ArrowArray *values, int64_t first, int64_t n, const Wanted *as_
    ):
        """Numbers of any width as int64 or float64, nulls among them."""
        cdef cnp.npy_intp length = n
        if values.buffers[1] == NULL:
            return None
        if as_.form == AS_THEY_LIE:
            return self.over(values.buffers[1], first, n, as_.kind, as_.itemsize)
        array = cnp.PyArray_SimpleNew(1, &length, as_.kind)
        widen(
            values.buffers[1], first, n, KIND[as_.form], <int>as_.size, cnp.PyArray_DATA(array)
        )
        return array

    cdef object texts(self, const ArrowArray *column, int64_t first, int64_t n, const Wanted *as_):
        """(offsets as int64, all bytes that they may speak of)."""
        cdef const void *given = column.buffers[1]
        cdef int64_t size
        if given == NULL:
            return None
        if as_.size == 8:
            offsets = self.over(given, first, n + 1, cnp.NPY_INT64, 8)
            size = (<const int64_t *>given)[first + n]
        else:
            offsets = self.over(given, first, n + 1, cnp.NPY_INT32, 4).astype(np.int64)
            size = (<const int32_t *>given)[first + n]
        if size == 0:
            return offsets, np.zeros(0, np.uint8)
        return offsets, self.over(column.buffers[2], 0, size, cnp.NPY_UINT8, 1)

    cdef object numbers(
        self, const ArrowArray *values, int64_t first, int64_t n, const Wanted *as_
    ):
        """Numbers as they lie without a null and without NaN; None if there are any."""
        cdef const void *data = values.buffers[1]
        if data == NULL or any_null(values, first, n):
            return None
        if as_.kind == cnp.NPY_FLOAT64 and any_nan_double(<const double *>data + first, n):
            return None
        if as_.kind == cnp.NPY_FLOAT32 and any_nan_float(<const float *>data + first, n):
            return None
        return self.over(data, first, n, as_.kind, as_.itemsize)

    cdef object lists(self, const ArrowArray *column, int64_t first, int64_t n, const Wanted *as_):
        """(offsets, all values that they may speak of)."""
        cdef const ArrowArray *inner = column.children[0]
        if column.buffers[1] == NULL or any_null(column, first, n):
            return None
        values = self.numbers(inner, inner.offset, inner.length, as_)
        offsets = self.over(column.buffers[1], first, n + 1, cnp.NPY_INT32, 4)
        return None if values is None else (offsets, values)

    cdef object vectors(
        self, const ArrowArray *column, int64_t first, int64_t n, const Wanted *as_
    ):
        """(offsets, the values of these rows)."""
        cdef const ArrowArray *inner = column.children[0]
        if any_null(column, first, n):
            return None
        values = self.numbers(inner, inner.offset + first * as_.size, n * as_.size, as_)
        return None if values is None else (np.arange(0, n * as_.size + 1, as_.size), values)


cdef class Reader:
    """Reads some columns of tables of one schema, the first of them the times.

    columns: (number, form, size, dtype) of each; form: how it lies, a name of `FORMS`; size: bytes
    of a number, or how long vectors are
    """

    cdef Wanted *wanted
    cdef int n
    cdef list numbers

    def __cinit__(self, columns):
        cdef int k
        self.n = len(columns)
        self.wanted = <Wanted *>malloc(max(self.n, 1) * sizeof(Wanted))
        if self.wanted == NULL:
            out_of_memory(b"columns", self.n)
        self.numbers = [number for number, _, _, _ in columns]
        for k, column in enumerate(columns):
            set_wanted(&self.wanted[k], column)

    def __dealloc__(self):
        free(self.wanted)

    def read(self, table):
        """(arrays, mask of rows with a time, mask of usable rows), None for masks of all rows.

        Arrays lie over the memory of the table or batch where they can; of texts, lists and vectors
        they are (offsets, values).  None if several chunks, an empty table, or a null or NaN inside
        a list ask for a second look.
        """
        cdef int64_t rows = table.num_rows
        cdef Borrowed one = Borrowed()
        cdef list found = []
        cdef bint narrowed = table.num_columns > 4 * self.n + 8  # the others would take time
        cdef int k
        timed = usable = None
        capsule = (table.select(self.numbers) if narrowed else table).__arrow_c_stream__()
        if not one.next(stream_of(capsule)):
            return None
        if one.batch.length != rows or rows == 0:
            return None
        for k in range(self.n):
            column = self._column(one, k if narrowed else self.wanted[k].number, &self.wanted[k])
            if column is None:
                return None
            values, flags = column
            found.append(values)
            if flags is not None:
                timed = flags if k == 0 else timed
                usable = flags if usable is None else usable & flags
        return found, timed, usable

    cdef tuple _column(self, Borrowed one, int64_t number, const Wanted *wanted):
        """Values and, if not all rows are usable, the mask of those that are."""
        cdef const ArrowArray *column = one.batch.children[number]
        cdef int64_t first = column.offset + one.batch.offset, n = one.batch.length
        if wanted.form == LISTS:
            values = one.lists(column, first, n, wanted)
        elif wanted.form == VECTORS:
            values = one.vectors(column, first, n, wanted)
        elif wanted.form == TEXTS:
            values = one.texts(column, first, n, wanted)
        else:
            values = one.widened(column, first, n, wanted)
        return None if values is None else (values, _usable(values, column, first, n, wanted))


cdef object _usable(values, const ArrowArray *column, int64_t first, int64_t n, const Wanted *as_):
    """Mask of the rows that are not null, nor NaN; None if all are."""
    cdef bint nulls = any_null(column, first, n)
    cdef bint real = as_.kind == cnp.NPY_FLOAT64 and as_.form in (AS_THEY_LIE, REALS)
    cdef const double *data = <const double *>cnp.PyArray_DATA(values) if real else NULL
    cdef bint nan = real and any_nan_double(data, n)
    cdef uint8_t *flag
    if not nulls and not nan:
        return None
    flags = np.ones(n, np.bool_)
    flag = <uint8_t *>cnp.PyArray_DATA(flags)
    if nulls:
        leave_nulls(flag, column, first, n)
    if nan:
        leave_nan(flag, data, n)
    return flags
