"""What a session holds, and the results that are made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from windjoin.binding import BoundQuery
from windjoin.diffusion.history import LoadSample
from windjoin.durations import check_length
from windjoin.errors import QueryError, SessionError, hint
from windjoin.flags import check_flag
from windjoin.held import HeldRows
from windjoin.host_options import check_host_options
from windjoin.kernels.intake import Intake
from windjoin.kernels.outer import Left
from windjoin.kernels.spec import I64
from windjoin.late import LateRows, OnLate
from windjoin.memory import Adaptation, OnFull, asked_memory
from windjoin.outer import extended, numbers, with_unmatched
from windjoin.output import Fetch
from windjoin.payload import Payload
from windjoin.presence import SideJoins
from windjoin.pyx.arrow.payload import Gatherer
from windjoin.pyx.live.session_base import SessionBase
from windjoin.pyx.live.store import Allowance
from windjoin.query import Query
from windjoin.rejected import Rejected
from windjoin.resizing import Resizing
from windjoin.run import threads_for
from windjoin.sinks import ParquetSink
from windjoin.streams import idle_length
from windjoin.waiting import PendingRows

if TYPE_CHECKING:
    from windjoin.state.keeper import Keeper
    from windjoin.state.snapshot import Written

Results = pa.Table | dict[str, I64]
SEQUENCE = "windjoin.push"  # in the metadata of results


@dataclass(frozen=True)
class SessionOptions:
    """How a session is opened, as `Query.open` takes it."""

    lateness: Any = 0
    rows_only: bool = False
    keep_rejected: int = 10_000
    hosts: int | None = None
    strategy: str = "auto"
    segment: Any = None
    ordered: bool = False
    on_late: OnLate = "warn"
    idle: Any = None
    clock: Callable[[], float] = monotonic
    weights: Any = None
    tuning: Any = None
    memory: Any = None
    spill: Any = None
    on_full: OnFull = "spill"
    adaptation: Adaptation | None = None
    plan: Any = None
    pin: bool = False

    def __post_init__(self) -> None:
        for flag in ("rows_only", "ordered", "pin"):
            check_flag(flag, getattr(self, flag))


class SessionState(SessionBase):
    """Options, rows and windows of a session; columns of results, by numbers of rows."""

    def __init__(self, query: Query, options: SessionOptions) -> None:
        self.query = query
        self.rows_only = options.rows_only
        self._options = options
        self._owed: list[Results] = []  # completed by a promise: the next push returns them
        check_length("lateness", options.lateness)
        check_host_options(query, options)
        if options.hosts is None and options.ordered:
            raise QueryError(
                "ordered=True needs hosts=: without, results leave with the push that completes"
                " them; hosts=1 is enough"
            )
        if not callable(options.clock):
            raise QueryError(
                f"clock={options.clock!r}: give a function that returns seconds, such as"
                " time.monotonic"
            )
        idle = idle_length("", options.idle)
        self._idle = [idle if stream.idle is None else stream.idle for stream in query.streams]
        self._memory: Keeper | None = None
        self._asked_memory = asked_memory(
            options.memory,
            options.spill,
            options.on_full,
            options.adaptation,
            options.hosts,
            query.nearest is not None,
        )
        if self._asked_memory is not None and not query.sides.plain:
            raise QueryError(
                "memory= is not for how=, keep=, exists= and missing=: rows on disk may have"
                " partners that are not asked there; leave it out"
            )
        self._numbers = {name: number for number, name in enumerate(query.names)}
        self._held: HeldRows | None = None
        self._final: dict[str, Any] | None = None  # counters, once the session has ended
        self._waiting = PendingRows(query, options.lateness, options.rows_only)
        self._late = LateRows(options.on_late, options.lateness)
        self._rejected: dict[str, Rejected] = {}
        self._payloads: list[Payload] = []
        self._gather: Gatherer | None = None  # of whole results from pages
        self._empty = pa.table({})
        self._bound: BoundQuery | None = None
        self._live: Intake | None = None
        self._samples: list[LoadSample] = []  # of hosts, once the session has ended
        self._resizing: Resizing | None = None  # once a window was changed
        self._saved: Written | None = None
        self._position: Any = None
        self._parts: SideJoins | None = None  # of a join that is several
        self._sink: ParquetSink | None = None
        self._allowance = None if self._asked_memory is None else Allowance()

    @property
    def _straight(self) -> bool:
        """Whether one join takes the rows as they come, and whoever pushes them its results."""
        return self._parts is None and self._sink is None

    @property
    def _fetch(self) -> Fetch:
        payloads = self._payloads
        return lambda stream, names, rows: payloads[stream].take(names, rows)

    def _fetch_live(self, stream: int, names: list[str], rows: I64) -> list[Any]:
        """The same by numbers of rows in the windows."""
        if self._memory is not None:
            rows = self._memory.arrivals(stream, rows)
        return self._payloads[stream].take(names, rows)

    def _taken(self, results: Results) -> Results:
        """Results of a push that was taken: they say which it was."""
        self.sequence += 1
        return self._leaving(results, self.sequence)

    def _leaving(self, results: Results, sequence: int) -> Results:
        """Results with the number of their push, also to where they are written."""
        results = numbered(results, sequence)
        if self._sink is not None:
            self._sink.add(results)
        return results

    def first_needed(self, stream: int) -> int:
        """The arrival number of the first row whose columns results to come may have."""
        assert self._live is not None
        first = self._live.first_needed(stream)
        return first if self._memory is None else self._memory.first_needed(stream, first)

    def _schema(self, stream: str) -> pa.Schema | None:
        schemas = self._waiting.schemas if self._bound is None else self._bound.schemas
        return schemas.get(stream)

    def _must_be_open(self) -> None:
        if self._ended:
            raise SessionError(self._ended)

    def _number(self, stream: str) -> int:
        self._must_be_open()
        if stream not in self._numbers:
            raise QueryError(
                f"{stream!r} is not a stream of this query{hint(str(stream), self.query.names)}"
            )
        return self._numbers[stream]

    def _with_owed(self, results: Results) -> Results:
        """Results after those that promises completed."""
        owed, self._owed = [*self._owed, results], []
        if len(owed) > 1 and results is self._empty:
            owed.pop()
        if len(owed) == 1:
            return owed[0]
        if isinstance(results, dict):
            parts = [list(one.values()) for one in owed if isinstance(one, dict)]
            columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
            return dict(zip(results, columns, strict=True))
        return pa.concat_tables([one for one in owed if isinstance(one, pa.Table)])

    def _numbered(self, found: list[Any]) -> list[Any]:
        """Results by arrival numbers, which are not those in the windows once rows have left."""
        return found if self._memory is None else self._memory.results(found)

    def _results(self, found: list[Any]) -> Results:
        """``found``: row numbers of every stream, and scores."""
        if not self.query.sides.plain:
            outer = None if self._live is None else self._live.outer
            return self._outer_results(found, [] if outer is None else outer.take())
        if self.rows_only:
            return dict(zip(self.query.names, found, strict=True))
        assert self._bound is not None
        if not len(found[0]):
            return self._empty
        if self._gather is not None:
            return pa.Table.from_batches(self._gather.gather(found), self._bound.schema)
        rows, scores = found[: len(self._payloads)], found[len(self._payloads) :]
        threads = threads_for(None, len(rows[0]))
        return self._bound.gather_with(self._fetch, rows, threads, scores)

    def _outer_results(self, found: list[Any], left: Left) -> Results:
        """The same where rows may be in no result; ``left``: those that are in none for good."""
        bound = self._bound
        assert bound is not None
        if self.rows_only:
            return dict(zip(self.query.given, numbers(bound, found, left), strict=True))
        if self._gather is not None:
            rows = extended(bound, found, left)
            if not len(rows[0]):
                return self._empty
            return pa.Table.from_batches(self._gather.gather(rows), bound.schema)
        rows, scores = found[: len(self._payloads)], found[len(self._payloads) :]
        results = self._empty
        if len(rows[0]):
            threads = threads_for(None, len(rows[0]))
            results = bound.gather_with(self._fetch, rows, threads, scores)
        return with_unmatched(bound, results, self._fetch, left)

    def _nothing(self) -> Results:
        if self.rows_only:
            return {name: np.empty(0, np.int64) for name in self.query.given}
        return self._empty

    def _expire(self) -> None:
        assert self._live is not None
        if self._resizing is not None:
            self._resizing.settle()
        for number, payload in enumerate(self._payloads):
            payload.expire(self.first_needed(number))

    @property
    def state_bytes(self) -> int:
        """Bytes held: windows, indexes, keys, payload.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> session = q.open()
        >>> _ = session.push("a", {"t": [1, 2], "k": [5, 6]})
        >>> _ = session.push("b", {"t": [1], "k": [9]})
        >>> session.state_bytes > 0
        True
        """
        if self._live is None:
            return self._waiting.nbytes
        return self._live.nbytes + sum(payload.nbytes for payload in self._payloads)


def numbered(results: Results, sequence: int) -> Results:
    """Results that say with which push they left."""
    if not sequence or isinstance(results, dict) or not results.num_rows:
        return results
    told: Any = {SEQUENCE: str(sequence)}
    made: Any = pa.KeyValueMetadata(**told)
    return results.replace_schema_metadata(made)
