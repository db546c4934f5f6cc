"""Join streams as their rows arrive: every push returns the results that it completes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from windjoin.kernels.hops import pipeline
from windjoin.kernels.intake import COMPACT_AT, Intake, LateSplit, Silencing
from windjoin.kernels.nearest import PendingNearest, candidates, of_doubles
from windjoin.kernels.order import INSERT_COST, Order, best_order, order_through
from windjoin.kernels.outer import Outer
from windjoin.kernels.replanning import LEAST_ROWS, Replanner, better_orders, seen
from windjoin.kernels.spec import I64, ArrayColumn, JoinSpec, Rows
from windjoin.kernels.statistics import Statistics, unseen
from windjoin.pyx.base.output import Runner
from windjoin.pyx.encoding.keys import KeySpace
from windjoin.pyx.live.store import expire
from windjoin.pyx.live.stream_joiner import StreamJoiner
from windjoin.pyx.probing.pipeline import Pipeline

Giver = Callable[[list[I64]], list[Any]]


class LiveJoin(Intake):
    """State and hops of one continuous join; not for two threads at a time."""

    def __init__(
        self,
        spec: JoinSpec,
        lateness: int = 0,
        statistics: Statistics | None = None,
        silence: Silencing | None = None,
        orders: list[Order] | None = None,
        pinned: bool = False,
    ) -> None:
        """``orders``: to begin with, and to stay with if they are ``pinned``."""
        super().__init__(spec, lateness, silence)
        self.joiners: list[StreamJoiner] = []  # one for each stream
        self.orders: list[Order] = []
        self.pipelines: list[Pipeline] = []
        self._found = 0  # by joiners that are gone
        self._given = 0  # results that waited for better partners
        self._done = [(0, 0)] * len(spec.streams)  # by pipelines that are gone, as in `done_by`
        self.replanner = Replanner(pinned=pinned)
        self._sift: Giver | None = None
        self._waiting: PendingNearest | None = None
        if spec.nearest is not None:
            self._waiting = PendingNearest(spec.nearest, self._scores.of(self._none()))
        if spec.kept is not None:
            self.outer = Outer(spec.kept, self.windows)
        if orders is None:
            statistics = statistics or unseen(spec)
            orders = [best_order(spec, statistics, s) for s in range(len(spec.streams))]
        self._follow(orders)

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
        self.pipelines = [self._pipeline(order) for order in orders]
        self._found += sum(joiner.results for joiner in self.joiners)
        self._stores = self.new_stores()
        give = self._giver()
        self.joiners[:] = [
            StreamJoiner(
                number, self._stores, self.clocks, self._runner(number, one), self._maintain, give,
                self.silence,
            )
            for number, one in enumerate(self.pipelines)
        ]  # fmt: skip

    def _giver(self) -> Giver | None:
        """What makes of the rows of new results what is given out, before any is forgotten."""
        give: Giver | None = self._scored if self._scores else None
        give = give if self._waiting is None else self._nearest
        give = give if self.outer is None else self._looked_at_by_outer
        return give if self._sift is None else self._sifted

    def sift(self, sift: Giver | None) -> None:
        """Let results go through ``sift`` from now on, which may leave some out."""
        self._sift = sift
        for joiner in self.joiners:
            joiner.give = self._giver()

    def _sifted(self, found: list[I64]) -> list[Any]:
        assert self._sift is not None
        return self._scored(self._sift(found))

    def _pipeline(self, order: Order) -> Pipeline:
        return pipeline(self.spec, order, self.windows)

    def _runner(self, number: int, made: Pipeline) -> Runner:
        """What takes the start rows of a stream through its pipeline."""
        return made

    def listen(self, outer: Outer) -> None:
        """Let somebody look at results before their rows are forgotten."""
        super().listen(outer)
        self._follow(self.orders)

    @property
    def results(self) -> int:
        """Results so far."""
        if self.outer is not None and self.outer.kept.form != "pairs":
            return self.outer.given
        beside = 0 if self.outer is None else self.outer.given
        if self._waiting is not None:
            return self._given + beside
        return self._found + sum(joiner.results for joiner in self.joiners) + beside

    def _measure_again(self) -> None:
        """Choose orders and indexes anew if what the windows hold makes others much cheaper."""
        rows = sum(counts.rows_in for counts in self.counts)
        if not self.replanner.due(rows, self._misfits):
            return
        statistics = seen(self.spec, self.windows)
        better = self.replanner.better(self.spec, statistics, self.orders, self._to_build, rows)
        if better is not None:
            self._follow(better)
            self.replanned += 1

    def _to_build(self, order: Order) -> float:
        """Nanoseconds that the indexes take which an order asks and nobody has yet."""
        return sum(
            INSERT_COST * len(self.windows[step.stream])
            for step in order.steps
            if step.access.identity not in self.windows[step.stream].indexes
        )

    def _misfits(self) -> bool:
        """Whether rows have become other than those an index was chosen for."""
        return any(index.unsuited for window in self.windows for index in window.indexes.values())

    @property
    def nbytes(self) -> int:
        """Bytes allocated for windows, indexes, keys and the blocks of the hops."""
        return (
            super().nbytes
            + sum(one.nbytes for one in self.pipelines)
            + sum(joiner.nbytes for joiner in self.joiners)
            + (0 if self._waiting is None else self._waiting.nbytes)
            + (0 if self.outer is None else self.outer.nbytes)
        )

    @property
    def comparisons(self) -> int:
        """Candidates looked at so far."""
        return sum(self.done_by(stream)[1] for stream in range(len(self.windows)))

    def push(self, stream: int, rows: Rows, late_split: LateSplit) -> list[Any]:
        """Join newly arrived rows with all that is here, then keep them.

        Per stream, arrival numbers of the members of every result; behind them its scores.
        """
        if self.outer is None:
            return self._push(stream, rows, late_split)
        self.outer.admit(stream, rows, late_split.late, late_split.but_late(rows.usable))
        found = self._push(stream, rows, late_split)
        self.settle()
        return found

    def _push(self, stream: int, rows: Rows, late_split: LateSplit) -> list[Any]:
        if late_split.late is None and late_split.ordered and rows.usable is None:
            found = self._push_as_they_lie(stream, rows)
            if found is not None:
                return found
        return self._push_any(stream, rows, late_split)

    def _push_any(self, stream: int, rows: Rows, late_split: LateSplit) -> list[Any]:
        usable = self.usable(stream, rows, late_split)
        codes, varlen_rows = self.encode(stream, rows, usable)
        columns: list[Any] = [np.ascontiguousarray(column) for column in rows.columns]
        time = np.ascontiguousarray(rows.time)
        joiner = self.joiners[stream]
        return joiner.push_some(
            time, columns, codes, varlen_rows, usable, late_split.ordered, late_split.newest
        )

    def _push_as_they_lie(self, stream: int, rows: Rows) -> list[Any] | None:
        """Rows in order that are all usable; None if they are not plain arrays."""
        if not all(isinstance(key, np.ndarray) for key in rows.keys):
            return None
        varlen: list[tuple[I64, Any]] = []
        for wide, spec in zip(rows.varlen, self.spec.streams[stream].varlen, strict=True):
            if wide.absent is not None:
                return None
            if isinstance(wide, ArrayColumn):
                varlen.append((wide.offsets, wide.values))
            elif spec.form == "set" and spec.items == "int64" and wide.valid is None:
                varlen.append((wide.offsets, wide.items))
            else:
                return None
        return self.joiners[stream].push(rows.time, rows.columns, rows.keys, varlen)

    def load(self, stream: int, rows: Rows, arrivals: I64 | None = None) -> None:
        """Keep rows that have been joined with all that is here; indexes wait for `loaded`."""
        self.store(stream, rows, rows.usable, arrivals)

    def loaded(self, given_before: int) -> list[Any]:
        """Make indexes of all rows, as they are now chosen."""
        for window in self.windows:
            window.keep(())
        better = better_orders(self.spec, seen(self.spec, self.windows), self.orders)
        self._follow(self.orders if better is None or self.replanner.pinned else better)
        self.replanner.looked(sum(counts.rows_in for counts in self.counts))
        return self._scored(self._none())

    def retain(self, rows: Sequence[I64]) -> None:
        """Keep only some rows of every stream, by number: they become the last ones there are."""
        for window, kept in zip(self.windows, rows, strict=True):
            window.keep(())
            window.retain(kept)
        self._renewal = self._new_renewal()
        self._renew()
        self._compact_at = max(COMPACT_AT, 2 * self._keys_held())

    def forget(self, rows: Sequence[I64]) -> bool:
        """Let rows but some go, with all of their keys; the others stay as they are."""
        found = self._by_key_alone()
        if found is None:
            return False
        for window, kept in zip(self.windows, rows, strict=True):
            window.blank(kept)
        gone = found.forget(self._codes_alive()[0])
        for window in self.windows:
            for index in window.indexes.values():
                index.forget(gone)
        self._compact_at = max(COMPACT_AT, 2 * self._keys_held())
        return True

    def clear(self) -> bool:
        """Let all rows go; there is room for as many again, with as many keys."""
        space = self._by_key_alone()
        if space is None:
            return False
        space.clear()
        for window in self.windows:
            window.clear()
        self._renewal = self._new_renewal()
        return True

    def _by_key_alone(self) -> KeySpace | None:
        """The space of the one key of integers that all streams have and all indexes go by."""
        if list(self._spaces) != [0] or not self._spaces[0].forgets:
            return None
        for window in self.windows:
            if len(window.spec.keys) != 1 or window.spec.varlen:
                return None
            if not all(index.forgets for index in window.indexes.values()):
                return None
        return self._spaces[0]

    def resume(self, results: int, done: list[tuple[int, int]]) -> None:
        """Go on counting where another left off; ``done``: by stream, as `done_by` has it."""
        self._found, self._done = results, done
        if self._waiting is not None:
            self._given = results

    @property
    def pairs(self) -> list[Any]:
        """Columns of the pairs that wait for better partners."""
        return [] if self._waiting is None else self._waiting.columns

    def resume_pairs(self, columns: list[Any]) -> None:
        """Let pairs wait that waited elsewhere."""
        if self._waiting is not None:
            self._waiting.resume(columns)

    def _nearest(self, found: list[I64]) -> list[Any]:
        """Let new results compete; give out those that no row to come can displace."""
        waiting = self._waiting
        assert waiting is not None
        assert self.spec.nearest is not None
        views = [
            [window.varlen_view(n) for n in range(len(window.spec.varlen))]
            for window in self.windows
        ]
        times = self.windows[0].times(found[0]), self.windows[1].times(found[1])
        doubles = of_doubles(self.spec, self.spec.nearest)
        new = candidates(self.spec, self.spec.nearest, views, doubles, found, times)
        if self._scores:
            new = new.best(self.spec.nearest.most)  # the others need none
            new.scores = self._scores.of([new.left, new.right])
        waiting.add(new)
        rows = waiting.ready([clock.watermark for clock in self.clocks])
        self._given += len(rows[0])
        return rows

    def _looked_at_by_outer(self, found: list[I64]) -> list[Any]:
        """Let new results be known to who asks what is in none; give out what they are."""
        assert self.outer is not None
        given = self._scored(found) if self._waiting is None else self._nearest(found)
        return self.outer.look_at(given)

    def settle(self, at_end: bool = False) -> None:
        """Rows that no row to come can meet come out if they are in no result."""
        if self.outer is not None:
            waiting = () if self._waiting is None else self._waiting.rows
            self.outer.settle(waiting, at_end=at_end)

    def flush(self) -> list[Any]:
        """The results that waited for better partners, now that no row will come any more."""
        if self._waiting is None:
            rows = self._scored(self._none())
        else:
            rows = self._waiting.rest()
            self._given += len(rows[0])
        if self.outer is not None:
            rows = self.outer.look_at(rows)
            self.settle(at_end=True)
        return rows

    def first_needed(self, stream: int) -> int:
        """The first row of a stream that results to come may have."""
        waits = None if self._waiting is None else self._waiting.needed(stream)
        head = self.windows[stream].head
        return head if waits is None else min(head, waits)

    def advance(self, stream: int, time: int) -> None:
        """Nothing of a stream before ``time`` will come any more."""
        clock = self.clocks[stream]
        clock.promised = max(clock.promised, time)
        if self.silence is not None:
            self.silence.heard(stream)
        gone = expire(self._stores, self.clocks)
        self.settle()
        self.keep_small()
        self._maintain_sometimes(1 + gone // 2)

    def catch_up(self) -> list[Any]:
        """Results that a promise has made complete: none, they leave with their last member."""
        return self._scored(self._none())

    def begin(self) -> None:
        """Nothing runs beside the caller."""

    def done_by(self, stream: int) -> tuple[int, int]:
        """Results that rows of a stream completed, and candidates looked at for that."""
        hops = self.pipelines[stream].measured()
        results, looked_at = self._done[stream]
        return results + hops[-1]["kept"], looked_at + sum(hop["proposed"] for hop in hops)

    def plans(self) -> list[tuple[Order, Pipeline]]:
        """For rows of each stream, in which order they probe the others."""
        return list(zip(self.orders, self.pipelines, strict=True))

    def structures(self, order: Order) -> list[set[str]]:
        """What the indexes of an order are, one per step."""
        indexes = (self.windows[step.stream].indexes[step.access.identity] for step in order.steps)
        return [{type(index).__name__} for index in indexes]

    def in_blocks(self, stream: int) -> bool:
        """Whether many rows of a stream take each step together."""
        return self.joiners[stream].in_blocks

    def close(self) -> None:
        """Nothing runs beside the caller."""

    def _maintain(self) -> int:
        """What joiners leave undone, now and then."""
        self.settle()  # before rings expire
        sooner = super()._maintain()
        self._measure_again()
        for joiner in self.joiners:
            joiner.since_maintenance = 0  # it was done for the rows of all streams
            if sooner:
                joiner.patience = min(joiner.patience, sooner)
        return sooner

    def resize(self, stream: int, window: int) -> None:
        """A window gets another length: new pipelines and indexes for the rows that there are."""
        streams = list(self.spec.streams)
        streams[stream] = replace(streams[stream], window=window)
        self.spec = replace(self.spec, streams=tuple(streams))
        for side, spec in zip(self.windows, streams, strict=True):
            side.spec = spec
            side.keep(())
        self.resized()
        statistics = seen(self.spec, self.windows)
        if min(statistics.rows) < LEAST_ROWS:
            statistics = unseen(self.spec)
        if self.replanner.pinned:
            ways = [[(step.stream, step.access.name) for step in one.steps] for one in self.orders]
            self._follow(
                [order_through(self.spec, statistics, s, way) for s, way in enumerate(ways)]
            )
            return
        self._follow([best_order(self.spec, statistics, s) for s in range(len(streams))])

    def _renew(self) -> None:
        for window in self.windows:
            window.keep(())
        self._renumber({})
        self._follow(self.orders)
