"""Basic windows: the index of scans and, sorted by value, of inequalities and wide bands.

Unchecked: enter through ``kernels.inequality``, ``kernels.scan`` and ``kernels.udf_scan``.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memmove, memset

from windjoin.pyx.base.index cimport SLACK, Cursor, Index, Pairs, Probe, out_of_memory


cdef extern from "basic_windows.h" nogil:
    ctypedef struct BasicWindow:
        int64_t number
        int64_t earliest
        int64_t latest
        int64_t length
        int64_t capacity
        int64_t sorted
        int64_t *time
        int64_t *row
        int64_t *value
        int64_t *operand
        int ordered
    ctypedef int64_t (*Scan)(
        int64_t n, int64_t stride, const void *bound_ints, const void *bound_reals,
        const void *own_ints, const void *own_reals, uint8_t *passed
    ) noexcept
    ctypedef struct WindowRing:
        BasicWindow *slices
        int64_t first
        int64_t last
        int64_t hint
        Scan function
        int bound
        int64_t raised
    int windows_serve(void *index, const Probe *probe, Cursor *cursor, Pairs *out)
    int windows_scan(void *index, const Probe *probe, Cursor *cursor, Pairs *out)
    void windows_sort(BasicWindow *slice, int64_t *spare)


cdef int64_t SORT_AT = 256  # unsorted rows that a slice may keep

cdef enum:
    MOST_OPERANDS = 32


cdef class BasicWindows(Index):
    """Rows in basic windows, sorted by value inside each if ``values`` are given.

    With a function, rows are proposed that it lets pass.
    """

    cdef WindowRing all
    cdef int64_t room
    cdef int64_t length_of_slice
    cdef bint values
    cdef int64_t rows_room
    cdef int operands

    def __cinit__(
        self, int64_t length_of_slice, bint values, size_t function=0, int bound=0, int operands=0,
    ):
        memset(&self.all, 0, sizeof(WindowRing))
        self.room = self.rows_room = 0
        self.length_of_slice = max(length_of_slice, 1)
        self.values = values
        self.operands = operands
        assert 0 <= operands <= MOST_OPERANDS and 0 <= bound <= MOST_OPERANDS
        self.all.function = <Scan>function
        self.all.bound = bound
        self.serve = windows_scan if function else windows_serve
        self.raised = &self.all.raised if function else NULL
        self.state = &self.all

    def __dealloc__(self):
        cdef int64_t s
        for s in range(self.all.first, self.all.last):
            _free_window(self.all.slices + s)
        free(self.all.slices)

    @staticmethod
    def load(const int64_t[::1] times, values, int64_t rows_per_slice, int64_t first=0):
        """Index of rows first, first + 1, ... in time order, cut every ``rows_per_slice`` rows."""
        cdef BasicWindows self = BasicWindows(1, values is not None)
        cdef int64_t n = times.shape[0], begin = 0, i
        cdef const int64_t[::1] keys = values
        cdef BasicWindow *piece
        with nogil:
            while begin < n:
                piece = self._append_slice(begin)
                self._need_rows(piece, min(rows_per_slice, n - begin))
                for i in range(begin, min(begin + rows_per_slice, n)):
                    self._put_one(piece, times[i], first + i, keys[i] if self.values else 0)
                self._sort(piece)
                begin += rows_per_slice
        return self

    @staticmethod
    def load_operands(
        columns, const int64_t[::1] times, int64_t rows_per_slice, size_t function, int bound,
        int64_t first=0,
    ):
        """The same with columns that a function takes: int64, or doubles as their bits."""
        cdef BasicWindows self = BasicWindows(1, False, function, bound, len(columns))
        cdef int64_t n = times.shape[0], begin = 0, length, i, k
        cdef const int64_t[::1] column
        cdef BasicWindow *piece
        while begin < n:
            length = min(rows_per_slice, n - begin)
            piece = self._append_slice(begin)
            self._need_rows(piece, length)
            for i in range(begin, begin + length):
                self._put_one(piece, times[i], first + i, 0)
            for k in range(self.operands):
                column = columns[k]
                memcpy(piece.operand + k * (length + SLACK), &column[begin], 8 * length)
            begin += length
        return self

    @property
    def nbytes(self):
        per_row = 16 + 8 * self.operands + (8 if self.values else 0)
        return self.room * <int64_t>sizeof(BasicWindow) + self.rows_room * per_row

    cdef int insert(
        self, int64_t n, const int32_t *code, const int64_t *const *value, const int64_t *time,
        const int64_t *row,
    ) except -1 nogil:
        """Add rows by a sortable value, by what a function takes, or by nothing in a scan."""
        cdef int64_t i
        cdef int k
        cdef BasicWindow *piece
        for i in range(n):
            piece = self._slice_of(time[i])
            if piece.length == piece.capacity:
                self._need_rows(piece, max(16, 2 * piece.capacity))
            for k in range(self.operands):
                piece.operand[k * (piece.capacity + SLACK) + piece.length] = value[k][i]
            self._put_one(piece, time[i], row[i], value[0][i] if self.values else 0)
            if self.values and piece.length - piece.sorted > max(SORT_AT, piece.sorted >> 1):
                self._sort(piece)
        return 0

    cdef void expire(self, int64_t horizon) noexcept:
        """Drop the slices that lie wholly before ``horizon``."""
        cdef WindowRing *all = &self.all
        while all.first < all.last and all.slices[all.first].latest < horizon:
            self.rows_room -= all.slices[all.first].capacity + SLACK
            _free_window(all.slices + all.first)
            all.first += 1

    def compact(self):
        """Nothing is left to do: slices go as they expire."""

    cdef void _put_one(
        self, BasicWindow *piece, int64_t time, int64_t row, int64_t value
    ) noexcept nogil:
        piece.time[piece.length] = time
        piece.row[piece.length] = row
        if self.values:
            piece.value[piece.length] = value
        piece.ordered = piece.ordered and time >= piece.latest if piece.length else 1
        piece.earliest = min(piece.earliest, time) if piece.length else time
        piece.latest = max(piece.latest, time) if piece.length else time
        piece.length += 1

    cdef BasicWindow *_slice_of(self, int64_t time) except NULL nogil:
        """The slice a row belongs to; it is the newest one, or close to it, in nearly all cases."""
        cdef WindowRing *all = &self.all
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

    cdef BasicWindow *_append_slice(self, int64_t number) except NULL nogil:
        return self._insert_slice(self.all.last, number)

    cdef BasicWindow *_insert_slice(self, int64_t at, int64_t number) except NULL nogil:
        cdef WindowRing *all = &self.all
        cdef void *grown
        if all.last == self.room:
            if all.first > self.room >> 1:
                memmove(
                    all.slices, all.slices + all.first,
                    (all.last - all.first) * sizeof(BasicWindow),
                )
                at -= all.first
                all.last -= all.first
                all.first = all.hint = 0
            else:
                grown = realloc(all.slices, max(16, 2 * self.room) * sizeof(BasicWindow))
                if grown == NULL:
                    out_of_memory(b"basic windows", 2 * self.room)
                all.slices = <BasicWindow *>grown
                self.room = max(16, 2 * self.room)
        memmove(all.slices + at + 1, all.slices + at, (all.last - at) * sizeof(BasicWindow))
        memset(all.slices + at, 0, sizeof(BasicWindow))
        all.slices[at].number = number
        all.last += 1
        return all.slices + at

    cdef int _need_rows(self, BasicWindow *piece, int64_t n) except -1 nogil:
        piece.time = _grown(piece.time, n)
        piece.row = _grown(piece.row, n)
        if self.values:
            piece.value = _grown(piece.value, n)
        if self.operands:
            self._need_operands(piece, n)
        self.rows_room += n - piece.capacity + (0 if piece.capacity else SLACK)
        piece.capacity = n
        return 0

    cdef int _need_operands(self, BasicWindow *piece, int64_t n) except -1 nogil:
        """Columns lie one behind the other, so the last one moves first."""
        cdef int64_t stride = n + SLACK, old = piece.capacity + SLACK, k
        piece.operand = _grown(piece.operand, self.operands * stride)
        for k in range(self.operands - 1, 0, -1):
            memmove(piece.operand + k * stride, piece.operand + k * old, 8 * piece.length)
        return 0

    cdef int _sort(self, BasicWindow *piece) except -1 nogil:
        cdef int64_t *spare
        if not self.values:
            return 0
        spare = <int64_t *>malloc((3 * piece.length + 1) * sizeof(int64_t))
        if spare == NULL:
            out_of_memory(b"rows of a basic window", piece.length)
        windows_sort(piece, spare)
        free(spare)
        return 0


cdef int64_t *_grown(int64_t *array, int64_t n) except NULL nogil:
    cdef void *grown = realloc(array, (n + SLACK) * sizeof(int64_t))
    if grown == NULL:
        out_of_memory(b"rows of a basic window", n)
    return <int64_t *>grown


cdef void _free_window(BasicWindow *piece) noexcept nogil:
    free(piece.time)
    free(piece.row)
    free(piece.value)
    free(piece.operand)
