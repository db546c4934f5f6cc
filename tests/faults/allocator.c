/* An allocator that fails on purpose: the n-th call made from watched shared objects, or all from the
 * n-th on.  Loaded with LD_PRELOAD; whoever calls from elsewhere gets memory as ever.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *block);

#define MOST_RANGES 256
#define SLOTS ((size_t)1 << 18) /* of blocks that were given out and are not free yet */

static struct {
    uintptr_t from, to;
} range[MOST_RANGES];
static int n_ranges;

static atomic_int armed; /* calls are counted, and blocks noted */
static atomic_long calls, failed;
static long first, last; /* calls that fail */

static pthread_mutex_t noting = PTHREAD_MUTEX_INITIALIZER;
static void *noted[SLOTS];
static atomic_long held, lost; /* noted now; not noted, as there was no slot */
static int noted_any;

/* -- which calls count ---------------------------------------------------------------------- */

static int add_object(struct dl_phdr_info *object, size_t size, void *part) {
    (void)size;
    if (!object->dlpi_name || !strstr(object->dlpi_name, part)) return 0;
    for (int k = 0; k < object->dlpi_phnum && n_ranges < MOST_RANGES; k++) {
        const ElfW(Phdr) *header = object->dlpi_phdr + k;
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_X)) continue;
        range[n_ranges].from = object->dlpi_addr + header->p_vaddr;
        range[n_ranges++].to = object->dlpi_addr + header->p_vaddr + header->p_memsz;
    }
    return 0;
}

static int is_watched(const void *caller) {
    uintptr_t at = (uintptr_t)caller;
    for (int k = 0; k < n_ranges; k++)
        if (at >= range[k].from && at < range[k].to) return 1;
    return 0;
}

/* Whether this call is to fail. */
static int fails(void) {
    long number = atomic_fetch_add(&calls, 1) + 1;
    if (number < first || number > last) return 0;
    atomic_fetch_add(&failed, 1);
    errno = ENOMEM;
    return 1;
}

/* -- which blocks are held ------------------------------------------------------------------ */

static size_t slot_of(const void *block) {
    return (size_t)((uintptr_t)block >> 4) * 0x9E3779B97F4A7C15u >> (64 - 18);
}

static void note(void *block) {
    if (!block) return;
    pthread_mutex_lock(&noting);
    noted_any = 1;
    size_t at = slot_of(block), steps = 0;
    while (noted[at] && noted[at] != (void *)1 && ++steps < SLOTS) at = (at + 1) % SLOTS;
    if (steps < SLOTS) noted[at] = block, held++;
    else lost++;
    pthread_mutex_unlock(&noting);
}

static void forget(void *block) {
    if (!noted_any || !block) return;
    pthread_mutex_lock(&noting);
    size_t at = slot_of(block), steps = 0;
    while (noted[at] && noted[at] != block && ++steps < SLOTS) at = (at + 1) % SLOTS;
    if (noted[at] == block) noted[at] = (void *)1, held--; /* 1: there was one */
    pthread_mutex_unlock(&noting);
}

/* -- for who tests -------------------------------------------------------------------------- */

/* Watch the objects whose path contains `part`; how many. */
int allocator_watch(char *part) {
    n_ranges = 0;
    dl_iterate_phdr(add_object, part);
    return n_ranges;
}

/* From now on count calls; those numbered from .. to fail. */
void allocator_arm(long from, long to) {
    calls = failed = 0;
    first = from, last = to;
    armed = 1;
}

/* Nothing fails any more; how many calls there were.  Blocks are still noted. */
long allocator_disarm(void) {
    first = 1, last = 0;
    return calls;
}

long allocator_failed(void) { return failed; }

/* Blocks given out since the allocator was armed that nobody has freed. */
long allocator_held(void) { return held + lost; }

/* -- the allocator -------------------------------------------------------------------------- */

#define WATCHED (armed && is_watched(__builtin_return_address(0)))

void *malloc(size_t bytes) {
    if (!WATCHED) return __libc_malloc(bytes);
    void *block = fails() ? NULL : __libc_malloc(bytes);
    note(block);
    return block;
}

void *calloc(size_t n, size_t size) {
    if (!WATCHED) return __libc_calloc(n, size);
    void *block = fails() ? NULL : __libc_calloc(n, size);
    note(block);
    return block;
}

void *realloc(void *old, size_t bytes) {
    if (!WATCHED) {
        forget(old);
        return __libc_realloc(old, bytes);
    }
    if (fails()) return NULL;
    forget(old);
    void *block = __libc_realloc(old, bytes);
    note(block);
    return block;
}

static void *aligned(size_t alignment, size_t bytes, int watched) {
    if (!watched) return __libc_memalign(alignment, bytes);
    void *block = fails() ? NULL : __libc_memalign(alignment, bytes);
    note(block);
    return block;
}

void *aligned_alloc(size_t alignment, size_t bytes) { return aligned(alignment, bytes, WATCHED); }
void *memalign(size_t alignment, size_t bytes) { return aligned(alignment, bytes, WATCHED); }

int posix_memalign(void **block, size_t alignment, size_t bytes) {
    void *made = aligned(alignment, bytes, WATCHED);
    if (!made) return ENOMEM;
    *block = made;
    return 0;
}

void free(void *block) {
    forget(block);
    __libc_free(block);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    if (WATCHED && fails()) return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
}

void *mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...) {
    va_list more;
    va_start(more, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
    va_end(more);
    if (WATCHED && fails()) return MAP_FAILED;
    return (void *)syscall(SYS_mremap, old, old_bytes, bytes, flags, to);
}
