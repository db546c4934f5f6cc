/* Runs of rows that are close in time, each packed into a tree of boxes over two or more values.
 *
 * Rows of a run are sorted by their first value, strips of that by the second, and so on, so that
 * eight neighbours fill a small box; eight boxes make one of the next level.  A probe for a range
 * of every value looks only into boxes that its ranges touch.  The last run may be raw: unsorted
 * rows, looked at one by one.
 */
#ifndef WINDJOIN_BOXES_H
#define WINDJOIN_BOXES_H
#include <math.h>
#include <stdlib.h>

#include "compress.h"
#include "hop.h"
#include "sort.h"

#define MOST_RANGES 4
#define BOX 8          /* rows of the least box, boxes of the next level */
#define BOX_STRIP 64   /* strips are whole nodes of the lowest level */
#define MOST_LEVELS 20

typedef struct {
    int64_t earliest, latest;
    int64_t latest_so_far; /* of this run and all before */
    int64_t earliest_left; /* of this run and all behind */
    int64_t length, capacity;
    int rank;   /* 0: raw; a run of rank r + 1 was made of several of rank r */
    int levels; /* of nodes; level 0 is over boxes of rows */
    int64_t *time, *row, *value[MOST_RANGES];
    int64_t *node[MOST_LEVELS]; /* per node and value: 8 least, 8 greatest; one block */
} BoxRun;

typedef struct {
    BoxRun *runs;
    int64_t first, last; /* live ones: [first, last) */
    int64_t hint;
    int values;
} Boxes;

/* What one partial result asks. */
typedef struct {
    int32_t number;
    int64_t lo, hi;
    int64_t from[MOST_RANGES], to[MOST_RANGES];
} Query;

/* First run that may hold a row with time >= lo. */
static inline int64_t boxes_begin(Boxes *all, int64_t lo) {
    int64_t at = all->hint;
    if (at < all->first || at > all->last) at = all->first;
    while (at > all->first && all->runs[at - 1].latest_so_far >= lo) at--;
    while (at < all->last && all->runs[at].latest_so_far < lo) at++;
    return all->hint = at;
}

static inline int64_t boxes_of(int64_t things) { return (things + BOX - 1) / BOX; }

/* int64 that the nodes of a run need. */
static inline int64_t run_nodes(int64_t length, int values) {
    int64_t nodes = 0, things = boxes_of(length);
    do {
        things = boxes_of(things);
        nodes += things;
    } while (things > 1);
    return nodes * values * 2 * BOX;
}

/* Least and greatest of a box: of 8 rows, or of the 8 boxes of a node. */
static inline void box_bounds(const int64_t *least, const int64_t *greatest, int64_t n,
                              int64_t *min, int64_t *max) {
    *min = INT64_MAX;
    *max = INT64_MIN;
    for (int64_t k = 0; k < n; k++) {
        if (least[k] < *min) *min = least[k];
        if (greatest[k] > *max) *max = greatest[k];
    }
}

/* Build the nodes of a run, whose rows are packed, in `nodes` (run_nodes() int64). */
static inline void run_box(BoxRun *run, int values, int64_t *nodes) {
    int64_t below = boxes_of(run->length), size = values * 2 * BOX;
    run->levels = 0;
    do {
        int level = run->levels++;
        int64_t *node = run->node[level] = nodes;
        for (int64_t child = 0; child < boxes_of(below) * BOX; child++) {
            for (int v = 0; v < values; v++) {
                int64_t *bounds = node + child / BOX * size + v * 2 * BOX + child % BOX;
                const int64_t *under = level == 0
                                           ? run->value[v] + child * BOX
                                           : run->node[level - 1] + child * size + v * 2 * BOX;
                int64_t n = level == 0 ? run->length - child * BOX : BOX;
                if (child >= below) n = 0;
                box_bounds(under, level == 0 ? under : under + BOX, n < BOX ? n : BOX, bounds,
                           bounds + BOX);
            }
        }
        below = boxes_of(below);
        nodes += below * size;
    } while (below > 1);
}

/* Sort rows order[0..n) by value v, strips of them by the next; spare: 3 * n. */
static inline void run_tile(const BoxRun *run, int values, int v, int64_t *order, int64_t n,
                            int64_t *spare) {
    int64_t *key = spare + 2 * n;
    for (int64_t i = 0; i < n; i++) key[i] = run->value[v][order[i]];
    sort_pairs(key, order, n, spare);
    if (++v == values) return;
    double strips = ceil(pow((double)boxes_of(n), 1.0 / (values - v + 1)));
    int64_t rows = (int64_t)ceil((double)n / strips);
    rows = (rows + BOX_STRIP - 1) / BOX_STRIP * BOX_STRIP;
    for (int64_t at = 0; at < n; at += rows)
        run_tile(run, values, v, order + at, n - at < rows ? n - at : rows, spare);
}

/* Put the rows of a run into boxes; spare: 4 * length. */
static inline void run_pack(BoxRun *run, int values, int64_t *nodes, int64_t *spare) {
    int64_t n = run->length, *order = spare + 3 * n;
    for (int64_t i = 0; i < n; i++) order[i] = i;
    run_tile(run, values, 0, order, n, spare);
    sort_apply(run->time, order, n, spare);
    sort_apply(run->row, order, n, spare);
    for (int v = 0; v < values; v++) sort_apply(run->value[v], order, n, spare);
    run_box(run, values, nodes);
}

/* emit: rows [at, at + 8) of a run, those of them that fit.
 * touched: which of the 8 boxes of a node the ranges touch.
 * raw, run: one run for one query, from box `begin` on; -1: done, else the box to go on with, `out`
 * being full. */
