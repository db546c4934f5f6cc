"""Results as they are found: columns of row numbers that grow where they lie, never copied."""
from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

cimport numpy as cnp

import numpy as np

from windjoin.pyx.index cimport SLACK, out_of_memory


cdef extern from "memory.h" nogil:
    int block_grow(Block *block, size_t bytes)
    void block_trim(Block *block, size_t used)
    void block_free(Block *block)
    int block_is_mapped(const Block *block)
    const size_t MAPPED_FROM


cnp.import_array()

cdef enum:
    FIRST_ROWS = 8192
    COPIED_ROWS = 4096  # a copy of so few rows is cheaper than an owner of their memory
    MOST_SPARE = 32
cdef size_t MOST_SPARE_BYTES = 256 << 20
cdef Block spare[MOST_SPARE]  # mappings of results that are gone: their pages are there already
cdef int n_spare = 0
cdef size_t spare_bytes = 0


cdef void _take_spare(Block *block) noexcept:
    """The largest of the spare mappings, if there is one."""
    global n_spare, spare_bytes
    cdef int k, largest = 0
    if n_spare == 0:
        return
    for k in range(n_spare):
        if spare[k].bytes > spare[largest].bytes:
            largest = k
    block[0] = spare[largest]
    spare_bytes -= block.bytes
    n_spare -= 1
    spare[largest] = spare[n_spare]


cdef void _give(Block *block) noexcept:
    global n_spare, spare_bytes
    if (
        block_is_mapped(block)
        and n_spare < MOST_SPARE
        and spare_bytes + block.bytes <= MOST_SPARE_BYTES
    ):
        spare[n_spare] = block[0]
        spare_bytes += block.bytes
        n_spare += 1
        memset(block, 0, sizeof(Block))
    else:
        block_free(block)


def release():
    """Give the memory that is kept for the next results back to the system; how many bytes."""
    global n_spare, spare_bytes
    given = spare_bytes
    while n_spare:
        n_spare -= 1
        block_free(&spare[n_spare])
    spare_bytes = 0
    return given


cdef class _Owner:
    """Owns the memory of one column that has been handed out."""

    cdef Block block
    cdef Py_ssize_t length

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.block.data, self.length, 0, flags)

    def __dealloc__(self):
        _give(&self.block)


cdef class Output:
    """Columns of row numbers."""

    def __cinit__(self, int n_columns):
        self.n_columns = n_columns
        memset(self.block, 0, sizeof(self.block))
        self.used = self.room = 0

    def __dealloc__(self):
        cdef int k
        for k in range(self.n_columns):
            _give(&self.block[k])

    def __len__(self):
        return self.used

    def finish(self):
        """One array per column, of the memory they lie in; nothing is left here."""
        cdef _Owner owner
        cdef cnp.npy_intp length = self.used
        cdef int k
        arrays = []
        for k in range(self.n_columns):
            if self.used <= COPIED_ROWS:
                array = cnp.PyArray_SimpleNew(1, &length, cnp.NPY_INT64)
                if self.used:
                    memcpy(cnp.PyArray_DATA(array), self.column[k], self.used * sizeof(int64_t))
            else:
                block_trim(&self.block[k], self.used * sizeof(int64_t))
                owner = _Owner.__new__(_Owner)
                owner.block = self.block[k]
                owner.length = self.used * sizeof(int64_t)
                memset(&self.block[k], 0, sizeof(Block))
                array = np.frombuffer(owner, np.int64)
            arrays.append(array)
        self.used = 0
        if arrays and len(arrays[0]) > COPIED_ROWS:
            self.room = 0
        return arrays

    cdef int64_t held(self) noexcept:
        """Bytes allocated."""
        cdef int64_t total = 0
        cdef int k
        for k in range(self.n_columns):
            total += self.block[k].bytes
        return total

    def widen(self, int64_t rows):
        """Make place for ``rows`` more that `put` will bring."""
        cdef int64_t first = self.used
        with nogil:
            self.reserve(rows)
        self.used += rows
        return first

    def put(self, int column, int64_t at, Output part):
        """Copy one column of another output to place ``at``; in any thread."""
        if part.used:
            with nogil:
                memcpy(self.column[column] + at, part.column[column], part.used * sizeof(int64_t))

    def discard(self):
        """Give the memory back to the system at once: nobody will ask for these results."""
        cdef int k
        for k in range(self.n_columns):
            block_free(&self.block[k])
            memset(&self.block[k], 0, sizeof(Block))
        self.used = self.room = 0

    cdef int reserve(self, int64_t n) except -1 nogil:
        """Room for ``n`` rows more, and for a vector behind them."""
        cdef int64_t room = max(self.used + n, 2 * self.room, FIRST_ROWS)
        cdef int k
        if self.used + n <= self.room:
            return 0
        for k in range(self.n_columns):
            if block_grow_from_spare(&self.block[k], (room + SLACK) * sizeof(int64_t)) == 0:
                out_of_memory(b"results", room)
            self.column[k] = <int64_t *>self.block[k].data
        self.room = room
        for k in range(self.n_columns):
            self.room = min(self.room, <int64_t>(self.block[k].bytes // sizeof(int64_t)) - SLACK)
        return 0


cdef int block_grow_from_spare(Block *block, size_t bytes) noexcept nogil:
    """Grow a block; one that becomes a mapping takes a spare one if there is any."""
    cdef Block taken
    memset(&taken, 0, sizeof(Block))
    if bytes >= MAPPED_FROM and not block_is_mapped(block) and n_spare:
        with gil:
            _take_spare(&taken)
        if taken.data != NULL:
            if block.data != NULL:
                memcpy(taken.data, block.data, block.bytes)
                block_free(block)
            block[0] = taken
    return block_grow(block, bytes)
