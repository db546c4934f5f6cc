"""A continuous join in this process: push rows, get the results they complete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from windjoin.binding import BoundQuery
from windjoin.clustered import ClusterJoin, asked_hosts
from windjoin.errors import QueryError, SessionError, hint
from windjoin.explain import as_data, as_text, order_as_data
from windjoin.inputs import as_table
from windjoin.kernel_errors import as_own_errors
from windjoin.kernels.live import LiveJoin
from windjoin.kernels.spec import I64
from windjoin.kinds import INT64_MAX
from windjoin.output import Fetch
from windjoin.payload import Payload
from windjoin.pyx.door import Door, Entrance
from windjoin.query import Query
from windjoin.rejected import Rejected
from windjoin.run import threads_for
from windjoin.strategies import check_hosts
from windjoin.waiting import END, Waiting
from windjoin.watermarks import length_ticks

Results = pa.Table | dict[str, I64]

COUNTED = (
    *("results", "rejected", "late", "null_time", "unmatchable", "expired", "comparisons"),
    *("state_rows", "state_bytes"),
)
CLOSED = "this session is closed; open a new one with Query.open"
BROKEN_OFF = (
    "this session ended when a push into it was broken off: results may be missing;"
    " open a new one with Query.open"
)


@dataclass(frozen=True)
class Options:
    """How a session is opened, as `Query.open` takes it."""

    lateness: Any = 0
    rows_only: bool = False
    keep_rejected: int = 10_000
    hosts: int | None = None
    strategy: str = "auto"
    segment: Any = None
    ordered: bool = False


class Session(Door):
    """An open continuous join; made by `Query.open`.

    Rows may be pushed in any order across streams and, within ``lateness``, within a stream.  A
    result leaves with the push that brings its last member.  Rows that are refused (a wrong column,
    type or value) leave the session as it was; a push that is broken off later, by Ctrl-C or want
    of memory, ends it.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> with wj.join(a, b, on=a["k"] == b["k"]).open() as s:
    ...     first = s.push("a", {"t": [1, 2], "k": [7, 8]})
    ...     second = s.push("b", {"t": [5], "k": [8]})
    >>> second.to_pylist()
    [{'a_t': 2, 'a_k': 8, 'b_t': 5, 'b_k': 8}]
    """

    def __init__(
        self, query: Query, schemas: Mapping[str, pa.Schema] | None, options: Options
    ) -> None:
        self.query = query
        self.rows_only = options.rows_only
        self._options = options
        self._owed: list[Results] = []  # completed by a promise: the next push returns them
        if options.hosts is not None:
            check_hosts(options.hosts, options.strategy)
        elif options.ordered:
            raise QueryError(
                "ordered=True needs hosts=: without, results leave with the push that completes"
                " them; hosts=1 is enough"
            )
        self._numbers = {name: number for number, name in enumerate(query.names)}
        self._ended = ""  # why nothing can be pushed any more
        self._waiting = Waiting(query.names)
        self._rejected: dict[str, Rejected] = {}
        self._payloads: list[Payload] = []
        self._bound: BoundQuery | None = None
        self._live: LiveJoin | None = None
        if schemas is not None:
            self._begin(schemas)

    def _begin(self, schemas: Mapping[str, pa.Schema]) -> None:
        bound = self.query.bind(schemas)
        asked = self._options
        lateness = length_ticks("lateness", bound.clock, asked.lateness, bound.integer_times)
        kept = bound.evaluated if self.rows_only else _united(bound.payload, bound.evaluated)
        bound.require(kept)
        self._bound = bound
        self._payloads = [
            Payload(bound.schemas[name], columns)
            for name, columns in zip(self.query.names, kept, strict=True)
        ]
        self._rejected = {
            name: Rejected(bound.schemas[name], asked.keep_rejected) for name in self.query.names
        }
        hosts = asked_hosts(bound, asked.hosts, asked.strategy, asked.segment)
        spec = bound.spec_with(self._fetch)
        with as_own_errors():
            if hosts is None:
                self._live = LiveJoin(spec, lateness)
            else:
                self._live = ClusterJoin(spec, hosts, lateness=lateness, ordered=asked.ordered)
        if self.rows_only and not any(kept):
            self._open_entrances(bound, self._live)

    def _open_entrances(self, bound: BoundQuery, live: LiveJoin) -> None:
        """A short way for streams whose rows the kernels take as they lie in NumPy arrays."""
        for number, name in enumerate(self.query.names):
            plain = bound.plain_columns(number)
            if live.feeds:
                operands = len(live.spec.streams[number].columns)
                self._entrances[name] = Entrance(
                    live.feeds,
                    number,
                    self._turn,
                    self.query.names,
                    plain,
                    operands,
                    bound.plain(number),
                )

    @property
    def _fetch(self) -> Fetch:
        payloads = self._payloads
        return lambda stream, names, rows: payloads[stream].take(names, rows)

    # -- pushing ---------------------------------------------------------------------------------

    def _push_slowly(self, stream: str, rows: Any) -> Results:
        with self._alone():
            number = self._number(stream)
            table = as_table(rows, stream)
            return self._learn(number, table) if self._live is None else self._push(number, table)

    def _break_off(self) -> None:
        self._end(BROKEN_OFF)

    def advance(self, stream: str, time: Any) -> None:
        """Promise that no row of a stream before ``time`` will come any more.

        ``time``: an integer of the stream's own time column, or a datetime.
        """
        with self._alone():
            number = self._number(stream)
            self._promise(number, time)

    def finish(self, stream: str) -> None:
        """No more rows of a stream will come at all; what waits for it alone may be forgotten."""
        with self._alone():
            self._promise(self._number(stream), END)

    def slowest(self, streams: Iterable[str]) -> str:
        """Of some streams, the one whose newest row is oldest; one not seen yet comes first."""
        clocks = self._live.clocks if self._live is not None else None

        def newest(name: str) -> int:
            if clocks is not None:
                return clocks[self._numbers[name]].newest
            return self._waiting.batches(self._numbers[name])

        return min(streams, key=newest)

    def close(self) -> Results:
        """End the session; the results still to come.

        Without ``hosts`` that is an empty table, as results leave with their last member; but for
        ``nearest=``, which waits until no better partner can come.
        """
        if self._ended:
            return self._nothing()
        with self._alone():
            results = self._nothing()
            if self._live is not None:
                with self._or_end():
                    results = self._with_owed(self._results(self._live.flush()))
            self._end(CLOSED)
            return results

    @contextmanager
    def _or_end(self) -> Iterator[None]:
        """In the middle of a push, state is neither before nor after it."""
        try:
            with as_own_errors():
                yield
        except BaseException:
            self._end(BROKEN_OFF)
            raise

    def _end(self, why: str) -> None:
        """Keep the counters and the rejected rows, and let all else go."""
        self._final = self._metrics()
        self._ended = why
        if self._live is not None:
            self._live.close()
        self._live = None
        self._entrances = {}
        self._payloads = []
        self._waiting = Waiting(self.query.names)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._turn.take():
            raise SessionError(
                "this session is in use by another thread; push from one thread at a time"
            )
        try:
            if self._ended:
                raise SessionError(self._ended)
            yield
        finally:
            self._turn.give_back()

    def _number(self, stream: str) -> int:
        if stream not in self._numbers:
            raise QueryError(
                f"{stream!r} is not a stream of this query{hint(str(stream), self.query.names)}"
            )
        return self._numbers[stream]

    def _learn(self, number: int, table: pa.Table) -> Results:
        """Keep the first rows until the schemas of all streams are known, then join them all."""
        self._waiting.add(number, table)
        if not self._waiting.complete:
            return self._nothing()
        try:
            self._begin(self._waiting.schemas)
        except BaseException:
            self._waiting.take_back()
            raise
        results = self._nothing()
        try:
            for earlier, what in self._waiting.leave():
                if isinstance(what, pa.Table):
                    results = self._push(earlier, what)
                else:
                    self._promise(earlier, what)
        except BaseException:
            self._end(self._ended or BROKEN_OFF)
            raise
        return results

    def _promise(self, number: int, time: Any) -> None:
        if self._live is None or self._bound is None:
            self._waiting.promise(number, time)
            return
        ticks = INT64_MAX if time is END else self._bound.promise(number, time)
        with self._or_end():
            self._live.advance(number, ticks)
            self._owed.append(self._results(self._live.catch_up()))
            self._forget()

    def _push(self, number: int, table: pa.Table) -> Results:
        assert self._live is not None
        assert self._bound is not None
        prepared = self._bound.prepare(number, table, self._live.windows[number].tail)
        with self._or_end():
            self._payloads[number].append(table, table.num_rows)
            pushed = self._live.push(number, prepared.rows, prepared.null_time)
            if pushed.late is not None or prepared.null_time is not None:
                rejected = self._rejected[self.query.names[number]]
                rejected.add(table, prepared.null_time, pushed.late)
            results = self._with_owed(self._results(pushed.rows))
            self._forget()
        return results

    def _with_owed(self, results: Results) -> Results:
        """Results after those that promises completed."""
        owed, self._owed = [*self._owed, results], []
        if len(owed) == 1:
            return results
        if isinstance(results, dict):
            parts = [list(one.values()) for one in owed if isinstance(one, dict)]
            columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
            return dict(zip(results, columns, strict=True))
        return pa.concat_tables([one for one in owed if isinstance(one, pa.Table)])

    def _results(self, rows: list[I64]) -> Results:
        if self.rows_only:
            return dict(zip(self.query.names, rows, strict=True))
        assert self._bound is not None
        return self._bound.gather_with(self._fetch, rows, threads_for(None, len(rows[0])))

    def _nothing(self) -> Results:
        if self.rows_only:
            return {name: np.empty(0, np.int64) for name in self.query.names}
        return pa.table({}) if self._bound is None else self._bound.schema.empty_table()

    def _forget(self) -> None:
        assert self._live is not None
        for number, payload in enumerate(self._payloads):
            payload.forget(self._live.first_needed(number))

    # -- hosts -----------------------------------------------------------------------------------

    @property
    def hosts(self) -> list[int]:
        """Numbers of the hosts that take work."""
        return self._cluster().open_hosts

    def add_host(self, speed: float = 1.0) -> int:
        """One more host shares the work, of that speed against the first ones; its number."""
        with self._alone():
            return self._cluster().add_host(speed)

    def remove_host(self, number: int, *, lost: bool = False) -> None:
        """A host leaves once others have what they need of it; or it is ``lost`` at once.

        What a lost host held is read again from the windows: no result is lost.
        """
        with self._alone():
            self._cluster().remove_host(number, lost=lost)

    def _cluster(self) -> ClusterJoin:
        if not isinstance(self._live, ClusterJoin):
            raise SessionError(
                "add_host and remove_host need a session that was opened with hosts= and schemas="
            )
        return self._live

    # -- looking ---------------------------------------------------------------------------------

    @property
    def rejected(self) -> dict[str, pa.Table]:
        """Rows that could not be joined, per stream, the newest ``keep_rejected`` of each.

        The last column, ``windjoin_reason``, says why: "null time" or "late".
        """
        return {name: rejected.table() for name, rejected in self._rejected.items()}

    @property
    def state_bytes(self) -> int:
        """Bytes held: windows, indexes, keys, payload."""
        if self._live is None:
            return self._waiting.nbytes
        return self._live.nbytes + sum(payload.nbytes for payload in self._payloads)

    @property
    def metrics(self) -> dict[str, Any]:
        """Counters since the session was opened, in all and per stream."""
        return self._final if self._ended else self._metrics()

    def explain(self, format: Literal["text", "json"] = "text") -> Any:
        """The plan: for rows of every stream, the order in which they probe the other windows."""
        data = as_data(self.query, None)
        if self._live is not None:
            live = self._live
            data["orders"] = [
                order_as_data(live.spec, order, one.measured())
                for order, one in zip(live.orders, live.pipelines, strict=True)
            ]
            data["cluster"] = live.report()
            data["order"] = data["orders"][0] if data["orders"] else None
            data["replanned"] = live.replanned
        if format not in ("text", "json"):
            raise QueryError(f'format={format!r}: explain gives format="text" or format="json"')
        return data if format == "json" else as_text(data)

    def _metrics(self) -> dict[str, Any]:
        streams = {name: self._stream_metrics(name) for name in self.query.names}
        total = {
            name: sum(stream[name] for stream in streams.values())
            for name in next(iter(streams.values()))
            if name not in ("state_rows", "state_bytes")
        }
        total["results"] = self._live.results if self._live is not None else 0
        hosts = self._live.report() if self._live is not None else None
        cluster = {} if hosts is None else {"cluster": hosts}
        return {**total, "state_bytes": self.state_bytes, **cluster, "streams": streams}

    def _stream_metrics(self, name: str) -> dict[str, int]:
        number = self._numbers[name]
        if self._live is None:
            return {"rows_in": self._waiting.rows(number)} | dict.fromkeys(COUNTED, 0)
        counts, window = self._live.counts[number], self._live.windows[number]
        null_time = self._rejected[name].null_time
        results, comparisons = self._live.done_by(number)
        return {
            "rows_in": counts.rows_in,
            "results": results,  # that its rows completed
            "rejected": counts.late + null_time,
            "late": counts.late,
            "null_time": null_time,
            "unmatchable": counts.unusable - counts.late - null_time,
            "expired": counts.expired,
            "comparisons": comparisons,
            "state_rows": len(window),
            "state_bytes": window.nbytes + self._payloads[number].nbytes,
        }


def _united(first: list[list[str]], second: list[list[str]]) -> list[list[str]]:
    return [list(dict.fromkeys([*a, *b])) for a, b in zip(first, second, strict=True)]
