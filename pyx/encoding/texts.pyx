"""Codes of the byte strings of whole tables, which stay where they lie meanwhile.

Unchecked: enter through ``kernels.keys``.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from windjoin.pyx.base.index cimport out_of_memory

from windjoin.pyx.base.output import room_for_codes


cdef extern from "texts.h" nogil:
    ctypedef struct Texts:
        int64_t n
    int texts_encode(
        Texts *all, const int64_t *offset, const uint8_t *data, int64_t n, int32_t *out
    )
    void texts_free(Texts *all)


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
    cdef int done = 1
    if n:
        with nogil:
            done = texts_encode(all, &offsets[0], text, n, &out[0])
    if not done:
        out_of_memory(b"keys", n)
    return codes
