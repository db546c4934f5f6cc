"""Start rows of a session that sheds load: some are joined fully, the others with what is worth it.

Which rows are joined fully is drawn by a hash of their number, so it depends neither on how rows
are pushed nor on what was drawn before.
"""
cimport cython
from libc.stdint cimport INT64_MAX, INT64_MIN, UINT64_MAX, int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc

import numpy as np

from windjoin.pyx.base.column cimport ColumnView
from windjoin.pyx.base.index cimport out_of_memory, subtract_saturated
from windjoin.pyx.live.limited cimport Limited, basic_window, limits_chosen, time_at

cdef extern from "clock.h" nogil:
    int64_t fine_nanoseconds()
    int64_t clock_nanoseconds()

cdef enum:
    WALL
    EVENT
    CALLED
    MOST_AT_ONCE = 1024  # rows
    LOOK_ROWS = 4  # that are learned from at once while all is joined,
    SOONER = 4  # so many times as often until enough is known,
    PLENTY = 64  # and after so many since they were asked for last
    LATER = 16  # so many times as seldom

cdef dict KINDS = {"wall": WALL, "event": EVENT, "called": CALLED}


cdef inline uint64_t _mixed(uint64_t x) noexcept nogil:
    x += <uint64_t>0x9e3779b97f4a7c15
    x = (x ^ (x >> 30)) * <uint64_t>0xbf58476d1ce4e5b9
    x = (x ^ (x >> 27)) * <uint64_t>0x94d049bb133111eb
    return x ^ (x >> 31)


cdef uint64_t _share(double share):
    """The share of all hashes that is below."""
    if share >= 1:
        return UINT64_MAX
    return <uint64_t>(max(share, 0.0) * 18446744073709549568.0)


def draws(int64_t seed, int stream, int64_t first, int64_t n, double share):
    """Of rows [first, first + n) those that a draw of that share takes, as a mask.

    >>> draws(7, 0, 0, 8, 1.0).all(), draws(7, 0, 0, 8, 0.0).any()
    (np.True_, np.False_)
    """
    cdef uint64_t below = _share(share), salt = _mixed(_mixed(<uint64_t>seed) + stream)
    cdef int64_t i
    drawn = np.empty(n, np.bool_)
    cdef unsigned char[::1] mask = drawn.view(np.uint8)
    for i in range(n):
        mask[i] = below == UINT64_MAX or _mixed(salt ^ <uint64_t>(first + i)) < below
    return drawn


