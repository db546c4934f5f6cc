/* Vectors in blocks, components of 32 rows side by side, compared by tiles in floats.
 *
 * The product of two vectors of floats is off by less than (width + 3) units of rounding times the
 * product of their norms, whatever the order of summation; so is a distance by the expansion
 * |a - b|^2 = |a|^2 + |b|^2 - 2 ab.  A pair is decided by the tile where the threshold lies outside
 * that band, and by its exact measure where not.  Rows that floats cannot hold, and rows of another
 * length, are "odd": they are always decided exactly.
 */
#ifndef WINDJOIN_TILES_H
#define WINDJOIN_TILES_H
#include "groups.h"

#define MOST_PACK 12
#define HUGE_NORM 1e30
#define TINY 1e-33

typedef struct {
    int64_t room;
    float *values; /* [part of 32 rows][component][32] */
    Bits odd;
    float sure[BLOCK_ROWS], maybe[BLOCK_ROWS];
} TileContent;

typedef struct {
    Blocks blocks;
    int measure; /* L2, L1, LINF, DOT or COSINE */
    int doubles;
    int64_t width; /* of nearly all rows; -1: no row yet */
    double *centre;
    double error; /* e: the half width of the band, relative to the sizes of both vectors */
    float *pack;
} Tiles;

static inline double component(const Tiles *t, const void *at, int64_t k) {
    return t->doubles ? ((const double *)at)[k] : (double)((const float *)at)[k];
}

/* The vector of a row as the tiles hold it, with a stride; its size, -1 if it is odd. */
static inline double tile_vector(const Tiles *t, Components row, float *out, int64_t stride) {
    double size = 0, scale = 1;
    int moved = t->measure == L2 || t->measure == L1 || t->measure == LINF;
    if (row.n == t->width)
        for (int64_t k = 0; k < t->width; k++) {
            double x = component(t, row.at, k) - (moved ? t->centre[k] : 0);
            if (t->measure == L1) size += fabs(x);
            else if (t->measure == LINF) size = fabs(x) > size || isnan(x) ? fabs(x) : size;
            else size += x * x;
            if (isnan(size)) break;
        }
    int odd = row.n != t->width || !(size < (t->measure == COSINE ? 1e290 : HUGE_NORM));
    if (t->measure == COSINE) {
        odd |= !(size > 1e-290);
        if (!odd) scale = 1 / sqrt(size);
    }
    for (int64_t k = 0; k < t->width; k++) {
        double x = odd ? 0 : component(t, row.at, k) - (moved ? t->centre[k] : 0);
        out[k * stride] = (float)(x * scale);
    }
    return odd ? -1 : size;
}

/* Share of one row in the limits of a pair. */
static inline void row_limits(const Tiles *t, double size, float *sure, float *maybe) {
    double e = t->error;
    if (size < 0) *sure = INFINITY, *maybe = -INFINITY;
    else if (t->measure == L2) *sure = .5 * (1 + e) * size, *maybe = .5 * (1 - e) * size;
    else if (t->measure == COSINE) *sure = *maybe = 0;
    else {
        double share = t->measure == DOT ? .5 * e * size : e * size;
        *sure = share, *maybe = -share;
    }
}

static inline void asking_limits(const Tiles *t, const Measure *m, double size, float *sure, float *maybe) {
    double e = t->error, limit = m->threshold, band, middle;
    if (t->measure == L2) {
        limit = limit < 0 ? INFINITY : limit * limit;
        middle = .5 * (size - limit);
        band = .5 * e * (size + limit);
    } else if (t->measure == COSINE) {
        middle = limit, band = e;
    } else if (t->measure == DOT) {
        middle = limit, band = .5 * e * size + e * fabs(limit);
    } else {
        middle = -limit, band = e * (size + fabs(limit));
    }
    if (size < 0 || !(fabs(limit) < HUGE_NORM) || e > .1) *sure = INFINITY, *maybe = -INFINITY;
    else {
        band += TINY * (t->width + 1);
        *sure = middle + band, *maybe = middle - band;
    }
}

enum { COLUMNS_MOST = 32 };

