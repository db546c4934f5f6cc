"""Columns of a table as they lie in its memory, by Arrow's C stream interface.

Unchecked: `Reader` knows what the columns are.
"""
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

cimport numpy as cnp

import numpy as np


cdef extern from "arrow_c.h" nogil:
    int any_null(const ArrowArray *array, int64_t first, int64_t n)
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


cdef object viewed(owner, const void *values, int64_t n, int kind):
    """Values that ``owner`` keeps where they are, as an array that cannot be written."""
    cdef cnp.npy_intp length = n
    if values == NULL:  # of texts that are all empty
        return cnp.PyArray_ZEROS(1, &length, kind, 0)
    array = cnp.PyArray_SimpleNewFromData(1, &length, kind, <void *>values)
    cnp.PyArray_CLEARFLAGS(array, cnp.NPY_ARRAY_WRITEABLE)
    cnp.set_array_base(array, owner)
    return array


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
        return viewed(self, <const char *>data + first * as_.itemsize, n, as_.kind)

    cdef object lists(self, const ArrowArray *column, int64_t first, int64_t n, const Wanted *as_):
        """(offsets, all values that they may speak of)."""
        cdef const ArrowArray *inner = column.children[0]
        cdef const int32_t *offsets
        if column.buffers[1] == NULL or any_null(column, first, n):
            return None
        values = self.numbers(inner, inner.offset, inner.length, as_)
        if values is None:
            return None
        offsets = <const int32_t *>column.buffers[1] + first
        return viewed(self, offsets, n + 1, cnp.NPY_INT32), values

    cdef object vectors(
        self, const ArrowArray *column, int64_t first, int64_t n, const Wanted *as_
    ):
        """(offsets, the values of these rows)."""
        cdef const ArrowArray *inner = column.children[0]
        if any_null(column, first, n):
            return None
        values = self.numbers(inner, inner.offset + first * as_.size, n * as_.size, as_)
        return None if values is None else (np.arange(0, n * as_.size + 1, as_.size), values)
