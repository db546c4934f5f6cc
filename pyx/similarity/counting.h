/* How many items rows of a block have in common with rows that ask, 512 rows at a time. */
#ifndef WINDJOIN_COUNTING_H
#define WINDJOIN_COUNTING_H
#include "blocks.h"

#define MOST_PLANES 31
#define MOST_COUNTED 64 /* rows that ask, of one call */
#define PARTS (int)(sizeof(Bits) / sizeof(VECTOR))

#ifdef WINDJOIN_X86
#define COUNT count_avx512
#define TARGET TARGET_AVX512
#define VECTOR __m512i
#define LOAD _mm512_load_si512
#define STORE _mm512_store_si512
#define OR _mm512_or_si512
#define AND _mm512_and_si512
#define XOR _mm512_xor_si512
#define SUM3(a, b, c) _mm512_ternarylogic_epi64(a, b, c, 0x96)
#define CARRY3(a, b, c) _mm512_ternarylogic_epi64(a, b, c, 0xE8)
#define FULL _mm512_set1_epi64(-1)
#define EMPTY _mm512_setzero_si512()
#define NONZERO(a) (_mm512_test_epi64_mask(a, a) != 0)
#include "count.inc"
#undef COUNT
#undef TARGET
#undef VECTOR
#undef LOAD
#undef STORE
#undef OR
#undef AND
#undef XOR
#undef SUM3
#undef CARRY3
#undef FULL
#undef EMPTY
#undef NONZERO

#define SUM3(a, b, c) XOR(XOR(a, b), c)
#define CARRY3(a, b, c) OR(AND(a, b), AND(c, XOR(a, b)))
#define COUNT count_avx2
#define TARGET TARGET_AVX2
#define VECTOR __m256i
#define LOAD _mm256_load_si256
#define STORE _mm256_store_si256
#define OR _mm256_or_si256
#define AND _mm256_and_si256
#define XOR _mm256_xor_si256
#define FULL _mm256_set1_epi64x(-1)
#define EMPTY _mm256_setzero_si256()
#define NONZERO(a) (!_mm256_testz_si256(a, a))
#include "count.inc"
#undef COUNT
#undef TARGET
#undef VECTOR
#undef LOAD
#undef STORE
#undef OR
#undef AND
#undef XOR
#undef FULL
#undef EMPTY
#undef NONZERO
#else
#define SUM3(a, b, c) XOR(XOR(a, b), c)
#define CARRY3(a, b, c) OR(AND(a, b), AND(c, XOR(a, b)))
#endif

#define COUNT count_plain
#define TARGET
#define VECTOR uint64_t
#define LOAD(p) (*(p))
#define STORE(p, v) (*(p) = (v))
#define OR(a, b) ((a) | (b))
#define AND(a, b) ((a) & (b))
#define XOR(a, b) ((a) ^ (b))
#define FULL (~(uint64_t)0)
#define EMPTY ((uint64_t)0)
#define NONZERO(a) ((a) != 0)
#include "count.inc"

/* For n rows that ask, at most MOST_COUNTED: the rows with at least k of their m lanes, and one bit
 * for each that has any.  m is even; a lane is where its bits start, in bytes. */
static inline uint64_t count_lanes(const Bits *bits, const uint32_t *lane, int64_t m, int64_t n,
                                   int64_t k, Bits *out) {
#ifdef WINDJOIN_X86
    if (isa_level() == ISA_AVX512) return count_avx512(bits, lane, m, n, k, out);
    if (isa_level() == ISA_AVX2) return count_avx2(bits, lane, m, n, k, out);
#endif
    return count_plain(bits, lane, m, n, k, out);
}

/* How many of m lanes each row is in, as binary numbers: bit j of all rows in plane[j]; how many
 * planes there are. */
static inline int count_planes(const Bits *bits, const uint32_t *lane, int64_t m, Bits *plane) {
    int n = 0;
    for (int64_t k = 0; k < m; k++) {
        Bits carried = *(const Bits *)((const char *)bits + lane[k]);
        uint64_t any = 1;
        for (int j = 0; j < n && any; j++) {
            any = 0;
            for (int w = 0; w < WORDS; w++) {
                const uint64_t both = plane[j].word[w] & carried.word[w];
                plane[j].word[w] ^= carried.word[w];
                any |= carried.word[w] = both;
            }
        }
        if (any) plane[n++] = carried;
    }
    return n;
}

/* The number that a row has in the planes. */
ALWAYS_INLINE int64_t counted(const Bits *plane, int n, int w, int place) {
    int64_t count = 0;
    for (int j = 0; j < n; j++) count |= (int64_t)(plane[j].word[w] >> place & 1) << j;
    return count;
}

/* Read a block's lanes once in their order, so that counting finds them in cache. */
static inline void fetch_lanes(const Bits *bits, int64_t n) {
    static volatile uint64_t read;
    uint64_t some = 0;
    for (int64_t k = 0; k < n; k++) some |= bits[k].word[0];
    read = some;
    (void)read;
}
#endif