@cython.final
cdef class Beat:
    """The clock of a session that sheds, and what has been spent since it was looked at.

    kind: "wall", "event" (times of rows), or "called" (``clock`` gives seconds)
    tick_s: seconds per tick of event time; longest: ticks after which a silent stream is not
    counted any more
    by_time: what is spent is time, in nanoseconds; else comparisons
    """

    def __init__(self, str kind, clock, double tick_s, int64_t longest, bint by_time):
        cdef int s
        self.kind = KINDS[kind]
        self.clock = clock
        self.tick_s, self.longest, self.by_time = tick_s, longest, by_time
        for s in range(16):
            self.newest[s] = INT64_MIN
        self.measured_of = self.look_of = self.until_measured = self.gap = 1
        self.now = self.read()
        self.next = self.now
        self.alarm = float("inf")

    def on_tick(self, call):
        """Whom to call when ``next`` has come or so much as ``alarm`` has been spent."""
        self.call = call

    def read(self):
        """Seconds; they never go back."""
        if self.kind == WALL:
            self.now = max(self.now, fine_nanoseconds() * 1e-9)
        elif self.kind == CALLED:
            self.now = max(self.now, self.clock())
        return self.now

    @property
    def pushing(self):
        """Nanoseconds in pushes, up to now."""
        if not self.begun_at:
            return self.joining
        return self.joining + self._charged(fine_nanoseconds() - self.begun_at)

    cdef bint measures(self) noexcept:
        """Whether the push that begins now is measured, as it is its turn; when the next is.

        It is as many pushes to the next as one stands for on average.
        """
        if not self.by_time:
            self.until_measured = INT64_MAX
            return False
        self.pushes += self.gap
        self.gap = 1
        if self.measured_of > 1:
            self.gap += _mixed(self.pushes) % <uint64_t>(2 * self.measured_of - 1)
        self.until_measured = self.gap
        self.begun_of, self.begun_at = self.measured_of, fine_nanoseconds()
        return True

    cdef int64_t _charged(self, int64_t took) noexcept:
        """What a push has taken, and others that it stands for.

        One that is long beside all before stands for itself alone.
        """
        return max(took, min(took * self.begun_of, self.most_charged))

    cdef void first_turn(self, int number, int *targets, int n) noexcept nogil:
        """Event time begins where the rows of a host do, for all streams."""
        cdef int h
        if self.begun or self.kind != EVENT:
            return
        self.begun = True
        self.base = self.newest[number] = self.batch_first
        for h in range(n):
            self.newest[targets[h]] = self.batch_first

    def begin(self):
        """Measure from now on what is done for the join."""
        self.begun_of, self.begun_at = 1, fine_nanoseconds()

    cpdef void end(self) noexcept:
        """That is over."""
        cdef int64_t took = fine_nanoseconds() - self.begun_at
        self.joining += self._charged(took)
        self.longest_push = max(self.longest_push, took)
        self.begun_at = 0

    cdef void come(self, int stream, int64_t time) noexcept nogil:
        """Rows of a stream have come up to a time.

        Event time is the mean over the streams: one that is pushed before the others in large parts
        does not take their time away.
        """
        cdef int64_t latest = INT64_MIN
        cdef double sum = 0
        cdef int s, n = 0
        if self.kind != EVENT:
            return
        if self.batch_last > self.batch_first:  # the time since its last turn counts for this one
            time = self.batch_before + <int64_t>(
                <double>(time - self.batch_first) / (self.batch_last - self.batch_first)
                * (self.batch_last - self.batch_before)
            )
        if time <= self.newest[stream]:
            return
        self.newest[stream] = time
        if not self.begun:
            self.begun = True
            self.base = time
        for s in range(16):
            latest = max(latest, self.newest[s])
        for s in range(16):
            if self.newest[s] >= subtract_saturated(latest, self.longest) and (
                self.newest[s] != INT64_MIN
            ):
                sum += <double>subtract_saturated(self.newest[s], self.base)
                n += 1
        self.now = max(self.now, sum / n * self.tick_s)

    cdef bint rests(self) noexcept nogil:
        """Whether it needs to know of some blocks of rows only: time passes without them."""
        return self.kind == WALL and self.by_time

    cdef bint due(self) except -1 nogil:
        if self.kind == WALL and self.unread <= 0:
            self.now = max(self.now, clock_nanoseconds() * 1e-9)
            self.unread = self.look_of
        elif self.kind == CALLED:
            with gil:
                self.read()
        self.unread -= 1
        return self.now >= self.next or self.spent >= self.alarm


