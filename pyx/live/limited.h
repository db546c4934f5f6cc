/* An index that is asked for rows of some ages only, whatever index it is, and counts what it
 * gives.
 *
 * The age of a row is the time of the start row less its own: negative if it is the later one.
 */
#ifndef WINDJOIN_LIMITED_H
#define WINDJOIN_LIMITED_H
#include "hop.h"

#define MOST_AGES 8 /* ranges of ages */

/* What all limits of one pipeline are told, by who runs it. */
typedef struct {
    int limited;  /* ask for the chosen ages only */
    int learning; /* count by basic window */
} Conduct;

typedef struct {
    const Conduct *conduct;
    Serve serve; /* of the index that is asked */
    Locate locate;
    void *index;
    int start;                /* stream of the start rows */
    const Column *start_time; /* of the start rows */
    const Column *time;       /* of the rows that are looked for */
    int n_ages;               /* ranges of ages, apart */
    int64_t least_age[MOST_AGES];
    int64_t most_age[MOST_AGES];
    int range;    /* that is asked for now */
    AskedAges asked; /* the same */
    Cursor inner; /* in that */
    int64_t *lo;
    int64_t *hi;
    int64_t given; /* candidates, in all */
    int looks;     /* the index looks at every row: these are counted, not what it gives */
    const int64_t *head; /* rows [head, tail) are in the window */
    const int64_t *tail;
    /* basic windows: one is `width` long, number `first` begins at age 0 */
    int64_t width;
    int64_t first;
    int64_t n_windows;
    double *proposed; /* candidates by basic window */
    /* of the hop before: partial results that came from there, by basic window */
    int before; /* its stream, -1: none */
    const Column *before_time;
    int64_t before_first;
    int64_t before_windows;
    double *arrived;
} AgeLimits;

/* The basic window of an age, or the nearest that there is. */
static inline int64_t basic_window(int64_t age, int64_t width, int64_t first, int64_t n) {
    int64_t number = age >= 0 ? age / width : -((-(age + 1)) / width) - 1;
    number += first;
    return number < 0 ? 0 : number >= n ? n - 1 : number;
}

static inline int64_t time_at(const Column *time, int64_t row) {
    return ((const int64_t *)time->data)[row & time->mask];
}

/* Whether an age lies in one of the chosen ranges. */
static inline int limits_chosen(const AgeLimits *all, int64_t age) {
    for (int k = 0; k < all->n_ages; k++)
        if (age >= all->least_age[k] && age <= all->most_age[k]) return 1;
    return 0;
}

/* Rows of the window with lo <= time <= hi, if they came in order of time. */
static inline int64_t rows_between(const AgeLimits *all, int64_t lo, int64_t hi) {
    int64_t first = *all->head, past = *all->tail, end = *all->tail;
    if (lo > hi) return 0;
    while (first < past) {
        int64_t middle = first + ((past - first) >> 1);
        if (time_at(all->time, middle) < lo) first = middle + 1;
        else past = middle;
    }
    past = end;
    end = first;
    while (first < past) {
        int64_t middle = first + ((past - first) >> 1);
        if (time_at(all->time, middle) <= hi) first = middle + 1;
        else past = middle;
    }
    return first - end;
}

/* Of an index that looks at every row between bounds of time: rows, in all and by basic window. */
static inline void limits_count_rows(AgeLimits *all, const Probe *probe) {
    for (int64_t i = 0; i < probe->n; i++) all->given += rows_between(all, all->lo[i], all->hi[i]);
    if (!all->conduct->learning) return;
    for (int64_t i = 0; i < probe->n; i++) {
        int64_t t = time_at(all->start_time, probe->row[all->start][i]);
        for (int64_t k = 0; k < all->n_windows; k++) {
            int64_t least = (k - all->first) * all->width, most = least + all->width - 1;
            int64_t lo = subtract_saturated(t, most), hi = subtract_saturated(t, least);
            if (lo < all->lo[i]) lo = all->lo[i];
            if (hi > all->hi[i]) hi = all->hi[i];
            all->proposed[k] += (double)rows_between(all, lo, hi);
        }
    }
}

/* Bounds of all probes in the present range of ages. */
static inline void limits_narrow(AgeLimits *all, const Probe *probe) {
    const int64_t *row = probe->row[all->start];
    memset(&all->inner, 0, sizeof(Cursor));
    if (!all->conduct->limited) {
        memcpy(all->lo, probe->lo, (size_t)probe->n * sizeof(int64_t));
        memcpy(all->hi, probe->hi, (size_t)probe->n * sizeof(int64_t));
    } else {
        int64_t least = all->least_age[all->range], most = all->most_age[all->range];
        all->asked = (AskedAges){all->start, least, most};
        for (int64_t i = 0; i < probe->n; i++) {
            int64_t t = time_at(all->start_time, row[i]);
            int64_t lo = subtract_saturated(t, most), hi = subtract_saturated(t, least);
            all->lo[i] = lo > probe->lo[i] ? lo : probe->lo[i];
            all->hi[i] = hi < probe->hi[i] ? hi : probe->hi[i];
        }
    }
    if (all->looks) limits_count_rows(all, probe);
    if (all->locate) all->locate(all->index, probe->n, (TimeBounds){all->lo, all->hi});
}

static inline void limits_count_arrived(AgeLimits *all, const Probe *probe) {
    const int64_t *start = probe->row[all->start], *row = probe->row[all->before];
    for (int64_t i = 0; i < probe->n; i++) {
        int64_t age = subtract_saturated(time_at(all->start_time, start[i]),
                                         time_at(all->before_time, row[i]));
        all->arrived[basic_window(age, all->width, all->before_first, all->before_windows)]++;
    }
}

static inline void limits_count_proposed(AgeLimits *all, const Probe *probe, const Pairs *out,
                                         int64_t from) {
    const int64_t *start = probe->row[all->start];
    for (int64_t k = from; k < out->n; k++) {
        int64_t row = out->bound ? out->bound[k] : start[out->probe[k]];
        int64_t age =
            subtract_saturated(time_at(all->start_time, row), time_at(all->time, out->row[k]));
        all->proposed[basic_window(age, all->width, all->first, all->n_windows)]++;
    }
}

/* As any index; `cursor->part` says whether it was asked before. */
static int limits_serve(void *state, const Probe *probe, Cursor *cursor, Pairs *out) {
    AgeLimits *all = state;
    int n_ranges = all->conduct->limited ? all->n_ages : 1, done = 1;
    int64_t from = out->n;
    Probe narrow;
    if (!(all->conduct->limited | all->conduct->learning | all->looks) && !all->locate) {
        done = all->serve(all->index, probe, cursor, out); /* nothing to do but count */
        all->given += out->n - from;
        return done;
    }
    narrow = *probe;
    narrow.lo = all->lo;
    narrow.hi = all->hi;
    narrow.ages = all->conduct->limited ? &all->asked : NULL;
    if (!cursor->part) {
        cursor->part = 1;
        all->range = 0;
        if (all->conduct->learning && all->before >= 0) limits_count_arrived(all, probe);
        if (n_ranges) limits_narrow(all, probe);
    }
    while (all->range < n_ranges) {
        done = all->serve(all->index, &narrow, &all->inner, out);
        if (done != 1) break;
        all->range++;
        if (all->range < n_ranges) limits_narrow(all, probe);
        if (out->n >= out->capacity && all->range < n_ranges) {
            done = 0;
            break;
        }
    }
    if (done < 0) return done;
    if (all->looks) return done;
    all->given += out->n - from;
    if (all->conduct->learning) limits_count_proposed(all, probe, out, from);
    return done;
}
#endif
