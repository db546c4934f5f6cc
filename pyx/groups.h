/* Probes that are answered together: what all rows of a stretch of blocks say to each of them.
 *
 * A group is a run of probes, as long as its answers (one bit per row of the blocks it meets and per
 * different row that asks) fit into a room that stays in cache.  An index fills the answers of a
 * group at once, which is where tiles of many probes against many rows are computed; then they are
 * given out probe by probe, in order, over as many calls as it takes.
 */
#ifndef WINDJOIN_GROUPS_H
#define WINDJOIN_GROUPS_H
#include <stdio.h>

#include "blocks.h"
#include "measures.h"

#define MOST_PROBES 4096
#define ASKING_SLOTS 16384
#define ANSWER_BITS_ROOM ((int64_t)1 << 14) /* Bits: 1 MiB */

typedef struct {
    Measure measure;
    int64_t begin, end;           /* probes of the group that is answered now; none: equal */
    int64_t first_block, n_blocks;
    int64_t earliest, latest;     /* over the time ranges of the group */
    int64_t n_asking;             /* different rows that ask */
    int64_t asking[MOST_PROBES];  /* their row numbers, and the times they ask for */
    int64_t lo[MOST_PROBES], hi[MOST_PROBES];
    int64_t slot[MOST_PROBES];
    int32_t place[MOST_PROBES];   /* probe - begin -> asking row */
    int64_t slot_row[ASKING_SLOTS];
    int32_t slot_place[ASKING_SLOTS]; /* asking row + 1; 0: empty */
    int64_t n_answers;
    Bits *answers;                /* [asking row][block] */
    void *more;                   /* an index's own */
} Group;

static inline Bits *answer(Group *g, int64_t asking, int64_t block) {
    return g->answers + asking * g->n_blocks + block - g->first_block;
}

/* The number of an asking row among those of the group. */
static inline int32_t asking_place(Group *g, int64_t row, int64_t lo, int64_t hi) {
    uint64_t slot = ((uint64_t)row * 0x9E3779B97F4A7C15u) >> 50;
    while (g->slot_place[slot] && g->slot_row[slot] != row) slot = (slot + 1) & (ASKING_SLOTS - 1);
    int32_t place = g->slot_place[slot] - 1;
    if (place < 0) {
        place = (int32_t)g->n_asking++;
        g->slot_row[slot] = g->asking[place] = row;
        g->slot_place[slot] = place + 1;
        g->slot[place] = (int64_t)slot;
        g->lo[place] = lo;
        g->hi[place] = hi;
    }
    if (lo < g->lo[place]) g->lo[place] = lo;
    if (hi > g->hi[place]) g->hi[place] = hi;
    return place;
}

/* Take probes from `begin` on into the group while their answers fit. */
static inline void group_begin(Group *g, const Blocks *all, const Probe *probe, int64_t begin) {
    int64_t i = begin, stop = 0;
    for (int64_t k = 0; k < g->n_asking; k++) g->slot_place[g->slot[k]] = 0;
    g->begin = g->end = begin;
    g->n_asking = 0;
    g->earliest = INT64_MAX;
    g->latest = INT64_MIN;
    g->first_block = g->n_blocks = 0;
    for (; i < probe->n && i - begin < MOST_PROBES; i++) {
        int64_t lo = probe->lo[i] < g->earliest ? probe->lo[i] : g->earliest;
        int64_t hi = probe->hi[i] > g->latest ? probe->hi[i] : g->latest;
        int64_t first = blocks_between(all, lo, hi, &stop);
        if (i > begin && (g->n_asking + 1) * (stop - first) > ANSWER_BITS_ROOM) break;
        g->earliest = lo, g->latest = hi;
        g->first_block = first, g->n_blocks = stop - first;
        g->place[i - begin] = asking_place(g, probe->row[i], probe->lo[i], probe->hi[i]);
    }
    g->end = i;
    int64_t wanted = g->n_asking * g->n_blocks;
    if (wanted > g->n_answers) {
        free(g->answers);
        g->n_answers = wanted + wanted / 4;
        g->answers = aligned_alloc(64, (size_t)g->n_answers * sizeof(Bits));
        if (!g->answers) {
            fprintf(stderr, "windjoin: no memory for %lld bits of answers\n", (long long)wanted * 512);
            abort();
        }
    }
    memset(g->answers, 0, (size_t)wanted * sizeof(Bits));
}

/* Give out answers from the cursor on; 0: `out` is full. */
static inline int group_emit(Group *g, const Blocks *all, const Probe *probe, Cursor *cursor, Pairs *out) {
    for (; cursor->probe < g->end; cursor->probe++, cursor->part = 0) {
        int64_t i = cursor->probe, lo = probe->lo[i], hi = probe->hi[i];
        int64_t asking = g->place[i - g->begin];
        for (; cursor->part < g->n_blocks; cursor->part++) {
            const Block *block = all->block[g->first_block + cursor->part];
            if (!block_meets(block, lo, hi)) continue;
            if (out->n + BLOCK_ROWS > out->capacity) return 0;
            const Bits *found = answer(g, asking, g->first_block + cursor->part);
            if (lo <= block->earliest && hi >= block->latest) {
                emit_bits(block, found, (int32_t)i, out);
                continue;
            }
            Bits fits;
            time_bits(block, lo, hi, &fits);
            for (int w = 0; w < WORDS; w++) fits.word[w] &= found->word[w];
            emit_bits(block, &fits, (int32_t)i, out);
        }
    }
    return 1;
}

/* Serve a block of probes through groups; `fill` answers one group. */
static inline int serve_groups(const Blocks *all, const Probe *probe, Cursor *cursor, Pairs *out,
                               void (*fill)(void *index, Group *g), void *index) {
    Group *g = probe->asker;
    if (cursor->probe == 0 && cursor->part == 0 && cursor->stop == 0) g->begin = g->end = 0;
    cursor->stop = 1; /* begun */
    while (cursor->probe < probe->n) {
        if (cursor->probe >= g->end || cursor->probe < g->begin) {
            group_begin(g, all, probe, cursor->probe);
            if (g->n_blocks) fill(index, g);
        }
        if (!group_emit(g, all, probe, cursor, out)) return 0;
    }
    return 1;
}

/* Keep of the rows of a block whose bits are set in `maybe` those that pass, and add them to `sure`. */
static inline void decide(const Group *g, const Block *block, int64_t asking, const Bits *maybe, Bits *sure) {
    Components asks = components(&g->measure.asking, asking);
    for (int w = 0; w < WORDS; w++)
        for (uint64_t word = maybe->word[w]; word; word &= word - 1) {
            int64_t at = __builtin_ctzll(word), row = block->row[w * 64 + at];
            if (rows_pass(&g->measure, asks, components(&g->measure.target, row)))
                sure->word[w] |= (uint64_t)1 << at;
        }
}
#endif
