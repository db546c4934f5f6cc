/* Equal integers get equal dense codes, by a table small enough for the nearest caches.
 *
 * Eight keys lie in one cache line, which one vector comparison searches, and their codes in
 * another array; buckets are filled in order, and a full one is followed by the next.
 */
#ifndef WINDJOIN_INTEGERS_H
#define WINDJOIN_INTEGERS_H
#include <stdlib.h>

#include "isa.h"
#include "keys.h"
#include "memory.h"

#define BUCKET_KEYS 8
#define BUCKET_FILL 5 /* keys of a bucket, in the mean, at most */
#define FIRST_BUCKETS 64
#define FAR_BUCKETS 8192 /* so many are not in near caches: */
#define KEYS_AT_ONCE 256 /* whose buckets are known before any is looked at */
#define BUCKETS_AHEAD 12 /* that of a key is fetched so many keys earlier */

typedef struct {
    int64_t (*key)[BUCKET_KEYS]; /* 0 where vacant */
    int32_t (*code)[BUCKET_KEYS]; /* -1 where vacant */
    uint64_t wrap;
    int64_t n;
} Integers;

static inline void integers_free(Integers *all) {
    free(all->key);
    free(all->code);
}

/* Put a key that is not there. */
static inline void integers_put(Integers *all, int64_t key, int32_t code) {
    uint64_t at = mix64((uint64_t)key) & all->wrap;
    while (all->code[at][BUCKET_KEYS - 1] >= 0) at = (at + 1) & all->wrap;
    int k = 0;
    while (all->code[at][k] >= 0) k++;
    all->key[at][k] = key;
    all->code[at][k] = code;
}

/* Memory from the border of a cache line on, of huge pages if it is large. */
static inline void *new_lines(size_t bytes) {
    if (bytes < HUGE_PAGE) return aligned_alloc(64, bytes);
    return new_array((int64_t)(bytes / sizeof(int64_t)));
}

/* A table of more buckets; 0: no memory, and the old one stays. */
static int integers_widen(Integers *all, uint64_t buckets) {
    Integers wider = {new_lines(buckets * sizeof(*all->key)),
                      new_lines(buckets * sizeof(*all->code)), buckets - 1, all->n};
    if (!wider.key || !wider.code) {
        integers_free(&wider);
        return 0;
    }
    memset(wider.key, 0, buckets * sizeof(*wider.key));
    memset(wider.code, 0xff, buckets * sizeof(*wider.code));
    for (uint64_t at = 0; all->key && at <= all->wrap; at++)
        for (int k = 0; k < BUCKET_KEYS && all->code[at][k] >= 0; k++)
            integers_put(&wider, all->key[at][k], all->code[at][k]);
    integers_free(all);
    *all = wider;
    return 1;
}

/* A code for a key that has none; -1: no memory. */
static int32_t integers_add(Integers *all, int64_t key) {
    if (all->n >= BUCKET_FILL * (int64_t)(all->wrap + 1) &&
        !integers_widen(all, 2 * (all->wrap + 1)))
        return -1;
    integers_put(all, key, (int32_t)all->n);
    return (int32_t)all->n++;
}

/* Let a bucket be fetched; always inline, see lines_fetch. */
ALWAYS_INLINE void integers_fetch(const Integers *all, uint32_t bucket) {
    __builtin_prefetch(all->key[bucket]);
    __builtin_prefetch(all->code[bucket]);
}

/* Codes of n keys; 0: no memory.  Buckets of a block of keys are known before any is looked at.
 * SAME sets which keys of a bucket are the one wanted, as bits: the first of them is, the others
 * may be vacant. */
