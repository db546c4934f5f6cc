from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t

from windjoin.pyx.base.index cimport Column, Keep, Pairs
from windjoin.pyx.base.cancellation cimport Cancellation

cdef enum:
    MOST_OPERANDS = 32  # of a function


cdef extern from "pipeline.h" nogil:
    ctypedef struct Partials:
        int64_t n
        int64_t *row[16]
        int64_t *latest
        int64_t *deadline
    ctypedef struct Comparison:
        int operation
        int real
        int bound_stream
        const Column *bound
        const Column *target
        double real_low
        double real_high
    void gather_operand(
        const Column *column, const int64_t *row, const int32_t *via, int64_t n, int64_t *out
    )
    void take_rows(const int64_t *row, const int32_t *via, int64_t n, int64_t *out)

ctypedef int64_t (*Function)(
    int64_t n, int64_t stride, const void *ints, const void *reals, uint8_t *out
) noexcept nogil

cdef enum FilterKind:
    COMPARISON
    FUNCTION
    CALLBACK
    PAIRS

cdef struct Filter:
    FilterKind kind
    int stream  # of the candidates
    Comparison comparison
    Function function
    int n_operands
    int operand_stream[MOST_OPERANDS]
    const Column *operand[MOST_OPERANDS]
    Keep keep
    void *state
    int bound_stream
    PyObject *callback  # (evaluate, streams), kept alive by the filters
    int64_t seen
    int64_t kept


cdef class Filters:
    cdef int n
    cdef int64_t raised  # not 0: a function or callback did, for a pair that was kept
    cdef Filter *filters
    cdef Cancellation cancellation
    cdef list _alive  # everything the C structs point at
    cdef int add(self, int stream, filter) except -1
    cdef int keep(
        self, int first, int last, const Partials *block, Pairs *pairs
    ) except -1 nogil
    cdef list measured(self, int first, int last)
    cdef int _call_function(
        self, const Filter *one, const Partials *block, Pairs *pairs
    ) except -1 nogil
    cdef int _call_back(self, const Filter *one, const Partials *block, Pairs *pairs) except -1


cdef int set_comparison(Comparison *c, parts) except -1
