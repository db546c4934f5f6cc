"""Equality index of a whole table: time-ordered lists per key code.

Unchecked: enter through ``kernels.equality``.
"""
from libc.stdint cimport INT64_MIN, int32_t, int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memmove, memset

from windjoin.pyx.base.index cimport SLACK, Cursor, Index, Pairs, Probe, out_of_memory
from windjoin.pyx.base.output cimport give_array, take_array


cdef extern from "postings.h" nogil:
    int postings_serve(void *all, const Probe *probe, Cursor *cursor, Pairs *out)
    void postings_prefetch_tail(const Postings *all, const int32_t *code, int64_t i, int64_t n)
    int64_t postings_search(const int64_t *time, int64_t start, int64_t length, int64_t lo)
    void postings_load(
        Postings *all, int64_t n, const int32_t *code, const int64_t *time, int64_t first,
        int64_t *next,
    )

cdef extern from "memory.h" nogil:
    size_t array_bytes(int64_t n)
    void free_array(void *array)
    int64_t *new_array(int64_t n)
    int64_t *grown_array(int64_t *old, int64_t used, int64_t n)


cdef enum:
    SHORT = 1024  # rows of a list that are moved in no time


cdef inline int32_t capacity_of(int size_class) noexcept nogil:
    """Rows of a segment of that class: 4, 6, 8, 12, 16, 24 ..."""
    return <int32_t>((2 + (size_class & 1)) << (1 + (size_class >> 1)))


