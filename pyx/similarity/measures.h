/* Measures of two rows: what is exact, and quick answers with a bound on their error.
 *
 * The exact value is computed in doubles, component by component in the order of the columns, every
 * operation rounded (the build forbids fused multiply-add).  NaN means that there is no value.
 */
#ifndef WINDJOIN_MEASURES_H
#define WINDJOIN_MEASURES_H
#include <math.h>

#include "hop.h"
#include "isa.h"

enum {
    OVERLAP,
    JACCARD,
    CONTAINMENT,
    COSINE_SETS, /* sets: int32 codes, ascending */
    INNER_PRODUCT,
    COSINE_WEIGHTS,              /* weighted sets, see Weighted */
    L2,
    L1,
    LINF,
    DOT,
    COSINE,                  /* vectors of floats or doubles */
    BYTES_L1,
    BYTES_L2,
    MEAN_ABS_DIFF,
    HAMMING,
    HAMMING_BITS,
};
enum { BELOW, UP_TO, ABOVE, FROM, EXACTLY, OTHER_THAN };

/* Rows of a wide column: where each one starts (an address) and how many components it has. */
typedef struct {
    const Column *start, *length;
} VarlenView;

typedef struct {
    int measure;
    int operation;
    int doubles; /* vectors: of doubles, else of floats */
    int turned;  /* the row that asks stands on the right */
    double threshold;
    VarlenView probing, target;
} Measure;

typedef struct {
    const void *at;
    int64_t n;
} Components;

static inline Components components(const VarlenView *wide, int64_t row) {
    Components c;
    c.at = (const void *)(intptr_t)((const int64_t *)wide->start->data)[row & wide->start->mask];
    c.n = ((const int32_t *)wide->length->data)[row & wide->length->mask];
    return c;
}

static inline int passes(const Measure *m, double value) {
    switch (m->operation) {
    case BELOW: return value < m->threshold;
    case UP_TO: return value <= m->threshold;
    case ABOVE: return value > m->threshold;
    case FROM: return value >= m->threshold;
    case EXACTLY: return value == m->threshold;
    default: return value < m->threshold || value > m->threshold;
    }
}

/* -- sets --------------------------------------------------------------------------------- */

static inline int64_t common_items(const int32_t *a, int64_t na, const int32_t *b, int64_t nb) {
    int64_t i = 0, j = 0, common = 0;
    if (na > 16 * nb || nb > 16 * na) { /* look the few up among the many */
        const int32_t *few = na < nb ? a : b, *many = na < nb ? b : a;
        int64_t n_few = na < nb ? na : nb, n_many = na < nb ? nb : na, from = 0;
        for (i = 0; i < n_few && from < n_many; i++) {
            int64_t step = 1, to;
            while (from + step < n_many && many[from + step] < few[i]) step *= 2;
            to = from + step < n_many ? from + step + 1 : n_many;
            from += step / 2;
            while (from < to) {
                int64_t middle = (from + to) >> 1;
                if (many[middle] < few[i]) from = middle + 1;
                else to = middle;
            }
            common += from < n_many && many[from] == few[i];
        }
        return common;
    }
    while (i < na && j < nb) {
        int32_t x = a[i], y = b[j];
        common += x == y;
        i += x <= y;
        j += y <= x;
    }
    return common;
}

/* The measure of two sets of na and nb items of which `common` are the same. */
static inline double set_value(int measure, int64_t common, int64_t na, int64_t nb) {
    switch (measure) {
    case OVERLAP: return (double)common;
    case JACCARD: return (double)common / (double)(na + nb - common);
    case CONTAINMENT: return (double)common / (double)na;
    default: return (double)common / sqrt((double)(na * nb));
    }
}

/* A weighted set of n items: its norm, the weights, the codes in ascending order, and for each item
 * (as for its weight) the place at which it first stood in the row. */
#define WEIGHTS(at) ((const double *)(at) + 1)
#define WEIGHTED_CODES(at, n) ((const int32_t *)(WEIGHTS(at) + (n)))
#define PLACES(at, n) (WEIGHTED_CODES(at, n) + (n))
#define PLACES_AT_ONCE 4096

/* What is done with common item i of `a` and j of `b`, which are read once in the order of codes.
 */
