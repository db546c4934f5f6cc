/* Rows of Arrow record batches are copied into the pages of a payload. */
#ifndef WINDJOIN_PAYLOAD_ROWS_H
#define WINDJOIN_PAYLOAD_ROWS_H
#include "payload_wide.h"

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

/* Bytes of a VARIABLE column that the page itself has of `place` rows. */
static inline int64_t part_held(const Layout *layout, const Page *page, const PagePart *part,
                                int64_t place) {
    if (!place || (layout->logged && !part->room)) return 0;
    return offsets_of(page, layout)[place] - part->begin;
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
        held = part_held(layout, page, part, place);
        if (!held) part->begin = offsets_of(page, layout)[place]; /* of rows that are in the page */
        if (!part_need(all, part, (held + more) * layout->width)) return 0;
    }
    if (!layout->child) return 1;
    const ArrowArray *items = from->children[0];
    if (!part->item_valid && !any_null(items, items->offset + begin, more)) return 1;
    return part_need_item_bits(all, k, part, held + more);
}

/* Offsets, and items where these are not `logged`.  The most items that a value has, as far as they
 * are more than `most`. */
static inline int64_t put_variable(const Layout *layout, Page *page, PagePart *part, int64_t place,
                                   const ArrowArray *from, int64_t first, int64_t n, int64_t most,
                                   int logged) {
    int64_t *offsets = offsets_of(page, layout), begin = arrow_offset(from, layout, first);
    int64_t more = arrow_offset(from, layout, first + n) - begin, held = offsets[place];
    const ArrowArray *items = layout->child ? from->children[0] : NULL;
    const char *values = items ? items->buffers[1] : from->buffers[2];
    int64_t at = begin + (items ? items->offset : 0);
    for (int64_t i = 1; i <= n; i++)
        offsets[place + i] = held + arrow_offset(from, layout, first + i) - begin;
    for (int64_t i = place; i < place + n; i++)
        most = offsets[i + 1] - offsets[i] > most ? offsets[i + 1] - offsets[i] : most;
    held -= part->begin;
    if (more && !logged)
        memcpy(part->bytes + held * layout->width, values + at * layout->width,
               (size_t)(more * layout->width));
    if (items && part->item_valid) put_nulls(part->item_valid, held, items->buffers[0], at, more);
    return most;
}

/* Values where these are not `logged`, and which items of them are null. */
static inline void put_fixed(const Layout *layout, Page *page, PagePart *part, int64_t place,
                             const ArrowArray *from, int64_t first, int64_t n, int logged) {
    char *out = page->memory + layout->values + place * layout->width;
    if (!layout->child) {
        if (!logged)
            memcpy(out, (const char *)from->buffers[1] + first * layout->width,
                   (size_t)(n * layout->width));
        return;
    }
    const ArrowArray *items = from->children[0];
    int64_t at = items->offset + first * layout->items, size = layout->width / layout->items;
    if (!logged)
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

/* Rows [first, first + n) of a column go to a page from `place` on; its values are in a log if it
 * has one and `through`. */
static inline void put_column(Payload *all, int k, Page *page, int64_t place,
                              const ArrowArray *from, int64_t first, int64_t n, int through) {
    const Layout *layout = &all->layout[k];
    PagePart *part = &page->part[k];
    int logged = through && layout->logged;
    if (layout->kind == FIXED) put_fixed(layout, page, part, place, from, first, n, logged);
    else if (layout->kind == BITS) put_bits(layout, page, place, from, first, n);
    else {
        int64_t *offsets = offsets_of(page, layout);
        if (layout->logged && !place) offsets[0] = part->begin = all->log_end[k];
        all->longest[k] =
            put_variable(layout, page, part, place, from, first, n, all->longest[k], logged);
        if (layout->logged) all->log_end[k] = offsets[place + n];
    }
    if (!from->null_count) return;
    int64_t nulls =
        put_nulls((uint8_t *)page->memory + layout->valid, place, from->buffers[0], first, n);
    part->nulls += nulls;
    all->nulls[k] += nulls;
}

/* Rows [first, first + n) of a batch become those from `row` on, for which there are pages; column
 * k is child number[k], or k.  0: no memory, and no row has come. */
static inline int payload_put(Payload *all, const ArrowArray *batch, const int *number,
                              int64_t first, int64_t n, int64_t row) {
    int64_t at, some;
    int through = all->logging && all->logged == row && batch_log(all, batch, number, first, n);
    for (int reserved = 0; reserved < 2; reserved++) /* nothing fails once rows are written */
        for (at = 0; at < n; at += some) {
            int64_t place = place_of(all, row + at);
            Page *page = page_of(all, row + at);
            some = rows_of_page(all) - place;
            if (some > n - at) some = n - at;
            if (!through && page->room < all->page_bytes &&
                !page_size_to(all, page, all->page_bytes))
                return 0;
            for (int k = 0; k < all->n; k++) {
                const ArrowArray *from = batch->children[number ? number[k] : k];
                int64_t begin = batch->offset + from->offset + first + at;
                if (reserved) put_column(all, k, page, place, from, begin, some, through);
                else if ((!through || !all->layout[k].logged || all->layout[k].child) &&
                         !part_reserve(all, k, page, place, from, begin, some))
                    return 0;
            }
        }
    if (through) all->logged = row + n;
    return 1;
}

/* All rows of a batch; see payload_put. */
static inline int payload_append(Payload *all, const ArrowArray *batch, const int *number) {
    if (!payload_reserve(all, batch->length)) return 0;
    if (!payload_put(all, batch, number, 0, batch->length, all->tail)) return 0;
    all->tail += batch->length;
    return 1;
}

/* -- rows that lie elsewhere until somebody asks for them -------------------------------------- */

/* n rows have come that no page has yet; the first of them begins one.  0: no memory. */
static inline int payload_lend(Payload *all, int64_t n) {
    int64_t pages = stop_page(all, all->tail + n) - first_page(all);
    if (pages > all->mask + 1 && !payload_widen(all, pages)) return 0;
    all->tail += n;
    return 1;
}

/* The first of n rows whose page is not there, of those that are alive; n: there is none. */
static inline int64_t payload_lacks(const Payload *all, const int64_t *row, int64_t n) {
    int64_t i = 0;
    while (i < n && (row[i] < all->head || page_of(all, row[i]))) i++;
    return i;
}

/* A page for a row that has none; 0: no memory.  Of its first rows there may be none any more. */
static inline int payload_bring(Payload *all, int64_t row) {
    Page **page = &all->page[(row >> all->shift) & all->mask];
    if (!*page) *page = page_new(all);
    for (int k = 0; *page && k < all->n; k++)
        if (all->layout[k].kind == VARIABLE)
            memset(offsets_of(*page, &all->layout[k]), 0, (size_t)(rows_of_page(all) + 1) * 8);
    return *page != NULL;
}

/* There was no page for it, or no memory for its rows. */
static inline void payload_unbring(Payload *all, int64_t row) {
    Page **page = &all->page[(row >> all->shift) & all->mask];
    if (*page) page_leave(all, *page);
    *page = NULL;
}
#endif
