from libc.stdint cimport int64_t

from windjoin.pyx.base.column cimport ColumnView
from windjoin.pyx.base.index cimport Column, PairFilter, Pairs


cdef extern from "measures.h" nogil:
    ctypedef struct VarlenView:
        const Column *start
        const Column *length
    ctypedef struct Measure:
        int measure
        int operation
        int doubles
        int turned
        double threshold
        VarlenView probing
        VarlenView target
    ctypedef struct Components:
        const void *at
        int64_t n
    const int OVERLAP, JACCARD, CONTAINMENT, COSINE_SETS, INNER_PRODUCT, COSINE_WEIGHTS
    const int L2, L1, LINF, DOT, COSINE
    const int BYTES_L1, BYTES_L2, MEAN_ABS_DIFF, HAMMING, HAMMING_BITS
    const int BELOW, UP_TO, ABOVE, FROM, EXACTLY, OTHER_THAN
    Components components(const VarlenView *wide, int64_t row)
    double measure_value(const Measure *m, Components a, Components b)


cdef extern from "distances.h" nogil:
    int rows_pass(const Measure *m, Components probing, Components target)
    void keep_measured(void *filter, const int64_t *bound, Pairs *pairs)


cdef int set_measure(Measure *m, measure, probing, target) except -1
