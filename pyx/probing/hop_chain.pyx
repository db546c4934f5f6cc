"""Blocks of partial results through the hops of one order, depth first, without the GIL.

Partial results never pile up: a block is carried to the end of the order before the next is begun.
Rows that start an order are put into blocks by ``pipeline``.
"""
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

import numpy as np

from windjoin.pyx.base.cancellation cimport Cancellation
from windjoin.pyx.base.column cimport ColumnView
from windjoin.pyx.base.index cimport (
    RELEASE_ABOVE, SLACK, Column, Cursor, Index, Pairs, Probe, Prober, TimeBounds, out_of_memory,
)
from windjoin.pyx.encoding.keys cimport KeySpace, find_pairs
from windjoin.pyx.probing.filters cimport (
    Comparison, Filters, Partials, gather_operand, set_comparison, take_rows,
)

cdef extern from "pipeline.h" nogil:
    const int MOST_STREAMS
    void bounds(const Partials *block, int64_t window, int before, int64_t *lo, int64_t *hi)
    void gather_codes(const Column *column, const int64_t *row, int64_t n, int32_t *out)
    void value_ranges(const Comparison *c, const Partials *block, int64_t *start, int64_t *to)
    void narrow_ranges(const Comparison *c, const Partials *block, int64_t *start, int64_t *to)
    void clip_bounds(
        const int64_t *start, const int64_t *last, int64_t n, int64_t rows, int64_t *lo, int64_t *hi
    )
    void keep_outside(
        const Column *time, const int64_t *start, const int64_t *last, int64_t n, Pairs *pairs
    )
    void renumber(const Column *numbers, int64_t n, int64_t *row)
    void mark_rows(const int64_t *row, int64_t n, uint8_t *marks)
    void mark_runs(const int64_t *row, int64_t n, uint8_t *marks)
    void extend(const Partials *block, const Pairs *pairs, int64_t window, Partials *out)

cdef enum:
    MANY_PARTNERS = 16  # of rows that need one, on average; then it is looked after
    FEW_PARTNERS = 32  # of them whether there has been one


cdef void *_room(int64_t n, int size) except NULL:
    cdef void *memory = malloc((n + SLACK) * size)
    if memory == NULL:
        out_of_memory(b"partial results", n)
    return memory


