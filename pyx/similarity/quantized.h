/* Vectors rounded to bytes, compared four components at an instruction.
 *
 * A component x is held as the nearest multiple q of a block's scale s.  With e(x) the length of
 * the difference x - s q, which is known, the distance of two vectors lies within e(x) + e(y) of
 * that of their roundings, and their product within s|q(x)| e(y) + e(x) |y|.  Sums of roundings are
 * integers and exact.  What these bounds leave open is left to floats, or to the exact measure.
 */
#ifndef WINDJOIN_QUANTIZED_H
#define WINDJOIN_QUANTIZED_H
#include "blocks.h"
#include "measures.h"

#define MOST_PACK 12
#define WIDEST 16384      /* components; longer sums of products might not fit int32 */
#define MOST_STRETCH 8    /* the greatest rounding, in root mean squares */
#define FEW_ROWS 64       /* say too little about what is to come */

/* Of one block. */
typedef struct {
    double scale;    /* 0: no row yet */
    double residual; /* greatest e(y) */
    double length;   /* greatest |y| */
    Bits loose;      /* rows whose rounding says nothing */
    int32_t
        own[BLOCK_ROWS]; /* what is taken off the product: half the square of a distance's row */
} QuantizedBlock;

/* What was seen of components so far. */
typedef struct {
    double squares, largest;
    int64_t rows;
} ValueRange;

/* Asking rows, for one scale. */
typedef struct {
    double scale;
    int64_t n;
    int8_t *bytes; /* [quad][n][4] */
    double residual[MOST_PACK], length[MOST_PACK];
    int64_t square[MOST_PACK],
        shift[MOST_PACK]; /* shift: of the product, as rows are held plus 128 */
    int32_t sure[MOST_PACK], maybe[MOST_PACK];
} QuantizedPack;

static inline int64_t quads_of(int64_t width) { return (width + 3) / 4; }

static inline void range_note(ValueRange *value_range, const float *values, int64_t width) {
    double squares = 0, largest = value_range->largest;
    for (int64_t k = 0; k < width; k++) {
        double x = fabs((double)values[k]);
        squares += x * x;
        if (x > largest) largest = x;
    }
    value_range->squares += squares;
    value_range->largest = largest;
    value_range->rows++;
}

/* The scale at which nearly all components fit a byte. */
static inline double range_scale(const ValueRange *value_range, int64_t width) {
    double usual =
        sqrt(value_range->squares / ((double)value_range->rows * (double)(width + (width == 0))));
    double most =
        fmin(value_range->largest, MOST_STRETCH * usual) * (value_range->rows < FEW_ROWS ? 1.5 : 1);
    return most > 1e-15 ? (float)(most / 127) : 1; /* a float: rows and scale are then alike */
}

/* What rounding made of a vector. */
typedef struct {
    double residual, length;
    int64_t sum, square;
} Rounded;

#ifdef WINDJOIN_X86
/* A vector's bytes, 128 more than the rounding if `lifted`, four components apart by `step`. */
TARGET_AVX512 static Rounded round_vector(const float *values, int64_t width, double scale,
                                          int lifted, uint8_t *out, int64_t step) {
    const __m512 inverse = _mm512_set1_ps((float)(1 / scale)), s = _mm512_set1_ps((float)scale);
    const __m512i most = _mm512_set1_epi32(127), least = _mm512_set1_epi32(-127),
                  lift = _mm512_set1_epi32(lifted);
    __m512 off = _mm512_setzero_ps(), length = off;
    __m512i sum = _mm512_setzero_si512(), square = sum;
    for (int64_t k = 0; k < width; k += 16) {
        int64_t n = width - k < 16 ? width - k : 16;
        uint32_t four[4];
        __m512 x = _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), values + k);
        __m512i q = _mm512_cvtps_epi32(_mm512_mul_ps(x, inverse));
        q = _mm512_max_epi32(_mm512_min_epi32(q, most), least);
        __m512 d = _mm512_fnmadd_ps(_mm512_cvtepi32_ps(q), s, x);
        off = _mm512_fmadd_ps(d, d, off);
        length = _mm512_fmadd_ps(x, x, length);
        sum = _mm512_add_epi32(sum, q);
        square = _mm512_add_epi32(square, _mm512_mullo_epi32(q, q));
        _mm_storeu_si128((__m128i *)four, _mm512_cvtepi32_epi8(_mm512_add_epi32(q, lift)));
        for (int64_t j = 0; 4 * j < n; j++) memcpy(out + (k / 4 + j) * step, four + j, 4);
    }
    double e = sqrt((double)_mm512_reduce_add_ps(off)),
           l = sqrt((double)_mm512_reduce_add_ps(length));
    /* values are floats of what was meant, and sums of up to WIDEST / 16 floats */
    return (Rounded){e * (1 + 1e-4) + 1.5e-7 * l, l * (1 + 1e-4), _mm512_reduce_add_epi32(sum),
                     _mm512_reduce_add_epi32(square)};
}
#else
static inline Rounded round_vector(const float *values, int64_t width, double scale, int lifted,
                                   uint8_t *out, int64_t step) {
    (void)values, (void)width, (void)scale, (void)lifted, (void)out, (void)step;
    return (Rounded){0, 0, 0, 0};
}
#endif

