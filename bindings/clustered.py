"""A join on hosts of this process: kernels do the work, a router says which host does what.

It takes rows as `LiveJoin` does and gives row numbers.  A result leaves with the epoch of its
latest row: as soon as all streams have come past the end of that epoch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
from windjoin.diffusion.balance import F64
from windjoin.diffusion.cluster import FOREVER, Bounds, Cluster, Room
from windjoin.diffusion.load import Host
from windjoin.host_errors import TOLD_WHERE
from windjoin.host_report import hosts_as_data, report_of
from windjoin.kernels.hosted import HostJoin
from windjoin.kernels.intake import Silencing
from windjoin.kernels.outer import Outer
from windjoin.kernels.spec import I64, Bools, JoinSpec, Rows
from windjoin.kernels.statistics import Statistics, unseen
from windjoin.kernels.storing import StoringJoin
from windjoin.kernels.window import LONG_AGO, Window
from windjoin.revising import OperatorPlan, Reviser
from windjoin.strategies import Hosts, routing

Sift = Callable[[list[I64]], list[I64]]  # results, of which it may leave some out
OperatorMaker = Callable[[int, JoinSpec, Sequence[Window], Statistics, threading.Event], HostJoin]


class KeyGroups(Protocol):
    """Partition groups that go by keys themselves, whatever codes these have."""

    def groups_of(self, stream: int, rows: I64) -> I64: ...
    def recount(self) -> None: ...


class ClusterJoin(StoringJoin):
    """What a `LiveJoin` is, with rows spread over hosts; close it to end their threads."""

    def __init__(
        self,
        spec: JoinSpec,
        hosts: Hosts,
        *,
        lateness: int = 0,
        statistics: Statistics | None = None,
        ordered: bool = False,
        span: int | None = None,
        silence: Silencing | None = None,
        operator: OperatorMaker | None = None,
    ) -> None:
        """``operator``: makes what works on a host, by its number, and what a `HostJoin` takes."""
        self.statistics = statistics or unseen(spec)
        super().__init__(spec, lateness, silence)
        self._found = 0
        self._given_before = LONG_AGO
        self._sift: Sift | None = None
        self.key_groups: KeyGroups | None = None  # other than by codes of keys
        if spec.kept is not None:
            self.outer = Outer(spec.kept, self.windows)
        self._expired_at = -1  # the border of epochs when rows were last forgotten
        with TOLD_WHERE:
            self.routing = routing(spec, self.statistics, hosts, span)
            windows, raised = self.windows, threading.Event()
            self.plan = plan = OperatorPlan(spec, self.statistics)
            self.reviser = Reviser(hosts)
            room = Room(
                lambda number: (
                    HostJoin(plan.spec, windows, plan.statistics, raised)
                    if operator is None
                    else operator(number, plan.spec, windows, plan.statistics, raised)
                ),
                lambda stream, rows: windows[stream].times(rows),
                self._groups if self.routing.key is not None else None,
                8 * (1 + max(len(s.columns) + len(s.keys) for s in spec.streams)),
            )
            self.cluster = Cluster(
                self.routing.router,
                self.routing.clock,
                room,
                ordered=ordered,
                bounds=Bounds(
                    hosts.tuning.in_flight,
                    hosts.tuning.smoothing,
                    hosts.tuning.bandwidth,
                    hosts.tuning.memory,
                ),
            )

    def _groups(self, stream: int, rows: I64) -> I64:
        if self.key_groups is not None:
            return self.key_groups.groups_of(stream, rows)
        key = self.routing.key
        assert key is not None, "rows without a common key have no groups"
        codes = self.windows[stream].stored_codes(key[stream], rows)
        return codes.astype(np.int64) % self.routing.group_count

    # -- rows in, results out ------------------------------------------------------------------

    def load(self, stream: int, rows: Rows, arrivals: I64 | None = None) -> None:
        """Rows of a batch, in any order; nothing is joined before `flush`, or `loaded`."""
        first = self.windows[stream].tail
        time, numbers = self._add(stream, rows, rows.usable, rows.usable, False, arrivals)
        self._deal(stream, time, numbers, first)

    def loaded(self, given_before: int) -> list[Any]:
        """Join rows that others have joined already, so that hosts hold them.

        Segments begin elsewhere than they did there, so some results may be complete only here.
        """
        self._given_before = given_before
        return self.catch_up()

    @property
    def given_before(self) -> int:
        """The time before which all results have left."""
        return max(self.cluster.earliest, self._given_before)

    @property
    def joined_before(self) -> int:
        """The time before which all rows were joined."""
        return self.given_before

    def retain(self, rows: Sequence[I64]) -> None:
        """Keep only some rows of every stream, by number: they become the last ones there are."""
        tails = [window.tail for window in self.windows]

        def at(stream: int, asked: I64) -> I64:
            kept = rows[stream]
            found: I64 = np.searchsorted(kept, asked) + (tails[stream] - len(kept))
            return found

        def numbers(stream: int, asked: I64) -> tuple[Bools, I64]:
            kept = rows[stream]
            if not len(kept):
                return np.zeros(len(asked), np.bool_), kept
            found = np.minimum(np.searchsorted(kept, asked), len(kept) - 1)
            there = kept[found] == asked
            return there, found[there] + (tails[stream] - len(kept))

        with TOLD_WHERE:
            self.cluster.renumber(numbers)
        for stream, (window, kept) in enumerate(zip(self.windows, rows, strict=True)):
            self.cluster.latencies.renumber(stream, partial(at, stream))
            window.retain(kept)
        self._renew()

    def relocate(self, source: int, target: int, nbytes: float, sizes: F64, results: F64) -> None:
        """Let groups of together so many bytes change hosts, the most productive first."""
        with TOLD_WHERE:
            self.cluster.relocate(source, target, nbytes, sizes, results)

    def _not_given(self, found: list[I64]) -> list[I64]:
        """Results that have not left before this join went on from another."""
        times = [window.times(rows) for window, rows in zip(self.windows, found, strict=True)]
        new = np.maximum.reduce(times) >= self._given_before
        return [rows[new] for rows in found]

    def resume(self, results: int, done: list[tuple[int, int]]) -> None:
        """Go on counting where another left off."""
        self._found = results
        self.cluster.results = [completed for completed, _ in done]

    def stored(self, stream: int, time: I64, numbers: I64, first: int, count: int) -> list[Any]:
        """Hand newly stored rows to the hosts; all results that are complete then."""
        self._deal(stream, time, numbers, first)
        found = self.catch_up()
        if self.outer is None and self.cluster.clock.now == self._expired_at:  # no epoch has ended
            self._maintain_sometimes(count)
            return found
        self._maintain_sometimes(count + self._expire() // 2)
        if self.outer is None:
            with TOLD_WHERE:
                self.reviser.check(self)
        return found

    def _deal(self, stream: int, time: I64, numbers: I64, first: int) -> None:
        """Let the router see rows in order of time; ``first``: none of their numbers is less."""
        if self.key_groups is not None:
            self.key_groups.recount()
        self.cluster.add(stream, time, numbers, first)

    def sift(self, sift: Sift | None) -> None:
        """Let results go through ``sift`` from now on, which may leave some out."""
        self._sift = sift

    def resize(self, stream: int, window: int) -> None:
        """A window gets another length; what hosts hold is dealt out anew."""
        with TOLD_WHERE:
            self.reviser.resize(self, stream, window)

    def advance(self, stream: int, time: int) -> None:
        """Nothing of a stream before ``time`` will come any more."""
        clock = self.clocks[stream]
        clock.promised = max(clock.promised, time)
        if self.silence is not None:
            self.silence.heard(stream)
        self._maintain_sometimes(1 + self._expire() // 2)

    def flush(self) -> list[Any]:
        """All results that are still to come, now that no rows will."""
        found = self._counted(FOREVER)
        if self.outer is not None:
            self.outer.settle(at_end=True)
        return found

    def catch_up(self) -> list[Any]:
        """Results that are complete as all streams have come so far."""
        found = self._counted(min(clock.watermark for clock in self.clocks))
        if self.outer is not None:
            self._expire()  # what can be in no result any more comes out with these
        return found

    def _counted(self, watermark: int) -> list[Any]:
        with TOLD_WHERE:
            again = self._given_before != LONG_AGO and self.cluster.earliest < self._given_before
            found = self.cluster.run(watermark)
        if again:
            found = self._not_given(found)
        self._found += len(found[0])
        if self._sift is not None:
            found = self._sift(found)
        found = self._scored(found)
        return found if self.outer is None else self.outer.look_at(found)

    def reached(self, streams: Sequence[int]) -> int:
        """All results before this time have come out."""
        return self.cluster.earliest

    def begin(self) -> None:
        """Start the hosts."""
        self.cluster.begin()

    def close(self) -> None:
        """End the hosts."""
        self.cluster.close()

    # -- hosts that come and go ----------------------------------------------------------------

    @property
    def open_hosts(self) -> list[int]:
        """Numbers of the hosts that take work."""
        return list(self.routing.router.book.open_hosts)

    def add_host(self, speed: float) -> int:
        """A host joins; ``speed`` against that of the first ones.  Its number."""
        there = {host.number for host in self.routing.router.book.hosts}
        number = min(set(range(len(there) + 1)) - there)
        with TOLD_WHERE:
            self.cluster.add_host(Host(number, cpu=speed))
        return number

    def remove_host(self, number: int, *, lost: bool) -> None:
        """A host leaves, planned or lost with all it holds."""
        with TOLD_WHERE:
            self.cluster.remove_host(number, lost=lost)

    # -- forgetting ----------------------------------------------------------------------------

    def _expire(self) -> int:
        """Forget what no row to come can reach, on hosts or here; how many rows that were."""
        self._expired_at = self.cluster.clock.now
        earliest, gone = self.cluster.earliest, 0
        if earliest != LONG_AGO:
            for store, stream in zip(self._stores, self.spec.streams, strict=True):
                gone += store.expire(max(earliest - stream.window, LONG_AGO))
        if self.outer is not None:
            self.outer.settle()
        self.keep_small()
        return gone

    def _renew(self) -> None:
        """New codes, by which no row changes its group, and new indexes of all hosts."""
        classes = {}
        if self.routing.key is not None:
            for window, key in zip(self.windows, self.routing.key, strict=True):
                classes[window.spec.spaces[key]] = self.routing.group_count
        self._renumber(classes)
        if self.key_groups is not None:
            self.key_groups.recount()
        for worker in self.cluster.workers.values():
            worker.renew()

    def first_needed(self, stream: int) -> int:
        """The first row of a stream that results to come may have."""
        return self.windows[stream].head

    def _sweep(self) -> None:
        for worker in self.cluster.workers.values():
            worker.operator.compact()
        super()._sweep()

    # -- looking -------------------------------------------------------------------------------

    def hosts(self) -> list[dict[str, Any]]:
        """What each host did and holds, and its load as measured last."""
        return hosts_as_data(self.cluster)

    @property
    def results(self) -> int:
        """Results so far."""
        if self.outer is None:
            return self._found
        return self.outer.given + (self._found if self.outer.kept.form == "pairs" else 0)

    @property
    def nbytes(self) -> int:
        """Bytes allocated for windows, keys, and what hosts hold."""
        return super().nbytes + sum(w.operator.nbytes for w in self.cluster.workers.values())

    def done_by(self, stream: int) -> tuple[int, int]:
        """Results that rows of a stream completed, and candidates looked at for that."""
        cluster = self.cluster
        return cluster.results[stream], cluster.comparisons_for(stream)

    def report(self) -> dict[str, Any]:
        """Strategy and why, and by host what it holds and did: plain data."""
        return report_of(self)
