"""Live combinations of rows for which other streams have rows that fit, or have none.

Joins beside each other tell which combinations there are (`base`) and which of them have a partner
among streams that must have none (`against`).  A combination can get partners until its deadline:
the time when the first of its rows has left its window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from windjoin.kernels.intake import Intake, LateSplit, Silencing
from windjoin.kernels.keys import new_space
from windjoin.kernels.outer import Outer
from windjoin.kernels.spec import I64, JoinSpec, Kept, Rows
from windjoin.kernels.window import FIRST_ROWS, LONG_AGO, Window
from windjoin.pyx.base.column import Ring
from windjoin.pyx.live.silence import Silence
from windjoin.pyx.live.store import Watermark
from windjoin.pyx.live.unmatched import Unmatched

FOREVER = 2**63 - 1
COMPACT_AT = 1024  # keys
LOW_BITS = 2**32 - 1


class Combinations:
    """Combinations before their deadlines, numbered as they are first seen."""

    def __init__(self, windows: Sequence[int]) -> None:
        self._windows = windows
        self._spaces = [new_space("int64") for _ in range(max(len(windows) - 1, 1))]
        self._deadlines = Ring(np.int64, FIRST_ROWS)
        self._codes = Ring(np.int32, FIRST_ROWS)
        self._there = Ring(np.int64, FIRST_ROWS)  # whether it is a combination, or was matched only
        self._members = [Ring(np.int64, FIRST_ROWS) for _ in windows]
        self._number = np.full(FIRST_ROWS, -1)  # by code
        self._tracked = Unmatched()
        self._compact_at = COMPACT_AT

    @property
    def _rings(self) -> list[Ring]:
        return [self._codes, self._there, *self._members, self._deadlines]

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        rings = sum(ring.nbytes for ring in self._rings) + self._number.nbytes
        return rings + self._tracked.nbytes + sum(space.nbytes for space in self._spaces)

    def add(self, members: Sequence[I64], times: Sequence[I64], there: bool) -> tuple[I64, I64]:
        """Combinations, repeated or not: the number of each, and the places of those that are new.

        there: they are combinations; else they are only known to have a partner
        """
        codes = self._encoded(members)
        once, places = np.unique(codes, return_index=True)
        unknown = self._number[once] < self._tracked.first
        new = np.sort(places[unknown])
        first, tail = self._tracked.tail, self._tracked.tail + len(new)
        self._make_room(tail)
        self._number[codes[new]] = np.arange(first, tail)
        deadlines = np.minimum.reduce(
            [
                np.where(t[new] > FOREVER - w, FOREVER, t[new] + min(w, FOREVER))
                for t, w in zip(times, self._windows, strict=True)
            ]
        )
        self._deadlines.put(first, deadlines)
        self._codes.put(first, codes[new])
        self._there.put(first, np.full(len(new), int(there)))
        for ring, rows in zip(self._members, members, strict=True):
            ring.put(first, rows[new])
        self._tracked.admit(deadlines, None)
        numbers = self._number[codes]
        if there:
            for number in np.unique(numbers[self._there.take(numbers) == 0]):
                self._there.put(int(number), np.ones(1, np.int64))
        return numbers, new

    def first_member(self, place: int, none: int) -> int:
        """The first row of a stream in combinations that wait; ``none``: there are no such."""
        first, waiting = self._tracked.first, self._tracked.tail - self._tracked.first
        if not waiting:
            return none
        return min(none, int(self._members[place].get(first, waiting).min()))

    def mark(self, numbers: I64) -> None:
        """These have a partner."""
        self._tracked.mark(numbers)

    def before(self, horizon: int, at_end: bool = False) -> list[I64]:
        """Members of combinations whose deadline is past and that have no partner."""
        rows = self._tracked.before(self._deadlines, horizon, at_end)
        rows = rows[self._there.take(rows) == 1]
        found = [ring.take(rows) for ring in self._members]
        if self._spaces[-1].used > self._compact_at:
            self._sweep()
        return found

    def _encoded(self, members: Sequence[I64]) -> I64:
        if len(members) == 1:
            codes: Any = self._spaces[0].encode(members[0])
        else:
            codes = members[0]
            for space, rows in zip(self._spaces, members[1:], strict=True):
                codes = space.encode((codes.astype(np.int64) << 32) | (rows & LOW_BITS))
        if self._spaces[-1].n_codes > len(self._number):
            more = np.full(2 * self._spaces[-1].n_codes - len(self._number), -1)
            self._number = np.concatenate([self._number, more])
        return codes  # type: ignore[no-any-return]

    def _make_room(self, tail: int) -> None:
        first = self._tracked.first
        if tail - first > self._deadlines.capacity:
            capacity = FIRST_ROWS
            while capacity < 2 * (tail - first):
                capacity *= 2
            for ring in self._rings:
                ring.resize(capacity, first, self._tracked.tail)

    def _sweep(self) -> None:
        """Forget the codes of combinations that are gone."""
        first, tail = self._tracked.first, self._tracked.tail
        codes = self._codes.get(first, tail - first)
        live = np.zeros(self._spaces[-1].n_codes, np.uint8)
        live[codes] = 1
        self._number[: len(live)][live == 0] = -1
        for number in reversed(range(len(self._spaces))):
            self._spaces[number].compact(live)
            if number:
                firsts = self._spaces[number].first_codes(self._spaces[number - 1].n_codes)
                live = np.frombuffer(firsts, np.uint8)
        self._compact_at = max(COMPACT_AT, 2 * self._spaces[-1].used)


class Listener(Outer):
    """Hears of the results of one of the joins, before any of their rows are forgotten."""

    def __init__(self, join: PresenceJoin, windows: Sequence[Window], against: bool) -> None:
        super().__init__(Kept(()), windows)
        self._join, self._against = join, against
        self.places: list[int] = []  # of the streams that come out, in this join

    def look_at(self, found: list[Any]) -> list[Any]:
        """Hear of new results."""
        members = [found[place] for place in self.places]
        times = [self._windows[place].times(found[place]) for place in self.places]
        self._join.heard(members, times, self._against)
        return found


@dataclass(slots=True)
class SideJoin:
    """One of the joins: its streams by their numbers in the query, and those it asks about."""

    streams: tuple[int, ...]
    asked: tuple[int, ...]
    join: Intake

    @property
    def mark(self) -> int:
        """No result to come has a combination with a deadline before it."""
        return self.join.reached([self.streams.index(stream) for stream in self.asked])


class PresenceJoin(Intake):
    """Joins of live streams beside each other, which see the same rows and clocks."""

    def __init__(
        self, spec: JoinSpec, given: tuple[int, ...], lateness: int, silence: Silencing | None
    ) -> None:
        self.spec = spec
        self.given = given
        self.clocks = [Watermark(lateness) for _ in spec.streams]
        self.silence = None if silence is None else Silence(self.clocks, *silence)
        self._table = Combinations([spec.streams[s].window for s in given])
        self._new: list[list[I64]] = []
        self._parts: list[SideJoin] = []
        self._count = 0
        self.deferred = False  # combinations come out when they can get no partner, not at once

    def add(self, part: SideJoin, listener: Listener, against: bool) -> None:
        """One of the joins: first that which tells of combinations, then that against them."""
        listener.places = [part.streams.index(stream) for stream in self.given]
        part.join.clocks[:] = [self.clocks[stream] for stream in part.streams]
        self._parts.append(part)
        self.deferred = self.deferred or against

    def settled(self) -> None:
        """All joins are there: windows and counters are those of the last that has the stream."""
        last = {s: (part, k) for part in self._parts for k, s in enumerate(part.streams)}
        owners = [last[stream] for stream in range(len(self.spec.streams))]
        self._owners = owners
        self.windows = [part.join.windows[k] for part, k in owners]
        self.counts = [part.join.counts[k] for part, k in owners]

    def heard(self, members: list[I64], times: list[I64], against: bool) -> None:
        """Results of one of the joins."""
        if not len(members[0]):
            return
        numbers, new = self._table.add(members, times, not against)
        if against:
            self._table.mark(numbers)
        elif not self.deferred:
            self._new.append([rows[new] for rows in members])

    # -- rows in, combinations out ----------------------------------------------------------------

    def push(self, stream: int, rows: Rows, late_split: LateSplit) -> list[Any]:
        """Join newly arrived rows; the combinations that come out."""
        assert rows.parts is not None
        clock = self.clocks[stream]
        newest = clock.newest
        for part, ready in zip(self._parts, rows.parts, strict=True):
            if ready is not None:
                clock.newest = newest  # each join moves it, and forgets by it, as it goes
                part.join.push(part.streams.index(stream), ready, late_split)
        clock.newest = late_split.newest
        if self.silence is not None and self.silence.heard(stream if len(rows) else -1):
            self._moved()
        return self._out()

    def advance(self, stream: int, time: int) -> None:
        """Nothing of a stream before ``time`` will come any more."""
        clock = self.clocks[stream]
        clock.promised = max(clock.promised, time)
        if self.silence is not None:
            self.silence.heard(stream)
        self._moved()

    def _moved(self) -> None:
        for part in self._parts:
            part.join.advance(0, LONG_AGO)  # expire by the clocks as they are
            part.join.catch_up()

    def catch_up(self) -> list[Any]:
        """Combinations that a promise has made final."""
        return self._out()

    def flush(self) -> list[Any]:
        """All that is still to come."""
        for part in self._parts:
            part.join.flush()
        return self._out(at_end=True)

    def _out(self, at_end: bool = False) -> list[Any]:
        mark = min(FOREVER, *(part.mark for part in self._parts))  # of hosts it may be beyond
        gone = self._table.before(mark, at_end)
        found, self._new = [*self._new, *([gone] if self.deferred else [])], []
        joined = [np.concatenate(column) for column in zip(*found, strict=True)] if found else []
        count = len(joined[0]) if joined else 0
        self._count += count
        given = dict(zip(self.given, joined, strict=True)) if joined else {}
        none = np.full(count, -1)
        return [given.get(stream, none) for stream in range(len(self.spec.streams))]

    # -- what is asked of it ----------------------------------------------------------------------

    @property
    def results(self) -> int:
        """Combinations that came out so far."""
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._table.nbytes + sum(part.join.nbytes for part in self._parts)

    @property
    def close_spaces(self) -> set[int]:
        """Keys are numbered by each of the joins."""
        return set()

    def first_needed(self, stream: int) -> int:
        """The first row of a stream that combinations to come may have.

        One that waits for its deadline may have rows that all joins have forgotten.
        """
        first = min(
            part.join.first_needed(part.streams.index(stream))
            for part in self._parts
            if stream in part.streams
        )
        if not self.deferred or stream not in self.given:
            return first
        return self._table.first_member(self.given.index(stream), first)

    def done_by(self, stream: int) -> tuple[int, int]:
        """Results that rows of a stream completed, and candidates looked at for that."""
        part, place = self._owners[stream]
        return part.join.done_by(place)

    def report(self) -> dict[str, Any] | None:
        """What hosts did for the last of the joins, where there are several."""
        return self._parts[-1].join.report()

    def begin(self) -> None:
        """Start what runs beside the caller."""
        self._parts[-1].join.on_maintain = self.on_maintain
        for part in self._parts:
            part.join.begin()

    def close(self) -> None:
        """End what runs beside the caller."""
        for part in self._parts:
            part.join.close()

    def load(self, stream: int, rows: Rows, arrivals: I64 | None = None) -> None:
        """Only a join that is one is saved."""
        raise AssertionError("joins beside each other are not saved")

    def loaded(self, given_before: int) -> list[Any]:
        """Only a join that is one is saved."""
        raise AssertionError("joins beside each other are not saved")

    def resume(self, results: int, done: list[tuple[int, int]]) -> None:
        """Only a join that is one is saved."""
        raise AssertionError("joins beside each other are not saved")

    def _renew(self) -> None:
        """Each of the joins does."""
