"""Results as they are found: columns of row numbers that grow where they lie, never copied."""
from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

cimport numpy as cnp

import numpy as np

from windjoin.pyx.base.index cimport SLACK, out_of_memory


cdef extern from "pages.h" nogil:
    const size_t PIECE
    ctypedef struct Spare:
        pass
    int block_grow(OutputBlock *block, size_t bytes, Spare *spare)
    void block_trim(OutputBlock *block, size_t used, Spare *spare)
    void block_free(OutputBlock *block, Spare *spare)
    int block_append(OutputBlock *block, OutputBlock *part)
    size_t spare_release(Spare *spare)

cdef extern from "memory.h" nogil:
    int64_t *new_array(int64_t n)
    void give_back()
    void copy_bytes(void *to, const void *source, size_t bytes)


cnp.import_array()

cdef enum:
    FIRST_ROWS = 8192
    COPIED_ROWS = 4096  # a copy of so few rows is cheaper than an owner of their memory
    LEAST_CODES = 1 << 16  # of an array in memory used before
    POOLED_ROWS = 1 << 18  # and up to here, to memory used before, than new memory next time
cdef int64_t ROWS_OF_A_PIECE = PIECE // sizeof(int64_t)
cdef Spare spare  # of results that are gone; only with the GIL
memset(&spare, 0, sizeof(Spare))

cdef enum:
    MOST_KEPT = 8  # arrays that a table of this size was made of
    LEAST_KEPT = 1 << 12  # int64 of each
    GREATEST_KEPT = 1 << 22
cdef int64_t *kept[MOST_KEPT]  # only with the GIL
cdef int64_t kept_room[MOST_KEPT]
memset(kept, 0, sizeof(kept))
memset(kept_room, 0, sizeof(kept_room))


cdef GiveBack given_back[4]  # by those who keep memory, too
cdef int n_given_back = 0


cdef int at_release(GiveBack more) except -1:
    """Let somebody else give back what it keeps when `release` is called."""
    global n_given_back
    assert n_given_back < 4
    given_back[n_given_back] = more
    n_given_back += 1
    return 0


def release():
    """Give the memory that is kept for the next results, and all that was freed, back to the
    system; how many bytes were kept.
    """
    cdef int64_t bytes = spare_release(&spare)
    cdef int k
    for k in range(MOST_KEPT):
        bytes += 8 * kept_room[k]
        free(kept[k])
        kept[k] = NULL
        kept_room[k] = 0
    for k in range(n_given_back):
        given_back[k]()
    with nogil:
        give_back()
    return bytes


cdef int64_t *take_array(int64_t n, int64_t *room) except NULL:
    """Room for n int64, used before if there is any of about that size."""
    cdef int64_t *array
    cdef int k
    for k in range(MOST_KEPT):
        if kept[k] != NULL and n <= kept_room[k] <= 2 * n:
            array, room[0] = kept[k], kept_room[k]
            kept[k] = NULL
            kept_room[k] = 0
            return array
    array = new_array(n)
    if array == NULL:
        out_of_memory(b"rows of a table", n)
    room[0] = n
    return array


cdef void give_array(int64_t *array, int64_t room) noexcept:
    """The array is not needed any more."""
    cdef int k, least = 0
    if LEAST_KEPT <= room <= GREATEST_KEPT:
        for k in range(MOST_KEPT):
            if kept_room[k] < kept_room[least]:
                least = k
        array, kept[least] = kept[least], array
        kept_room[least] = room
    free(array)


cdef class _Kept:
    """Owns an array that will be used again."""

    cdef int64_t *array
    cdef int64_t room
    cdef Py_ssize_t length

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.array, self.length, 0, flags)

    def __dealloc__(self):
        if self.array != NULL:
            give_array(self.array, self.room)


