/* An allocator that fails on purpose: the n-th call that watched shared objects make at a site,
 * alone or with all calls that follow.  A site is a stack of calls, as far as it lies in watched
 * objects. Loaded with LD_PRELOAD; whoever calls from elsewhere gets memory as ever.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
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
#define MOST_SITES 4096
#define MOST_CALLS 65536
#define MOST_FRAMES 256
#define SLOTS ((size_t)1 << 18) /* of blocks that were given out and are not free yet */

static struct {
    uintptr_t from, to;
} range[MOST_RANGES];
static int n_ranges;

static atomic_int armed, noticed; /* blocks are noted; calls are counted, and may fail */
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint64_t stack; /* all return addresses; 0: free */
    long calls;
} site[MOST_SITES];
static uint64_t site_of[MOST_CALLS]; /* of each call, in the order of calls */
static long calls, failed;
static uint64_t fails_at; /* a site */
static long fails_nth;    /* of its calls; 0: none */
static int and_all_after, failing;

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

/* -- which call fails ----------------------------------------------------------------------- */

/* The first unwinding loads what it needs. */
__attribute__((constructor)) static void load_unwinder(void) {
    void *frame[1];
    backtrace(frame, 1);
}

/* What tells this site from others. */
static uint64_t stack_here(void) {
    void *frame[MOST_FRAMES];
    int n = backtrace(frame, MOST_FRAMES);
    uint64_t stack = 0x9E3779B97F4A7C15u;
    for (int k = 0; k < n; k++)
        if (is_watched(frame[k]))
            stack = (stack ^ (uintptr_t)frame[k]) * 0x100000001B3u, stack ^= stack >> 29;
    return stack | 1;
}

/* Count a call of a site; its number among those of the site. */
static long count(uint64_t stack) {
    size_t at = stack % MOST_SITES, steps = 0;
    while (site[at].stack && site[at].stack != stack && ++steps < MOST_SITES)
        at = (at + 1) % MOST_SITES;
    if (steps == MOST_SITES || calls == MOST_CALLS) abort(); /* who walks must see all of them */
    site[at].stack = stack;
    site_of[calls++] = stack;
    return ++site[at].calls;
}

/* Whether this call is to fail. */
static int fails(void) {
    if (!noticed) return 0;
    uint64_t stack = stack_here();
    pthread_mutex_lock(&counting);
    long nth = count(stack);
    int now = failing || (fails_nth && stack == fails_at && nth == fails_nth);
    failing = now && and_all_after;
    failed += now;
    pthread_mutex_unlock(&counting);
    if (now) errno = ENOMEM;
    return now;
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

/* From now on note blocks and count calls; the nth one at a site fails, and all after it if asked.
 * nth 0: none. */
void allocator_arm(uint64_t stack, long nth, int all_after) {
    pthread_mutex_lock(&noting);
    if (noted_any) memset(noted, 0, sizeof noted);
    noted_any = 0, held = lost = 0;
    pthread_mutex_unlock(&noting);
    memset(site, 0, sizeof site);
    calls = failed = failing = 0;
    fails_at = stack, fails_nth = nth, and_all_after = all_after;
    armed = noticed = 1;
}

/* Nothing fails any more; how many calls there were.  Blocks are still noted. */
long allocator_disarm(void) {
    pthread_mutex_lock(&counting);
    noticed = failing = 0;
    long were = calls;
    pthread_mutex_unlock(&counting);
    return were;
}

/* The site of each call, in order. */
const uint64_t *allocator_sites(void) { return site_of; }

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
