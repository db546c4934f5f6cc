"""From row counts over time to routes: who keeps what, so that hosts work equally hard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.arrow.plan import DEFAULT, Limits, Plan, Strategy, travelling, without_memory
from windjoin.arrow.routes import EARLIEST, LATEST, U64, AnyRoute, ExchangeRoute, KeyRoute
from windjoin.errors import QueryError
from windjoin.kernels.pairwise import common_key
from windjoin.kernels.spec import F64, Between, Compare, Equal, JoinSpec
from windjoin.query import Query
from windjoin.row_windows import refuse_row_windows

FINENESS = (8, 4, 2)  # segments per host that are tried, while copies stay few
MOST_COPIES = 1.1  # rows sent per row, for the sake of balance
PAIR_COST = {"equal": 0.0005, "range": 0.005, "any": 0.02}  # of a pair in the window, in rows


@dataclass(frozen=True, slots=True)
class Histogram:
    """Rows of every stream by time: bin b is ``[start + b * width, start + (b + 1) * width)``."""

    start: int
    width: int
    rows: F64  # (streams, bins)

    def up_to(self, stream: int, times: Sequence[int]) -> F64:
        """How many rows of the stream are before each of ``times``; even inside a bin."""
        return self.within(stream, np.array([(time - self.start) / self.width for time in times]))

    def within(self, stream: int, bins: F64) -> F64:
        """The same by places in bins, from the first on."""
        ends = np.concatenate([[0.0], np.cumsum(self.rows[stream])])
        found: F64 = np.interp(bins, np.arange(len(ends)), ends)
        return found

    def scaled(self, factors: Sequence[float]) -> Histogram:
        """The same with as many times the rows of each stream: of samples."""
        return Histogram(self.start, self.width, self.rows * np.array(factors)[:, None])

    @property
    def stop(self) -> int:
        """The end of the last bin."""
        return self.start + self.width * int(self.rows.shape[1])


@dataclass(frozen=True, slots=True)
class Expected:
    """What a placement is expected to lead to."""

    copies: float  # rows sent per row
    imbalance: float  # largest over mean work
    segment: float  # mean length in ticks


def place(
    query: Query,
    schemas: Mapping[str, pa.Schema],
    *,
    hosts: int,
    strategy: Strategy,
    histogram: Histogram | None = None,
    segment: int | None = None,
    hot: U64 | None = None,
    limits: Limits = DEFAULT,
) -> tuple[Plan, Expected]:
    """The plan of a join and what it is expected to cost.

    ``histogram`` is needed by all strategies that route by time.  ``segment``: ticks, else chosen.
    ``hot``: hashes of keys that strategy ``groups`` spreads over hosts by time.
    """
    refuse_row_windows(query, "a join of record batches, or on Spark,")
    if query.nearest is not None:
        raise QueryError("nearest= is not for hosts=: partners of a row lie on several of them")
    kept = travelling(query, schemas)
    bound = query.bind(kept)

    def plan(routes: Sequence[AnyRoute], **more: Any) -> Plan:
        own = without_memory(query)
        return Plan(own, kept, hosts, strategy, tuple(routes), limits=limits, **more)

    streams = range(len(query.streams))
    if strategy == "groups":
        return _groups(plan, bound.spec, hosts, histogram, hot)
    if strategy == "single" or histogram is None or not histogram.rows.sum():
        return plan([ExchangeRoute.everything_to(0) for _ in streams]), Expected(1.0, 1.0, 0.0)
    windows = [stream.window for stream in bound.spec.streams]
    work = Work(histogram, windows, pair_cost(bound.spec))
    if strategy == "atr":
        master = best_master(histogram, windows)
        parts, expected = segments_for(work, master, hosts, segment)
        return plan(atr_routes(parts, windows, master), master=master), expected
    order = probing_order(bound.spec, histogram)
    return plan(*_stored_once(work, hosts, strategy, segment), order=order), Expected(1.0, 1.0, 0.0)


def _groups(
    plan: Any, spec: JoinSpec, hosts: int, histogram: Histogram | None, hot: U64 | None
) -> tuple[Plan, Expected]:
    keys = common_key(spec)
    if keys is None:
        raise QueryError(
            'strategy="groups" sends equal keys to one host, but no key is equal in all streams of'
            ' this query; use strategy="atr" or "auto"'
        )
    none = np.empty(0, np.uint64)
    if hot is None or not len(hot) or histogram is None:
        routes = [KeyRoute(key, hosts, none) for key in keys]
        return plan(routes), Expected(1.0, 1.0, 0.0)
    windows = [stream.window for stream in spec.streams]
    master = best_master(histogram, windows)
    parts, expected = segments_for(Work(histogram, windows, pair_cost(spec)), master, hosts, None)
    timed = atr_routes(parts, windows, master)
    routes = [KeyRoute(k, hosts, np.sort(hot), route) for k, route in zip(keys, timed, strict=True)]
    return plan(routes, master=master), expected


def pair_cost(spec: JoinSpec) -> float:
    """What a pair inside the windows costs, where a row costs 1: a guess from the predicates."""
    kinds = {type(predicate) for predicate in spec.predicates}
    if Equal in kinds:
        return PAIR_COST["equal"]
    return PAIR_COST["range" if kinds & {Between, Compare} else "any"]


def best_master(histogram: Histogram, windows: Sequence[int]) -> int:
    """The stream for which the others are copied least."""
    rows = histogram.rows.sum(axis=1)

    def copied(master: int) -> float:
        others = (s for s in range(len(windows)) if s != master)
        return float(sum((windows[s] + windows[master]) * rows[s] for s in others))

    return min(range(len(windows)), key=lambda stream: (copied(stream), stream))


@dataclass(frozen=True, slots=True)
class Work:
    """Expected work by time of the master's rows."""

    histogram: Histogram
    windows: Sequence[int]
    pair: float
    known: dict[int, F64] = field(default_factory=dict)

    def by_bin(self, master: int) -> F64:
        """Rows that are there, and pairs with the master's rows."""
        if master not in self.known:
            self.known[master] = self._by_bin(master)
        return self.known[master]

    def _by_bin(self, master: int) -> F64:
        histogram = self.histogram
        lows = np.arange(histogram.rows.shape[1], dtype=np.float64)
        highs = lows + 1 + self.windows[master] / histogram.width
        pairs = np.zeros(len(lows))
        for stream, window in enumerate(self.windows):
            if stream != master:
                near = histogram.within(stream, highs)
                near = near - histogram.within(stream, lows - window / histogram.width)
                pairs += near * histogram.rows[master]
        work: F64 = histogram.rows.sum(axis=0) + self.pair * pairs
        return work


