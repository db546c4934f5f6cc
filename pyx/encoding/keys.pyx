"""Key spaces: values to dense codes that are reused once nothing alive has them.

Unchecked: enter through ``kernels.keys``.
"""
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

import numpy as np

from windjoin.pyx.base.index cimport out_of_memory

from windjoin.pyx.base.output import room_for_codes

from windjoin.pyx.base.cancellation cimport look_up


cdef extern from "memory.h" nogil:
    int64_t *new_array(int64_t n)
    void free_array(void *array)


cdef enum:
    LEAST_NEAR = 64  # keys; fewer are found fast anyway
    PER_LOOK = 1 << 16  # keys, a power of two; then Ctrl-C is heard


cdef Entry *_new_table(int64_t slots) noexcept nogil:
    cdef Entry *table = <Entry *>new_array(2 * slots)
    cdef int64_t i
    if table != NULL:
        for i in range(slots):
            table[i].code = -1
    return table


cdef class KeySpace:
    """Codes of int64 keys."""

    def __cinit__(self):
        self.table = _new_table(16)
        self.wrap = 15
        self.vacant = self.near = NULL
        self.low = self.span = 0
        self.n_vacant = self.n_codes = self.codes_room = self.used = 0
        if self.table == NULL:
            out_of_memory(b"keys", 16)

    def __dealloc__(self):
        free_array(self.table)
        free(self.vacant)
        free_array(self.near)

    @property
    def close_together(self):
        """Whether codes are found in an array, as the keys lie close together."""
        return self.near != NULL

    @property
    def forgets(self):
        """Whether it has `forget` and `clear`: a space that keeps bytes of its keys has not."""
        return True

    @property
    def nbytes(self):
        return (self.wrap + 1) * <int64_t>sizeof(Entry) + 4 * (self.codes_room + self.span)

    def encode(self, const int64_t[::1] keys, usable=None):
        """int32 code of every key, new ones included; -1 where not usable."""
        cdef int64_t i, some, at = 0, n = keys.shape[0]
        codes = np.empty(n, np.int32)
        cdef int32_t[::1] out = codes
        cdef const uint8_t[::1] flags = None if usable is None else usable.view(np.uint8)
        if usable is None:
            with nogil:
                while at < n:
                    some = min(<int64_t>PER_LOOK, n - at)
                    self._add_many(some, &keys[at], &out[at])
                    at += some
                    if some == PER_LOOK:
                        look_up()
        elif n:
            with nogil:
                for i in range(n):
                    out[i] = self.add_integer(keys[i]) if flags[i] else -1
                    if (i + 1) % PER_LOOK == 0:
                        look_up()
        return codes

    @property
    def close_from(self):
        """Where the array begins that keys which lie close together are found in; or None."""
        return None if self.near == NULL else self.low

    def reserve(self, int64_t keys, close_from=None):
        """Room for so many keys before the first of them comes.

        close_from: what `close_from` was when they were as many elsewhere
        """
        cdef int64_t slots
        assert self.used == 0, "keys would lie elsewhere"
        self._grow_codes(max(keys, 16))
        self._grow_table(2 * keys + 2)
        slots = self.wrap + 1
        if close_from is None or keys < LEAST_NEAR:
            return
        self.near = <int32_t *>new_array(slots // 2)
        if self.near != NULL:
            memset(self.near, 0xff, slots * sizeof(int32_t))
            self.low, self.span = close_from, slots

    def keys(self):
        """The key of every code; anything where no key has it."""
        out = np.zeros(self.n_codes, np.int64)
        cdef int64_t[::1] key = out
        cdef int64_t i
        for i in range(<int64_t>self.wrap + 1):
            if self.table[i].code >= 0:
                key[self.table[i].code] = self.table[i].key
        return out

    def compact(self, const uint8_t[::1] live):
        """Forget every key whose code is not ``live``; its code will be given out again."""
        cdef Entry *old = self.table
        cdef int64_t i, slots = self.wrap + 1
        cdef Entry *compacted
        with nogil:
            compacted = _new_table(slots)
            if compacted == NULL:
                out_of_memory(b"keys", slots)
            self.table = compacted
            self.used = 0
            self.n_vacant = 0
            for i in range(self.n_codes):
                if i >= live.shape[0] or not live[i]:
                    self.vacant[self.n_vacant] = <int32_t>i
                    self.n_vacant += 1
            for i in range(slots):
                if old[i].code >= 0 and old[i].code < live.shape[0] and live[old[i].code]:
                    self._reinsert(old[i])
            free_array(old)
            self._find_dense()

    def renumber(self, const uint8_t[::1] live, int64_t classes=1):
        """Forget every key whose code is not ``live``; the others get the least codes there are
        that have the same remainder by ``classes``: if that is 1, they stay in order.

        Returns the new code of each, -1 of those that are gone.  What was for more keys goes.
        """
        cdef Entry *old = self.table
        cdef int64_t i, slots = self.wrap + 1, wanted = 16, n = 0, kept = 0
        codes = np.full(self.n_codes, -1, np.int32)
        cdef int32_t[::1] code = codes
        cdef int64_t[::1] given = np.arange(classes)  # next of each remainder
        for i in range(min(self.n_codes, live.shape[0])):
            if live[i]:
                code[i] = <int32_t>given[i % classes]
                given[i % classes] += classes
                n = max(n, code[i] + 1)
                kept += 1
        while wanted < 4 * (kept + 1):
            wanted *= 2
        self._move(codes)
        self._grow_codes(max(16, n))
        self.table = _new_table(wanted)
        if self.table == NULL:
            self.table = old
            out_of_memory(b"keys", wanted)
        self.wrap = wanted - 1
        self.used = self.n_vacant = 0
        self.n_codes = n
        for i in range(slots):
            if old[i].code >= 0 and code[old[i].code] >= 0:
                old[i].code = code[old[i].code]
                self._reinsert(old[i])
        free_array(old)
        for i in range(n):
            if i >= given[i % classes]:
                self.vacant[self.n_vacant] = <int32_t>i
                self.n_vacant += 1
        self._find_dense()
        return codes

    def clear(self):
        """Forget all keys; there is room for as many again."""
        cdef int64_t i
        with nogil:
            for i in range(<int64_t>self.wrap + 1):
                self.table[i].code = -1
            if self.near != NULL:
                memset(self.near, 0xff, self.span * sizeof(int32_t))
            self.used = self.n_codes = self.n_vacant = 0

    def forget(self, const uint8_t[::1] live):
        """The same as `compact` where few keys go: the others stay where they are.

        Returns one byte per code: whether its key went.
        """
        cdef object flags = bytearray(self.n_codes)
        cdef uint8_t[::1] gone = flags
        cdef int64_t at = 0, slots = self.wrap + 1
        cdef int32_t code
        with nogil:
            while at < slots:
                code = self.table[at].code
                if code < 0 or (code < live.shape[0] and live[code]):
                    at += 1
                    continue
                if <uint64_t>self.table[at].key - self.low < self.span:
                    self.near[<uint64_t>self.table[at].key - self.low] = -1
                self.vacant[self.n_vacant] = code
                self.n_vacant += 1
                self.used -= 1
                gone[code] = True
                self._close_gap(at)  # with one of the next, which is looked at then
        return flags

    cdef void _close_gap(self, uint64_t gap) noexcept nogil:
        """An entry goes: those behind it that do not begin behind it move up."""
        cdef uint64_t at = gap, home
        while True:
            at = (at + 1) & self.wrap
            if self.table[at].code < 0:
                break
            home = mix64(<uint64_t>self.table[at].key) & self.wrap
            if ((at - home) & self.wrap) >= ((at - gap) & self.wrap):
                self.table[gap] = self.table[at]
                gap = at
        self.table[gap].code = -1

    cdef void _move(self, const int32_t[::1] codes) noexcept:
        """Codes are about to become others, none of them greater."""

    def first_codes(self, int64_t n):
        """Of a space of pairs: one byte per code below ``n``, whether it is the first of a pair."""
        cdef object flags = bytearray(n)
        cdef uint8_t[::1] out = flags
        cdef int64_t i
        for i in range(<int64_t>self.wrap + 1):
            if self.table[i].code >= 0:
                out[self.table[i].key >> 32] = 1
        return flags

    cdef void _reinsert(self, Entry entry) noexcept nogil:
        cdef uint64_t at = mix64(<uint64_t>entry.key) & self.wrap
        while self.table[at].code >= 0:
            at = (at + 1) & self.wrap
        self.table[at] = entry
        self.used += 1

    cdef int32_t find(self, int64_t key) noexcept nogil:
        """The code of a key, -1 if it has none."""
        return find_integer(self.table, self.wrap, key).code

    cdef int32_t add_integer(self, int64_t key) except -1 nogil:
        cdef Entry *entry = find_integer(self.table, self.wrap, key)
        if entry.code < 0:
            if 2 * (self.used + 1) > <int64_t>self.wrap:
                self._grow_table(4 * (self.used + 1))
                entry = find_integer(self.table, self.wrap, key)
            entry.key = key
            entry.code = self._new_code()
            self.used += 1
            if <uint64_t>key - self.low < self.span:
                self.near[<uint64_t>key - self.low] = entry.code
        return entry.code

    cdef int add_integers(self, int64_t n, const int64_t *keys, int32_t *out) except -1 nogil:
        """Codes of n keys, new ones included."""
        cdef int64_t i
        cdef uint64_t low = self.low, span = self.span, at
        cdef const int32_t *near = self.near
        for i in range(n):
            at = <uint64_t>keys[i] - low
            if at < span and near[at] >= 0:
                out[i] = near[at]
                continue
            out[i] = self.add_integer(keys[i])
            low, span, near = self.low, self.span, self.near
        return 0

    cdef int _add_many(self, int64_t n, const int64_t *keys, int32_t *out) except -1 nogil:
        """The same of many: what is looked at is asked for in advance."""
        cdef int64_t at = 0, some = min(n, <int64_t>ENTRIES_TOGETHER), more
        fetch_integers(self.table, self.wrap, self.near, self.low, self.span, keys, some)
        while at < n:
            more = min(n - at - some, <int64_t>ENTRIES_TOGETHER)
            fetch_integers(
                self.table, self.wrap, self.near, self.low, self.span, keys + at + some, more
            )
            self.add_integers(some, keys + at, out + at)
            at += some
            some = more
        return 0

    cdef int add_pairs(
        self, int64_t n, const int32_t *codes, const int32_t *more, int32_t *out
    ) except -1 nogil:
        """Codes of n pairs of codes, new ones included."""
        cdef int64_t i
        for i in range(n):
            if i % ENTRIES_AHEAD == 0:
                fetch_pairs(
                    self.table, self.wrap, codes + i, more + i, min(n - i, <int64_t>ENTRIES_AHEAD)
                )
            out[i] = self.add_integer(pair_key(codes[i], more[i]))
        return 0

    cdef void _find_dense(self) noexcept nogil:
        """Keep the codes of keys that lie close together in an array as well: no hash, no compare.

        It takes a quarter of the table's room at most, and is but a copy: less is never wrong.
        """
        cdef int64_t i, low = INT64_MAX, high = INT64_MIN, slots = self.wrap + 1
        cdef uint64_t width
        free_array(self.near)
        self.near = NULL
        self.span = 0
        for i in range(slots):
            if self.table[i].code >= 0:
                low = min(low, self.table[i].key)
                high = max(high, self.table[i].key)
        width = <uint64_t>high - <uint64_t>low
        if self.used < LEAST_NEAR or width >= <uint64_t>slots:
            return
        self.near = <int32_t *>new_array(slots // 2)
        if self.near == NULL:
            return
        memset(self.near, 0xff, slots * sizeof(int32_t))
        self.low = <uint64_t>low - (<uint64_t>slots - 1 - width) // 2
        self.span = slots
        for i in range(slots):
            if self.table[i].code >= 0:
                self.near[<uint64_t>self.table[i].key - self.low] = self.table[i].code

    cdef int32_t _new_code(self) except -1 nogil:
        if self.n_vacant:
            self.n_vacant -= 1
            return self.vacant[self.n_vacant]
        if self.n_codes == self.codes_room:
            self._grow_codes(max(16, 2 * self.codes_room))
        self.n_codes += 1
        return <int32_t>(self.n_codes - 1)

    cdef int _grow_codes(self, int64_t n) except -1 nogil:
        """Room for ``n`` codes and no more (the chain of vacant codes can never be longer)."""
        cdef void *grown = realloc(self.vacant, n * sizeof(int32_t))
        if grown == NULL:
            out_of_memory(b"keys", n)
        self.vacant = <int32_t *>grown
        self.codes_room = n
        return 0

    cdef int _grow_table(self, int64_t entries) except -1 nogil:
        cdef Entry *old = self.table
        cdef Entry *grown
        cdef int64_t i, slots = self.wrap + 1, wanted = slots, used = self.used
        cdef bint moved = False
        while wanted < entries:
            wanted *= 2
        grown = _new_table(wanted)
        if grown == NULL:
            out_of_memory(b"keys", wanted)
        self.table = grown
        self.wrap = wanted - 1
        self.used = 0
        try:
            for i in range(slots):
                if old[i].code >= 0:
                    self._reinsert(old[i])
                if (i + 1) % PER_LOOK == 0:
                    look_up()
            moved = True
        finally:
            if not moved:  # all keys are where they were
                self.table, self.wrap, self.used = old, slots - 1, used
            free_array(old if moved else grown)
        self._find_dense()
        return 0


def encode_dense(const int64_t[::1] keys, int64_t low, usable=None):
    """Codes ``key - low`` for keys known to lie close together; -1 where not usable."""
    cdef int64_t i, n = keys.shape[0]
    codes = room_for_codes(n)
    cdef int32_t[::1] out = codes
    cdef const uint8_t[::1] flags = None if usable is None else usable.view(np.uint8)
    cdef bint all_usable = usable is None
    with nogil:
        if all_usable:
            for i in range(n):
                out[i] = <int32_t>(keys[i] - low)
        else:
            for i in range(n):
                out[i] = <int32_t>(keys[i] - low) if flags[i] else -1
    return codes


def encode_pairs(KeySpace space, const int32_t[::1] first, const int32_t[::1] second):
    """Codes of pairs of codes, new pairs included; -1 where either is."""
    cdef int64_t i, n = first.shape[0]
    codes = np.empty(n, np.int32)
    cdef int32_t[::1] out = codes
    with nogil:
        for i in range(n):
            if first[i] < 0 or second[i] < 0:
                out[i] = -1
            else:
                out[i] = space.add_integer((<int64_t>first[i] << 32) | second[i])
            if (i + 1) % PER_LOOK == 0:
                look_up()
    return codes
