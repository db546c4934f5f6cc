/* As-of joins: of the rows of one stream those nearest in time to each row of another, key by key.
 *
 * Of whole tables both sides are gone through in order of time, and every key remembers its last
 * row: one look at it for each row of either side.  Live, each key has its rows in order of time,
 * and a probe gets a run of them: those next to the time that asks.
 */
#ifndef WINDJOIN_ASOF_H
#define WINDJOIN_ASOF_H
#include <string.h>

#include "hop.h"

#define ASOF_AHEAD 16 /* rows before it is asked for, what a key remembers is fetched */

typedef struct {
    int64_t time;
    int64_t row; /* -1: none */
} AsofSlot;

/* Rows of both sides in order of time; codes are NULL where there is no key, -1 is a key of its own
 * that nothing equals. */
typedef struct {
    int64_t n_left, n_right;
    const int64_t *left_time, *right_time;
    const int32_t *left_code, *right_code;
} AsofSides;

static inline int32_t asof_code(const int32_t *code, int64_t row) { return code ? code[row] : 0; }

static inline void asof_fetch(const AsofSlot *slot, const int32_t *code, int64_t row, int64_t n) {
    if (code && row >= 0 && row < n && code[row] >= 0) __builtin_prefetch(slot + code[row], 1);
}

/* What was the newest row of its key becomes the one before `row`. */
static inline void asof_note(AsofSlot *slot, const AsofSides *sides, int64_t row, int64_t *chain) {
    int32_t code = asof_code(sides->right_code, row);
    if (code < 0) return;
    if (chain) chain[row] = slot[code].row;
    slot[code] = (AsofSlot){sides->right_time[row], row};
}

/* found[i] of rows [first, last) on the left: the newest row of their key on the right at or before
 * them, at most `tolerance` older; -1: none.  Rows of the right from `at` on are still to come;
 * what is returned is `at` for the next rows.  chain[j]: the row of its key before j, unless NULL.
 */
static inline int64_t asof_backward(const AsofSides *sides, AsofSlot *slot, int64_t first,
                                    int64_t last, int64_t at, uint64_t tolerance, int64_t *found,
                                    int64_t *chain) {
    for (int64_t i = first; i < last; i++) {
        int64_t time = sides->left_time[i];
        asof_fetch(slot, sides->left_code, i + ASOF_AHEAD, last);
        for (; at < sides->n_right && sides->right_time[at] <= time; at++) {
            asof_fetch(slot, sides->right_code, at + ASOF_AHEAD, sides->n_right);
            asof_note(slot, sides, at, chain);
        }
        int32_t code = asof_code(sides->left_code, i);
        found[i] = -1;
        if (code < 0 || slot[code].row < 0) continue;
        if ((uint64_t)time - (uint64_t)slot[code].time <= tolerance) found[i] = slot[code].row;
    }
    return at;
}

/* The same the other way round: the oldest row at or after them, or after them if `strict`; rows
 * last - 1 down to first, and those of the right from `at` down. */
static inline int64_t asof_forward(const AsofSides *sides, AsofSlot *slot, int64_t first,
                                   int64_t last, int64_t at, uint64_t tolerance, int strict,
                                   int64_t *found, int64_t *chain) {
    for (int64_t i = last - 1; i >= first; i--) {
        int64_t time = sides->left_time[i];
        asof_fetch(slot, sides->left_code, i - ASOF_AHEAD, last);
        for (; at >= 0 && sides->right_time[at] >= time; at--) {
            if (strict && sides->right_time[at] == time) break;
            asof_fetch(slot, sides->right_code, at - ASOF_AHEAD, sides->n_right);
            asof_note(slot, sides, at, chain);
        }
        int32_t code = asof_code(sides->left_code, i);
        found[i] = -1;
        if (code < 0 || slot[code].row < 0) continue;
        if ((uint64_t)slot[code].time - (uint64_t)time <= tolerance) found[i] = slot[code].row;
    }
    return at;
}

/* What both ways found (NULL: was not gone), and how many partners a row keeps. */
typedef struct {
    const int64_t *back, *ahead;
    const int64_t *before, *after; /* chains; NULL where one partner is kept */
    uint64_t tolerance_back, tolerance_ahead;
    int64_t most;
} AsofFound;

