"""What NumPy does with whole arrays, piece by piece: between any two of them Ctrl-C is heard."""
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc

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

cdef extern from "radix.h" nogil:
    ctypedef struct Radix:
        int passes
    bint radix_begin(Radix *radix, int64_t n, int64_t least, int64_t most)
    void radix_count(Radix *radix, const int64_t *key, int64_t first, int64_t last)
    void radix_place(Radix *radix)
    void radix_pass(
        Radix *radix, int which, const int64_t *key, const uint64_t *packed, uint64_t *out,
        int64_t *order, int64_t *sorted, int64_t first, int64_t last,
    )

cdef int64_t PIECE = 1 << 20  # values
cdef enum:
    MERGED_AT_ONCE = 1 << 18
    DIGITS_AT_ONCE = 1 << 20
    LEAST_BY_DIGITS = 1 << 14  # keys; fewer are sorted before the digits are counted


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
    if n >= LEAST_BY_DIGITS:
        by_digits = _sorting_by_digits(keys)
        if by_digits is not None:
            return by_digits
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


cdef object _sorting_by_digits(keys):
    """The same where keys lie within a range that few passes do for; else None."""
    cdef const int64_t[::1] given = np.ascontiguousarray(keys)
    cdef int64_t n = given.shape[0]
    cdef Radix *radix = <Radix *>malloc(sizeof(Radix))
    if radix == NULL:
        raise MemoryError(f"no memory for {n} numbers to sort")
    try:
        if not radix_begin(radix, n, keys.min(), keys.max()):
            return None
        key, order = np.empty(n, np.int64), np.empty(n, np.int64)
        aside = np.empty(n if radix.passes > 1 else 0, np.uint64)
        _pass_by_digits(radix, given, key, order, aside)
    finally:
        free(radix)
    return order, key


cdef int _pass_by_digits(
    Radix *radix, const int64_t[::1] given, int64_t[::1] key, int64_t[::1] order,
    uint64_t[::1] aside,
) except -1:
    cdef int64_t n = given.shape[0], at = 0
    cdef int which
    cdef uint64_t *rooms[2]
    cdef uint64_t *source = NULL
    cdef uint64_t *target
    rooms[0] = <uint64_t *>&order[0]  # the last pass reads from beside what it writes
    rooms[1] = &aside[0] if aside.shape[0] else NULL
    with nogil:
        while at < n:
            radix_count(radix, &given[0], at, min(at + <int64_t>DIGITS_AT_ONCE, n))
            at += DIGITS_AT_ONCE
            look_up()
        radix_place(radix)
        for which in range(radix.passes):
            target = NULL
            if which + 1 < radix.passes:
                target = rooms[((radix.passes - which) & 1) ^ 1]
            at = 0
            while at < n:
                radix_pass(
                    radix, which, &given[0], source, target, &order[0], &key[0], at,
                    min(at + <int64_t>DIGITS_AT_ONCE, n),
                )
                at += DIGITS_AT_ONCE
                look_up()
            source = target
    return 0


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
