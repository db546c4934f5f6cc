"""What NumPy does with whole arrays, piece by piece: between any two of them Ctrl-C is heard."""
from libc.stdint cimport int64_t

import numpy as np

from windjoin.pyx.base.cancellation cimport look_up

cdef extern from "runs.h" nogil:
    ctypedef struct Runs:
        pass
    Runs runs_begin(
        const int64_t *key, const int64_t *order, int64_t first, int64_t middle, int64_t end,
        int64_t *aside_key, int64_t *aside_order,
    )
    bint runs_merge(
        Runs *runs, int64_t *key, int64_t *order, const int64_t *aside_key,
        const int64_t *aside_order, int64_t most,
    )

cdef int64_t PIECE = 1 << 20  # values
cdef enum:
    MERGED_AT_ONCE = 1 << 18


def listen():
    """Let Ctrl-C, or the stop of the crew that this thread is of, be heard."""
    look_up()


def taken(values, rows):
    """``values[rows]``."""
    cdef int64_t n = len(rows), at
    if n <= PIECE:
        return values[rows]
    out = np.empty((n, *values.shape[1:]), values.dtype)
    for at in range(0, n, PIECE):
        look_up()
        # with "clip" nothing is copied in between; rows are those of somebody who knows them
        np.take(values, rows[at:at + PIECE], axis=0, out=out[at:at + PIECE], mode="clip")
    return out


def joined(parts):
    """``numpy.concatenate(parts)`` of vectors."""
    cdef int64_t n = sum(map(len, parts)), to = 0, at
    if n <= PIECE:
        return np.concatenate(parts)
    out = np.empty(n, np.result_type(*parts))
    for part in parts:
        for at in range(0, len(part), PIECE):
            look_up()
            piece = part[at:at + PIECE]
            out[to:to + len(piece)] = piece
            to += len(piece)
    return out


def sorting(keys):
    """``numpy.argsort(keys, kind="stable")`` of int64, and the keys in that order."""
    cdef int64_t n = len(keys), at, run = PIECE
    cdef int64_t[::1] key, order, aside_key, aside_order
    if n <= PIECE:
        found = np.argsort(keys, kind="stable").astype(np.int64, copy=False)
        return found, keys[found]
    key, order = np.empty(n, np.int64), np.empty(n, np.int64)
    for at in range(0, n, PIECE):
        look_up()
        piece = keys[at:at + PIECE]
        found = np.argsort(piece, kind="stable")
        np.take(piece, found, out=np.asarray(key[at:at + PIECE]), mode="clip")
        np.add(found, at, out=np.asarray(order[at:at + PIECE]))
    while 2 * run < n:
        run *= 2
    aside_key, aside_order = np.empty(run, np.int64), np.empty(run, np.int64)
    with nogil:
        run = PIECE
        while run < n:
            _merge_all(n, run, &key[0], &order[0], &aside_key[0], &aside_order[0])
            run *= 2
    return np.asarray(order), np.asarray(key)


cdef int _merge_all(
    int64_t n, int64_t run, int64_t *key, int64_t *order, int64_t *aside_key, int64_t *aside_order
) except -1 nogil:
    """Runs of this length, two by two, become runs twice as long."""
    cdef int64_t first = 0
    cdef Runs runs
    while first + run < n:
        runs = runs_begin(
            key, order, first, first + run, min(n, first + 2 * run), aside_key, aside_order
        )
        while runs_merge(&runs, key, order, aside_key, aside_order, MERGED_AT_ONCE):
            look_up()
        look_up()
        first += 2 * run
    return 0


def sorting_by(keys):
    """``numpy.lexsort(keys)`` of int64: the last of them decides first."""
    order, _ = sorting(keys[0])
    for key in keys[1:]:
        order = taken(order, sorting(taken(key, order))[0])
    return order
