"""A plan of a join of whole tables: the routes that `windjoin.diffusion.stretches` leads to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
import pyarrow as pa
from windjoin.arrow.plan import DEFAULT, Limits, Plan, Strategy, travelling, without_memory
from windjoin.arrow.routes import U64, AnyRoute, ExchangeRoute, KeyRoute
from windjoin.diffusion.errors import RoutingError
from windjoin.diffusion.stretches import (
    Expected,
    Histogram,
    JoinWork,
    Stretch,
    best_master,
    near_master,
    segments_for,
    stored_once,
)
from windjoin.errors import QueryError, hint
from windjoin.kernels.pairwise import common_key
from windjoin.kernels.spec import Between, Compare, Equal, JoinSpec
from windjoin.query import Query
from windjoin.row_windows import refuse_row_windows

PAIR_COST = {"equal": 0.0005, "range": 0.005, "any": 0.02}  # of a pair in the window, in rows


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

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> q = wj.join(a, b, on=a["k"] == b["k"])
    >>> import pyarrow as pa
    >>> from windjoin.arrow import pack, place, probe
    >>> schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
    >>> plan, expected = place(q, {"a": schema, "b": schema}, hosts=1, strategy="single")
    >>> plan.hosts, plan.strategy
    (1, 'single')
    """
    refuse_row_windows(query, "a join of record batches, or on Spark,")
    if query.nearest is not None:
        raise QueryError("nearest= is not for hosts=: partners of a row lie on several of them")
    if isinstance(hosts, bool) or not isinstance(hosts, int) or hosts < 1:
        raise QueryError(f"hosts={hosts!r}: give a number of hosts, 1 or more")
    if strategy not in get_args(Strategy):
        raise QueryError(
            f"strategy={strategy!r} is not known{hint(str(strategy), get_args(Strategy))}"
        )
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
    work = JoinWork(histogram, windows, pair_cost(bound.spec))
    try:
        if strategy == "atr":
            master = best_master(histogram, windows)
            parts, expected = segments_for(work, master, hosts, segment)
            return plan(master_routes(parts, windows, master), master=master), expected
        routes = [ExchangeRoute.of(each) for each in stored_once(work, hosts, strategy, segment)]
    except RoutingError as error:
        raise QueryError(str(error)) from None
    order = probing_order(bound.spec, histogram)
    return plan(routes, order=order), Expected(1.0, 1.0, 0.0)


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
    parts, expected = segments_for(
        JoinWork(histogram, windows, pair_cost(spec)), master, hosts, None
    )
    timed = master_routes(parts, windows, master)
    routes = [KeyRoute(k, hosts, np.sort(hot), route) for k, route in zip(keys, timed, strict=True)]
    return plan(routes, master=master), expected


def pair_cost(spec: JoinSpec) -> float:
    """What a pair inside the windows costs, where a row costs 1: a guess from the predicates."""
    kinds = {type(predicate) for predicate in spec.predicates}
    if Equal in kinds:
        return PAIR_COST["equal"]
    return PAIR_COST["range" if kinds & {Between, Compare} else "any"]


def master_routes(
    parts: Sequence[Stretch], windows: Sequence[int], master: int
) -> list[ExchangeRoute]:
    """Routes of rows to where the master's are; each of the master's goes to one host."""
    placed = near_master(parts, windows, master)
    return [ExchangeRoute.of(each, split=s == master) for s, each in enumerate(placed)]


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
