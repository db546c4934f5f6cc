"""Band index of a whole table that is asked in time order: row numbers and values per cell.

Unchecked: enter through ``kernels.band``.
"""
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from windjoin.pyx.grid cimport Grid, codes_on, set_grid
from windjoin.pyx.index cimport Cursor, Index, Pairs, Probe, out_of_memory
from windjoin.pyx.keys cimport KeySpace
from windjoin.pyx.ranks cimport RANKS_SLACK, Ranks, free_ranks, new_ranks


cdef extern from "cellranks.h" nogil:
    ctypedef struct CellRanks:
        Grid grid
        Ranks ranks
        int64_t *value
    int cellranks_serve(void *all, const Probe *probe, Cursor *cursor, Pairs *out)
    void cellranks_aim(void *all, int64_t n, int64_t *lo, int64_t *hi)
    void cellranks_load(CellRanks *all, const int32_t *code, const int64_t *value)

cdef extern from "memory.h" nogil:
    int64_t *new_array(int64_t n)


cdef class RankedCells(Index):
    """Rows by the cell of their value; a range of values may touch at most 8 cells."""

    cdef CellRanks all
    cdef KeySpace space
    cdef const int64_t[::1] time  # keeps the array alive

    def __cinit__(self, double width, bint real):
        memset(&self.all, 0, sizeof(CellRanks))
        self.space = KeySpace()
        set_grid(&self.all.grid, width, real, self.space)
        self.serve = cellranks_serve
        self.aim = cellranks_aim
        self.binds = True
        self.state = &self.all

    def __dealloc__(self):
        free_ranks(&self.all.ranks)
        free(self.all.value)

    @staticmethod
    def load(
        const int64_t[::1] values, const int64_t[::1] times, double width, bint real,
        int64_t first=0,
    ):
        """Index of rows first, first + 1, ... in time order.

        values: int64, or sortable doubles
        """
        cdef RankedCells self = RankedCells(width, real)
        cdef int64_t n = values.shape[0]
        cdef const int32_t[::1] codes
        codes, count = codes_on(&self.all.grid, values, self.space)
        self.time = times
        new_ranks(&self.all.ranks, &times[0] if n else NULL, n, count, first)
        self.all.value = new_array(n + RANKS_SLACK)
        if self.all.value == NULL:
            out_of_memory(b"values by cell", n)
        with nogil:
            cellranks_load(&self.all, &codes[0] if n else NULL, &values[0] if n else NULL)
        return self

    @property
    def nbytes(self):
        return (
            <int64_t>sizeof(CellRanks) + self.space.nbytes + 16 * self.all.ranks.n_lists
            + 12 * (self.all.ranks.n + RANKS_SLACK)
        )
