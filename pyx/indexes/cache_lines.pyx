"""Equality index of a live window: the newest rows of each key in one cache line.

Unchecked: enter through ``kernels.equality``.
"""
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from windjoin.pyx.base.index cimport Cursor, Index, Pairs, Probe, out_of_memory
from windjoin.pyx.indexes.postings cimport KeyPostings


cdef extern from "cache_lines.h" nogil:
    const int CACHE_LINE_ROWS
    const int CACHE_LINE_SPAN_BITS
    const int32_t CACHE_LINE_VACANT
    ctypedef struct CacheLinesSpan:
        int32_t top
        int64_t newest
        int64_t least
        int64_t most
    CacheLinesSpan cache_lines_span(
        int64_t n, const int32_t *code, const int64_t *time, const int64_t *row, int64_t newest
    )
    int cache_lines_serve(void *all, const Probe *probe, Cursor *cursor, Pairs *out)
    int64_t cache_lines_words(int64_t n, int valued, int exact)
    int cache_lines_grow(CacheLines *all, int64_t n, int valued, int exact)
    bint cache_lines_reach(const CacheLines *all, int64_t time)
    int32_t cache_lines_least(const CacheLines *all, int64_t lo)
    void cache_lines_refit(CacheLines *all, int64_t least, int64_t most, int64_t horizon)
    int64_t cache_lines_insert_fast(
        const CacheLines *all, int64_t i, int64_t n, const int32_t *code, const int64_t *time,
        const int64_t *row, const int64_t *value, int64_t horizon,
    )
    void cache_line_insert(CacheLines *all, int64_t code, int64_t time, int64_t row, int64_t value)
    void cache_lines_fetch(const CacheLines *all, int64_t n, const int32_t *code)
    int64_t cache_line_row(int64_t newest, uint32_t row)
    int64_t cache_lines_time(const CacheLines *all, int64_t code, int k)

cdef extern from "memory.h" nogil:
    size_t array_bytes(int64_t n)
    void free_array(void *array)

cdef enum:
    MOST_LISTS = 0x7ffffffe
    FETCHED_TOGETHER = 64  # rows; their lines are asked for before the first is put


