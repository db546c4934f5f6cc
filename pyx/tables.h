/* Tables as Arrow hands them from one library to another: its C data and C stream interfaces. */
#ifndef WINDJOIN_TABLES_H
#define WINDJOIN_TABLES_H
#include <stdint.h>

typedef struct ArrowSchema ArrowSchema; /* never looked into: the types are known */

typedef struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
} ArrowArray;

typedef struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, ArrowSchema *);
    int (*get_next)(struct ArrowArrayStream *, ArrowArray *);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
} ArrowArrayStream;

/* Whether any of the values [first, first + n) of an array is null. */
static inline int any_null(const ArrowArray *array, int64_t first, int64_t n) {
    const uint8_t *valid = array->buffers[0];
    if (!valid || !array->null_count) return 0;
    for (int64_t i = first; i < first + n; i++)
        if (!(valid[i >> 3] >> (i & 7) & 1)) return 1;
    return 0;
}

static inline int any_nan_double(const double *values, int64_t n) {
    int found = 0;
    for (int64_t i = 0; i < n; i++) found |= values[i] != values[i];
    return found;
}

static inline int any_nan_float(const float *values, int64_t n) {
    int found = 0;
    for (int64_t i = 0; i < n; i++) found |= values[i] != values[i];
    return found;
}
#endif
