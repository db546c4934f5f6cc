/* Sets in blocks, turned on their side: for every item one bit per row of the block.
 *
 * Popular items own a bitmap each ("lane"); the rest share lanes by their hash, and what the shared
 * lanes propose is verified.  A probe adds up the lanes of its items, 512 rows at a time.  Which
 * items are popular is learned while rows come in; blocks remember the lanes they were made with.
 */
#ifndef WINDJOIN_BITMAPS_H
#define WINDJOIN_BITMAPS_H
#include "groups.h"

#define MOST_PLANES 31
#define TOGETHER 2048 /* asking rows that go over a block while it is in cache, at most */

typedef struct {
    int64_t users;
    int64_t n_own, n_shared; /* n_shared: a power of two */
    int64_t n_codes;
    int32_t own[]; /* by code: its lane, -1: a shared one */
} Lanes;

typedef struct {
    Lanes *lanes;
    int64_t exact; /* no shared lane is in use */
    Bits *lane;    /* n_own + n_shared, and an empty one at the end */
} SetContent;

typedef struct {
    Blocks blocks;
    int weighted;
    int32_t *lane_of; /* of the items of TOGETHER rows */
    int64_t room;
} Bitmaps;

static inline int64_t n_lanes(const Lanes *l) { return l->n_own + l->n_shared; }

static inline int32_t lane_of(const Lanes *l, int32_t code) {
    if (code < l->n_codes && l->own[code] >= 0) return l->own[code];
    uint64_t hash = (uint64_t)code * 0x9E3779B97F4A7C15u >> 32;
    return (int32_t)(l->n_own + (int64_t)(hash & (uint64_t)(l->n_shared - 1)));
}

static inline const int32_t *codes_of(const Bitmaps *b, Components row) {
    return b->weighted ? WEIGHTED_CODES(row.at, row.n) : (const int32_t *)row.at;
}

#define PARTS (int)(sizeof(Bits) / sizeof(VECTOR))
#define FROM_BITS(b, part) LOAD((const VECTOR *)(b) + part)
#define TO_BITS(b, part, v) STORE((VECTOR *)(b) + part, v)

#ifdef WINDJOIN_X86
#define COUNT count_avx512
#define TARGET TARGET_AVX512
#define VECTOR __m512i
#define LOAD _mm512_load_si512
#define STORE _mm512_store_si512
#define OR _mm512_or_si512
#define AND _mm512_and_si512
#define XOR _mm512_xor_si512
#define SUM3(a, b, c) _mm512_ternarylogic_epi64(a, b, c, 0x96)
#define CARRY3(a, b, c) _mm512_ternarylogic_epi64(a, b, c, 0xE8)
#define FULL _mm512_set1_epi64(-1)
#define EMPTY _mm512_setzero_si512()
#define NONZERO(a) (_mm512_test_epi64_mask(a, a) != 0)
#include "count.inc"
#undef COUNT
#undef TARGET
#undef VECTOR
#undef LOAD
#undef STORE
#undef OR
#undef AND
#undef XOR
#undef SUM3
#undef CARRY3
#undef FULL
#undef EMPTY
#undef NONZERO

#define SUM3(a, b, c) XOR(XOR(a, b), c)
#define CARRY3(a, b, c) OR(AND(a, b), AND(c, XOR(a, b)))
#define COUNT count_avx2
#define TARGET TARGET_AVX2
#define VECTOR __m256i
#define LOAD _mm256_load_si256
#define STORE _mm256_store_si256
#define OR _mm256_or_si256
#define AND _mm256_and_si256
#define XOR _mm256_xor_si256
#define FULL _mm256_set1_epi64x(-1)
#define EMPTY _mm256_setzero_si256()
#define NONZERO(a) (!_mm256_testz_si256(a, a))
#include "count.inc"
#undef COUNT
#undef TARGET
#undef VECTOR
#undef LOAD
#undef STORE
#undef OR
#undef AND
#undef XOR
#undef FULL
#undef EMPTY
#undef NONZERO
#else
#define SUM3(a, b, c) XOR(XOR(a, b), c)
#define CARRY3(a, b, c) OR(AND(a, b), AND(c, XOR(a, b)))
#endif

#define COUNT count_plain
#define TARGET
#define VECTOR uint64_t
#define LOAD(p) (*(p))
#define STORE(p, v) (*(p) = (v))
#define OR(a, b) ((a) | (b))
#define AND(a, b) ((a) & (b))
#define XOR(a, b) ((a) ^ (b))
#define FULL (~(uint64_t)0)
#define EMPTY ((uint64_t)0)
#define NONZERO(a) ((a) != 0)
#include "count.inc"

/* Rows with at least k of the lanes, and whether there are any; m is a multiple of 4. */
static inline int count_lanes(const Bits *bits, const int32_t *lane, int64_t m, int64_t k, Bits *out) {
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) return count_avx512(bits, lane, m, k, out);
    if (isa_level() == ISA_AVX2) return count_avx2(bits, lane, m, k, out);
