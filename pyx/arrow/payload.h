/* Columns of the rows of a live window, from which results are gathered.
 *
 * Rows [head, tail) by arrival number lie in pages of 2^shift rows.  In a page every column lies as
 * Arrow lays it out, and nothing in it is an address:
 *
 *   memory of a page              part of a column whose values vary in length
 *   +----------------------+      +--------------------------------+
 *   | column 0: valid bits |      | bytes: items of place 0, 1 ... |
 *   |           values     |      +--------------------------------+
 *   | column 1: valid bits |            ^
 *   |           offsets    |------------+ items offsets[place] to offsets[place + 1]
 *   +----------------------+
 *
 * Row r lies in page (r >> shift) & mask, at place r & (2^shift - 1).  A page is filled once, and
 * goes, or serves again, when all its rows are behind head.
 */
#ifndef WINDJOIN_PAYLOAD_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define WINDJOIN_PAYLOAD_H
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arrow_c.h"

enum { FIXED, BITS, VARIABLE };

#define OVERRUN 32       /* bytes that a copy may read behind a value */
#define SPARE_BYTES 65536 /* of one column of a page that waits to serve again */

typedef struct {
    int kind;
    int64_t width;         /* bytes of a value; of an item if VARIABLE */
    int64_t items;         /* FIXED: items of a value that Arrow keeps in a child array, or 0 */
    int child;             /* whether items are a child array */
    int offset_bytes;      /* VARIABLE: of Arrow's offsets, 4 or 8 */
    int64_t valid, values; /* where these begin in a page; values: offsets if VARIABLE, int64 */
} Layout;

/* What a column has of a page, beside its share of the page's memory. */
typedef struct {
    char *bytes;         /* VARIABLE */
    int64_t room;        /* bytes */
    uint8_t *item_valid; /* bits of items in a child array; NULL: none is null */
    int64_t item_room;   /* bytes */
    int64_t nulls;
} PagePart;

/* Pages that lie in a file, mapped together. */
typedef struct MappedPages {
    char *base;
    int64_t size, at; /* bytes, and where they begin in the file */
    int64_t pages;    /* that are still asked for */
    struct MappedPages *before, *after;
} MappedPages;

typedef struct {
    char *memory;
    MappedPages *segment; /* NULL: the page's memory is its own */
    PagePart part[];
} Page;

typedef struct {
    int n;
    int shift;
    int64_t page_bytes;
    Layout *layout;
    Page **page;
    int64_t mask; /* of a ring of page pointers; -1: there is none yet */
    int64_t head, tail;
    int64_t *nulls;      /* by column, in all pages */
    int64_t *item_nulls; /* by column, pages with null items */
    Page *spare;
    int64_t nbytes;
    int file;          /* for pages that do not fit into memory; -1: there is none */
    int64_t file_end;  /* where the next of them go */
    int64_t cold;      /* pages before that lie in the file */
    int64_t file_bytes;
    MappedPages *segments;
} Payload;

static inline int64_t round_up(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }

static inline int64_t rows_of_page(const Payload *all) { return (int64_t)1 << all->shift; }

static inline Page *page_of(const Payload *all, int64_t row) {
    return all->page[(row >> all->shift) & all->mask];
}

static inline int64_t place_of(const Payload *all, int64_t row) {
    return row & (rows_of_page(all) - 1);
}

static inline int64_t *offsets_of(const Page *page, const Layout *layout) {
    return (int64_t *)(page->memory + layout->values);
}

/* Lay columns out one behind the other; all layouts are known. */
static inline void payload_lay_out(Payload *all) {
    int64_t rows = rows_of_page(all), at = 0;
    for (int k = 0; k < all->n; k++) {
        Layout *one = &all->layout[k];
        one->valid = at;
        at += round_up(rows / 8 + 1);
        one->values = at;
        if (one->kind == FIXED) at += round_up(rows * one->width);
        else if (one->kind == BITS) at += round_up(rows / 8 + 1);
        else at += round_up((rows + 1) * 8);
    }
    all->page_bytes = at + OVERRUN;
}

/* -- pages ------------------------------------------------------------------------------------- */

