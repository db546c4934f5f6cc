/* Loops over times: whether they are in order, what windows they open, which of them have expired.
 *
 * Each is written once and compiled for every instruction set.
 */
#ifndef WINDJOIN_TIMES_H
#define WINDJOIN_TIMES_H
#include "hop.h"
#include "isa.h"

/* Whether n times never decrease. */
#define TIMES_IN_ORDER(NAME, TARGET)                                                               \
    TARGET static int NAME(const int64_t *time, int64_t n) {                                       \
        int64_t ordered = 1;                                                                       \
        for (int64_t i = 1; i < n; i++) ordered &= time[i] >= time[i - 1];                         \
        return (int)ordered;                                                                       \
    }

/* What can meet rows at `time`: `before` >= 0 back to `after` >= 0 ahead. */
#define TIMES_WINDOWS(NAME, TARGET)                                                                \
    TARGET static void NAME(const int64_t *time, int64_t n, int64_t before, int64_t after,         \
                            int64_t *restrict lo, int64_t *restrict hi) {                          \
        int64_t beyond = 0;                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                          \
            int64_t t = time[i];                                                                   \
            lo[i] = (int64_t)((uint64_t)t - (uint64_t)before);                                     \
            hi[i] = (int64_t)((uint64_t)t + (uint64_t)after);                                      \
            beyond |= (~lo[i] & t) | (hi[i] & ~t); /* sign: it went round the end */               \
        }                                                                                          \
        for (int64_t i = 0; beyond < 0 && i < n; i++) {                                            \
            lo[i] = subtract_saturated(time[i], before);                                           \
            hi[i] = add_saturated(time[i], after);                                                 \
        }                                                                                          \
    }

/* How many of n times come before the first that is not less than `horizon`. */
#define TIMES_EXPIRED(NAME, TARGET)                                                                \
    TARGET static int64_t NAME(const int64_t *time, int64_t n, int64_t horizon) {                  \
        int64_t i = 0;                                                                             \
        for (; i + 8 <= n; i += 8) {                                                               \
            int64_t all = 1;                                                                       \
            for (int k = 0; k < 8; k++) all &= time[i + k] < horizon;                              \
            if (!all) break;                                                                       \
        }                                                                                          \
        while (i < n && time[i] < horizon) i++;                                                    \
        return i;                                                                                  \
    }

#define TIMES(SET, TARGET)                                                                         \
    TIMES_IN_ORDER(times_in_order_##SET, TARGET)                                                   \
    TIMES_WINDOWS(times_windows_##SET, TARGET)                                                     \
    TIMES_EXPIRED(times_expired_##SET, TARGET)

TIMES(plain, )
#ifdef WINDJOIN_X86
TIMES(avx2, TARGET_AVX2)
TIMES(avx512, TARGET_AVX512)
#define TIMES_BEST(LOOP, ...)                                                                      \
    (isa_level() == ISA_AVX512 ? LOOP##_avx512(__VA_ARGS__)                                        \
     : isa_level() == ISA_AVX2 ? LOOP##_avx2(__VA_ARGS__)                                          \
                               : LOOP##_plain(__VA_ARGS__))
#else
#define TIMES_BEST(LOOP, ...) LOOP##_plain(__VA_ARGS__)
#endif

static inline int times_in_order(const int64_t *time, int64_t n) {
    return TIMES_BEST(times_in_order, time, n);
}

static inline void times_windows(const int64_t *time, int64_t n, int64_t before, int64_t after,
                                 int64_t *lo, int64_t *hi) {
    TIMES_BEST(times_windows, time, n, before, after, lo, hi);
}

static inline int64_t times_expired(const int64_t *time, int64_t n, int64_t horizon) {
    return TIMES_BEST(times_expired, time, n, horizon);
}

/* The same in a ring: the first of rows [head, tail) that has not expired. */
static inline int64_t times_first_alive(const Column *time, int64_t head, int64_t tail,
                                        int64_t horizon) {
    const int64_t *slots = time->data;
    while (head < tail) {
        int64_t at = head & time->mask, whole = tail - head, here = time->mask + 1 - at;
        if (here > whole) here = whole;
        int64_t expired = times_expired(slots + at, here, horizon);
        head += expired;
        if (expired < here) break;
    }
    return head;
}
#endif
