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
 *
 * What does not fit into memory lies in a file.  Wide values go first, and from then on they are
 * written as they come (payload_wide.h): they are not in pages, but each column of them in a log.
 * Pages with all else go when that does not suffice (payload_file.h).
 */
#ifndef WINDJOIN_PAYLOAD_H
#define WINDJOIN_PAYLOAD_H
#include "arrow_c.h"
#include "spill_log.h"

enum { FIXED, BITS, VARIABLE };

#define OVERRUN 32       /* bytes that a copy may read behind a value */
#define SPARE_BYTES 65536 /* of one column of a page that waits to serve again */
#define WIDE_BYTES 512   /* of a value: to read it takes less than to map where it lies */

typedef struct {
    int kind;
    int64_t width;         /* bytes of a value; of an item if VARIABLE */
    int64_t items;         /* FIXED: items of a value that Arrow keeps in a child array, or 0 */
    int child;             /* whether items are a child array */
    int offset_bytes;      /* VARIABLE: of Arrow's offsets, 4 or 8 */
    int64_t valid, values; /* where these begin in a page; values: offsets if VARIABLE, int64 */
    int logged;            /* whether values lie in a log; offsets are positions there */
} Layout;

/* What a column has of a page, beside its share of the page's memory. */
typedef struct {
    char *bytes;         /* VARIABLE */
    int64_t room;        /* bytes */
    int64_t begin;       /* the offset of the first of them: not 0 if values are logged */
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
    int64_t room; /* bytes of it that are its own; without wide values if these are logged */
    MappedPages *segment; /* NULL: the page's memory is its own */
    PagePart part[];
} Page;

typedef struct {
    int n;
    int shift;
    int64_t page_bytes;
    int64_t narrow_bytes; /* of a page without the wide values, which lie behind */
    Layout *layout;
    Page **page;
    int64_t mask; /* of a ring of page pointers; -1: there is none yet */
    int64_t head, tail;
    int64_t *nulls; /* by column, in all pages */
    int64_t *item_nulls; /* by column, pages with null items */
    int64_t *longest; /* by VARIABLE column, the most items that a value has had */
    Page *spare;
    int64_t nbytes;
    SpillFile disk; /* for what does not fit into memory */
    int64_t cold; /* pages before that lie in the file */
    int64_t mapped; /* bytes of pages that do */
    MappedPages *segments;
    int logging; /* columns with a log */
    Log *log; /* by column */
    int64_t log_row; /* the row whose values of one width lie at position 0 */
    int64_t logged; /* rows before have their wide values in logs */
    int64_t *log_end; /* by column: VARIABLE: the position behind the last row */
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

static inline int is_wide(const Layout *one) {
    return one->kind == FIXED && one->width >= WIDE_BYTES;
}

/* Lay columns out one behind the other, wide values last; all layouts are known. */
static inline void payload_lay_out(Payload *all) {
    int64_t rows = rows_of_page(all), at = 0;
    for (int k = 0; k < all->n; k++) {
        Layout *one = &all->layout[k];
        one->valid = at;
        at += round_up(rows / 8 + 1);
        one->values = at;
        if (is_wide(one)) continue;
        if (one->kind == FIXED) at += round_up(rows * one->width);
        else if (one->kind == BITS) at += round_up(rows / 8 + 1);
        else at += round_up((rows + 1) * 8);
    }
    all->page_bytes = all->narrow_bytes = at + OVERRUN;
    for (int k = 0; k < all->n; k++) {
        Layout *one = &all->layout[k];
        if (!is_wide(one)) continue;
        one->values = round_up(all->page_bytes);
        all->page_bytes = one->values + rows * one->width + OVERRUN;
    }
}

/* -- pages ------------------------------------------------------------------------------------- */

/* One page less lies there; with the last of them the file gets its room back. */
static inline void mapped_leave(Payload *all, MappedPages *one) {
    if (--one->pages) return;
    munmap(one->base, (size_t)one->size);
    file_give_back(&all->disk, one->at, one->size);
    if (one->before) one->before->after = one->after;
    else all->segments = one->after;
    if (one->after) one->after->before = one->before;
    all->mapped -= one->size;
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
    all->nbytes -= page->room;
    free(page->memory);
    free(page);
}

/* A page's own memory becomes larger or smaller; 0: it could not become larger. */
static inline int page_size_to(Payload *all, Page *page, int64_t bytes) {
    char *other = realloc(page->memory, (size_t)bytes);
    if (!other) return bytes <= page->room;
    all->nbytes += bytes - page->room;
    page->memory = other;
    page->room = bytes;
    return 1;
}

static inline Page *page_new(Payload *all) {
    if (all->spare) {
        Page *page = all->spare;
        all->spare = NULL;
        return page;
    }
    Page *page = calloc(1, sizeof(Page) + (size_t)all->n * sizeof(PagePart));
    if (!page) return NULL;
    if (!page_size_to(all, page, all->logging ? all->narrow_bytes : all->page_bytes)) {
        free(page);
        return NULL;
    }
    int64_t rows = rows_of_page(all);
    for (int k = 0; k < all->n; k++) {
        memset(page->memory + all->layout[k].valid, 0xFF, (size_t)(rows / 8 + 1));
        if (all->layout[k].kind == VARIABLE) offsets_of(page, &all->layout[k])[0] = 0;
    }
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
    if (page->segment || (all->logging && page->room > all->narrow_bytes)) {
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

/* Logs have nothing before the first row any more. */
static inline void logs_forget(Payload *all) {
    int64_t row = all->head;
    for (int k = 0; k < all->n; k++) {
        const Layout *one = &all->layout[k];
        if (!one->logged) continue;
        int64_t at = (row - all->log_row) * one->width;
        if (one->kind == VARIABLE)
            at = row < all->tail ? offsets_of(page_of(all, row), one)[place_of(all, row)]
                                 : all->log_end[k];
        log_forget(&all->disk, &all->log[k], at);
    }
    if (all->logged < row) all->logged = row;
}

static inline void payload_expire(Payload *all, int64_t head) {
    if (head > all->tail) head = all->tail;
    if (head <= all->head) return;
    /* a page that is not full yet stays, also when all its rows have gone */
    for (int64_t p = first_page(all); p < head >> all->shift; p++) {
        Page **page = &all->page[p & all->mask];
        if (*page) page_leave(all, *page); /* else nobody has asked for rows of it */
        *page = NULL;
    }
    all->head = head;
    if (all->logging) logs_forget(all);
}

static inline void payload_free(Payload *all) {
    for (int64_t p = 0; p <= all->mask; p++) page_free(all, all->page[p]);
    page_free(all, all->spare);
    free(all->page);
    free(all->layout);
    free(all->nulls);
    free(all->item_nulls);
    free(all->longest);
    for (int k = 0; all->log && k < all->n; k++) free(all->log[k].extent);
    free(all->log);
    free(all->log_end);
    free(all->disk.spare);
    if (all->disk.file >= 0) close(all->disk.file);
    memset(all, 0, sizeof(Payload));
    all->mask = -1;
    all->disk.file = -1;
}
#endif
