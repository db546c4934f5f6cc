/* Byte strings in two words and a length, so that most are compared, and hashed, without a look at
 * their bytes.
 *
 *   "abc"                 first: "abc"           last: 0
 *   "abcdef"              first: "abcd", "cdef"  last: 0
 *   "abcdefgh"            first: "abcdefgh"      last: 0
 *   "abcdefghijk"         first: "abcdefgh"      last: "defghijk"
 *   longer than 16 bytes  first: a sum to try    last: the last eight bytes
 */
#ifndef WINDJOIN_WORDS_H
#define WINDJOIN_WORDS_H
#include <stdint.h>
#include <string.h>

#define WORDS_WHOLE 16 /* bytes that two words hold */
#define WORDS_HASHED 8 /* bytes that one does: of so many, or fewer, equal hashes are enough */

typedef struct {
    uint64_t first, last;
    int64_t length;
} Words;

static inline uint64_t words_eight(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}

static inline uint64_t words_four(const uint8_t *bytes) {
    uint32_t half;
    memcpy(&half, bytes, 4);
    return half;
}

static inline Words words_of(const uint8_t *bytes, int64_t n) {
    Words words = {0, 0, n};
    if (n == WORDS_HASHED) {
        words.first = words_eight(bytes);
    } else if (n > WORDS_HASHED) {
        words.first = words_eight(bytes);
        words.last = words_eight(bytes + n - 8);
        for (int64_t k = 8; n > WORDS_WHOLE && k + 8 < n; k += 8) {
            words.first = (words.first ^ words_eight(bytes + k)) * 0x9E3779B97F4A7C15ull;
            words.first ^= words.first >> 32;
        }
    } else if (n >= 4) {
        words.first = words_four(bytes) | words_four(bytes + n - 4) << 32;
    } else if (n) {
        words.first = bytes[0] | (uint64_t)bytes[n >> 1] << 8 | (uint64_t)bytes[n - 1] << 16;
    }
    return words;
}

static inline uint64_t words_mixed(uint64_t x) {
    x ^= x >> 32;
    x *= 0xBF58476D1CE4E5B9ull;
    return x ^ (x >> 29);
}

/* One to one for strings of one length, of up to WORDS_HASHED bytes: every step can be undone. */
static inline uint64_t words_hash(const Words *words) {
    uint64_t last = words->last + (uint64_t)words->length * 0x9E3779B97F4A7C15ull;
    return words_mixed(words->first * 0xD6E8FEB86659FD93ull ^ words_mixed(last));
}

/* Whether two strings are the same, as far as their words tell; the bytes are looked at if these
 * cannot. */
static inline int words_equal(const Words *a, const uint8_t *bytes, const Words *b,
                              const uint8_t *other) {
    if (a->first != b->first || a->last != b->last || a->length != b->length) return 0;
    return a->length <= WORDS_WHOLE || !memcmp(bytes, other, (size_t)a->length);
}
#endif
