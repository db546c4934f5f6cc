/* |x - y| <= limit of every row and its window: a mask of bytes for a block of rows, then its bits. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

static int64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

static __attribute__((noinline)) void mask_of(double x, const double *y, int64_t n, double limit, uint8_t *mask) {
    for (int64_t k = 0; k < n; k++) mask[k] = fabs(x - y[k]) <= limit;
}

/* Rows i - reach .. i + reach of `b` for every row i of `a`; returns nanoseconds. */
int64_t masks(int64_t n, const double *a, const double *b, int64_t reach, double limit, int64_t *const found[2],
              int64_t *results) {
    uint8_t mask[8192];
    int64_t begun = nanoseconds(), count = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t first = i < reach ? 0 : i - reach, stop = i + reach + 1 < n ? i + reach + 1 : n;
        mask_of(a[i], b + first, stop - first, limit, mask);
        memset(mask + (stop - first), 0, 8);
        for (int64_t at = 0; at < stop - first; at += 8) {
            uint64_t word;
            memcpy(&word, mask + at, 8);
            for (; word; word &= word - 1) {
                found[0][count] = i;
                found[1][count++] = first + at + (__builtin_ctzll(word) >> 3);
            }
        }
    }
    *results = count;
    return nanoseconds() - begun;
}
