/* What crosses the border between a hop and an index: probes in, candidate pairs out. */
#ifndef WINDJOIN_HOP_H
#define WINDJOIN_HOP_H
#include <stdint.h>
#include <string.h>

/* Writes of whole vectors may run this many elements past a logical end. */
#define SLACK 16

/* Values of one column; row r of the stream lies at slot r & mask (mask -1: a plain array). */
typedef struct {
    const void *data;
    int64_t mask;
} Column;

/* The least and the greatest age of the rows that are asked for: how much earlier than the row of
 * stream `start` they are. */
typedef struct {
    int start;
    int64_t least, most;
} AskedAges;

/* n partial results ask for rows of one stream with lo <= time <= hi, or of an index that has a
 * `Locate` with lo <= row < hi. */
typedef struct {
    int64_t n;
    const int64_t *lo;
    const int64_t *hi;
    const int32_t *code; /* equality: key code, -1 matches nothing */
    const int64_t *from; /* band, inequality: from <= value <= to, floats as sortable();
                            function: its bound operands, as they are */
    const int64_t *to;
    const int64_t *bound; /* row number of the only stream bound so far, for Pairs.bound */
    int64_t stride; /* the range of value v of probe i lies at v * stride + i */
    int64_t *const *row; /* similarity: row numbers, by stream that is bound */
    void *prober;         /* similarity: what a Prober holds for the hop */
    const AskedAges *ages; /* that lo and hi were narrowed to, NULL: they were not */
} Probe;

/* Where a probe stopped because the pairs were full; all zero at the start. */
typedef struct {
    int64_t probe;    /* number of the partial result */
    int64_t part;     /* which of its lists, cells or slices */
    int64_t position; /* where in that; 0 also means "not begun" */
    int64_t stop;     /* where that ends */
} Cursor;

/* Candidates: partial result number, row number and, if wanted, the time of that row. */
typedef struct {
    int64_t n;
    int64_t capacity; /* arrays hold capacity + SLACK */
    int32_t *probe;
    int64_t *row;
    int64_t *time; /* NULL: not wanted */
    int64_t *bound; /* not NULL: wanted in place of `probe`, the row number Probe.bound of who
                       asked; only of an index that binds */
} Pairs;

/* How an index is asked: append candidates to `out` until every probe is served (1) or `out` is
 * full (0, and `cursor` says where to go on).  It may propose too much, never too little.  Without
 * memory for what it would have to remember it leaves probes UNANSWERED: what it appended is void.
 */
#define UNANSWERED (-1)
typedef int (*Serve)(void *index, const Probe *probe, Cursor *cursor, Pairs *out);

/* The bounds of n probes as partial results give them: lo <= time <= hi. */
typedef struct {
    int64_t *lo, *hi;
} TimeBounds;

/* The same as an index over sorted rows asks for them: first <= row < stop. */
typedef struct {
    int64_t *first, *stop;
} RowBounds;

/* What an index makes of the bounds of n probes before it is asked: rows, where the times lay.  An
 * index without one is asked by times. */
typedef RowBounds (*Locate)(void *index, int64_t n, TimeBounds bounds);

/* Set marks[bound] of every probe that finds a row at all, and say of how many that is so; asked
 * where the index decides alone. */
typedef int64_t (*Exists)(void *index, const Probe *probe, uint8_t *marks);

/* How a filter of its own kind goes over candidates; `bound` holds the row numbers, by partial
 * result, of the stream it names. */
typedef void (*Keep)(void *filter, const int64_t *bound, Pairs *pairs);

/* Doubles as integers of the same order (no NaN); -0.0 and 0.0 are one value. */
static inline int64_t sortable(double value) {
    int64_t bits;
    value += 0.0;
    memcpy(&bits, &value, 8);
    return bits ^ ((bits >> 63) & INT64_MAX);
}

/* The same of a double's bits. */
static inline int64_t sortable_bits(int64_t bits) {
    double value;
    memcpy(&value, &bits, 8);
    return sortable(value);
}

static inline double from_sortable(int64_t key) {
    double value;
    key ^= (key >> 63) & INT64_MAX;
    memcpy(&value, &key, 8);
    return value;
}

static inline int64_t add_saturated(int64_t a, int64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

static inline int64_t subtract_saturated(int64_t a, int64_t b) {
    int64_t difference;
    return __builtin_sub_overflow(a, b, &difference) ? (b < 0 ? INT64_MAX : INT64_MIN) : difference;
}
#endif
