"""What one host of several does: indexes over its part of the rows, and hops from what it is sent.

All hosts of a process share the columns of the windows, which nobody changes while they work; rows
and partial results travel between them as row numbers.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from windjoin.kernels.hops import pipeline_of_latest
from windjoin.kernels.order import Order, OrderHop, hops_from
from windjoin.kernels.side import Side
from windjoin.kernels.spec import I64, JoinSpec
from windjoin.kernels.statistics import Statistics
from windjoin.kernels.window import LONG_AGO, Arrivals, Window
from windjoin.pyx.base.index import Index
from windjoin.pyx.base.output import Output
from windjoin.pyx.probing.pipeline import Pipeline

COMPACT_AT = 1024  # keys; below, nothing is worth sweeping
NOTHING = np.empty(0, np.int64)
MEASURED = ("asked", "proposed", "kept")  # of each hop

Way = tuple[tuple[int, ...], tuple[int, ...]]  # streams that are bound, streams to hop to
IndexLimits = Callable[[OrderHop, Side, Index], Index]
Stretches = tuple[I64, I64]  # first and last time of each, in order and apart


class HostJoin:
    """The rows of one host under indexes, and a pipeline for every way partial results come."""

    def __init__(
        self,
        spec: JoinSpec,
        windows: Sequence[Window],
        statistics: Statistics,
        raised: threading.Event | None = None,
    ) -> None:
        """``raised``, of all hosts: a function has, for a partial result that may be elsewhere."""
        self.spec = spec
        self.statistics = statistics
        self._raised = raised or threading.Event()
        self._whole = list(windows)  # of all hosts
        self.windows = [window.empty_copy() for window in windows]
        self._pipelines: dict[Way, Pipeline] = {}
        self._orders: dict[Way, Order] = {}
        self._gone: dict[Way, Counter[tuple[int, str]]] = {}  # measured by pipelines before these
        self._measured = [0] * len(windows)
        self._compact_at = COMPACT_AT
        self._expired = [LONG_AGO] * len(windows)  # up to when indexes have been told

    @property
    def comparisons(self) -> list[int]:
        """Candidates looked at so far, by the stream of the latest row."""
        found = list(self._measured)
        for (bound, _), hops in list(self._pipelines.items()):
            found[bound[0]] += sum(int(hop["proposed"]) for hop in hops.measured())
        return found

    def ways(self) -> list[tuple[Way, Order, list[dict[str, int]]]]:
        """For partial results of every kind that came: the order, and what its hops measured."""
        return [(way, order, self._hops(way)) for way, order in list(self._orders.items())]

    def _hops(self, way: Way) -> list[dict[str, int]]:
        hops, gone = self._pipelines.get(way), self._gone.get(way, Counter())
        now = hops.measured() if hops is not None else [{} for _ in self._orders[way].steps]
        return [
            {name: int(hop.get(name, 0)) + gone[number, name] for name in MEASURED}
            for number, hop in enumerate(now)
        ]

    @property
    def nbytes(self) -> int:
        """Bytes allocated for indexes and the blocks of the hops."""
        return sum(window.index_bytes for window in self.windows) + sum(
            one.nbytes for one in self._pipelines.values()
        )

    def store(self, stream: int, rows: I64) -> None:
        """Hold more rows, given in time order."""
        self.windows[stream].insert(self._stored(stream, rows))

    def hold(self, stream: int, rows: I64) -> None:
        """Hold these rows, in time order, and no others."""
        window = self.windows[stream]
        fresh = window.empty_copy()
        for access in window.accesses:
            fresh.serve(access)
        fresh.insert(self._stored(stream, rows))
        self.windows[stream] = fresh
        self._expired[stream] = LONG_AGO
        self.replan()

    def replan(self) -> None:
        """Make pipelines anew, over the indexes that there are."""
        self._measured = self.comparisons
        for way in self._pipelines:
            hops = enumerate(self._hops(way))
            self._gone[way] = Counter({(n, k): v for n, hop in hops for k, v in hop.items()})
        self._pipelines.clear()

    def _stored(self, stream: int, rows: I64) -> Arrivals:
        """Rows as indexes take them; expired ones travel too, but may have left the rings."""
        whole = self._whole[stream]
        return whole.stored(rows[rows >= whole.head])

    def expire(self, stream: int, horizon: int) -> None:
        """Rows with time < ``horizon`` are not asked for any more.

        Rows of a later horizon may have been given away before: an index is not told to go back.
        """
        if horizon < self._expired[stream]:
            return
        self._expired[stream] = horizon
        window = self.windows[stream]
        for index in window.indexes.values():
            index.expire_before(horizon)
        held = sum(index.n_keys for index in window.indexes.values())
        if held > self._compact_at:
            window.compact()
            self._compact_at = max(COMPACT_AT, 2 * held)

    def compact(self) -> None:
        """Drop expired rows for good, so that their key codes may be used again."""
        for window in self.windows:
            window.compact()

    def extend(
        self,
        bound: tuple[int, ...],
        targets: tuple[int, ...],
        partials: Sequence[I64],
        voids: Mapping[int, Stretches],
        held: Callable[[int], I64],
    ) -> list[I64]:
        """Longer partial results: row numbers of ``bound``, then of ``targets``.

        partials: row numbers of each bound stream; the first stream has the latest row
        voids: by target, where it is not probed
        held: all rows of a stream that are stored here, asked for where an index is new
        """
        way = bound, targets
        if way not in self._pipelines:
            self._pipelines[way] = self._pipeline(way, held)
        hops = self._pipelines[way]
        for number, target in enumerate(self._orders[way].streams[1:]):
            hops.avoid(number, *voids.get(target, (NOTHING, NOTHING)))
        output = Output(len(self.windows))
        hops.wary = self._raised.is_set()
        self._run(way, hops, partials, output)
        if hops.raised:
            self._raised.set()
        found = output.finish()
        return [found[stream] for stream in (*bound, *targets)]

    def _run(self, way: Way, hops: Pipeline, partials: Sequence[I64], output: Output) -> None:
        hops.run_partials(partials, output)

    def _limited(self, way: Way, order: Order) -> IndexLimits | None:
        """What is asked in place of indexes."""
        return None

    def _pipeline(self, way: Way, held: Callable[[int], I64]) -> Pipeline:
        bound, targets = way
        order = hops_from(self.spec, self.statistics, bound, targets)
        for step in order.steps:
            window = self.windows[step.stream]
            if step.access.identity not in window.indexes:
                window.serve(step.access)
                arrivals = self._stored(step.stream, held(step.stream))
                index = window.indexes[step.access.identity]
                index.insert_arrays(
                    step.access.values(window, arrivals), arrivals.time, arrivals.rows
                )
        self._orders[way] = order
        limited = self._limited(way, order)
        return pipeline_of_latest(self.spec, order, bound, self.windows, limited)
