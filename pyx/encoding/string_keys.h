/* Byte strings as keys: what is read of them, and of the table, before any is looked for. */
#ifndef WINDJOIN_STRING_KEYS_H
#define WINDJOIN_STRING_KEYS_H
#include "keys.h"
#include "words.h"

/* Strings as Arrow has them: string i from offset i to the next, in numbers of so many bytes. */
typedef struct {
    const uint8_t *data;
    const void *offset;
    int offset_bytes;
} Strings;

static inline int64_t string_begin(const Strings *all, int64_t i) {
    return all->offset_bytes == 8 ? ((const int64_t *)all->offset)[i]
                                  : ((const int32_t *)all->offset)[i];
}

/* A string that has a code. */
typedef struct {
    Words words;
    int64_t start; /* of its bytes */
} KeptString;

#define STRINGS_TOGETHER 32 /* what their lookups read is asked for before the first of them */

/* Words and hashes of n strings from number `first` on, whose entries will be looked for; of all
 * that are usable. */
static inline void hash_strings(const Strings *all, const uint8_t *usable, int64_t first, int64_t n,
                                const Entry *table, uint64_t wrap, Words *words, int64_t *key) {
    for (int64_t i = 0; i < n; i++) {
        key[i] = 0;
        if (usable && !usable[first + i]) continue;
        int64_t begin = string_begin(all, first + i);
        words[i] = words_of(all->data + begin, string_begin(all, first + i + 1) - begin);
        key[i] = (int64_t)words_hash(words + i);
        __builtin_prefetch(table + (mix64((uint64_t)key[i]) & wrap));
    }
}
#endif
