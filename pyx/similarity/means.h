/* The means of segments of a row of bytes, and what they leave open.
 *
 * The bytes of a segment lie `lag` apart, so that channels that alternate are not mixed.  With the
 * means x and y of two rows, rounded, `rest` the sum over a row's segments of |sum - size * mean|
 * and `spread` the sum over its bytes of |byte - mean|, their sum of absolute differences is at
 * least size * sum |x - y| - rests, and at most size * sum |x - y| + spreads.
 *
 * How far apart like bytes lie, and how long segments are that still follow the bytes, the first
 * rows say.  A scan of long segments is cheap, which is all that matters where rows are noise.
 */
#ifndef WINDJOIN_MEANS_H
#define WINDJOIN_MEANS_H
#include "measures.h"

#define MOST_LAG 4
#define LEAST_SIZE 8
#define MOST_SIZE 64
#define STEP_SIZE 4 /* sizes are multiples */

typedef struct {
    int64_t rest, spread;
} Looseness;

/* How rows are cut, and room to work in: for `width` bytes. */
typedef struct {
    int64_t width, lag, size;
    int64_t segments;  /* of a channel */
    int64_t plane;     /* bytes of a channel, and none up to whole segments and vectors */
    int64_t stride;    /* bytes of the means of a row, and none up to a vector */
    uint8_t *planes;   /* [channel][plane] */
    uint8_t *followed; /* [plane], and a segment more: each byte's mean */
    uint32_t *up_to;   /* [plane / 4 + 1]: sums of the bytes up to there */
    int32_t *sums;     /* [segments] */
    uint8_t index[MOST_LAG][2][64]; /* [channel]: where its bytes stand in vectors 0, 1 and 2, 3 */
    uint64_t behind[MOST_LAG]; /* [channel]: which of them stand in the latter */
    uint8_t among[MOST_LAG][MOST_LAG]
                 [16]; /* [channel][vector of 16]: where there; 128: elsewhere */
} Cut;

static inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

static inline void cut_free(Cut *c) {
    free(c->planes);
    free(c->up_to);
    free(c->sums);
    c->planes = NULL;
    c->up_to = NULL;
    c->sums = NULL;
}

static inline int64_t cut_bytes(const Cut *c) { return (c->lag + 2) * c->plane + 4 * c->segments; }

/* Rows are `width` long from now on, with channels `lag` apart; 0: no memory. */
static inline int cut_shape(Cut *c, int64_t width, int64_t lag, int64_t size) {
    int64_t channel = (width + lag - 1) / lag;
    cut_free(c);
    c->width = width;
    c->lag = lag;
    c->size = size;
    c->segments = (channel + size - 1) / size;
    c->plane = round_up(c->segments * size, 64);
    c->stride = round_up(c->segments * lag, 64);
    c->planes = calloc(1, (size_t)((lag + 1) * c->plane + MOST_SIZE));
    c->up_to = calloc((size_t)c->plane / 4 + 1, sizeof(uint32_t));
    c->sums = calloc((size_t)c->segments + 1, sizeof(int32_t));
    if (!c->planes || !c->up_to || !c->sums) return 0;
    c->followed = c->planes + lag * c->plane;
    for (int64_t k = 0; k < lag; k++) {
        c->behind[k] = 0;
        for (int64_t i = 0; i < 64; i++) {
            c->index[k][0][i] = c->index[k][1][i] = (uint8_t)((k + lag * i) & 127);
            c->behind[k] |= (uint64_t)(k + lag * i >= 128) << i;
        }
        memset(c->among[k], 128, sizeof(c->among[k]));
        for (int64_t i = 0; i < 16; i++) {
            int64_t place = k + lag * i;
            c->among[k][place / 16][i] = (uint8_t)(place % 16);
        }
    }
    return 1;
}

/* How unlike neighbours are that lie `lag` apart. */
static inline int64_t unlike(const uint8_t *at, int64_t n, int64_t lag) {
    return sum_of_differences(at, at + lag, n > lag ? n - lag : 0);
}

#ifdef WINDJOIN_X86
#define TARGET_VBMI                                                                                \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,bmi,bmi2,popcnt")))

/* Bytes of the channels apart, 64 of each at a time; how many bytes of the row are done. */
TARGET_VBMI static int64_t split_vbmi(const Cut *c, const uint8_t *at) {
    const int64_t whole = c->width / (64 * c->lag);
    for (int64_t k = 0; k < whole; k++, at += 64 * c->lag) {
        __m512i v[MOST_LAG];
        for (int64_t j = 0; j < MOST_LAG; j++)
            v[j] = _mm512_loadu_si512(at + 64 * (j < c->lag ? j : c->lag - 1));
        for (int64_t channel = 0; channel < c->lag; channel++) {
            __m512i here = _mm512_loadu_si512(c->index[channel]);
            __m512i low = _mm512_permutex2var_epi8(v[0], here, v[1]);
            __m512i high = _mm512_permutex2var_epi8(v[2], here, v[3]);
            _mm512_storeu_si512(c->planes + channel * c->plane + 64 * k,
                                _mm512_mask_blend_epi8(c->behind[channel], low, high));
        }
    }
    return whole * 64 * c->lag;
}

