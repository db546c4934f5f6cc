from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from windjoin.pyx.encoding.keys cimport Entry, KeySpace


cdef extern from "string_keys.h" nogil:
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
