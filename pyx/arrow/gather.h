/* Columns of results, gathered from pages into one Arrow record batch. */
#ifndef WINDJOIN_GATHER_H
#define WINDJOIN_GATHER_H
#include "gather_block.h"
#include "memory.h"
#include "payload_rows.h"

#define SPOTS 1024         /* rows that are looked up together */
#define SMALL_VALUE OVERRUN /* bytes; such values are copied whole, whatever their length */
#define MOST_BOUNDED (1 << 20) /* rows; short values of more are measured first */

/* A column of the result: column `number` of rows `row` of a window; or, from NULL, values that are
 * there already: whole numbers (`number` 1) or the bits of doubles. */
typedef struct {
    const Payload *from;
    int number;
    const int64_t *row;
    const uint8_t *there; /* of each row, whether there is one; NULL: there are all of them */
    int64_t missing; /* rows that are not there: nulls */
    int64_t bytes; /* found out on the way: of a VARIABLE column's items, at first at most; of
                      values, how many are missing */
    char *to; /* where the values of a FIXED column go, if any are there */
} Wish;

enum { GATHERED, NO_MEMORY, TOO_LONG, UNREADABLE };

static inline const Layout *layout_of(const Wish *wish) {
    return &wish->from->layout[wish->number];
}

static inline int may_be_null(const Wish *wish) {
    return wish->missing || wish->from->nulls[wish->number] != 0;
}

static inline int lacks(const Wish *wish, int64_t i) { return wish->there && !wish->there[i]; }

static inline int may_have_null_items(const Wish *wish) {
    return layout_of(wish)->child && wish->from->item_nulls[wish->number] != 0;
}

/* -- values that are there already ------------------------------------------------------------- */

/* Whether value i is a score that there is: a count from 0 on, or a number. */
static inline int is_there(const Wish *wish, int64_t i) {
    double value;
    if (wish->number) return wish->row[i] >= 0;
    memcpy(&value, wish->row + i, sizeof(value));
    return value == value;
}

static inline int64_t values_missing(const Wish *wish, int64_t n) {
    int64_t missing = 0;
    for (int64_t i = 0; i < n; i++) missing += !is_there(wish, i);
    return missing;
}

static inline int64_t values_bytes(const Wish *wish, int64_t n) {
    return round_up(n * (int64_t)sizeof(int64_t)) + (wish->bytes ? round_up(n / 8 + 1) : 0);
}

/* -- what a batch needs ------------------------------------------------------------------------ */

static inline int64_t items_of(const Wish *wish, int64_t n) {
    const Layout *layout = layout_of(wish);
    return layout->kind == VARIABLE ? wish->bytes / layout->width : n * layout->items;
}

/* Bytes of all items of n rows of a VARIABLE column; if none is long, a bound is enough. */
static inline int64_t variable_bytes(const Wish *wish, int64_t n) {
    const Payload *from = wish->from;
    const Layout *layout = layout_of(wish);
    int64_t items = 0, most = from->longest[wish->number] * layout->width;
    if (most <= SMALL_VALUE && n <= MOST_BOUNDED) return n * most;
    for (int64_t i = 0; i < n; i++) {
        if (lacks(wish, i)) continue;
        const int64_t *offset = offsets_of(page_of(from, wish->row[i]), layout);
        int64_t place = place_of(from, wish->row[i]);
        items += offset[place + 1] - offset[place];
    }
    return items * layout->width;
}

static inline int64_t column_bytes(const Wish *wish, int64_t n) {
    if (!wish->from) return values_bytes(wish, n);
    const Layout *layout = layout_of(wish);
    int64_t bytes = may_be_null(wish) ? round_up(n / 8 + 1) : 0;
    if (layout->kind == FIXED) bytes += round_up(n * layout->width + OVERRUN);
    else if (layout->kind == BITS) bytes += round_up(n / 8 + 1);
    else bytes += round_up((n + 1) * layout->offset_bytes) + round_up(wish->bytes + OVERRUN);
    if (may_have_null_items(wish)) bytes += round_up(items_of(wish, n) / 8 + 1);
    return bytes;
}

