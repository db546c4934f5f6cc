/* The exact measure of many pairs of rows, one after the other. */
#ifndef WINDJOIN_SCORES_H
#define WINDJOIN_SCORES_H
#include "measures.h"

#define NO_COUNT (-1) /* a count that there is not; NaN among the other measures */

static inline double score_of(const Measure *m, Components a, Components b) {
    return a.n < 0 || b.n < 0 ? NAN : measure_value(m, a, b);
}

/* Scores of n pairs, `counts` of them as integers. */
static void score_pairs(const Measure *m, int counts, const int64_t *left, const int64_t *right, int64_t n, int64_t *out) {
    for (int64_t i = 0; i < n; i++) {
        double value = score_of(m, components(&m->asking, left[i]), components(&m->target, right[i]));
        if (counts) out[i] = value == value ? (int64_t)value : NO_COUNT;
        else memcpy(out + i, &value, sizeof(value));
    }
}
#endif
