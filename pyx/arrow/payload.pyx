"""Columns of live windows in pages, and results gathered from them.

Unchecked: enter through ``payload.py`` of the bindings, which knows the types of the columns.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.errno cimport errno
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, strerror

cimport numpy as cnp

from windjoin.pyx.base.index cimport RELEASE_ABOVE, out_of_memory
from windjoin.pyx.base.output cimport at_release
from windjoin.pyx.arrow.tables cimport ArrowArray, ArrowArrayStream, Borrowed, stream_of

cdef extern from "payload.h" nogil:
    int payload_begin(Payload *all, int64_t row)
    void payload_expire(Payload *all, int64_t head)
    void payload_free(Payload *all)
    void payload_lay_out(Payload *all)
    int FIXED, BITS, VARIABLE

cdef extern from "payload_rows.h" nogil:
    int payload_append(Payload *all, const ArrowArray *batch, const int *number)
    int payload_put(
        Payload *all, const ArrowArray *batch, const int *number, int64_t first, int64_t n,
        int64_t row
    )
    int payload_lend(Payload *all, int64_t n)
    int64_t payload_lacks(const Payload *all, const int64_t *row, int64_t n)
    int payload_bring(Payload *all, int64_t row)
    void payload_unbring(Payload *all, int64_t row)

cdef extern from "payload_wide.h" nogil:
    int logs_begin(Payload *all)
    int logs_catch_up(Payload *all)
    int64_t logs_behind(const Payload *all)
    int64_t logs_bytes(const Payload *all)

cdef extern from "payload_file.h" nogil:
    int payload_chill(Payload *all)
    void payload_cool(Payload *all)

cdef extern from "gather.h" nogil:
    int gather(Wish *wish, int columns, int64_t n, ArrowArray *out, int *why)
    void leave_spare_block()
    int NO_MEMORY, TOO_LONG, UNREADABLE

cnp.import_array()


cdef void _leave_spare() noexcept:
    leave_spare_block()


at_release(_leave_spare)

cdef dict KINDS = {"fixed": FIXED, "bits": BITS, "variable": VARIABLE}
cdef enum:
    PAGE_BYTES = 1 << 17  # of one page, about
    LEAST_SHIFT = 3
    MOST_SHIFT = 11  # pages of 2048 rows
    MOST_ARRAYS = 256  # of row numbers and scores


cdef class Pages:
    """The rows [head, tail) of one stream, of the columns somebody asks for.

    layouts: (kind, bytes of a value or item, items of a vector, whether items are a child array,
    bytes of an offset) of each column
    numbers: of the columns, in the tables that come
    """

    def __cinit__(self, layouts, numbers):
        cdef int k, n = len(layouts)
        cdef int64_t row_bytes = 0
        self.all.mask = self.all.disk.file = -1
        self.all.n = n
        self.lent = []
        self.all.layout = <Layout *>calloc(n + 1, sizeof(Layout))
        self.all.nulls = <int64_t *>calloc(n + 1, sizeof(int64_t))
        self.all.item_nulls = <int64_t *>calloc(n + 1, sizeof(int64_t))
        self.all.longest = <int64_t *>calloc(n + 1, sizeof(int64_t))
        self.number = <int *>malloc((n + 1) * sizeof(int))
        if not (
            self.all.layout and self.all.nulls and self.all.item_nulls and self.all.longest
            and self.number
        ):
            out_of_memory(b"columns", n)
        for k, (kind, width, items, child, offset_bytes) in enumerate(layouts):
            self.all.layout[k] = Layout(KINDS[kind], width, items, child, offset_bytes, 0, 0, 0)
            self.number[k] = numbers[k]
            row_bytes += width if kind == "fixed" else 8
        self.all.shift = MOST_SHIFT
        while self.all.shift > LEAST_SHIFT and (row_bytes << self.all.shift) > PAGE_BYTES:
            self.all.shift -= 1
        payload_lay_out(&self.all)

    def __dealloc__(self):
        payload_free(&self.all)
        free(self.number)

    @property
    def nbytes(self):
        """Bytes allocated."""
        return self.all.nbytes

    def append(self, table, bint narrow):
        """Keep the rows of a table, which has just the columns kept if it is ``narrow``."""
        cdef Borrowed one = Borrowed()
        capsule = table.__arrow_c_stream__()
        cdef ArrowArrayStream *stream = stream_of(capsule)
        while one.next(stream):
            self.keep(&one.batch, NULL if narrow else self.number)

    def lend(self, table):
        """Keep the rows of a table, which has just the columns kept, where they lie.

        They are copied into a page when somebody asks for a row of that; not for two threads.
        Where wide values go to a file they are copied at once.
        """
        cdef int64_t page = 1 << self.all.shift, room = -self.all.tail & (page - 1)
        cdef Borrowed one
        if self.all.logging:
            self.append(table, True)
            return
        if room and payload_lacks(&self.all, [self.all.tail], 1) == 1:  # a page that has begun
            self.append(table.slice(0, room), True)
            table = table.slice(room)
        capsule = table.__arrow_c_stream__()
        while True:
            one = Borrowed()
            if not one.next(stream_of(capsule)):
                return
            self.lent.append((self.all.tail, self.all.tail + one.batch.length, one))
            if payload_lend(&self.all, one.batch.length) == 0:
                self.lent.pop()
                out_of_memory(b"rows of a window", one.batch.length)

    cdef int bring(self, const int64_t *row, int64_t n) except -1:
        """Let all of n rows lie in pages."""
        cdef int64_t i = 0
        if not self.lent:
            return 0
        while True:
            i += payload_lacks(&self.all, row + i, n - i)
            if i == n:
                return 0
            self._bring(row[i])

    cdef int _bring(self, int64_t row) except -1:
        """Copy the page of a row from where its rows lie."""
        cdef int64_t begin = row >> self.all.shift << self.all.shift, first, stop
        cdef int64_t end = begin + (1 << self.all.shift)
        cdef bint done = payload_bring(&self.all, row)
        cdef Borrowed one
        for first, stop, one in self.lent:
            if done and first < end and stop > begin:
                done = payload_put(
                    &self.all, &one.batch, NULL, max(begin - first, 0),
                    min(stop, end) - max(first, begin), max(first, begin),
                )
        if not done:
            payload_unbring(&self.all, row)
            out_of_memory(b"rows of a window", end - begin)

    cdef int keep(self, const ArrowArray *batch, const int *number) except -1:
        cdef int64_t last = self.all.tail - 1
        if self.lent and last >= self.all.head:
            self.bring(&last, 1)  # what comes goes on in its page
        if payload_append(&self.all, batch, number) == 0:
            out_of_memory(b"rows of a window", batch.length)
        return 0

    def begin(self, int64_t row):
        """The first row will have this number; before any has come."""
        assert self.all.head == self.all.tail == 0
        if payload_begin(&self.all, row) == 0:
            out_of_memory(b"rows of a window", 1)

    def chill(self, opened, room):
        """Let rows lie in a file: wide values, or if none are in memory full pages.

        opened: gives a descriptor that is then theirs
        room: how many bytes the file may grow from now on; None: without limit
        """
        cdef bint done
        self.all.disk.most = 0 if room is None else max(self.all.disk.end + <int64_t>room, 1)
        if not self.lent and self.all.tail >> self.all.shift <= self.all.cold:
            return
        self._bring_all()
        if self.all.disk.file < 0:
            self.all.disk.file = opened()
            if logs_begin(&self.all) == 0:
                out_of_memory(b"columns", self.all.n)
        with nogil:
            if logs_behind(&self.all):
                done = logs_catch_up(&self.all)
            else:
                done = payload_chill(&self.all)
        if not done:
            raise OSError(errno, strerror(errno).decode())

    cdef int _bring_all(self) except -1:
        """Copy all rows that lie elsewhere."""
        cdef int64_t first, stop
        for first, stop, _ in self.lent:
            first = max(first, self.all.head)
            while first < stop:
                self.bring(&first, 1)
                first = ((first >> self.all.shift) + 1) << self.all.shift
        self.lent.clear()
        return 0

    def cool(self):
        """What was read of the file need not stay in memory."""
        payload_cool(&self.all)

    @property
    def mapped_bytes(self):
        """Bytes in the file that are mapped: read, they take memory."""
        return self.all.mapped

    @property
    def file_bytes(self):
        """Bytes in the file."""
        return self.all.mapped + logs_bytes(&self.all)

    cpdef expire(self, int64_t head):
        """Rows before ``head`` are not asked for any more."""
        cdef int64_t last = self.all.tail - 1
        if self.lent and self.lent[len(self.lent) - 1][1] <= head:
            self.bring(&last, 1)  # what comes goes on in its page
        payload_expire(&self.all, head)
        while self.lent and self.lent[0][1] <= head:
            self.lent.pop(0)


cdef class Gatherer:
    """Gathers the same columns again and again.

    columns: (place among the arrays of rows, `Pages`, number of the column there) of each; of
    values that are handed in (their place, None, whether they are counts, -1 for none, or doubles)
    taken_over: makes a record batch of the address of an ``ArrowArray``
    lacking: row numbers may be -1, which is no row: nulls
    """

    def __cinit__(self, columns, taken_over, bint lacking=False):
        cdef int k
        self.n = len(columns)
        self.lacking = lacking
        self.wish = <Wish *>calloc(self.n + 1, sizeof(Wish))
        self.stream = <int *>calloc(self.n + 1, sizeof(int))
        if self.wish == NULL or self.stream == NULL:
            out_of_memory(b"columns", self.n)
        self.pages = [pages for _, pages, _ in columns]
        for k in range(self.n):
            if self.pages[k] is not None:
                self.wish[k].from_ = &(<Pages?>self.pages[k]).all
            self.wish[k].number = columns[k][2]
            self.stream[k] = columns[k][0]
        self.taken_over = taken_over

    def __dealloc__(self):
        free(self.wish)
        free(self.stream)

    def gather(self, list rows):
        """Record batches of the columns at ``rows``, an int64 array for each stream, and values.

        One batch, but for more text than the offsets of one array can count.
        """
        cdef const int64_t *row[MOST_ARRAYS]
        cdef int k
        assert len(rows) <= MOST_ARRAYS
        for k in range(len(rows)):
            row[k] = <const int64_t *>cnp.PyArray_DATA(rows[k])
        return self.some(row, 0, cnp.PyArray_DIM(rows[0], 0))

    cdef list some(self, const int64_t **rows, int64_t first, int64_t n):
        """The same of n rows from ``first`` on, which lie anywhere."""
        cdef ArrowArray batch
        cdef int why = 0
        cdef int how = self.fill(rows, first, n, &batch, &why)
        if how == NO_MEMORY:
            out_of_memory(b"results", n)
        if how == UNREADABLE:
            raise OSError(why, f"rows of a window cannot be read: {strerror(why).decode()}")
        if how == TOO_LONG:  # a single row came in an array with offsets of the same width
            return self.some(rows, first, n // 2) + self.some(rows, first + n // 2, n - n // 2)
        try:
            return [self.taken_over(<size_t>&batch)]
        finally:
            if batch.release != NULL:
                batch.release(&batch)

    cdef int fill(
        self, const int64_t **rows, int64_t first, int64_t n, ArrowArray *batch, int *why
    ) except -1:
        """Gather ``n`` of the rows into one batch.

        Hosts of a cluster ask for columns of one stream at the same time, each for its own rows.
        """
        cdef int k, how
        cdef Wish *wish = <Wish *>malloc((self.n + 1) * sizeof(Wish))
        if wish == NULL:
            return NO_MEMORY
        memcpy(wish, self.wish, self.n * sizeof(Wish))
        try:
            for k in range(self.n):
                wish[k].row = rows[self.stream[k]] + first
                if self.pages[k] is not None:
                    (<Pages>self.pages[k]).bring(wish[k].row, n)
            _others = self._leave_out(wish, n) if self.lacking else None
            if n <= RELEASE_ABOVE:
                how = gather(wish, self.n, n, batch, why)
            else:
                with nogil:
                    how = gather(wish, self.n, n, batch, why)
        finally:
            free(wish)
        return how

    cdef object _leave_out(self, Wish *wish, int64_t n):
        """Let rows that are none be nulls; what they are replaced by lives as long as what comes
        back.
        """
        cdef list held = []
        cdef const int64_t *row
        cdef int64_t *other
        cdef uint8_t *there
        cdef int64_t i, some
        cdef int k
        for k in range(self.n):
            row, some = wish[k].row, -1
            if wish[k].from_ == NULL:
                continue
            for i in range(n):
                wish[k].missing += row[i] < 0
                some = max(some, row[i])
            if wish[k].missing == 0:
                continue
            memory = PyBytes_FromStringAndSize(NULL, n * (sizeof(int64_t) + 1))
            held.append(memory)
            other = <int64_t *>PyBytes_AS_STRING(memory)
            there = <uint8_t *>(other + n)
            for i in range(n):
                there[i] = row[i] >= 0
                other[i] = row[i] if there[i] else some
            wish[k].row, wish[k].there = other, there
        return held