/* One piece of memory for n rows of all columns; 0: there is none. */
static inline int room_new(Room *room, const Wish *wish, int columns, int64_t n) {
    int64_t arrays = 2 * (int64_t)columns, data = 64;
    size_t head = sizeof(Shared) + (size_t)arrays * (sizeof(ArrowArray) + sizeof(ArrowArray *)) +
                  (size_t)(arrays + 1) * MOST_BUFFERS * sizeof(void *);
    for (int k = 0; k < columns; k++) data += column_bytes(&wish[k], n);
    char *memory = block_new(head + (size_t)data);
    if (!memory) return 0;
    room->block = (Shared *)memory;
    room->block->arrays = 0;
    room->array = (ArrowArray *)(room->block + 1);
    room->child = (ArrowArray **)(room->array + arrays);
    room->buffer = (const void **)(room->child + arrays);
    room->data = (char *)round_up((int64_t)(memory + head));
    return 1;
}

/* -- values ------------------------------------------------------------------------------------ */

/* Where some rows lie: the memory of their pages, their places there, and both together for values
 * of eight bytes. */
typedef struct {
    const char *memory[SPOTS];
    const char *eight[SPOTS];
    int32_t place[SPOTS];
} Spots;

static inline void spots_of(Spots *spots, const Payload *from, const int64_t *row, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        spots->memory[i] = page_of(from, row[i])->memory;
        spots->place[i] = (int32_t)place_of(from, row[i]);
        spots->eight[i] = spots->memory[i] + (int64_t)spots->place[i] * 8;
    }
}

#define GATHER_FIXED(TYPE)                                                                         \
    for (int64_t i = 0; i < n; i++)                                                                \
    ((TYPE *)out)[i] = ((const TYPE *)(spots->memory[i] + at))[spots->place[i]]

typedef struct {
    int64_t low, high;
} Sixteen;

static inline void gather_fixed(const Spots *spots, const Layout *layout, int64_t n, char *out) {
    int64_t at = layout->values, width = layout->width;
    if (width == 8)
        for (int64_t i = 0; i < n; i++)
            ((int64_t *)out)[i] = *(const int64_t *)(spots->eight[i] + at);
    else if (width == 4) GATHER_FIXED(int32_t);
    else if (width == 2) GATHER_FIXED(int16_t);
    else if (width == 1) GATHER_FIXED(int8_t);
    else if (width == 16) GATHER_FIXED(Sixteen);
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(out + i * width, spots->memory[i] + at + spots->place[i] * width, (size_t)width);
}

/* Wide values of n rows, of which some lie in the log; 0: they could not be read, see errno. */
static inline int gather_wide(const Wish *wish, const int64_t *row, int64_t n, char *out) {
    const Payload *from = wish->from;
    const Layout *layout = layout_of(wish);
    int64_t width = layout->width, some;
    for (int64_t i = 0; i < n; i += some, out += some * width) {
        some = 1;
        if (i && row[i] == row[i - 1]) {
            memcpy(out, out - width, (size_t)width);
        } else if (row[i] < from->logged) {
            while (i + some < n && row[i + some] == row[i] + some && row[i + some] < from->logged)
                some++;
            if (!log_read(&from->disk, &from->log[wish->number], out, some * width,
                          (row[i] - from->log_row) * width))
                return 0;
        } else {
            const char *values = page_of(from, row[i])->memory + layout->values;
            memcpy(out, values + place_of(from, row[i]) * width, (size_t)width);
        }
    }
    return 1;
}

/* The values of all FIXED columns, some rows at a time: these are looked up once per stream.  0:
 * not all could be read, see errno. */
static inline int gather_all_fixed(const Wish *wish, int columns, int64_t n) {
    Spots spots;
    for (int64_t first = 0; first < n; first += SPOTS) {
        const Wish *last = NULL;
        int64_t some = n - first < SPOTS ? n - first : SPOTS;
        for (int k = 0; k < columns; k++) {
            const Wish *one = &wish[k];
            if (!one->to) continue;
            if (layout_of(one)->logged) {
                char *to = one->to + first * layout_of(one)->width;
                if (!gather_wide(one, one->row + first, some, to)) return 0;
                continue;
            }
            if (!last || last->from != one->from || last->row != one->row)
                spots_of(&spots, one->from, one->row + first, some);
            last = one;
            gather_fixed(&spots, layout_of(one), some, one->to + first * layout_of(one)->width);
        }
    }
    return 1;
}

