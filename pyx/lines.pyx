"""Equality index of a live window: the newest rows of each key in one cache line.

Unchecked: enter through ``kernels.equality``.
"""
from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from windjoin.pyx.index cimport Cursor, Index, Pairs, Probe, out_of_memory
from windjoin.pyx.lists cimport KeyLists


cdef extern from "lines.h" nogil:
    const int LINE_ROWS
    const int MOST_LISTS
    int lines_serve(void *all, const Probe *probe, Cursor *cursor, Pairs *out)
    int lines_grow(Lines *all, int64_t n)
    int64_t lines_put_fast(
        Line *lines, int64_t i, int64_t n, const int32_t *code, const int64_t *time,
        const int64_t *row, int64_t horizon,
    )
    void line_put(Line *line, int64_t time, int64_t row)
    int64_t line_row(int64_t newest, uint32_t row)

cdef extern from "memory.h" nogil:
    size_t array_bytes(int64_t n)


cdef class KeyLines(Index):
    """A cache line of rows per key code, and lists for the keys that have more."""

    def __cinit__(self):
        memset(&self.all, 0, sizeof(Lines))
        self.older = KeyLists()
        self.all.older = &self.older.all
        self.serve = lines_serve
        self.binds = True
        self.puts = True
        self.state = &self.all
        self.room = 0
        self.horizon = INT64_MIN
        self.vacant = NULL
        self.n_vacant = self.n_lists = 0

    def __dealloc__(self):
        free(self.all.memory)
        free(self.vacant)

    @property
    def nbytes(self):
        lines = array_bytes(8 * (self.room + 2)) if self.all.memory != NULL else 0
        return <int64_t>lines + self.older.nbytes + 4 * self.n_lists

    def insert(self, const int32_t[::1] codes, const int64_t[::1] times, const int64_t[::1] rows):
        """Add rows; a negative code is left out."""
        if codes.shape[0]:
            with nogil:
                self.put(codes.shape[0], &codes[0], NULL, &times[0], &rows[0])

    def expire(self, int64_t horizon):
        self.forget(horizon)

    cdef void forget(self, int64_t horizon) noexcept:
        self.horizon = max(self.horizon, horizon)
        self.older.forget(self.horizon)

    def sweep(self):
        """Drop all expired rows.

        Returns one byte per code: whether any row is left.
        """
        cdef int64_t code
        cdef Line *line
        cdef object live = bytearray(self.all.n_lines)
        cdef uint8_t[::1] flags = live
        for code in range(self.all.n_lines):
            line = self.all.lines + code
            while line.used and line.time[LINE_ROWS - line.used] < self.horizon:
                line.used -= 1
            if line.used < LINE_ROWS:
                self._give_list(line)
            flags[code] = line.used > 0
        return live

    cdef int put(
        self, int64_t n, const int32_t *code, const int64_t *value, const int64_t *time,
        const int64_t *row,
    ) except -1 nogil:
        cdef int64_t i, newest = self.all.newest
        cdef int32_t top = -1
        cdef Line *lines
        for i in range(n):
            top = max(top, code[i])
            newest = max(newest, row[i])
        self.all.newest = newest
        if top >= self.all.n_lines:
            self._need_lines(top + 1)
        lines = self.all.lines
        i = 0
        while i < n:
            i = lines_put_fast(lines, i, n, code, time, row, self.horizon)
            if i < n and code[i] >= 0:
                self._put_one(lines + code[i], time[i], row[i])
            i += 1
        return 0

    cdef int _put_one(self, Line *line, int64_t time, int64_t row) except -1 nogil:
        if line.used == LINE_ROWS:
            if time < line.time[0]:
                return self._keep_older(line, time, row) if time >= self.horizon else 0
            if line.time[0] < self.horizon:
                self._give_list(line)
            else:
                self._keep_older(line, line.time[0], line_row(self.all.newest, line.row[0]))
        line_put(line, time, row)
        return 0

    cdef int _keep_older(self, Line *line, int64_t time, int64_t row) except -1 nogil:
        """Keep a row that still counts but has no place in its line."""
        cdef int32_t number
        if line.more == 0:
            if self.n_vacant == 0:
                self._new_list()
            self.n_vacant -= 1
            line.more = self.vacant[self.n_vacant] + 1
        number = line.more - 1
        return self.older.put(1, &number, NULL, &time, &row)

    cdef int _new_list(self) except -1 nogil:
        cdef void *grown = NULL
        if self.n_lists < MOST_LISTS:
            grown = realloc(self.vacant, (self.n_lists + 1) * sizeof(int32_t))
        if grown == NULL:
            out_of_memory(b"lists of an equality index", self.n_lists)
        self.vacant = <int32_t *>grown
        self.vacant[0] = self.n_lists
        self.n_lists += 1
        self.n_vacant = 1
        return 0

    cdef void _give_list(self, Line *line) noexcept nogil:
        """All that is older than the line has expired."""
        if line.more:
            self.older.empty(line.more - 1)
            self.vacant[self.n_vacant] = line.more - 1
            self.n_vacant += 1
            line.more = 0

    cdef int _need_lines(self, int64_t n) except -1 nogil:
        if n > self.room:
            n = max(n, 2 * self.room)
            if not lines_grow(&self.all, n):
                out_of_memory(b"keys of an equality index", n)
            self.room = n
        self.all.n_lines = max(self.all.n_lines, n)
        return 0