/* Pairs of left rows [first, last), nearest first; of equal distance the earlier.  Their number;
 * left is NULL: they are counted only. */
static inline int64_t asof_pairs(const AsofSides *sides, const AsofFound *f, int64_t first,
                                 int64_t last, int64_t *left, int64_t *right) {
    int64_t n = 0;
    for (int64_t i = first; i < last; i++) {
        uint64_t time = (uint64_t)sides->left_time[i];
        int64_t b = f->back ? f->back[i] : -1, a = f->ahead ? f->ahead[i] : -1;
        for (int64_t k = 0; k < f->most && (b >= 0 || a >= 0); k++) {
            uint64_t behind = b < 0 ? 0 : time - (uint64_t)sides->right_time[b];
            uint64_t before = a < 0 ? 0 : (uint64_t)sides->right_time[a] - time;
            int64_t taken;
            if (b >= 0 && (a < 0 || behind <= before)) {
                taken = b;
                b = f->before ? f->before[b] : -1;
                if (b >= 0 && time - (uint64_t)sides->right_time[b] > f->tolerance_back) b = -1;
            } else {
                taken = a;
                a = f->after ? f->after[a] : -1;
                if (a >= 0 && (uint64_t)sides->right_time[a] - time > f->tolerance_ahead) a = -1;
            }
            if (left) left[n] = i, right[n] = taken;
            n++;
        }
    }
    return n;
}

/* -- live ---------------------------------------------------------------------------------------
 */

typedef struct {
    AsofSlot *slot; /* in order of time, equal times as they arrived */
    int32_t length;
    int32_t capacity;
} AsofRun;

typedef struct {
    AsofRun *run; /* by code of the key; one if there is no key */
    int64_t n_runs;
    int keyed, back, ahead;
    int64_t window_back, window_ahead, most;
} AsofRuns;

/* First k in [0, run->length) with a time not before `time`. */
static inline int64_t asof_search(const AsofRun *run, int64_t time) {
    int64_t low = 0, high = run->length;
    while (low < high) {
        int64_t middle = low + ((high - low) >> 1);
        if (run->slot[middle].time < time) low = middle + 1;
        else high = middle;
    }
    return low;
}

static inline int64_t asof_search_after(const AsofRun *run, int64_t time) {
    return time == INT64_MAX ? run->length : asof_search(run, time + 1);
}

/* Rows [*from, *to) of a run: the `most` newest and oldest ones around the time that asks. */
static inline void asof_range(const AsofRuns *all, const AsofRun *run, int64_t lo, int64_t hi,
                              int64_t *from, int64_t *to) {
    int64_t begin = asof_search(run, lo), end = asof_search_after(run, hi), middle = end;
    if (all->ahead) {
        /* sums of windows are less than the range of int64, so one of the bounds is exact */
        int64_t time = lo == INT64_MIN ? hi - all->window_ahead : lo + all->window_back;
        middle = all->back ? asof_search_after(run, time) : begin;
        if (end - middle > all->most) end = middle + all->most;
    }
    if (middle - begin > all->most) begin = middle - all->most;
    *from = begin;
    *to = end;
}

static inline int asof_serve(void *state, const Probe *probe, Cursor *cursor, Pairs *out) {
    const AsofRuns *all = state;
    int64_t i = cursor->probe, resume = cursor->position, from, to;
    for (; i < probe->n; i++, resume = 0) {
        int64_t code = all->keyed ? probe->code[i] : 0;
        if (code < 0 || code >= all->n_runs || !all->run[code].length) continue;
        const AsofRun *run = all->run + code;
        asof_range(all, run, probe->lo[i], probe->hi[i], &from, &to);
        for (from += resume; from < to; from++, resume++) {
            if (out->n >= out->capacity) {
                cursor->probe = i;
                cursor->position = resume;
                return 0;
            }
            out->probe[out->n] = (int32_t)i;
            out->row[out->n] = run->slot[from].row;
            if (out->time) out->time[out->n] = run->slot[from].time;
            out->n++;
        }
    }
    cursor->probe = i;
    cursor->position = 0;
    return 1;
}
#endif