#define WITH_COMMON_ITEMS(a, b, what)                                                              \
    for (int64_t i = 0, j = 0; i < (a).n && j < (b).n;) {                                          \
        const int32_t x = WEIGHTED_CODES((a).at, (a).n)[i], y = WEIGHTED_CODES((b).at, (b).n)[j];  \
        if (x == y) {                                                                              \
            const int32_t place = PLACES((a).at, (a).n)[i];                                        \
            const double product = WEIGHTS((a).at)[i] * WEIGHTS((b).at)[j];                        \
            what                                                                                   \
        }                                                                                          \
        i += x <= y;                                                                               \
        j += y <= x;                                                                               \
    }

/* The sum of products in the order of their places up to `last`, so many places at a time. */
static double product_by_place(Components a, Components b, int64_t last) {
    double found[PLACES_AT_ONCE], sum = 0;
    for (int64_t first = 0; first <= last; first += PLACES_AT_ONCE) {
        const int64_t words =
            last - first < PLACES_AT_ONCE ? (last - first) / 64 + 1 : PLACES_AT_ONCE / 64;
        uint64_t there[PLACES_AT_ONCE / 64];
        memset(there, 0, (size_t)words * sizeof(uint64_t));
        WITH_COMMON_ITEMS(a, b, {
            const uint64_t at = (uint64_t)(place - first);
            if (at < PLACES_AT_ONCE) {
                found[at] = product;
                there[at / 64] |= (uint64_t)1 << at % 64;
            }
        })
        for (int64_t w = 0; w < words; w++)
            for (uint64_t word = there[w]; word; word &= word - 1)
                sum += found[w * 64 + __builtin_ctzll(word)];
    }
    return sum;
}

/* The sum of products over the common items, in the order of the left row. */
static double weighted_product(Components a, Components b) {
    double sum = 0;
    int32_t last = -1;
    int in_order = 1;
    WITH_COMMON_ITEMS(a, b, {
        sum += product;
        in_order &= place > last;
        last = place > last ? place : last;
    })
    return in_order ? sum : product_by_place(a, b, last);
}

/* A norm is 0 without the sum being 0 where squares are too small for a double. */
static inline double cosine_value(double sum, double norms) {
    return norms == 0 ? NAN : sum / norms;
}

static inline double weighted_value(int measure, Components a, Components b) {
    double sum = weighted_product(a, b);
    if (measure == INNER_PRODUCT) return sum;
    return cosine_value(sum, *(const double *)a.at * *(const double *)b.at);
}

/* -- vectors ------------------------------------------------------------------------------ */

#define VECTOR_VALUE(type)                                                                         \
    static double vector_value_##type(int measure, const type *a, const type *b, int64_t n) {      \
        double sum = 0, left = 0, right = 0;                                                       \
        switch (measure) {                                                                         \
        case L2:                                                                                   \
            for (int64_t k = 0; k < n; k++) {                                                      \
                double d = (double)a[k] - (double)b[k];                                            \
                sum += d * d;                                                                      \
            }                                                                                      \
            return sqrt(sum);                                                                      \
        case L1:                                                                                   \
            for (int64_t k = 0; k < n; k++) sum += fabs((double)a[k] - (double)b[k]);              \
            return sum;                                                                            \
        case LINF:                                                                                 \
            for (int64_t k = 0; k < n; k++) {                                                      \
                double d = fabs((double)a[k] - (double)b[k]);                                      \
                if (!(d <= sum)) sum = d; /* inf - inf has no value */                             \
                if (isnan(d)) return d;                                                            \
            }                                                                                      \
            return sum;                                                                            \
        case DOT:                                                                                  \
            for (int64_t k = 0; k < n; k++) sum += (double)a[k] * (double)b[k];                    \
            return sum;                                                                            \
        default:                                                                                   \
            for (int64_t k = 0; k < n; k++) {                                                      \
                double x = a[k], y = b[k];                                                         \
                sum += x * y;                                                                      \
                left += x * x;                                                                     \
                right += y * y;                                                                    \
            }                                                                                      \
            return cosine_value(sum, sqrt(left) * sqrt(right));                                    \
        }                                                                                          \
    }
VECTOR_VALUE(float)
VECTOR_VALUE(double)

static inline double vector_value(const Measure *m, Components a, Components b) {
    if (a.n != b.n) return NAN;
    return m->doubles ? vector_value_double(m->measure, a.at, b.at, a.n)
                      : vector_value_float(m->measure, a.at, b.at, a.n);
}

/* -- bytes -------------------------------------------------------------------------------- */

static inline int64_t sum_of_differences(const uint8_t *a, const uint8_t *b, int64_t n) {
    int64_t sum = 0;
    for (int64_t k = 0; k < n; k++) sum += a[k] > b[k] ? a[k] - b[k] : b[k] - a[k];
    return sum;
}

