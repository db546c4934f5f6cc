/* Equal byte strings get equal dense codes; the strings stay where they lie.
 *
 * Words of a block are made before any is looked up, so that lookups overlap.
 */
#ifndef WINDJOIN_TEXTS_H
#define WINDJOIN_TEXTS_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

#define TEXTS_BLOCK 128
#define TEXTS_FIRST_SLOTS 1024

typedef struct {
    Words words;
    const uint8_t *bytes;
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
        uint64_t hash = words_hash(&all->text[code].words);
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
        if (slot.tag != tag) continue;
        const Text *known = all->text + slot.code;
        if (words_equal(&known->words, known->bytes, &text->words, text->bytes)) return slot.code;
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
            text[k].bytes = data + begin;
            text[k].words = words_of(data + begin, offset[i + k + 1] - begin);
            hash[k] = words_hash(&text[k].words);
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
