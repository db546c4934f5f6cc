from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

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
    ctypedef struct KeptString:
        Words words
        int64_t start
    ctypedef struct SoughtStrings:
        Words *words
        int64_t *hash
    ctypedef struct KnownStrings:
        const Entry *table
        uint64_t wrap
        const KeptString *kept
        const uint8_t *text
    void hash_strings(
        const Strings *all, const uint8_t *usable, int64_t first, int64_t n,
        const KnownStrings *known, SoughtStrings *sought,
    )
    void fetch_strings(const KnownStrings *known, const SoughtStrings *sought, int64_t n)
    const Entry *find_string(
        const KnownStrings *known, uint64_t place, int64_t hash, const Words *words,
        const uint8_t *data,
    )
    int64_t find_strings(
        const KnownStrings *known, const SoughtStrings *sought, const Strings *all,
        const uint8_t *usable, int64_t first, int64_t i, int64_t n, int32_t *out,
    )
    uint32_t whole_of(const Words *words)
    void place_strings(SoughtStrings *sought, int64_t i, int64_t n, uint64_t wrap)


cdef class BytesSpace(KeySpace):
    cdef KeptString *kept  # by code
    cdef uint8_t *text
    cdef int64_t text_used
    cdef int64_t text_room
    cdef int add_strings(
        self, const Strings *all, int64_t n, const uint8_t *usable, int32_t *out
    ) except -1 nogil
    cdef KnownStrings _known(self) noexcept nogil
    cdef int32_t _add_new(
        self, int64_t hash, const Words *words, const uint8_t *data
    ) except -1 nogil
    cdef int _keep_text(self, int32_t code, const Words *words, const uint8_t *data) except -1 nogil
    cdef int _compact(self, const uint8_t[::1] live) except -1
