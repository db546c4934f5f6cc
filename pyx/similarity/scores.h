/* The exact measure of many pairs of rows, those of one row together where that is quicker. */
#ifndef WINDJOIN_SCORES_H
#define WINDJOIN_SCORES_H
#include "lanes.h"
#include "small_sets.h"
#include "stamps.h"

#define NO_COUNT (-1)   /* a count that there is not; NaN among the other measures */
#define ROWS_AHEAD 8    /* pairs whose rows are fetched before they are measured */
#define LOOKED_AT 256 /* results: the others are like them */
#define FETCHED_BYTES 256 /* of a row; the processor finds what comes behind by itself */

/* Rows `left` and `right` of n results, and where their scores go: `counts` as integers. */
typedef struct {
    const Measure *m;
    const int64_t *left, *right;
    int64_t n;
    int counts;
    int64_t *out;
} Scored;

static inline Components left_of(const Scored *s, int64_t i) {
    return components(&s->m->probing, s->left[i]);
}
static inline Components right_of(const Scored *s, int64_t i) {
    return components(&s->m->target, s->right[i]);
}

static inline void score_put(const Scored *s, int64_t i, double value) {
    if (s->counts) s->out[i] = value == value ? (int64_t)value : NO_COUNT;
    else memcpy(s->out + i, &value, sizeof(value));
}

static inline void score_one(const Scored *s, int64_t i) {
    Components a = left_of(s, i), b = right_of(s, i);
    score_put(s, i, a.n < 0 || b.n < 0 ? NAN : measure_value(s->m, a, b));
}

static inline int all_same(const int64_t *row, int n) {
    int64_t other = 0;
    for (int k = 1; k < n; k++) other |= row[k] ^ row[0];
    return other == 0;
}

/* The starts of several rows, if all have n components; those of as many rows behind are fetched.
 */
static inline int rows_of(const VarlenView *wide, const int64_t *row, int rows, int64_t n, int more,
                          const void **at) {
    int same = 1;
    for (int k = 0; k < rows; k++) {
        const Components c = components(wide, row[k]);
        at[k] = c.at;
        same &= c.n == n;
        if (more) {
            const char *later = components(wide, row[rows + k]).at;
            for (int64_t byte = 0; byte < n * (int64_t)sizeof(float) && byte < FETCHED_BYTES;
                 byte += 64)
                FETCH(later, byte);
        }
    }
    return same;
}

/* So many results from i on; what is the same on both sides of a measure of vectors may change
 * sides. */
static inline int score_lanes(const Scored *s, int64_t i, int lanes) {
    const void *a[MOST_LANES], *b[MOST_LANES];
    double value[MOST_LANES];
    const int left = all_same(s->left + i, lanes), right = !left && all_same(s->right + i, lanes);
    const Components one = right ? right_of(s, i) : left_of(s, i);
    const int more = i + 2 * lanes <= s->n;
    a[0] = one.at;
    if (one.n < 0) return 0;
    if (right ? !rows_of(&s->m->probing, s->left + i, lanes, one.n, more, b)
              : !rows_of(&s->m->target, s->right + i, lanes, one.n, more, b))
        return 0;
    if (!left && !right && !rows_of(&s->m->probing, s->left + i, lanes, one.n, more, a)) return 0;
    lanes_measure(s->m, lanes, left || right, a, b, one.n, value);
    for (int k = 0; k < lanes; k++) score_put(s, i + k, value[k]);
    return 1;
}

static void score_vectors(const Scored *s, int lanes) {
    int64_t i = 0;
    for (; i + lanes <= s->n; i += lanes)
        if (!score_lanes(s, i, lanes))
            for (int k = 0; k < lanes; k++) score_one(s, i + k);
    for (; i < s->n; i++) score_one(s, i);
}

/* How many results from i on have the row that this one has on one side. */
static inline int64_t run_of(const int64_t *row, int64_t i, int64_t n) {
    int64_t first = i;
    while (i < n && row[i] == row[first]) i++;
    return i - first;
}

/* Items that the row of many results has in common with another. */
static inline int64_t common_with(const Stamps *stamps, int able, Components one,
                                  Components other) {
    if (!able || other.n > 16 * one.n) return common_items(one.at, one.n, other.at, other.n);
    return stamps_count(stamps, other);
}

