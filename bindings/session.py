"""A continuous join in this process: push rows, get the results they complete."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, NoReturn, cast

import pyarrow as pa
from windjoin.clustered import ClusterJoin
from windjoin.errors import QueryError, SessionError
from windjoin.given import FilePath, Out, Tables, Time
from windjoin.inputs import as_table
from windjoin.kernel_errors import AS_OWN_ERRORS, own_error
from windjoin.own_times import END
from windjoin.progress import ProgressOption, check_progress, progress_bar
from windjoin.push_many import check_tables
from windjoin.pyx.live.session_base import whole
from windjoin.query import Query
from windjoin.session_changes import ChangingSession
from windjoin.session_state import Results, SessionOptions
from windjoin.sinks import EVERY_ROWS, ParquetSink, new_sink
from windjoin.waiting import PendingRows

IN_USE = "this session is in use by another thread; push from one thread at a time"
CLOSED = "this session is closed; open a new one with Query.open"
BROKEN_OFF = (
    "this session ended when a push into it was broken off: results may be missing;"
    " open a new one with Query.open"
)


class Session(ChangingSession, Generic[Out]):
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
        super().__init__(query, options)
        if schemas is not None:
            self._begin(schemas)

    # -- pushing ---------------------------------------------------------------------------------

    if TYPE_CHECKING:  # compiled, where it cannot say what comes back

        def push(self, stream: str, rows: object) -> Out: ...

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
    def push_many(self, tables: Tables) -> Out:
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
            return cast(Out, self._taken(self._learn(given)))
        return cast(Out, self._taken(self._push_together(given)))

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
        save(cast(Any, self), path, position)

    def settle(self) -> None:
        """Finish clean-ups under way; what they give leaves with the next push."""
        if self._memory is not None:
            self._session_lock.begin()
            for found in self._memory.finish_jobs():
                self._owed.append(self._results(found))
            self._session_lock.refuse()

    def clean_up(self, progress: ProgressOption = False) -> Iterator[Out]:
        """The results that rows on disk still owe, as they are found.

        They are also given by later pushes, and all by `close`.  None without ``memory=``.  Leaving
        the loop is fine; an error or an interrupt in it ends the session, as in a push.
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
        check_progress(progress)
        if self._memory is None or self._live is None:
            return
        with progress_bar(progress, "cleaning up", "rows") as report:
            finding = self._memory.clean_up(report)
            while (results := self._next_owed(finding)) is not None:
                yield results

    @whole
    def _next_owed(self, finding: Iterator[list[Any]]) -> Out | None:
        """The next results of a clean-up; an error ends the session, as nothing is done again."""
        if self._ended:  # closed by whoever iterates, and all was given there
            return None
        self._session_lock.begin()
        found = next(finding, None)
        if found is None:
            return None
        return cast(Out, self._leaving(self._results(found), self.sequence))

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
    def close(self, progress: ProgressOption = False) -> Out:
        """End the session; the results still to come.

        Without ``hosts`` that is an empty table, as results leave with their last member; but for
        ``nearest=``, which waits until no better partner can come, and ``memory=``, for rows on
        disk.  ``progress``: a bar for these, or a function of (done, in all), in rows.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> session = q.open()
        >>> _ = session.push("a", {"t": [1, 2], "k": [5, 6]})
        >>> session.close().num_rows, session.closed
        (0, True)
        """
        check_progress(progress)
        self._check_alone()
        return cast(Out, self._close(self._live is not None, progress))

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

    def _close(self, flush: bool, progress: ProgressOption = False) -> Results:
        if self._ended:
            return self._nothing()
        self._session_lock.begin()
        results = self._nothing()
        if flush:
            assert self._live is not None
            with AS_OWN_ERRORS:
                last = self._results(self._numbered(self._live.flush()))
                if self._memory is not None:
                    with progress_bar(progress, "cleaning up", "rows") as report:
                        self._owed += map(self._results, self._memory.clean_up(report))
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
        self._waiting = PendingRows(self.query, self._options.lateness, self.rows_only)

    def __enter__(self) -> Session[Out]:
        return self

    @whole
    def __exit__(self, *error: object) -> None:
        try:
            if error[0] is None:
                self._check_alone()
        except SessionError:
            self._close(False)
            raise
        self._close(self._live is not None and error[0] is None)

    def _check_alone(self) -> None:
        """`SessionError` if rows that wait for schemas would be left out in silence."""
        if self._live is None and not self._ended:
            self._waiting.check_alone()

    def _refuse_two(self) -> NoReturn:
        raise SessionError(IN_USE)

    @property
    def _broken_off(self) -> str:
        return BROKEN_OFF

    _own_error = staticmethod(own_error)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a session does not pickle: it has windows and indexes of this process;"
            ' save it with session.save("folder") and go on with windjoin.restore(query, "folder")'
        )
