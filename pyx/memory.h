/* Memory for large arrays lies on huge pages: first touch costs a tenth, and random reads do not
 * miss the TLB. */
#ifndef WINDJOIN_MEMORY_H
#define WINDJOIN_MEMORY_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* mremap */
#endif
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#define HUGE_PAGE ((size_t)1 << 21)

/* What new_array(n) takes: whole huge pages, if nearly as much as one is asked for. */
static inline size_t array_bytes(int64_t n) {
    size_t bytes = (size_t)n * sizeof(int64_t);
    return bytes < HUGE_PAGE / 2 ? bytes : (bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
}

/* n int64; to be freed with free(). */
static inline int64_t *new_array(int64_t n) {
    size_t bytes = array_bytes(n);
    if (bytes < HUGE_PAGE) return malloc(bytes ? bytes : 8);
    void *array = aligned_alloc(HUGE_PAGE, bytes);
#ifdef MADV_HUGEPAGE
    if (array) madvise(array, bytes, MADV_HUGEPAGE);
#endif
    return array;
}

/* A larger array with the first `used` elements of the old one, which is freed; NULL: no memory, and
 * the old one stays. */
static inline int64_t *grown_array(int64_t *old, int64_t used, int64_t n) {
    int64_t *array = new_array(n);
    if (!array) return NULL;
    if (old) memcpy(array, old, (size_t)used * sizeof(int64_t));
    free(old);
    return array;
}

/* A block that can grow without being copied: large ones are mappings that the kernel moves by their
 * page tables.  bytes is the room; 0: no block. */
typedef struct {
    void *data;
    size_t bytes;
} Block;

#define MAPPED_FROM HUGE_PAGE

static inline int block_is_mapped(const Block *block) {
#ifdef MREMAP_FIXED
    return block->bytes >= MAPPED_FROM;
#else
    (void)block;
    return 0;
#endif
}

static inline void block_free(Block *block) {
#ifdef MREMAP_FIXED
    if (block_is_mapped(block)) munmap(block->data, block->bytes);
    else
#endif
        free(block->data);
    block->data = NULL;
    block->bytes = 0;
}

#ifdef MREMAP_FIXED
/* Address space on a border of huge pages, its pages not yet there. */
static inline void *new_mapping(size_t bytes) {
    char *space = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) return NULL;
    size_t before = (HUGE_PAGE - ((uintptr_t)space & (HUGE_PAGE - 1))) & (HUGE_PAGE - 1);
    if (before) munmap(space, before);
    if (before < HUGE_PAGE) munmap(space + before + bytes, HUGE_PAGE - before);
    madvise(space + before, bytes, MADV_HUGEPAGE);
    return space + before;
}
#endif

/* Room for `bytes`, what is there kept; 0: no memory, and the block stays as it is. */
static inline int block_grow(Block *block, size_t bytes) {
    if (bytes <= block->bytes) return 1;
#ifdef MREMAP_FIXED
    if (bytes >= MAPPED_FROM) {
        bytes = (bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
        void *wider = new_mapping(bytes);
        if (!wider) return 0;
        if (block_is_mapped(block)) {
            if (mremap(block->data, block->bytes, block->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, wider) ==
                MAP_FAILED) {
                munmap(wider, bytes);
                return 0;
            }
        } else if (block->data) {
            memcpy(wider, block->data, block->bytes);
            free(block->data);
        }
        block->data = wider;
        block->bytes = bytes;
        return 1;
    }
#endif
    void *grown = realloc(block->data, bytes);
    if (!grown) return 0;
    block->data = grown;
    block->bytes = bytes;
    return 1;
}

/* Give back what lies behind the first `used` bytes. */
static inline void block_trim(Block *block, size_t used) {
#ifdef MREMAP_FIXED
    if (block_is_mapped(block)) {
        size_t kept = (used + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
        if (kept < HUGE_PAGE) kept = HUGE_PAGE;
        if (kept < block->bytes) munmap((char *)block->data + kept, block->bytes - kept);
        if (kept < block->bytes) block->bytes = kept;
        return;
    }
#endif
    void *shrunk = realloc(block->data, used ? used : 1);
    if (shrunk) {
        block->data = shrunk;
        block->bytes = used ? used : 1;
    }
}
#endif