#endif
    return count_plain(bits, lane, m, k, out);
}

/* The greatest measure that a set of n items can have with any other, `common` items in common. */
static inline double most_similar(const Measure *m, int64_t n, int64_t common) {
    switch (m->measure) {
    case OVERLAP: return (double)common;
    case JACCARD: return (double)common / (double)n;
    case CONTAINMENT: return m->turned ? 1.0 : (double)common / (double)n;
    case COSINE_SETS: return (double)common / sqrt((double)(n * common));
    default: return INFINITY;
    }
}

/* How many items a row must share with a set of n to pass; 0: none can. */
static inline int64_t items_needed(const Measure *m, int64_t n) {
    for (int64_t common = 1; common <= n; common++) {
        double best = most_similar(m, n, common);
        if (best == INFINITY || passes(m, best)) return common;
    }
    return 0;
}

/* Whether the number of common items alone decides. */
static inline int count_decides(const Measure *m) {
    return m->measure == OVERLAP || (m->measure == CONTAINMENT && !m->turned);
}

/* The lanes of asking rows [from, from + n), each padded to a multiple of 4 with the empty lane. */
static inline void find_lanes(Bitmaps *all, const Part *p, const Lanes *lanes, int64_t from,
                              int64_t n, int64_t *start) {
    int64_t used = 0;
    for (int64_t i = 0; i < n; i++) {
        Components row = components(&p->measure.asking, p->answers[from + i].row);
        const int32_t *codes = codes_of(all, row);
        start[i] = used;
        if (used + row.n + 4 > all->room) {
            all->room = 2 * (used + row.n + 4);
            all->lane_of = realloc(all->lane_of, (size_t)all->room * sizeof(int32_t));
            if (!all->lane_of) no_memory("items", all->room);
        }
        for (int64_t k = 0; k < row.n; k++) all->lane_of[used++] = lane_of(lanes, codes[k]);
        while (used & 3) all->lane_of[used++] = (int32_t)n_lanes(lanes);
    }
    start[n] = used;
}

static inline void bitmaps_block(Bitmaps *all, Part *p, int64_t b, int64_t from, int64_t n,
                                 const int64_t *start, const int64_t *needed) {
    const Block *block = all->blocks.block[b];
    const SetContent *content = all->blocks.content[b];
    int clear = content->exact && count_decides(&p->measure);
    for (int64_t i = 0; i < n; i++) {
        const Answer *a = p->answers + from + i;
        if (b < a->first_block || b >= a->first_block + a->n_blocks) continue;
        Bits maybe, fits, sure = {{0}};
        if (!needed[i]) continue;
        const int32_t *lane = all->lane_of + start[i];
        if (!count_lanes(content->lane, lane, start[i + 1] - start[i], needed[i], &maybe)) continue;
        if (!clear) {
            if (!block_within(block, a->lo, a->hi)) {
                time_bits(block, a->lo, a->hi, &fits);
                bits_meet(&maybe, &fits);
            }
            decide(p, block, a->row, &maybe, &sure);
            if (!bits_meet(&maybe, &sure)) continue;
        }
        *answer_store(p, a, b) = maybe;
    }
}

static void bitmaps_fill(void *index, Part *p) {
    Bitmaps *all = index;
    int64_t start[TOGETHER + 1], needed[TOGETHER];
    for (int64_t from = p->filled; from < p->n_answers; from += TOGETHER) {
        int64_t n = p->n_answers - from < TOGETHER ? p->n_answers - from : TOGETHER;
        int64_t first = INT64_MAX, stop = 0;
        const Lanes *lanes = NULL;
        for (int64_t i = 0; i < n; i++) {
            const Answer *a = p->answers + from + i;
            needed[i] = items_needed(&p->measure, components(&p->measure.asking, a->row).n);
            if (a->first_block < first) first = a->first_block;
            if (a->first_block + a->n_blocks > stop) stop = a->first_block + a->n_blocks;
        }
        for (int64_t b = first; b < stop; b++) {
            const SetContent *content = all->blocks.content[b];
            if (content->lanes != lanes) find_lanes(all, p, lanes = content->lanes, from, n, start);
            bitmaps_block(all, p, b, from, n, start, needed);
        }
    }
}

static int bitmaps_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out) {
    Bitmaps *all = index;
    return serve_groups(&all->blocks, probe, cursor, out, bitmaps_fill, all);
}

static inline void bitmaps_put(Bitmaps *all, Components row, int64_t time, int64_t number) {
    Block *block = all->blocks.block[all->blocks.last - 1];
    SetContent *content = all->blocks.content[all->blocks.last - 1];
    const int32_t *codes = codes_of(all, row);
    uint64_t bit = (uint64_t)1 << (block->n & 63);
    for (int64_t k = 0; k < row.n; k++) {
        int32_t lane = lane_of(content->lanes, codes[k]);
        if (lane >= content->lanes->n_own) content->exact = 0;
        content->lane[lane].word[block->n >> 6] |= bit;
    }
    block_add(block, time, number);
    all->blocks.version++;
}
#endif