/* One page less lies there; with the last of them the file gets its room back. */
static inline void mapped_leave(Payload *all, MappedPages *one) {
    if (--one->pages) return;
    munmap(one->base, (size_t)one->size);
#ifdef FALLOC_FL_PUNCH_HOLE
    if (fallocate(all->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, one->at, one->size)) {
        /* a file system that cannot: the room comes back with the file */
    }
#endif
    if (one->before) one->before->after = one->after;
    else all->segments = one->after;
    if (one->after) one->after->before = one->before;
    all->file_bytes -= one->size;
    free(one);
}

static inline void page_free(Payload *all, Page *page) {
    if (!page) return;
    if (page->segment) {
        mapped_leave(all, page->segment);
        free(page);
        return;
    }
    for (int k = 0; k < all->n; k++) {
        all->nbytes -= page->part[k].room + page->part[k].item_room;
        free(page->part[k].bytes);
        free(page->part[k].item_valid);
    }
    all->nbytes -= all->page_bytes;
    free(page->memory);
    free(page);
}

static inline Page *page_new(Payload *all) {
    if (all->spare) {
        Page *page = all->spare;
        all->spare = NULL;
        return page;
    }
    Page *page = calloc(1, sizeof(Page) + (size_t)all->n * sizeof(PagePart));
    if (!page) return NULL;
    page->memory = malloc((size_t)all->page_bytes);
    if (!page->memory) {
        free(page);
        return NULL;
    }
    int64_t rows = rows_of_page(all);
    for (int k = 0; k < all->n; k++) {
        memset(page->memory + all->layout[k].valid, 0xFF, (size_t)(rows / 8 + 1));
        if (all->layout[k].kind == VARIABLE) offsets_of(page, &all->layout[k])[0] = 0;
    }
    all->nbytes += all->page_bytes;
    return page;
}

/* All rows of a page are forgotten: it waits to serve again, or goes. */
static inline void page_leave(Payload *all, Page *page) {
    for (int k = 0; k < all->n; k++) {
        PagePart *part = &page->part[k];
        all->nulls[k] -= part->nulls;
        all->item_nulls[k] -= part->item_valid != NULL;
        if (page->segment) continue;
        all->nbytes -= part->item_room;
        free(part->item_valid);
        part->item_valid = NULL;
        part->item_room = 0;
        if (part->nulls)
            memset(page->memory + all->layout[k].valid, 0xFF, (size_t)(rows_of_page(all) / 8 + 1));
        part->nulls = 0;
        if (part->room > SPARE_BYTES) {
            all->nbytes -= part->room;
            free(part->bytes);
            part->bytes = NULL;
            part->room = 0;
        }
    }
    if (page->segment) {
        page_free(all, page);
        return;
    }
    page_free(all, all->spare);
    all->spare = page;
}

static inline int64_t first_page(const Payload *all) { return all->head >> all->shift; }

/* The number behind the last page with a row before `tail`. */
static inline int64_t stop_page(const Payload *all, int64_t tail) {
    return (tail + rows_of_page(all) - 1) >> all->shift;
}

/* A ring of pointers for at least so many pages. */
static inline int payload_widen(Payload *all, int64_t pages) {
    int64_t room = 4;
    while (room < pages) room *= 2;
    Page **ring = calloc((size_t)room, sizeof(Page *));
    if (!ring) return 0;
    int64_t first = first_page(all);
    for (int64_t p = first; p <= first + all->mask; p++)
        ring[p & (room - 1)] = all->page[p & all->mask];
    all->nbytes += (room - (all->mask + 1)) * (int64_t)sizeof(Page *);
    free(all->page);
    all->page = ring;
    all->mask = room - 1;
    return 1;
}

/* Pages for n rows more; 0: no memory, and nothing has changed that counts. */
static inline int payload_reserve(Payload *all, int64_t n) {
    int64_t last = stop_page(all, all->tail + n), pages = last - first_page(all);
    if (pages > all->mask + 1 && !payload_widen(all, pages)) return 0;
    for (int64_t p = all->tail >> all->shift; p < last; p++) {
        Page **page = &all->page[p & all->mask];
        if (!*page && !(*page = page_new(all))) return 0;
    }
    return 1;
}