#define BOXES(ISA, TARGET)                                                                         \
    TARGET static inline void boxes_emit_##ISA(const BoxRun *run, int values, const Query *q,      \
                                               int64_t at, Pairs *out) {                           \
        int64_t rest = run->length - at;                                                           \
        unsigned fits = rest < BOX ? (1u << rest) - 1 : 0xff;                                      \
        fits &= within_##ISA(run->time + at, q->lo, q->hi);                                        \
        for (int v = 0; v < values; v++)                                                           \
            fits &= within_##ISA(run->value[v] + at, q->from[v], q->to[v]);                        \
        compress_##ISA(run->row + at, fits, out->row + out->n);                                    \
        if (out->time) compress_##ISA(run->time + at, fits, out->time + out->n);                   \
        for (int k = 0; k < BOX; k++) out->probe[out->n + k] = q->number;                          \
        out->n += __builtin_popcount(fits);                                                        \
    }                                                                                              \
                                                                                                   \
    TARGET static inline unsigned boxes_touched_##ISA(const int64_t *node, int values,             \
                                                      const Query *q) {                            \
        unsigned touched = 0xff;                                                                   \
        for (int v = 0; v < values; v++, node += 2 * BOX)                                          \
            touched &= within_##ISA(node, INT64_MIN, q->to[v]) &                                   \
                       within_##ISA(node + BOX, q->from[v], INT64_MAX);                            \
        return touched;                                                                            \
    }                                                                                              \
                                                                                                   \
    TARGET static int64_t boxes_raw_##ISA(const BoxRun *run, int values, const Query *q,           \
                                          int64_t begin, Pairs *out) {                             \
        for (int64_t at = begin * BOX; at < run->length; at += BOX) {                              \
            if (out->n >= out->capacity) return at / BOX;                                          \
            boxes_emit_##ISA(run, values, q, at, out);                                             \
        }                                                                                          \
        return -1;                                                                                 \
    }                                                                                              \
                                                                                                   \
    TARGET static int64_t boxes_run_##ISA(const BoxRun *run, int values, const Query *q,           \
                                          int64_t begin, Pairs *out) {                             \
        int64_t node[MOST_LEVELS] = {0};                                                           \
        unsigned left[MOST_LEVELS];                                                                \
        int level = run->levels - 1;                                                               \
        left[level] = boxes_touched_##ISA(run->node[level], values, q);                            \
        left[level] &= 0xffu << (begin >> 3 * level);                                              \
        while (level < run->levels) {                                                              \
            if (!left[level]) {                                                                    \
                level++;                                                                           \
                continue;                                                                          \
            }                                                                                      \
            int64_t child = node[level] * BOX + __builtin_ctz(left[level]);                        \
            if (child << 3 * (level + 1) >= run->length) return -1; /* padding */                  \
            if (level == 0) {                                                                      \
                if (out->n >= out->capacity) return child;                                         \
                boxes_emit_##ISA(run, values, q, child * BOX, out);                                \
                left[0] &= left[0] - 1;                                                            \
                continue;                                                                          \
            }                                                                                      \
            left[level] &= left[level] - 1;                                                        \
            node[--level] = child;                                                                 \
            left[level] =                                                                          \
                boxes_touched_##ISA(run->node[level] + child * values * 2 * BOX, values, q);       \
            if (child == begin >> 3 * (level + 1))                                                 \
                left[level] &= 0xffu << (begin >> 3 * level & 7);                                  \
        }                                                                                          \
        return -1;                                                                                 \
    }

BOXES(plain, )
#ifdef WINDJOIN_X86
BOXES(avx2, TARGET_AVX2)
BOXES(avx512, TARGET_AVX512)
#endif

static inline int64_t boxes_run(const BoxRun *run, int values, const Query *q, int64_t begin,
                                Pairs *out) {
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512)
        return (run->rank ? boxes_run_avx512 : boxes_raw_avx512)(run, values, q, begin, out);
    if (isa_level() == ISA_AVX2)
        return (run->rank ? boxes_run_avx2 : boxes_raw_avx2)(run, values, q, begin, out);
#endif
    return (run->rank ? boxes_run_plain : boxes_raw_plain)(run, values, q, begin, out);
}

/* cursor: part = run + 1, position = box to go on with. */
static int boxes_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out) {
    Boxes *all = index;
    Query q;
    for (; cursor->probe < probe->n; cursor->probe++) {
        int64_t i = cursor->probe;
        int possible = probe->lo[i] <= probe->hi[i];
        q.number = (int32_t)i;
        q.lo = probe->lo[i];
        q.hi = probe->hi[i];
        for (int v = 0; v < all->values; v++) {
            q.from[v] = probe->from[v * probe->stride + i];
            q.to[v] = probe->to[v * probe->stride + i];
            possible &= q.from[v] <= q.to[v];
        }
        if (!possible) continue;
        int64_t r = cursor->part ? cursor->part - 1 : boxes_begin(all, q.lo);
        for (; r < all->last && all->runs[r].earliest_left <= q.hi; r++) {
            const BoxRun *run = all->runs + r;
            if (run->latest >= q.lo && run->earliest <= q.hi && run->length) {
                int64_t stopped = boxes_run(run, all->values, &q, cursor->position, out);
                if (stopped >= 0) {
                    cursor->part = r + 1;
                    cursor->position = stopped;
                    return 0;
                }
            }
            cursor->position = 0;
        }
        cursor->part = 0;
    }
    return 1;
}
#endif
