"""From a query and its options to the job of a continuous join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from windjoin.arrow.plan import DEFAULT, Limits, Plan
from windjoin.arrow.routes import ExchangeRoute
from windjoin.binding import BoundQuery
from windjoin.diffusion.registry import SHIPPED
from windjoin.durations import Duration
from windjoin.epochs.job import Job
from windjoin.epochs.requested import COMBINED, Requested, check_strategy, requested_by
from windjoin.epochs.routing import Units
from windjoin.epochs.shedding import check_shedding
from windjoin.epochs.storage import local_path
from windjoin.errors import QueryError, hint
from windjoin.kernels.pairwise import common_key
from windjoin.kernels.spec import JoinSpec
from windjoin.memory import parse_size
from windjoin.query import Query
from windjoin.shedding import Shedding
from windjoin.streams import idle_length
from windjoin.watermarks import length_ticks

STRATEGIES = ("auto", *SHIPPED)
MOST_SLOTS = 4096
FINENESS = 16  # segments for each slot in the longest window, if nobody says how long they are


def job_of(
    query: Query,
    schemas: Mapping[str, pa.Schema],
    root: str,
    *,
    slots: int,
    strategy: str = "auto",
    lateness: Any = 0,
    segment: Any = None,
    idle: Any = None,
    rejected: str | None = None,
    whole: Sequence[Any] = (),
    limits: Limits = DEFAULT,
    warm_bytes: int | None = None,
    shed: Shedding | None = None,
    memory: Any = None,
) -> Job:
    """The job of a continuous join; options as in `windjoin.spark.stream`."""
    check_slots(slots)
    if strategy not in STRATEGIES:
        raise QueryError(f"strategy={strategy!r} is not known here{hint(strategy, STRATEGIES)}")
    own, kept, asked = requested_by(query, schemas, limits)
    check_strategy(asked, strategy)
    bound = own.bind(kept)
    units = _units(asked, bound, strategy, slots, _segment(bound, segment))
    if shed is not None:
        check_shedding(query, bound, units, shed)
    size = None if memory is None else _memory(query, memory, shed)
    everywhere = tuple(ExchangeRoute.everything_to(0) for _ in query.names)
    plan = Plan(own, kept, slots, "single", everywhere, limits=limits)
    return Job(
        plan,
        units,
        length_ticks("lateness", bound.clock, lateness, bound.integer_times),
        local_path(root),
        segment is not None,
        _silences(query, idle),
        None if rejected is None else local_path(rejected),
        tuple(whole),
        asked=asked,
        shed=shed,
        memory=size,
        warm_bytes=size if warm_bytes is None else warm_bytes,
    )


def _units(
    asked: Requested | None, bound: BoundQuery, strategy: str, slots: int, segment: int | None
) -> Units:
    """What slots own, such that they can tell what is asked of rows and combinations."""
    if asked is None:
        return units_of(bound.spec, strategy, slots, segment)
    if strategy == "auto" and asked.query.nearest is not None:
        strategy = "single" if common_key(bound.spec) is None else "groups"
    if strategy == "auto" and asked.form == COMBINED:
        strategy = "atr"
    masters: tuple[int, ...] = ()
    if len(asked.families) == 1:  # all that is told of its rows is told in one slot
        masters = asked.families[0].streams
    return units_of(bound.spec, strategy, slots, segment, masters)


def _memory(query: Query, memory: Any, shed: Any) -> int:
    """Bytes; `QueryError` where slots cannot do with less than they take."""
    if query.nearest is not None:
        raise QueryError(
            f"memory={memory!r} is not for nearest= on Spark: all partners of a row are compared at"
            " once; leave it out"
        )
    if shed is not None:
        raise QueryError(
            f"memory={memory!r} and shed=: what is shed is chosen by a session with the whole"
            " window in memory; give one of them"
        )
    return parse_size(memory, "memory")


def check_slots(slots: Any) -> int:
    """The number of slots; `QueryError` if it is none."""
    if not isinstance(slots, int) or isinstance(slots, bool) or not 1 <= slots <= MOST_SLOTS:
        raise QueryError(f"slots={slots!r}: give a number of slots, 1 to {MOST_SLOTS}")
    return slots


def _segment(bound: Any, segment: Any) -> int | None:
    if segment is None:
        return None
    ticks = length_ticks("segment", bound.clock, segment, bound.integer_times)
    if ticks < 1:
        raise QueryError(f"segment={segment!r} is shorter than a tick of the query's times")
    return ticks


def _silences(query: Query, idle: Any) -> tuple[float | None, ...]:
    common = idle_length("", idle)
    every: list[Duration | None] = [common if s.idle is None else s.idle for s in query.streams]
    return tuple(None if one is None else one.nanoseconds / 1e9 for one in every)


def units_of(
    spec: JoinSpec, strategy: str, slots: int, segment: int | None, masters: Sequence[int] = ()
) -> Units:
    """What slots own: groups of keys if rows of a result share one, else segments of time.

    ``masters``: the streams of which one should be the master; any if none is named.
    """
    windows = tuple(stream.window for stream in spec.streams)
    keys = common_key(spec)
    if strategy == "auto":
        strategy = "groups" if keys is not None and segment is None else "atr"
    if strategy == "groups":
        if keys is None:
            raise QueryError(
                'strategy="groups" sends equal keys to one slot, but no key is equal in all streams'
                ' of this query; use strategy="atr" or "auto"'
            )
        if segment is not None:
            raise QueryError(
                f'segment={segment}: strategy="groups" sends rows by their keys, not by time; leave'
                ' segment out, or use strategy="atr"'
            )
        return Units(windows, keys=tuple(keys))
    if strategy == "single":
        return Units(windows)
    fineness = 1 if strategy == "ctr" else FINENESS
    length = segment or max(1, max(windows) // (fineness * slots))
    if strategy in ("ctr", "psp"):
        return Units(windows, length=length, once=strategy)
    return Units(windows, length=length, master=_master(windows, masters))


def _master(windows: Sequence[int], among: Sequence[int]) -> int:
    """The stream for which the others are copied least, at equal rates."""

    def copied(master: int) -> int:
        return sum(w + windows[master] for s, w in enumerate(windows) if s != master)

    return min(among or range(len(windows)), key=lambda stream: (copied(stream), stream))