/* The first row will be `row`; there is none yet.  0: no memory. */
static inline int payload_begin(Payload *all, int64_t row) {
    all->head = all->tail = row;
    if (!place_of(all, row)) return 1;
    if (!payload_reserve(all, 1)) return 0;
    for (int k = 0; k < all->n; k++)
        if (all->layout[k].kind == VARIABLE)
            memset(offsets_of(page_of(all, row), &all->layout[k]), 0,
                   (size_t)(place_of(all, row) + 1) * sizeof(int64_t));
    return 1;
}

static inline void payload_expire(Payload *all, int64_t head) {
    if (head > all->tail) head = all->tail;
    if (head <= all->head) return;
    /* a page that is not full yet stays, also when all its rows have gone */
    for (int64_t p = first_page(all); p < head >> all->shift; p++) {
        Page **page = &all->page[p & all->mask];
        page_leave(all, *page);
        *page = NULL;
    }
    all->head = head;
}

static inline void payload_free(Payload *all) {
    for (int64_t p = 0; p <= all->mask; p++) page_free(all, all->page[p]);
    page_free(all, all->spare);
    free(all->page);
    free(all->layout);
    free(all->nulls);
    free(all->item_nulls);
    if (all->file >= 0) close(all->file);
    memset(all, 0, sizeof(Payload));
    all->mask = -1;
    all->file = -1;
}

/* -- pages in a file --------------------------------------------------------------------------- */

/* Bytes of a column in a page that lie outside the page's memory. */
static inline int64_t part_used(const Payload *all, const Page *page, int k) {
    if (all->layout[k].kind != VARIABLE) return 0;
    return offsets_of(page, &all->layout[k])[rows_of_page(all)] * all->layout[k].width + OVERRUN;
}

static inline int64_t page_size(const Payload *all, const Page *page) {
    int64_t size = round_up(all->page_bytes);
    for (int k = 0; k < all->n; k++)
        size += round_up(part_used(all, page, k)) + round_up(page->part[k].item_room);
    return size;
}

