"""A join on hosts of this process: kernels do the work, a router says which host does what.

It takes rows as `LiveJoin` does and gives row numbers.  A result leaves with the epoch of its
latest row: as soon as all streams have come past the end of that epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from windjoin.binding import BoundQuery
from windjoin.diffusion.cluster import FOREVER, Cluster, Room
from windjoin.diffusion.errors import HostError, RoutingError
from windjoin.diffusion.load import Host
from windjoin.errors import ClusterError, QueryError, WindjoinError
from windjoin.kernels import batch
from windjoin.kernels.functions import FunctionError
from windjoin.kernels.hosted import HostJoin
from windjoin.kernels.live import LiveJoin
from windjoin.kernels.order import best_order
from windjoin.kernels.spec import I64, JoinSpec, Rows
from windjoin.kernels.statistics import Statistics, measure, unseen
from windjoin.kernels.window import Arrivals
from windjoin.strategies import Hosts, check_hosts, routing
from windjoin.watermarks import length_ticks


@contextmanager
def told_where() -> Iterator[None]:
    """What a router refuses, or what fails on a host, as an error of this package."""
    try:
        yield
    except RoutingError as error:
        raise ClusterError(str(error)) from error
    except HostError as error:
        cause = error.__cause__
        if isinstance(cause, FunctionError):
            raise QueryError(str(cause)) from cause
        if isinstance(cause, WindjoinError):
            raise type(cause)(f"{cause} (on {error})") from cause
        if isinstance(cause, Exception):
            raise ClusterError(f"{type(cause).__name__}: {cause} (on {error})") from cause
        raise KeyboardInterrupt("the join was stopped") from error


class ClusterJoin(LiveJoin):
    """A `LiveJoin` whose rows are spread over hosts; close it to end their threads."""

    def __init__(
        self,
        spec: JoinSpec,
        hosts: Hosts,
        *,
        lateness: int = 0,
        statistics: Statistics | None = None,
        ordered: bool = False,
        span: int | None = None,
    ) -> None:
        self.statistics = statistics or unseen(spec)
        super().__init__(spec, lateness, self.statistics)
        with told_where():
            self.routing = routing(spec, self.statistics, hosts, span)
            windows, statistics = self.windows, self.statistics
            room = Room(
                lambda number: HostJoin(spec, windows, statistics),
                lambda stream, rows: windows[stream].times(rows),
                self._groups if self.routing.key is not None else None,
                8 * (1 + max(len(s.columns) + len(s.keys) for s in spec.streams)),
            )
            self.cluster = Cluster(self.routing.router, self.routing.clock, room, ordered=ordered)

    def _plan(self, statistics: Statistics) -> None:
        """Hosts plan their own hops."""

    def _look(self) -> None:
        """Hosts keep to their plans."""

    def _groups(self, stream: int, rows: I64) -> I64:
        key = self.routing.key
        assert key is not None, "rows without a common key have no groups"
        codes = self.windows[stream].stored(rows).codes[key[stream]]
        return codes.astype(np.int64) % self.routing.group_count

    # -- rows in, results out ------------------------------------------------------------------

    def load(self, stream: int, rows: Rows) -> None:
        """Rows of a batch, in any order; nothing is joined before `flush`."""
        self._store_and_join(stream, rows, rows.usable, False)

    def flush(self) -> list[I64]:
        """All results that are still to come, now that no rows will."""
        return self._counted(FOREVER)

    def _complete(self, stream: int, arrivals: Arrivals) -> list[I64]:
        self.cluster.add(stream, arrivals.time, arrivals.rows)
        return self._run(min(clock.watermark for clock in self.clocks))

    def catch_up(self) -> list[I64]:
        """Results that a promise has made complete."""
        return self._counted(min(clock.watermark for clock in self.clocks))

    def _counted(self, watermark: int) -> list[I64]:
        found = self._run(watermark)
        self.found += len(found[0])
        return found

    def _run(self, watermark: int) -> list[I64]:
        with told_where():
            return self.cluster.run(watermark)

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
        with told_where():
            self.cluster.add_host(Host(number, cpu=speed))
        return number

    def remove_host(self, number: int, *, lost: bool) -> None:
        """A host leaves, planned or lost with all it holds."""
        with told_where():
            self.cluster.remove_host(number, lost=lost)

    # -- forgetting ----------------------------------------------------------------------------

    def _earliest_to_meet(self, stream: int) -> int:
        return self.cluster.earliest

    def _sweep(self) -> None:
        for worker in self.cluster.workers.values():
            worker.operator.sweep()
        super()._sweep()

    # -- looking -------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes allocated for windows, keys, and what hosts hold."""
        return super().nbytes + sum(w.operator.nbytes for w in self.cluster.workers.values())

    @property
    def comparisons(self) -> int:
        """Candidates that all hosts looked at so far."""
        return sum(map(self.cluster.comparisons_for, range(len(self.windows))))

    def done_by(self, stream: int) -> tuple[int, int]:
        """Results that rows of a stream completed, and candidates looked at for that."""
        cluster = self.cluster
        return cluster.results[stream], cluster.comparisons_for(stream)

    def report(self) -> dict[str, Any]:
        """Strategy and why, and by host what it holds and did: plain data."""
        described = self.routing.router.describe()
        tallies = self.cluster.tallies()
        stored = sum(tally.rows_in for _, tally, _ in tallies)
        work = [
            tally.rows_in + tally.partials_in + tally.results + sum(compared)
            for _, tally, compared in tallies
        ]
        return {
            "strategy": described.strategy,
            "reasons": list(self.routing.reasons),
            "exact": described.exact,
            "expected_loss": described.expected_loss,
            "segment": self.routing.router.segment_length << self.routing.clock.shift,
            "epochs": self.cluster.epochs,
            "replication": stored / max(described.counters.rows, 1),
            "overhead": described.expected_overhead,
            "switches": described.counters.switches,
            "hosts": [
                {
                    "host": number,
                    "load": done / max(sum(work), 1),
                    "rows_stored": tally.rows_in,
                    "rows_moved": tally.rows_moved,
                    "partials_received": tally.partials_in,
                    "results": tally.results,
                    "comparisons": sum(compared),
                }
                for (number, tally, compared), done in zip(tallies, work, strict=True)
            ],
        }