cdef class CacheLineIndex(Index):
    """A cache line of rows per key code, and lists for the keys that have more."""

    def __cinit__(self):
        memset(&self.all, 0, sizeof(CacheLines))
        self.older = KeyPostings()
        self.all.older = &self.older.all
        self.serve = cache_lines_serve
        self.fills_bound = True
        self.state = &self.all
        self.valued = False
        self.room = 0
        self.horizon = INT64_MIN
        self.begun = False
        self.oldest = INT64_MAX
        self.all.latest = INT64_MIN
        self.vacant = NULL
        self.n_vacant = self.n_lists = 0

    def __dealloc__(self):
        free_array(self.all.memory)
        free(self.vacant)

    cdef void keep_values(self) noexcept:
        """Before the first row comes: ``insert`` has values too, for who looks at ``state``."""
        self.valued = self.older.valued = True

    @property
    def nbytes(self):
        lines = 0
        if self.all.memory != NULL:
            lines = array_bytes(cache_lines_words(self.room, self.valued, self.all.exact != NULL))
        return <int64_t>lines + self.older.nbytes + 4 * self.n_lists

    cdef void expire(self, int64_t horizon) noexcept:
        self.horizon = max(self.horizon, horizon)
        self.older.expire(self.horizon)

    def compact(self):
        """Drop all expired rows.

        Returns one byte per code: whether any row is left.
        """
        cdef int64_t code
        cdef int32_t horizon = cache_lines_least(&self.all, self.horizon)
        cdef int k
        cdef CacheLine *line
        cdef object live = bytearray(self.all.n_lines)
        cdef uint8_t[::1] flags = live
        for code in range(self.all.n_lines):
            line = self.all.lines + code
            for k in range(CACHE_LINE_ROWS):
                if line.time[k] < horizon:
                    line.time[k] = CACHE_LINE_VACANT
            self._give_list_if_vacant(code)
            flags[code] = line.time[CACHE_LINE_ROWS - 1] != CACHE_LINE_VACANT
        return live

    @property
    def forgets(self):
        return True

    def forget(self, const uint8_t[::1] gone):
        cdef int64_t code
        cdef int k
        with nogil:
            for code in range(min(self.all.n_lines, gone.shape[0])):
                if gone[code]:
                    for k in range(CACHE_LINE_ROWS):
                        self.all.lines[code].time[k] = CACHE_LINE_VACANT
                    self._give_list(code)

    def clear(self):
        cdef int64_t code
        cdef int k
        with nogil:
            for code in range(self.all.n_lines):
                for k in range(CACHE_LINE_ROWS):
                    self.all.lines[code].time[k] = CACHE_LINE_VACANT
                self._give_list(code)
        self.all.n_lines = 0
        self.all.latest = INT64_MIN
        self.oldest = INT64_MAX
        self.begun = False

    cdef int insert(
        self, int64_t n, const int32_t *code, const int64_t *const *value, const int64_t *time,
        const int64_t *row,
    ) except -1 nogil:
        """Add rows by code; those with a negative one are left out."""
        cdef CacheLinesSpan span = cache_lines_span(n, code, time, row, self.all.newest)
        cdef const int64_t *own = value[0] if self.valued else NULL
        cdef int64_t i, stop = 0
        self.all.newest = span.newest
        if span.most < self.horizon:
            return 0
        if span.top >= self.all.n_lines:
            self._need_lines(span.top + 1)
        span.least = max(span.least, self.horizon)
        self.oldest = min(self.oldest, span.least)
        self.all.latest = max(self.all.latest, span.most)
        if not (
            self.begun
            and cache_lines_reach(&self.all, span.least) and cache_lines_reach(&self.all, span.most)
        ):
            self._refit()
        i = 0
        while i < n:
            if i >= stop:
                stop = min(i + FETCHED_TOGETHER, n)
                cache_lines_fetch(&self.all, stop - i, code + i)
            i = cache_lines_insert_fast(&self.all, i, stop, code, time, row, own, self.horizon)
            if i < stop:
                if code[i] >= 0:
                    self._put_one(code[i], time[i], row[i], own[i] if self.valued else 0)
                i += 1
        return 0

    cdef int _refit(self) except -1 nogil:
        """Let the lines reach all times that may be alive."""
        cdef int64_t code
        self.begun = True
        self.oldest = max(self.oldest, self.horizon)
        if (<uint64_t>self.all.latest - <uint64_t>self.oldest) >> CACHE_LINE_SPAN_BITS:
            self._set_room(max(self.room, 1), True)
        cache_lines_refit(&self.all, self.oldest, self.all.latest, self.horizon)
        for code in range(self.all.n_lines):
            self._give_list_if_vacant(code)
        return 0

    cdef int _put_one(
        self, int64_t code, int64_t time, int64_t row, int64_t value
    ) except -1 nogil:
        cdef CacheLine *line = self.all.lines + code
        cdef int64_t first
        if time < self.horizon:
            return 0
        if line.time[0] != CACHE_LINE_VACANT:
            first = cache_lines_time(&self.all, code, 0)
            if time < first:
                return self._keep_older(code, time, row, value)
            if first < self.horizon:
                self._give_list(code)
            else:
                self._keep_older(
                    code, first, cache_line_row(self.all.newest, line.row[0]),
                    self.all.value[code][0] if self.valued else 0,
                )
        cache_line_insert(&self.all, code, time, row, value)
        return 0

    cdef int _keep_older(
        self, int64_t code, int64_t time, int64_t row, int64_t value
    ) except -1 nogil:
        """Keep a row that still counts but has no place in its line."""
        cdef const int64_t *values = &value
        cdef int32_t number
        if self.all.more[code] == 0:
            if self.n_vacant == 0:
                self._new_list()
            self.n_vacant -= 1
            self.all.more[code] = self.vacant[self.n_vacant] + 1
        number = <int32_t>(self.all.more[code] - 1)
        return self.older.insert(1, &number, &values, &time, &row)

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

    cdef void _give_list(self, int64_t code) noexcept nogil:
        """All that is older than the line has expired."""
        if self.all.more[code]:
            self.older.empty(self.all.more[code] - 1)
            self.vacant[self.n_vacant] = <int32_t>(self.all.more[code] - 1)
            self.n_vacant += 1
            self.all.more[code] = 0

    cdef void _give_list_if_vacant(self, int64_t code) noexcept nogil:
        """Rows leave a full line for two reasons: both say that all that is older has expired."""
        if self.all.lines[code].time[0] == CACHE_LINE_VACANT:
            self._give_list(code)

    cdef int _need_lines(self, int64_t n) except -1 nogil:
        if n > self.room:
            # a line is all that a key takes, so twice the room would be most of what is held
            self._set_room(max(n, self.room + (self.room >> 1)), self.all.exact != NULL)
        self.all.n_lines = max(self.all.n_lines, n)
        return 0

    cdef int _set_room(self, int64_t n, bint exact) except -1 nogil:
        if not cache_lines_grow(&self.all, n, self.valued, exact):
            out_of_memory(b"keys of an equality index", n)
        self.room = n
        return 0