/* Put a row's bytes beside those of its part. */
static inline void quantized_insert(QuantizedBlock *block, int squared, const float *values,
                                    int64_t width, uint8_t *part, int64_t at) {
    Rounded row = round_vector(values, width, block->scale, 128, part + 4 * (at & 31), 32 * 4);
    block->own[at] = squared ? (int32_t)(row.square >> 1) : 0;
    if (row.residual > .6 * block->scale * sqrt((double)width)) { /* something did not fit */
        block->loose.word[at >> 6] |= (uint64_t)1 << (at & 63);
        return;
    }
    if (row.residual > block->residual) block->residual = row.residual;
    if (row.length > block->length) block->length = row.length;
}

/* Bytes of n asking rows, of which `given` are there. */
static inline void quantized_pack(QuantizedPack *pack, const float *values, int64_t width,
                                  double scale, int64_t n, int64_t given) {
    pack->scale = scale;
    pack->n = n;
    for (int64_t p = 0; p < given; p++) {
        Rounded row = round_vector(values + p * width, width, scale, 0,
                                   (uint8_t *)pack->bytes + 4 * p, 4 * n);
        pack->residual[p] = row.residual;
        pack->length[p] = row.length;
        pack->square[p] = row.square;
        pack->shift[p] = 2 * 128 * row.sum;
    }
}

static inline int32_t as_limit(double value) {
    return value >= INT32_MAX ? INT32_MAX : value <= INT32_MIN ? INT32_MIN : (int32_t)value;
}

/* The product of bytes, less `own`, from which on a row of a block is near for sure, or may be. Two
 * more and two less: limits are cut to integers, and so is half a square. */
static inline void quantized_limits(QuantizedPack *pack, const QuantizedBlock *block, int distance,
                                    double threshold, int64_t p) {
    const double s = block->scale;
    double sure, maybe;
    if (distance) {
        double open = (pack->residual[p] + block->residual) * (1 + 1e-9);
        double inner = (threshold * (1 - 1e-9) - open) / s,
               outer = (threshold * (1 + 1e-9) + open) / s;
        double base = (double)(pack->square[p] + pack->shift[p]);
        sure = inner > 0 ? base - inner * inner * (1 - 1e-12) : INFINITY;
        maybe = base - outer * outer * (1 + 1e-12);
        if (threshold < 0) sure = maybe = INFINITY;
    } else {
        double rounded = pack->length[p] + pack->residual[p]; /* at least s|q(x)| */
        double open = rounded * block->residual + pack->residual[p] * block->length;
        open = open * (1 + 1e-6) + 1e-9 * fabs(threshold);
        sure = 2 * (threshold + open) / (s * s) + (double)pack->shift[p];
        maybe = 2 * (threshold - open) / (s * s) + (double)pack->shift[p];
    }
    if (!(fabs(threshold) < 1e15)) sure = INFINITY, maybe = -INFINITY;
    pack->sure[p] = as_limit(.5 * sure + 2);
    pack->maybe[p] = as_limit(.5 * maybe - 2);
}

