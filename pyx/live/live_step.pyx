"""The steps that rows of a stream take once they are plain: stored, joined, and inserted.

How many rows take each step together, and by which of their columns, is decided here alone.
"""
from libc.stdint cimport int32_t, int64_t

cimport numpy as cnp

from windjoin.pyx.base.index cimport (
    MOST_VALUES, RELEASE_ABOVE, SLACK, life_inserts, sortable_bits,
)
from windjoin.pyx.encoding.keys cimport KeySpace
from windjoin.pyx.live.store cimport COLUMNS, KEYS, OPERANDS, VARLEN

cnp.import_array()

cdef enum:
    BLOCK = 256  # rows whose keys are in a near cache until they are joined and kept


cdef class LiveStep(StoreStep):
    """Stores, joins and inserts the rows of one stream."""

    def __init__(self, int number, list stores, list clocks, silence, Runner pipeline not None):
        cdef Store own
        StoreStep.__init__(self, number, stores, clocks, silence)
        own, self.pipeline = self.own, pipeline
        self.out = Output(len(stores))
        self.out.stays = True
        self.by_code = own.takes(KEYS) and pipeline.takes_codes()
        self.by_value = own.takes(COLUMNS) and pipeline.runs_in_blocks()
        if self.by_code or self.by_value:
            self.times, self.index = own.time, (<Taker>own.takers[0]).index
            self.codes = own.codes[0] if self.by_code else own.columns[0]
        if self.by_code:
            self.space = own.spaces[0]
        if self.by_value:
            self.real = own.real[0]

    @property
    def in_blocks(self):
        """Whether many rows take each step together, as time and one value are all they are."""
        return self.by_code or self.by_value

    @property
    def nbytes(self):
        """Bytes allocated for rows on their way."""
        cdef int64_t per_row = 4 * (self.own.n_keys + 1) + 8 * (self.own.n_sorted + 1)
        return per_row * (self.room + SLACK) + self.out.held()

    cdef int _join(self, const Arrived *rows) except -1:
        """Every result whose last member is one of these stored rows."""
        if rows.n <= RELEASE_ABOVE:
            return self._run(rows)
        with nogil:
            return self._run(rows)

    cdef int _run(self, const Arrived *rows) except -1 nogil:
        if self.by_code:
            return self.pipeline.run_codes(rows.n, rows.row, rows.time, rows.code[0], self.out)
        return self.pipeline.run_some(rows.n, rows.row, self.out)

    cdef int _carry(self, Arrived *rows, list varlen) except -1:
        """Store, join and insert rows that follow the last."""
        if not self.by_code and not self.by_value:
            return self._carry_any(rows, varlen)
        if self.room < BLOCK:
            self._need_room(BLOCK)
        if rows.n <= RELEASE_ABOVE:
            return self._carry_blocks(rows)
        with nogil:
            return self._carry_blocks(rows)

    cdef int _carry_blocks(self, const Arrived *rows) except -1 nogil:
        if self.by_code:
            return self._carry_by_code(rows)
        return self._carry_by_value(rows)

    cdef int _carry_by_code(self, const Arrived *rows) except -1 nogil:
        """Join and keep rows of which time and one key are all there is."""
        cdef int32_t *codes = self.code_room
        cdef int64_t *numbers = self.row_room
        cdef const int64_t *time
        cdef int64_t at = 0, first = self.own.extent.tail, i, n
        while at < rows.n:
            n = min(<int64_t>BLOCK, rows.n - at)
            time = rows.time + at
            if rows.key[0] == NULL:
                codes = <int32_t *>rows.code[0] + at
            else:
                self.space.add_integers(n, rows.key[0] + at, codes)
            self.times.write(first, n, <const char *>time)
            self.codes.write(first, n, <const char *>codes)
            for i in range(n):
                numbers[i] = first + i
            self.own.extent.tail = first + n
            self.pipeline.run_codes(n, numbers, time, codes, self.out)
            life_inserts(&self.index.life, n, time)
            self.index.insert(n, codes, NULL, time, numbers)
            at += n
            first += n
        return 0

    cdef int _carry_by_value(self, const Arrived *rows) except -1 nogil:
        """The same where time and one number are all there is."""
        cdef int64_t *numbers = self.row_room
        cdef const int64_t *time
        cdef const int64_t *values
        cdef int64_t at = 0, first = self.own.extent.tail, i, n
        while at < rows.n:
            n = min(<int64_t>BLOCK, rows.n - at)
            time = rows.time + at
            self.times.write(first, n, <const char *>time)
            self.codes.write(first, n, <const char *>(rows.column[0] + at))
            for i in range(n):
                numbers[i] = first + i
            self.own.extent.tail = first + n
            self.pipeline.run(first, first + n, self.out)
            values = self._sortable(n, rows.column[0] + at, self.real, 0)
            life_inserts(&self.index.life, n, time)
            self.index.insert(n, NULL, &values, time, numbers)
            at += n
            first += n
        return 0

    cdef int _carry_any(self, Arrived *rows, list varlen) except -1:
        """The same whatever their columns."""
        cdef int64_t first = self.own.extent.tail
        stored = self._keep(rows, varlen)
        if rows.n <= RELEASE_ABOVE:
            self.pipeline.run(first, first + rows.n, self.out)
        else:
            with nogil:
                self.pipeline.run(first, first + rows.n, self.out)
        return self._insert(rows, stored, 0)

    cdef int _insert(self, const Arrived *rows, list varlen, int64_t at) except -1:
        """Insert rows with codes into the indexes; wide columns have them from ``at`` on."""
        cdef Taker taker
        for taker in self.own.takers:
            self._insert_into(taker, rows, varlen, at)
        return 0

    cdef int _insert_into(
        self, Taker taker, const Arrived *rows, list varlen, int64_t at
    ) except -1:
        cdef const int32_t *code = NULL
        cdef const int64_t *value[MOST_VALUES]
        cdef int k
        if taker.needs == KEYS:
            code = self._composite(rows, taker)
        elif taker.needs == COLUMNS:
            for k in range(taker.n):
                value[k] = self._sortable(
                    rows.n, rows.column[taker.number[k]], self.own.real[taker.number[k]], k
                )
        elif taker.needs == OPERANDS:
            for k in range(taker.n):
                value[k] = rows.column[taker.number[k]]
        elif taker.needs == VARLEN:
            starts, lengths = varlen[taker.number[0]]
            value[0] = <const int64_t *>cnp.PyArray_DATA(starts) + at
            code = <const int32_t *>cnp.PyArray_DATA(lengths) + at
        life_inserts(&taker.index.life, rows.n, rows.time)
        if rows.n <= RELEASE_ABOVE:
            return taker.index.insert(rows.n, code, value, rows.time, rows.row)
        with nogil:
            return taker.index.insert(rows.n, code, value, rows.time, rows.row)

    cdef const int32_t *_composite(self, const Arrived *rows, Taker taker) except NULL:
        """Codes of a key, or of several together (in the room behind those of all keys)."""
        cdef const int32_t *codes = rows.code[taker.number[0]]
        cdef const int32_t *more
        cdef int32_t *out
        cdef KeySpace space
        cdef int k
        if taker.n == 1:
            return codes
        out = self._codes(self.own.n_keys)
        for k in range(1, taker.n):
            space = <KeySpace>taker.spaces[k - 1]
            more = rows.code[taker.number[k]]
            space.add_pairs(rows.n, codes, more, out)
            codes = out
        return codes

    cdef const int64_t *_sortable(
        self, int64_t n, const int64_t *values, bint real, int place
    ) noexcept nogil:
        """Values as integers of the same order, in the room of that place."""
        cdef int64_t *out = self.row_room + (place + 1) * (self.room + SLACK)
        cdef int64_t i
        if not real:
            return values
        for i in range(n):
            out[i] = sortable_bits(values[i])
        return out
