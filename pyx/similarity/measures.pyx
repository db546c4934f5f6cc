"""Similarity of rows that are sets, vectors or bytes: filters of candidate pairs, and values.

Unchecked: enter through ``kernels.similarity``.
"""
from libc.stdint cimport int64_t

import numpy as np

from windjoin.pyx.base.column cimport ColumnView
from windjoin.pyx.base.index cimport PairFilter

MEASURES = {
    "overlap": OVERLAP, "jaccard": JACCARD, "containment": CONTAINMENT, "cosine_sets": COSINE_SETS,
    "inner_product": INNER_PRODUCT, "cosine_weights": COSINE_WEIGHTS,
    "l2": L2, "l1": L1, "linf": LINF, "dot": DOT, "cosine": COSINE,
    "bytes_l1": BYTES_L1, "bytes_l2": BYTES_L2, "mean_abs_diff": MEAN_ABS_DIFF,
    "hamming": HAMMING, "hamming_bits": HAMMING_BITS,
}
OPERATIONS = {
    "<": BELOW, "<=": UP_TO, ">": ABOVE, ">=": FROM, "==": EXACTLY, "!=": OTHER_THAN,
}


cdef int set_measure(Measure *m, measure, probing, target) except -1:
    """measure: (name, doubles, turned, operation, threshold); the views: (starts, lengths)."""
    name, m.doubles, m.turned, operation, m.threshold = measure
    m.measure = MEASURES[name]
    m.operation = OPERATIONS[operation]
    m.probing.start = &(<ColumnView?>probing[0]).column
    m.probing.length = &(<ColumnView?>probing[1]).column
    m.target.start = &(<ColumnView?>target[0]).column
    m.target.length = &(<ColumnView?>target[1]).column
    return 0


cdef class MeasureFilter(PairFilter):
    """Keeps the pairs whose measure stands as asked to its threshold."""

    cdef Measure measure
    cdef object _alive

    def __init__(self, measure, probing, target):
        self._alive = (probing, target)
        set_measure(&self.measure, measure, probing, target)
        self.keep = keep_measured
        self.filter = &self.measure


def measure_pairs(
    measure, left, right, const int64_t[::1] left_rows, const int64_t[::1] right_rows
):
    """The exact measure of pairs of rows, NaN where there is none."""
    cdef Measure m
    cdef int64_t i, n = left_rows.shape[0]
    set_measure(&m, measure, left, right)
    values = np.empty(n, np.float64)
    cdef double[::1] out = values
    with nogil:
        for i in range(n):
            out[i] = measure_value(
                &m, components(&m.probing, left_rows[i]), components(&m.target, right_rows[i])
            )
    return values
