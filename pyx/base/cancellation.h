/* What a thread remembers between two looks up: when it will look up again, and whose orders it
 * obeys. */
#ifndef WINDJOIN_CANCELLATION_H
#define WINDJOIN_CANCELLATION_H
#include <stdint.h>

static _Thread_local int64_t cancellation_next;
static _Thread_local const volatile int *cancellation_stopped; /* NULL: this thread is of no crew */

static inline int64_t *cancellation_due(void) { return &cancellation_next; }
static inline void cancellation_obey(const volatile int *stopped) {
    cancellation_stopped = stopped;
}
static inline int cancellation_obeys(void) { return cancellation_stopped != 0; }
static inline int cancellation_is_stopped(void) {
    return cancellation_stopped != 0 && *cancellation_stopped;
}
#endif
