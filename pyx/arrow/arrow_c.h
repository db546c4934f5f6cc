/* Tables as Arrow hands them from one library to another: its C data and C stream interfaces. */
#ifndef WINDJOIN_ARROW_C_H
#define WINDJOIN_ARROW_C_H
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

static inline int bit(const uint8_t *bits, int64_t i) { return bits[i >> 3] >> (i & 7) & 1; }

/* Whether any of the values [first, first + n) of an array is null. */
static inline int any_null(const ArrowArray *array, int64_t first, int64_t n) {
    const uint8_t *valid = array->buffers[0];
    if (!valid || !array->null_count) return 0;
    for (int64_t i = first; i < first + n; i++)
        if (!bit(valid, i)) return 1;
    return 0;
}

/* Clear the flags of nulls among the values [first, first + n). */
static inline void leave_nulls(uint8_t *flag, const ArrowArray *array, int64_t first, int64_t n) {
    const uint8_t *valid = array->buffers[0];
    for (int64_t i = 0; i < n; i++) flag[i] &= (uint8_t)bit(valid, first + i);
}

static inline void leave_nan(uint8_t *flag, const double *values, int64_t n) {
    for (int64_t i = 0; i < n; i++) flag[i] &= values[i] == values[i];
}

/* Numbers of another width as 64 bits. */
#define WIDEN(FROM, TO)                                                                            \
    do {                                                                                           \
        const FROM *given = (const FROM *)values + first;                                          \
        for (int64_t i = 0; i < n; i++) ((TO *)out)[i] = (TO)given[i];                             \
    } while (0)

enum { SIGNED, UNSIGNED, REAL, DECIMAL };

/* Numbers of `size` bytes as int64 or double; decimals must fit int64. */
static inline void widen(const void *values, int64_t first, int64_t n, int kind, int size,
                         void *out) {
    if (kind == REAL) WIDEN(float, double);
    else if (kind == DECIMAL) { /* the low words */
        const int64_t *given = (const int64_t *)values + first * (size / 8);
        for (int64_t i = 0; i < n; i++) ((int64_t *)out)[i] = given[i * (size / 8)];
    } else if (kind == SIGNED && size == 1) WIDEN(int8_t, int64_t);
    else if (kind == SIGNED && size == 2) WIDEN(int16_t, int64_t);
    else if (kind == SIGNED) WIDEN(int32_t, int64_t);
    else if (size == 1) WIDEN(uint8_t, int64_t);
    else if (size == 2) WIDEN(uint16_t, int64_t);
    else WIDEN(uint32_t, int64_t);
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
