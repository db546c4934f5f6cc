"""One column of a stream as the pipelines see it: an array, or a ring that row numbers wrap in."""
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy

cimport numpy as cnp

import numpy as np

from windjoin.pyx.base.index cimport Column, out_of_memory
from windjoin.pyx.base.pieces import sorting


cdef extern from "times.h" nogil:
    bint times_in_order(const int64_t *time, int64_t n)
    int64_t times_first_alive(const Column *time, int64_t head, int64_t tail, int64_t horizon)

cdef extern from "sort.h" nogil:
    void sort_pairs(int64_t *key, int64_t *order, int64_t n, int64_t *spare)

cdef extern from "memory.h" nogil:
    int64_t *new_array(int64_t n)
    void free_array(void *array)

cnp.import_array()

cdef enum:
    SEEN_AT_ONCE = 4096
    SORTED_AT_ONCE = 1 << 20


cdef object copied(const void *values, int64_t n, int kind):
    """Values as an array of their own."""
    cdef cnp.npy_intp length = n
    array = cnp.PyArray_SimpleNew(1, &length, kind)
    memcpy(cnp.PyArray_DATA(array), values, cnp.PyArray_NBYTES(array))
    return array


cdef class ColumnView:
    """Row r lies at slot ``r & mask``, or at ``r - first`` of a plain array."""

    def __init__(self, array=None, first=0):
        """Look at a contiguous int32, int64 or float64 array."""
        cdef const unsigned char[::1] data
        if array is not None:
            data = array.view("u1")
            self.array = array
            if data.shape[0]:
                self.column.data = &data[0] - <int64_t>(first * array.itemsize)
            self.column.mask = -1


cdef class Ring(ColumnView):
    """The column of a live window: rows [head, tail), the newest capacity at most."""

    def __init__(self, dtype, int64_t capacity):
        self.dtype = np.dtype(dtype)
        self.itemsize = self.dtype.itemsize
        self._allocate(capacity)

    def __dealloc__(self):
        free_array(self.slots)

    @property
    def nbytes(self):
        """Bytes allocated."""
        return self.capacity * self.itemsize

    def put(self, int64_t row, values):
        """Write values of rows from ``row`` on; the caller has made room."""
        cdef const unsigned char[::1] data = values.view("u1")
        if data.shape[0]:
            self.write(row, data.shape[0] // self.itemsize, <const char *>&data[0])

    def set(self, const int64_t[::1] rows, const int64_t[::1] values):
        """Write values of any rows that are there; of a ring of int64."""
        cdef int64_t i
        for i in range(rows.shape[0]):
            (<int64_t *>self.slots)[rows[i] & (self.capacity - 1)] = values[i]

    cdef void write(self, int64_t row, int64_t n, const char *data) noexcept nogil:
        cdef int64_t at = row & (self.capacity - 1)
        cdef int64_t first = min(n, self.capacity - at)
        memcpy(self.slots + at * self.itemsize, data, first * self.itemsize)
        if n > first:
            memcpy(self.slots, data + first * self.itemsize, (n - first) * self.itemsize)

    def get(self, int64_t row, int64_t n):
        """A copy of the values of rows [row, row + n)."""
        out = np.empty(n, self.dtype)
        cdef unsigned char[::1] data = out.view("u1")
        cdef int64_t at = row & (self.capacity - 1)
        cdef int64_t first = min(n, self.capacity - at)
        if n:
            memcpy(&data[0], self.slots + at * self.itemsize, first * self.itemsize)
        if n > first:
            memcpy(&data[first * self.itemsize], self.slots, (n - first) * self.itemsize)
        return out

    def take(self, const int64_t[::1] rows):
        """The values of any rows that are there."""
        out = np.empty(rows.shape[0], self.dtype)
        cdef unsigned char[::1] data = out.view("u1")
        cdef int64_t i, mask = self.capacity - 1
        if rows.shape[0] == 0:
            return out
        if self.itemsize == 8:
            for i in range(rows.shape[0]):
                (<int64_t *>&data[0])[i] = (<int64_t *>self.slots)[rows[i] & mask]
        else:
            for i in range(rows.shape[0]):
                (<int32_t *>&data[0])[i] = (<int32_t *>self.slots)[rows[i] & mask]
        return out

    def fill(self, const int64_t[::1] rows, int64_t value):
        """Write one value at any rows that are there; of a ring of int64 or int32."""
        cdef int64_t i, mask = self.capacity - 1
        if self.itemsize == 8:
            for i in range(rows.shape[0]):
                (<int64_t *>self.slots)[rows[i] & mask] = value
        else:
            for i in range(rows.shape[0]):
                (<int32_t *>self.slots)[rows[i] & mask] = <int32_t>value

    def renumber(self, int64_t head, int64_t tail, const int32_t[::1] codes):
        """Replace each code of rows [head, tail) by what ``codes`` has for it."""
        cdef int32_t *slots = <int32_t *>self.slots
        cdef int64_t row, mask = self.capacity - 1
        for row in range(head, tail):
            if slots[row & mask] >= 0:
                slots[row & mask] = codes[slots[row & mask]]

    def resize(self, int64_t capacity, int64_t head, int64_t tail):
        """Move rows [head, tail) to a ring of another size, a power of two."""
        cdef char *old = self.slots
        cdef int64_t mask = self.capacity - 1, row = head, n
        self._allocate(capacity)  # if there is no memory, all stays as it was
        while row < tail:  # as they lie one behind the other, up to the end of the old ring
            n = min(tail - row, mask + 1 - (row & mask))
            self.write(row, n, old + (row & mask) * self.itemsize)
            row += n
        free_array(old)

    cdef int _allocate(self, int64_t capacity) except -1:
        cdef char *slots = <char *>new_array((capacity * self.itemsize + 7) // 8)
        if slots == NULL:
            out_of_memory(b"rows of a window", capacity)
        self.slots = slots
        self.capacity = capacity
        self.column.data = slots
        self.column.mask = capacity - 1
        return 0

    def first_alive(self, int64_t head, int64_t tail, int64_t horizon):
        """First row of [head, tail) with time >= horizon; of a ring of times."""
        return times_first_alive(&self.column, head, tail, horizon)


def in_order(const int64_t[::1] times):
    """Whether times never decrease."""
    cdef int64_t at = 0, n = times.shape[0]
    cdef bint ordered = True
    with nogil:
        while at + 1 < n and ordered:
            ordered = times_in_order(&times[at], min(<int64_t>SEEN_AT_ONCE, n - at))
            at += SEEN_AT_ONCE - 1  # the last one again, beside its successor
    return ordered


def time_order(const int64_t[::1] times):
    """Which row comes first, second ... in time; equal times stay in order of arrival."""
    cdef int64_t n = times.shape[0]
    if n > SORTED_AT_ONCE:  # so that interrupts are heard
        return sorting(np.asarray(times))[0]
    order = np.arange(n)
    cdef int64_t[::1] out = order
    cdef int64_t[::1] key = np.array(times)
    cdef int64_t[::1] spare = np.empty(2 * n, np.int64)
    if n:
        with nogil:
            sort_pairs(&key[0], &out[0], n, &spare[0])
    return order
