from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t


cdef extern from "keys.h" nogil:
    ctypedef struct Entry:
        int64_t key
        int32_t code
    uint64_t mix64(uint64_t x)
    Entry *find_integer(Entry *table, uint64_t wrap, int64_t key)
    void fetch_integers(
        const Entry *table, uint64_t wrap, const int32_t *near, uint64_t low, uint64_t span,
        const int64_t *key, int64_t n
    )
    int ENTRIES_TOGETHER
    int64_t pair_key(int32_t code, int32_t more)
    void fetch_pairs(
        const Entry *table, uint64_t wrap, const int32_t *code, const int32_t *more, int64_t n
    )
    void find_pairs(
        Entry *table, uint64_t wrap, int32_t *code, const int32_t *more, int64_t n
    )
    int ENTRIES_AHEAD
    ctypedef struct Strings:
        const uint8_t *data
        const void *offset
        int offset_bytes
    enum:
        STRINGS_TOGETHER
    int64_t string_begin(const Strings *all, int64_t i)
    ctypedef struct Words:
        int64_t length
    bint words_equal(const Words *a, const uint8_t *bytes, const Words *b, const uint8_t *other)
    ctypedef struct KeptString:
        Words words
        int64_t start
    void hash_strings(
        const Strings *all, const uint8_t *usable, int64_t first, int64_t n, const Entry *table,
        uint64_t wrap, Words *words, int64_t *key,
    )
    void prefetch "__builtin_prefetch" (const void *at)


cdef class KeySpace:
    cdef Entry *table
    cdef uint64_t wrap
    cdef readonly int64_t used
    cdef int32_t *vacant
    cdef int64_t n_vacant
    cdef readonly int64_t n_codes
    cdef int64_t codes_room
    cdef int32_t *near
    cdef uint64_t low
    cdef uint64_t span
    cdef int add_pairs(
        self, int64_t n, const int32_t *codes, const int32_t *more, int32_t *out
    ) except -1 nogil
    cdef int _add_many(self, int64_t n, const int64_t *keys, int32_t *out) except -1 nogil
    cdef int add_integers(self, int64_t n, const int64_t *keys, int32_t *out) except -1 nogil
    cdef void _find_dense(self) noexcept nogil
    cdef int32_t _new_code(self) except -1 nogil
    cdef int _grow_table(self, int64_t entries) except -1 nogil
    cdef int _grow_codes(self, int64_t n) except -1 nogil
    cdef int32_t add_integer(self, int64_t key) except -1 nogil
    cdef int32_t find(self, int64_t key) noexcept nogil
    cdef void _close_gap(self, uint64_t gap) noexcept nogil
    cdef void _move(self, const int32_t[::1] codes) noexcept
    cdef void _reinsert(self, Entry entry) noexcept nogil


cdef class BytesSpace(KeySpace):
    cdef KeptString *kept  # by code
    cdef uint8_t *text
    cdef int64_t text_used
    cdef int64_t text_room
    cdef int add_strings(
        self, const Strings *all, int64_t n, const uint8_t *usable, int32_t *out
    ) except -1 nogil
    cdef int _fetch_strings(self, int64_t n, const int64_t *key) noexcept nogil
    cdef int32_t _add_bytes(
        self, int64_t key, const Words *words, const uint8_t *data
    ) except -1 nogil
    cdef Entry *_find_bytes(
        self, int64_t key, const Words *words, const uint8_t *data
    ) noexcept nogil
    cdef int _keep_text(self, int32_t code, const Words *words, const uint8_t *data) except -1 nogil
    cdef int _compact(self, const uint8_t[::1] live) except -1