cdef class HopChain(Runner):
    """The hops of one order: a block of partial results in, results out.

    stream, time, window: the stream that starts the order
    block: partial results that a hop handles at a time
    """

    def __cinit__(self, int stream, ColumnView time, int64_t window, int64_t block):
        self.stream = stream
        self.time = time
        self.window = window
        self.block = block
        self.stride = block + SLACK
        self.hops = <PipelineHop *>_room(MOST_STREAMS, sizeof(PipelineHop))
        memset(self.hops, 0, MOST_STREAMS * sizeof(PipelineHop))
        self.numbers = <Column *>_room(MOST_STREAMS, sizeof(Column))
        memset(self.numbers, 0, MOST_STREAMS * sizeof(Column))
        self.marks = <uint8_t **>_room(MOST_STREAMS, sizeof(void *))
        memset(self.marks, 0, MOST_STREAMS * sizeof(void *))
        self.only = -1
        memset(&self.start, 0, sizeof(Partials))
        self._probers = []
        self._alive = [time]
        self._indexes = []
        self._bound = [stream]
        self.n_bound = 1
        self._voids = {}
        self.cancellation = Cancellation()
        self.filters = Filters(self.cancellation)
        self.start_codes = <int32_t *>_room(block, 4)
        self.start.row[stream] = <int64_t *>_room(block, 8)
        self.start.latest = <int64_t *>_room(block, 8)
        self.start.deadline = <int64_t *>_room(block, 8)

    def __dealloc__(self):
        cdef int h
        for h in range(self.n_hops):
            _free_hop(self.hops + h)
        free(self.hops)
        free(self.numbers)
        free(self.marks)
        free(self.members)
        free(self.start_codes)
        _free_partials(&self.start)

    def bind(self, int stream):
        """Let the start rows be partial results that bind one more stream; before any hop."""
        self.start.row[stream] = <int64_t *>_room(self.block, 8)
        self._bound.append(stream)
        self.n_bound += 1

    def number(self, int stream, ColumnView numbers):
        """Let results give numbers[row] in place of a row of a stream."""
        self.numbers[stream] = numbers.column
        self.numbered = True
        self._alive.append(numbers)

    def mark(self, int stream, marks, bint only=False):
        """Set ``marks[row]`` of every row of a stream that is in a result; before `number` counts.

        only: give no results; a row that has been marked needs no other partner
        """
        cdef uint8_t[::1] view = marks
        self._alive.append(view)
        self.marks[stream] = &view[0] if view.shape[0] else NULL
        self.numbered = True
        if only:
            self.only = stream
            free(self.members)
            self.members = NULL
            self.members = <int64_t *>_room(self.block, 8)

    def add_hop(
        self, int stream, int64_t window, Index index,
        codes=(), spaces=(), ranges=(), operands=(), prober=None, filters=(), bint before=False,
        ColumnView time=None,
    ):
        """Probe ``index`` of a stream.

        before: only rows strictly earlier than the deadline
        time: times of the stream, where `avoid` will be called
        codes: (stream, int32 ColumnView) of each part of the key
        spaces: KeySpace of each further part
        ranges: (value of the index, comparison that bounds it as in ``filters``), by value
        asker: Asker of an index that compares whole rows
        operands: (stream, ColumnView) of each value that a function of the index takes
        filters:
            ("compare", operation, real, (bound stream, ColumnView), target ColumnView, low, high),
            ("function", address, [(stream, ColumnView), ...]), ("pairs", bound stream, PairFilter)
            or ("callback", evaluate, streams)
        """
        cdef PipelineHop *hop = self.hops + self.n_hops
        cdef int k
        cdef KeySpace space
        cdef Index waiter = index.waiter()
        self.n_hops += 1
        hop.stream = stream
        hop.window = window
        hop.serve = index.serve
        hop.locate = index.locate
        hop.exists = index.exists
        hop.fills_bound = index.fills_bound
        hop.index = index.state
        hop.raised = index.raised
        if waiter.defers:
            hop.probed_until = &waiter.probed_until
            hop.deferred_from = &waiter.deferred_from
        self._indexes.append(index)
        self._alive.append((index, codes, spaces, ranges, operands, prober, time))
        hop.before = before
        hop.time = &time.column if time is not None else NULL
        self._probers.append(prober)
        if prober is not None:
            hop.prober = (<Prober?>prober).prober
        hop.n_codes = len(codes)
        for k in range(hop.n_codes):
            hop.code_stream[k] = codes[k][0]
            hop.code[k] = &(<ColumnView?>codes[k][1]).column
        for k in range(1, hop.n_codes):
            space = spaces[k - 1]
            hop.pair_table[k] = &space.table
            hop.pair_wrap[k] = &space.wrap
        hop.n_ranges = len(ranges)
        for k in range(hop.n_ranges):
            hop.range_value[k] = ranges[k][0]
            set_comparison(&hop.range[k], ranges[k][1])
        hop.first_filter = self.filters.n
        hop.n_filters = len(filters)
        for one in filters:
            self.filters.add(stream, one)
            self.calls = self.calls or one[0] in ("function", "callback")
        self.calls = self.calls or hop.raised != NULL
        hop.lo = <int64_t *>_room(self.block, 8)
        hop.hi = <int64_t *>_room(self.block, 8)
        values = hop.range_value[hop.n_ranges - 1] + 1 if hop.n_ranges else 0
        hop.n_operands = len(operands)
        for k in range(hop.n_operands):
            hop.operand_stream[k] = operands[k][0]
            hop.operand[k] = &(<ColumnView?>operands[k][1]).column
        values = max(values, hop.n_operands)
        hop.from_ = <int64_t *>_room(self.stride * values, 8)
        hop.to = <int64_t *>_room(self.stride * values, 8)
        hop.codes = <int32_t *>_room(self.block, 4)
        hop.more_codes = <int32_t *>_room(self.block, 4)
        hop.pairs.capacity = self.block
        hop.pairs.probe = <int32_t *>_room(self.block, 4)
        hop.pairs.row = <int64_t *>_room(self.block, 8)
        self.direct = hop.fills_bound and self.n_hops == 1 and self.n_bound == 1
        if self.n_hops > 1:
            self._carry_on(self.hops + self.n_hops - 2)

    @property
    def on_progress(self):
        """Called now and then with the start rows done so far; None: nobody wants to know."""
        return self.cancellation.on_progress

    @on_progress.setter
    def on_progress(self, call):
        self.cancellation.on_progress = call

    @property
    def started(self):
        """Start rows done so far."""
        return self.cancellation.started

    @property
    def nbytes(self):
        """Bytes of the blocks of all hops, about."""
        asking = sum(prober.nbytes for prober in self._probers if prober is not None)
        return self.block * (28 + self.n_hops * (76 + 8 * self.n_hops)) + asking

    cdef int _carry_on(self, PipelineHop *hop) except -1:
        """A hop that another one follows needs times, and room for longer partial results."""
        cdef int h
        hop.pairs.time = <int64_t *>_room(self.block, 8)
        hop.found.latest = <int64_t *>_room(self.block, 8)
        hop.found.deadline = <int64_t *>_room(self.block, 8)
        for h in self._bound:
            hop.found.row[h] = <int64_t *>_room(self.block, 8)
        for h in range(self.n_hops - 1):
            hop.found.row[self.hops[h].stream] = <int64_t *>_room(self.block, 8)
        return 0

    def avoid(self, int hop, starts, lasts):
        """From now on a hop finds no row with a time in ``start .. last``; in order and apart."""
        cdef const int64_t[::1] start = starts
        cdef const int64_t[::1] last = lasts
        self._voids[hop] = (start, last)
        self.hops[hop].n_voids = start.shape[0]
        if start.shape[0]:
            self.hops[hop].void_start = &start[0]
            self.hops[hop].void_last = &last[0]

    def measured(self):
        """Per hop: stream, partial results that asked, candidates proposed, kept; filters' too;
        pairs that bounds left open (-1: not counted); and what its index learned."""
        return [
            {
                "stream": self.hops[h].stream,
                "learned": self._indexes[h].learned_text,
                "asked": self.hops[h].asked,
                "proposed": self.hops[h].proposed,
                "kept": self.hops[h].kept,
                "compared": -1 if self._probers[h] is None else self._probers[h].compared,
                "filters": self.filters.measured(
                    self.hops[h].first_filter, self.hops[h].first_filter + self.hops[h].n_filters
                ),
            }
            for h in range(self.n_hops)
        ]

    cdef int _hop_on(self) except -1 nogil:
        if self.calls:
            self._forget_raised()
        self._hop(0, &self.start)
        if self.calls:
            self.raised = self.raised or self._any_raised()
        self.cancellation.started += self.start.n
        return 0

    cdef void _forget_raised(self) noexcept nogil:
        """Of the block before: all its results have been looked at."""
        cdef int h
        self.filters.raised = 0
        for h in range(self.n_hops):
            if self.hops[h].raised != NULL:
                self.hops[h].raised[0] = 0

    cdef bint _any_raised(self) noexcept nogil:
        cdef int h
        for h in range(self.n_hops):
            if self.hops[h].raised != NULL and self.hops[h].raised[0]:
                return True
        return self.filters.raised != 0

    cdef int _look_at_results(self, int64_t n) except -1 nogil:
        """A function that raised let its pair pass: that counts if the pair is in a result.

        Of the output's next ``n``, if need be.
        """
        if n and (self.wary or self._any_raised()):
            with gil:
                self._show_results(n)
        return 0

    cdef int _show_results(self, int64_t n) except -1:
        cdef int64_t[::1] view
        cdef int s, h
        if self.on_raised is None:
            return 0
        rows = {}
        for s in [*self._bound, *[self.hops[h].stream for h in range(self.n_hops)]]:
            rows[s] = np.empty(n, np.int64)
            view = rows[s]
            memcpy(&view[0], self.out.column[s] + self.out.used, n * sizeof(int64_t))
        self.on_raised(rows)
        return 0

    cdef int _hop(self, int number, Partials *block) except -1 nogil:
        cdef PipelineHop *hop = self.hops + number
        cdef Cursor cursor
        cdef Probe probe
        cdef int done = 0
        memset(&cursor, 0, sizeof(Cursor))
        self._ask(hop, block, &probe)
        if hop.probed_until != NULL:
            self._insert_deferred(number, block.n)
        while done == 0:
            if number + 1 == self.n_hops and hop.n_filters == 0 and hop.n_voids == 0:
                done = self._serve_output(hop, block, &probe, &cursor)
            else:
                done = self._serve_block(number, block, &probe, &cursor)
            self.cancellation.look_up()
        return 0

    cdef int _serve_output(
        self, PipelineHop *hop, Partials *block, Probe *probe, Cursor *cursor
    ) except -1 nogil:
        """Of a last hop whose index decides: candidates are results, written where they stay."""
        cdef Pairs pairs = hop.pairs
        cdef int done
        if self.only >= 0:
            return self._serve_marks(hop, block, probe, cursor)
        self.out.reserve(self.block)
        pairs.n = 0
        pairs.row = self.out.column[hop.stream] + self.out.used
        if self.direct:
            pairs.bound = self.out.column[self.stream] + self.out.used
            probe.bound = block.row[self.stream]
        done = hop.serve(hop.index, probe, cursor, &pairs)
        if done < 0:
            out_of_memory(b"answers", probe.n)
        hop.proposed += pairs.n
        hop.kept += pairs.n
        if pairs.bound == NULL:
            self._emit_bound(block, &pairs)
        if self.calls or self.wary:
            self._look_at_results(pairs.n)
        self._take_results(pairs.n)
        return done

    cdef int _serve_marks(
        self, PipelineHop *hop, Partials *block, Probe *probe, Cursor *cursor
    ) except -1 nogil:
        """The same where only rows that are in a result are wanted."""
        cdef Pairs pairs = hop.pairs
        cdef int64_t found
        cdef int done
        cdef bint stops
        if hop.exists != NULL and self.only == self.stream:
            probe.bound = block.row[self.only]
            found = hop.exists(hop.index, probe, self.marks[self.only])
            hop.proposed += found
            hop.kept += found
            return 1
        stops = hop.n_codes and hop.prober == NULL and block.row[self.only] != NULL
        pairs.n = 0
        if self.direct and self.only == self.stream:
            pairs.bound = self.members
            probe.bound = block.row[self.stream]
        stops = stops and hop.proposed > MANY_PARTNERS * hop.asked
        if stops:
            pairs.capacity = min(pairs.capacity, <int64_t>FEW_PARTNERS)
        done = hop.serve(hop.index, probe, cursor, &pairs)
        if done < 0:
            out_of_memory(b"answers", probe.n)
        hop.proposed += pairs.n
        hop.kept += pairs.n
        if pairs.bound != NULL:
            mark_rows(pairs.bound, pairs.n, self.marks[self.only])
        else:
            self._mark_only(hop, block, &pairs)
        if stops and done == 0:
            if self.marks[self.only][block.row[self.only][cursor.probe]]:
                cursor.probe += 1
                cursor.part = cursor.position = cursor.stop = 0
                done = cursor.probe == probe.n
        return done

    cdef void _mark_only(self, PipelineHop *hop, Partials *block, Pairs *pairs) noexcept nogil:
        """Mark the rows of one stream that new results have."""
        cdef uint8_t *marks = self.marks[self.only]
        cdef const int64_t *row = block.row[self.only]
        cdef int64_t i
        if row == NULL:
            mark_rows(pairs.row, pairs.n, marks)
        else:
            for i in range(pairs.n):
                marks[row[pairs.probe[i]]] = 1

    cdef void _drop_marked(self, PipelineHop *hop, Partials *block, Pairs *pairs) noexcept nogil:
        """Candidates of rows that have been in a result say nothing new."""
        cdef const uint8_t *marks = self.marks[self.only]
        cdef const int64_t *row = block.row[self.only]
        cdef int64_t i, n = 0
        if row == NULL and hop.stream != self.only:
            return
        for i in range(pairs.n):
            pairs.probe[n] = pairs.probe[i]
            pairs.row[n] = pairs.row[i]
            if pairs.time != NULL:
                pairs.time[n] = pairs.time[i]
            n += not marks[pairs.row[i] if row == NULL else row[pairs.probe[i]]]
        pairs.n = n

    cdef int _serve_block(
        self, int number, Partials *block, Probe *probe, Cursor *cursor
    ) except -1 nogil:
        """Of any other hop: candidates are filtered, then carried on or emitted."""
        cdef PipelineHop *hop = self.hops + number
        cdef int done
        hop.pairs.n = 0
        done = hop.serve(hop.index, probe, cursor, &hop.pairs)
        if done < 0:
            out_of_memory(b"answers", probe.n)
        hop.proposed += hop.pairs.n
        if self.only >= 0:
            self._drop_marked(hop, block, &hop.pairs)
        if hop.n_voids:
            keep_outside(hop.time, hop.void_start, hop.void_last, hop.n_voids, &hop.pairs)
        if hop.n_filters:
            self.filters.keep(
                hop.first_filter, hop.first_filter + hop.n_filters, block, &hop.pairs
            )
        hop.kept += hop.pairs.n
        if hop.pairs.n and number + 1 == self.n_hops and self.only >= 0:
            self._mark_only(hop, block, &hop.pairs)
        elif hop.pairs.n and number + 1 == self.n_hops:
            self.out.reserve(hop.pairs.n)
            self._emit_bound(block, &hop.pairs)
            memcpy(
                self.out.column[hop.stream] + self.out.used,
                hop.pairs.row, hop.pairs.n * sizeof(int64_t),
            )
            if self.calls or self.wary:
                self._look_at_results(hop.pairs.n)
            self._take_results(hop.pairs.n)
        elif hop.pairs.n:
            self._extend(number, block)
            self._hop(number + 1, &hop.found)
        return done

    cdef void _ask(self, PipelineHop *hop, Partials *block, Probe *probe) noexcept nogil:
        cdef int part
        cdef int64_t i
        hop.asked += block.n
        bounds(block, hop.window, hop.before, hop.lo, hop.hi)
        if hop.n_voids:
            clip_bounds(hop.void_start, hop.void_last, hop.n_voids, block.n, hop.lo, hop.hi)
        if hop.n_codes and self.codes_given and block == &self.start:
            memcpy(hop.codes, self.start_codes, block.n * sizeof(int32_t))
        elif hop.n_codes:
            gather_codes(hop.code[0], block.row[hop.code_stream[0]], block.n, hop.codes)
        for part in range(1, hop.n_codes):
            gather_codes(hop.code[part], block.row[hop.code_stream[part]], block.n, hop.more_codes)
            find_pairs(
                hop.pair_table[part][0], hop.pair_wrap[part][0], hop.codes, hop.more_codes, block.n
            )
        for part in range(hop.n_ranges):
            i = hop.range_value[part] * self.stride
            if part and hop.range_value[part] == hop.range_value[part - 1]:
                narrow_ranges(&hop.range[part], block, hop.from_ + i, hop.to + i)
            else:
                value_ranges(&hop.range[part], block, hop.from_ + i, hop.to + i)
        for part in range(hop.n_operands):
            gather_operand(
                hop.operand[part], block.row[hop.operand_stream[part]], NULL, block.n,
                hop.from_ + part * self.stride,
            )
        if hop.locate != NULL:
            hop.locate(hop.index, block.n, TimeBounds(hop.lo, hop.hi))
        probe.n = block.n
        probe.lo = hop.lo
        probe.hi = hop.hi
        probe.code = hop.codes
        probe.from_ = hop.from_
        probe.to = hop.to
        probe.stride = self.stride
        probe.row = block.row
        probe.prober = hop.prober
        probe.ages = NULL

    cdef int _insert_deferred(self, int number, int64_t n) except -1 nogil:
        """An index takes the rows that have been waiting for this."""
        cdef PipelineHop *hop = self.hops + number
        cdef int64_t last = hop.probed_until[0], i
        for i in range(n):
            last = max(last, hop.hi[i])
        hop.probed_until[0] = last
        if last >= hop.deferred_from[0]:
            with gil:
                self._catch_up(number, last)
        return 0

    cdef int _catch_up(self, int number, int64_t last) except -1:
        cdef Index index = self._indexes[number]
        if self.start.n <= RELEASE_ABOVE:
            return index.catch_up(last)
        with nogil:
            return index.catch_up(last)

    cdef void _emit_bound(self, Partials *block, Pairs *pairs) noexcept nogil:
        """The members of new results that were bound before the last hop."""
        cdef int s
        for s in range(MOST_STREAMS):
            if block.row[s] != NULL:
                take_rows(block.row[s], pairs.probe, pairs.n, self.out.column[s] + self.out.used)

    cdef void _take_results(self, int64_t n) noexcept nogil:
        """The next ``n`` of the output are complete."""
        cdef int s
        if self.numbered:
            for s in range(MOST_STREAMS):
                if self.marks[s] != NULL and self.direct and s == self.stream:
                    mark_runs(self.out.column[s] + self.out.used, n, self.marks[s])
                elif self.marks[s] != NULL:
                    mark_rows(self.out.column[s] + self.out.used, n, self.marks[s])
                if self.numbers[s].data != NULL:
                    renumber(&self.numbers[s], n, self.out.column[s] + self.out.used)
        self.out.used += n

    cdef void _extend(self, int number, Partials *block) noexcept nogil:
        cdef PipelineHop *hop = self.hops + number
        cdef int s
        extend(block, &hop.pairs, hop.window, &hop.found)
        for s in range(MOST_STREAMS):
            if block.row[s] != NULL:
                take_rows(block.row[s], hop.pairs.probe, hop.pairs.n, hop.found.row[s])
        memcpy(hop.found.row[hop.stream], hop.pairs.row, hop.pairs.n * sizeof(int64_t))


cdef void _free_partials(Partials *partials) noexcept nogil:
    cdef int s
    for s in range(MOST_STREAMS):
        free(partials.row[s])
    free(partials.latest)
    free(partials.deadline)


cdef void _free_hop(PipelineHop *hop) noexcept nogil:
    _free_partials(&hop.found)
    free(hop.lo)
    free(hop.hi)
    free(hop.from_)
    free(hop.to)
    free(hop.codes)
    free(hop.more_codes)
    free(hop.pairs.probe)
    free(hop.pairs.row)
    free(hop.pairs.time)
