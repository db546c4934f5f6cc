/* Memory for large arrays lies on huge pages: first touch costs a tenth, and random reads do not
 * miss the TLB. */
#ifndef WINDJOIN_MEMORY_H
#define WINDJOIN_MEMORY_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <malloc.h>
#include <sys/mman.h>
#endif

#define HUGE_PAGE ((size_t)1 << 21)

/* As memcpy and memmove, which want to know where even if there is nothing. */
static inline void copy_bytes(void *to, const void *from, size_t bytes) {
    if (bytes) memcpy(to, from, bytes);
}

static inline void move_bytes(void *to, const void *from, size_t bytes) {
    if (bytes) memmove(to, from, bytes);
}

/* What new_array(n) takes: huge pages as far as there is a whole one, then small ones. */
static inline size_t array_bytes(int64_t n) {
    size_t bytes = (size_t)n * sizeof(int64_t);
    return bytes < HUGE_PAGE ? bytes : (bytes + 4095) & ~(size_t)4095;
}

/* n int64; to be freed with free(), or with free_array(). */
static inline int64_t *new_array(int64_t n) {
    size_t bytes = array_bytes(n);
    if (bytes < HUGE_PAGE) return malloc(bytes ? bytes : 8);
    void *array = NULL; /* aligned_alloc wants a size that is a multiple */
    if (posix_memalign(&array, HUGE_PAGE, bytes)) return NULL;
#ifdef MADV_HUGEPAGE
    madvise(array, bytes, MADV_HUGEPAGE);
#endif
    return array;
}

/* Free what new_array gave, and give the pages of a large one back at once: what windows held has
 * to go when they shrink, and malloc keeps up to 64 MB at the end of a thread's arena, where
 * malloc_trim does not reach.  What the next batch wants again is better left to free(). */
static inline void free_array(void *array) {
#if defined(__GLIBC__) && defined(MADV_DONTNEED)
    size_t bytes = array ? malloc_usable_size(array) : 0;
    if (bytes >= HUGE_PAGE && !((uintptr_t)array & (HUGE_PAGE - 1)))
        madvise(array, bytes & ~(size_t)4095, MADV_DONTNEED);
#endif
    free(array);
}

/* Give what was freed back to the system, from wherever it lies. */
static inline void give_back(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

/* A larger array with the first `used` elements of the old one, which is freed; NULL: no memory,
 * and the old one stays. */
static inline int64_t *grown_array(int64_t *old, int64_t used, int64_t n) {
    int64_t *array = new_array(n);
    if (!array) return NULL;
    copy_bytes(array, old, (size_t)used * sizeof(int64_t));
    free_array(old);
    return array;
}
#endif
