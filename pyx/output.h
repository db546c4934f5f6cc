/* Memory for results: large chunks on huge pages, whose first touch costs a tenth. */
#ifndef WINDJOIN_OUTPUT_H
#define WINDJOIN_OUTPUT_H
#include <stdint.h>
#include <stdlib.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#define HUGE_PAGE ((size_t)1 << 21)

static inline int64_t *new_chunk(int64_t n) {
    size_t bytes = (size_t)n * sizeof(int64_t);
    if (bytes < HUGE_PAGE) return malloc(bytes);
    bytes = (bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    void *chunk = aligned_alloc(HUGE_PAGE, bytes);
#ifdef MADV_HUGEPAGE
    if (chunk) madvise(chunk, bytes, MADV_HUGEPAGE);
#endif
    return chunk;
}
#endif