/* 0: they could not be written, see errno. */
static inline int write_all(int file, const char *from, int64_t n, int64_t at) {
    while (n > 0) {
        ssize_t done = pwrite(file, from, (size_t)n, at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return 0;
        from += done;
        n -= done;
        at += done;
    }
    return 1;
}

static inline int page_write(const Payload *all, const Page *page, int64_t at) {
    if (!write_all(all->file, page->memory, all->page_bytes, at)) return 0;
    at += round_up(all->page_bytes);
    for (int k = 0; k < all->n; k++) {
        const PagePart *part = &page->part[k];
        int64_t used = part_used(all, page, k);
        /* what a copy may read behind the last value need not have come */
        int64_t there = used < part->room ? used : part->room;
        if (!write_all(all->file, part->bytes, there, at)) return 0;
        at += round_up(used);
        if (!write_all(all->file, (const char *)part->item_valid, part->item_room, at)) return 0;
        at += round_up(part->item_room);
    }
    return 1;
}

/* The page lies at `base` from now on; how many bytes it takes. */
static inline int64_t page_move(Payload *all, Page *page, MappedPages *segment, char *base) {
    char *at = base;
    free(page->memory);
    all->nbytes -= all->page_bytes;
    page->memory = at;
    page->segment = segment;
    for (int k = 0; k < all->n; k++) {
        PagePart *part = &page->part[k];
        at += k ? 0 : round_up(all->page_bytes);
        int64_t used = part_used(all, page, k);
        all->nbytes -= part->room + part->item_room;
        free(part->bytes);
        part->bytes = at;
        at += round_up(used);
        if (part->item_valid) {
            free(part->item_valid);
            part->item_valid = (uint8_t *)at;
        }
        at += round_up(part->item_room);
        part->room = 0;
    }
    if (!all->n) at += round_up(all->page_bytes);
    return at - base;
}

/* Full pages from `from` up to `to` go to the file together; 0: not, see errno, and all is as it
 * was. */
static inline int payload_chill_some(Payload *all, int64_t from, int64_t to) {
    int64_t size = 0, at = all->file_end;
    for (int64_t p = from; p < to; p++) {
        Page *page = all->page[p & all->mask];
        if (!page_write(all, page, at + size)) return 0;
        size += page_size(all, page);
    }
    int64_t whole = (size + 4095) & ~(int64_t)4095;
    MappedPages *one = calloc(1, sizeof(MappedPages));
    if (!one) return 0;
    if (ftruncate(all->file, at + whole)) {
        free(one);
        return 0;
    }
    one->base = mmap(NULL, (size_t)whole, PROT_READ, MAP_SHARED, all->file, at);
    if (one->base == MAP_FAILED) {
        free(one);
        return 0;
    }
    one->size = whole;
    one->at = at;
    one->pages = to - from;
    one->after = all->segments;
    if (one->after) one->after->before = one;
    all->segments = one;
    all->file_end = at + whole;
    all->file_bytes += whole;
    char *base = one->base;
    for (int64_t p = from; p < to; p++) base += page_move(all, all->page[p & all->mask], one, base);
    return 1;
}

#define PAGES_TOGETHER 64

static inline int payload_chill(Payload *all) {
    int64_t from = all->cold > first_page(all) ? all->cold : first_page(all);
    int64_t last = all->tail >> all->shift;
    while (from < last) {
        int64_t to = from + PAGES_TOGETHER < last ? from + PAGES_TOGETHER : last;
        if (!payload_chill_some(all, from, to)) return 0;
        all->cold = from = to;
    }
    return 1;
}

/* What was read of the file need not stay in memory. */
static inline void payload_cool(Payload *all) {
    for (MappedPages *one = all->segments; one; one = one->after)
        madvise(one->base, (size_t)one->size, MADV_DONTNEED);
}

/* -- rows in ----------------------------------------------------------------------------------- */

static inline void clear_bit(uint8_t *bits, int64_t i) { bits[i >> 3] &= (uint8_t)~(1 << (i & 7)); }

static inline void set_bit(uint8_t *bits, int64_t i) { bits[i >> 3] |= (uint8_t)(1 << (i & 7)); }

/* Nulls of n bits from `first` on become zeros from `at` on, where all are ones; how many. */
static inline int64_t put_nulls(uint8_t *out, int64_t at, const uint8_t *valid, int64_t first,
                                int64_t n) {
    int64_t nulls = 0;
    if (!valid) return 0;
    for (int64_t i = 0; i < n; i++)
        if (!bit(valid, first + i)) {
            clear_bit(out, at + i);
            nulls++;
        }
    return nulls;
}

/* Where the items of a VARIABLE column begin, by row; `first` is the row in Arrow's array. */
static inline int64_t arrow_offset(const ArrowArray *from, const Layout *layout, int64_t row) {
    const void *offsets = from->buffers[1];
    if (!offsets) return 0; /* of an empty array */
    return layout->offset_bytes == 4 ? ((const int32_t *)offsets)[row]
                                     : ((const int64_t *)offsets)[row];
}

/* Room for `bytes` of a column's values in a page. */
static inline int part_need(Payload *all, PagePart *part, int64_t bytes) {
    if (bytes + OVERRUN <= part->room) return 1;
    int64_t room = part->room + part->room / 2;
    if (room < bytes + OVERRUN) room = bytes + OVERRUN;
    char *grown = realloc(part->bytes, (size_t)room);
    if (!grown) return 0;
    all->nbytes += room - part->room;
    part->bytes = grown;
    part->room = room;
    return 1;
}

/* Bits for `items` items of a page, the new ones set: from now on, or again, some may be null. */
static inline int part_need_item_bits(Payload *all, int k, PagePart *part, int64_t items) {
    int64_t room = items / 8 + 1;
    if (part->item_valid && room <= part->item_room) return 1;
    room += room / 2;
    uint8_t *grown = realloc(part->item_valid, (size_t)room);
    if (!grown) return 0;
    memset(grown + part->item_room, 0xFF, (size_t)(room - part->item_room));
    all->item_nulls[k] += part->item_valid == NULL;
    all->nbytes += room - part->item_room;
    part->item_valid = grown;
    part->item_room = room;
    return 1;
}

/* Room outside the page's memory for rows [first, first + n) of an array, behind `place` rows. */
static inline int part_reserve(Payload *all, int k, Page *page, int64_t place,
                               const ArrowArray *from, int64_t first, int64_t n) {
    const Layout *layout = &all->layout[k];
    PagePart *part = &page->part[k];
    int64_t held = place * layout->items, more = n * layout->items, begin = first * layout->items;
    if (layout->kind == VARIABLE) {
        begin = arrow_offset(from, layout, first);
        more = arrow_offset(from, layout, first + n) - begin;
        held = offsets_of(page, layout)[place];
        if (!part_need(all, part, (held + more) * layout->width)) return 0;
    }
    if (!layout->child) return 1;
    const ArrowArray *items = from->children[0];
    if (!part->item_valid && !any_null(items, items->offset + begin, more)) return 1;
    return part_need_item_bits(all, k, part, held + more);
}

static inline void put_variable(const Layout *layout, Page *page, PagePart *part, int64_t place,
                                const ArrowArray *from, int64_t first, int64_t n) {
    int64_t *offsets = offsets_of(page, layout), begin = arrow_offset(from, layout, first);
    int64_t held = offsets[place], more = arrow_offset(from, layout, first + n) - begin;
    const ArrowArray *items = layout->child ? from->children[0] : NULL;
    const char *values = items ? items->buffers[1] : from->buffers[2];
    int64_t at = begin + (items ? items->offset : 0);
    for (int64_t i = 1; i <= n; i++)
        offsets[place + i] = held + arrow_offset(from, layout, first + i) - begin;
    if (more)
        memcpy(part->bytes + held * layout->width, values + at * layout->width,
               (size_t)(more * layout->width));
    if (items && part->item_valid) put_nulls(part->item_valid, held, items->buffers[0], at, more);
}

static inline void put_fixed(const Layout *layout, Page *page, PagePart *part, int64_t place,
                             const ArrowArray *from, int64_t first, int64_t n) {
    char *out = page->memory + layout->values + place * layout->width;
    if (!layout->child) {
        memcpy(out, (const char *)from->buffers[1] + first * layout->width,
               (size_t)(n * layout->width));
        return;
    }
    const ArrowArray *items = from->children[0];
    int64_t at = items->offset + first * layout->items, size = layout->width / layout->items;
    memcpy(out, (const char *)items->buffers[1] + at * size, (size_t)(n * layout->width));
    if (part->item_valid)
        put_nulls(part->item_valid, place * layout->items, items->buffers[0], at,
                  n * layout->items);
}

static inline void put_bits(const Layout *layout, Page *page, int64_t place, const ArrowArray *from,
                            int64_t first, int64_t n) {
    uint8_t *out = (uint8_t *)page->memory + layout->values;
    for (int64_t i = 0; i < n; i++) {
        if (bit(from->buffers[1], first + i)) set_bit(out, place + i);
        else clear_bit(out, place + i);
    }
}

/* Rows [first, first + n) of a column go to a page from `place` on. */
static inline void put_column(Payload *all, int k, Page *page, int64_t place,
                              const ArrowArray *from, int64_t first, int64_t n) {
    const Layout *layout = &all->layout[k];
    PagePart *part = &page->part[k];
    if (layout->kind == FIXED) put_fixed(layout, page, part, place, from, first, n);
    else if (layout->kind == BITS) put_bits(layout, page, place, from, first, n);
    else put_variable(layout, page, part, place, from, first, n);
    if (!from->null_count) return;
    int64_t nulls =
        put_nulls((uint8_t *)page->memory + layout->valid, place, from->buffers[0], first, n);
    part->nulls += nulls;
    all->nulls[k] += nulls;
}

/* All rows of a batch; column k is child number[k], or k.  0: no memory, and no row has come. */
static inline int payload_append(Payload *all, const ArrowArray *batch, const int *number) {
    int64_t n = batch->length, at, some;
    if (!payload_reserve(all, n)) return 0;
    for (int reserved = 0; reserved < 2; reserved++) /* nothing fails once rows are written */
        for (at = 0; at < n; at += some) {
            int64_t row = all->tail + at, place = place_of(all, row);
            Page *page = page_of(all, row);
            some = rows_of_page(all) - place;
            if (some > n - at) some = n - at;
            for (int k = 0; k < all->n; k++) {
                const ArrowArray *from = batch->children[number ? number[k] : k];
                int64_t first = batch->offset + from->offset + at;
                if (reserved) put_column(all, k, page, place, from, first, some);
                else if (!part_reserve(all, k, page, place, from, first, some)) return 0;
            }
        }
    all->tail += n;
    return 1;
}
#endif
