/* The life of an index: in which order it may be told what, checked in the debug build.
 *
 *    +---------------------------------------+
 *    v                                       |
 *   insert -> probe ... probe -> expire -> probe ... (compact)
 *
 * insert   rows of one call are in order of time; rows of later calls may be earlier
 * probe    before and after any other step, never during one
 * expire   horizons never go back; rows before one are proposed to nobody who asks from there on
 * compact  when no probe is under way; only what `expire` has named goes
 *
 * `load`, of whole tables, is one insert; what is loaded neither expires nor compacts.
 */
#ifndef WINDJOIN_LIFECYCLE_H
#define WINDJOIN_LIFECYCLE_H
#include <assert.h>
#include <stdint.h>

typedef struct {
    int64_t horizon; /* the last one */
} Life;

static inline void life_begins(Life *life) { life->horizon = INT64_MIN; }

static inline void life_inserts(Life *life, int64_t n, const int64_t *time) {
    (void)life, (void)time;
    for (int64_t i = 1; i < n; i++)
        assert(time[i - 1] <= time[i] && "rows of one insert are in order");
}

static inline void life_expires(Life *life, int64_t horizon) {
    assert(horizon >= life->horizon && "horizons never go back");
    life->horizon = horizon;
}
#endif
