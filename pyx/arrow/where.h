/* Conditions of one stream that compare a column of numbers with a constant. */
#ifndef WINDJOIN_WHERE_H
#define WINDJOIN_WHERE_H
#include <stdint.h>

#define TEST_ALL(TEST)                                                                             \
    do {                                                                                           \
        for (int64_t i = 0; i < n; i++) flag[i] &= (uint8_t)(TEST);                                \
    } while (0)

/* Clear the flags where not x <operator> c; operators in the order of the cases. */
#define TEST_BY_OPERATOR(NAME, TYPE)                                                               \
    static inline void NAME(uint8_t *flag, const TYPE *x, int64_t n, int operator, TYPE c) {       \
        switch (operator) {                                                                        \
        case 0: TEST_ALL(x[i] < c); break;                                                         \
        case 1: TEST_ALL(x[i] <= c); break;                                                        \
        case 2: TEST_ALL(x[i] > c); break;                                                         \
        case 3: TEST_ALL(x[i] >= c); break;                                                        \
        case 4: TEST_ALL(x[i] == c); break;                                                        \
        default: TEST_ALL(x[i] != c && x[i] == x[i]); /* not NaN */                                \
        }                                                                                          \
    }

TEST_BY_OPERATOR(test_whole, int64_t)
TEST_BY_OPERATOR(test_real, double)
#endif
