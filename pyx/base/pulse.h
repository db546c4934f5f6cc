/* What a thread remembers between two looks up: when it will look up again, and whose orders it obeys. */
#ifndef WINDJOIN_PULSE_H
#define WINDJOIN_PULSE_H
#include <stdint.h>

static _Thread_local int64_t pulse_next;
static _Thread_local const volatile int *pulse_stopped; /* NULL: this thread is of no crew */

static inline int64_t *pulse_due(void) { return &pulse_next; }
static inline void pulse_obey(const volatile int *stopped) { pulse_stopped = stopped; }
static inline int pulse_obeys(void) { return pulse_stopped != 0; }
static inline int pulse_is_stopped(void) { return pulse_stopped != 0 && *pulse_stopped; }
#endif
