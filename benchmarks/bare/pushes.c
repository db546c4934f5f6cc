/* Pushes of two streams joined by bare loops: no Python, no types, nothing that comes late.
 *
 * Equality: one dictionary of keys for both streams, a ring of the 8 newest rows of a key in a cache
 * line.  Band: a grid of cells as wide as the band reaches, the same with the values behind the line.
 * A ring doubles when a row that may still be met would be overwritten.  Rows are taken in runs: find
 * the rings of all, ask for them, then probe and insert.  Times are microseconds from 0 in 31 bits.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#define RUN 64
#define VACANT INT32_MIN
#define SLACK 16
#define GROUP 64          /* pushes that are made ready at a time, */
#define GROUP_ROWS 4096   /* but not more rows */
#define LANES 16

typedef struct {
    int32_t key_code; /* -1: vacant */
    int64_t key;
} Entry;

typedef struct {
    Entry *entries;
    uint64_t wrap;
    int32_t n;
} Dictionary;

typedef struct {
    int32_t time[8], row[8];
} Line;

/* A ring of more rows: times, then row numbers, then values. */
typedef struct {
    int32_t capacity, next;
    int32_t *time, *row;
    double *value;
} Ring;

typedef struct {
    Line *lines;        /* by key or cell, */
    double (*value)[8]; /* band: and the values of its rows */
    uint8_t *next;      /* where the next row of a line goes; 255: it is a ring now */
    Ring *rings;        /* of lines with more than 8 rows */
    int32_t newest;
} Stream;

typedef struct {
    Dictionary keys;
    Stream stream[2];
    int32_t window, cells;
    double eps;
    int64_t *found[2]; /* row numbers of the results of a push */
    int64_t n, room;
} Join;

static void *memory(size_t bytes) {
    size_t whole = (bytes + (1 << 21) - 1) & ~(size_t)((1 << 21) - 1);
    void *room = aligned_alloc(1 << 21, whole);
    madvise(room, whole, MADV_HUGEPAGE);
    memset(room, 0, whole);
    return room;
}

static uint64_t hash(int64_t key) {
    uint64_t x = (uint64_t)key * 0x9E3779B97F4A7C15ull;
    return x ^ (x >> 32);
}

static int32_t code_of(Dictionary *keys, int64_t key) {
    uint64_t at = hash(key) & keys->wrap;
    while (keys->entries[at].key_code >= 0 && keys->entries[at].key != key) at = (at + 1) & keys->wrap;
    Entry *entry = keys->entries + at;
    if (entry->key_code < 0) *entry = (Entry){keys->n++, key};
    return entry->key_code;
}

static void ring_widen(Ring *ring, int values) {
    int32_t old = ring->capacity, wide = old ? 2 * old : LANES;
    int32_t *time = aligned_alloc(64, (size_t)wide * 4), *row = aligned_alloc(64, (size_t)wide * 4);
    double *value = values ? aligned_alloc(64, (size_t)wide * 8) : NULL;
    for (int32_t k = 0; k < wide; k++) {
        int32_t from = old ? (ring->next + k) & (old - 1) : 0;
        time[k] = k < old ? ring->time[from] : VACANT;
        row[k] = k < old ? ring->row[from] : 0;
        if (values) value[k] = k < old ? ring->value[from] : 0;
    }
    free(ring->time);
    free(ring->row);
    free(ring->value);
    *ring = (Ring){wide, old, time, row, value};
}

static void ring_put(Ring *ring, int32_t time, int32_t row, double value, int32_t horizon) {
    if (ring->time[ring->next] >= horizon) ring_widen(ring, ring->value != NULL);
    if (ring->value) ring->value[ring->next] = value;
    ring->time[ring->next] = time;
    ring->row[ring->next] = row;
    ring->next = (ring->next + 1) & (ring->capacity - 1);
}