def asked_hosts(bound: BoundQuery, hosts: Any, strategy: Any, segment: Any) -> Hosts | None:
    """What was asked of ``hosts=``, ``strategy=`` and ``segment=``; None: no hosts."""
    if hosts is None:
        if strategy != "auto" or segment is not None:
            option = f"strategy={strategy!r}" if strategy != "auto" else f"segment={segment!r}"
            raise QueryError(f"{option} needs hosts=, the number of hosts that share the work")
        return None
    if bound.query.nearest is not None:
        raise QueryError("nearest= is not for hosts=: partners of a row lie on several of them")
    ticks = None
    if segment is not None:
        ticks = length_ticks("segment", bound.clock, segment, bound.integer_times)
        if ticks == 0:
            raise QueryError(f"segment={segment!r} is shorter than the unit of the times")
    return Hosts(check_hosts(hosts, strategy), strategy, ticks)


def join_on_hosts(
    spec: JoinSpec, rows: Sequence[Rows], hosts: Hosts, progress: batch.Progress | None
) -> tuple[list[I64], batch.Run, dict[str, Any]]:
    """Row numbers of every result of whole tables, and what the hosts did."""
    statistics = measure(spec, list(rows))
    join = ClusterJoin(spec, hosts, statistics=statistics, span=_span(rows))
    try:
        for stream, part in enumerate(rows):
            join.load(stream, part)
        total = sum(map(len, rows))
        if progress is not None:
            join.cluster.progress = lambda done: progress(done, total)
        found = join.flush()
        if progress is not None:
            progress(total, total)
    finally:
        join.close()
    usable = tuple(len(part) if part.usable is None else int(part.usable.sum()) for part in rows)
    run = batch.Run(best_order(spec, statistics), statistics, usable, hosts.count)
    run.results = len(found[0])
    return found, run, join.report()


def _span(rows: Sequence[Rows]) -> int:
    """How much time lies between the first and the last row."""
    times = [part.time if part.usable is None else part.time[part.usable] for part in rows]
    ends = [(int(time.min()), int(time.max())) for time in times if len(time)]
    return max((last for _, last in ends), default=0) - min((first for first, _ in ends), default=0)
