/* Vectors in blocks, components of 32 rows side by side, compared by tiles in floats.
 *
 * The product of two vectors of floats is off by less than (width + 3) units of rounding times the
 * product of their norms, whatever the order of summation; so is a distance by the expansion
 * |a - b|^2 = |a|^2 + |b|^2 - 2 ab.  A pair is decided by the tile where the threshold lies outside
 * that band, and by its exact measure where not.  Rows that floats cannot hold, and rows of another
 * length, are "odd": they are always decided exactly.
 *
 * Where the processor multiplies bytes, distances and products are looked at in bytes first (see
 * quantized.h), at a quarter of the cost; floats follow for the tiles in which that leaves much
 * open.
 */
#ifndef WINDJOIN_TILES_H
#define WINDJOIN_TILES_H
#include "quantized.h"
#include "undecided.h"
#include "tile.h"

#define HUGE_NORM 1e30
#define TINY 1e-33

typedef struct {
    int64_t room;
    float *values; /* [part of 32 rows]: [component][32], then bytes [quad][32][4] */
    Bits odd;
    float sure[BLOCK_ROWS], maybe[BLOCK_ROWS];
    QuantizedBlock quantized;
} TileContent;

typedef struct {
    Blocks blocks;
    int measure; /* L2, L1, LINF, DOT or COSINE */
    int doubles;
    int64_t width; /* of nearly all rows; -1: no row yet */
    double *centre;
    double error; /* e: the half width of the band, relative to the sizes of both vectors */
    int64_t quads; /* of the bytes of a vector; 0: there are none */
    ValueRange value_range;
    float *rows; /* [pack size][component]: vectors at hand */
    float *pack; /* [component][pack size] */
    QuantizedPack quantized;
} Tiles;

#define OPEN_SHARE 16 /* more than one pair in so many left open by bytes: floats are worth it */

/* The part of 32 rows that holds row number `at` of a block, and its bytes. */
static inline float *part_values(const Tiles *t, const TileContent *content, int64_t at) {
    return content->values + (at >> 5) * 32 * (t->width + t->quads);
}

static inline uint8_t *part_bytes(const Tiles *t, const TileContent *content, int64_t at) {
    return (uint8_t *)(part_values(t, content, at) + 32 * t->width);
}

/* Whether vectors of a measure are held as bytes too. */
static inline int holds_bytes(int measure, int64_t width) {
    return has_quantized() && width <= WIDEST &&
           (measure == L2 || measure == DOT || measure == COSINE);
}

static inline double component(const Tiles *t, const void *at, int64_t k) {
    return t->doubles ? ((const double *)at)[k] : (double)((const float *)at)[k];
}

/* The size of a vector from a centre: its square, L1 or greatest component; NaN if one is. */
#define SIZE_FROM(type)                                                                            \
    static inline double size_from_##type(int measure, const type *at, const double *centre,       \
                                          int64_t n) {                                             \
        double sum[4] = {0, 0, 0, 0}; /* so that additions need not wait for each other */         \
        for (int64_t k = 0; k < n; k++) {                                                          \
            double x = at[k] - centre[k];                                                          \
            if (measure == L1) sum[k & 3] += fabs(x);                                              \
            else if (measure == LINF)                                                              \
                sum[0] = fabs(x) > sum[0] || isnan(x) ? fabs(x) : isnan(sum[0]) ? NAN : sum[0];    \
            else sum[k & 3] += x * x;                                                              \
        }                                                                                          \
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);                                              \
    }
SIZE_FROM(float)
SIZE_FROM(double)

/* The vector of a row as the tiles hold it; its size, -1 if it is odd.  Products have no centre: it
 * is 0. */
