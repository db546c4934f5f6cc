/* XXH64, as its specification has it: a sum of bytes that takes as long as reading them. */
#ifndef WINDJOIN_CHECKSUM_H
#define WINDJOIN_CHECKSUM_H
#include <stdint.h>
#include <string.h>

#define SUM_1 0x9E3779B185EBCA87ull
#define SUM_2 0xC2B2AE3D27D4EB4Full
#define SUM_3 0x165667B19E3779F9ull
#define SUM_4 0x85EBCA77C2B2AE63ull
#define SUM_5 0x27D4EB2F165667C5ull

static inline uint64_t sum_turned(uint64_t x, int by) { return x << by | x >> (64 - by); }

static inline uint64_t sum_word(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

static inline uint64_t sum_round(uint64_t lane, uint64_t word) {
    return sum_turned(lane + word * SUM_2, 31) * SUM_1;
}

static inline uint64_t sum_merged(uint64_t sum, uint64_t lane) {
    return (sum ^ sum_round(0, lane)) * SUM_1 + SUM_4;
}

/* What is left behind the last 32 bytes, and the last mixing. */
static inline uint64_t sum_rest(uint64_t sum, const uint8_t *at, int64_t n) {
    for (; n >= 8; n -= 8, at += 8)
        sum = sum_turned(sum ^ sum_round(0, sum_word(at)), 27) * SUM_1 + SUM_4;
    if (n >= 4) {
        uint32_t half;
        memcpy(&half, at, 4);
        sum = sum_turned(sum ^ half * SUM_1, 23) * SUM_2 + SUM_3;
        n -= 4;
        at += 4;
    }
    for (; n; n--, at++) sum = sum_turned(sum ^ *at * SUM_5, 11) * SUM_1;
    sum = (sum ^ sum >> 33) * SUM_2;
    sum = (sum ^ sum >> 29) * SUM_3;
    return sum ^ sum >> 32;
}

/* A sum that goes on: of n bytes so far, the last n % 32 of which wait for more. */
typedef struct {
    uint64_t lane[4];
    uint8_t waiting[32];
    int64_t n;
} Sum;

static inline void sum_begin(Sum *sum) {
    *sum = (Sum){.lane = {SUM_1 + SUM_2, SUM_2, 0, 0 - SUM_1}};
}

static inline void sum_block(uint64_t *lane, const uint8_t *at) {
    for (int k = 0; k < 4; k++) lane[k] = sum_round(lane[k], sum_word(at + 8 * k));
}

static inline void sum_add(Sum *sum, const uint8_t *at, int64_t n) {
    int64_t waiting = sum->n % 32, fill = n < 32 - waiting ? n : 32 - waiting;
    sum->n += n;
    if (waiting) {
        memcpy(sum->waiting + waiting, at, (size_t)fill);
        if (waiting + fill < 32) return;
        sum_block(sum->lane, sum->waiting);
        at += fill;
        n -= fill;
    }
    uint64_t lane[4];
    memcpy(lane, sum->lane, sizeof(lane));
    for (; n >= 32; n -= 32, at += 32) sum_block(lane, at);
    memcpy(sum->lane, lane, sizeof(lane));
    if (n) memcpy(sum->waiting, at, (size_t)n);
}

static inline uint64_t sum_value(const Sum *all) {
    const uint64_t *lane = all->lane;
    uint64_t sum = SUM_5;
    if (all->n >= 32) {
        sum = sum_turned(lane[0], 1) + sum_turned(lane[1], 7) + sum_turned(lane[2], 12) +
              sum_turned(lane[3], 18);
        for (int k = 0; k < 4; k++) sum = sum_merged(sum, lane[k]);
    }
    return sum_rest(sum + (uint64_t)all->n, all->waiting, all->n % 32);
}
#endif