#define INTEGERS_ENCODE(NAME, TARGET, SAME)                                                        \
    TARGET static int NAME(Integers *all, const int64_t *key, int64_t n, int32_t *out) {           \
        uint32_t bucket[KEYS_AT_ONCE];                                                             \
        for (int64_t i = 0, k; i < n; i += k, key += k, out += k) {                                \
            int64_t m = n - i < KEYS_AT_ONCE ? n - i : KEYS_AT_ONCE;                               \
            uint64_t wrap = all->wrap;                                                             \
            for (k = 0; k < m; k++) bucket[k] = (uint32_t)(mix64((uint64_t)key[k]) & wrap);        \
            for (k = 0; wrap >= FAR_BUCKETS && k < m && k < BUCKETS_AHEAD; k++)                    \
                integers_fetch(all, bucket[k]);                                                    \
            for (k = 0; k < m && all->wrap == wrap; k++) {                                         \
                uint64_t at = bucket[k];                                                           \
                unsigned same;                                                                     \
                if (wrap >= FAR_BUCKETS && k + BUCKETS_AHEAD < m)                                  \
                    integers_fetch(all, bucket[k + BUCKETS_AHEAD]);                                \
                SAME(all->key[at], key[k], same);                                                  \
                while (!same && all->code[at][BUCKET_KEYS - 1] >= 0) {                             \
                    at = (at + 1) & wrap;                                                          \
                    SAME(all->key[at], key[k], same);                                              \
                }                                                                                  \
                int32_t code = same ? all->code[at][__builtin_ctz(same)] : -1;                     \
                if (code < 0 && (code = integers_add(all, key[k])) < 0) return 0;                  \
                out[k] = code;                                                                     \
            }                                                                                      \
        }                                                                                          \
        return 1;                                                                                  \
    }

#define INTEGERS_SAME_PLAIN(keys, wanted, same)                                                    \
    do {                                                                                           \
        same = 0;                                                                                  \
        for (int k_ = 0; k_ < BUCKET_KEYS; k_++) same |= (unsigned)((keys)[k_] == (wanted)) << k_; \
    } while (0)

INTEGERS_ENCODE(integers_encode_plain, , INTEGERS_SAME_PLAIN)

#ifdef WINDJOIN_X86
#define INTEGERS_HALF_AVX2(keys, wanted)                                                           \
    (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(                           \
        _mm256_load_si256((const __m256i *)(keys)), _mm256_set1_epi64x(wanted))))

#define INTEGERS_SAME_AVX2(keys, wanted, same)                                                     \
    same = INTEGERS_HALF_AVX2(keys, wanted) | INTEGERS_HALF_AVX2((keys) + 4, wanted) << 4

#define INTEGERS_SAME_AVX512(keys, wanted, same)                                                   \
    same = _mm512_cmpeq_epi64_mask(_mm512_load_si512(keys), _mm512_set1_epi64(wanted))

INTEGERS_ENCODE(integers_encode_avx2, TARGET_AVX2, INTEGERS_SAME_AVX2)
INTEGERS_ENCODE(integers_encode_avx512, TARGET_AVX512, INTEGERS_SAME_AVX512)
#endif

/* Widen low .. high to hold n keys; stops early where they are further apart than `widest`. */
#define SPAN_BLOCK 4096
#define INTEGERS_SPAN(NAME, TARGET)                                                                \
    TARGET static void NAME(const int64_t *key, int64_t n, uint64_t widest, int64_t *low,          \
                            int64_t *high) {                                                       \
        int64_t least = *low, most = *high;                                                        \
        for (int64_t at = 0;                                                                       \
             at < n && (least > most || (uint64_t)most - (uint64_t)least <= widest);) {            \
            int64_t stop = at + SPAN_BLOCK < n ? at + SPAN_BLOCK : n;                              \
            for (; at < stop; at++) {                                                              \
                least = key[at] < least ? key[at] : least;                                         \
                most = key[at] > most ? key[at] : most;                                            \
            }                                                                                      \
        }                                                                                          \
        *low = least;                                                                              \
        *high = most;                                                                              \
    }

INTEGERS_SPAN(integers_span_plain, )
#ifdef WINDJOIN_X86
INTEGERS_SPAN(integers_span_avx2, TARGET_AVX2)
INTEGERS_SPAN(integers_span_avx512, TARGET_AVX512)
#endif

static inline void integers_span(const int64_t *key, int64_t n, uint64_t widest, int64_t *low,
                                 int64_t *high) {
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) {
        integers_span_avx512(key, n, widest, low, high);
        return;
    }
    if (isa_level() == ISA_AVX2) {
        integers_span_avx2(key, n, widest, low, high);
        return;
    }
#endif
    integers_span_plain(key, n, widest, low, high);
}

static inline int integers_encode(Integers *all, const int64_t *key, int64_t n, int32_t *out) {
    if (!all->key && !integers_widen(all, FIRST_BUCKETS)) return 0;
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) return integers_encode_avx512(all, key, n, out);
    if (isa_level() == ISA_AVX2) return integers_encode_avx2(all, key, n, out);
#endif
    return integers_encode_plain(all, key, n, out);
}
#endif
