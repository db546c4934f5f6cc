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

/* Sort codes in place and drop what is negative or doubled; how many are left. */
static inline int64_t as_set(int32_t *codes, int64_t n) {
    int64_t kept = 0;
    if (n <= 48)
        for (int64_t i = 1; i < n; i++) {
            int32_t code = codes[i];
            int64_t at = i;
            for (; at > 0 && codes[at - 1] > code; at--) codes[at] = codes[at - 1];
            codes[at] = code;
        }
    else qsort(codes, n, sizeof(int32_t), ascending);
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
