"""Rows of items to rows of codes: sorted, each item once, with weights or without.

Unchecked: enter through ``kernels.varlen``.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

cimport numpy as cnp

import numpy as np

from windjoin.pyx.base.column cimport ColumnView
from windjoin.pyx.base.index cimport out_of_memory
from windjoin.pyx.encoding.keys cimport KeySpace


cdef extern from "varlen.h" nogil:
    ctypedef struct Item:
        int32_t code
        int32_t place
        double weight
    int64_t as_set(int32_t *codes, int64_t n)
    int64_t as_weighted_set(Item *items, int64_t n, double *out)


cnp.import_array()

cdef enum:
    WIDENED_TOGETHER = 256  # items of 32 bits


def set_varlen_rows(const int64_t[::1] offsets, int32_t[::1] codes):
    """Make sets of ``codes`` in place; (starts as addresses, lengths) of the rows."""
    cdef int64_t i, n = offsets.shape[0] - 1
    starts = np.empty(n, np.int64)
    lengths = np.empty(n, np.int32)
    cdef int64_t[::1] start = starts
    cdef int32_t[::1] length = lengths
    cdef int32_t *first = &codes[0] if codes.shape[0] else NULL
    with nogil:
        for i in range(n):
            length[i] = <int32_t>as_set(first + offsets[i], offsets[i + 1] - offsets[i])
            start[i] = <int64_t>(first + offsets[i])
    return starts, lengths


def set_rows(KeySpace space not None, offsets, items):
    """Sets of int32 or int64 items as they lie: (starts as addresses, lengths, the codes)."""
    cdef cnp.npy_intp n = cnp.PyArray_DIM(offsets, 0) - 1, i
    cdef const int64_t *begin = <const int64_t *>cnp.PyArray_DATA(offsets)
    cdef const int32_t *narrow_begin = <const int32_t *>begin
    cdef const int64_t *item = <const int64_t *>cnp.PyArray_DATA(items)
    cdef const int32_t *narrow_item = <const int32_t *>item
    cdef bint narrow = cnp.PyArray_ITEMSIZE(items) == 4
    cdef bint near = cnp.PyArray_ITEMSIZE(offsets) == 4
    cdef int64_t first = narrow_begin[0] if near else begin[0], last, at
    cdef cnp.npy_intp size = (narrow_begin[n] if near else begin[n]) - first
    codes = cnp.PyArray_SimpleNew(1, &size, cnp.NPY_INT32)
    starts = cnp.PyArray_SimpleNew(1, &n, cnp.NPY_INT64)
    lengths = cnp.PyArray_SimpleNew(1, &n, cnp.NPY_INT32)
    cdef int32_t *code = <int32_t *>cnp.PyArray_DATA(codes)
    cdef int64_t *start = <int64_t *>cnp.PyArray_DATA(starts)
    cdef int32_t *length = <int32_t *>cnp.PyArray_DATA(lengths)
    with nogil:
        if narrow:
            _add_narrow(space, size, narrow_item + first, code)
        else:
            space.add_integers(size, item + first, code)
        for i in range(n):
            at = (narrow_begin[i] if near else begin[i]) - first
            last = (narrow_begin[i + 1] if near else begin[i + 1]) - first
            start[i] = <int64_t>(code + at)
            length[i] = <int32_t>as_set(code + at, last - at)
    return starts, lengths, codes


cdef int _add_narrow(
    KeySpace space, int64_t n, const int32_t *items, int32_t *code
) except -1 nogil:
    """Codes of n items of 32 bits."""
    cdef int64_t item[WIDENED_TOGETHER]
    cdef int64_t at = 0, some, k
    while at < n:
        some = min(n - at, <int64_t>WIDENED_TOGETHER)
        for k in range(some):
            item[k] = items[at + k]
        space.add_integers(some, item, code + at)
        at += some
    return 0


def array_rows(offsets, values):
    """Vectors or bytes in memory of their own: (starts as addresses, lengths, the copy)."""
    cdef cnp.npy_intp n = cnp.PyArray_DIM(offsets, 0) - 1, i
    cdef const int64_t *begin = <const int64_t *>cnp.PyArray_DATA(offsets)
    content = values[begin[0]:begin[n]].copy()
    cdef int64_t first = <int64_t>cnp.PyArray_DATA(content), size = cnp.PyArray_ITEMSIZE(content)
    starts = cnp.PyArray_SimpleNew(1, &n, cnp.NPY_INT64)
    lengths = cnp.PyArray_SimpleNew(1, &n, cnp.NPY_INT32)
    cdef int64_t *start = <int64_t *>cnp.PyArray_DATA(starts)
    cdef int32_t *length = <int32_t *>cnp.PyArray_DATA(lengths)
    for i in range(n):
        start[i] = first + (begin[i] - begin[0]) * size
        length[i] = <int32_t>(begin[i + 1] - begin[i])
    return starts, lengths, content


def vector_rows(matrix):
    """Vectors, one in each row of a C-contiguous matrix, as `array_rows`."""
    content = cnp.PyArray_NewCopy(matrix, cnp.NPY_CORDER)
    cdef cnp.npy_intp n = cnp.PyArray_DIM(content, 0), i
    cdef int32_t width = <int32_t>cnp.PyArray_DIM(content, 1)
    cdef int64_t first = <int64_t>cnp.PyArray_DATA(content)
    cdef int64_t step = width * cnp.PyArray_ITEMSIZE(content)
    starts = cnp.PyArray_SimpleNew(1, &n, cnp.NPY_INT64)
    lengths = cnp.PyArray_SimpleNew(1, &n, cnp.NPY_INT32)
    cdef int64_t *start = <int64_t *>cnp.PyArray_DATA(starts)
    cdef int32_t *length = <int32_t *>cnp.PyArray_DATA(lengths)
    for i in range(n):
        start[i] = first + i * step
        length[i] = width
    return starts, lengths, content


def weighted_varlen_rows(
    const int64_t[::1] offsets, const int32_t[::1] codes, const double[::1] weights
):
    """Weighted sets: (starts as addresses, lengths, the memory they lie in)."""
    cdef int64_t i, k, size, used = 0, most = 0, n = offsets.shape[0] - 1
    for i in range(n):
        most = max(most, offsets[i + 1] - offsets[i])
    starts = np.empty(n, np.int64)
    lengths = np.empty(n, np.int32)
    memory = np.empty(n + 2 * (offsets[n] - offsets[0]) + 1, np.float64)
    cdef int64_t[::1] start = starts
    cdef int32_t[::1] length = lengths
    cdef double[::1] out = memory
    cdef Item *items = <Item *>malloc((most + 1) * sizeof(Item))
    if items == NULL:
        out_of_memory(b"items of a row", most)
    with nogil:
        for i in range(n):
            size = offsets[i + 1] - offsets[i]
            for k in range(size):
                items[k].code = codes[offsets[i] + k]
                items[k].place = <int32_t>k
                items[k].weight = weights[offsets[i] + k]
            start[i] = <int64_t>&out[used]
            length[i] = <int32_t>as_weighted_set(items, size, &out[used])
            used += 1 + 2 * size
    free(items)
    return starts, lengths, memory


def contents(const int64_t[::1] starts, const int32_t[::1] lengths, dtype):
    """What rows point at, one behind the other: (offsets, items of that dtype)."""
    cdef int64_t i, n = starts.shape[0], size = 0, width = np.dtype(dtype).itemsize
    offsets = np.zeros(n + 1, np.int64)
    cdef int64_t[::1] offset = offsets
    for i in range(n):
        size += max(lengths[i], 0)
        offset[i + 1] = size
    items = np.empty(size, dtype)
    cdef char *out = <char *>cnp.PyArray_DATA(items)
    for i in range(n):
        if lengths[i] > 0:
            memcpy(out + offset[i] * width, <const void *>starts[i], lengths[i] * width)
    return offsets, items


def weighted_contents(const int64_t[::1] starts, const int32_t[::1] lengths):
    """Of weighted sets: (offsets, codes, weights), the items of a row by their places."""
    cdef int64_t i, n = starts.shape[0], size = 0
    offsets = np.zeros(n + 1, np.int64)
    cdef int64_t[::1] offset = offsets
    for i in range(n):
        size += max(lengths[i], 0)
        offset[i + 1] = size
    codes, weights = np.empty(size, np.int32), np.empty(size, np.float64)
    places = np.empty(size, np.int32)
    cdef int32_t *code = <int32_t *>cnp.PyArray_DATA(codes)
    cdef int32_t *place = <int32_t *>cnp.PyArray_DATA(places)
    cdef double *weight = <double *>cnp.PyArray_DATA(weights)
    cdef const double *record
    cdef int64_t held
    for i in range(n):
        held = lengths[i]
        if held <= 0:
            continue
        record = <const double *>starts[i]
        memcpy(weight + offset[i], record + 1, held * sizeof(double))
        memcpy(code + offset[i], record + 1 + held, held * sizeof(int32_t))
        memcpy(
            place + offset[i], <const int32_t *>(record + 1 + held) + held, held * sizeof(int32_t)
        )
    order = np.lexsort((places, np.repeat(np.arange(n), np.diff(offsets))))
    return offsets, codes[order], weights[order]


def mark_codes(
    ColumnView starts, ColumnView lengths, int64_t head, int64_t tail, bint weighted,
    uint8_t[::1] live,
):
    """Set ``live`` of every code that rows [head, tail) have."""
    cdef int64_t row, i, n
    cdef const int32_t *codes
    for row in range(head, tail):
        n = (<const int32_t *>lengths.column.data)[row & lengths.column.mask]
        codes = <const int32_t *>(<const int64_t *>starts.column.data)[row & starts.column.mask]
        if weighted:
            codes += 2 * (n + 1)
        for i in range(n):
            live[codes[i]] = 1


def renumber_codes(
    ColumnView starts, ColumnView lengths, int64_t head, int64_t tail, bint weighted,
    const int32_t[::1] renumbered,
):
    """Replace every code that rows [head, tail) have by what ``renumbered`` has for it.

    Codes stay in order if those are.
    """
    cdef int64_t row, i, n
    cdef int32_t *codes
    for row in range(head, tail):
        n = (<const int32_t *>lengths.column.data)[row & lengths.column.mask]
        codes = <int32_t *>(<const int64_t *>starts.column.data)[row & starts.column.mask]
        if weighted:
            codes += 2 * (n + 1)
        for i in range(n):
            codes[i] = renumbered[codes[i]]