/* Results [i, stop), all with one row on the left (or, `turned`, on the right). */
static void score_stamped(const Scored *s, Stamps *stamps, int turned, int64_t i, int64_t stop) {
    const VarlenView *wide = turned ? &s->m->probing : &s->m->target;
    const int64_t *row = turned ? s->left : s->right;
    const Components one = turned ? right_of(s, i) : left_of(s, i);
    const int able = stamps_set(stamps, one);
    for (; i < stop; i++) {
        const Components other = components(wide, row[i]);
        if (i + ROWS_AHEAD < stop) FETCH((const char *)components(wide, row[i + ROWS_AHEAD]).at, 0);
        if (one.n < 0 || other.n < 0) {
            score_put(s, i, NAN);
            continue;
        }
        const int64_t common = common_with(stamps, able, one, other);
        score_put(
            s, i,
            set_value(s->m->measure, common, (turned ? other : one).n, (turned ? one : other).n));
    }
    if (able) stamps_clear(stamps, one);
}

#ifdef WINDJOIN_X86
/* What the first results tell of all: whether most are pairs of small sets, and whether it is on
 * the right that a result has the row of the one before it. */
typedef struct {
    int small, turned;
} Look;

static inline Look look_at(const Scored *s) {
    const int64_t n = s->n < LOOKED_AT ? s->n : LOOKED_AT;
    int64_t small = 0, left = 0, right = 0;
    for (int64_t i = 0; i < n; i++) {
        small += both_small(left_of(s, i).n, right_of(s, i).n);
        left += i && s->left[i] == s->left[i - 1];
        right += i && s->right[i] == s->right[i - 1];
    }
    return (Look){2 * small > n, right > left};
}

/* The sets of n results' rows on one side: what `components` reads, kept where no write of a score
 * can change it. */
typedef struct {
    const int64_t *row, *start;
    const int32_t *length;
    int64_t start_mask, length_mask;
} SetSide;

static inline SetSide set_side(const VarlenView *wide, const int64_t *row) {
    const SetSide side = {row, (const int64_t *)wide->start->data,
                          (const int32_t *)wide->length->data, wide->start->mask,
                          wide->length->mask};
    return side;
}

static inline const int32_t *set_at(const SetSide *side, int64_t i) {
    return (const int32_t *)(intptr_t)side->start[side->row[i] & side->start_mask];
}
static inline int64_t set_size(const SetSide *side, int64_t i) {
    return side->length[side->row[i] & side->length_mask];
}

/* Pairs one by one.  The items that are taken one after the other are those of the side on which
 * rows repeat: how many there are is then foreseen by the processor. */
TARGET_AVX512 static void score_small_sets(const Scored *s, int turned) {
    const int measure = s->m->measure;
    const SetSide left = set_side(&s->m->probing, s->left);
    const SetSide right = set_side(&s->m->target, s->right);
    const SetSide one = turned ? right : left, other = turned ? left : right;
    const int64_t n = s->n;
    for (int64_t i = 0; i < n; i++) {
        const int64_t n_one = set_size(&one, i), n_other = set_size(&other, i);
        const int32_t *at = set_at(&one, i), *other_at = set_at(&other, i);
        FETCH(set_at(&other, i + ROWS_AHEAD < n ? i + ROWS_AHEAD : i), 0);
        if (n_one < 0 || n_other < 0) {
            score_put(s, i, NAN);
            continue;
        }
        const int64_t common = is_small(at, n_one) && is_small(other_at, n_other)
                                   ? small_common_with_16_avx512(at, n_one, other_at, n_other)
                                   : common_avx512(at, n_one, other_at, n_other);
        if (measure == OVERLAP) s->out[i] = common;
        else
            score_put(
                s, i,
                set_value(measure, common, turned ? n_other : n_one, turned ? n_one : n_other));
    }
}
#endif

static void score_sets(const Scored *s) {
#ifdef WINDJOIN_X86
    const Look seen = look_at(s);
    if (isa_level() == ISA_AVX512 && seen.small) {
        score_small_sets(s, seen.turned);
        return;
    }
#endif
    Stamps stamps = {NULL, 0};
    for (int64_t i = 0; i < s->n;) {
        const int64_t left = run_of(s->left, i, s->n), right = run_of(s->right, i, s->n);
        const int64_t run = left > right ? left : right;
        if (run >= FEWEST_STAMPED) score_stamped(s, &stamps, right > left, i, i + run);
        else
            for (int64_t k = i; k < i + run; k++) score_one(s, k);
        i += run;
    }
    free(stamps.stamp);
}

/* Scores of n pairs, `counts` of them as integers. */
static void score_pairs(const Measure *m, int counts, const int64_t *left, const int64_t *right,
                        int64_t n, int64_t *out) {
    const Scored s = {m, left, right, n, counts, out};
    const int lanes = lanes_of(m);
    if (lanes) score_vectors(&s, lanes);
    else if (m->measure <= COSINE_SETS) score_sets(&s);
    else
        for (int64_t i = 0; i < n; i++) score_one(&s, i);
}
#endif
