/* Which vector instructions to use: the best this CPU has, or what WINDJOIN_ISA asks for. */
#ifndef WINDJOIN_ISA_H
#define WINDJOIN_ISA_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__clang__)
#define UNROLLED _Pragma("unroll")
#elif defined(__GNUC__)
#define UNROLLED _Pragma("GCC unroll 16")
#else
#define UNROLLED
#endif

/* For bodies that are compiled once per instruction set, each time into a function of that set. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* For what is seldom called from a loop that needs all registers. */
#define NOT_INLINE __attribute__((noinline))

/* Let element `at` of an array be fetched, to be read or written soon.  Neither need be there: what
 * is calculated is an address, not a pointer. */
#define ADDRESS(array, at) ((const void *)((uintptr_t)(array) + (uintptr_t)(at) * sizeof(*(array))))
#define FETCH(array, at) __builtin_prefetch(ADDRESS(array, at))
#define FETCH_TO_WRITE(array, at) __builtin_prefetch(ADDRESS(array, at), 1)

enum { ISA_PLAIN = 0, ISA_AVX2 = 1, ISA_AVX512 = 2 };

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define WINDJOIN_X86 1
#include <immintrin.h>
#define TARGET_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt,fma")))
#define TARGET_AVX512                                                                              \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi,bmi2,popcnt,fma")))
#endif

static inline int isa_supported(void) {
#ifdef WINDJOIN_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return ISA_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
        __builtin_cpu_supports("fma"))
        return ISA_AVX2;
#endif
    return ISA_PLAIN;
}

/* What the environment asks for; -1: nothing, or a word that cpu.pyx refuses. */
static inline int isa_requested(void) {
    const char *word = getenv("WINDJOIN_ISA");
    if (!word) return -1;
    if (!strcmp(word, "plain")) return ISA_PLAIN;
    if (!strcmp(word, "avx2")) return ISA_AVX2;
    if (!strcmp(word, "avx512")) return ISA_AVX512;
    return -1;
}

/* Decided once per module; cpu.pyx refuses a wrong request loudly. */
static inline int isa_level(void) {
    static int level = -1;
    if (level < 0) {
        int requested = isa_requested(), supported = isa_supported();
        level = (requested >= 0 && requested < supported) ? requested : supported;
    }
    return level;
}
#endif
