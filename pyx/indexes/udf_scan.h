/* A user's function over windows of a whole table, for several partial results with one call.
 *
 * Rows are numbered in time order, so that a window is a range of rows and operands lie side by
 * side; the function writes a byte per pair, and the few that are not zero are looked for
 * afterwards.
 */
#ifndef WINDJOIN_UDF_SCAN_H
#define WINDJOIN_UDF_SCAN_H
#include "csr_postings.h"
#include "basic_windows.h"

#define CALLS_ROWS 8192   /* of one call, whose bytes then fit the nearest cache */
#define CALLS_WINDOWS 64  /* of one call */
#define CALLS_IN_A_ROW 1  /* then the pipeline may look for Ctrl-C: a function may be slow */

/* Bytes of m windows, `begin[p] .. begin[p] + count[p]` each, from multiples of 64 on.  Operand k
 * of the partial results lies at k * bound_stride + p, that of the rows at k * own_stride + row; as
 * integers and as doubles, whichever it is.  Pairs for which the function raises pass; returns
 * whether there are any. */
typedef int64_t (*Sweep)(int64_t m, const int64_t *begin, const int64_t *count,
                         int64_t bound_stride, const void *bound_ints, const void *bound_reals,
                         int64_t own_stride, const void *own_ints, const void *own_reals,
                         uint8_t *passed);

typedef struct {
    Csr rows; /* only what its `locate` needs */
    Sweep function;
    int64_t *operand;
    int64_t stride;
    int bound;      /* operands that partial results bring, as Probe.from */
    int64_t raised; /* not 0: the function did, for a pair that was proposed */
} UdfWindows;

/* Windows of one call, in order, and the bytes the function left of them. */
typedef struct {
    int64_t m;
    int64_t probe[CALLS_WINDOWS], begin[CALLS_WINDOWS], count[CALLS_WINDOWS];
    int64_t operand[MOST_BOUND * CALLS_WINDOWS];
    uint8_t passed[CALLS_ROWS + 64] __attribute__((aligned(64)));
} UdfCall;

static inline int64_t whole_words(int64_t n) { return (n + 63) & ~(int64_t)63; }

/* Take windows from the cursor on; a long one is cut. */
static inline void udf_scan_collect(const UdfWindows *all, const Probe *probe, Cursor *cursor,
                                    UdfCall *call) {
    int64_t room = CALLS_ROWS;
    uint8_t *passed = call->passed;
    call->m = 0;
    while (cursor->probe < probe->n && call->m < CALLS_WINDOWS && room) {
        int64_t i = cursor->probe, m = call->m;
        int64_t begin = probe->lo[i] + cursor->position, count = probe->hi[i] - begin;
        if (count > room) count = room;
        else cursor->probe++;
        cursor->position = cursor->probe > i ? 0 : cursor->position + count;
        if (count <= 0) continue;
        call->probe[m] = i;
        call->begin[m] = begin;
        call->count[m] = count;
        for (int v = 0; v < all->bound; v++)
            call->operand[v * CALLS_WINDOWS + m] = probe->from[v * probe->stride + i];
        memset(passed + whole_words(count) - 64, 0, 64);
        passed += whole_words(count);
        room -= whole_words(count);
        call->m++;
    }
}

/* The words of a call in which any pair passed, each with its first row and who asked. */
typedef struct {
    int64_t n;
    uint64_t bits[CALLS_ROWS / 64 + 1];
    int64_t row[CALLS_ROWS / 64 + 1], probe[CALLS_ROWS / 64 + 1];
} Passed;

/* Without a branch that depends on the function. */
#define CALLS_PASSED(ISA, TARGET)                                                                  \
    TARGET static void udf_scan_passed_##ISA(const UdfCall *call, Passed *out) {                   \
        const uint8_t *passed = call->passed;                                                      \
        int64_t n = 0;                                                                             \
        for (int64_t w = 0; w < call->m; w++)                                                      \
            for (int64_t k = 0; k < call->count[w]; k += 64, passed += 64) {                       \
                uint64_t bits = passed_##ISA(passed);                                              \
                out->bits[n] = bits;                                                               \
                out->row[n] = call->begin[w] + k;                                                  \
                out->probe[n] = call->probe[w];                                                    \
                n += bits != 0;                                                                    \
            }                                                                                      \
        out->n = n;                                                                                \
    }

CALLS_PASSED(plain, )
#ifdef WINDJOIN_X86
CALLS_PASSED(avx2, TARGET_AVX2)
CALLS_PASSED(avx512, TARGET_AVX512)
#endif

static inline void udf_scan_passed(const UdfCall *call, Passed *out) {
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) {
        udf_scan_passed_avx512(call, out);
        return;
    }
    if (isa_level() == ISA_AVX2) {
        udf_scan_passed_avx2(call, out);
        return;
    }
#endif
    udf_scan_passed_plain(call, out);
}

/* Pairs that passed; 0: `out` is full, and the cursor says where to go on. */
static int udf_scan_keep(const UdfWindows *all, const Probe *probe, const UdfCall *call,
                         Cursor *cursor, Pairs *out) {
    Passed passed;
    udf_scan_passed(call, &passed);
    for (int64_t w = 0; w < passed.n; w++) {
        int64_t i = passed.probe[w];
        for (uint64_t bits = passed.bits[w]; bits; bits &= bits - 1) {
            int64_t row = passed.row[w] + __builtin_ctzll(bits), n = out->n;
            if (n >= out->capacity) {
                cursor->probe = i;
                cursor->position = row - probe->lo[i];
                return 0;
            }
            out->row[n] = all->rows.first + row;
            if (out->bound) out->bound[n] = probe->bound[i];
            else out->probe[n] = (int32_t)i;
            if (out->time) out->time[n] = all->rows.time[row];
            out->n++;
        }
    }
    return 1;
}

/* cursor->position: rows of the window that are done. */
static int udf_scan_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out) {
    UdfWindows *all = index;
    UdfCall call;
    for (int calls = 0; cursor->probe < probe->n; calls++) {
        if (calls == CALLS_IN_A_ROW) return 0;
        udf_scan_collect(all, probe, cursor, &call);
        if (!call.m) continue;
        all->raised |=
            all->function(call.m, call.begin, call.count, CALLS_WINDOWS, call.operand, call.operand,
                          all->stride, all->operand, all->operand, call.passed);
        if (!udf_scan_keep(all, probe, &call, cursor, out)) return 0;
    }
    return 1;
}

static RowBounds udf_scan_locate(void *index, int64_t n, TimeBounds bounds) {
    return csr_locate(&((UdfWindows *)index)->rows, n, bounds);
}
#endif
