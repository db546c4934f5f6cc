"""Rows of a stream divided among groups of keys, for tables that no cache holds as a whole.

Unchecked: enter through ``kernels.parts``.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

import numpy as np


cdef extern from "divide.h" nogil:
    const int ROWS_OF_A_LINE
    ctypedef struct Division:
        bint close
        int shift
        uint64_t least
        int32_t groups
    ctypedef struct Divided:
        int64_t *key
        int64_t *time
        int64_t *row
    void divide_count(
        const Division *by, const int64_t *key, int64_t n, uint8_t *group, int64_t *count
    )
    void divide_rows(
        const int64_t *key, const int64_t *time, int64_t n, const uint8_t *group, int groups,
        const int64_t *begin, const Divided *out,
    )


def divide(const int64_t[::1] keys, const int64_t[::1] times, int groups, low, int shift):
    """Rows group by group, those of a group in the order they had; equal keys share a group.

    low: of keys that lie close together, 1 << shift to a group; None: they are spread by a hash
    Gives their keys, their times, which rows they are, and where groups begin and the last ends.
    """
    cdef int64_t n = keys.shape[0], g
    cdef Division by
    cdef Divided out
    cdef int64_t[::1] key, time, row, begin = np.zeros(groups + 1, np.int64)
    cdef uint8_t[::1] group = np.empty(n, np.uint8)
    divided = [_lines(n) for _ in range(3)]
    if n:
        key, time, row = divided
        by.close = low is not None
        by.shift = shift
        by.least = 0 if low is None else <uint64_t><int64_t>low
        by.groups = groups
        out.key, out.time, out.row = &key[0], &time[0], &row[0]
        with nogil:
            divide_count(&by, &keys[0], n, &group[0], &begin[1])
            for g in range(groups):
                begin[g + 1] += begin[g]
            divide_rows(&keys[0], &times[0], n, &group[0], groups, &begin[0], &out)
    return *divided, np.asarray(begin)


cdef object _lines(int64_t n):
    """Room for n int64 from the border of a cache line on."""
    room = np.empty(n + ROWS_OF_A_LINE, np.int64)
    cdef int64_t[::1] memory = room
    cdef int64_t past = (<uint64_t>&memory[0] // sizeof(int64_t)) % ROWS_OF_A_LINE
    return room[ROWS_OF_A_LINE - past : ROWS_OF_A_LINE - past + n]
