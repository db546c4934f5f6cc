/* Wide values of a payload go to logs, a column each: first those that are in pages, and from then
 * on all as they come.
 *
 *   rows      head            logged          tail
 *             |  in logs      |  in pages     |
 *
 * Rows are in pages with their wide values where these could not be written, until they can be.
 * Offsets of a VARIABLE column with a log are positions there, wherever the values are.
 */
#ifndef WINDJOIN_PAYLOAD_WIDE_H
#define WINDJOIN_PAYLOAD_WIDE_H
#include "payload.h"

/* -- from pages -------------------------------------------------------------------------------- */

/* Whether values of a column, with rows in pages alone, are to be logged. */
static inline int worth_logging(const Payload *all, int k) {
    const Layout *layout = &all->layout[k];
    if (layout->kind != VARIABLE) return is_wide(layout);
    int64_t bytes = 0, rows = all->tail - all->head;
    if (layout->child) return 0;
    for (int64_t row = all->head; row < all->tail; row++) {
        const int64_t *offset = offsets_of(page_of(all, row), layout) + place_of(all, row);
        bytes += offset[1] - offset[0];
    }
    return rows && bytes / rows >= WIDE_BYTES;
}

/* Offsets of all rows become positions. */
static inline void offsets_log(Payload *all, int k) {
    const Layout *layout = &all->layout[k];
    int64_t position = 0;
    for (int64_t row = all->head, next; row <= all->tail; row = next) {
        if (row == all->tail && !place_of(all, row)) break; /* its page begins with its first row */
        Page *page = all->page ? page_of(all, row) : NULL;
        next = ((row >> all->shift) + 1) << all->shift;
        if (!page) break; /* none has begun yet for the next row */
        int64_t first = place_of(all, row);
        int64_t last = (next < all->tail ? next : all->tail) - row + first;
        int64_t *offset = offsets_of(page, layout), more = position - offset[first];
        page->part[k].begin = more;
        for (int64_t i = first; i <= last; i++) offset[i] += more;
        position = offset[last];
    }
    all->log_end[k] = position;
}

/* Wide values of all columns are to be logged, of all rows that there are.  0: no memory. */
static inline int logs_begin(Payload *all) {
    int logging = 0;
    all->log = calloc((size_t)all->n + 1, sizeof(Log));
    all->log_end = calloc((size_t)all->n + 1, sizeof(int64_t));
    if (!all->log || !all->log_end) return 0;
    for (int k = 0; k < all->n; k++) {
        all->log[k].mask = -1;
        if (!worth_logging(all, k)) continue;
        if (all->layout[k].kind == VARIABLE) offsets_log(all, k);
        all->layout[k].logged = 1;
        logging++;
    }
    all->log_row = all->logged = all->head;
    all->logging = logging;
    page_free(all, all->spare); /* it has room for wide values */
    all->spare = NULL;
    return 1;
}

/* Rows [row, row + n) of a page go to the logs. */
static inline int page_log(Payload *all, const Page *page, int64_t row, int64_t n) {
    for (int k = 0; k < all->n; k++) {
        const Layout *layout = &all->layout[k];
        if (!layout->logged) continue;
        int64_t at = (row - all->log_row) * layout->width, bytes = n * layout->width;
        const char *from = page->memory + layout->values + place_of(all, row) * layout->width;
        if (layout->kind == VARIABLE) {
            const int64_t *offset = offsets_of(page, layout) + place_of(all, row);
            at = offset[0];
            bytes = offset[n] - at;
            from = page->part[k].bytes + (at - page->part[k].begin);
        }
        if (bytes && !log_write(&all->disk, &all->log[k], from, bytes, at)) return 0;
    }
    return 1;
}

/* The page has no wide values any more. */
static inline void page_narrow(Payload *all, Page *page) {
    for (int k = 0; k < all->n; k++) {
        PagePart *part = &page->part[k];
        if (!all->layout[k].logged) continue;
        all->nbytes -= part->room;
        free(part->bytes);
        part->bytes = NULL;
        part->room = 0;
    }
    if (page->room > all->narrow_bytes) page_size_to(all, page, all->narrow_bytes);
}

/* Rows that are in pages yet go to the logs; 0: not all could be written, see errno. */
static inline int logs_catch_up(Payload *all) {
    while (all->logging && all->logged < all->tail) {
        int64_t row = all->logged, stop = ((row >> all->shift) + 1) << all->shift;
        Page *page = page_of(all, row);
        if (stop > all->tail) stop = all->tail;
        if (!page_log(all, page, row, stop - row)) return 0;
        page_narrow(all, page);
        all->logged = stop;
    }
    return 1;
}

/* Rows whose wide values are in pages. */
static inline int64_t logs_behind(const Payload *all) {
    return all->logging ? all->tail - all->logged : 0;
}

/* Bytes in logs. */
static inline int64_t logs_bytes(const Payload *all) {
    int64_t bytes = 0;
    for (int k = 0; all->logging && k < all->n; k++) bytes += all->log[k].end - all->log[k].begin;
    return bytes;
}

/* -- as they come ------------------------------------------------------------------------------ */

/* Where the items of a VARIABLE column begin, by row; `first` is the row in Arrow's array. */
static inline int64_t arrow_offset(const ArrowArray *from, const Layout *layout, int64_t row) {
    const void *offsets = from->buffers[1];
    if (!offsets) return 0; /* of an empty array */
    return layout->offset_bytes == 4 ? ((const int32_t *)offsets)[row]
                                     : ((const int64_t *)offsets)[row];
}

/* Rows [first, first + n) of an array become those behind the last; 0: not written, see errno. */
static inline int column_log(Payload *all, int k, const ArrowArray *from, int64_t first,
                             int64_t n) {
    const Layout *layout = &all->layout[k];
    int64_t at = (all->tail - all->log_row) * layout->width, bytes = n * layout->width;
    if (layout->kind == VARIABLE) {
        int64_t begin = arrow_offset(from, layout, first);
        bytes = arrow_offset(from, layout, first + n) - begin;
        return !bytes || log_write(&all->disk, &all->log[k], (const char *)from->buffers[2] + begin,
                                   bytes, all->log_end[k]);
    }
    const ArrowArray *values = layout->child ? from->children[0] : from;
    int64_t begin = layout->child ? values->offset * (layout->width / layout->items) : 0;
    return log_write(&all->disk, &all->log[k],
                     (const char *)values->buffers[1] + begin + first * layout->width, bytes, at);
}

/* The same of all columns of a batch.  What is written of a part of them nobody asks for. */
static inline int batch_log(Payload *all, const ArrowArray *batch, const int *number, int64_t first,
                            int64_t n) {
    for (int k = 0; k < all->n; k++) {
        if (!all->layout[k].logged) continue;
        const ArrowArray *from = batch->children[number ? number[k] : k];
        if (!column_log(all, k, from, batch->offset + from->offset + first, n)) return 0;
    }
    return 1;
}
#endif
