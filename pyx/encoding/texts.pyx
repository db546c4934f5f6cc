"""Codes of the byte strings of whole tables, which stay where they lie meanwhile.

Unchecked: enter through ``kernels.keys``.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from windjoin.pyx.base.index cimport out_of_memory

from windjoin.pyx.base.output import room_for_codes

from windjoin.pyx.base.cancellation cimport look_up


cdef extern from "texts.h" nogil:
    ctypedef struct Texts:
        int64_t n
    int texts_encode(
        Texts *all, const int64_t *offset, const uint8_t *data, int64_t n, int32_t *out
    )
    void texts_free(Texts *all)


cdef enum:
    STRINGS_PER_LOOK = 1 << 16


def encode_texts(columns):
    """int32 codes of the values of each ``BytesColumn``, equal where they are; how many codes."""
    cdef Texts all
    memset(&all, 0, sizeof(Texts))
    try:
        return [_encode(&all, column.offsets, column.data) for column in columns], all.n
    finally:
        texts_free(&all)


cdef object _encode(Texts *all, const int64_t[::1] offsets, const uint8_t[::1] data):
    cdef int64_t n = offsets.shape[0] - 1
    cdef const uint8_t *text = &data[0] if data.shape[0] else NULL
    cdef object codes = room_for_codes(n)
    cdef int32_t[::1] out = codes
    cdef int64_t at = 0, some
    with nogil:
        while at < n:
            some = min(<int64_t>STRINGS_PER_LOOK, n - at)
            if not texts_encode(all, &offsets[at], text, some, &out[at]):
                out_of_memory(b"keys", n)
            at += some
            look_up()
    return codes