static inline double tile_vector(const Tiles *t, Components row, float *out) {
    double size = 0, scale = 1;
    if (row.n == t->width)
        size = t->doubles ? size_from_double(t->measure, row.at, t->centre, row.n)
                          : size_from_float(t->measure, row.at, t->centre, row.n);
    int odd = row.n != t->width || !(size < (t->measure == COSINE ? 1e290 : HUGE_NORM));
    if (t->measure == COSINE) {
        odd |= !(size > 1e-290);
        if (!odd) scale = 1 / sqrt(size);
    }
    if (odd) memset(out, 0, (size_t)t->width * sizeof(float));
    else if (t->doubles)
        for (int64_t k = 0; k < t->width; k++)
            out[k] = (float)((((const double *)row.at)[k] - t->centre[k]) * scale);
    else
        for (int64_t k = 0; k < t->width; k++)
            out[k] = (float)((((const float *)row.at)[k] - t->centre[k]) * scale);
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

static inline void probe_limits(const Tiles *t, const Measure *m, double size, float *sure,
                                float *maybe) {
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

/* What a pack of asking rows is compared with. */
typedef struct {
    int64_t n;
    double size[MOST_PACK]; /* -1: odd, -2: of another length */
    float sure[MOST_PACK], maybe[MOST_PACK];
    int64_t lo, hi, first_block, stop_block;
} Pack;

/* Rows of one block that are near to each of a pack, for sure and maybe. */
static inline void tile_rows(Tiles *t, const Measure *m, int64_t b, const Pack *pack,
                             const Bits *fits, Bits *sure, Bits *maybe) {
    const RowBlock *block = t->blocks.block[b];
    const TileContent *content = t->blocks.content[b];
    if (t->quads) {
        if (t->quantized.scale != content->quantized.scale)
            quantized_pack(&t->quantized, t->rows, t->width, content->quantized.scale,
                           quantized_size(pack->n), pack->n);
        for (int64_t p = 0; p < t->quantized.n; p++) {
            if (p < pack->n)
                quantized_limits(&t->quantized, &content->quantized, t->measure == L2, m->threshold,
                                 p);
            if (p >= pack->n || pack->size[p] < 0) t->quantized.sure[p] = INT32_MAX;
            if (p >= pack->n) t->quantized.maybe[p] = INT32_MAX;
            else if (pack->size[p] < 0) t->quantized.maybe[p] = INT32_MIN;
        }
    }
    for (int64_t r = 0; r < block->n; r += 32) {
        uint32_t s[MOST_PACK], m_[MOST_PACK], here = (uint32_t)(fits->word[r >> 6] >> (r & 32));
        if (!here) continue;
        uint32_t loose = (uint32_t)(content->quantized.loose.word[r >> 6] >> (r & 32));
        if (t->quads &&
            quantized_tile(t->quads, &t->quantized, part_bytes(t, content, r),
                           content->quantized.own + r, loose, here, r >> 5, sure, maybe) *
                    OPEN_SHARE <=
                32 * pack->n)
            continue;
        run_tile(t->measure, t->width, t->pack, part_values(t, content, r), pack->sure, pack->maybe,
                 content->sure + r, content->maybe + r, s, m_);
        for (int64_t p = 0; p < pack->n; p++) {
            const uint64_t others = ~((uint64_t)UINT32_MAX << (r & 32));
            sure[p].word[r >> 6] = (sure[p].word[r >> 6] & others) | (uint64_t)s[p] << (r & 32);
            maybe[p].word[r >> 6] = (maybe[p].word[r >> 6] & others) | (uint64_t)m_[p] << (r & 32);
        }
    }
}

/* What is known of the rows of a block that one asking row may meet: `found` and `unclear`; whether
 * there is any of them. */
ALWAYS_INLINE int sort_out(const Bits *sure, const Bits *maybe, const Bits *own, int far,
                           Bits *found, Bits *unclear) {
    uint64_t any = 0;
    for (int w = 0; w < WORDS; w++) {
        uint64_t surely = far ? ~maybe->word[w] : sure->word[w];
        uint64_t may = far ? ~sure->word[w] : maybe->word[w];
        found->word[w] = surely & own->word[w];
        unclear->word[w] = may & ~surely & own->word[w];
        any |= found->word[w] | unclear->word[w];
    }
    return any != 0;
}

#ifdef WINDJOIN_X86
TARGET_AVX512 static int sort_out_avx512(const Bits *sure, const Bits *maybe, const Bits *own,
                                         int far, Bits *found, Bits *unclear) {
    return far ? sort_out(sure, maybe, own, 1, found, unclear)
               : sort_out(sure, maybe, own, 0, found, unclear);
}
#endif

static inline int sorted_out(const Bits *sure, const Bits *maybe, const Bits *own, int far,
                             Bits *found, Bits *unclear) {
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) return sort_out_avx512(sure, maybe, own, far, found, unclear);
#endif
    return sort_out(sure, maybe, own, far, found, unclear);
}

/* Drop rows whose times lie outside; whether any is left. */
static inline int keep_times(const RowBlock *block, int64_t lo, int64_t hi, Bits *found,
                             Bits *unclear) {
    uint64_t any = 0;
    for (int w = 0; w < WORDS; w++) {
        if (!(found->word[w] | unclear->word[w])) continue;
        uint64_t in_time = time_word(block, w, lo, hi);
        found->word[w] &= in_time;
        unclear->word[w] &= in_time;
        any |= found->word[w] | unclear->word[w];
    }
    return any != 0;
}

/* What is known of the rows of block b that row p of a pack may meet; whether there is any. */
static inline int tile_known(const Tiles *t, const MeasureMatches *part, int64_t b,
                             const MatchSet *a, int far, int other, const Bits *sure,
                             const Bits *maybe, const Bits *fits, Bits *found, Bits *unclear) {
    const RowBlock *block = t->blocks.block[b];
    const TileContent *content = t->blocks.content[b];
    const Bits none = {{0}};
    if (b < a->first_block || b >= a->first_block + a->n_blocks) return 0;
    if (other) { /* of another length: it can meet odd rows only */
        if (!sorted_out(&none, &content->odd, fits, 0, found, unclear)) return 0;
    } else if (!sorted_out(sure, maybe, fits, far, found, unclear)) return 0;
    if (!block_within(block, a->lo, a->hi) && !keep_times(block, a->lo, a->hi, found, unclear))
        return 0;
    if (!other && has_estimate(&part->measure)) return 1;
    decide(part, block, a->row, unclear, found);
    memset(unclear, 0, sizeof(Bits));
    return 1;
}

/* The answers of a pack, from number `from` on, for one block. */
static inline void tile_block(Tiles *t, MeasureMatches *part, int64_t b, int64_t from,
                              const Pack *pack) {
    const RowBlock *block = t->blocks.block[b];
    const int product = t->measure == DOT || t->measure == COSINE;
    const int above = part->measure.operation == ABOVE || part->measure.operation == FROM;
    const int far = above != product; /* what the tile calls near is what is not wanted */
    Bits fits, sure[MOST_PACK], maybe[MOST_PACK], found[MOST_PACK], unclear;
    UndecidedPairs open; /* mostly room, which is not to be cleared */
    uint32_t some = 0;
    open.part = part, open.block = block, open.width = t->width, open.found = found, open.n = 0;
    memset(sure, 0, (size_t)pack->n * sizeof(Bits));
    memset(maybe, 0, (size_t)pack->n * sizeof(Bits));
    time_bits(block, pack->lo, pack->hi, &fits);
    tile_rows(t, &part->measure, b, pack, &fits, sure, maybe);
    for (int64_t p = 0; p < pack->n; p++) {
        const MatchSet *a = part->match_sets + from + p;
        if (!tile_known(t, part, b, a, far, pack->size[p] == -2, sure + p, maybe + p, &fits,
                        found + p, &unclear))
            continue;
        some |= 1u << p;
        undecided_add(&open, (int)p, components(&part->measure.probing, a->row).at, &unclear);
    }
    undecided_settle(&open);
    for (; some; some &= some - 1) {
        const int p = __builtin_ctz(some);
        if (bits_meet(found + p, found + p))
            *match_set_store(part, part->match_sets + from + p, b) = found[p];
    }
}

/* Take answers from number `from` on into a pack. */
static inline void gather_pack(Tiles *t, const MeasureMatches *part, int64_t from, Pack *pack) {
    const int64_t most = pack_size();
    pack->n = part->n_match_sets - from < most ? part->n_match_sets - from : most;
    pack->lo = pack->first_block = INT64_MAX;
    pack->hi = pack->stop_block = INT64_MIN;
    t->quantized.scale = 0;
    if (pack->n < most) memset(t->pack, 0, (size_t)(t->width * most) * sizeof(float));
    for (int64_t p = 0; p < most; p++) {
        const MatchSet *a = part->match_sets + from + p;
        pack->sure[p] = pack->maybe[p] = INFINITY;
        if (p >= pack->n) continue;
        Components row = components(&part->measure.probing, a->row);
        pack->size[p] = tile_vector(t, row, t->rows + p * t->width);
        for (int64_t k = 0; k < t->width; k++) t->pack[k * most + p] = t->rows[p * t->width + k];
        if (row.n != t->width) pack->size[p] = -2;
        probe_limits(t, &part->measure, pack->size[p], pack->sure + p, pack->maybe + p);
        if (a->lo < pack->lo) pack->lo = a->lo;
        if (a->hi > pack->hi) pack->hi = a->hi;
        if (a->first_block < pack->first_block) pack->first_block = a->first_block;
        if (a->first_block + a->n_blocks > pack->stop_block)
            pack->stop_block = a->first_block + a->n_blocks;
    }
}

static int tiles_fill(void *index, MeasureMatches *part) {
    Tiles *t = index;
    Pack pack;
    for (int64_t from = part->filled; from < part->n_match_sets; from += pack.n) {
        gather_pack(t, part, from, &pack);
        for (int64_t b = pack.first_block; b < pack.stop_block; b++)
            tile_block(t, part, b, from, &pack);
    }
    return 1;
}

static int tiles_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out) {
    Tiles *t = index;
    if (t->width < 0) return 1;
    return serve_groups(&t->blocks, probe, cursor, out, tiles_fill, t);
}

/* Put a row into the last block, which has room for it. */
static inline void tiles_insert(Tiles *t, Components row, int64_t time, int64_t number) {
    RowBlock *block = t->blocks.block[t->blocks.last - 1];
    TileContent *content = t->blocks.content[t->blocks.last - 1];
    int64_t at = block->n;
    float *values = part_values(t, content, at) + (at & 31);
    double size = tile_vector(t, row, t->rows);
    for (int64_t k = 0; k < t->width; k++) values[k * 32] = t->rows[k];
    row_limits(t, size, content->sure + at, content->maybe + at);
    if (size < 0) content->odd.word[at >> 6] |= (uint64_t)1 << (at & 63);
    if (t->quads) {
        if (size >= 0) range_note(&t->value_range, t->rows, t->width);
        if (at == 0) content->quantized.scale = range_scale(&t->value_range, t->width);
        quantized_insert(&content->quantized, t->measure == L2, t->rows, t->width,
                         part_bytes(t, content, at), at);
        content->quantized.loose.word[at >> 6] |= content->odd.word[at >> 6];
    }
    block_add(block, time, number);
    t->blocks.version++;
}
#endif
