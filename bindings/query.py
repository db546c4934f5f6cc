"""A query: streams, a conjunction of predicates, and what comes out; checked as it is built."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast, overload

from windjoin.asof import Direction
from windjoin.errors import QueryError
from windjoin.expressions import Expression
from windjoin.given import (
    FilePath,
    Length,
    Metrics,
    OpenOptions,
    SessionChoices,
    TableOptions,
    Tables,
)
from windjoin.hows import INNER, Sides
from windjoin.notebook import Counters, Explanation, query_html
from windjoin.runs import Runs, StretchesRun, nothing_run
from windjoin.streams import Stream

if TYPE_CHECKING:
    import pyarrow as pa
    from windjoin.aiterate import AsyncIteration
    from windjoin.binding import BoundQuery
    from windjoin.iterate import Iteration
    from windjoin.kernels.spec import I64
    from windjoin.late import OnLate
    from windjoin.memory import Adaptation, Memory, OnFull
    from windjoin.planner import Plan
    from windjoin.progress import ProgressOption
    from windjoin.session import Session
    from windjoin.shedding import Shedding
    from windjoin.tuning import Tuning

Closed = Literal["both", "right"]


@dataclass(frozen=True, eq=False, repr=False)
class Query:
    """A windowed join of streams; made by `join`.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="ts", window="10s") for name in ("a", "b"))
    >>> wj.join(a, b, on=a["k"] == b["k"], how="left")
    join(
        stream('a', time='ts', window='10s'),
        stream('b', time='ts', window='10s'),
        on=[a["k"] == b["k"]],
        how='left',
    )
    """

    streams: tuple[Stream, ...]
    on: tuple[Expression, ...]
    select: tuple[Expression, ...] | None = None
    closed: Closed = "both"
    exclude_self: tuple[tuple[int, int], ...] = ()  # pairs of stream numbers, lower first
    nearest: int | None = None
    runs: Runs = field(default_factory=Runs, init=False, repr=False)
    sides: Sides = INNER  # which rows come out
    direction: Direction | None = None  # in which ``nearest`` looks in time

    @property
    def names(self) -> tuple[str, ...]:
        """The streams' names, in order.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> q.names
        ('a', 'b')
        """
        return tuple(stream.name for stream in self.streams)

    @property
    def given(self) -> tuple[str, ...]:
        """The streams whose rows come out: all, but for ``semi``, ``anti``, exists=, missing=.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> wj.join(a, b, on=a["k"] == b["k"], how="anti").given
        ('a',)
        """
        return tuple(self.names[s] for s in self.sides.given(len(self.streams)))

    def bind(self, schemas: Mapping[str, pa.Schema]) -> BoundQuery:
        """Check the query against the columns and types of its streams' data.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> import pyarrow as pa
        >>> schema = pa.schema([("t", pa.int64()), ("k", pa.string())])
        >>> q.bind({"a": schema, "b": schema}).schema.names
        ['a_t', 'a_k', 'b_t', 'b_k']
        """
        from windjoin.binding import BoundQuery

        return BoundQuery(self, schemas)

    def run(
        self,
        tables: Tables,
        *,
        threads: int | None = None,
        hosts: int | None = None,
        strategy: str = "auto",
        segment: Length | None = None,
        progress: ProgressOption = False,
        ordered: bool = False,
        weights: Sequence[float] | None = None,
        tuning: Tuning | None = None,
        memory: int | str | Memory | None = None,
        spill: FilePath | None = None,
        on_full: OnFull = "spill",
        output: FilePath | None = None,
    ) -> pa.Table:
        """Join whole tables in this process.

        ``tables``: for each stream anything with ``__arrow_c_stream__`` (pyarrow, polars, pandas,
        DuckDB), a dictionary of columns, or files: a path, a folder, a pattern, a URI, a dataset, a
        lazy frame.
        ``threads``: None takes what pays.
        ``hosts``: so many hosts in this process, each a thread with a part of the rows, do what
        ``strategy`` says: "auto", "atr", "ctr", "psp", "groups" or "single"; to compare with, also
        "atr-fixed", "ctr-random", and "random", which loses results and says how many.
        ``segment``: the length of time that is routed as one; by default what suits.
        ``weights``: of (processor, memory, network) in a host's load, which is measured.
        ``tuning``: more that hosts can be told; see `Tuning`.
        ``progress``: a bar, or a function of (done, in all).
        ``ordered``: results by their time, then by their members (time, row) stream by stream.
        ``memory``, ``spill``, ``on_full``: join in stretches of time, read as they are needed,
        within so much memory; see `open`.
        ``output``: a Parquet, Arrow, CSV or JSON-lines file that results are written to as they
        come, or "-", standard output; its path is then what comes back.

        >>> import windjoin as wj
        >>> calls = wj.stream("calls", time="t", window=10)
        >>> trades = wj.stream("trades", time="t", window=10)
        >>> q = wj.join(calls, trades, on=calls["who"] == trades["who"])
        >>> q.run({
        ...     "calls": {"t": [1, 20], "who": ["ann", "bob"]},
        ...     "trades": {"t": [5, 50], "who": ["ann", "bob"]},
        ... }).to_pylist()
        [{'calls_t': 1, 'calls_who': 'ann', 'trades_t': 5, 'trades_who': 'ann'}]
        """
        from windjoin.run import RunOptions, run

        bounded = memory is not None or spill is not None or on_full != "spill"
        if bounded or output is not None:
            from windjoin.streamed import Bounds, refuse_others, run_streamed

            refuse_others(
                threads=threads, hosts=hosts, strategy=None if strategy == "auto" else strategy,
                segment=segment, ordered=ordered or None, weights=weights, tuning=tuning,
            )  # fmt: skip
            bounds = Bounds(memory, spill, on_full)
            streamed: pa.Table = run_streamed(self, tables, bounds, output, progress)
            return streamed
        options = RunOptions(threads, hosts, strategy, segment, progress, ordered, weights, tuning)
        table, done = run(self, tables, options)
        self.runs.add(done)
        return table

    def stream(
        self,
        tables: Tables,
        *,
        memory: int | str | Memory | None = None,
        spill: FilePath | None = None,
        on_full: OnFull = "spill",
        progress: ProgressOption = False,
    ) -> Iterator[pa.RecordBatch]:
        """Join tables larger than memory: record batches of results, as they are found.

        ``tables``: as in `run`.  They are read as the streams come on, the columns and row groups
        that are needed.  Row groups of Parquet may overlap in time and rows within them be in any
        order; other files are in order of time, or sorted within ``memory``.
        ``memory``, ``spill``, ``on_full``: as in `open`; without, the windows are what is held.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> rows = {"t": [1, 5], "k": [7, 8]}
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> sum(batch.num_rows for batch in q.stream({"a": rows, "b": rows}))
        2
        """
        from windjoin.streamed import streamed

        return streamed(self, tables, memory, spill, on_full, progress)

    def indices(
        self,
        tables: Tables,
        *,
        threads: int | None = None,
        hosts: int | None = None,
        strategy: str = "auto",
        segment: Length | None = None,
        progress: ProgressOption = False,
        ordered: bool = False,
        weights: Sequence[float] | None = None,
        tuning: Tuning | None = None,
    ) -> dict[str, I64]:
        """Row numbers of the members of every result, and no payload; arguments as in `run`.

        For each stream whose rows come out an int64 array; -1 stands for none where a row of
        another stream comes out without a partner (``how=``, ``keep=``).

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["x"] < b["x"])
        >>> q.indices({"a": {"t": [1, 2], "x": [5, 9]}, "b": {"t": [3], "x": [7]}})
        {'a': array([0]), 'b': array([0])}
        """
        from windjoin.run import RunOptions, indices

        options = RunOptions(threads, hosts, strategy, segment, progress, ordered, weights, tuning)
        rows, done = indices(self, tables, options)
        self.runs.add(done)
        return rows

    @overload
    def open(
        self,
        schemas: Mapping[str, pa.Schema] | None = None,
        *,
        rows_only: Literal[True],
        **options: Unpack[SessionChoices],
    ) -> Session[dict[str, I64]]: ...

    @overload
    def open(
        self,
        schemas: Mapping[str, pa.Schema] | None = None,
        *,
        rows_only: Literal[False] = False,
        **options: Unpack[SessionChoices],
    ) -> Session: ...

    def open(
        self,
        schemas: Mapping[str, pa.Schema] | None = None,
        *,
        lateness: Length = 0,
        rows_only: bool = False,
        keep_rejected: int = 10_000,
        hosts: int | None = None,
        strategy: str = "auto",
        segment: Length | None = None,
        ordered: bool = False,
        on_late: OnLate = "warn",
        idle: Length | None = None,
        clock: Callable[[], float] = monotonic,
        weights: Sequence[float] | None = None,
        tuning: Tuning | None = None,
        memory: int | str | Memory | None = None,
        spill: FilePath | None = None,
        on_full: OnFull = "spill",
        adaptation: Adaptation | None = None,
        shed: Shedding | None = None,
        plan: Plan | None = None,
        pin: bool = False,
    ) -> Session | Session[dict[str, I64]]:
        """A continuous join: push rows as they come, get the results they complete.

        ``schemas``: learned from the first push of every stream if not given.
        ``lateness``: how far behind the newest row of its stream a row may be.
        ``rows_only``: results are arrival numbers (0, 1, ... per stream); no payload is kept.
        ``keep_rejected``: rejected rows of each stream that are kept to be looked at.
        ``hosts``, ``strategy``, ``segment``, ``weights``, ``tuning``: as in `run`.  A result then
        leaves when all streams have come past the end of its segment; `Session.close` returns
        what is left.
        ``ordered``: with ``hosts``, results by their time, then by the row that completes them.
        ``on_late``: late rows are counted and kept in `Session.rejected`; "warn" tells of the first
        of every stream, with the ``lateness`` that would have kept it, "keep" says nothing, and
        "raise" refuses a push that has any, whole.
        ``idle``: a stream that has sent nothing for that long on the clock, such as "30s", does
        not hold others back any more: it counts as having come as far as the last of those that are
        not idle, and what it sends later is late if it is before that.  Streams may have an
        ``idle`` of their own.  ``clock`` tells the seconds.
        ``memory``: a bound on what is held, such as "2GB", or a `Memory`.  What does not fit goes
        to files in the folder ``spill``, and the results that it owes come later, from pushes,
        `Session.clean_up` or `Session.close`; with ``on_full="error"`` pushes are refused then, and
        with ``on_full="shed"`` the oldest rows are dropped, which is counted and told of once.
        ``adaptation``: with ``hosts=``, how these share what memory there is: "lazy", "active" or
        "none"; see `Memory`.
        ``shed``: a `Shedding` that says how much work there may be; what is more is left out.
        ``plan``: a plan of `windjoin.plan` to begin with, its orders, indexes and hosts; they are
        chosen anew when rows turn out to be other ones, but for ``pin=True``, which keeps to it.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> with q.open(lateness=2) as session:
        ...     _ = session.push("a", {"t": [1], "k": [5]})
        ...     session.push("b", {"t": [3, 2], "k": [6, 5]}).num_rows
        1
        """
        from windjoin.session import Session
        from windjoin.session_state import SessionOptions

        options = SessionOptions(
            lateness=lateness,
            rows_only=rows_only,
            keep_rejected=keep_rejected,
            hosts=hosts,
            strategy=strategy,
            segment=segment,
            ordered=ordered,
            on_late=on_late,
            idle=idle,
            clock=clock,
            weights=weights,
            tuning=tuning,
            memory=memory,
            spill=spill,
            on_full=on_full,
            adaptation=adaptation,
            plan=plan,
            pin=pin,
        )
        if plan is not None or pin:
            from windjoin.planned import with_plan

            options = with_plan(self, options, shed)
        if shed is None:
            return Session(self, schemas, options)
        from windjoin.shedding_session import SheddingSession

        return SheddingSession(self, schemas, options, shed)

    @overload
    def iterate(
        self,
        sources: Mapping[str, Iterable[object]],
        *,
        batch_rows: int | None = None,
        rows_only: Literal[True],
        **options: Unpack[TableOptions],
    ) -> Iteration[dict[str, I64]]: ...

    @overload
    def iterate(
        self,
        sources: Mapping[str, Iterable[object]],
        *,
        batch_rows: int | None = None,
        rows_only: Literal[False] = False,
        **options: Unpack[TableOptions],
    ) -> Iteration[pa.Table]: ...

    def iterate(
        self,
        sources: Mapping[str, Iterable[object]],
        *,
        batch_rows: int | None = None,
        **options: Unpack[OpenOptions],
    ) -> Iteration[pa.Table] | Iteration[dict[str, I64]]:
        """Join iterables of batches; every batch that completes results yields their table.

        The next batch is taken from the stream that has come least far, so that windows stay
        small.  ``batch_rows``: as long as a source has its next batch at hand (within 2 ms), small
        ones are joined together, until they have so many rows.  ``options``: those of `open`.  The
        iterator has ``metrics``, ``rejected``, ``advance`` and ``close``, and is a context manager.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> batches = [{"t": [1], "k": [5]}, {"t": [9], "k": [6]}]
        >>> [table.num_rows for table in q.iterate({"a": batches, "b": batches})]
        [1, 1]
        """
        from windjoin.iterate import Iteration, check_batch_rows, check_sources

        check_sources(self.names, sources, "__iter__")
        check_batch_rows(batch_rows)
        return Iteration(cast(Any, self.open)(**options), sources, batch_rows)

    @overload
    def aiterate(
        self,
        sources: Mapping[str, AsyncIterable[object]],
        *,
        batch_rows: int | None = None,
        rows_only: Literal[True],
        **options: Unpack[TableOptions],
    ) -> AsyncIteration[dict[str, I64]]: ...

    @overload
    def aiterate(
        self,
        sources: Mapping[str, AsyncIterable[object]],
        *,
        batch_rows: int | None = None,
        rows_only: Literal[False] = False,
        **options: Unpack[TableOptions],
    ) -> AsyncIteration[pa.Table]: ...

    def aiterate(
        self,
        sources: Mapping[str, AsyncIterable[object]],
        *,
        batch_rows: int | None = None,
        **options: Unpack[OpenOptions],
    ) -> AsyncIteration[pa.Table] | AsyncIteration[dict[str, I64]]:
        """`iterate` for asynchronous iterables: ``async for table in q.aiterate(...)``.

        Batches are joined as they arrive, whichever stream they are of; with ``batch_rows`` all
        that are there without waiting are joined together, up to about so many rows.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> async def source(times):
        ...     for t in times:
        ...         yield {"t": [t], "k": [5]}
        >>> async def results():
        ...     sources = {"a": source([1]), "b": source([2])}
        ...     return [table.num_rows async for table in q.aiterate(sources)]
        >>> import asyncio
        >>> asyncio.run(results())
        [1]
        """
        from windjoin.aiterate import AsyncIteration
        from windjoin.iterate import check_batch_rows, check_sources

        check_sources(self.names, sources, "__aiter__")
        check_batch_rows(batch_rows)
        return AsyncIteration(cast(Any, self.open)(**options), sources, batch_rows)

    @overload
    def explain(self, format: Literal["text"] = "text") -> Explanation: ...

    @overload
    def explain(self, format: Literal["json"]) -> dict[str, object]: ...

    def explain(self, format: Literal["text", "json"] = "text") -> Explanation | dict[str, object]:
        """The plan and why: streams, windows, order of probing, index per step, filters.

        After a `run`: with the rows measured at each step beside those expected.  As text, or
        with ``format="json"`` as dictionaries and lists that ``json.dumps`` takes.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> _ = q.run({"a": {"t": [1], "k": [5]}, "b": {"t": [2], "k": [5]}})
        >>> print(q.explain())  # doctest: +ELLIPSIS
        windowed join of 2 streams, closed='both'
          a: time t, window 10
            rows are taken as they lie
          b: time t, window 10
            rows are taken as they lie
        on
          a["k"] == b["k"]
        order: from every row of a
          1. b through hash lists for a["k"] == b["k"]
             kept as CsrPostings
             because ...
             expected 1 partial results ask, ...
             measured 1 partial results ask, 1 rows proposed, 1 kept
        keys of a["k"] == b["k"] lie close together: found in an array
        processor: ...
        threads: 1
        results: 1
        """
        from windjoin.explain import as_data, as_text

        if format not in ("text", "json"):
            raise QueryError(f'format={format!r}: explain gives format="text" or format="json"')
        shown = self.runs.shown()
        data = shown.explained if isinstance(shown, StretchesRun) else as_data(self, shown)
        return data if format == "json" else Explanation(as_text(data), data)

    def __repr__(self) -> str:
        from windjoin.query_text import query_code

        return query_code(self)

    def _repr_html_(self) -> str:
        return query_html(self)

    @property
    def metrics(self) -> Metrics:
        """Counters of the last `run`, `indices` or `stream`, of this thread's if it has run any.

        Of a run in stretches of time (``memory=``, ``output=``, `stream`) they are those of the
        rows that were read: ``unread`` are those that statistics of files have excluded.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> _ = q.run({"a": {"t": [1], "k": [5]}, "b": {"t": [2], "k": [5]}})
        >>> print(q.metrics)
        rows_in 2, results 1, rejected 0, comparisons 1, threads 1
          a: rows_in 1, joinable 1, rejected 0
          b: rows_in 1, joinable 1, rejected 0
        """
        last = self.runs.shown()
        counts = nothing_run(self.names) if last is None else last.metrics()
        return cast(Metrics, Counters(counts))

    @property
    def rejected(self) -> dict[str, I64]:
        """Row numbers that the last `run` or `indices` could not join, having no time.

        Of a run in stretches of time such rows are only counted, in `metrics`.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> tables = {"a": {"t": [1, 2], "k": [5, 6]}, "b": {"t": [3, None], "k": [5, 5]}}
        >>> _ = q.run(tables)
        >>> q.rejected["b"]
        array([1])
        """
        last = self.runs.shown()
        return {} if last is None else dict(last.rejected)


def check_query(query: object, of: str) -> None:
    """Refuse what is no query where ``of`` takes one."""
    if not isinstance(query, Query):
        raise QueryError(
            f"{of} got {query!r} where a query is expected; make one with windjoin.join"
        )