/* Rows of a ring in lo .. hi, appended; of a band, those whose value lies near x. */
static int64_t ring_probe(const Ring *ring, int32_t lo, int32_t hi, double x, double eps, int64_t who,
                          int64_t *mine, int64_t *theirs, int64_t n) {
    for (int32_t k = 0; k < ring->capacity; k += LANES) {
#ifdef __AVX512F__
        __m512i t = _mm512_load_si512(ring->time + k);
        __mmask16 in = _mm512_cmpge_epi32_mask(t, _mm512_set1_epi32(lo)) &
                       _mm512_cmple_epi32_mask(t, _mm512_set1_epi32(hi));
        if (!in) continue;
        if (ring->value) {
            __m512d v = _mm512_set1_pd(x), e = _mm512_set1_pd(eps);
            __m512d a = _mm512_abs_pd(_mm512_sub_pd(v, _mm512_load_pd(ring->value + k)));
            __m512d b = _mm512_abs_pd(_mm512_sub_pd(v, _mm512_load_pd(ring->value + k + 8)));
            in &= (__mmask16)(_mm512_cmp_pd_mask(a, e, _CMP_LE_OQ) |
                              (_mm512_cmp_pd_mask(b, e, _CMP_LE_OQ) << 8));
        }
        __m512i rows = _mm512_maskz_compress_epi32(in, _mm512_load_si512(ring->row + k));
        int many = __builtin_popcount(in);
        _mm512_storeu_si512(theirs + n, _mm512_cvtepi32_epi64(_mm512_castsi512_si256(rows)));
        _mm512_storeu_si512(mine + n, _mm512_set1_epi64(who));
        if (many > 8) {
            rows = _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(rows, 1));
            _mm512_storeu_si512(theirs + n + 8, rows);
            _mm512_storeu_si512(mine + n + 8, _mm512_set1_epi64(who));
        }
        n += many;
#else
        for (int l = k; l < k + LANES; l++) {
            theirs[n] = ring->row[l];
            mine[n] = who;
            n += (ring->time[l] >= lo) & (ring->time[l] <= hi) &
                 (!ring->value || fabs(x - ring->value[l]) <= eps);
        }
#endif
    }
    return n;
}

/* The same for a line; `value` NULL: of equality. */
static inline int64_t line_probe(const Line *line, const double *value, int32_t lo, int32_t hi, double x,
                                 double eps, int64_t who, int64_t *mine, int64_t *theirs, int64_t n) {
#ifdef __AVX512F__
    __m256i t = _mm256_load_si256((const __m256i *)line->time);
    __mmask8 in = _mm256_cmpge_epi32_mask(t, _mm256_set1_epi32(lo)) &
                  _mm256_cmple_epi32_mask(t, _mm256_set1_epi32(hi));
    if (value) {
        __m512d apart = _mm512_abs_pd(_mm512_sub_pd(_mm512_set1_pd(x), _mm512_load_pd(value)));
        in = _mm512_mask_cmp_pd_mask(in, apart, _mm512_set1_pd(eps), _CMP_LE_OQ);
    }
    __m256i rows = _mm256_maskz_compress_epi32(in, _mm256_load_si256((const __m256i *)line->row));
    _mm512_storeu_si512(theirs + n, _mm512_cvtepi32_epi64(rows));
    _mm512_storeu_si512(mine + n, _mm512_set1_epi64(who));
    return n + __builtin_popcount(in);
#else
    for (int l = 0; l < 8; l++) {
        theirs[n] = line->row[l];
        mine[n] = who;
        n += (line->time[l] >= lo) & (line->time[l] <= hi) & (!value || fabs(x - value[l]) <= eps);
    }
    return n;
#endif
}

