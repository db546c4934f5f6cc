"""How plain rows of one stream come into its store: with codes of their keys, numbers and times.

Rows come where they lie.  What is joined of them, and when, is for a subclass: at once
(`StreamJoiner`), or later (`StreamStorer`).
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

cimport numpy as cnp

from windjoin.pyx.base.column import time_order

from windjoin.pyx.base.index cimport RELEASE_ABOVE, SLACK, out_of_memory
from windjoin.pyx.encoding.keys cimport KeySpace
from windjoin.pyx.encoding.varlen import array_rows, set_rows, vector_rows

cdef extern from "sort.h" nogil:
    void sort_pairs(int64_t *key, int64_t *order, int64_t n, int64_t *spare)

cnp.import_array()

cdef enum:
    SORTED_AT_ONCE = 1 << 20  # rows; more are sorted so that interrupts are heard


cdef void _copy_picked(
    int64_t n, const int64_t *at, const int64_t *given, int64_t *out
) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        out[i] = given[at[i]]


cdef object rows_in_order(const Arrived *rows, const uint8_t *usable, bint ordered):
    """The usable rows (NULL: all are), in order of time if they are not ``ordered`` by it."""
    cdef cnp.npy_intp n = rows.n
    pick = cnp.PyArray_EMPTY(1, &n, cnp.NPY_INT64, 0)
    cdef int64_t *at = <int64_t *>cnp.PyArray_DATA(pick)
    cdef int64_t *time
    cdef int64_t i
    n = 0
    for i in range(rows.n):
        at[n] = i
        n += usable == NULL or usable[i] != 0
    pick = pick[:n]
    if ordered or n < 2:
        return pick
    if n > SORTED_AT_ONCE:
        times = cnp.PyArray_EMPTY(1, &n, cnp.NPY_INT64, 0)
        _copy_picked(n, at, rows.time, <int64_t *>cnp.PyArray_DATA(times))
        return pick[time_order(times)]
    room = PyBytes_FromStringAndSize(NULL, 3 * n * sizeof(int64_t))
    time = <int64_t *>PyBytes_AS_STRING(room)
    _copy_picked(n, at, rows.time, time)
    sort_pairs(time, at, n, time + n)
    return pick


cdef class StoreStep:
    """Stores the rows of one stream."""

    def __init__(self, int number, list stores not None, list clocks not None, Silence silence):
        cdef int pointers
        self.number, self.own = number, stores[number]
        self.clocks, self.silence = clocks, silence
        pointers = self.own.n_columns + 2 * self.own.n_keys
        self.places = <const void **>calloc(3 * pointers + 1, sizeof(void *))
        if self.places == NULL:
            out_of_memory(b"columns", pointers)

    def __dealloc__(self):
        free(self.places)
        free(self.code_room)
        free(self.row_room)

    # -- rows in -----------------------------------------------------------------------------------

    cdef void begin(self, Arrived *rows) noexcept nogil:
        """Give room for the pointers to columns and keys."""
        self._point(rows, 0)

    cdef void _point(self, Arrived *rows, int which) noexcept nogil:
        cdef const void **place = self.places
        place += which * (self.own.n_columns + 2 * self.own.n_keys)
        rows.column = <const int64_t **>place
        rows.key = <const int64_t **>(place + self.own.n_columns)
        rows.code = <const int32_t **>(place + self.own.n_columns + self.own.n_keys)
        rows.row = NULL
        rows.counted = NULL

    cdef bint take(self, Arrived *rows, list varlen) except -1:
        """Usable rows in order of time; False, and nothing done, if they are late or are not."""
        raise NotImplementedError

    cdef int take_some(
        self, Arrived *all, list varlen_rows, const uint8_t *usable, bint ordered, int64_t newest
    ) except -1:
        """Any rows where they lie, with codes or keys; ``usable``: those that can be part of a
        result, NULL: all.
        """
        raise NotImplementedError

    cdef list _found(self):
        """Rows of every stream in each result of the last push, or what was made of them."""
        if self.given is None:  # whatever `give` is now: looking after itself may change it
            return self.out.finish()
        found, self.given = self.given, None
        return found

    # -- codes and numbers -------------------------------------------------------------------------

    cdef int _need_room(self, int64_t n) except -1:
        cdef void *grown
        grown = realloc(self.code_room, (n + SLACK) * (self.own.n_keys + 1) * sizeof(int32_t))
        if grown == NULL:
            out_of_memory(b"key codes", n)
        self.code_room = <int32_t *>grown
        grown = realloc(self.row_room, (self.own.n_sorted + 1) * (n + SLACK) * sizeof(int64_t))
        if grown == NULL:
            out_of_memory(b"row numbers", n)
        self.row_room = <int64_t *>grown
        self.room = n
        return 0

    cdef int32_t *_codes(self, int64_t key) noexcept nogil:
        return self.code_room + key * (self.room + SLACK)

    cdef int _encode(self, Arrived *rows) except -1:
        cdef KeySpace space
        cdef int k
        for k in range(self.own.n_keys):
            space = <KeySpace>self.own.spaces[k]
            if rows.key[k] == NULL:
                continue
            rows.code[k] = self._codes(k)
            if rows.n <= RELEASE_ABOVE:
                space.add_integers(rows.n, rows.key[k], self._codes(k))
            else:
                with nogil:
                    space.add_integers(rows.n, rows.key[k], self._codes(k))
        return 0

    cdef list _keep(self, Arrived *rows, list varlen):
        """Store rows that follow the last, with codes and numbers; (starts, lengths) of their wide
        columns.
        """
        cdef int64_t first = self.own.extent.tail, i
        if rows.n > self.room:
            self._need_room(rows.n)
        self._encode(rows)
        for i in range(rows.n):
            self.row_room[i] = first + i
        rows.row = self.row_room
        self.own.write(rows)
        return self._store_varlen(first, varlen) if varlen else varlen

    cdef list _store_varlen(self, int64_t first, list varlen):
        """Starts and lengths of the rows of every wide column."""
        cdef list stored = []
        cdef int k
        for k in range(len(varlen)):
            space = (<tuple>self.own.varlen[k])[0]
            offsets, items = <tuple>varlen[k]
            if offsets is None:
                starts, lengths, content = vector_rows(items)
            elif space is None:
                starts, lengths, content = array_rows(offsets, items)
            else:
                starts, lengths, content = set_rows(space, offsets, items)
            self.own.write_varlen(k, first, starts, lengths, content)
            stored.append((starts, lengths))
        return stored

    cdef object _pick(self, Arrived *all, pick, const uint8_t *usable, Arrived *rows):
        """The rows that are joined, in order of time: those of ``pick`` (None: all of them).

        All rows get codes, numbers, and the times that rings keep.  What comes back owns what
        ``all`` and ``rows`` point to.
        """
        cdef int64_t n = all.n if pick is None else cnp.PyArray_DIM(pick, 0)
        cdef int64_t wide = 2 * all.n + (0 if pick is None else n * (2 + self.own.n_columns)) + n
        cdef int64_t narrow = self.own.n_keys * (all.n + n)
        memory = PyBytes_FromStringAndSize(NULL, 8 * (wide + SLACK) + 4 * (narrow + SLACK))
        cdef int64_t *room = <int64_t *>PyBytes_AS_STRING(memory)
        cdef int32_t *codes = <int32_t *>(room + wide + SLACK)
        cdef int64_t *numbers = room + all.n
        cdef const int64_t *at = NULL if pick is None else <const int64_t *>cnp.PyArray_DATA(pick)
        cdef int64_t i
        cdef int k
        for i in range(all.n):
            room[i] = all.time[i] if usable == NULL or usable[i] else INT64_MIN
            numbers[i] = self.own.extent.tail + i
        self._point(rows, 1)
        rows.n, rows.row, rows.time = n, numbers, all.time
        all.row = numbers
        room += 2 * all.n
        if pick is not None:
            rows.row, rows.time = room, room + n
            for i in range(n):
                room[i], room[n + i] = numbers[at[i]], all.time[at[i]]
            room += 2 * n
        for k in range(self.own.n_columns):
            rows.column[k] = all.column[k]
            if pick is not None:
                rows.column[k] = room
                _copy_picked(n, at, all.column[k], room)
                room += n
        for k in range(self.own.n_keys):
            rows.key[k], rows.code[k] = NULL, codes + all.n
            self._give_codes(all, k, n, at, room, codes)
            codes += all.n + n
        all.time = <const int64_t *>PyBytes_AS_STRING(memory)
        return memory

    cdef int _give_codes(
        self, Arrived *all, int k, int64_t n, const int64_t *at, int64_t *keys, int32_t *codes
    ) except -1:
        """Codes of the n rows ``at`` (NULL: all) behind those of all rows, -1 of the others."""
        cdef KeySpace space = <KeySpace>self.own.spaces[k]
        cdef int32_t *picked = codes + all.n
        cdef const int64_t *given = all.key[k]
        cdef int64_t i
        if given == NULL:
            for i in range(n):
                picked[i] = all.code[k][at[i] if at != NULL else i]
            return 0
        if at != NULL:
            _copy_picked(n, at, given, keys)
            given = keys
            memset(codes, 0xff, all.n * sizeof(int32_t))
        if n <= RELEASE_ABOVE:
            space.add_integers(n, given, picked)
        else:
            with nogil:
                space.add_integers(n, given, picked)
        for i in range(n):
            codes[at[i] if at != NULL else i] = picked[i]
        all.key[k], all.code[k] = NULL, codes
        return 0
