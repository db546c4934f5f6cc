"""Sets in time-sorted lists, one per item: a hash index where every set has one item.

Unchecked: enter through ``kernels.items``.
"""
from libc.stdint cimport int32_t, int64_t, intptr_t

import numpy as np

from windjoin.pyx.base.index cimport Cursor, Pairs, Probe
from windjoin.pyx.indexes.postings cimport KeyPostings, Postings


cdef extern from "items.h" nogil:
    ctypedef struct ItemsOf:
        Postings *postings
        int64_t rows
        int64_t larger
    int items_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out)


cdef enum:
    TOGETHER = 256  # entries that are put into lists with one call


cdef class ItemPostings(KeyPostings):
    """Rows by the items of their sets."""

    cdef ItemsOf of

    def __cinit__(self):
        self.of = ItemsOf(&self.all, 0, 0)
        self.state = &self.of
        self.serve = items_serve

    @staticmethod
    def of_sets(varlen_rows, const int64_t[::1] times, int64_t first=0):
        """Index of rows first, first + 1, ... in time order."""
        cdef ItemPostings self = ItemPostings()
        start, length = varlen_rows
        self.insert_arrays((length, [start]), times, np.arange(first, first + len(times)))
        return self

    @property
    def learned_text(self):
        if not self.of.larger:
            return "every set has one item at most: the lists are those of a hash index"
        return f"{self.of.larger} of {self.of.rows} sets have several items"

    @property
    def unsuited(self):
        return 8 * self.of.larger > self.of.rows

    def compact(self):
        """Drop all expired rows."""
        cdef int64_t code
        for code in range(self.all.n_postings):
            self._drop_expired(self.all.postings + code)
            if self.all.postings[code].length == 0:
                self.empty(code)
        return b""

    cdef int insert(
        self, int64_t n, const int32_t *length, const int64_t *const *value, const int64_t *time,
        const int64_t *row,
    ) except -1 nogil:
        """Add rows: of a wide column, lengths stand for codes and starts for values."""
        cdef int32_t code[TOGETHER]
        cdef int64_t when[TOGETHER]
        cdef int64_t which[TOGETHER]
        cdef const int64_t *start = value[0]
        cdef const int32_t *items
        cdef int64_t i, m = 0
        cdef int32_t k
        self.of.rows += n
        for i in range(n):
            items = <const int32_t *><intptr_t>start[i]
            self.of.larger += length[i] > 1
            for k in range(length[i]):
                if m == TOGETHER:
                    KeyPostings.insert(self, m, code, NULL, when, which)
                    m = 0
                code[m] = items[k]
                when[m] = time[i]
                which[m] = row[i]
                m += 1
        return KeyPostings.insert(self, m, code, NULL, when, which)
