"""Basic windows: the index of scans and, sorted by value, of inequalities and wide bands.

Unchecked: enter through ``kernels.inequality`` and ``kernels.scan``.
"""
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memmove, memset

from windjoin.pyx.index cimport SLACK, Cursor, Index, Pairs, Probe, out_of_memory


cdef extern from "slices.h" nogil:
    ctypedef struct Slice:
        int64_t number
        int64_t earliest
        int64_t latest
        int64_t length
        int64_t capacity
        int64_t sorted
        int64_t *time
        int64_t *row
        int64_t *value
    ctypedef struct Slices:
        Slice *slices
        int64_t first
        int64_t last
        int64_t hint
    int slices_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out)
    void slices_sort(Slice *slice, int64_t *spare)


cdef int64_t SORT_AT = 256  # unsorted rows that a slice may keep


cdef class TimeSlices(Index):
    """Rows in basic windows, sorted by value inside each if ``values`` are given."""

    cdef Slices all
    cdef int64_t room
    cdef int64_t length_of_slice
    cdef bint values
    cdef int64_t rows_room

    def __cinit__(self, int64_t length_of_slice, bint values):
        memset(&self.all, 0, sizeof(Slices))
        self.room = self.rows_room = 0
        self.length_of_slice = max(length_of_slice, 1)
        self.values = values
        self.serve = slices_serve
        self.state = &self.all

    def __dealloc__(self):
        cdef int64_t s
        for s in range(self.all.first, self.all.last):
            _free_slice(self.all.slices + s)
        free(self.all.slices)

    @staticmethod
    def load(const int64_t[::1] times, values, int64_t rows_per_slice, int64_t first=0):
        """Index of rows first, first + 1, ... in time order, cut every ``rows_per_slice`` rows."""
        cdef TimeSlices self = TimeSlices(1, values is not None)
        cdef int64_t n = times.shape[0], begin = 0, i
        cdef const int64_t[::1] keys = values
        cdef Slice *piece
        with nogil:
            while begin < n:
                piece = self._append_slice(begin)
                self._need_rows(piece, min(rows_per_slice, n - begin))
                for i in range(begin, min(begin + rows_per_slice, n)):
                    self._put(piece, times[i], first + i, keys[i] if self.values else 0)
                self._sort(piece)
                begin += rows_per_slice
        return self

    @property
    def nbytes(self):
        return self.room * <int64_t>sizeof(Slice) + self.rows_room * (24 if self.values else 16)

    def insert(self, values, const int64_t[::1] times, const int64_t[::1] rows):
        """Add rows, mostly in time order; ``values``: sortable int64, or None in a scan."""
        cdef const int64_t[::1] keys = values
        cdef int64_t i
        cdef Slice *piece
        with nogil:
            for i in range(times.shape[0]):
                piece = self._slice_of(times[i])
                if piece.length == piece.capacity:
                    self._need_rows(piece, max(16, 2 * piece.capacity))
                self._put(piece, times[i], rows[i], keys[i] if self.values else 0)
                if piece.length - piece.sorted > max(SORT_AT, piece.sorted >> 1):
                    self._sort(piece)

    def expire(self, int64_t horizon):
        """Drop the slices that lie wholly before ``horizon``."""
        cdef Slices *all = &self.all
        while all.first < all.last and all.slices[all.first].latest < horizon:
            self.rows_room -= all.slices[all.first].capacity + SLACK
            _free_slice(all.slices + all.first)
            all.first += 1

    def sweep(self):
        """Nothing is left to do: slices go as they expire."""

    cdef void _put(self, Slice *piece, int64_t time, int64_t row, int64_t value) noexcept nogil:
        piece.time[piece.length] = time
        piece.row[piece.length] = row
        if self.values:
            piece.value[piece.length] = value
        piece.earliest = min(piece.earliest, time) if piece.length else time
        piece.latest = max(piece.latest, time) if piece.length else time
        piece.length += 1

    cdef Slice *_slice_of(self, int64_t time) except NULL nogil:
        """The slice a row belongs to; it is the newest one, or close to it, in nearly all cases."""
        cdef Slices *all = &self.all
        cdef int64_t number = time // self.length_of_slice
        cdef int64_t at
        if time < 0 and number * self.length_of_slice > time:
            number -= 1  # C division rounds towards zero
        at = all.last
        while at > all.first and all.slices[at - 1].number > number:
            at -= 1
        if at > all.first and all.slices[at - 1].number == number:
            return all.slices + at - 1
        return self._insert_slice(at, number)

    cdef Slice *_append_slice(self, int64_t number) except NULL nogil:
        return self._insert_slice(self.all.last, number)

    cdef Slice *_insert_slice(self, int64_t at, int64_t number) except NULL nogil:
        cdef Slices *all = &self.all
        cdef void *grown
        if all.last == self.room:
            if all.first > self.room >> 1:
                memmove(all.slices, all.slices + all.first, (all.last - all.first) * sizeof(Slice))
                at -= all.first
                all.last -= all.first
                all.first = all.hint = 0
            else:
                grown = realloc(all.slices, max(16, 2 * self.room) * sizeof(Slice))
                if grown == NULL:
                    out_of_memory(b"basic windows", 2 * self.room)
                all.slices = <Slice *>grown
                self.room = max(16, 2 * self.room)
        memmove(all.slices + at + 1, all.slices + at, (all.last - at) * sizeof(Slice))
        memset(all.slices + at, 0, sizeof(Slice))
        all.slices[at].number = number
        all.last += 1
        return all.slices + at

    cdef int _need_rows(self, Slice *piece, int64_t n) except -1 nogil:
        piece.time = _grown(piece.time, n)
        piece.row = _grown(piece.row, n)
        if self.values:
            piece.value = _grown(piece.value, n)
        self.rows_room += n - piece.capacity + (0 if piece.capacity else SLACK)
        piece.capacity = n
        return 0

    cdef int _sort(self, Slice *piece) except -1 nogil:
        cdef int64_t *spare
        if not self.values:
            return 0
        spare = <int64_t *>malloc((3 * piece.length + 1) * sizeof(int64_t))
        if spare == NULL:
            out_of_memory(b"rows of a basic window", piece.length)
        slices_sort(piece, spare)
        free(spare)
        return 0


cdef int64_t *_grown(int64_t *array, int64_t n) except NULL nogil:
    cdef void *grown = realloc(array, (n + SLACK) * sizeof(int64_t))
    if grown == NULL:
        out_of_memory(b"rows of a basic window", n)
    return <int64_t *>grown


cdef void _free_slice(Slice *piece) noexcept nogil:
    free(piece.time)
    free(piece.row)
    free(piece.value)
