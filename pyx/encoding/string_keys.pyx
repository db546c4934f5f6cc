"""Key spaces of byte strings, which they keep: those of `keys`, by the hashes of strings.

Unchecked: enter through ``kernels.keys``.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc, realloc

import numpy as np

from windjoin.pyx.base.cancellation cimport look_up
from windjoin.pyx.base.index cimport out_of_memory
from windjoin.pyx.encoding.keys cimport Entry, KeySpace, mix64

cdef extern from "memory.h" nogil:
    void copy_bytes(void *to, const void *source, size_t bytes)

cdef enum:
    PER_LOOK = 1 << 16  # keys, a power of two; then Ctrl-C is heard


cdef class BytesSpace(KeySpace):
    """Codes of byte strings; the table holds their hashes, the text lies in an arena."""

    def __cinit__(self):
        self.kept = NULL
        self.text = NULL
        self.text_used = self.text_room = 0

    def __dealloc__(self):
        free(self.kept)
        free(self.text)

    @property
    def forgets(self):
        return False

    @property
    def nbytes(self):
        cdef int64_t of_codes = (sizeof(KeptString) + 4) * self.codes_room
        return (self.wrap + 1) * <int64_t>sizeof(Entry) + of_codes + self.text_room

    def encode(self, column, usable=None):
        """int32 code of every value of a ``BytesColumn``; -1 where not usable."""
        cdef const int64_t[::1] offsets = column.offsets
        cdef const uint8_t[::1] data = column.data
        cdef int64_t at = 0, some, n = offsets.shape[0] - 1
        codes = np.empty(n, np.int32)
        cdef int32_t[::1] out = codes
        cdef const uint8_t[::1] flags = None if usable is None else usable.view(np.uint8)
        cdef Strings all
        all.data, all.offset_bytes = NULL, 8
        if data.shape[0]:
            all.data = &data[0]
        with nogil:
            while at < n:
                some = min(n - at, <int64_t>PER_LOOK)
                all.offset = &offsets[at]
                self.add_strings(&all, some, NULL if usable is None else &flags[at], &out[at])
                at += some
                if some == PER_LOOK:
                    look_up()
        return codes

    def take(self, const int32_t[::1] codes):
        """The texts of some codes, -1: an empty one: where each begins and ends, and all bytes."""
        cdef int64_t i, n = codes.shape[0], size = 0
        offsets = np.zeros(n + 1, np.int64)
        cdef int64_t[::1] offset = offsets
        for i in range(n):
            if codes[i] >= 0:
                size += self.kept[codes[i]].words.length
            offset[i + 1] = size
        data = np.empty(size, np.uint8)
        cdef uint8_t[::1] out = data
        for i in range(n):
            if offset[i + 1] > offset[i]:
                copy_bytes(
                    &out[offset[i]], self.text + self.kept[codes[i]].start,
                    offset[i + 1] - offset[i],
                )
        return offsets, data

    def compact(self, const uint8_t[::1] live):
        KeySpace.compact(self, live)
        self._compact(live)

    def renumber(self, const uint8_t[::1] live, int64_t classes=1):
        self._compact(live)
        return KeySpace.renumber(self, live, classes)

    cdef void _move(self, const int32_t[::1] codes) noexcept:
        cdef int64_t i
        for i in range(codes.shape[0]):
            if codes[i] >= 0:
                self.kept[codes[i]] = self.kept[i]

    cdef int add_strings(
        self, const Strings *all, int64_t n, const uint8_t *usable, int32_t *out
    ) except -1 nogil:
        """Codes of n strings, new ones included; -1 where not usable (NULL: all are).

        Entries and the words of strings that have codes are two reads from anywhere: each is asked
        for in advance, for some strings together.
        """
        cdef KnownStrings known = self._known()
        cdef SoughtStrings sought
        cdef int64_t at = 0, some, i
        while at < n:
            some = min(n - at, <int64_t>STRINGS_TOGETHER)
            hash_strings(all, usable, at, some, &known, &sought)
            fetch_strings(&known, &sought, some)
            i = find_strings(&known, &sought, all, usable, at, 0, some, out + at)
            while i < some:
                out[at + i] = self._add_new(
                    sought.hash[i], sought.words + i, all.data + string_begin(all, at + i)
                )
                if known.wrap != self.wrap:
                    place_strings(&sought, i + 1, some, self.wrap)
                known = self._known()
                i = find_strings(&known, &sought, all, usable, at, i + 1, some, out + at)
            at += some
        return 0

    cdef KnownStrings _known(self) noexcept nogil:
        return KnownStrings(self.table, self.wrap, self.kept, self.text)

    cdef int32_t _add_new(
        self, int64_t hash, const Words *words, const uint8_t *data
    ) except -1 nogil:
        """A code for a string that has none."""
        cdef KnownStrings known
        cdef Entry *entry
        cdef int32_t code
        if 2 * (self.used + 1) > <int64_t>self.wrap:
            self._grow_table(4 * (self.used + 1))
        code = self._new_code()
        self._keep_text(code, words, data)
        known = self._known()
        entry = <Entry *>find_string(
            &known, mix64(<uint64_t>hash) & self.wrap, hash, words, data
        )
        entry.key = hash
        entry.code, entry.whole = code, whole_of(words)
        self.used += 1
        return code

    cdef int _keep_text(
        self, int32_t code, const Words *words, const uint8_t *data
    ) except -1 nogil:
        cdef int64_t room, n = words.length
        cdef void *grown
        if self.text_used + n > self.text_room or self.text == NULL:
            room = max(2 * self.text_room, self.text_used + n + 64)
            grown = realloc(self.text, room)
            if grown == NULL:
                out_of_memory(b"bytes of keys", room)
            self.text = <uint8_t *>grown
            self.text_room = room
        copy_bytes(self.text + self.text_used, data, n)
        self.kept[code] = KeptString(words[0], self.text_used)
        self.text_used += n
        return 0

    cdef int _grow_codes(self, int64_t n) except -1 nogil:
        cdef void *grown = realloc(self.kept, n * sizeof(KeptString))
        if grown == NULL:
            out_of_memory(b"keys", n)
        self.kept = <KeptString *>grown
        return KeySpace._grow_codes(self, n)

    cdef int _compact(self, const uint8_t[::1] live) except -1:
        """Move the text of live codes together, in a new arena."""
        cdef int64_t code, size = 64
        cdef uint8_t *old = self.text
        cdef int64_t n
        for code in range(min(self.n_codes, live.shape[0])):
            if live[code]:
                size += self.kept[code].words.length
        self.text = <uint8_t *>malloc(size)
        if self.text == NULL:
            self.text = old
            out_of_memory(b"bytes of keys", size)
        self.text_room = size
        self.text_used = 0
        for code in range(min(self.n_codes, live.shape[0])):
            if live[code]:
                n = self.kept[code].words.length
                copy_bytes(self.text + self.text_used, old + self.kept[code].start, n)
                self.kept[code].start = self.text_used
                self.text_used += n
        free(old)
        return 0
