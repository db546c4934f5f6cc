/* When a long run should look up: whether somebody pressed Ctrl-C, and how far it has come. */
#ifndef WINDJOIN_CLOCK_H
#define WINDJOIN_CLOCK_H
#include <stdint.h>
#include <time.h>

#define CANCELLATION_NANOSECONDS 50000000

/* A clock that costs a few nanoseconds to read; it need not be finer than a tick of the system. */
static inline int64_t clock_nanoseconds(void) {
    struct timespec now;
#ifdef CLOCK_MONOTONIC_COARSE
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
#else
    clock_gettime(CLOCK_MONOTONIC, &now);
#endif
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* One that is as fine as can be, to measure with. */
static inline int64_t fine_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
#endif