/* Bits that lie `at` in their pages; how many are zero. */
static inline int64_t gather_bits(const Payload *from, int64_t at, const int64_t *row, int64_t n,
                                  uint8_t *out) {
    int64_t zeros = 0;
    memset(out, 0, (size_t)(n / 8 + 1));
    for (int64_t i = 0; i < n; i++) {
        int one = bit((const uint8_t *)page_of(from, row[i])->memory + at, place_of(from, row[i]));
        out[i >> 3] |= (uint8_t)(one << (i & 7));
        zeros += !one;
    }
    return zeros;
}

/* Which rows are there and not null; how many are not. */
static inline int64_t gather_valid(const Wish *wish, int64_t n, uint8_t *out) {
    if (wish->missing == n) {
        memset(out, 0, (size_t)(n / 8 + 1));
        return n;
    }
    int64_t nulls = gather_bits(wish->from, layout_of(wish)->valid, wish->row, n, out);
    if (!wish->missing) return nulls;
    for (int64_t i = 0; i < n; i++) {
        if (!lacks(wish, i)) continue;
        nulls += bit(out, i);
        out[i >> 3] &= (uint8_t)~(1 << (i & 7));
    }
    return nulls;
}

/* Offsets and items of a VARIABLE column, some rows at a time: where these lie is found out first,
 * and asked for.  Bytes of the items; -1: they could not be read, see errno. */
static inline int64_t gather_variable(const Wish *wish, int64_t n, char *offsets, char *out) {
    const Payload *from = wish->from;
    const Layout *layout = layout_of(wish);
    const char *values[SPOTS]; /* NULL: they lie in the log */
    int64_t position[SPOTS], bytes[SPOTS], at = 0;
    for (int64_t first = 0; first < n; first += SPOTS) {
        int64_t some = n - first < SPOTS ? n - first : SPOTS;
        for (int64_t i = 0; i < some; i++) {
            if (layout->offset_bytes == 4) ((int32_t *)offsets)[first + i] = (int32_t)at;
            else ((int64_t *)offsets)[first + i] = at;
            bytes[i] = 0;
            if (lacks(wish, first + i)) continue;
            const Page *page = page_of(from, wish->row[first + i]);
            const int64_t *offset = offsets_of(page, layout) + place_of(from, wish->row[first + i]);
            const PagePart *part = &page->part[wish->number];
            values[i] = NULL;
            if (layout->logged && wish->row[first + i] < from->logged) {
                position[i] = offset[0];
            } else {
                values[i] = part->bytes + (offset[0] - part->begin) * layout->width;
                __builtin_prefetch(values[i]);
            }
            bytes[i] = (offset[1] - offset[0]) * layout->width;
            at += offset[1] - offset[0];
        }
        for (int64_t i = 0; i < some; i++) {
            if (!bytes[i]) continue;
            if (!values[i]) {
                const Log *log = &from->log[wish->number];
                if (!log_read(&from->disk, log, out, bytes[i], position[i])) return -1;
            } else if (bytes[i] > SMALL_VALUE) memcpy(out, values[i], (size_t)bytes[i]);
            else memcpy(out, values[i], SMALL_VALUE);
            out += bytes[i];
        }
    }
    if (layout->offset_bytes == 4) ((int32_t *)offsets)[n] = (int32_t)at;
    else ((int64_t *)offsets)[n] = at;
    return at * layout->width;
}

/* Bits of items; how many items are null. */
static inline int64_t gather_item_bits(const Wish *wish, int64_t n, uint8_t *out) {
    const Payload *from = wish->from;
    const Layout *layout = layout_of(wish);
    int64_t at = 0, nulls = 0;
    memset(out, 0, (size_t)(items_of(wish, n) / 8 + 1));
    for (int64_t i = 0; i < n; i++) {
        if (lacks(wish, i)) {
            at += layout->items; /* none of a VARIABLE column */
            nulls += layout->items;
            continue;
        }
        const Page *page = page_of(from, wish->row[i]);
        int64_t place = place_of(from, wish->row[i]), begin = place * layout->items;
        int64_t stop = begin + layout->items;
        if (layout->kind == VARIABLE) {
            begin = offsets_of(page, layout)[place];
            stop = offsets_of(page, layout)[place + 1];
        }
        const uint8_t *valid = page->part[wish->number].item_valid;
        for (int64_t k = begin; k < stop; k++, at++) {
            if (!valid || bit(valid, k)) set_bit(out, at);
            else nulls++;
        }
    }
    return nulls;
}