@cython.final
cdef class Shedder(Runner):
    """Runs the start rows of one stream through a pipeline whose indexes are `Limited`.

    sums, of rows joined fully since they were last taken: how many there were; results, and their
    squares; results that a selective row had missed, and their squares; candidates, and squares;
    the same of selective rows: how many, candidates; results by missed ones; results of selective
    rows
    """

    def __init__(
        self, Runner inner, Beat beat, int number, ColumnView time, list hops, int64_t seed
    ):
        cdef double[::1] view
        cdef Limited hop
        cdef int h = 0
        self.inner, self.beat, self.number, self.time, self.hops = inner, beat, number, time, hops
        self.n_hops = len(hops)
        self.seed = _mixed(_mixed(<uint64_t>seed) + number)
        self.found = []
        for hop in hops:
            hop.limits.conduct = &self.conduct
            self.limits[h] = &hop.limits
            self.targets[h] = hop.target
            self.found.append(np.zeros(hop.limits.n_windows))
            view = self.found[h]
            self.result[h] = &view[0]
            h += 1
        view = self.sums = np.zeros(11)
        self.sum = &view[0]
        self.exact = self.probes = True
        self.full_below = self.probe_below = UINT64_MAX
        self.chunk = MOST_AT_ONCE
        self.looks_every = self.chunk_ns = 0
        self.full_room = <int64_t *>malloc(3 * MOST_AT_ONCE * sizeof(int64_t))
        if self.full_room == NULL:
            out_of_memory(b"rows", MOST_AT_ONCE)
        self.rest_room = self.full_room + MOST_AT_ONCE
        self.ends = self.rest_room + MOST_AT_ONCE

    def __dealloc__(self):
        cdef Limited hop
        if self.hops is not None:
            for hop in self.hops:
                hop.limits.conduct = &hop.alone
        free(self.full_room)

    def set_shares(self, double full, double probe):
        """Which share of the rows is joined fully, and which of the others asks at all."""
        self.full_below, self.probe_below = _share(full), _share(probe)

    @property
    def compared(self):
        """Candidates so far."""
        return self.given()

    def join(self, const int64_t[::1] rows, Output out):
        """Join rows of a host, in order of time.

        A host whose turn it is for some stretches of time only has the time between for them, too.
        """
        cdef int64_t n = len(rows)
        cdef Beat beat = self.beat
        if n == 0:
            return
        beat.batch_first = time_at(&self.time.column, rows[0])
        beat.batch_last = time_at(&self.time.column, rows[n - 1])
        beat.first_turn(self.number, self.targets, self.n_hops)
        beat.batch_before = beat.newest[self.number]
        if beat.batch_before == INT64_MIN or beat.batch_before >= beat.batch_first:
            beat.batch_last = beat.batch_first
        with nogil:
            self._carry(0, n, &rows[0], out)

    cdef int64_t given(self) noexcept nogil:
        cdef int64_t all = 0
        cdef int h
        for h in range(self.n_hops):
            all += self.limits[h].given
        return all

    # -- what a feed asks of a pipeline ------------------------------------------------------------

    cdef bint runs_in_blocks(self) noexcept nogil:
        return self.inner.runs_in_blocks()

    cdef bint takes_codes(self) noexcept nogil:
        return self.inner.takes_codes()

    cdef int run(self, int64_t first, int64_t last, Output out) except -1 nogil:
        if self._passes(last - first):
            return self.inner.run(first, last, out)
        return self._carry(first, last - first, NULL, out)

    cdef int run_some(self, int64_t n, const int64_t *row, Output out) except -1 nogil:
        if self._passes(n):
            return self.inner.run_some(n, row, out)
        return self._carry(0, n, row, out)

    cdef int run_codes(
        self, int64_t n, const int64_t *row, const int64_t *time, const int32_t *code, Output out
    ) except -1 nogil:
        if self._passes(n):
            return self.inner.run_codes(n, row, time, code, out)
        if not self.exact or self.chunk < n:
            return self._carry(0, n, row, out)
        return self._all(0, n, row, time, code, out)

    # -- rows --------------------------------------------------------------------------------------

    cdef inline bint _passes(self, int64_t n) noexcept nogil:
        """Whether n rows are joined and nothing is looked at, as next to all are in calm times."""
        if n > self.calm or self.beat.unread <= 0:
            return False
        self.calm -= n
        self.since_look += n
        self.rows += n
        self.beat.unread -= 1
        return True

    cdef int64_t _calm(self) noexcept nogil:
        """Rows until the next that are learned from; 0 if something has to be looked at before."""
        if not self.exact or self.chunk < MOST_AT_ONCE or not self.beat.rests():
            return 0
        return self._patience() - self.since_look - 1

    cdef int _carry(self, int64_t first, int64_t n, const int64_t *row, Output out) except -1 nogil:
        cdef int64_t at = 0, few
        while at < n:
            few = min(max(self.chunk, <int64_t>1), n - at)
            self._carry_some(first + at, few, row + at if row != NULL else NULL, out)
            at += few
        return 0

    cdef int _carry_some(
        self, int64_t first, int64_t n, const int64_t *row, Output out
    ) except -1 nogil:
        cdef int64_t given = self.given(), begun
        if self.exact:
            return self._all(first, n, row, NULL, NULL, out)
        begun = fine_nanoseconds()
        self._choose(first, n, row, out)
        self.rows += n
        return self._after(first, n, row, given, begun)

    cdef int _all(
        self, int64_t first, int64_t n, const int64_t *row, const int64_t *time,
        const int32_t *code, Output out,
    ) except -1 nogil:
        """All work of some rows; now and then some of them tell where their results lie.

        These are any of the rows: the first ones of a push find others than the last.
        """
        cdef int64_t given = self.given(), begun = 0, few, at, i
        self.since_look += n
        if self.since_look < self._patience():
            self._plainly(first, n, row, time, code, out)
        else:
            self.since_look = 0
            begun = fine_nanoseconds()
            few = min(<int64_t>LOOK_ROWS, n)
            at = <int64_t>(_mixed(self.seed ^ <uint64_t>self.rows) % <uint64_t>(n - few + 1))
            self._plainly(first, at, row, time, code, out)
            for i in range(at, at + few):
                self.full_room[i - at] = first + i if row == NULL else row[i]
            self._fully(few, out)
            at += few
            self._plainly(
                first + at, n - at, row + at if row != NULL else NULL,
                time + at if time != NULL else NULL, code + at if code != NULL else NULL, out,
            )
        self.rows += n
        return self._after(first, n, row, given, begun)

    cdef int64_t _patience(self) noexcept nogil:
        """Rows from one look to the next: the more, the more is known."""
        if self.sum[0] < self.unknown:
            return self.looks_every // SOONER
        if self.sum[0] < PLENTY:
            return self.looks_every
        return self.looks_every * LATER * (<int64_t>self.sum[0] // PLENTY)

    cdef int _plainly(
        self, int64_t first, int64_t n, const int64_t *row, const int64_t *time,
        const int32_t *code, Output out,
    ) except -1 nogil:
        """Rows that nothing is learned from."""
        if n == 0:
            return 0
        if code != NULL:
            return self.inner.run_codes(n, row, time, code, out)
        if row != NULL:
            return self.inner.run_some(n, row, out)
        return self.inner.run(first, first + n, out)

    cdef int _after(
        self, int64_t first, int64_t n, const int64_t *row, int64_t given, int64_t begun
    ) except -1 nogil:
        """Rows have been joined: what was spent, and whether it is time to look at that."""
        cdef int64_t spent = 0
        if begun:
            spent = fine_nanoseconds() - begun
            self.probing += spent
            self.timed += n
            if self.chunk_ns:
                self.chunk = min(self.chunk_ns * self.timed // (self.probing + 1), MOST_AT_ONCE)
                self.chunk_ns = 0
        self.beat.spent += <double>(spent if self.beat.by_time else self.given() - given)
        if self.beat.kind == EVENT:
            self.beat.come(
                self.number,
                time_at(&self.time.column, first + n - 1 if row == NULL else row[n - 1]),
            )
        if self.beat.due():
            with gil:
                self.beat.call()
        self.calm = self._calm()
        return 0

    cdef int _choose(
        self, int64_t first, int64_t n, const int64_t *row, Output out
    ) except -1 nogil:
        """Some rows fully, the others selectively."""
        cdef int64_t i, one, found, n_full = 0, n_rest = 0
        cdef uint64_t hash
        for i in range(n):
            one = first + i if row == NULL else row[i]
            hash = _mixed(self.seed ^ <uint64_t>one)
            if hash < self.full_below or self.full_below == UINT64_MAX:
                self.full_room[n_full] = one
                n_full += 1
            elif self._asks(one):
                self.rest_room[n_rest] = one
                n_rest += 1
        if n_full:
            self._fully(n_full, out)
        self.sum[7] += n - n_full
        self.skipped += n - n_full - n_rest
        self.conduct.limited = 1
        one, found = self.given(), out.used
        if n_rest:
            self.inner.run_some(n_rest, self.rest_room, out)
        self.sum[8] += self.given() - one
        self.sum[10] += out.used - found
        self.conduct.limited = 0
        return 0

    cdef bint _asks(self, int64_t row) noexcept nogil:
        """Whether a row that is not joined fully asks at all."""
        if self.exact:
            return True
        if not self.probes:
            return False
        return self.probe_below == UINT64_MAX or (
            _mixed(~self.seed ^ <uint64_t>row) < self.probe_below
        )

    cdef int _fully(self, int64_t n, Output out) except -1 nogil:
        """Join rows with all there is, one by one, and learn from them."""
        cdef int64_t i, before, begun = out.used, at, missed, since = fine_nanoseconds()
        cdef double candidates
        cdef const double *worth = NULL
        cdef double[::1] values
        self.conduct.limited = 0
        self.conduct.learning = 1
        for i in range(n):
            before = self.given()
            self.inner.run_some(1, self.full_room + i, out)
            candidates = <double>(self.given() - before)
            self.sum[5] += candidates
            self.sum[6] += candidates * candidates
            self.ends[i] = out.used
        self.conduct.learning = 0
        self.full_ns += fine_nanoseconds() - since
        self.full += n
        self.sum[0] += n
        if self.value is not None and out.used > begun:
            with gil:
                values = self._values(out, begun, out.used)
                worth = &values[0]
                at = begun
                for i in range(n):
                    missed = self._learn(
                        out, self.full_room[i], at, self.ends[i], worth + (at - begun)
                    )
                    self._tally(self.ends[i] - at, missed)
                    at = self.ends[i]
            return 0
        at = begun
        for i in range(n):
            missed = self._learn(out, self.full_room[i], at, self.ends[i], NULL)
            self._tally(self.ends[i] - at, missed)
            at = self.ends[i]
        return 0

    cdef void _tally(self, int64_t found, int64_t missed) noexcept nogil:
        self.sum[1] += found
        self.sum[2] += <double>found * found
        self.sum[3] += missed
        self.sum[4] += <double>missed * missed
        self.sum[9] += <double>found * missed

    cdef int64_t _learn(
        self, Output out, int64_t start, int64_t first, int64_t last, const double *worth
    ) noexcept nogil:
        """Where the results of a row lie, and how many of them a selective row had missed."""
        cdef int64_t t = time_at(&self.time.column, start), k, age, missed = 0
        cdef bint asks = self._asks(start), chosen
        cdef AgeLimits *hop
        cdef int h
        for k in range(first, last):
            chosen = asks
            for h in range(self.n_hops):
                hop = self.limits[h]
                age = subtract_saturated(t, time_at(hop.time, out.column[self.targets[h]][k]))
                self.result[h][basic_window(age, hop.width, hop.first, hop.n_windows)] += (
                    1.0 if worth == NULL else worth[k - first]
                )
                if not self.exact and chosen:
                    chosen = limits_chosen(hop, age)
            missed += not chosen
        return 0 if self.exact else missed

    cdef object _values(self, Output out, int64_t first, int64_t last):
        """What results are worth, by their rows of every stream."""
        cdef int64_t[::1] view
        cdef int64_t k
        cdef int s
        rows = []
        for s in range(out.n_columns):
            column = np.empty(last - first, np.int64)
            view = column
            for k in range(last - first):
                view[k] = out.column[s][first + k]
            rows.append(column)
        return np.ascontiguousarray(self.value(rows), dtype=np.float64)
