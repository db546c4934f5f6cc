"""What a run or a session is told of its hosts, checked."""

from __future__ import annotations

from typing import Any, Protocol

from windjoin.binding import BoundQuery
from windjoin.errors import QueryError
from windjoin.query import Query
from windjoin.strategies import Hosts, check_hosts
from windjoin.tuning import as_tuning
from windjoin.watermarks import length_ticks


class HostOptions(Protocol):
    """Options of a run or a session that say how hosts share it."""

    @property
    def hosts(self) -> Any: ...
    @property
    def strategy(self) -> Any: ...
    @property
    def segment(self) -> Any: ...
    @property
    def weights(self) -> Any: ...
    @property
    def tuning(self) -> Any: ...


def check_host_options(query: Query, asked: HostOptions) -> None:
    """Refuse what is wrong whatever the schemas of the streams are."""
    hosts, strategy = asked.hosts, asked.strategy
    if hosts is None:
        given = {"segment": asked.segment, "weights": asked.weights, "tuning": asked.tuning}
        options = [name for name, value in given.items() if value is not None]
        if strategy != "auto":
            options.insert(0, f"strategy={strategy!r}")
        if options:
            named = options[0] if "=" in options[0] else f"{options[0]}={_short(given[options[0]])}"
            raise QueryError(f"{named} needs hosts=, the number of hosts that share the work")
        return
    check_hosts(hosts, strategy)
    as_tuning(asked.tuning, asked.weights)
    if query.nearest is not None:
        raise QueryError("nearest= is not for hosts=: partners of a row lie on several of them")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else "..."


def asked_hosts(bound: BoundQuery, asked: HostOptions) -> Hosts | None:
    """What was asked of ``hosts=``, ``strategy=`` and so on; None: no hosts."""
    check_host_options(bound.query, asked)
    hosts, strategy, segment = asked.hosts, asked.strategy, asked.segment
    if hosts is None:
        return None
    ticks = None
    if segment is not None:
        ticks = length_ticks("segment", bound.clock, segment, bound.integer_times)
        if ticks == 0:
            raise QueryError(f"segment={segment!r} is shorter than the unit of the times")
    tuning = as_tuning(asked.tuning, asked.weights)
    return Hosts(check_hosts(hosts, strategy), strategy, ticks, tuning)