cdef class KeyPostings(Index):
    """Lists of (time, row) per key code: of whole tables, or grown by a ``CacheLineIndex``.

    valued: whether values are kept too, for who looks at ``state``; set before the first row comes
    """

    def __cinit__(self):
        memset(&self.all, 0, sizeof(Postings))
        self.serve = postings_serve
        self.fills_bound = True
        self.valued = False
        self.state = &self.all
        self.postings_room = self.arena_room = self.arena_used = 0
        self.horizon = INT64_MIN
        for k in range(64):
            self.vacant[k] = -1

    def __dealloc__(self):
        free(self.all.postings)
        if self.whole:
            give_array(self.all.time, self.time_room)
            give_array(self.all.row, self.row_room)
        else:
            free_array(self.all.time)
            free_array(self.all.row)
        free_array(self.all.value)

    @staticmethod
    def load(const int32_t[::1] codes, const int64_t[::1] times, int64_t n_codes, int64_t first=0):
        """Index of rows in time order: row first + i has code ``codes[i]``, or none if negative."""
        cdef KeyPostings self = KeyPostings()
        cdef int64_t n = codes.shape[0], room
        cdef int64_t *next
        self.whole = True
        self.all.time = take_array(n + SLACK, &self.time_room)
        self.all.row = take_array(n + SLACK, &self.row_room)
        self.arena_room = self.arena_used = n
        self._need_postings(n_codes)
        next = take_array(n_codes + 1, &room)
        with nogil:
            postings_load(
                &self.all, n, &codes[0] if n else NULL, &times[0] if n else NULL, first, next
            )
        give_array(next, room)
        return self

    @property
    def nbytes(self):
        arena = 0
        if self.all.time != NULL:
            arena = (2 + self.valued) * array_bytes(self.arena_room + SLACK)
        return self.postings_room * <int64_t>sizeof(PostingList) + arena

    cdef void expire(self, int64_t horizon) noexcept:
        self.horizon = max(self.horizon, horizon)

    cdef int insert(
        self, int64_t n, const int32_t *code, const int64_t *const *value, const int64_t *time,
        const int64_t *row,
    ) except -1 nogil:
        cdef int64_t i, at, t
        cdef PostingList *entry
        cdef int64_t *times
        cdef int64_t *rows
        cdef int32_t top = -1
        for i in range(n):
            top = max(top, code[i])
        self._need_postings(top + 1)
        for i in range(n):
            postings_prefetch_tail(&self.all, code, i, n)
            if code[i] < 0:
                continue
            entry = self.all.postings + code[i]
            if entry.length == entry.capacity:
                self._make_room(entry)
            times = self.all.time + entry.offset
            rows = self.all.row + entry.offset
            t = time[i]
            at = entry.length
            if at and times[at - 1] > t:  # out of order: keep the list sorted, ties by arrival
                at = postings_search(times, 0, at, t + 1)
                memmove(times + at + 1, times + at, (entry.length - at) * sizeof(int64_t))
                memmove(rows + at + 1, rows + at, (entry.length - at) * sizeof(int64_t))
            times[at] = t
            rows[at] = row[i]
            if self.valued:
                self._put_value(entry, at, value[0][i])
            entry.length += 1
        return 0

    cdef void _put_value(self, PostingList *entry, int64_t at, int64_t value) noexcept nogil:
        cdef int64_t *place = self.all.value + entry.offset + at
        if at < entry.length:
            memmove(place + 1, place, (entry.length - at) * sizeof(int64_t))
        place[0] = value

    cdef void empty(self, int64_t code) noexcept nogil:
        """Forget all rows of a key, and give back their room."""
        cdef PostingList *entry = self.all.postings + code
        if entry.capacity:
            self._vacate(entry)

    cdef int _make_room(self, PostingList *entry) except -1 nogil:
        """Drop expired rows; let the list be longer if that freed little of it.

        What little is: a list never shrinks, so one that has more rows once is longer for ever; but
        to drop rows moves all others, which takes time where they are many.
        """
        cdef int size_class = 0
        cdef int32_t little = entry.capacity >> (2 if entry.capacity > SHORT else 3)
        cdef int64_t offset
        cdef PostingList old
        self._drop_expired(entry)
        if entry.length + little < entry.capacity:
            return 0
        while capacity_of(size_class) <= entry.capacity:
            size_class += 1
        offset = self._segment(size_class)
        old = entry[0]
        memcpy(self.all.time + offset, self.all.time + old.offset, old.length * sizeof(int64_t))
        memcpy(self.all.row + offset, self.all.row + old.offset, old.length * sizeof(int64_t))
        if self.valued:
            memcpy(
                self.all.value + offset, self.all.value + old.offset, old.length * sizeof(int64_t)
            )
        if old.capacity:
            self._vacate(entry)
        entry.offset = offset
        entry.capacity = capacity_of(size_class)
        entry.length = old.length
        entry.hint = old.hint
        return 0

    cdef void _drop_expired(self, PostingList *entry) noexcept nogil:
        cdef int64_t *times = self.all.time + entry.offset
        cdef int64_t *rows = self.all.row + entry.offset
        cdef int64_t *values
        cdef int32_t gone
        if entry.length == 0 or times[0] >= self.horizon:
            return
        gone = <int32_t>postings_search(times, 0, entry.length, self.horizon)
        entry.length -= gone
        entry.hint = max(entry.hint - gone, 0)
        memmove(times, times + gone, entry.length * sizeof(int64_t))
        memmove(rows, rows + gone, entry.length * sizeof(int64_t))
        if self.valued:
            values = self.all.value + entry.offset
            memmove(values, values + gone, entry.length * sizeof(int64_t))

    cdef void _vacate(self, PostingList *entry) noexcept nogil:
        """Put the list's slots on the chain of vacant segments of their size."""
        cdef int size_class = 0
        while capacity_of(size_class) < entry.capacity:
            size_class += 1
        self.all.time[entry.offset] = self.vacant[size_class]
        self.vacant[size_class] = entry.offset
        entry.length = entry.capacity = entry.hint = 0
        entry.offset = 0

    cdef int64_t _segment(self, int size_class) except -1 nogil:
        """Offset of a segment of that class: a vacant one, or new."""
        cdef int64_t offset = self.vacant[size_class]
        if offset >= 0:
            self.vacant[size_class] = self.all.time[offset]
            return offset
        self._need_arena(capacity_of(size_class))
        offset = self.arena_used
        self.arena_used = offset + capacity_of(size_class)
        return offset

    cdef int _need_arena(self, int64_t more) except -1 nogil:
        """Room for so many slots more.

        Lists that grew leave segments that no other will want while all keys grow alike: if
        these are much of the arena, the others move together rather than it grows.
        """
        cdef int64_t code, live = 0, room
        if self.arena_used + more <= self.arena_room and self.all.time != NULL:
            return 0
        for code in range(self.all.n_postings):
            live += self.all.postings[code].capacity
        if 4 * live <= 3 * self.arena_used:
            return self._move_together(live + more + (live >> 2))
        room = self.arena_used + more
        if self.all.time != NULL:
            room = max(room, self.arena_room + (self.arena_room >> 2))
        self.all.time = self._grown(self.all.time, room)
        self.all.row = self._grown(self.all.row, room)
        if self.valued:
            self.all.value = self._grown(self.all.value, room)
        self.arena_room = room
        return 0

    cdef int _move_together(self, int64_t room) except -1 nogil:
        """All lists into an arena of so many slots, without what is vacant in the old one."""
        cdef int64_t *time = new_array(room + SLACK)
        cdef int64_t *row = new_array(room + SLACK)
        cdef int64_t *value = new_array(room + SLACK) if self.valued else NULL
        cdef int64_t code, used = 0
        cdef PostingList *one
        if time == NULL or row == NULL or (self.valued and value == NULL):
            free(time)
            free(row)
            free(value)
            out_of_memory(b"rows of an equality index", room)
        for code in range(self.all.n_postings):
            one = self.all.postings + code
            if not one.capacity:
                continue
            memcpy(time + used, self.all.time + one.offset, one.length * sizeof(int64_t))
            memcpy(row + used, self.all.row + one.offset, one.length * sizeof(int64_t))
            if self.valued:
                memcpy(value + used, self.all.value + one.offset, one.length * sizeof(int64_t))
            one.offset = used
            used += one.capacity
        free_array(self.all.time)
        free_array(self.all.row)
        free_array(self.all.value)
        self.all.time, self.all.row, self.all.value = time, row, value
        for code in range(64):
            self.vacant[code] = -1
        self.arena_room, self.arena_used = room, used
        return 0

    cdef int64_t *_grown(self, int64_t *old, int64_t room) except NULL nogil:
        cdef int64_t *grown = grown_array(old, self.arena_used, room + SLACK)
        if grown == NULL:
            out_of_memory(b"rows of an equality index", room)
        return grown

    cdef int _need_postings(self, int64_t n) except -1 nogil:
        cdef int64_t room
        cdef void *grown
        if n > self.postings_room:
            room = n if self.all.postings == NULL else max(n, 2 * self.postings_room)
            grown = realloc(self.all.postings, room * sizeof(PostingList))
            if grown == NULL:
                out_of_memory(b"keys of an equality index", room)
            self.all.postings = <PostingList *>grown
            memset(
                self.all.postings + self.postings_room, 0,
                (room - self.postings_room) * sizeof(PostingList),
            )
            self.postings_room = room
        self.all.n_postings = max(self.all.n_postings, n)
        return 0
