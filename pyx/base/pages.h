/* Blocks that grow without being copied, of pages that were used before.
 *
 * The first touch of fresh memory costs several times what is written to it.  A large block
 * therefore is a stretch of addresses into which the kernel moves pieces, by their page tables,
 * from blocks that are gone; only where there is none does it get fresh pages.
 */
#ifndef WINDJOIN_PAGES_H
#define WINDJOIN_PAGES_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* mremap */
#endif
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

/* a huge page; a move takes some microseconds, whatever its size */
#define PIECE ((size_t)1 << 21)
#define MAPPED_FROM (PIECE / 2)
#define FIRST_SPACE (16 * PIECE)
#define MOST_SPARE 128

/* bytes is the room; space: addresses of a mapping, pieces up to `bytes`, 0: from malloc. */
typedef struct {
    char *data;
    size_t bytes, space;
} OutputBlock;

/* Pieces that nobody uses, each with its address. */
typedef struct {
    char *piece[MOST_SPARE];
    int n;
} Spare;

static inline size_t whole_pieces(size_t bytes) { return (bytes + PIECE - 1) & ~(PIECE - 1); }

#ifdef MREMAP_FIXED
/* Addresses from a border of huge pages on, their pages not yet there. */
static inline char *new_addresses(size_t bytes) {
    char *space = mmap(NULL, bytes + PIECE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) return NULL;
    size_t before = (PIECE - ((uintptr_t)space & (PIECE - 1))) & (PIECE - 1);
    if (before) munmap(space, before);
    if (before < PIECE) munmap(space + before + bytes, PIECE - before);
    madvise(space + before, bytes, MADV_HUGEPAGE);
    return space + before;
}

/* Move pages from one address to another, piece by piece: each may be a mapping of its own. */
static inline void pieces_move(char *from, size_t bytes, char *to) {
    for (size_t at = 0; at < bytes; at += PIECE) {
        void *moved = mremap(from + at, PIECE, PIECE, MREMAP_MAYMOVE | MREMAP_FIXED, to + at);
        if (moved != MAP_FAILED) continue;
        memcpy(to + at, from + at, PIECE); /* too many mappings */
        munmap(from + at, PIECE);
    }
}

static inline void pieces_give(char *data, size_t bytes, Spare *spare) {
    for (size_t at = 0; at < bytes; at += PIECE) {
        if (spare->n < MOST_SPARE) spare->piece[spare->n++] = data + at;
        else munmap(data + at, PIECE);
    }
}

/* Addresses for `bytes`; the pieces of a mapping come along. */
static inline int block_widen(OutputBlock *block, size_t bytes) {
    if (bytes <= block->space) return 1;
    size_t space = 4 * block->space > FIRST_SPACE ? 4 * block->space : FIRST_SPACE;
    if (space < bytes) space = bytes;
    char *data = new_addresses(space);
    if (!data) return 0;
    pieces_move(block->data, block->bytes, data);
    if (block->bytes < block->space)
        munmap(block->data + block->bytes, block->space - block->bytes);
    block->data = data;
    block->space = space;
    return 1;
}
#endif

/* Give back what lies behind the first `used` bytes. */
static inline void block_trim(OutputBlock *block, size_t used, Spare *spare) {
#ifdef MREMAP_FIXED
    if (block->space) {
        size_t kept = whole_pieces(used);
        if (kept < block->bytes) pieces_give(block->data + kept, block->bytes - kept, spare);
        if (block->bytes < block->space)
            munmap(block->data + block->bytes, block->space - block->bytes);
        block->bytes = block->space = kept;
        if (!kept) block->data = NULL;
        return;
    }
#endif
    (void)spare;
    void *shrunk = realloc(block->data, used ? used : 1);
    if (!shrunk) return;
    block->data = shrunk;
    block->bytes = used ? used : 1;
}

static inline void block_free(OutputBlock *block, Spare *spare) {
    if (block->space) block_trim(block, 0, spare);
    else free(block->data);
    memset(block, 0, sizeof(OutputBlock));
}

/* Room for `bytes`, what is there kept; 0: no memory, and the block stays as it is. */
static inline int block_grow(OutputBlock *block, size_t bytes, Spare *spare) {
    if (bytes <= block->bytes) return 1;
#ifdef MREMAP_FIXED
    if (bytes >= MAPPED_FROM) {
        OutputBlock wider = {0}, copied = {0};
        if (block->space) wider = *block;
        else copied = *block;
        if (!block_widen(&wider, whole_pieces(bytes))) return 0;
        for (; wider.bytes < bytes; wider.bytes += PIECE)
            if (spare->n) pieces_move(spare->piece[--spare->n], PIECE, wider.data + wider.bytes);
        if (copied.data) memcpy(wider.data, copied.data, copied.bytes);
        free(copied.data);
        *block = wider;
        return 1;
    }
#endif
    (void)spare;
    void *grown = realloc(block->data, bytes);
    if (!grown) return 0;
    block->data = grown;
    block->bytes = bytes;
    return 1;
}

/* Put the pieces of another block behind those of this one; 0: no memory, and both stay. */
static inline int block_append(OutputBlock *block, OutputBlock *part) {
#ifdef MREMAP_FIXED
    if (!block_widen(block, block->bytes + part->bytes)) return 0;
    pieces_move(part->data, part->bytes, block->data + block->bytes);
    block->bytes += part->bytes;
    if (part->bytes < part->space) munmap(part->data + part->bytes, part->space - part->bytes);
    memset(part, 0, sizeof(OutputBlock));
    return 1;
#else
    (void)block, (void)part;
    return 0;
#endif
}

/* Give spare pieces back to the system; how many bytes. */
static inline size_t spare_release(Spare *spare) {
    size_t bytes = (size_t)spare->n * PIECE;
#ifdef MREMAP_FIXED
    while (spare->n) munmap(spare->piece[--spare->n], PIECE);
#endif
    return bytes;
}
#endif
