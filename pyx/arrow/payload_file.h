/* Full pages of a payload go to a file together, and are mapped from there: without wide values,
 * which lie in logs before.
 *
 *   segment in the file      page 0                                  page 1
 *   +----------------------+-----------+--------------------------+--
 *   | from a border of     | memory of | column 0: bytes, item    | ...
 *   | 4096 bytes on        | the page  | bits; column 1: bytes .. |
 *   +----------------------+-----------+--------------------------+--
 */
#ifndef WINDJOIN_PAYLOAD_FILE_H
#define WINDJOIN_PAYLOAD_FILE_H
#include "payload.h"

/* Bytes of a column in a page that lie outside the page's memory. */
static inline int64_t part_used(const Payload *all, const Page *page, int k) {
    if (all->layout[k].kind != VARIABLE || all->layout[k].logged) return 0;
    return offsets_of(page, &all->layout[k])[rows_of_page(all)] * all->layout[k].width + OVERRUN;
}

static inline int64_t page_size(const Payload *all, const Page *page) {
    int64_t size = round_up(all->narrow_bytes);
    for (int k = 0; k < all->n; k++)
        size += round_up(part_used(all, page, k)) + round_up(page->part[k].item_room);
    return size;
}

static inline int page_write(const Payload *all, const Page *page, int64_t at) {
    if (!write_all(all->disk.file, page->memory, all->narrow_bytes, at)) return 0;
    at += round_up(all->narrow_bytes);
    for (int k = 0; k < all->n; k++) {
        const PagePart *part = &page->part[k];
        int64_t used = part_used(all, page, k);
        /* what a copy may read behind the last value need not have come */
        int64_t there = used < part->room ? used : part->room;
        if (!write_all(all->disk.file, part->bytes, there, at)) return 0;
        at += round_up(used);
        if (!write_all(all->disk.file, (const char *)part->item_valid, part->item_room, at))
            return 0;
        at += round_up(part->item_room);
    }
    return 1;
}

/* The page lies at `base` from now on; how many bytes it takes. */
static inline int64_t page_move(Payload *all, Page *page, MappedPages *segment, char *base) {
    char *at = base;
    free(page->memory);
    all->nbytes -= page->room;
    page->room = 0;
    page->memory = at;
    page->segment = segment;
    for (int k = 0; k < all->n; k++) {
        PagePart *part = &page->part[k];
        at += k ? 0 : round_up(all->narrow_bytes);
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
    if (!all->n) at += round_up(all->narrow_bytes);
    return at - base;
}

/* Full pages from `from` up to `to` go to the file together; 0: not, see errno, and all is as it
 * was. */
static inline int payload_chill_some(Payload *all, int64_t from, int64_t to) {
    int64_t size = 0, at = all->disk.end;
    for (int64_t p = from; p < to; p++) size += page_size(all, all->page[p & all->mask]);
    if (!file_fits(&all->disk, size)) return 0;
    size = 0;
    for (int64_t p = from; p < to; p++) {
        Page *page = all->page[p & all->mask];
        if (!page_write(all, page, at + size)) return 0;
        size += page_size(all, page);
    }
    int64_t whole = (size + 4095) & ~(int64_t)4095;
    MappedPages *one = calloc(1, sizeof(MappedPages));
    if (!one) return 0;
    if (ftruncate(all->disk.file, at + whole)) {
        free(one);
        return 0;
    }
    one->base = mmap(NULL, (size_t)whole, PROT_READ, MAP_SHARED, all->disk.file, at);
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
    all->disk.end = at + whole;
    all->mapped += whole;
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
#endif