def room_for_codes(int64_t n):
    """An int32 array of n codes, as it comes; in memory used before if there is any."""
    cdef _Kept owner = _Kept.__new__(_Kept)
    if n < LEAST_CODES:
        return np.empty(n, np.int32)
    owner.array = take_array((n + 1) // 2, &owner.room)
    owner.length = n * sizeof(int32_t)
    return np.frombuffer(owner, np.int32)


cdef object _array_of(owner, int64_t n, int64_t *memory):
    """An array over memory that ``owner`` holds."""
    cdef cnp.npy_intp length = n
    cdef object array = cnp.PyArray_SimpleNewFromData(1, &length, cnp.NPY_INT64, memory)
    cnp.set_array_base(array, owner)
    return array


cdef object nothing = np.empty(0, np.int64)  # of most pushes of single rows


cdef class _Owner:
    """Owns the memory of one column that has been handed out."""

    cdef OutputBlock block
    cdef Py_ssize_t length

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.block.data, self.length, 0, flags)

    def __dealloc__(self):
        block_free(&self.block, &spare)


cdef class Output:
    """Columns of row numbers."""

    def __cinit__(self, int n_columns):
        self.n_columns = n_columns
        memset(self.block, 0, sizeof(self.block))
        self.used = self.room = 0
        self.stays = False

    def __dealloc__(self):
        cdef int k
        for k in range(self.n_columns):
            block_free(&self.block[k], &spare)

    def __len__(self):
        return self.used

    cpdef list finish(self):
        """One array per column; of many rows, of the memory they lie in.  Nothing is left here."""
        cdef _Owner owner
        cdef int k
        cdef int64_t copied = POOLED_ROWS if self.stays else COPIED_ROWS
        arrays = []
        for k in range(self.n_columns):
            if self.used <= COPIED_ROWS:
                array = self._copied(k)
            elif self.used <= copied:
                array = self._pooled(k)
            else:
                block_trim(&self.block[k], self.used * sizeof(int64_t), &spare)
                owner = _Owner.__new__(_Owner)
                owner.block = self.block[k]
                owner.length = self.used * sizeof(int64_t)
                memset(&self.block[k], 0, sizeof(OutputBlock))
                array = _array_of(owner, self.used, <int64_t *>owner.block.data)
            arrays.append(array)
        if self.used > COPIED_ROWS:
            self._set_room()
        self.used = 0
        return arrays

    cdef list peek(self):
        """One array per column over the memory that it lies in now."""
        if self.used == 0:
            return [nothing] * self.n_columns
        return [_array_of(self, self.used, self.column[k]) for k in range(self.n_columns)]

    cdef dict finish_named(self, tuple names):
        """The same as a dictionary."""
        cdef dict found = {}
        cdef list arrays
        cdef int k
        if self.used == 0 or self.used > COPIED_ROWS:
            arrays = [nothing] * self.n_columns if self.used == 0 else self.finish()
            for k in range(self.n_columns):
                found[names[k]] = arrays[k]
            return found
        for k in range(self.n_columns):
            found[names[k]] = self._copied(k)
        self.used = 0
        return found

    cdef object _copied(self, int k):
        """An array of its own with the rows of one column."""
        cdef cnp.npy_intp length = self.used
        cdef object array = cnp.PyArray_SimpleNew(1, &length, cnp.NPY_INT64)
        copy_bytes(cnp.PyArray_DATA(array), self.column[k], self.used * sizeof(int64_t))
        return array

    cdef object _pooled(self, int k):
        """The same in memory that is used again: that of the column itself if it is filled well."""
        cdef _Kept owner = _Kept.__new__(_Kept)
        cdef OutputBlock *block = &self.block[k]
        cdef int64_t room
        cdef int64_t *other = take_array(self.used + self.used // 4 + SLACK, &room)
        if not block.space and 4 * self.used >= self.room:
            owner.array, owner.room = <int64_t *>block.data, block.bytes // sizeof(int64_t)
            block.data, block.bytes = <char *>other, room * sizeof(int64_t)
            self.column[k], self.room = other, min(self.room, room - SLACK)
        else:
            owner.array, owner.room = other, room
            copy_bytes(other, self.column[k], self.used * sizeof(int64_t))
        return _array_of(owner, self.used, owner.array)

    cdef int64_t held(self) noexcept:
        """Bytes allocated."""
        cdef int64_t total = 0
        cdef int k
        for k in range(self.n_columns):
            total += self.block[k].bytes
        return total

    def expect(self, int64_t rows):
        """Make room for about so many results, if they are many, in pages used before."""
        if 2 * rows > ROWS_OF_A_PIECE:
            self.reserve(ROWS_OF_A_PIECE - SLACK - self.used)

    def append(self, Output part):
        """Take over the results of another output; their order changes.

        Its last rows fill the last piece of memory here; then its pieces can follow as they are.
        """
        cdef int64_t missing = (-self.used) & (ROWS_OF_A_PIECE - 1)
        cdef int64_t moved = part.used - missing
        cdef int k
        if not self.block[0].space or moved < ROWS_OF_A_PIECE:
            self._copy(part, 0, part.used)
            return
        self._copy(part, moved, missing)
        for k in range(self.n_columns):
            block_trim(&self.block[k], self.used * sizeof(int64_t), &spare)
            block_trim(&part.block[k], moved * sizeof(int64_t), &spare)
            if block_append(&self.block[k], &part.block[k]) == 0:
                out_of_memory(b"results", moved)
        self.used += moved
        part.used = part.room = 0
        self._set_room()

    def extend(self, list columns):
        """Results from elsewhere: an int64 array for each column."""
        cdef int64_t n = cnp.PyArray_DIM(columns[0], 0)
        cdef int k
        self.reserve(n)
        for k in range(self.n_columns):
            copy_bytes(
                self.column[k] + self.used, cnp.PyArray_DATA(columns[k]), n * sizeof(int64_t)
            )
        self.used += n

    cdef int _copy(self, Output part, int64_t first, int64_t rows) except -1:
        cdef int k
        if rows == 0:
            return 0
        self.reserve(rows)
        for k in range(self.n_columns):
            memcpy(self.column[k] + self.used, part.column[k] + first, rows * sizeof(int64_t))
        self.used += rows
        return 0

    def discard(self):
        """Forget all results."""
        cdef int k
        for k in range(self.n_columns):
            block_free(&self.block[k], &spare)
        self.used = self.room = 0

    cdef int reserve(self, int64_t n) except -1 nogil:
        """Room for ``n`` rows more, and for a vector behind them."""
        if self.used + n > self.room:
            with gil:
                self._grow(self.used + n)
        return 0

    cdef int _grow(self, int64_t rows) except -1:
        """A small block doubles, a large one takes as many pieces as it needs."""
        cdef int64_t most = max(2 * self.room, FIRST_ROWS)
        cdef int k
        rows = max(rows, min(most, self.room + ROWS_OF_A_PIECE // 2)) + SLACK
        cdef bint grown = True
        for k in range(self.n_columns):
            grown = grown and block_grow(&self.block[k], rows * sizeof(int64_t), &spare)
        self._set_room()  # columns that have grown lie elsewhere now
        if not grown:
            out_of_memory(b"results", rows)
        return 0

    cdef int _set_room(self) except -1:
        cdef int k
        self.room = self.block[0].bytes // sizeof(int64_t) - SLACK
        for k in range(self.n_columns):
            self.column[k] = <int64_t *>self.block[k].data
            self.room = min(self.room, <int64_t>(self.block[k].bytes // sizeof(int64_t)) - SLACK)
        self.room = max(self.room, 0)
        return 0


cdef class Runner:
    """Something that knows the results that rows of a stream complete."""

    cdef int run(self, int64_t first, int64_t last, Output out) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} does not run")

    cdef int run_some(self, int64_t n, const int64_t *row, Output out) except -1 nogil:
        """The same for any rows of the stream."""
        with gil:
            raise NotImplementedError(f"{type(self).__name__} does not run")

    cdef bint runs_in_blocks(self) noexcept nogil:
        """Whether it does not cost more to run for a few rows at a time."""
        return False

    cdef bint takes_codes(self) noexcept nogil:
        """Whether `run_codes` may be called: times and codes of one key say all about a row."""
        return False

    cdef int run_codes(
        self, int64_t n, const int64_t *row, const int64_t *time, const int32_t *code, Output out
    ) except -1 nogil:
        """The same for rows with their times and codes at hand."""
        return self.run_some(n, row, out)
