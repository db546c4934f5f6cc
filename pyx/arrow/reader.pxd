from libc.stdint cimport int32_t, int64_t, uint8_t

from windjoin.pyx.arrow.tables cimport ArrowArray, Borrowed, Wanted


cdef struct Test:  # whether a number stands so to a constant
    int operator
    bint real
    int64_t whole
    double floating


cdef struct Place:  # where the values of a column are
    const void *at  # of 64 bits, or offsets of texts
    const uint8_t *text  # their bytes
    int offset_bytes  # 0: numbers


cdef class Reading:
    cdef Borrowed one  # the batch
    cdef int64_t n
    cdef Place *place  # of time, operands and keys
    cdef list varlen  # (offsets, values) of a wide column as it lies, or a column of the kernels
    cdef dict held  # what was computed, by number of column
    # flags, NULL: there is none such, or for `usable` and `present` all are
    cdef uint8_t *bad  # without a time
    cdef uint8_t *usable
    cdef uint8_t *present  # with a time, and passing what `where` says of their stream alone
    cdef uint8_t *late  # room for who knows
    cdef int32_t *codes  # room for those of texts
    cdef bint as_they_lie  # whether all wide columns are
    cdef char *room
    cdef int64_t room_bytes
    cdef int64_t *wider  # the next room for widened numbers
    cdef int start(self, int64_t n, int numbers, int texts) except -1
    cdef void give_back(self, int64_t kept) noexcept


cdef class Reader:
    cdef Wanted *wanted  # time, operands, keys, wide columns, tested columns
    cdef Wanted *narrow  # the same in a table of nothing else
    cdef Test *tests
    cdef int n_plain, n_varlen, n_tests
    cdef int owned  # tests that a row must pass to be present
    cdef int n_wider
    cdef bint judges  # whether it tests all conditions
    cdef list to_compute
    cdef list numbers, names  # of the columns that are read
    cdef object evaluate, table_type
    cdef Reading reading(self)
    cdef int read_from(
        self, Reading seen, rows, int64_t first_row, bint tracked, bint narrowed=*, bint lies=*
    ) except -1
    cdef object _values(self, Reading seen, int k)
    cdef bint _column(self, Reading seen, int k, const Wanted *as_) except -1
    cdef object _wide(self, Reading seen, const Wanted *as_)
    cdef bint _test(self, Reading seen, const Wanted *wanted, bint tracked) except -1
    cdef int _compute(
        self, Reading seen, rows, int64_t first_row, list wanted, bint tracked
    ) except -1


cdef uint8_t *usable_of(Reading seen) noexcept nogil
cdef uint8_t *present_of(Reading seen) noexcept nogil
