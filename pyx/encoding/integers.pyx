"""Codes of the integers of whole tables.

Unchecked: enter through ``kernels.keys``.
"""
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint64_t
from libc.string cimport memset

from windjoin.pyx.base.index cimport out_of_memory

from windjoin.pyx.base.output import room_for_codes

from windjoin.pyx.base.cancellation cimport look_up


cdef extern from "integers.h" nogil:
    ctypedef struct Integers:
        int64_t n
    int integers_encode(Integers *all, const int64_t *key, int64_t n, int32_t *out)
    void integers_free(Integers *all)
    void integers_span(
        const int64_t *key, int64_t n, uint64_t widest, int64_t *low, int64_t *high
    )


cdef enum:
    KEYS_PER_LOOK = 1 << 16


def close_together(columns, uint64_t widest):
    """The least value and how many lie between it and the greatest; None: more than ``widest``."""
    cdef int64_t low = INT64_MAX, high = INT64_MIN
    cdef const int64_t[::1] keys
    for keys in columns:
        if keys.shape[0]:
            with nogil:
                integers_span(&keys[0], keys.shape[0], widest, &low, &high)
    if low > high:
        return 0, 0
    if <uint64_t>high - <uint64_t>low > widest:
        return None
    return low, high - low + 1


def encode_integers(columns):
    """int32 codes of the values of each int64 column, equal where they are; how many codes."""
    cdef Integers all
    memset(&all, 0, sizeof(Integers))
    try:
        return [_encode(&all, column) for column in columns], all.n
    finally:
        integers_free(&all)


cdef object _encode(Integers *all, const int64_t[::1] keys):
    cdef int64_t n = keys.shape[0]
    cdef object codes = room_for_codes(n)
    cdef int32_t[::1] out = codes
    cdef int64_t at = 0, some
    with nogil:
        while at < n:
            some = min(<int64_t>KEYS_PER_LOOK, n - at)
            if not integers_encode(all, &keys[at], some, &out[at]):
                out_of_memory(b"keys", n)
            at += some
            look_up()
    return codes
