"""Scores of results: the exact measure of pairs of rows, which lie where they were joined.

Unchecked: enter through ``kernels.scores``.
"""
from libc.stdint cimport int64_t

from windjoin.pyx.similarity.measures cimport Measure, set_measure


cdef extern from "scores.h" nogil:
    void score_pairs(
        const Measure *m, int counts, const int64_t *left, const int64_t *right, int64_t n,
        int64_t *out
    )


cdef class Scorer:
    """Computes one measure.

    measure, left, right: as of a `MeasureFilter`
    counts: the measure is a whole number, and is given as such
    """

    cdef Measure measure
    cdef bint counts
    cdef object _alive

    def __init__(self, measure, left, right, bint counts):
        self._alive = (left, right)
        self.counts = counts
        set_measure(&self.measure, measure, left, right)

    def fill(
        self, const int64_t[::1] left_rows, const int64_t[::1] right_rows, int64_t[::1] out
    ):
        """Write the measure of every pair; as a double's bits, NaN where there is none.

        Counts are written as they are, -1 where there is none.
        """
        cdef int64_t n = out.shape[0]
        if n:
            with nogil:
                score_pairs(
                    &self.measure, self.counts, &left_rows[0], &right_rows[0], n, &out[0]
                )
