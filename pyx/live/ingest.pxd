from libc.stdint cimport int32_t, int64_t, uint8_t

from windjoin.pyx.base.output cimport Output
from windjoin.pyx.arrow.payload cimport Gatherer, Pages
from windjoin.pyx.live.store cimport Allowance, Arrived, Watermark, Counts, Verdict
from windjoin.pyx.live.store_step cimport StoreStep
from windjoin.pyx.live.unmatched cimport Unmatched
from windjoin.pyx.arrow.tables cimport ArrowArray, Borrowed, Wanted


cdef struct Test:  # whether a number stands so to a constant
    int operator
    bint real
    int64_t whole
    double floating


cdef struct Seen:  # of the rows of one push: flags, or NULL
    int64_t n
    uint8_t *bad  # without a time
    uint8_t *usable
    uint8_t *late
    uint8_t *present  # with a time, and not late, and passing what `where` says of their stream
    int64_t *wider  # the next room for widened numbers
    int32_t *codes  # for those of texts


cdef class Ingest:
    cdef list joiners
    cdef int number
    cdef Watermark clock
    cdef Counts counts
    cdef list extents
    cdef object schema, table_type, batch_type
    cdef Wanted *wanted  # time, operands, keys, wide columns, tested columns
    cdef Test *tests
    cdef int n_columns, n_keys, n_varlen, n_tests, most_columns
    cdef object evaluate  # what is computed, None: nothing is
    cdef Pages own
    cdef list pages
    cdef object append, expire
    cdef Gatherer gatherer
    cdef tuple names
    cdef object empty, tabled, results, told, reject
    cdef Allowance allowance  # None: rows may come without end
    cdef Unmatched tracked  # None: no row comes out alone
    cdef int owned  # tests that a row must pass to come out alone
    cdef object alone, settle
    cdef char *room
    cdef int64_t room_bytes
    cdef int n_wider, n_texts
    cpdef object push(self, rows, session_lock, int64_t sequence, bint told=*)
    cdef object _borrow(self, rows, Borrowed one)
    cdef int _need(self, int64_t n, Seen *seen) except -1
    cdef bint _read(
        self, rows, Borrowed one, Seen *seen, Arrived *arrived, list computed
    ) except -1
    cdef bint _column(
        self, const ArrowArray *batch, int k, Seen *seen, Arrived *arrived
    ) except -1
    cdef void _put(self, Arrived *arrived, int k, const int64_t *values) noexcept
    cdef int _compute(self, rows, Seen *seen, Arrived *arrived, list computed) except -1
    cdef bint _varlen(self, Borrowed one, Seen *seen, list varlen) except -1
    cdef const int64_t *_numbers(
        self, const ArrowArray *batch, const Wanted *as_, Seen *seen
    ) noexcept
    cdef bint _test(self, const ArrowArray *batch, Seen *seen) except -1
    cdef Verdict _classify(self, Seen *seen, const int64_t *time, bint told) except *
    cdef int _track(self, Seen *seen, const int64_t *time) except -1
    cdef int _count(self, rows, Seen *seen, int64_t late) except -1
    cdef int _set_aside(
        self, Seen *seen, const int64_t *time, int64_t watermark, bint told
    ) except -1
    cdef int _encode(
        self, const ArrowArray *batch, Seen *seen, Arrived *rows, list computed
    ) except -1
    cdef int _keep(self, rows, Borrowed one) except -1
    cdef object _given(self, StoreStep joiner, int64_t sequence)
    cdef object _gathered(self, Output out, int64_t sequence)
    cdef int _let_go(self) except -1
