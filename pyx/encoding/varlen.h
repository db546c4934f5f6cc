/* Sets as the measures read them: codes of items, ascending, each once. */
#ifndef WINDJOIN_VARLEN_H
#define WINDJOIN_VARLEN_H
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
    int32_t code, place;
    double weight;
} Item;

static int by_code(const void *a, const void *b) {
    const Item *x = a, *y = b;
    if (x->code != y->code) return x->code < y->code ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static int ascending(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

#define SET_BY_NETWORK 16 /* items; up to so many are sorted without a branch */
#define SET_BY_INSERTION 48

#define SWAP_CODES(i, j)                                                                           \
    do {                                                                                           \
        int32_t x_ = c[i], y_ = c[j];                                                              \
        c[i] = x_ < y_ ? x_ : y_;                                                                  \
        c[j] = x_ < y_ ? y_ : x_;                                                                  \
    } while (0)

/* A sorting network of 19 comparators. */
static inline void sort_eight(int32_t *c) {
    SWAP_CODES(0, 2);
    SWAP_CODES(1, 3);
    SWAP_CODES(4, 6);
    SWAP_CODES(5, 7);
    SWAP_CODES(0, 4);
    SWAP_CODES(1, 5);
    SWAP_CODES(2, 6);
    SWAP_CODES(3, 7);
    SWAP_CODES(0, 1);
    SWAP_CODES(2, 3);
    SWAP_CODES(4, 5);
    SWAP_CODES(6, 7);
    SWAP_CODES(2, 4);
    SWAP_CODES(3, 5);
    SWAP_CODES(1, 4);
    SWAP_CODES(3, 6);
    SWAP_CODES(1, 2);
    SWAP_CODES(3, 4);
    SWAP_CODES(5, 6);
}

/* Two sorted halves, merged (bitonic: the second one backwards). */
static inline void merge_eights(int32_t *c) {
    for (int i = 0; i < 8; i++) SWAP_CODES(i, 15 - i);
    for (int at = 0; at < 16; at += 8)
        for (int i = at; i < at + 4; i++) SWAP_CODES(i, i + 4);
    for (int at = 0; at < 16; at += 4)
        for (int i = at; i < at + 2; i++) SWAP_CODES(i, i + 2);
    for (int i = 0; i < 16; i += 2) SWAP_CODES(i, i + 1);
}

static inline void sort_by_network(int32_t *codes, int64_t n) {
    int32_t c[SET_BY_NETWORK];
    for (int i = 0; i < SET_BY_NETWORK; i++) c[i] = INT32_MAX;
    for (int64_t i = 0; i < n; i++) c[i] = codes[i];
    sort_eight(c);
    if (n > 8) {
        sort_eight(c + 8);
        merge_eights(c);
    }
    for (int64_t i = 0; i < n; i++) codes[i] = c[i];
}

static inline void sort_codes(int32_t *codes, int64_t n) {
    if (n <= SET_BY_NETWORK) {
        sort_by_network(codes, n);
        return;
    }
    if (n > SET_BY_INSERTION) {
        qsort(codes, n, sizeof(int32_t), ascending);
        return;
    }
    for (int64_t i = 1; i < n; i++) {
        int32_t code = codes[i];
        int64_t at = i;
        for (; at > 0 && codes[at - 1] > code; at--) codes[at] = codes[at - 1];
        codes[at] = code;
    }
}

/* Whether codes are a set already: codes of items that lie close together often are. */
static inline int is_set(const int32_t *codes, int64_t n) {
    int wrong = n && codes[0] < 0;
    for (int64_t i = 1; i < n; i++) wrong |= codes[i - 1] >= codes[i];
    return !wrong;
}

/* Sort codes in place and drop what is negative or doubled; how many are left. */
static inline int64_t as_set(int32_t *codes, int64_t n) {
    int64_t kept = 0;
    if (is_set(codes, n)) return n;
    sort_codes(codes, n);
    for (int64_t i = 0; i < n; i++)
        if (codes[i] >= 0 && (kept == 0 || codes[kept - 1] != codes[i])) codes[kept++] = codes[i];
    return kept;
}

/* Items in place order become a record (see WEIGHTS in measures.h) at `out`, which has room for
 * 8 + 16 n bytes: weights of one item are added up in order.  How many items it has. */
static inline int64_t as_weighted_set(Item *items, int64_t n, double *out) {
    int64_t kept = 0;
    double squares = 0, *by_place = out + 1;
    qsort(items, n, sizeof(Item), by_code);
    for (int64_t i = 0; i < n; i++) {
        if (items[i].code < 0) continue;
        if (kept && items[kept - 1].code == items[i].code)
            items[kept - 1].weight += items[i].weight;
        else items[kept++] = items[i];
    }
    /* the norm sums up in order of the places, which are below n */
    for (int64_t i = 0; i < n; i++) by_place[i] = 0;
    for (int64_t i = 0; i < kept; i++) by_place[items[i].place] = items[i].weight;
    for (int64_t i = 0; i < n; i++) squares += by_place[i] * by_place[i];
    out[0] = sqrt(squares);
    int32_t *codes = (int32_t *)(out + 1 + kept), *places = codes + kept;
    for (int64_t i = 0; i < kept; i++) {
        out[1 + i] = items[i].weight;
        codes[i] = items[i].code;
        places[i] = items[i].place;
    }
    return kept;
}
#endif
