"""A continuous join in this process: push rows, get the results they complete."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast, overload

import numpy as np
import pyarrow as pa
from windjoin.binding import BoundQuery
from windjoin.clustered import ClusterJoin, asked_hosts
from windjoin.diffusion.errors import RoutingError
from windjoin.diffusion.history import Sample
from windjoin.errors import ClusterError, QueryError, SessionError, WindjoinError, hint
from windjoin.explain import as_data, as_text, keys_as_data, names_of, order_as_data
from windjoin.given import FilePath, Length, SessionMetrics, Tables, Time
from windjoin.held import NOTHING, HeldRows
from windjoin.ingesting import Ending, ingest
from windjoin.inputs import as_table
from windjoin.kernel_errors import AS_OWN_ERRORS, own_error
from windjoin.kernels.asof_live import AsofJoin
from windjoin.kernels.counted import CountedJoin
from windjoin.kernels.intake import Intake, LateSplit, Silencing
from windjoin.kernels.live import LiveJoin
from windjoin.kernels.outer import Left
from windjoin.kernels.spec import I64, Bools, JoinSpec
from windjoin.kinds import INT64_MAX
from windjoin.late import LateRows, OnLate
from windjoin.layout import empty_table
from windjoin.memory import Adaptation, OnFull, asked_memory
from windjoin.notebook import Counters, Explanation, metrics_html, query_html
from windjoin.outer import extended, numbers, with_unmatched
from windjoin.output import Fetch
from windjoin.own_times import END
from windjoin.payload import Payload, gatherer_of_all
from windjoin.planned import measured, orders_of
from windjoin.presence import SideJoins
from windjoin.progress import ProgressOption, progress_bar
from windjoin.push_many import Batch, by_time, check_tables, joined, stretches, whole_batches
from windjoin.pyx.base.cpu import isa
from windjoin.pyx.live.session_base import SessionBase, StreamInput, whole
from windjoin.pyx.live.store import Allowance
from windjoin.query import Query
from windjoin.rejected import Rejected
from windjoin.reporting import Report, report_of
from windjoin.resizing import Resizing, change_of
from windjoin.row_windows import check_session, counts_rows
from windjoin.run import threads_for
from windjoin.sinks import EVERY_ROWS, ParquetSink, new_sink
from windjoin.strategies import check_hosts, with_groups
from windjoin.streams import idle_length
from windjoin.waiting import PendingRows
from windjoin.watermarks import length_ticks

if TYPE_CHECKING:
    from windjoin.state.keeper import Keeper
    from windjoin.state.snapshot import Written

Results = pa.Table | dict[str, I64]

COUNTED = (
    *("results", "rejected", "late", "null_time", "unmatchable", "expired", "comparisons"),
    *("state_rows", "state_bytes"),
)
SEQUENCE = "windjoin.push"  # in the metadata of results
IN_USE = "this session is in use by another thread; push from one thread at a time"
CLOSED = "this session is closed; open a new one with Query.open"
BROKEN_OFF = (
    "this session ended when a push into it was broken off: results may be missing;"
    " open a new one with Query.open"
)


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


class Session(SessionBase):
    """An open continuous join; made by `Query.open`.

    Rows may be pushed in any order across streams and, within ``lateness``, within a stream.  A
    result leaves with the push that brings its last member.  Rows that are refused (a wrong column,
    type or value) leave the session as it was; so does Ctrl-C before any were taken.  A push that
    is broken off later, by Ctrl-C or want of memory, ends it.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> with wj.join(a, b, on=a["k"] == b["k"]).open() as s:
    ...     first = s.push("a", {"t": [1, 2], "k": [7, 8]})
    ...     second = s.push("b", {"t": [5], "k": [8]})
    >>> second.to_pylist()
    [{'a_t': 2, 'a_k': 8, 'b_t': 5, 'b_k': 8}]
    """

    def __init__(
        self, query: Query, schemas: Mapping[str, pa.Schema] | None, options: SessionOptions
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
        self._waiting = PendingRows(query, options.lateness)
        self._late = LateRows(options.on_late, options.lateness)
        self._rejected: dict[str, Rejected] = {}
        self._payloads: list[Payload] = []
        self._empty = pa.table({})
        self._bound: BoundQuery | None = None
        self._live: Intake | None = None
        self._samples: list[Sample] = []  # of hosts, once the session has ended
        self._resizing: Resizing | None = None  # once a window was changed
        self._saved: Written | None = None
        self._position: Any = None
        self._parts: SideJoins | None = None  # of a join that is several
        self._sink: ParquetSink | None = None
        self._allowance = None if self._asked_memory is None else Allowance()
        if schemas is not None:
            self._begin(schemas)

    def _begin(self, schemas: Mapping[str, pa.Schema]) -> None:
        bound = self.query.bind(schemas)
        if self.rows_only:
            bound = bound.without_scores()
        asked = self._options
        lateness = length_ticks("lateness", bound.clock, asked.lateness, bound.integer_times)
        kept = self._wanted(bound)
        bound.require(kept)
        self._bound = bound
        self._payloads = [
            Payload(bound.schemas[name], columns)
            for name, columns in zip(self.query.names, kept, strict=True)
        ]
        lacking = not self.query.sides.plain
        self._gather = gatherer_of_all(bound.output, self.query.names, self._payloads, lacking)
        self._empty = empty_table(bound.schema)
        self._rejected = {
            name: Rejected(bound.schemas[name], asked.keep_rejected) for name in self.query.names
        }
        silence = None
        if any(self._idle):
            limits = [one.nanoseconds / 1e9 if one else math.inf for one in self._idle]
            silence = limits, asked.clock

        def join_of(bound: BoundQuery, spec: JoinSpec, silence: Any = None) -> Intake:
            return self._join(bound, spec, lateness, silence)

        with AS_OWN_ERRORS:
            if self.query.sides.combined(len(self.query.streams)):
                self._parts = SideJoins(bound, self._fetch_live)
                live: Intake = self._parts.join(lateness, silence, join_of)
            else:
                live = join_of(bound, bound.spec_with(self._fetch_live), silence)
        self._open_stream_inputs(bound, live, any(kept))
        windows, payloads = live.windows, self._payloads
        self._held = HeldRows(
            bound,
            live,
            self._stream_inputs,
            lambda number: windows[number].nbytes + payloads[number].nbytes,
        )
        live.on_maintain = self._check
        self._live = live
        if self._asked_memory is not None:
            from windjoin.state.keeper import Keeper

            self._memory = Keeper(self, self._asked_memory, asked.on_full, self._allowance)
        live.begin()

    def _check(self) -> None:
        """Now and then, after a push."""
        if self._held is not None:
            self._held.check()
        if self._resizing is not None:
            self._resizing.settle()

    def _wanted(self, bound: BoundQuery) -> list[list[str]]:
        """For every stream, the columns that are kept as long as its rows."""
        return bound.evaluated if self.rows_only else _united(bound.payload, bound.evaluated)

    def _join(
        self, bound: BoundQuery, spec: JoinSpec, lateness: int, silence: Silencing | None
    ) -> Intake:
        """What takes the rows."""
        hosts = asked_hosts(bound, self._options)
        if hosts is None and self.query.direction is not None:
            return AsofJoin(spec, lateness, silence=silence)
        if counts_rows(self.query):
            check_session(self.query, hosts is not None)
            return CountedJoin(spec, lateness, silence=silence)
        if hosts is None:
            asked = self._options
            orders = None if asked.plan is None else orders_of(asked.plan, bound, spec)
            return LiveJoin(spec, lateness, silence=silence, orders=orders, pinned=asked.pin)
        if self._asked_memory is not None:
            hosts = with_groups(hosts, spec, self._asked_memory, asked=self._options.adaptation)
        ordered = self._options.ordered
        return ClusterJoin(spec, hosts, lateness=lateness, ordered=ordered, silence=silence)

    def _open_stream_inputs(self, bound: BoundQuery, live: Intake, kept: bool) -> None:
        """A fast path for streams whose rows the kernels take as they lie in memory.

        kept: columns are, so rows have to come as tables
        """
        if not isinstance(live, LiveJoin) or not self._straight:
            return
        names = self.query.names
        schema = bound.schema
        ending = Ending(
            names=names if self.rows_only else None,
            gatherer=self._gather,
            empty=self._empty,
            tabled=lambda batches, sequence: numbered(
                pa.Table.from_batches(batches, schema), sequence
            ),
            results=lambda found, sequence: numbered(
                self._with_owed(self._results(found)), sequence
            ),
            expire=self._expire,
            allowance=self._allowance,
        )
        for number, name in enumerate(names):
            self._stream_inputs[name] = StreamInput(
                live.joiners,
                number,
                self._session_lock,
                names,
                None if kept or not self.rows_only else bound.plain_columns(number),
                len(live.spec.streams[number].columns),
                ingest(
                    live,
                    number,
                    bound.stream_rows(number),
                    self._payloads,
                    ending,
                    self._told_of(number),
                    self._rejected[name].add,
                ),
                self._allowance,
            )

    @property
    def _straight(self) -> bool:
        """Whether one join takes the rows as they come, and whoever pushes them its results."""
        return self._parts is None and self._sink is None

    def _told_of(self, number: int) -> Callable[[I64, Bools, int], None]:
        """What tells of late rows of a stream: given times, which are late, and the watermark."""

        def tell(times: I64, late: Bools, watermark: int) -> None:
            live, bound = self._live, self._bound
            assert live is not None
            assert bound is not None
            late_split = LateSplit(0, False, late, watermark)
            column = bound.time_column(number)
            self._late.tell(column, bound.clock, live.clocks[number], times, late_split)

        return tell

    @property
    def _fetch(self) -> Fetch:
        payloads = self._payloads
        return lambda stream, names, rows: payloads[stream].take(names, rows)

    def _fetch_live(self, stream: int, names: list[str], rows: I64) -> list[Any]:
        """The same by numbers of rows in the windows."""
        if self._memory is not None:
            rows = self._memory.arrivals(stream, rows)
        return self._payloads[stream].take(names, rows)

    # -- pushing ---------------------------------------------------------------------------------

    def _push_slowly(self, stream: str, rows: Any) -> Results:
        number = self._number(stream)
        if self._sink is not None:
            self._sink.write_due()
        if self._held is not None and self._held.due:
            self._held.tell()
        table = as_table(rows, stream, self._schema(stream))
        if self._memory is not None:
            self._memory.check()
        if self._live is None:
            return self._taken(self._learn([(number, table)]))
        return self._taken(self._push(number, table))

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

    @whole
    def to_parquet(
        self, folder: str | os.PathLike[str], *, every: int | str | timedelta = EVERY_ROWS
    ) -> ParquetSink:
        """Write all results from now on to Parquet files in a folder, too.

        ``every``: how many rows a file has at least, or how long results wait for one at most, such
        as "10s", as far as pushes come.  Files appear whole, numbered on from those in the folder.
        `save` writes what waits, and `windjoin.restore` goes on behind it: files written later are
        removed, as their results come again when what follows `position` is pushed again.  What is
        left is written by `close`.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> import tempfile
        >>> from pyarrow import dataset
        >>> folder = tempfile.mkdtemp()
        >>> with q.open() as session:
        ...     sink = session.to_parquet(folder, every=1000)
        ...     for name in q.names:
        ...         _ = session.push(name, {"t": [1], "k": [5]})
        >>> dataset.dataset(folder).to_table().num_rows, sink.rows
        (1, 1)
        """
        self._must_be_open()
        if self.rows_only:
            raise QueryError("to_parquet: rows_only=True keeps no columns that could be written")
        if self._sink is not None:
            raise SessionError(f"to_parquet: results are written to {str(self._sink.folder)!r}")
        self._sink = new_sink(folder, every, self._options.clock)
        self._stream_inputs.clear()
        return self._sink

    @whole
    def push_many(self, tables: Tables) -> Results:
        """Join new rows of several streams, in order of time; the results that they complete.

        ``tables``: by the name of the stream whatever `push` takes.  They are refused together: no
        row is taken unless all can be.  Windows hold no more than if rows came one by one in order
        of time, and results come in the order of their newest rows (but for ``hosts=`` and
        ``nearest=``).

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> with wj.join(a, b, on=a["k"] == b["k"]).open() as s:
        ...     found = s.push_many({"a": {"t": [1, 30], "k": [7, 7]}, "b": {"t": [5], "k": [7]}})
        >>> found.to_pylist()
        [{'a_t': 1, 'a_k': 7, 'b_t': 5, 'b_k': 7}]
        """
        check_tables(tables, self.query.names)
        if self._sink is not None:
            self._sink.write_due()
        numbers = {name: self._number(name) for name in tables}
        if self._held is not None and self._held.due:
            self._held.tell()
        read = {
            number: as_table(tables[name], name, self._schema(name))
            for name, number in numbers.items()
        }
        given = [(number, read[number]) for number in sorted(read)]
        if self._live is None:
            return self._taken(self._learn(given))
        return self._taken(self._push_together(given))

    @whole
    def advance(self, stream: str, time: Time) -> None:
        """Promise that no row of a stream before ``time`` will come any more.

        ``time``: an integer of the stream's own time column, or a datetime.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> session = q.open()
        >>> _ = session.push("a", {"t": [1, 2], "k": [5, 6]})
        >>> _ = session.push("b", {"t": [1], "k": [9]})
        >>> session.advance("b", 50)  # so no row of a can meet one of b any more
        >>> session.metrics["streams"]["a"]["state_rows"]
        0
        """
        self._promise(self._number(stream), time)

    @whole
    def finish(self, stream: str) -> None:
        """No more rows of a stream will come at all; what waits for it alone may be forgotten.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> session = q.open()
        >>> _ = session.push("a", {"t": [1, 2], "k": [5, 6]})
        >>> session.finish("b")
        >>> session.push("a", {"t": [3], "k": [5]}).num_rows
        0
        """
        self._promise(self._number(stream), END)

    def slowest(self, streams: Iterable[str]) -> str:
        """Of some streams, the one that has come least far, by its newest row or a promise."""
        clocks = self._live.clocks if self._live is not None else None

        def newest(name: str) -> int:
            if clocks is not None:
                clock = clocks[self._numbers[name]]
                return max(clock.newest, clock.promised)
            return self._waiting.batches(self._numbers[name])

        return min(streams, key=newest)

    @whole
    def save(self, path: FilePath, *, position: object = None) -> None:
        """Write all state to a folder, from which `windjoin.restore` goes on, after a crash too.

        What was saved to the same folder before is not written again.  Whenever the process ends,
        the folder holds the last save that was finished, whole.  ``position``: where the sources
        are, to be found in `position` then.  Results of the pushes after a save come again when
        these are pushed again: tables carry the number of their push, `sequence`, as
        ``windjoin.push`` in the metadata of their schema.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> session = q.open()
        >>> _ = session.push("a", {"t": [1, 2], "k": [5, 6]})
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> session.save(folder, position={"a": 2})
        >>> again = wj.restore(q, folder)
        >>> again.position, again.push("b", {"t": [4], "k": [5]}).num_rows
        ({'a': 2}, 1)
        """
        from windjoin.state.saving import save

        self._must_be_open()
        save(self, path, position)

    def settle(self) -> None:
        """Finish clean-ups under way; what they give leaves with the next push."""
        if self._memory is not None:
            self._session_lock.begin()
            for found in self._memory.finish_jobs():
                self._owed.append(self._results(found))
            self._session_lock.refuse()

    def first_needed(self, stream: int) -> int:
        """The arrival number of the first row whose columns results to come may have."""
        assert self._live is not None
        first = self._live.first_needed(stream)
        return first if self._memory is None else self._memory.first_needed(stream, first)

    def clean_up(self, progress: ProgressOption = False) -> Iterator[Results]:
        """The results that rows on disk still owe, as they are found.

        They are also given by later pushes, and all by `close`.  None without ``memory=``.
        ``progress``: a bar, or a function of (done, in all), in rows.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> session = q.open(memory="1GB")
        >>> _ = session.push("a", {"t": [1], "k": [5]})
        >>> [table.num_rows for table in session.clean_up()]
        []
        """
        self._must_be_open()
        if self._memory is None or self._live is None:
            return
        with progress_bar(progress, "cleaning up", "rows") as report:
            for found in self._memory.clean_up(report):
                yield self._leaving(self._results(found), self.sequence)

    @property
    def position(self) -> object:
        """What `save` was given last, before `windjoin.restore` or after.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> session = q.open()
        >>> _ = session.push("a", {"t": [1, 2], "k": [5, 6]})
        >>> session.position is None  # but after `restore`
        True
        """
        return self._position

    @property
    def _known_schemas(self) -> dict[str, pa.Schema]:
        return self._waiting.schemas if self._bound is None else self._bound.schemas

    @whole
    def close(self) -> Results:
        """End the session; the results still to come.

        Without ``hosts`` that is an empty table, as results leave with their last member; but for
        ``nearest=``, which waits until no better partner can come.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> session = q.open()
        >>> _ = session.push("a", {"t": [1, 2], "k": [5, 6]})
        >>> session.close().num_rows, session.closed
        (0, True)
        """
        return self._close(self._live is not None)

    @whole
    def abandon(self) -> None:
        """End the session without the results still to come, which may take long to find."""
        self._close(False)

    @property
    def closed(self) -> bool:
        """Whether nothing can be pushed any more.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> session = q.open()
        >>> _ = session.push("a", {"t": [1, 2], "k": [5, 6]})
        >>> session.closed
        False
        """
        return bool(self._ended)

    def _close(self, flush: bool) -> Results:
        if self._ended:
            return self._nothing()
        self._session_lock.begin()
        results = self._nothing()
        if flush:
            assert self._live is not None
            with AS_OWN_ERRORS:
                last = self._results(self._numbered(self._live.flush()))
                if self._memory is not None:
                    self._owed += map(self._results, self._memory.clean_up())
                results = self._with_owed(last)
            results = self._leaving(results, self.sequence + 1)
        if self._sink is not None:
            self._sink.flush()
        self._ended = CLOSED
        self._let_go()
        return results

    def _let_go(self) -> None:
        """Keep the counters and the rejected rows, and let all else go."""
        if isinstance(self._live, ClusterJoin):
            self._samples = list(self._live.cluster.history.samples)
        if self._live is not None:
            self._live.close()
        if self._memory is not None:
            self._memory.close()
        if self._final is None:
            self._final = self._metrics()
        self._live = self._held = None
        self._stream_inputs = {}
        self._payloads = []
        self._waiting = PendingRows(self.query, self._options.lateness)

    def __enter__(self) -> Session:
        return self

    @whole
    def __exit__(self, *error: object) -> None:
        self._close(self._live is not None and error[0] is None)

    def _refuse_two(self) -> NoReturn:
        raise SessionError(IN_USE)

    @property
    def _broken_off(self) -> str:
        return BROKEN_OFF

    _own_error = staticmethod(own_error)

    def _schema(self, stream: str) -> pa.Schema | None:
        return None if self._bound is None else self._bound.schemas[stream]

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

    def _learn(self, given: list[tuple[int, pa.Table]]) -> Results:
        """Keep the first rows until the schemas of all streams are known, then join them all."""
        waiting, seen = self._waiting, []
        for number, table in given:
            times = waiting.times_of(number, table.schema)
            seen.append((times, *times.split_late(table)))
        waiting.tell()
        for times, ticks, late_split in seen:
            self._late.tell(times.column, times.clock, times.marks, ticks, late_split)
        self._session_lock.begin()
        before = waiting.mark()
        for (number, table), (times, _, late_split) in zip(given, seen, strict=True):
            waiting.add(number, table, times, late_split.newest)
        if not waiting.complete:
            return self._nothing()
        try:
            self._begin(waiting.schemas)
        except Exception:
            waiting.take_back(before)
            self._session_lock.refuse()
            raise
        for number, what in waiting.leave(before):  # nothing of that can be complete
            if not isinstance(what, pa.Table):
                self._promise(number, what)
                continue
            early = self._push(number, what, told=True)
            if not self.query.sides.plain:  # but rows that nothing can match
                self._owed.append(early)
        return self._push_together(given, told=True)

    def _promise(self, number: int, time: Any) -> None:
        if self._live is None or self._bound is None:
            self._session_lock.begin()
            try:
                self._waiting.promise(number, time)
            except WindjoinError:
                self._session_lock.refuse()
                raise
            return
        ticks = INT64_MAX if time is END else self._bound.promise(number, time)
        self._session_lock.begin()
        with AS_OWN_ERRORS:
            self._live.advance(number, ticks)
            found = self._numbered(self._live.catch_up())
            if len(found[0]) or (self._live.outer is not None and self._live.outer.any_left):
                self._owed.append(self._results(found))
            self._expire()

    def _ready(self, number: int, table: pa.Table, told: bool) -> Batch:
        """Rows as they are joined; ``told``: what is to be said of late ones has been said."""
        assert self._live is not None
        assert self._bound is not None
        live, bound = self._live, self._bound
        first = live.windows[number].tail
        prepare = bound.prepare if self._parts is None else self._parts.prepare
        prepared = prepare(number, table, first)
        times = prepared.rows.time
        late_split = live.split_late(number, times, prepared.null_time)
        if late_split.late is not None and not told:
            marks = live.clocks[number]
            self._late.tell(bound.time_column(number), bound.clock, marks, times, late_split)
        return Batch(number, table, prepared, late_split, first)

    def _push(self, number: int, table: pa.Table, told: bool = False) -> Results:
        """Join rows of one stream; ``told``: what is to be said of late ones has been said."""
        assert self._live is not None
        if self._memory is not None and not self._memory.allows(table.num_rows):
            return self._push_within(self._memory, [(number, table)], told)
        stream_input = self._stream_inputs.get(self.query.names[number])
        if stream_input is not None:
            with AS_OWN_ERRORS:
                found = stream_input.through(table, 0, told)
            if found is not None:
                return self._with_owed(found)
        batch = self._ready(number, table, told)
        self._session_lock.begin()
        if self._memory is not None:
            self._memory.came(table.num_rows)
        with AS_OWN_ERRORS:
            self._payloads[number].append(table)
            found = self._live.push(number, batch.prepared.rows, batch.late_split)
            self._reject(batch)
            results = self._with_owed(self._results(found))
            self._expire()
        return results

    def _reject(self, batch: Batch) -> None:
        late, null_time = batch.late_split.late, batch.prepared.null_time
        if late is not None or null_time is not None:
            self._rejected[self.query.names[batch.stream]].add(batch.table, null_time, late)

    def _push_together(self, given: list[tuple[int, pa.Table]], told: bool = False) -> Results:
        """Join rows of several streams in order of time."""
        if len(given) == 1:
            return self._push(*given[0], told)
        live = self._live
        assert live is not None
        if self._memory is not None:
            return self._push_within(self._memory, given, told)
        batches = [self._ready(number, table, told) for number, table in given]
        newest = [live.clocks[batch.stream].newest for batch in batches]
        self._session_lock.begin()
        with AS_OWN_ERRORS:
            for batch in batches:
                self._payloads[batch.stream].append(batch.table)
            alone = isinstance(live, LiveJoin)  # hosts join what has come to the end of a segment
            parts = stretches(batches, newest) if alone else whole_batches(batches)
            found = [live.push(*part.rows()) for part in parts]
            for batch in batches:
                self._reject(batch)
            if not found:
                return self._with_owed(self._nothing())
            together = joined(found)
            if len(found) > 1 and alone and self.query.nearest is None:
                together = by_time(together, batches)
            results = self._with_owed(self._results(together))
            self._expire()
        return results

    def _push_within(
        self, memory: Keeper, given: list[tuple[int, pa.Table]], told: bool
    ) -> Results:
        """Join rows of streams in order of time, within the memory there is."""
        live = self._live
        assert live is not None
        batches = [self._ready(number, table, told) for number, table in given]
        newest = [live.clocks[batch.stream].newest for batch in batches]
        self._session_lock.begin()
        with AS_OWN_ERRORS:
            for batch in batches:
                self._payloads[batch.stream].append(batch.table)
            alone = isinstance(live, LiveJoin)
            parts = stretches(batches, newest) if alone else whole_batches(batches)
            for part in parts:
                memory.make_room(part.stop - part.start)
                found = live.push(*part.rows())
                memory.count(found)
                if len(found[0]):
                    self._owed.append(self._results(memory.results(found)))
                self._expire()
            for batch in batches:
                self._reject(batch)
            for found in memory.after_push(sum(len(batch.table) for batch in batches)):
                self._owed.append(self._results(found))
            self._expire()
        return self._with_owed(self._nothing())

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

    def _numbered(self, found: list[Any]) -> list[Any]:
        """Results by arrival numbers, which are not those in the windows once rows have left."""
        return found if self._memory is None else self._memory.results(found)

    def _results(self, found: list[Any]) -> Results:
        """``found``: row numbers of every stream, and scores."""
        if isinstance(self._live, ClusterJoin) and self._resizing is not None:
            found = self._resizing.only_results(found)
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

    # -- hosts -----------------------------------------------------------------------------------

    @property
    def hosts(self) -> list[int]:
        """Numbers of the hosts that take work.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> import pyarrow as pa
        >>> schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
        >>> session = q.open(schemas={"a": schema, "b": schema}, hosts=2)
        >>> session.hosts
        [0, 1]
        """
        return self._cluster().open_hosts

    @whole
    def add_host(self, speed: float = 1.0) -> int:
        """One more host shares the work, of that speed against the first ones; its number.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> import pyarrow as pa
        >>> schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
        >>> session = q.open(schemas={"a": schema, "b": schema}, hosts=2)
        >>> session.add_host(), session.hosts
        (2, [0, 1, 2])
        """
        cluster = self._cluster()
        with self._refusing():
            return cluster.add_host(speed)

    @whole
    def remove_host(self, number: int, *, lost: bool = False) -> None:
        """A host leaves once others have what they need of it; or it is ``lost`` at once.

        What a lost host held is read again from the windows: no result is lost.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> import pyarrow as pa
        >>> schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
        >>> session = q.open(schemas={"a": schema, "b": schema}, hosts=2)
        >>> session.remove_host(1)
        >>> session.hosts
        [0]
        """
        cluster = self._cluster()
        with self._refusing():
            cluster.remove_host(number, lost=lost)

    @whole
    def set_window(self, stream: str, length: Length, *, at: Time | None = None) -> None:
        """Let the window of a stream have another length, from a time on.

        ``length``: as in `windjoin.stream`.  ``at``: a time of that stream, as in `advance`, that
        no row has come to; right after the newest row of all streams if not given.  Results whose
        newest row is at that time or later are those of the new window, others those of the old
        one.  What has left a window by then does not come back when it becomes longer.

        >>> import windjoin as wj, pyarrow as pa
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
        >>> with wj.join(a, b, on=a["k"] == b["k"]).open({"a": schema, "b": schema}) as s:
        ...     _ = s.push("a", {"t": [1, 2], "k": [7, 8]})
        ...     s.set_window("a", 3, at=6)
        ...     s.push("b", {"t": [5, 6], "k": [7, 8]}).num_rows
        1
        """
        number = self._number(stream)
        if self._memory is not None:
            raise SessionError("set_window is not for sessions with memory=")
        live, ticks, when = change_of(self._live, self._bound, self.query, number, length, at)
        if self._resizing is None:
            self._resizing = Resizing(live)
        self._resizing.check(self.query.names[number], number, at, when)
        self._session_lock.begin()
        with AS_OWN_ERRORS:
            self._resizing.add(number, when, ticks)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """What a router does not want is as if it had not been asked."""
        self._session_lock.begin()
        try:
            yield
        except ClusterError as error:
            if isinstance(error.__cause__, RoutingError):
                self._session_lock.refuse()
            raise

    def _cluster(self) -> ClusterJoin:
        self._must_be_open()
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

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> with q.open(on_late="keep") as session:
        ...     for t in (20, 3):
        ...         _ = session.push("a", {"t": [t], "k": [5]})
        ...     _ = session.push("b", {"t": [20], "k": [5]})
        >>> session.rejected["a"].to_pylist()
        [{'t': 3, 'k': 5, 'windjoin_reason': 'late'}]
        """
        return {name: rejected.table() for name, rejected in self._rejected.items()}

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

    def report(self, path: FilePath | None = None) -> Report:
        """What the session has done so far, drawn: text by ``print``, a page in a notebook.

        With ``hosts``: loads and shares of the hosts, segment length, master, borders of the ring,
        results and latency over time.  ``path``: also written there, as .txt, .html or .png.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> with wj.join(a, b, on=a["k"] == b["k"]).open() as s:
        ...     _ = s.push("a", {"t": [1], "k": [5]}), s.push("b", {"t": [2], "k": [5]})
        ...     print(s.report())  # doctest: +ELLIPSIS
        windjoin: a x b
          rows: 2
          results: 1
          state: ... MB
        """
        history = getattr(self._live, "cluster", None)
        samples = self._samples if history is None else list(history.history.samples)
        drawn = report_of(cast(dict[str, Any], self.metrics), samples, self.query.names)
        if path is not None:
            drawn.save(os.fspath(path))
        return drawn

    @property
    def metrics(self) -> SessionMetrics:
        """Counters since the session was opened, in all and per stream.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> with wj.join(a, b, on=a["k"] == b["k"]).open() as s:
        ...     _ = s.push("a", {"t": [1, 2], "k": [7, 8]})
        >>> s.metrics["rows_in"], s.metrics["streams"]["b"]["rows_in"]
        (2, 0)
        """
        counts = self._metrics() if self._final is None else self._final
        return cast(SessionMetrics, Counters(counts))

    @overload
    def explain(self, format: Literal["text"] = "text") -> Explanation: ...

    @overload
    def explain(self, format: Literal["json"]) -> dict[str, object]: ...

    def explain(self, format: Literal["text", "json"] = "text") -> Explanation | dict[str, object]:
        """The plan: for rows of every stream, the order in which they probe the other windows.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> session = q.open()
        >>> _ = session.push("a", {"t": [1, 2], "k": [5, 6]})
        >>> print(session.explain().splitlines()[0])
        windowed join of 2 streams, closed='both'
        """
        data = as_data(self.query, None)
        if self._live is not None:
            live = self._live
            data["orders"] = [
                order_as_data(live.spec, order, one.measured()) for order, one in live.plans()
            ]
            data["kept_as"] = [names_of(live.structures(order)) for order, _ in live.plans()]
            data["keys"] = keys_as_data(live.spec, live.close_spaces)
            data["processor"] = isa()
            data["cluster"] = live.report()
            data["memory"] = None if self._memory is None else self._memory.explained()
            data["order"] = data["orders"][0] if data["orders"] else None
            data["replanned"] = live.replanned
            if isinstance(live, LiveJoin) and self._bound is not None and self._parts is None:
                data["measured"] = measured(live, self._bound, self.sequence, self._options.plan)
        for number, stream in enumerate(data["streams"]):
            idle = self._idle[number]
            stream["idle"] = None if idle is None else str(idle)
            stream["idle_now"] = self._is_idle(number)
            if self._live is not None and self._bound is not None:
                stream["as_they_lie"] = self._bound.as_they_lie(number)
                stream["in_blocks"] = self._live.in_blocks(number)
        if format not in ("text", "json"):
            raise QueryError(f'format={format!r}: explain gives format="text" or format="json"')
        return data if format == "json" else Explanation(as_text(data), data)

    def __repr__(self) -> str:
        counts = self.metrics
        state = "open" if self._final is None else "ended"
        return (
            f"<Session of {', '.join(self.query.names)}: {state}, {counts['rows_in']:,} rows in,"
            f" {counts['results']:,} results>"
        )

    def _repr_html_(self) -> str:
        return query_html(self.query) + metrics_html(self.metrics)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a session does not pickle: it has windows and indexes of this process;"
            ' save it with session.save("folder") and go on with windjoin.restore(query, "folder")'
        )

    def _is_idle(self, number: int) -> bool:
        silence = None if self._live is None else self._live.silence
        return silence is not None and silence.silent(number)

    def _metrics(self) -> dict[str, Any]:
        streams = {name: self._stream_metrics(name) for name in self.query.names}
        total = {
            name: sum(stream[name] for stream in streams.values())
            for name in next(iter(streams.values()))
            if name not in ("state_rows", "state_bytes", "idle", *NOTHING)
        }
        total["results"] = self._live.results if self._live is not None else 0
        if self._resizing is not None:
            total["results"] -= self._resizing.dropped
        if self._memory is not None:
            total["results"] += self._memory.owing.cleaned
            total["memory"] = self._memory.metrics()
        if self._sink is not None:
            total["sink"] = self._sink.metrics()
        hosts = self._live.report() if self._live is not None else None
        cluster: dict[str, Any] = {}
        if self._live is not None and hosts is not None:
            cluster = {"cluster": hosts, "hosts": self._live.hosts()}
        return {**total, "state_bytes": self.state_bytes, **cluster, "streams": streams}

    def _stream_metrics(self, name: str) -> dict[str, Any]:
        number = self._numbers[name]
        if self._live is None:
            nothing = dict.fromkeys(COUNTED, 0) | {"idle": False, **NOTHING}
            return {"rows_in": self._waiting.rows(number)} | nothing
        counts, window = self._live.counts[number], self._live.windows[number]
        null_time = self._rejected[name].null_time
        results, comparisons = self._live.done_by(number)
        assert self._held is not None
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
            "idle": self._is_idle(number),
            **self._held.gauge(number),
        }


def numbered(results: Results, sequence: int) -> Results:
    """Results that say with which push they left."""
    if not sequence or isinstance(results, dict) or not results.num_rows:
        return results
    told: Any = {SEQUENCE: str(sequence)}
    made: Any = pa.KeyValueMetadata(**told)
    return results.replace_schema_metadata(made)


def _united(first: list[list[str]], second: list[list[str]]) -> list[list[str]]:
    return [list(dict.fromkeys([*a, *b])) for a, b in zip(first, second, strict=True)]
