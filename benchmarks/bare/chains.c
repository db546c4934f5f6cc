/* Three streams of equal keys by chains from the newest row of a key to older ones, in order of time. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

/* n rows of each stream; room: for so many results in `found`; returns nanoseconds, -1: too little room. */
int64_t chains(int64_t n, const int64_t *const time[3], const int64_t *const key[3], int64_t keys,
               int64_t window, int64_t room, int64_t *const found[3], int64_t *results) {
    int64_t begun = nanoseconds(), at[3] = {0, 0, 0}, count = 0;
    int32_t *newest = malloc(3 * keys * sizeof(int32_t)), *older = malloc(3 * n * sizeof(int32_t));
    memset(newest, 0xff, 3 * keys * sizeof(int32_t));
    for (int64_t step = 0; step < 3 * n; step++) {
        int s = 0;
        for (int o = 1; o < 3; o++)
            if (at[o] < n && (at[s] == n || time[o][at[o]] < time[s][at[s]])) s = o;
        int64_t row = at[s]++, now = time[s][row], k = key[s][row];
        int p = s == 0 ? 1 : 0, q = s == 2 ? 1 : 2;
        int32_t a = newest[3 * k + p], b = newest[3 * k + q];
        if (a >= 0 && b >= 0 && now - time[p][a] <= window && now - time[q][b] <= window)
            for (; a >= 0 && now - time[p][a] <= window; a = older[p * n + a])
                for (int32_t c = b; c >= 0 && now - time[q][c] <= window; c = older[q * n + c]) {
                    if (count == room) return -1;
                    found[s][count] = row;
                    found[p][count] = a;
                    found[q][count++] = c;
                }
        older[s * n + row] = newest[3 * k + s];
        newest[3 * k + s] = (int32_t)row;
    }
    free(newest);
    free(older);
    *results = count;
    return nanoseconds() - begun;
}