/* -- columns ----------------------------------------------------------------------------------- */

static inline void gather_items(const Wish *wish, int64_t n, ArrowArray *array, Room *room,
                                const char *values) {
    ArrowArray *items = array->children[0] = room->array++;
    int64_t length = items_of(wish, n);
    array_begin(items, room, length, 2, 0);
    items->buffers[1] = values;
    if (!may_have_null_items(wish)) return;
    uint8_t *valid = (uint8_t *)room_take(room, length / 8 + 1);
    items->null_count = gather_item_bits(wish, n, valid);
    items->buffers[0] = valid;
}

static inline void copy_values(const Wish *wish, int64_t n, ArrowArray *array, Room *room) {
    array_begin(array, room, n, 2, 0);
    array->null_count = wish->bytes;
    if (wish->bytes) {
        uint8_t *valid = (uint8_t *)room_take(room, n / 8 + 1);
        memset(valid, 0, (size_t)(n / 8 + 1));
        for (int64_t i = 0; i < n; i++)
            if (is_there(wish, i)) set_bit(valid, i);
        array->buffers[0] = valid;
    }
    char *values = room_take(room, n * (int64_t)sizeof(int64_t));
    copy_bytes(values, wish->row, (size_t)n * sizeof(int64_t));
    array->buffers[1] = values;
}

/* 0: it could not be read, see errno. */
static inline int gather_column(Wish *wish, int64_t n, ArrowArray *array, Room *room) {
    if (!wish->from) {
        copy_values(wish, n, array, room);
        return 1;
    }
    const Payload *from = wish->from;
    const Layout *layout = layout_of(wish);
    int variable = layout->kind == VARIABLE;
    array_begin(array, room, n, 1 + variable + !layout->child, layout->child);
    if (may_be_null(wish)) {
        uint8_t *valid = (uint8_t *)room_take(room, n / 8 + 1);
        array->null_count = gather_valid(wish, n, valid);
        array->buffers[0] = valid;
    }
    char *offsets = variable ? room_take(room, (n + 1) * layout->offset_bytes) : NULL;
    if (variable) array->buffers[1] = offsets;
    int64_t bytes = variable ? wish->bytes : layout->kind == BITS ? n / 8 + 1 : n * layout->width;
    char *values = room_take(room, bytes + (layout->kind == BITS ? 0 : OVERRUN));
    if (variable) wish->bytes = gather_variable(wish, n, offsets, values);
    else if (wish->missing == n) memset(values, 0, (size_t)bytes);
    else if (layout->kind == BITS)
        gather_bits(from, layout->values, wish->row, n, (uint8_t *)values);
    else wish->to = values;
    if (variable && wish->bytes < 0) return 0;
    if (layout->child) gather_items(wish, n, array, room, values);
    else array->buffers[1 + variable] = values;
    return 1;
}

/* A record batch of n rows; TOO_LONG: some column has more than its offsets can count; UNREADABLE:
 * and why, as errno is. */
static inline int gather(Wish *wish, int columns, int64_t n, ArrowArray *out, int *why) {
    Room room;
    for (int k = 0; k < columns; k++) {
        if (!wish[k].from) {
            wish[k].bytes = values_missing(&wish[k], n);
            continue;
        }
        const Layout *layout = layout_of(&wish[k]);
        if (layout->kind != VARIABLE) continue;
        wish[k].bytes = variable_bytes(&wish[k], n);
        if (layout->offset_bytes == 4 && items_of(&wish[k], n) > INT32_MAX) return TOO_LONG;
    }
    if (!room_new(&room, wish, columns, n)) return NO_MEMORY;
    array_begin(out, &room, n, 1, columns);
    for (int k = 0; k < columns; k++) out->children[k] = room.array++;
    int done = 1;
    for (int k = 0; k < columns && done; k++)
        done = gather_column(&wish[k], n, out->children[k], &room);
    if (done && gather_all_fixed(wish, columns, n)) return GATHERED;
    *why = errno;
    block_leave((char *)room.block);
    out->release = NULL;
    return UNREADABLE;
}
#endif