Part = tuple[int, int, tuple[int, ...]]  # low, high, hosts


def segments_for(
    work: Work, master: int, hosts: int, segment: int | None
) -> tuple[list[Part], Expected]:
    """The master's segments with their hosts: as fine as copies allow."""
    if segment is not None:
        parts = assign(fixed_cuts(work.histogram, segment), work, master, hosts)
        return parts, expected_of(parts, work, master, hosts)
    for fineness in (*FINENESS, 1):
        parts = assign(equal_cuts(work, master, hosts * fineness), work, master, hosts)
        expected = expected_of(parts, work, master, hosts)
        if expected.copies <= MOST_COPIES:
            break
    return parts, expected


def equal_cuts(work: Work, master: int, count: int) -> list[tuple[int, int, int]]:
    """``count`` segments of equal expected work: low, high, how many shares fell on it.

    Where all is at one instant several shares fall on one segment: more than one host is needed.
    """
    ends = np.concatenate([[0.0], np.cumsum(work.by_bin(master))])
    places = np.interp(np.linspace(0, ends[-1], count + 1)[1:-1], ends, np.arange(len(ends)))
    histogram = work.histogram
    cuts = [histogram.start + int(place * histogram.width) for place in places]
    parts: list[tuple[int, int, int]] = []
    low, shares = EARLIEST, 1
    for cut in cuts:
        if cut <= max(low, histogram.start):
            shares += 1
            continue
        parts.append((low, cut, shares))
        low, shares = cut, 1
    return [*parts, (low, LATEST + 1, shares)]


def fixed_cuts(histogram: Histogram, length: int) -> list[tuple[int, int, int]]:
    """Segments of one length."""
    count = (histogram.stop - histogram.start) // length
    if length < 1 or count > 1 << 20:
        raise QueryError(
            f"segment of {length} ticks cuts {histogram.stop - histogram.start} ticks into"
            f" {count} segments; choose one that makes between 1 and {1 << 20}"
        )
    cuts = [EARLIEST, *range(histogram.start + length, histogram.stop, length), LATEST + 1]
    return [(low, high, 1) for low, high in pairwise(cuts)]


