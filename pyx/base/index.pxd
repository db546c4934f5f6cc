from libc.stdint cimport int32_t, int64_t, uint8_t


cdef extern from "hop.h" nogil:
    const int SLACK
    ctypedef struct Column:
        const void *data
        int64_t mask
    ctypedef struct Probe:
        int64_t n
        const int64_t *lo
        const int64_t *hi
        const int32_t *code
        const int64_t *from_ "from"
        const int64_t *to
        const int64_t *bound
        int64_t stride
        int64_t **row
        void *prober
        const void *ages
    ctypedef struct Cursor:
        int64_t probe
        int64_t part
        int64_t position
        int64_t stop
    ctypedef struct Pairs:
        int64_t n
        int64_t capacity
        int32_t *probe
        int64_t *row
        int64_t *time
        int64_t *bound
    ctypedef int (*Serve)(void *index, const Probe *probe, Cursor *cursor, Pairs *out) noexcept
    ctypedef struct TimeBounds:
        int64_t *lo
        int64_t *hi
    ctypedef struct RowBounds:
        int64_t *first
        int64_t *stop
    ctypedef RowBounds (*Locate)(void *index, int64_t n, TimeBounds bounds) noexcept
    ctypedef int64_t (*Exists)(void *index, const Probe *probe, uint8_t *marks) noexcept
    ctypedef void (*Keep)(void *filter, const int64_t *bound, Pairs *pairs) noexcept
    int64_t sortable(double value)
    int64_t sortable_bits(int64_t bits)
    double from_sortable(int64_t key)
    int64_t add_saturated(int64_t a, int64_t b)
    int64_t subtract_saturated(int64_t a, int64_t b)


cdef extern from "lifecycle.h" nogil:
    ctypedef struct Life:
        pass
    void life_begins(Life *life)
    void life_inserts(Life *life, int64_t n, const int64_t *time)
    void life_expires(Life *life, int64_t horizon)


cdef enum:
    RELEASE_ABOVE = 64  # rows; the GIL is not given back for so few
    MOST_VALUES = 32  # columns of values that an index may take of a row


cdef class Index:
    cdef Serve serve
    cdef Locate locate
    cdef Exists exists
    cdef bint fills_bound
    cdef void *state
    cdef bint defers
    cdef int64_t probed_until
    cdef int64_t deferred_from
    cdef int64_t *raised
    cdef Life life
    cdef int insert(
        self, int64_t n, const int32_t *code, const int64_t *const *value, const int64_t *time,
        const int64_t *row,
    ) except -1 nogil
    cdef void expire(self, int64_t horizon) noexcept
    cdef int catch_up(self, int64_t time) except -1 nogil
    cdef Index waiter(self)


cdef class Prober:
    cdef void *prober


cdef class PairFilter:
    cdef Keep keep
    cdef void *filter


cdef int out_of_memory(const char *what, int64_t n) except -1 nogil