static inline int64_t sum_of_squares(const uint8_t *a, const uint8_t *b, int64_t n) {
    int64_t sum = 0;
    for (int64_t k = 0; k < n; k++) {
        int32_t d = (int32_t)a[k] - b[k];
        sum += d * d;
    }
    return sum;
}

static inline int64_t bytes_that_differ(const uint8_t *a, const uint8_t *b, int64_t n) {
    int64_t sum = 0;
    for (int64_t k = 0; k < n; k++) sum += a[k] != b[k];
    return sum;
}

static inline int64_t bits_that_differ(const uint8_t *a, const uint8_t *b, int64_t n) {
    int64_t sum = 0, k = 0;
    for (; k + 8 <= n; k += 8) {
        uint64_t x, y;
        memcpy(&x, a + k, 8);
        memcpy(&y, b + k, 8);
        sum += __builtin_popcountll(x ^ y);
    }
    for (; k < n; k++) sum += __builtin_popcount(a[k] ^ b[k]);
    return sum;
}

#ifdef WINDJOIN_X86
TARGET_AVX512 static int64_t sum_of_differences_avx512(const uint8_t *a, const uint8_t *b,
                                                       int64_t n) {
    __m512i sum = _mm512_setzero_si512();
    for (int64_t k = 0; k < n; k += 64) {
        __mmask64 here = n - k < 64 ? ((__mmask64)1 << (n - k)) - 1 : ~(__mmask64)0;
        __m512i x = _mm512_maskz_loadu_epi8(here, a + k), y = _mm512_maskz_loadu_epi8(here, b + k);
        sum = _mm512_add_epi64(sum, _mm512_sad_epu8(x, y));
    }
    return _mm512_reduce_add_epi64(sum);
}

TARGET_AVX2 static int64_t sum_of_differences_avx2(const uint8_t *a, const uint8_t *b, int64_t n) {
    __m256i sum = _mm256_setzero_si256();
    int64_t parts[4], k = 0;
    for (; k + 32 <= n; k += 32) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(a + k));
        __m256i y = _mm256_loadu_si256((const __m256i *)(b + k));
        sum = _mm256_add_epi64(sum, _mm256_sad_epu8(x, y));
    }
    _mm256_storeu_si256((__m256i *)parts, sum);
    return parts[0] + parts[1] + parts[2] + parts[3] + sum_of_differences(a + k, b + k, n - k);
}
#endif

/* The sum of absolute differences, or some value above `limit` as soon as it is known to be above.
 */
#define ABANDON_EVERY 1024
static inline int64_t differences_up_to(const uint8_t *a, const uint8_t *b, int64_t n,
                                        int64_t limit) {
    int64_t sum = 0;
    int level = isa_level();
    for (int64_t k = 0; k < n && sum <= limit; k += ABANDON_EVERY) {
        int64_t part = n - k < ABANDON_EVERY ? n - k : ABANDON_EVERY;
#ifdef WINDJOIN_X86
        if (level == ISA_AVX512) sum += sum_of_differences_avx512(a + k, b + k, part);
        else if (level == ISA_AVX2) sum += sum_of_differences_avx2(a + k, b + k, part);
        else
#endif
            sum += sum_of_differences(a + k, b + k, part);
    }
    (void)level;
    return sum;
}

static inline double bytes_value(int measure, Components a, Components b) {
    if (a.n != b.n) return NAN;
    switch (measure) {
    case BYTES_L1: return (double)differences_up_to(a.at, b.at, a.n, INT64_MAX);
    case BYTES_L2: return sqrt((double)sum_of_squares(a.at, b.at, a.n));
    case MEAN_ABS_DIFF: return (double)differences_up_to(a.at, b.at, a.n, INT64_MAX) / (double)a.n;
    case HAMMING: return (double)bytes_that_differ(a.at, b.at, a.n);
    default: return (double)bits_that_differ(a.at, b.at, a.n);
    }
}

/* -- all ---------------------------------------------------------------------------------- */

/* The exact measure of a left and a right row; NaN if there is none. */
static inline double measure_value(const Measure *m, Components a, Components b) {
    if (m->measure <= COSINE_SETS)
        return set_value(m->measure, common_items(a.at, a.n, b.at, b.n), a.n, b.n);
    if (m->measure <= COSINE_WEIGHTS) return weighted_value(m->measure, a, b);
    if (m->measure <= COSINE) return vector_value(m, a, b);
    return bytes_value(m->measure, a, b);
}
#endif