static inline void line_put(Stream *own, int32_t code, int32_t time, int32_t row, double value, int32_t horizon) {
    Line *line = own->lines + code;
    int next = own->next[code];
    if (next < 8 && line->time[next] < horizon) {
        line->time[next] = time;
        line->row[next] = row;
        if (own->value) own->value[code][next] = value;
        own->next[code] = (uint8_t)((next + 1) & 7);
        return;
    }
    Ring *ring = own->rings + code;
    if (next < 8) {
        ring_widen(ring, own->value != NULL);
        for (int k = 0; k < 8; k++) {
            int from = (next + k) & 7;
            ring_put(ring, line->time[from], line->row[from], own->value ? own->value[code][from] : 0, 0);
        }
        own->next[code] = 255;
    }
    ring_put(ring, time, row, value, horizon);
}

static void need_room(Join *join, int64_t n) {
    if (n <= join->room) return;
    join->room = 2 * n;
    for (int s = 0; s < 2; s++) join->found[s] = realloc(join->found[s], (size_t)(2 * n + SLACK) * 8);
}

/* Results of one row with one line or ring of the other stream. */
static inline int64_t probe(Join *join, int s, int32_t code, int32_t t, double x, int64_t who, int64_t found) {
    const Stream *other = join->stream + 1 - s;
    int32_t lo = t - join->window, hi = t + join->window;
    int wide = other->next[code] == 255;
    int64_t most = wide ? other->rings[code].capacity : LANES;
    if (found + most > join->room) need_room(join, found + most);
    if (wide)
        return ring_probe(other->rings + code, lo, hi, x, join->eps, who, join->found[s],
                          join->found[1 - s], found);
    return line_probe(other->lines + code, other->value ? other->value[code] : NULL, lo, hi, x,
                      join->eps, who, join->found[s], join->found[1 - s], found);
}

/* Rows first, first + 1, ... of stream s meet those with equal keys. */
static void push_keys(Join *join, int s, int64_t n, const int64_t *time, const int64_t *key,
                      int32_t first) {
    Stream *own = join->stream + s, *other = join->stream + 1 - s;
    int32_t code[RUN], horizon = other->newest - join->window;
    int64_t found = 0;
    for (int64_t at = 0; at < n; at += RUN) {
        int few = n - at < RUN ? (int)(n - at) : RUN;
        for (int i = 0; i < few; i++) {
            code[i] = code_of(&join->keys, key[at + i]);
            __builtin_prefetch(other->lines + code[i]);
            __builtin_prefetch(own->lines + code[i], 1);
        }
        for (int i = 0; i < few; i++)
            found = probe(join, s, code[i], (int32_t)time[at + i], 0, first + at + i, found);
        for (int i = 0; i < few; i++)
            line_put(own, code[i], (int32_t)time[at + i], (int32_t)(first + at + i), 0, horizon);
    }
    own->newest = (int32_t)time[n - 1];
    join->n = found;
}

/* The same for values in 0 .. 1 that differ by eps at most. */
static void push_values(Join *join, int s, int64_t n, const int64_t *time, const double *value,
                        int32_t first) {
    Stream *own = join->stream + s, *other = join->stream + 1 - s;
    int32_t cell[RUN], horizon = other->newest - join->window;
    double per_unit = 1 / join->eps;
    int64_t found = 0;
    for (int64_t at = 0; at < n; at += RUN) {
        int few = n - at < RUN ? (int)(n - at) : RUN;
        for (int i = 0; i < few; i++) {
            cell[i] = 1 + (int32_t)(value[at + i] * per_unit);
            for (int k = -1; k < 2; k++) {
                __builtin_prefetch(other->lines + cell[i] + k);
                __builtin_prefetch(other->value + cell[i] + k);
            }
        }
        for (int i = 0; i < few; i++)
            for (int k = -1; k < 2; k++)
                found = probe(join, s, cell[i] + k, (int32_t)time[at + i], value[at + i],
                              first + at + i, found);
        for (int i = 0; i < few; i++)
            line_put(own, cell[i], (int32_t)time[at + i], (int32_t)(first + at + i), value[at + i], horizon);
    }
    own->newest = (int32_t)time[n - 1];
    join->n = found;
}

