/* How many items each of many sets has in common with one: that one's items are stamped in an
 * array. */
#ifndef WINDJOIN_STAMPS_H
#define WINDJOIN_STAMPS_H
#include "measures.h"

#define MOST_STAMPS (1 << 18) /* codes: an array that stays in a near cache */
/* sets in a row that one is compared with; for fewer it takes too long */
#define FEWEST_STAMPED 4
#define MOST_COMPARED 32 /* items of a set whose items are compared one by one */

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

#ifdef WINDJOIN_X86
/* Items of two sets in common, by comparing each of the few with all of the others at once. */
TARGET_AVX512 static inline int64_t few_in_common_avx512(const int32_t *few, int64_t n_few,
                                                         const int32_t *code, int64_t n) {
    int64_t common = 0;
    for (int64_t first = 0; first < n; first += 16) {
        const __mmask16 here =
            n - first < 16 ? (__mmask16)((1u << (n - first)) - 1) : (__mmask16)0xffff;
        const __m512i codes = _mm512_maskz_loadu_epi32(here, code + first);
        __mmask16 found = 0;
        for (int64_t i = 0; i < n_few; i++)
            found |= _mm512_mask_cmpeq_epi32_mask(here, codes, _mm512_set1_epi32(few[i]));
        common += __builtin_popcount(found);
    }
    return common;
}
#endif

/* Items of another set that are stamped. */
static inline int64_t stamps_count(const Stamps *all, Components set) {
    const int32_t *code = set.at;
    int64_t n = set.n, common = 0;
    while (n > 0 && code[n - 1] >= all->room) n--;
    for (int64_t i = 0; i < n; i++) common += all->stamp[code[i]];
    return common;
}
#endif