#ifdef WINDJOIN_X86
#define TARGET_VNNI                                                                                \
    __attribute__((                                                                                \
        target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,bmi,bmi2,popcnt,fma")))

static inline int has_quantized(void) {
    static int known = -1;
    if (known < 0) known = isa_level() == ISA_AVX512 && __builtin_cpu_supports("avx512vnni");
    return known;
}

/* The intrinsic copies the sum before and after, in every compiler that was tried. */
#define ADD_PRODUCTS(sum, rows, four)                                                              \
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(rows), "v"(four))

/* A pack against 32 rows, which have word number `at` of its bits; how many pairs are left open of
 * those that fit. */
#define COARSE_TILE(name, PROBES)                                                                  \
    TARGET_VNNI static int name(int64_t quads, const QuantizedPack *pack, const uint8_t *rows,     \
                                const int32_t *own, uint32_t loose, uint32_t fits, int64_t at,     \
                                Bits *sure, Bits *maybe) {                                         \
        const __m512i none = _mm512_setzero_si512();                                               \
        __m512i low[PROBES], high[PROBES];                                                         \
        int open = 0;                                                                              \
        low[0] = _mm512_sub_epi32(none, _mm512_loadu_si512(own));                                  \
        high[0] = _mm512_sub_epi32(none, _mm512_loadu_si512(own + 16));                            \
        UNROLLED for (int p = 1; p < PROBES; p++) low[p] = low[0], high[p] = high[0];              \
        for (int64_t k = 0; k < quads; k++) {                                                      \
            const int8_t *probing = pack->bytes + k * 4 * PROBES;                                  \
            __m512i x = _mm512_loadu_si512(rows + k * 128),                                        \
                    y = _mm512_loadu_si512(rows + k * 128 + 64);                                   \
            UNROLLED for (int p = 0; p < PROBES; p++) {                                            \
                int32_t four;                                                                      \
                memcpy(&four, probing + 4 * p, 4);                                                 \
                __m512i z = _mm512_set1_epi32(four);                                               \
                ADD_PRODUCTS(low[p], x, z);                                                        \
                ADD_PRODUCTS(high[p], y, z);                                                       \
            }                                                                                      \
        }                                                                                          \
        UNROLLED for (int p = 0; p < PROBES; p++) {                                                \
            __m512i s = _mm512_set1_epi32(pack->sure[p]), m = _mm512_set1_epi32(pack->maybe[p]);   \
            uint32_t does = _mm512_cmpge_epi32_mask(low[p], s) |                                   \
                            (uint32_t)_mm512_cmpge_epi32_mask(high[p], s) << 16;                   \
            uint32_t may = _mm512_cmpge_epi32_mask(low[p], m) |                                    \
                           (uint32_t)_mm512_cmpge_epi32_mask(high[p], m) << 16;                    \
            if (loose) does &= ~loose, may |= loose;                                               \
            open += __builtin_popcount(may & ~does & fits);                                        \
            memcpy((char *)(sure + p) + 4 * at, &does, 4);                                         \
            memcpy((char *)(maybe + p) + 4 * at, &may, 4);                                         \
        }                                                                                          \
        return open;                                                                               \
    }
COARSE_TILE(quantized_tile_1, 1)
COARSE_TILE(quantized_tile_4, 4)
COARSE_TILE(quantized_tile_12, 12)
#endif

static inline int64_t quantized_size(int64_t n) { return n == 1 ? 1 : n <= 4 ? 4 : MOST_PACK; }

/* Which of 32 rows, word number `at` of the bits, are near to each of the pack, for sure or maybe;
 * how many are left open. */
static inline int quantized_tile(int64_t quads, const QuantizedPack *pack, const uint8_t *rows,
                                 const int32_t *own, uint32_t loose, uint32_t fits, int64_t at,
                                 Bits *sure, Bits *maybe) {
#ifdef WINDJOIN_X86
    if (pack->n == 1) return quantized_tile_1(quads, pack, rows, own, loose, fits, at, sure, maybe);
    if (pack->n == 4) return quantized_tile_4(quads, pack, rows, own, loose, fits, at, sure, maybe);
    return quantized_tile_12(quads, pack, rows, own, loose, fits, at, sure, maybe);
#else
    (void)quads, (void)pack, (void)rows, (void)own, (void)loose, (void)fits, (void)at, (void)sure,
        (void)maybe;
    return 0;
#endif
}
#ifndef WINDJOIN_X86
static inline int has_quantized(void) { return 0; }
#endif
#endif
