/* Dictionaries: equal values get equal dense codes, by open addressing with linear probing. */
#ifndef WINDJOIN_KEYS_H
#define WINDJOIN_KEYS_H
#include "memory.h"

static inline uint64_t mix64(uint64_t x) {
    x ^= x >> 32;
    x *= 0x9E3779B97F4A7C15ull;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9ull;
    return x ^ (x >> 32);
}

static inline uint64_t hash_bytes(const uint8_t *data, int64_t n) {
    uint64_t h = 0x9E3779B97F4A7C15ull ^ (uint64_t)n, word = 0;
    for (; n > 8; n -= 8, data += 8) {
        memcpy(&word, data, 8);
        h = mix64(h ^ word) * 0xD6E8FEB86659FD93ull;
    }
    word = 0;
    copy_bytes(&word, data, (size_t)n);
    return mix64(h ^ word);
}

typedef struct {
    int64_t key; /* the value, or the hash of the bytes */
    int32_t code;
} Entry;

/* The entry of an integer key, or the vacant one where it belongs (code < 0). */
static inline Entry *find_integer(Entry *table, uint64_t wrap, int64_t key) {
    uint64_t at = mix64((uint64_t)key) & wrap;
    while (table[at].code >= 0 && table[at].key != key) at = (at + 1) & wrap;
    return table + at;
}
#endif
