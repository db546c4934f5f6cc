"""What candidates must stand before they are results: comparisons, functions, callbacks.

An index may propose too much; what it does not decide alone is decided here, over all candidates
of a block at a time.  A pair for which a function raises is kept, and noted: other conditions may
drop it yet.  Unchecked: enter through ``kernels.hops``.
"""
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

import numpy as np

from windjoin.pyx.base.column cimport ColumnView
from windjoin.pyx.base.index cimport PairFilter, out_of_memory


cdef extern from "pipeline.h" nogil:
    const int LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, NOT_EQUAL, BETWEEN
    const int EQUAL_CODE, NOT_EQUAL_CODE
    void set_bounds(
        Comparison *c, int64_t low_high, uint64_t low_low, int64_t high_high, uint64_t high_low
    )
    void keep_comparison(const Comparison *c, const Partials *block, Pairs *pairs)
    void keep_mask(const uint8_t *mask, Pairs *pairs)

cdef enum:
    CALLS_PER_LOOK = 256

OPERATIONS = {
    "<": LESS, "<=": LESS_EQUAL, ">": GREATER, ">=": GREATER_EQUAL, "!=": NOT_EQUAL,
    "between": BETWEEN, "== code": EQUAL_CODE, "!= code": NOT_EQUAL_CODE,
}


cdef class Filters:
    """Those of all hops of a pipeline; those of one hop lie side by side.

    One object for all: a hop is a C struct, which without the GIL leads to no object of its own.
    """

    def __cinit__(self, Cancellation cancellation not None):
        self.cancellation = cancellation
        self._alive = []

    def __dealloc__(self):
        free(self.filters)

    cdef int add(self, int stream, filter) except -1:
        """One more, of candidates of ``stream``, as `Pipeline.add_hop` describes it."""
        cdef Filter *one
        cdef void *grown = realloc(self.filters, (self.n + 1) * sizeof(Filter))
        cdef int k
        if grown == NULL:
            out_of_memory(b"filters", self.n + 1)
        self.filters = <Filter *>grown
        one = self.filters + self.n
        memset(one, 0, sizeof(Filter))
        one.stream = stream
        kind, *parts = filter
        self._alive.append(parts)
        if kind == "compare":
            one.kind = COMPARISON
            set_comparison(&one.comparison, parts)
        elif kind == "function":
            one.kind = FUNCTION
            one.function = <Function><size_t>parts[0]
            one.n_operands = len(parts[1])
            for k in range(one.n_operands):
                one.operand_stream[k] = parts[1][k][0]
                one.operand[k] = &(<ColumnView?>parts[1][k][1]).column
        elif kind == "pairs":
            one.kind = PAIRS
            one.bound_stream = parts[0]
            one.keep = (<PairFilter?>parts[1]).keep
            one.state = (<PairFilter>parts[1]).filter
        else:
            one.kind = CALLBACK
            one.callback = <PyObject *>parts
        self.n += 1
        return 0

    cdef int keep(
        self, int first, int last, const Partials *block, Pairs *pairs
    ) except -1 nogil:
        """Leave the pairs that pass the filters [first, last)."""
        cdef int f
        cdef Filter *one
        for f in range(first, last):
            if pairs.n == 0:
                break
            one = self.filters + f
            one.seen += pairs.n
            if one.kind == COMPARISON:
                keep_comparison(&one.comparison, block, pairs)
            elif one.kind == FUNCTION:
                self._call_function(one, block, pairs)
            elif one.kind == PAIRS:
                one.keep(one.state, block.row[one.bound_stream], pairs)
            else:
                with gil:
                    self._call_back(one, block, pairs)
            one.kept += pairs.n
        return 0

    cdef list measured(self, int first, int last):
        """Of the filters [first, last): candidates seen, and kept."""
        return [(self.filters[f].seen, self.filters[f].kept) for f in range(first, last)]

    cdef int _call_function(
        self, const Filter *one, const Partials *block, Pairs *pairs
    ) except -1 nogil:
        cdef int64_t n = pairs.n, at = 0, few
        cdef int k, s
        cdef int64_t *operands = <int64_t *>malloc(n * (8 * one.n_operands + 1))
        if operands == NULL:
            out_of_memory(b"calls of a function", n)
        cdef uint8_t *mask = <uint8_t *>(operands + n * one.n_operands)
        for k in range(one.n_operands):
            s = one.operand_stream[k]
            if s == one.stream:
                gather_operand(one.operand[k], pairs.row, NULL, n, operands + k * n)
            else:
                gather_operand(one.operand[k], block.row[s], pairs.probe, n, operands + k * n)
        try:
            while at < n:  # a few at a time: a function may be slow
                few = min(<int64_t>CALLS_PER_LOOK, n - at)
                self.raised |= one.function(few, n, operands + at, operands + at, mask + at)
                at += few
                self.cancellation.look_up()
            keep_mask(mask, pairs)
        finally:
            free(operands)
        return 0

    cdef int _call_back(self, const Filter *one, const Partials *block, Pairs *pairs) except -1:
        cdef int64_t n = pairs.n
        cdef int64_t i
        cdef int64_t[::1] view
        cdef const uint8_t[::1] mask
        cdef int s
        evaluate, streams = <object>one.callback
        rows = {}
        for s in streams:
            rows[s] = np.empty(n, np.int64)
            view = rows[s]
            if s == one.stream:
                memcpy(&view[0], pairs.row, n * sizeof(int64_t))
            else:
                take_rows(block.row[s], pairs.probe, n, &view[0])
        mask = np.ascontiguousarray(evaluate(rows)).view(np.uint8)
        for i in range(n):
            self.raised |= mask[i] > 1
        keep_mask(&mask[0], pairs)
        return 0


cdef int set_comparison(Comparison *c, parts) except -1:
    """parts: operation, real, (bound stream, ColumnView), target ColumnView or None, low, high."""
    operation, real, bound, target, low, high = parts
    c.operation = OPERATIONS[operation]
    c.real = real
    c.bound_stream = bound[0]
    c.bound = &(<ColumnView?>bound[1]).column
    c.target = &(<ColumnView?>target).column if target is not None else NULL
    if real:
        c.real_low, c.real_high = low, high
    else:
        word = (1 << 64) - 1
        set_bounds(c, low >> 64, low & word, high >> 64, high & word)
    return 0
