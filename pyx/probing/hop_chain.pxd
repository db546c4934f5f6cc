from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from windjoin.pyx.base.cancellation cimport Cancellation
from windjoin.pyx.base.column cimport ColumnView
from windjoin.pyx.base.index cimport Column, Cursor, Exists, Index, Locate, Pairs, Probe, Serve
from windjoin.pyx.base.output cimport Output, Runner
from windjoin.pyx.encoding.keys cimport Entry
from windjoin.pyx.probing.filters cimport MOST_OPERANDS, Comparison, Filters, Partials

cdef enum:
    MOST_CODES = 8
    MOST_CONDITIONS = 16

cdef struct PipelineHop:
    int stream
    int64_t window
    Serve serve
    Locate locate
    Exists exists
    bint fills_bound
    int64_t *probed_until  # those of an index that defers
    const int64_t *deferred_from
    void *index
    int64_t *raised  # of an index that calls a function
    int n_ranges
    int range_value[MOST_CONDITIONS]  # which value of the index it bounds
    Comparison range[MOST_CONDITIONS]
    void *prober
    int n_operands
    int operand_stream[MOST_OPERANDS]
    const Column *operand[MOST_OPERANDS]
    int before
    const Column *time
    const int64_t *void_start
    const int64_t *void_last
    int64_t n_voids
    int n_codes
    int code_stream[MOST_CODES]
    const Column *code[MOST_CODES]
    Entry **pair_table[MOST_CODES]
    uint64_t *pair_wrap[MOST_CODES]
    int first_filter
    int n_filters
    int64_t *lo
    int64_t *hi
    int64_t *from_
    int64_t *to
    int32_t *codes
    int32_t *more_codes
    Pairs pairs
    Partials found
    int64_t asked
    int64_t proposed
    int64_t kept


cdef class HopChain(Runner):
    cdef int stream
    cdef int64_t window
    cdef ColumnView time
    cdef int64_t block
    cdef int64_t stride  # partial results of a block, with those that a hop found beyond its end
    cdef int n_hops
    cdef PipelineHop *hops
    cdef Partials start
    cdef int32_t *start_codes  # of the first hop, where the start rows come key by key
    cdef bint codes_given
    cdef list _probers  # of the hops, or None
    cdef list _indexes  # of the hops
    cdef list _alive  # everything the C structs point at
    cdef list _bound  # streams of the start rows
    cdef int n_bound
    cdef Column *numbers  # of rows that results give in place of where they stand, by stream
    cdef bint numbered
    cdef uint8_t **marks  # by stream, a byte of each row: whether it is in a result; NULL: unasked
    cdef bint direct  # its one hop asks for one stream, and gives both rows of each pair
    cdef int64_t *members  # rows of that stream in candidates
    cdef int only  # the stream of which nothing but these is wanted; -1: results are
    cdef dict _voids  # by hop, the stretches that its candidates must not lie in
    cdef Filters filters  # of the hops
    cdef bint calls  # functions of the user's, or back into Python
    cdef readonly bint raised  # one of those has, for a pair that some condition let pass
    cdef public bint wary  # look at results although none has here: elsewhere one may have
    cdef public object on_raised  # called with results to look at, row numbers by stream
    cdef Cancellation cancellation
    cdef Output out
    cdef int _carry_on(self, PipelineHop *hop) except -1
    cdef int _hop_on(self) except -1 nogil
    cdef void _forget_raised(self) noexcept nogil
    cdef bint _any_raised(self) noexcept nogil
    cdef int _look_at_results(self, int64_t n) except -1 nogil
    cdef int _show_results(self, int64_t n) except -1
    cdef int _hop(self, int number, Partials *block) except -1 nogil
    cdef int _serve_output(
        self, PipelineHop *hop, Partials *block, Probe *probe, Cursor *cursor
    ) except -1 nogil
    cdef int _serve_marks(
        self, PipelineHop *hop, Partials *block, Probe *probe, Cursor *cursor
    ) except -1 nogil
    cdef void _mark_only(self, PipelineHop *hop, Partials *block, Pairs *pairs) noexcept nogil
    cdef void _drop_marked(self, PipelineHop *hop, Partials *block, Pairs *pairs) noexcept nogil
    cdef int _serve_block(
        self, int number, Partials *block, Probe *probe, Cursor *cursor
    ) except -1 nogil
    cdef void _ask(self, PipelineHop *hop, Partials *block, Probe *probe) noexcept nogil
    cdef int _insert_deferred(self, int number, int64_t n) except -1 nogil
    cdef int _catch_up(self, int number, int64_t last) except -1
    cdef void _emit_bound(self, Partials *block, Pairs *pairs) noexcept nogil
    cdef void _take_results(self, int64_t n) noexcept nogil
    cdef void _extend(self, int number, Partials *block) noexcept nogil