static Join *begin(int64_t keys, double eps, int64_t window) {
    Join *join = calloc(1, sizeof(Join));
    join->window = (int32_t)window;
    join->eps = eps;
    join->cells = eps > 0 ? (int32_t)(1 / eps) + 3 : 0;
    int64_t lines = join->cells ? join->cells : keys;
    for (int s = 0; s < 2; s++) {
        Stream *own = join->stream + s;
        own->rings = memory((size_t)lines * sizeof(Ring));
        own->lines = memory((size_t)lines * sizeof(Line));
        own->next = memory((size_t)lines);
        if (join->cells) own->value = memory((size_t)lines * sizeof(*own->value));
        for (int64_t c = 0; c < lines; c++)
            for (int k = 0; k < 8; k++) own->lines[c].time[k] = VACANT;
    }
    while ((int64_t)join->keys.wrap < 2 * keys) join->keys.wrap = 2 * join->keys.wrap + 1;
    join->keys.entries = memory((join->keys.wrap + 1) * sizeof(Entry));
    for (uint64_t k = 0; k <= join->keys.wrap; k++) join->keys.entries[k].key_code = -1;
    need_room(join, 1 << 16);
    return join;
}

static void end(Join *join) {
    for (int s = 0; s < 2; s++) {
        Stream *own = join->stream + s;
        int64_t rings = join->cells ? join->cells : join->keys.n;
        for (int64_t c = 0; c < rings; c++)
            free(own->rings[c].time), free(own->rings[c].row), free(own->rings[c].value);
        free(own->lines);
        free(own->value);
        free(own->next);
        free(own->rings);
        free(join->found[s]);
    }
    free(join->keys.entries);
    free(join);
}

/* As in benchmarks/checksum.py. */
static int64_t sum_of(const Join *join) {
    int64_t sum = 0;
    for (int64_t k = 0; k < join->n; k++) {
        int64_t x = (join->found[0][k] * 1000003 + join->found[1][k] * 179424673 + 12345) % 2147483647;
        sum += x * x % 2147483647;
    }
    return sum;
}

/* Push n rows of each stream in turn, `size` at a time, that have just been written, and return the
 * nanoseconds of this thread.  eps > 0: values, else keys.  *sum NULL: results are only counted. */
int64_t pushes(int64_t n, int64_t size, const int64_t *const *time, const void *const *value,
               int64_t keys, double eps, int64_t window, int64_t *results, int64_t *sum) {
    Join *join = begin(keys, eps, window);
    int64_t many = GROUP_ROWS / size < 1 ? 1 : GROUP_ROWS / size > GROUP ? GROUP : GROUP_ROWS / size;
    int64_t rows = many * size, taken = 0;
    int64_t *arrived[4];
    struct timespec from, to;
    for (int k = 0; k < 4; k++) arrived[k] = memory((size_t)rows * 8);
    *results = 0;
    if (sum) *sum = 0;
    for (int64_t at = 0; at < n; at += rows) {
        int64_t here = n - at < rows ? n - at : rows;
        for (int s = 0; s < 2; s++) {
            memcpy(arrived[s], time[s] + at, (size_t)here * 8);
            memcpy(arrived[2 + s], (const int64_t *)value[s] + at, (size_t)here * 8);
        }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
        for (int64_t k = 0; k < here; k += size) {
            int64_t few = here - k < size ? here - k : size;
            for (int s = 0; s < 2; s++) {
                if (eps > 0) push_values(join, s, few, arrived[s] + k, (double *)arrived[2 + s] + k, (int32_t)(at + k));
                else push_keys(join, s, few, arrived[s] + k, arrived[2 + s] + k, (int32_t)(at + k));
                *results += join->n;
                if (sum) *sum += sum_of(join);
            }
        }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
        taken += (to.tv_sec - from.tv_sec) * 1000000000ll + to.tv_nsec - from.tv_nsec;
    }
    for (int k = 0; k < 4; k++) free(arrived[k]);
    end(join);
    return taken;
}
