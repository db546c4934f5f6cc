"""Results as they are found: chunks of row numbers, recycled, copied once into exact arrays."""
from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

import numpy as np

from windjoin.pyx.index cimport SLACK, out_of_memory


cdef extern from "memory.h" nogil:
    int64_t *new_array(int64_t n)


cdef int64_t SMALL_CHUNK = 1 << 13
cdef int64_t LARGE_CHUNK = (1 << 18) - 16  # with slack just 2 MiB; only these are recycled
cdef int MOST_SPARE = 64
cdef int64_t *spare[64]
cdef int n_spare = 0


cdef int64_t *_take(int64_t rows) except NULL nogil:
    """A large block used before has its pages already: 10 times cheaper than a new one."""
    global n_spare
    cdef int64_t *block = NULL
    if rows == LARGE_CHUNK:
        with gil:
            if n_spare:
                n_spare -= 1
                block = spare[n_spare]
    if block == NULL:
        block = new_array(rows + SLACK)
    if block == NULL:
        out_of_memory(b"results", rows)
    return block


cdef void _give(int64_t *block, int64_t rows) noexcept:
    global n_spare
    if rows == LARGE_CHUNK and n_spare < MOST_SPARE:
        spare[n_spare] = block
        n_spare += 1
    else:
        free(block)


cdef class Output:
    """Columns of row numbers that grow in chunks."""

    def __cinit__(self, int n_columns):
        self.n_columns = n_columns
        self.chunks = NULL
        self.n_chunks = self.length = 0

    def __dealloc__(self):
        cdef int column
        for column in range(self.n_columns):
            self._drop(column)
        free(self.chunks)

    def __len__(self):
        return self.size()

    def finish(self):
        """One exact array per column; the chunks go back to where they came from."""
        cdef int64_t total = self.size(), chunk
        cdef int64_t[::1] out
        cdef int64_t at
        cdef int column
        arrays = []
        for column in range(self.n_columns):
            array = np.empty(total, np.int64)
            out = array
            at = 0
            with nogil:
                for chunk in range(self.n_chunks):
                    if self.chunks[chunk].used:
                        memcpy(
                            &out[at], self.chunks[chunk].column[column],
                            self.chunks[chunk].used * sizeof(int64_t),
                        )
                    at += self.chunks[chunk].used
            self._drop(column)
            arrays.append(array)
        self.n_chunks = 0
        self.length = 0
        return arrays

    cdef int64_t size(self) noexcept nogil:
        return self.length + (self.chunks[self.n_chunks - 1].used if self.n_chunks else 0)

    cdef Chunk *reserve(self, int64_t n) except NULL nogil:
        """A chunk with room for ``n`` more rows; ``n`` is at most SMALL_CHUNK."""
        cdef Chunk *last = self.chunks + self.n_chunks - 1
        cdef void *grown
        cdef int column
        if self.n_chunks and last.used + n <= last.room:
            return last
        grown = realloc(self.chunks, (self.n_chunks + 1) * sizeof(Chunk))
        if grown == NULL:
            out_of_memory(b"results", n)
        self.chunks = <Chunk *>grown
        if self.n_chunks:
            self.length += self.chunks[self.n_chunks - 1].used
        last = self.chunks + self.n_chunks
        memset(last, 0, sizeof(Chunk))
        last.room = SMALL_CHUNK if self.n_chunks < 4 else LARGE_CHUNK
        self.n_chunks += 1
        for column in range(self.n_columns):
            last.column[column] = _take(last.room)
        return last

    cdef void _drop(self, int column) noexcept:
        cdef int64_t chunk
        for chunk in range(self.n_chunks):
            if self.chunks[chunk].column[column] != NULL:
                _give(self.chunks[chunk].column[column], self.chunks[chunk].room)
                self.chunks[chunk].column[column] = NULL
