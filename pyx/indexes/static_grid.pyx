"""Band index of a whole table: rows of stretches of time, sorted by bucket of their value.

Unchecked: enter through ``kernels.band``.
"""
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from windjoin.pyx.indexes.grid cimport Grid
from windjoin.pyx.base.index cimport (
    Cursor, Index, Pairs, Probe, RowBounds, TimeBounds, out_of_memory,
)
from windjoin.pyx.indexes.csr_postings cimport Csr


cdef extern from "static_grid.h" nogil:
    const int STATIC_GRID_SLACK
    ctypedef struct Stretch:
        int32_t n
    ctypedef struct StaticGrid:
        Grid grid
        Csr rows
        Stretch *stretch
        int64_t n_stretches
        int32_t *stretch_at
        int32_t *start
        int32_t *row
        int64_t *value
    int static_grid_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out)
    RowBounds static_grid_locate(void *index, int64_t n, TimeBounds bounds)
    int64_t most_stretches(int64_t n)
    void static_grid_cut(StaticGrid *all, int64_t span)
    int64_t static_grid_choose_cells(StaticGrid *all, const int64_t *value, double width, int real)
    void stretch_load(StaticGrid *all, const Stretch *stretch, const int64_t *value, int64_t *cell)

cdef extern from "memory.h" nogil:
    int64_t *new_array(int64_t n)


cdef class StaticBandGrid(Index):
    """Rows of a table in time order, found by their value inside a window."""

    cdef StaticGrid all
    cdef const int64_t[::1] time  # keeps the array alive
    cdef int64_t n_starts

    def __cinit__(self):
        memset(&self.all, 0, sizeof(StaticGrid))
        self.serve = static_grid_serve
        self.locate = static_grid_locate
        self.fills_bound = True
        self.state = &self.all

    def __dealloc__(self):
        free(self.all.stretch)
        free(self.all.stretch_at)
        free(self.all.start)
        free(self.all.row)
        free(self.all.value)

    @staticmethod
    def load(
        const int64_t[::1] values, const int64_t[::1] times, double width, bint real,
        int64_t span, int64_t first=0,
    ):
        """Index of rows first, first + 1, ... in time order.

        values: int64, or sortable doubles
        width: half of a usual band
        span: of a usual window, from its begin to its end
        """
        cdef StaticBandGrid self = StaticBandGrid()
        cdef int64_t n = values.shape[0]
        self.time = times
        self.all.rows.n = n
        self.all.rows.first = first
        if n:
            self.all.rows.time = &times[0]
            with nogil:
                self._fill(&values[0], width, real, span)
        return self

    cdef int _fill(
        self, const int64_t *values, double width, bint real, int64_t span
    ) except -1 nogil:
        cdef int64_t n = self.all.rows.n, most = most_stretches(n), longest = 0, s
        cdef int64_t *cells
        self.all.stretch = <Stretch *>new_array(3 * most)
        self.all.stretch_at = <int32_t *>new_array(most)
        self.all.row = <int32_t *>new_array((n + STATIC_GRID_SLACK + 1) // 2)
        self.all.value = new_array(n + STATIC_GRID_SLACK)
        if (
            self.all.stretch == NULL or self.all.stretch_at == NULL
            or self.all.row == NULL or self.all.value == NULL
        ):
            out_of_memory(b"rows by value", n)
        static_grid_cut(&self.all, span)
        self.n_starts = static_grid_choose_cells(&self.all, values, width, real)
        for s in range(self.all.n_stretches):
            longest = max(longest, self.all.stretch[s].n)
        self.all.start = <int32_t *>new_array((self.n_starts + 1) // 2)
        cells = new_array(longest)
        if self.all.start == NULL or cells == NULL:
            free(cells)
            out_of_memory(b"rows by value", n)
        for s in range(self.all.n_stretches):
            stretch_load(&self.all, self.all.stretch + s, values, cells)
        free(cells)
        return 0

    @property
    def nbytes(self):
        cdef int64_t n = self.all.rows.n
        return (
            <int64_t>sizeof(StaticGrid) + 12 * (n + STATIC_GRID_SLACK) + 32 * most_stretches(n)
            + 4 * self.n_starts
        )
