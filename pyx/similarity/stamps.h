/* How many items each of many sets has in common with one: that one's items are stamped in an
 * array. */
#ifndef WINDJOIN_STAMPS_H
#define WINDJOIN_STAMPS_H
#include "measures.h"

#define MOST_STAMPS (1 << 18) /* codes: an array that stays in a near cache */
/* sets in a row that one is compared with; for fewer it takes too long */
#define FEWEST_STAMPED 4

typedef struct {
    uint8_t *stamp; /* by code; all zero between two sets; NULL: there is none yet */
    int64_t room;
} Stamps;

/* Stamp a set; 0: it has too great codes, or there is no memory. */
static inline int stamps_set(Stamps *all, Components set) {
    const int32_t *code = set.at;
    int64_t needed = set.n > 0 ? (int64_t)code[set.n - 1] + 1 : 1;
    if (set.n < 0 || needed > MOST_STAMPS) return 0;
    if (needed > all->room) {
        int64_t room = 2 * needed < MOST_STAMPS ? 2 * needed : MOST_STAMPS;
        uint8_t *wider = calloc((size_t)room, 1);
        if (!wider) return 0;
        free(all->stamp);
        all->stamp = wider;
        all->room = room;
    }
    for (int64_t i = 0; i < set.n; i++) all->stamp[code[i]] = 1;
    return 1;
}

static inline void stamps_clear(Stamps *all, Components set) {
    for (int64_t i = 0; i < set.n; i++) all->stamp[((const int32_t *)set.at)[i]] = 0;
}

/* Items of another set that are stamped. */
static inline int64_t stamps_count(const Stamps *all, Components set) {
    const int32_t *code = set.at;
    int64_t n = set.n, common = 0;
    while (n > 0 && code[n - 1] >= all->room) n--;
    for (int64_t i = 0; i < n; i++) common += all->stamp[code[i]];
    return common;
}
#endif
