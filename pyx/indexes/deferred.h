/* Rows that an index takes later, in time order: a queue whose columns lie in one array. */
#ifndef WINDJOIN_DEFERRED_H
#define WINDJOIN_DEFERRED_H
#include "memory.h"
#include "times.h"

typedef struct {
    int64_t *time, *value, *row;
    int64_t head, tail, room;
    int64_t most[2]; /* rows at a time, before and since the last look at the room */
} Deferred;

/* The time of the first row. */
static inline int64_t deferred_from(const Deferred *all) {
    return all->head < all->tail ? all->time[all->head] : INT64_MAX;
}

/* Whether rows follow those that wait in time order. */
static inline int deferred_follow(const Deferred *all, const int64_t *time, int64_t n) {
    return (all->head == all->tail || time[0] >= all->time[all->tail - 1]) &&
           times_in_order(time, n);
}

/* Add rows that follow; 0: no memory.  Room doubles only if more than half of it is in use. */
static inline int deferred_add(Deferred *all, int64_t n, const int64_t *value, const int64_t *time,
                               const int64_t *row) {
    int64_t used = all->tail - all->head;
    if (!n) return 1;
    if (all->tail + n > all->room) {
        int64_t room = 2 * (used + n) > all->room ? 2 * (used + n) : all->room;
        int64_t *fresh = new_array(3 * room);
        if (!fresh) return 0;
        int64_t *column[] = {all->time, all->value, all->row};
        for (int k = 0; used && k < 3; k++)
            memcpy(fresh + k * room, column[k] + all->head, (size_t)used * sizeof(int64_t));
        free_array(all->time);
        all->time = fresh;
        all->value = fresh + room;
        all->row = fresh + 2 * room;
        all->head = 0;
        all->tail = used;
        all->room = room;
    }
    memcpy(all->time + all->tail, time, (size_t)n * sizeof(int64_t));
    memcpy(all->value + all->tail, value, (size_t)n * sizeof(int64_t));
    memcpy(all->row + all->tail, row, (size_t)n * sizeof(int64_t));
    all->tail += n;
    if (used + n > all->most[1]) all->most[1] = used + n;
    return 1;
}

/* Give back the room if nobody waits and few have, at two looks one after the other. */
static inline void deferred_look(Deferred *all) {
    int64_t most = all->most[0] > all->most[1] ? all->most[0] : all->most[1];
    if (all->head == all->tail && all->room > 8 * most) {
        free_array(all->time);
        *all = (Deferred){0};
    }
    all->most[0] = all->most[1];
    all->most[1] = all->tail - all->head;
}

static inline void deferred_drop(Deferred *all, int64_t n) {
    all->head += n;
    if (all->head == all->tail) all->head = all->tail = 0;
}
#endif
