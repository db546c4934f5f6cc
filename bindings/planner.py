"""`plan`: which way of running a query loses least and costs least, and what that will be.

Liu, Plale 2006: among the plans with the greatest output rate the one of least cost.  A plan of a
session is an order of hops for every stream whose rows arrive; its rate and cost follow from the
rates of the streams, the shares that conditions let pass, and what this engine's steps cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from windjoin.errors import QueryError, hint
from windjoin.figures import figure
from windjoin.fragments import Fragment, Site
from windjoin.query import Query, check_query
from windjoin.row_windows import refuse_row_windows

if TYPE_CHECKING:
    from windjoin.kernels.statistics import Statistics
    from windjoin.plan_batch import BatchPlan
    from windjoin.plan_model import Alternative


@dataclass(frozen=True)
class Plan:
    """The best way to run a query, and all ways that were looked at; made by `plan`.

    ``output_rate`` is results per second, ``completeness`` the share of all results that this is,
    ``cost`` CPU seconds per second, ``latency`` CPU seconds between a row and its last result.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window="10s") for name in "ab")
    >>> found = wj.plan(wj.join(a, b, on=a["k"] == b["k"]), rates={"a": 100, "b": 10})
    >>> found.output_rate, found.best.hops["a"][0].stream
    (200.0, 'b')
    """

    query: Query
    rates: dict[str, float]
    alternatives: tuple[Alternative, ...]  # best first
    fragments: tuple[Fragment, ...]
    assumed: bool  # nobody has seen data: types and selectivities are guessed
    cpu: float
    schemas: dict[str, pa.Schema]
    batch: BatchPlan  # how `Query.run` joins whole tables of these streams, and what that costs
    seen: Statistics | None  # of samples
    passing: tuple[float, ...]  # share of the rows of each stream that its filters let pass

    @property
    def best(self) -> Alternative:
        """The plan that was chosen.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> plan = wj.plan(q, rates={"a": 10, "b": 20})
        >>> plan.best.output_rate == plan.output_rate
        True
        """
        return self.alternatives[0]

    @property
    def output_rate(self) -> float:
        """Results per second, as far as ``cpu`` lets them be found.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> plan = wj.plan(q, rates={"a": 10, "b": 20})
        >>> plan.output_rate > 0
        True
        """
        return self.best.output_rate

    @property
    def completeness(self) -> float:
        """The share of all results that are found: 1.0 if the machine keeps up.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> plan = wj.plan(q, rates={"a": 10, "b": 20})
        >>> plan.completeness
        1.0
        """
        return self.best.completeness

    @property
    def cost(self) -> float:
        """CPU seconds per second that all rows would take.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> plan = wj.plan(q, rates={"a": 10, "b": 20})
        >>> plan.cost > 0
        True
        """
        return self.best.cost

    @property
    def latency(self) -> float:
        """CPU seconds that one row takes, on average.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> plan = wj.plan(q, rates={"a": 10, "b": 20})
        >>> plan.latency >= 0
        True
        """
        return self.best.latency

    def taking(self, alternative: Alternative) -> Plan:
        """The same with another of its `alternatives` as the plan that `Query.open` follows.

        >>> import windjoin as wj
        >>> a, b, c = (wj.stream(name, time="t", window="10s") for name in "abc")
        >>> q = wj.join(a, b, c, on=[a["k"] == b["k"], b["k"] == c["k"]])
        >>> found = wj.plan(q, rates={"a": 100, "b": 10, "c": 50})
        >>> other = found.taking(found.alternatives[1])
        >>> other.best == found.alternatives[1], other.cost >= found.cost
        (True, True)
        """
        if alternative not in self.alternatives:
            raise QueryError("taking(): give one of the alternatives of this plan")
        others = (one for one in self.alternatives if one is not alternative)
        return replace(self, alternatives=(alternative, *others))

    def run(self, tables: Mapping[str, Any]) -> pa.Table:
        """Run all fragments in this process, each on what the others send: the answer of the
        query.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> plan = wj.plan(q, rates={"a": 10, "b": 20})
        >>> plan.run({"a": {"t": [1], "k": [5]}, "b": {"t": [2], "k": [5]}}).num_rows
        1
        """
        from windjoin.dividing import run_fragments

        return run_fragments(self.fragments, tables)

    def as_data(self) -> dict[str, Any]:
        """The same as dictionaries, lists, texts and numbers that ``json.dumps`` takes.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> plan = wj.plan(q, rates={"a": 10, "b": 20})
        >>> plan.as_data()["completeness"]
        1.0
        """
        from windjoin.plan_text import as_data

        return as_data(self)

    def draw(self, path: str) -> None:
        """Draw the plan as a tree into a picture: SVG, PNG or PDF, by the ending of ``path``.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> plan = wj.plan(q, rates={"a": 10, "b": 20})
        >>> plan.draw("plan.svg")  # doctest: +SKIP
        """
        from windjoin.plan_drawing import draw

        draw(self, path)

    def __str__(self) -> str:
        from windjoin.plan_text import as_text

        return as_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from windjoin.notebook import table

        rows = [
            (name, hop.stream, hop.index, figure(hop.asked), figure(hop.kept), figure(hop.cost))
            for name, hops in self.best.hops.items()
            for hop in hops
        ]
        names = ("rows of", "probe", "through", "asked per s", "kept per s", "CPU s per s")
        return f"<p>{str(self).splitlines()[0]}</p>{table(names, rows)}"


def plan(
    query: Query,
    *,
    rates: Mapping[str, float],
    statistics: Mapping[str, Any] | None = None,
    cpu: float = 1.0,
    batch_rows: int = 1024,
    sites: Mapping[str, Site] | None = None,
    links: Mapping[tuple[str, str], float | str] | None = None,
    weights: tuple[float, float] = (0.5, 0.5),
    hosts: int = 1,
    threads: int = 1,
) -> Plan:
    """Plan a continuous query before there is a machine for it.

    ``rates``: rows per second of every stream (per unit of the time column where times are plain
    integers).  ``statistics``: tables, or samples of them, from which types and selectivities are
    learned; without, they are assumed.  ``cpu``: how much of a core there is.  ``batch_rows``: rows
    of a push.  ``sites``: where the query may run, by name (see `Site`); ``links``: lengths of
    direct links between sites, or their bandwidths as texts, all alike if left out; ``weights`` of
    load and of bandwidth.  ``hosts``: how many there may be, each a thread of a session;
    ``threads``: how many there may be for whole tables (see ``Plan.batch``).

    >>> import windjoin as wj
    >>> a, b, c = (wj.stream(name, time="t", window="10s") for name in "abc")
    >>> q = wj.join(a, b, c, on=[a["k"] == b["k"], b["k"] == c["k"]])
    >>> found = wj.plan(q, rates={"a": 1000, "b": 10, "c": 500})
    >>> found.completeness, found.best.orders["a"], len(found.alternatives) > 1
    (1.0, ('b', 'c'), True)
    """
    check_query(query, "plan")
    refuse_row_windows(query, "plan")
    if statistics is not None and not isinstance(statistics, Mapping):
        raise QueryError(
            f"statistics is a {type(statistics).__name__}; give a dictionary with a table for each"
            f" of {', '.join(query.names)}"
        )
    given = _rates(query, rates)
    _check_positive("cpu", cpu)
    _check_positive("batch_rows", batch_rows)
    _check_sites(sites, links, weights)
    from windjoin.planning import planned
    from windjoin.run import threads_for
    from windjoin.strategies import check_hosts

    count = check_hosts(hosts, "auto")
    return planned(
        query, given, statistics, float(cpu), int(batch_rows), sites, links, weights, count,
        threads_for(threads, 0),
    )  # fmt: skip


def _rates(query: Query, rates: Mapping[str, float]) -> dict[str, float]:
    if not isinstance(rates, Mapping):
        raise QueryError(f"rates={rates!r}: give a dictionary with rows per second for each stream")
    for name in rates:
        if name not in query.names:
            raise QueryError(f"rates: {name!r} is no stream of the query{hint(name, query.names)}")
    missing = [name for name in query.names if name not in rates]
    if missing:
        raise QueryError(
            f"rates: stream {missing[0]!r} has none; say how many rows a second it has"
        )
    for name, rate in rates.items():
        if (
            not isinstance(rate, (int, float))
            or isinstance(rate, bool)
            or not 0 <= rate < float("inf")
        ):
            raise QueryError(f"rates: {rate!r} of stream {name!r} is not a rate of 0 or more")
    return {name: float(rates[name]) for name in query.names}


def _check_sites(sites: object, links: object, weights: Any) -> None:
    if sites is None:
        if links or weights != (0.5, 0.5):
            given = "links=" if links else "weights="
            raise QueryError(f"{given} says how sites are chosen; give the sites, too: sites=")
    elif not isinstance(sites, Mapping):
        raise QueryError(f'sites={sites!r}: give a windjoin.Site by name, {{"east": wj.Site()}}')
    if not isinstance(weights, Sequence) or not all(
        isinstance(one, (int, float)) and not isinstance(one, bool) for one in weights
    ):
        raise QueryError(f"weights={weights!r}: give two numbers, of load and of bandwidth")


def _check_positive(name: str, value: object) -> None:
    if (
        not isinstance(value, (int, float))
        or isinstance(value, bool)
        or not 0 < value < float("inf")
    ):
        raise QueryError(f"{name}={value!r}: give a number above 0")