def assign(cuts: Sequence[tuple[int, int, int]], work: Work, master: int, hosts: int) -> list[Part]:
    """Longest work first, always to the host with the least."""
    loads = _work_between(cuts, work, master)
    load = np.zeros(hosts)
    chosen: list[Part | None] = [None] * len(cuts)
    for number in sorted(range(len(cuts)), key=lambda n: (-loads[n], n)):
        low, high, shares = cuts[number]
        few = np.argsort(load, kind="stable")[: min(shares, hosts)]
        load[few] += loads[number] / len(few)
        chosen[number] = (low, high, tuple(sorted(int(host) for host in few)))
    return [part for part in chosen if part is not None]


def _work_between(cuts: Sequence[tuple[int, int, Any]], work: Work, master: int) -> F64:
    ends = np.concatenate([[0.0], np.cumsum(work.by_bin(master))])
    histogram = work.histogram

    def until(time: int) -> float:
        place = (time - histogram.start) / histogram.width
        return float(np.interp(place, np.arange(len(ends)), ends))

    return np.array([until(high) - until(low) for low, high, _ in cuts])


def atr_routes(parts: Sequence[Part], windows: Sequence[int], master: int) -> list[ExchangeRoute]:
    """The master's rows to the host of their segment, others to all hosts that may need them."""
    routes = []
    for stream, window in enumerate(windows):
        if stream == master:
            routes.append(ExchangeRoute.of(parts, split=True))
            continue
        reach = [(low - window, high + windows[master], hosts) for low, high, hosts in parts]
        routes.append(ExchangeRoute.of(reach))
    return routes


def expected_of(parts: Sequence[Part], work: Work, master: int, hosts: int) -> Expected:
    """Copies and imbalance by the histogram."""
    histogram = work.histogram
    sent = float(histogram.rows[master].sum())
    for stream, route in enumerate(atr_routes(parts, work.windows, master)):
        if stream != master:
            borders = [*(int(border) for border in route.borders), LATEST + 1]
            rows = np.diff(histogram.up_to(stream, borders))
            sent += float((rows * np.diff(route.offsets)).sum())
    load = np.zeros(hosts)
    for (_, _, chosen), amount in zip(parts, _work_between(parts, work, master), strict=True):
        load[list(chosen)] += amount / len(chosen)
    total = float(histogram.rows.sum())
    length = (histogram.stop - histogram.start) / len(parts)
    return Expected(sent / total, float(load.max() / load.mean()), length)


def _stored_once(
    work: Work, hosts: int, strategy: Strategy, segment: int | None
) -> tuple[list[ExchangeRoute]]:
    """Every stream's rows on one host each.

    ``ctr``: what is correlated lies together, so partial results travel little.  ``psp``: slices of
    a window lie on all hosts in turn, so that every host has its share of any probe.
    """
    histogram = work.histogram
    if strategy == "ctr":
        parts, _ = segments_for(work, best_master(histogram, work.windows), hosts, segment)
        lone = [(low, high, chosen[:1]) for low, high, chosen in parts]
        return ([ExchangeRoute.of(lone) for _ in work.windows],)
    routes = []
    for window in work.windows:
        length = segment or max(1, window // hosts, (histogram.stop - histogram.start) >> 12)
        cuts = fixed_cuts(histogram, length)
        turns = [(low, high, (number % hosts,)) for number, (low, high, _) in enumerate(cuts)]
        routes.append(ExchangeRoute.of(turns))
    return (routes,)


def probing_order(spec: JoinSpec, histogram: Histogram) -> tuple[int, ...]:
    """From the stream with the fewest rows along the conditions, the fewest rows first."""
    rows = histogram.rows.sum(axis=1)
    left = set(range(len(spec.streams)))
    order = [min(left, key=lambda stream: (rows[stream], stream))]
    left.discard(order[0])
    while left:
        linked = {
            stream
            for predicate in spec.predicates
            for stream in predicate.streams_read & left
            if predicate.streams_read - {stream} <= set(order)
        }
        order.append(min(linked or left, key=lambda stream: (rows[stream], stream)))
        left.discard(order[-1])
    return tuple(order)
