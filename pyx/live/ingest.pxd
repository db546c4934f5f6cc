from libc.stdint cimport int64_t

from windjoin.pyx.arrow.reader cimport Reader, Reading
from windjoin.pyx.arrow.tables cimport Borrowed
from windjoin.pyx.base.output cimport Output
from windjoin.pyx.arrow.payload cimport Gatherer, Pages
from windjoin.pyx.live.store cimport Allowance, Arrived, Watermark, Counts, Verdict
from windjoin.pyx.live.store_step cimport StoreStep
from windjoin.pyx.live.unmatched cimport Unmatched


cdef class Ingest:
    cdef list joiners
    cdef int number
    cdef Watermark clock
    cdef Counts counts
    cdef list extents
    cdef object schema, table_type, batch_type
    cdef Reader reader
    cdef Reading seen  # rows of the push that is being done
    cdef int n_columns, n_keys
    cdef int n_texts  # keys that may be texts
    cdef int most_columns
    cdef object varlen_rows  # makes of wide columns what is kept of them
    cdef Pages own
    cdef list pages
    cdef object append, expire
    cdef Gatherer gatherer
    cdef tuple names
    cdef object empty, tabled, results, told, reject
    cdef Allowance allowance  # None: rows may come without end
    cdef Unmatched tracked  # None: no row comes out alone
    cdef object alone, settle
    cdef bint all_count  # whether rows count that can be in no result
    cdef bint tells_present  # whether flags of present rows are asked for
    cpdef object push(self, rows, session_lock, int64_t sequence, bint told=*)
    cdef object _borrow(self, rows, Borrowed one)
    cdef object _take(self, rows, Reading seen, session_lock, int64_t sequence, bint told)
    cdef int _point(self, StoreStep joiner, Reading seen, Arrived *arrived) except -1
    cdef list _varlen(self, Reading seen)
    cdef Verdict _classify(self, Reading seen, const int64_t *time, bint told) except *
    cdef int _track(self, Reading seen, const int64_t *time) except -1
    cdef int _count(self, rows, Reading seen, int64_t late) except -1
    cdef int _set_aside(
        self, Reading seen, const int64_t *time, int64_t watermark, bint told
    ) except -1
    cdef int _encode(self, StoreStep joiner, Reading seen, Arrived *rows) except -1
    cdef int _keep(self, rows, Borrowed one) except -1
    cdef object _given(self, StoreStep joiner, int64_t sequence)
    cdef object _gathered(self, Output out, int64_t sequence)
    cdef int _let_go(self) except -1