#ifdef WINDJOIN_X86
#define TILE tile_avx512
#define TARGET TARGET_AVX512
#define PROBES 12
#define COLUMNS 32
#define LANES 16
#define VECTOR __m512
#define LOAD _mm512_loadu_ps
#define SPREAD _mm512_set1_ps
#define ZERO _mm512_setzero_ps()
#define FMA _mm512_fmadd_ps
#define SUB _mm512_sub_ps
#define ADD _mm512_add_ps
#define ABS _mm512_abs_ps
#define MIN _mm512_min_ps
#define AT_LEAST(x, y) ((uint32_t)_mm512_cmp_ps_mask(x, y, _CMP_GE_OQ))
#define NOT_LESS(x, y) ((uint32_t)_mm512_cmp_ps_mask(x, y, _CMP_NLT_UQ))
#include "tile.inc"
#undef TILE
#undef TARGET
#undef PROBES
#undef COLUMNS
#undef LANES
#undef VECTOR
#undef LOAD
#undef SPREAD
#undef ZERO
#undef FMA
#undef SUB
#undef ADD
#undef ABS
#undef MIN
#undef AT_LEAST
#undef NOT_LESS

#define TILE tile_avx2
#define TARGET TARGET_AVX2
#define PROBES 6
#define COLUMNS 16
#define LANES 8
#define VECTOR __m256
#define LOAD _mm256_loadu_ps
#define SPREAD _mm256_set1_ps
#define ZERO _mm256_setzero_ps()
#define FMA _mm256_fmadd_ps
#define SUB _mm256_sub_ps
#define ADD _mm256_add_ps
#define ABS(x) _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x)
#define MIN _mm256_min_ps
#define AT_LEAST(x, y) ((uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_GE_OQ)))
#define NOT_LESS(x, y) ((uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_NLT_UQ)))
#include "tile.inc"
#undef TILE
#undef TARGET
#undef PROBES
#undef COLUMNS
#undef LANES
#undef VECTOR
#undef LOAD
#undef SPREAD
#undef ZERO
#undef FMA
#undef SUB
#undef ADD
#undef ABS
#undef MIN
#undef AT_LEAST
#undef NOT_LESS
#endif

#define TILE tile_plain
#define TARGET
#define PROBES 4
#define COLUMNS 1
#define LANES 1
#define VECTOR float
#define LOAD(p) (*(p))
#define SPREAD(x) (x)
#define ZERO 0.0f
#define FMA(x, y, v) ((x) * (y) + (v))
#define SUB(x, y) ((x) - (y))
#define ADD(x, y) ((x) + (y))
#define ABS fabsf
#define MIN fminf
#define AT_LEAST(x, y) ((uint32_t)((x) >= (y)))
#define NOT_LESS(x, y) ((uint32_t)!((x) < (y)))
#include "tile.inc"

static inline int64_t pack_size(void) {
    int level = isa_level();
    return level == ISA_AVX512 ? 12 : level == ISA_AVX2 ? 6 : 4;
}

/* 32 rows, in as many tiles as the registers need. */
static inline void run_tile(const Tiles *t, const float *pack, const float *rows, const float *p_sure,
                            const float *p_maybe, const float *r_sure, const float *r_maybe,
                            uint32_t *sure, uint32_t *maybe) {
    uint32_t s[MOST_PACK], m[MOST_PACK];
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) {
        tile_avx512(t->measure, t->width, pack, rows, p_sure, p_maybe, r_sure, r_maybe, sure, maybe);
        return;
    }
    if (isa_level() == ISA_AVX2) {
        for (int half = 0; half < 2; half++) {
            tile_avx2(t->measure, t->width, pack, rows + half * 16, p_sure, p_maybe,
                      r_sure + half * 16, r_maybe + half * 16, s, m);
            for (int p = 0; p < 6; p++) {
                sure[p] = half ? sure[p] | s[p] << 16 : s[p];
                maybe[p] = half ? maybe[p] | m[p] << 16 : m[p];
            }
        }
        return;
    }
#endif
    for (int p = 0; p < 4; p++) sure[p] = maybe[p] = 0;
    for (int r = 0; r < 32; r++) {
        tile_plain(t->measure, t->width, pack, rows + r, p_sure, p_maybe, r_sure + r, r_maybe + r, s, m);
        for (int p = 0; p < 4; p++) sure[p] |= s[p] << r, maybe[p] |= m[p] << r;
    }
}

