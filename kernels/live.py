"""Join streams as their rows arrive: every push returns the results that it completes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from windjoin.kernels.hops import pipeline
from windjoin.kernels.keys import new_space
from windjoin.kernels.nearest import Waiting, candidates, of_doubles
from windjoin.kernels.order import Order, best_order
from windjoin.kernels.records import live_records
from windjoin.kernels.replanning import FIRST_LOOK, better_orders, next_look, seen
from windjoin.kernels.spec import I64, Bools, JoinSpec, Rows, SetColumn
from windjoin.kernels.statistics import Statistics, unseen
from windjoin.kernels.window import LONG_AGO, Arrivals, Window
from windjoin.pyx.column import judge
from windjoin.pyx.feed import Feed
from windjoin.pyx.keys import KeySpace
from windjoin.pyx.output import Output
from windjoin.pyx.pipeline import Pipeline
from windjoin.pyx.store import Clock, Counts, Store

SWEEP_AT = 1024  # keys; below, nothing is worth sweeping


@dataclass(slots=True)
class Pushed:
    """What one push led to."""

    rows: list[I64]  # per stream, arrival numbers of the members of every result
    late: Bools | None  # mask over the pushed rows


class LiveJoin:
    """State and hops of one continuous join; not for two threads at a time."""

    def __init__(
        self, spec: JoinSpec, lateness: int = 0, statistics: Statistics | None = None
    ) -> None:
        self.spec = spec
        numbered = {s for pair in spec.distinct for s in pair}
        self.windows = [Window(stream, s in numbered) for s, stream in enumerate(spec.streams)]
        self.clocks = [Clock(lateness) for _ in spec.streams]
        self.counts = [Counts() for _ in spec.streams]
        self.found = 0
        self.feeds: list[Feed] = []
        self.orders: list[Order] = []
        self.pipelines: list[Pipeline] = []
        self.replanned = 0  # how often orders or indexes have been chosen anew
        self._done = [(0, 0)] * len(spec.streams)  # by pipelines that are gone, as in `done_by`
        self._looked_at, self._look_at = 0, FIRST_LOOK  # rows that had come, and are to come
        self._spaces: dict[int, KeySpace] = {}
        for stream in spec.streams:
            for kind, space in zip(stream.keys, stream.spaces, strict=True):
                self._spaces.setdefault(space, new_space(kind))
            for wide in stream.wides:
                if wide.space >= 0:
                    self._spaces.setdefault(wide.space, new_space(wide.items))
        self._sweep_at = SWEEP_AT
        self._waiting = None if spec.nearest is None else Waiting(spec.nearest)
        self._plan(statistics or unseen(spec))

    def _plan(self, statistics: Statistics) -> None:
        self._follow([best_order(self.spec, statistics, s) for s in range(len(self.spec.streams))])

    def _follow(self, orders: list[Order]) -> None:
        """Keep the indexes that orders ask for, no others, and their pipelines."""
        steps = [step for order in orders for step in order.steps]
        for number, window in enumerate(self.windows):
            accesses = [step.access for step in steps if step.stream == number]
            window.keep(access.identity for access in accesses)
            for access in accesses:
                window.serve(access)
        if self.pipelines:
            self._done = [self.done_by(stream) for stream in range(len(self.windows))]
        self.orders = orders
        self.pipelines = [pipeline(self.spec, order, self.windows) for order in orders]
        self.found = self.results
        self.feeds[:] = self._short_ways()

    def _short_ways(self) -> list[Feed]:
        """The short way in for the rows of every stream, if all of them can take it."""
        streams = self.spec.streams
        if self._waiting is not None:
            return []
        wides = [wide for stream in streams for wide in stream.wides]
        if any("bytes" in stream.keys for stream in streams):
            return []
        if any(w.form == "weighted" or (w.form == "set" and w.items != "int64") for w in wides):
            return []
        stores = [
            Store(window, counts, self._spaces)
            for window, counts in zip(self.windows, self.counts, strict=True)
        ]
        if not all(store.whole for store in stores):
            return []
        return [
            Feed(number, stores, self.clocks, self.pipelines[number], self._care)
            for number in range(len(stores))
        ]

    @property
    def results(self) -> int:
        """Results so far."""
        return self.found + sum(feed.results for feed in self.feeds)

    def _look(self) -> None:
        """Choose orders and indexes anew if what the windows hold makes others much cheaper."""
        rows = sum(counts.rows_in for counts in self.counts)
        if rows < self._look_at and not (rows > self._looked_at + FIRST_LOOK and self._misfits()):
            return
        self._looked_at, self._look_at = rows, next_look(rows)
        better = better_orders(self.spec, seen(self.spec, self.windows), self.orders)
        if better is not None:
            self._follow(better)
            self.replanned += 1

    def _misfits(self) -> bool:
        """Whether rows have become other than those an index was chosen for."""
        return any(index.misfit for window in self.windows for index in window.indexes.values())

    @property
    def nbytes(self) -> int:
        """Bytes allocated for windows, indexes, keys and the blocks of the hops."""
        return (
            sum(window.nbytes for window in self.windows)
            + sum(space.nbytes for space in self._spaces.values())
            + sum(one.nbytes for one in self.pipelines)
            + sum(feed.nbytes for feed in self.feeds)
            + (0 if self._waiting is None else self._waiting.nbytes)
        )

    @property
    def comparisons(self) -> int:
        """Candidates looked at so far."""
        return sum(self.done_by(stream)[1] for stream in range(len(self.windows)))

    def push(self, stream: int, rows: Rows, bad: Bools | None = None) -> Pushed:
        """Join newly arrived rows with all that is here, then keep them.

        bad: rows that have no time; they get an arrival number and nothing else.
        """
        if self.feeds and bad is None and rows.usable is None:
            found = self._push_plain(stream, rows)
            if found is not None:
                return Pushed(found, None)
        clock, counts = self.clocks[stream], self.counts[stream]
        newest, ordered, late = judge(
            rows.time,
            None if bad is None else bad.view(np.uint8),
            clock.newest,
            clock.promised,
            clock.lateness,
        )
        clock.newest = newest
        usable = rows.usable
        if late is not None:
            counts.late += int(late.sum())
            usable = ~late if usable is None else usable & ~late
        counts.rows_in += len(rows)
        found = self._store_and_join(stream, rows, usable, ordered)
        if self._waiting is not None:
            found = self._nearest(self._waiting, found)
        self.found += len(found[0])
        self._expire()
        return Pushed(found, late)

    def _push_plain(self, stream: int, rows: Rows) -> list[I64] | None:
        """Take the short way; None if these rows cannot."""
        if any(isinstance(wide, SetColumn) and wide.valid is not None for wide in rows.wides):
            return None
        wides = [
            (wide.offsets, wide.items if isinstance(wide, SetColumn) else wide.values)
            for wide in rows.wides
        ]
        return self.feeds[stream].push(rows.time, rows.columns, rows.keys, wides)

    def _nearest(self, waiting: Waiting, found: list[I64]) -> list[I64]:
        """Let new results compete; give out those that no row to come can displace."""
        assert self.spec.nearest is not None
        views = [
            [window.wide_view(n) for n in range(len(window.spec.wides))] for window in self.windows
        ]
        times = self.windows[0].times(found[0]), self.windows[1].times(found[1])
        doubles = of_doubles(self.spec, self.spec.nearest)
        waiting.add(candidates(self.spec, self.spec.nearest, views, doubles, found, times))
        return waiting.ready([clock.watermark for clock in self.clocks])

    def flush(self) -> list[I64]:
        """The results that waited for better partners, now that no row will come any more."""
        if self._waiting is None:
            return [np.empty(0, np.int64) for _ in self.windows]
        rows = self._waiting.ready([np.iinfo(np.int64).max] * 2)
        self.found += len(rows[0])
        return rows

    def first_needed(self, stream: int) -> int:
        """The first row of a stream that results to come may have."""
        waits = None if self._waiting is None else self._waiting.needed(stream)
        head = self.windows[stream].head
        return head if waits is None else min(head, waits)

    def _store_and_join(
        self,
        stream: int,
        rows: Rows,
        usable: Bools | None,
        ordered: bool,
    ) -> list[I64]:
        window = self.windows[stream]
        first, n = window.tail, len(rows)
        codes = [
            self._spaces[space].encode(key, usable)
            for key, space in zip(rows.keys, window.spec.spaces, strict=True)
        ]
        wides = live_records(window.spec.wides, rows.wides, self._spaces, usable)
        time = rows.time
        if usable is not None:
            time = np.where(usable, time, LONG_AGO)
        window.append(time, rows.columns, codes, wides)
        arrivals = Arrivals(np.arange(first, first + n), rows.time, rows.columns, codes, wides)
        if usable is not None:
            self.counts[stream].unusable += n - int(usable.sum())
            arrivals = arrivals.take(np.flatnonzero(usable))
        if not ordered:
            arrivals = arrivals.take(np.argsort(arrivals.time, kind="stable"))
        return self._complete(stream, arrivals)

    def _complete(self, stream: int, arrivals: Arrivals) -> list[I64]:
        """The results that newly stored rows lead to now."""
        output = Output(len(self.windows))
        self.pipelines[stream].run_rows(arrivals.rows, output)
        self.windows[stream].insert(arrivals)
        self._look()
        return output.finish()

    def advance(self, stream: int, time: int) -> None:
        """Nothing of a stream before ``time`` will come any more."""
        clock = self.clocks[stream]
        clock.promised = max(clock.promised, time)
        self._expire()

    def catch_up(self) -> list[I64]:
        """Results that a promise has made complete: none, they leave with their last member."""
        return [np.empty(0, np.int64) for _ in self.windows]

    def close(self) -> None:
        """Nothing has to be ended."""

    def done_by(self, stream: int) -> tuple[int, int]:
        """Results that rows of a stream completed, and candidates looked at for that."""
        hops = self.pipelines[stream].measured()
        results, looked_at = self._done[stream]
        return results + hops[-1]["kept"], looked_at + sum(hop["proposed"] for hop in hops)

    def report(self) -> dict[str, Any] | None:
        """What hosts did, where there are several."""
        return None

    def _expire(self) -> None:
        """Forget what no row to come can reach."""
        for s, window in enumerate(self.windows):
            earliest = self._earliest_to_meet(s)
            if earliest != LONG_AGO:
                horizon = max(earliest - window.spec.window, LONG_AGO)
                self.counts[s].expired += window.expire(horizon)
        self._sweep_grown()

    def _care(self) -> None:
        """What the short way leaves undone, now and then."""
        for window in self.windows:
            window.shrink()
        self._sweep_grown()
        self._look()

    def _sweep_grown(self) -> None:
        """Sweep keys when they have doubled."""
        if self._keys_held() > self._sweep_at:
            self._sweep()
            self._sweep_at = max(SWEEP_AT, 2 * self._keys_held())

    def _earliest_to_meet(self, stream: int) -> int:
        """No row that is older will meet rows of a stream any more."""
        return min(clock.watermark for s, clock in enumerate(self.clocks) if s != stream)

    def _keys_held(self) -> int:
        held = sum(space.used for space in self._spaces.values())
        for window in self.windows:
            held += sum(index.n_keys for index in window.indexes.values())
        return held

    def _sweep(self) -> None:
        live = {number: np.zeros(space.n_codes, np.uint8) for number, space in self._spaces.items()}
        for window in self.windows:
            window.sweep()
            for key, space in enumerate(window.spec.spaces):
                codes = window.codes_alive(key)
                live[space][codes[codes >= 0]] = 1
            for number, wide in enumerate(window.spec.wides):
                if wide.space >= 0:
                    window.mark_items(number, live[wide.space])
        for number, flags in live.items():
            self._spaces[number].sweep(flags)
