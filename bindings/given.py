"""Types of what users give and get, for signatures."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, NotRequired, TypedDict

import numpy as np
from windjoin.durations import Duration

if TYPE_CHECKING:
    import pyarrow as pa
    from windjoin.late import OnLate
    from windjoin.memory import Adaptation, Memory, OnFull
    from windjoin.planner import Plan
    from windjoin.shedding import Shedding
    from windjoin.tuning import Tuning

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # type checkers have it, with a default, for any Python

    Out = TypeVar("Out", default=pa.Table)  # what results are; else arrays of row numbers
else:
    from typing import TypeVar

    Out = TypeVar("Out")

FilePath = str | os.PathLike[str]
Length = str | int | timedelta | np.timedelta64 | Duration  # of time
Time = int | date | np.datetime64 | str
Tables = Mapping[str, object]  # by stream, whatever `Query.run` takes as a table


class SessionChoices(TypedDict, total=False):
    """The options of `Query.open` but for schemas and what results are."""

    lateness: Length
    keep_rejected: int
    hosts: int | None
    strategy: str
    segment: Length | None
    ordered: bool
    on_late: OnLate
    idle: Length | None
    clock: Callable[[], float]
    weights: Sequence[float] | None
    tuning: Tuning | None
    memory: int | str | Memory | None
    spill: FilePath | None
    on_full: OnFull
    adaptation: Adaptation | None
    shed: Shedding | None
    plan: Plan | None
    pin: bool


class TableOptions(SessionChoices, total=False):
    """The options of `Query.iterate` and `Query.aiterate` but for what results are."""

    schemas: Mapping[str, pa.Schema] | None


class OpenOptions(TableOptions, total=False):
    """All options of `Query.open`."""

    rows_only: bool


class StreamMetrics(TypedDict):
    """Counters of one stream of a run."""

    rows_in: int
    joinable: int
    rejected: int
    unmatched: NotRequired[int]


class Metrics(TypedDict):
    """Counters of a run, in all and per stream."""

    rows_in: int
    results: int
    rejected: int
    comparisons: int
    threads: int
    unread: NotRequired[int]
    streams: dict[str, StreamMetrics]
    cluster: NotRequired[dict[str, object]]


class SessionStreamMetrics(TypedDict):
    """Counters of one stream of a session."""

    rows_in: int
    results: int
    rejected: int
    late: int
    null_time: int
    unmatchable: int
    expired: int
    comparisons: int
    state_rows: int
    state_bytes: int
    idle: bool
    lag: float | None
    held_by: str | None
    held_rows: int
    held_bytes: int


class SessionMetrics(TypedDict):
    """Counters of a session, in all and per stream."""

    rows_in: int
    results: int
    rejected: int
    late: int
    null_time: int
    unmatchable: int
    expired: int
    comparisons: int
    state_bytes: int
    streams: dict[str, SessionStreamMetrics]
    cluster: NotRequired[dict[str, object]]
    hosts: NotRequired[list[dict[str, object]] | None]
    memory: NotRequired[dict[str, object]]
    shedding: NotRequired[dict[str, object]]
    sink: NotRequired[dict[str, object]]
