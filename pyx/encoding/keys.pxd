from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t


cdef extern from "keys.h" nogil:
    ctypedef struct Entry:
        int64_t key
        int32_t code
        uint32_t whole
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