/* The same, 16 of each at a time. */
TARGET_AVX2 static int64_t split_avx2(const Cut *c, const uint8_t *at) {
    const int64_t whole = c->width / (16 * c->lag);
    for (int64_t k = 0; k < whole; k++, at += 16 * c->lag) {
        for (int64_t channel = 0; channel < c->lag; channel++) {
            __m128i found = _mm_setzero_si128();
            for (int64_t j = 0; j < c->lag; j++) {
                __m128i among = _mm_loadu_si128((const __m128i *)c->among[channel][j]);
                __m128i here = _mm_loadu_si128((const __m128i *)(at + 16 * j));
                found = _mm_or_si128(found, _mm_shuffle_epi8(here, among));
            }
            _mm_storeu_si128((__m128i *)(c->planes + channel * c->plane + 16 * k), found);
        }
    }
    return whole * 16 * c->lag;
}

static inline int has_vbmi(void) {
    static int known = -1;
    if (known < 0) known = isa_level() == ISA_AVX512 && __builtin_cpu_supports("avx512vbmi");
    return known;
}
#endif

static inline void split_channels(const Cut *c, const uint8_t *at) {
    int64_t done = 0, channel = 0;
    if (c->lag == 1) {
        memcpy(c->planes, at, (size_t)c->width);
        return;
    }
#ifdef WINDJOIN_X86
    if (has_vbmi()) done = split_vbmi(c, at);
    else if (isa_level() >= ISA_AVX2) done = split_avx2(c, at);
#endif
    for (int64_t k = done, place = done / c->lag; k < c->width; k++) {
        c->planes[channel * c->plane + place] = at[k];
        if (++channel == c->lag) channel = 0, place++;
    }
}

/* The means of one channel, and each byte's mean beside it; the sum of the rests.  The loops are
 * such that a compiler turns them into vectors. */
ALWAYS_INLINE int64_t plane_means(const Cut *c, const uint8_t *restrict plane,
                                  uint8_t *restrict mean) {
    const uint32_t *restrict word = (const uint32_t *)(const void *)plane;
    uint8_t *restrict followed = c->followed;
    uint32_t *restrict up_to = c->up_to, total = 0; /* may wrap: only differences matter */
    int32_t *restrict sums = c->sums;
    const int64_t fours = c->size / 4, segments = c->segments;
    const float inverse = 1.0f / (float)c->size;
    const int32_t size = (int32_t)c->size;
    int32_t rest = 0; /* at most half of a row's bytes */
    for (int64_t k = 0; k < c->plane / 4; k++) {
        uint32_t pairs = (word[k] & 0x00ff00ffu) + (word[k] >> 8 & 0x00ff00ffu);
        up_to[k + 1] = (pairs + (pairs >> 16)) & 0xffff;
    }
    for (int64_t k = 0; k < segments * fours; k++) up_to[k + 1] = total += up_to[k + 1];
    for (int64_t k = 0; k < segments; k++)
        sums[k] = (int32_t)(up_to[(k + 1) * fours] - up_to[k * fours]);
    for (int64_t k = 0; k < segments; k++) {
        int32_t rounded = (int32_t)((float)sums[k] * inverse + 0.5f);
        int32_t off = sums[k] - size * rounded;
        rest += off < 0 ? -off : off;
        mean[k] = (uint8_t)rounded;
    }
    for (int64_t k = 0; k < segments; k++) memset(followed + k * size, mean[k], MOST_SIZE);
    return rest;
}

ALWAYS_INLINE Looseness row_means_with(const Cut *c, const uint8_t *at, uint8_t *mean,
                                       int64_t (*apart)(const uint8_t *, const uint8_t *,
                                                        int64_t)) {
    Looseness open = {0, 0};
    split_channels(c, at);
    for (int64_t channel = 0; channel < c->lag; channel++) {
        const uint8_t *plane = c->planes + channel * c->plane;
        open.rest += plane_means(c, plane, mean + channel * c->segments);
        open.spread += apart(plane, c->followed, c->segments * c->size);
    }
    return open;
}

#ifdef WINDJOIN_X86
TARGET_AVX512 static Looseness row_means_avx512(const Cut *c, const uint8_t *at, uint8_t *mean) {
    return row_means_with(c, at, mean, sum_of_differences_avx512);
}

TARGET_AVX2 static Looseness row_means_avx2(const Cut *c, const uint8_t *at, uint8_t *mean) {
    return row_means_with(c, at, mean, sum_of_differences_avx2);
}
#endif

/* Means of the segments of a row of the usual length, channel by channel. */
static inline Looseness row_means(const Cut *c, const uint8_t *at, uint8_t *mean) {
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) return row_means_avx512(c, at, mean);
    if (isa_level() == ISA_AVX2) return row_means_avx2(c, at, mean);
#endif
    return row_means_with(c, at, mean, sum_of_differences);
}
#endif
