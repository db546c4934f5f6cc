"""Columns of a table as they lie in its memory, by Arrow's C stream interface.

Unchecked: enter through ``plain.py`` of the bindings, which knows what the columns are.
"""
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

cimport numpy as cnp

import numpy as np

from windjoin.pyx.index cimport out_of_memory


cdef extern from "tables.h" nogil:
    ctypedef struct ArrowArray:
        int64_t length
        int64_t offset
        int64_t n_children
        const void **buffers
        ArrowArray **children
        void (*release)(ArrowArray *)
    ctypedef struct ArrowArrayStream:
        int (*get_next)(ArrowArrayStream *, ArrowArray *)
    int any_null(const ArrowArray *array, int64_t first, int64_t n)
    int any_nan_double(const double *values, int64_t n)
    int any_nan_float(const float *values, int64_t n)

cnp.import_array()

cdef enum:
    NUMBERS = 0  # widths of columns that have none; vectors have one
    LISTS = -1


cdef struct Wanted:
    int64_t number
    int64_t width
    int kind
    int size


cdef class Borrowed:
    """A batch of another library, which lives as long as the arrays over it."""

    cdef ArrowArray batch

    def __cinit__(self):
        memset(&self.batch, 0, sizeof(ArrowArray))

    def __dealloc__(self):
        if self.batch.release != NULL:
            self.batch.release(&self.batch)

    cdef object over(self, const void *data, int64_t first, cnp.npy_intp n, int kind, int size):
        """Values [first, first + n) as an array that cannot be written."""
        array = cnp.PyArray_SimpleNewFromData(1, &n, kind, <char *>data + first * size)
        cnp.PyArray_CLEARFLAGS(array, cnp.NPY_ARRAY_WRITEABLE)
        cnp.set_array_base(array, self)
        return array

    cdef object numbers(
        self, const ArrowArray *values, int64_t first, int64_t n, const Wanted *as_
    ):
        """The same without a null and without NaN; None if there are any."""
        cdef const void *data = values.buffers[1]
        if data == NULL or any_null(values, first, n):
            return None
        if as_.kind == cnp.NPY_FLOAT64 and any_nan_double(<const double *>data + first, n):
            return None
        if as_.kind == cnp.NPY_FLOAT32 and any_nan_float(<const float *>data + first, n):
            return None
        return self.over(data, first, n, as_.kind, as_.size)

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
        values = self.numbers(inner, inner.offset + first * as_.width, n * as_.width, as_)
        return None if values is None else (np.arange(0, n * as_.width + 1, as_.width), values)


cdef class Reader:
    """Reads some columns of tables of one schema.

    columns: (number, dtype, width) of each; width: 0 numbers, -1 lists of them, else vectors
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
        self.numbers = [number for number, _, _ in columns]
        for k, (number, dtype, width) in enumerate(columns):
            self.wanted[k] = Wanted(number, width, dtype.num, dtype.itemsize)

    def __dealloc__(self):
        free(self.wanted)

    def read(self, table):
        """Arrays over the memory of a table or batch, of lists and vectors (offsets, values).

        None if chunks, a null, NaN or no row at all ask for a second look.
        """
        cdef int64_t rows = table.num_rows
        cdef Borrowed one = Borrowed()
        cdef list found = []
        cdef bint narrowed = table.num_columns > 4 * self.n + 8  # the others would take time
        cdef int k
        capsule = (table.select(self.numbers) if narrowed else table).__arrow_c_stream__()
        cdef ArrowArrayStream *stream = <ArrowArrayStream *>PyCapsule_GetPointer(
            capsule, b"arrow_array_stream"
        )
        if stream.get_next(stream, &one.batch) or one.batch.release == NULL:
            return None
        if one.batch.length != rows or rows == 0:
            return None
        for k in range(self.n):
            column = self._column(one, k if narrowed else self.wanted[k].number, &self.wanted[k])
            if column is None:
                return None
            found.append(column)
        return found

    cdef object _column(self, Borrowed one, int64_t number, const Wanted *wanted):
        cdef const ArrowArray *column = one.batch.children[number]
        cdef int64_t first = column.offset + one.batch.offset, n = one.batch.length
        if wanted.width == NUMBERS:
            return one.numbers(column, first, n, wanted)
        if wanted.width == LISTS:
            return one.lists(column, first, n, wanted)
        return one.vectors(column, first, n, wanted)
