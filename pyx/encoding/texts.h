/* Equal byte strings get equal dense codes; the strings stay where they lie.
 *
 * Two words and the length are all of a string of up to 16 bytes; of longer ones they are a sum to
 * try first.  Words of a block are made before any is looked up, so that lookups overlap.
 */
#ifndef WINDJOIN_TEXTS_H
#define WINDJOIN_TEXTS_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TEXTS_BLOCK 128
#define TEXTS_WHOLE 16 /* bytes that two words hold */
#define TEXTS_FIRST_SLOTS 1024

typedef struct {
    uint64_t first, last;
    const uint8_t *bytes;
    int64_t length;
} Text;

typedef struct {
    int32_t code; /* -1: vacant */
    uint32_t tag; /* the part of the hash that does not choose the slot */
} TextSlot;

typedef struct {
    TextSlot *slot;
    uint64_t wrap;
    Text *text; /* by code */
    int64_t n, room;
} Texts;

static inline uint64_t texts_word(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}

static inline uint64_t texts_half(const uint8_t *bytes) {
    uint32_t half;
    memcpy(&half, bytes, 4);
    return half;
}

static inline Text text_of(const uint8_t *bytes, int64_t n) {
    Text text = {0, 0, bytes, n};
    if (n >= 8) {
        text.first = texts_word(bytes);
        text.last = texts_word(bytes + n - 8);
        for (int64_t k = 8; n > TEXTS_WHOLE && k + 8 < n; k += 8) {
            text.first = (text.first ^ texts_word(bytes + k)) * 0x9E3779B97F4A7C15ull;
            text.first ^= text.first >> 32;
        }
    } else if (n >= 4) {
        text.first = texts_half(bytes) | texts_half(bytes + n - 4) << 32;
    } else if (n) {
        text.first = bytes[0] | (uint64_t)bytes[n >> 1] << 8 | (uint64_t)bytes[n - 1] << 16;
    }
    return text;
}

static inline uint64_t texts_mixed(uint64_t x) {
    x ^= x >> 32;
    x *= 0xBF58476D1CE4E5B9ull;
    return x ^ (x >> 29);
}

static inline uint64_t texts_hash(const Text *text) {
    uint64_t last = text->last + (uint64_t)text->length * 0x9E3779B97F4A7C15ull;
    return texts_mixed(text->first * 0xD6E8FEB86659FD93ull ^ texts_mixed(last));
}

static inline int texts_equal(const Text *a, const Text *b) {
    if (a->first != b->first || a->last != b->last || a->length != b->length) return 0;
    return a->length <= TEXTS_WHOLE || !memcmp(a->bytes, b->bytes, (size_t)a->length);
}

/* Where a hash is to go; there is a vacant slot. */
static inline TextSlot *texts_vacant(const Texts *all, uint64_t hash) {
    uint64_t at = hash & all->wrap;
    while (all->slot[at].code >= 0) at = (at + 1) & all->wrap;
    return all->slot + at;
}

/* A table of more slots; 0: no memory. */
static int texts_widen(Texts *all, uint64_t slots) {
    TextSlot *wider = malloc(slots * sizeof(TextSlot));
    if (!wider) return 0;
    memset(wider, 0xff, slots * sizeof(TextSlot));
    free(all->slot);
    all->slot = wider;
    all->wrap = slots - 1;
    for (int64_t code = 0; code < all->n; code++) {
        uint64_t hash = texts_hash(all->text + code);
        *texts_vacant(all, hash) = (TextSlot){(int32_t)code, (uint32_t)(hash >> 32)};
    }
    return 1;
}

/* A code for a string that has none, -1: no memory. */
static int32_t texts_add(Texts *all, const Text *text, uint64_t hash) {
    if (2 * (all->n + 1) > (int64_t)all->wrap && !texts_widen(all, 4 * (all->wrap + 1))) return -1;
    if (all->n == all->room) {
        int64_t room = all->room ? 2 * all->room : TEXTS_FIRST_SLOTS / 2;
        Text *grown = realloc(all->text, (size_t)room * sizeof(Text));
        if (!grown) return -1;
        all->text = grown;
        all->room = room;
    }
    all->text[all->n] = *text;
    *texts_vacant(all, hash) = (TextSlot){(int32_t)all->n, (uint32_t)(hash >> 32)};
    return (int32_t)all->n++;
}

static inline int32_t texts_code(Texts *all, const Text *text, uint64_t hash) {
    uint32_t tag = (uint32_t)(hash >> 32);
    for (uint64_t at = hash & all->wrap;; at = (at + 1) & all->wrap) {
        TextSlot slot = all->slot[at];
        if (slot.code < 0) return texts_add(all, text, hash);
        if (slot.tag == tag && texts_equal(all->text + slot.code, text)) return slot.code;
    }
}

/* Codes of n strings; 0: no memory. */
static int texts_encode(Texts *all, const int64_t *offset, const uint8_t *data, int64_t n,
                        int32_t *out) {
    Text text[TEXTS_BLOCK];
    uint64_t hash[TEXTS_BLOCK];
    if (!all->slot && !texts_widen(all, TEXTS_FIRST_SLOTS)) return 0;
    for (int64_t i = 0; i < n; i += TEXTS_BLOCK) {
        int64_t m = n - i < TEXTS_BLOCK ? n - i : TEXTS_BLOCK;
        for (int64_t k = 0; k < m; k++) {
            int64_t begin = offset[i + k];
            text[k] = text_of(data + begin, offset[i + k + 1] - begin);
            hash[k] = texts_hash(text + k);
        }
        for (int64_t k = 0; k < m; k++)
            if ((out[i + k] = texts_code(all, text + k, hash[k])) < 0) return 0;
    }
    return 1;
}

static inline void texts_free(Texts *all) {
    free(all->slot);
    free(all->text);
}
#endif