/* Answers [from, from + n) of a part for one block. */
static inline void tile_block(const Tiles *t, Part *part, int64_t b, int64_t from, int64_t n,
                              const double *size, const float *p_sure, const float *p_maybe,
                              int64_t lo, int64_t hi) {
    const Block *block = t->blocks.block[b];
    const TileContent *content = t->blocks.content[b];
    int product = t->measure == DOT || t->measure == COSINE;
    int above = part->measure.operation == ABOVE || part->measure.operation == FROM;
    int far = above != product; /* what the tile calls near is what is not wanted */
    Bits fits, sure[MOST_PACK], maybe[MOST_PACK];
    memset(sure, 0, sizeof sure);
    memset(maybe, 0, sizeof maybe);
    time_bits(block, lo, hi, &fits);
    for (int64_t r = 0; r < block->n; r += 32) {
        uint32_t s[MOST_PACK], m[MOST_PACK];
        if (!(fits.word[r >> 6] >> (r & 32) & 0xffffffff)) continue;
        run_tile(t, t->pack, content->values + r * t->width, p_sure, p_maybe, content->sure + r,
                 content->maybe + r, s, m);
        for (int64_t p = 0; p < n; p++) {
            sure[p].word[r >> 6] |= (uint64_t)s[p] << (r & 32);
            maybe[p].word[r >> 6] |= (uint64_t)m[p] << (r & 32);
        }
    }
    for (int64_t p = 0; p < n; p++) {
        const Answer *a = part->answers + from + p;
        if (b < a->first_block || b >= a->first_block + a->n_blocks) continue;
        Bits found, unclear, own = fits;
        if (!block_within(block, a->lo, a->hi)) time_bits(block, a->lo, a->hi, &own);
        for (int w = 0; w < WORDS; w++) {
            uint64_t surely = far ? ~maybe[p].word[w] : sure[p].word[w];
            uint64_t may = far ? ~sure[p].word[w] : maybe[p].word[w];
            if (size[p] == -2) surely = 0, may = content->odd.word[w]; /* of another length */
            found.word[w] = surely & own.word[w];
            unclear.word[w] = may & ~surely & own.word[w];
        }
        decide(part, block, a->row, &unclear, &found);
        if (bits_meet(&found, &own)) *answer_store(part, a, b) = found;
    }
}

static void tiles_fill(void *index, Part *part) {
    const Tiles *t = index;
    const int64_t most = pack_size();
    double size[MOST_PACK];
    float sure[MOST_PACK], maybe[MOST_PACK];
    for (int64_t from = part->filled; from < part->n_answers; from += most) {
        int64_t n = part->n_answers - from < most ? part->n_answers - from : most;
        int64_t lo = INT64_MAX, hi = INT64_MIN, first = INT64_MAX, stop = 0;
        for (int64_t p = 0; p < most; p++) {
            const Answer *a = part->answers + from + (p < n ? p : n - 1);
            Components row = components(&part->measure.asking, a->row);
            size[p] = tile_vector(t, row, t->pack + p, most);
            if (row.n != t->width) size[p] = -2;
            asking_limits(t, &part->measure, size[p], sure + p, maybe + p);
            if (a->lo < lo) lo = a->lo;
            if (a->hi > hi) hi = a->hi;
            if (a->first_block < first) first = a->first_block;
            if (a->first_block + a->n_blocks > stop) stop = a->first_block + a->n_blocks;
        }
        for (int64_t b = first; b < stop; b++)
            tile_block(t, part, b, from, n, size, sure, maybe, lo, hi);
    }
}

static int tiles_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out) {
    Tiles *t = index;
    if (t->width < 0) return 1;
    return serve_groups(&t->blocks, probe, cursor, out, tiles_fill, t);
}

/* Put a row into the last block, which has room for it. */
static inline void tiles_put(Tiles *t, Components row, int64_t time, int64_t number) {
    Block *block = t->blocks.block[t->blocks.last - 1];
    TileContent *content = t->blocks.content[t->blocks.last - 1];
    int64_t at = block->n, part = at >> 5, lane = at & 31;
    float *values = content->values + part * 32 * t->width;
    double size = tile_vector(t, row, values + lane, 32);
    if (size < 0) content->odd.word[at >> 6] |= (uint64_t)1 << (at & 63);
    row_limits(t, size, content->sure + at, content->maybe + at);
    block_add(block, time, number);
    t->blocks.version++;
}
#endif
