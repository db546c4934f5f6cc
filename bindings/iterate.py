"""Join iterables of batches as they come, also asynchronous ones."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Generator, Iterable, Mapping
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from windjoin.errors import InputError, QueryError, quoted
from windjoin.given import Out, SessionMetrics, Time

if TYPE_CHECKING:
    from asyncio import Future, Task

    import pyarrow as pa
    from windjoin.session import Session
    from windjoin.session_state import Results

Sources = Mapping[str, Iterable[object]]
AsyncSources = Mapping[str, AsyncIterable[object]]
Made = TypeVar("Made")
END = object()  # instead of a batch
AHEAD = 0.002  # seconds: a source that gives batches more slowly is joined as they come


def check_sources(names: tuple[str, ...], sources: Any, needed: str) -> None:
    """Refuse sources that are not iterables (``needed``: by which method), one for each stream."""
    if not isinstance(sources, Mapping) or set(sources) != set(names):
        given = quoted(map(str, sources)) if isinstance(sources, Mapping) else repr(sources)
        raise QueryError(
            f"sources: got {given}; give one iterable of batches for each of {quoted(names)}"
        )
    for name, source in sources.items():
        if not hasattr(source, needed) or _is_batch(source):
            hint = "; for one batch a list of it: [batch]" if _is_batch(source) else ""
            raise QueryError(
                f"sources[{name!r}] is a {type(source).__name__}; give an"
                f" {'asynchronous ' if needed == '__aiter__' else ''}iterable of batches{hint}"
            )


def _is_batch(source: object) -> bool:
    """Whether a source is a table itself, of which Python would iterate over columns or letters."""
    if isinstance(source, (str, bytes, Path, Mapping)):
        return True
    return hasattr(source, "__arrow_c_stream__") and not hasattr(source, "__next__")


def check_batch_rows(batch_rows: Any) -> None:
    """Refuse what is not a number of rows."""
    whole = isinstance(batch_rows, int) and not isinstance(batch_rows, bool)
    if batch_rows is not None and (not whole or batch_rows < 1):
        raise QueryError(
            f"batch_rows={batch_rows!r}: give how many rows are joined together at most, 1 or"
            " more, or None to join each batch as it comes"
        )


def _any(results: Results) -> bool:
    return len(next(iter(results.values())) if isinstance(results, dict) else results) > 0


class _Joining:
    """A session that is fed from sources, as it is seen while that goes on and afterwards."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def metrics(self) -> SessionMetrics:
        """Counters so far, in all and per stream, as `Session.metrics` has them."""
        return self._session.metrics

    @property
    def rejected(self) -> dict[str, pa.Table]:
        """Rows that could not be joined so far, as `Session.rejected` has them."""
        return self._session.rejected

    def advance(self, stream: str, time: Time) -> None:
        """Promise that no row of a stream before ``time`` will come any more."""
        self._session.advance(stream, time)

    def _join(self, name: str, batch: Any) -> Results | None:
        """Results that a batch, or the end of a stream, completes; None: there are none."""
        if batch is END:
            self._session.finish(name)
            return None
        results = self._session.push(name, batch)
        return results if _any(results) else None

    def _join_all(self, batches: Iterable[tuple[str, Any]]) -> Results | None:
        """Results of several batches, and ends of streams, joined together."""
        come: dict[str, list[Any]] = {}
        for name, batch in batches:
            come.setdefault(name, []).append(batch)
        ended = [name for name, parts in come.items() if parts[-1] is END]
        rows = {
            name: one_table([part for part in parts if part is not END], name)
            for name, parts in come.items()
            if parts[0] is not END
        }
        if len(rows) == 1:
            results = self._session.push(*next(iter(rows.items())))
        else:
            results = self._session.push_many(rows)
        for name in ended:
            self._session.finish(name)
        return results if _any(results) else None

    def _last(self) -> Results | None:
        """What is still to come when all sources have ended."""
        results = self._session.close()
        return results if _any(results) else None


class Iteration(_Joining, Generic[Out]):
    """What `Query.iterate` returns: an iterator of results, and what there is to know of them.

    It ends with its sources, or when it is closed; an error ends it, too.  Dropping it half-way, or
    leaving it as a context manager, closes it.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> batches = [{"t": [1], "k": [5]}, {"t": [2], "k": [6]}]
    >>> with wj.join(a, b, on=a["k"] == b["k"]).iterate({"a": batches, "b": batches}) as results:
    ...     first = next(results)
    >>> first.to_pylist(), results.metrics["rejected"]
    ([{'a_t': 1, 'a_k': 5, 'b_t': 1, 'b_k': 5}], 0)
    """

    def __init__(self, session: Session, sources: Sources, batch_rows: int | None = None) -> None:
        super().__init__(session)
        self._batch_rows = batch_rows
        self._left = {name: iter(source) for name, source in sources.items()}

    def __iter__(self) -> Iteration[Out]:
        return self

    def __next__(self) -> Out:
        try:
            while not self._session.closed:
                results = self._step() if self._left else self._last()
                if results is not None:
                    return cast(Out, results)
        except BaseException:
            self._session.abandon()
            raise
        raise StopIteration

    def _step(self) -> Results | None:
        """Join the next batch of the stream that has come least far."""
        name = self._session.slowest(self._left)
        batch = self._next(name)
        if self._batch_rows is None or batch is END:
            return None if self._session.closed else self._join(name, batch)
        come, rows, begun = [(name, batch)], rows_of(batch), monotonic()
        while batch is not END and rows < self._batch_rows and monotonic() - begun < AHEAD:
            batch = self._next(name)
            come.append((name, batch))
            rows += rows_of(batch)
        return None if self._session.closed else self._join_all(come)

    def _next(self, name: str) -> Any:
        batch = next(self._left[name], END)
        if batch is END:
            del self._left[name]
        return batch

    def close(self) -> None:
        """Take no more batches, and let go of all that is held; counters stay readable."""
        self._session.abandon()

    def __enter__(self) -> Iteration[Out]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


class _Desk:
    """Where one thread at a time works on a session, which others may leave meanwhile."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = Lock()
        self._busy = self._leaving = False

    def take(self, call: Callable[..., Made], *arguments: Any) -> Callable[[], Made]:
        """Something that makes a call which works on the session, to be called once."""

        def work() -> Made:
            try:
                return call(*arguments)
            finally:
                with self._lock:
                    self._busy = False
                    leaving = self._leaving
                if leaving:
                    self._session.abandon()

        self._busy = True
        return work

    def leave(self) -> None:
        """Let go of the session, as soon as nobody works on it."""
        with self._lock:
            self._leaving = True
            busy = self._busy
        if not busy:
            self._session.abandon()

    @property
    def left(self) -> bool:
        """Whether it has been let go of."""
        return self._leaving or self._session.closed


class AsyncIteration(_Joining, Generic[Out]):
    """What `Query.aiterate` returns: an asynchronous `Iteration`, and context manager.

    Batches are joined in a thread, so that the event loop goes on meanwhile.  Cancelling the wait
    for its next results, as a timeout does, loses nothing.
    """

    def __init__(
        self, session: Session, sources: AsyncSources, batch_rows: int | None = None
    ) -> None:
        super().__init__(session)
        self._desk = _Desk(session)
        self._working: Future[Results | None] | None = None
        self._promised: list[tuple[str, Time]] = []
        self._batch_rows = batch_rows
        self._reading: dict[Task[Any], str] = {}
        self._read: deque[tuple[str, Any]] = deque()
        self._sources = {name: aiter(source) for name, source in sources.items()}
        self._unread = list(self._sources)  # the next batch of these has not been asked for

    def __aiter__(self) -> AsyncIteration[Out]:
        return self

    async def __anext__(self) -> Out:
        import asyncio

        try:
            while self._working is not None or not self._desk.left:
                results: Results | None
                if self._working is not None:
                    results = await self._done()
                elif self._at_end:
                    results = await self._work(self._last)
                else:
                    results = await self._step()
                if results is not None:
                    return cast(Out, results)
        except BaseException as error:
            if not isinstance(error, asyncio.CancelledError):
                self.close()
            raise
        raise StopAsyncIteration

    def advance(self, stream: str, time: Time) -> None:
        """Promise that no row of a stream before ``time`` will come any more.

        While batches are joined it is taken down, and counts for those that come after them.
        """
        if self._working is None:
            self._session.advance(stream, time)
        else:
            self._promised.append((stream, time))

    async def _work(self, call: Callable[..., Results | None], *arguments: Any) -> Results | None:
        """What a call gives, in a thread."""
        import asyncio

        promised, self._promised = self._promised, []
        for stream, time in promised:
            self._session.advance(stream, time)
        loop = asyncio.get_running_loop()
        self._working = loop.run_in_executor(None, self._desk.take(call, *arguments))
        return await self._done()

    async def _done(self) -> Results | None:
        """What the call under way gives; to be waited for again if the wait is cancelled."""
        import asyncio

        assert self._working is not None
        working = self._working
        await asyncio.wait([working])
        self._working = None
        return working.result()

    @property
    def _at_end(self) -> bool:
        return not (self._unread or self._reading or self._read)

    async def _step(self) -> Results | None:
        """Join a batch that is there, or wait until there are some."""
        import asyncio

        if self._batch_rows is not None:
            while self._room and await self._ahead():
                pass
            if self._read:
                come = list(self._read)
                self._read.clear()
                return await self._work(self._join_all, come)
        elif self._read:
            return await self._work(self._join, *self._read.popleft())
        self._ask()
        await asyncio.wait(self._reading, return_when=asyncio.FIRST_COMPLETED)
        self._take()
        return None

    @property
    def _room(self) -> bool:
        """Whether more rows may be gathered before they are joined."""
        return sum(rows_of(batch) for _, batch in self._read) < (self._batch_rows or 0)

    async def _ahead(self) -> bool:
        """Whether sources had batches at hand, which are taken."""
        import asyncio

        if not self._read:  # the first are waited for
            return False
        self._ask()
        await asyncio.sleep(0)
        return self._take()

    def _ask(self) -> None:
        """Ask all sources for their next batches that have not been asked."""
        import asyncio

        for name in self._unread:
            self._reading[asyncio.create_task(_next(self._sources[name]))] = name
        self._unread.clear()

    def _take(self) -> bool:
        """Take the batches that have come, in the order of the streams; whether there were any."""
        names = self._session.query.names
        done = [task for task in self._reading if task.done()]
        for task in sorted(done, key=lambda task: names.index(self._reading[task])):
            name = self._reading.pop(task)
            if not self._desk.left:
                batch = self._outcome(task)
                self._read.append((name, batch))
                if batch is not END:
                    self._unread.append(name)
        return bool(done)

    def _outcome(self, task: Task[Any]) -> Any:
        if task.cancelled():  # by its source: that is an error of the source, not of this wait
            self.close()
        return task.result()

    def close(self) -> Awaitable[None]:
        """Stop waiting for batches, and let go of all that is held; counters stay readable.

        Awaiting what it returns waits until the sources have heard of it.
        """
        for task in self._reading:
            task.cancel()
        self._desk.leave()
        working = [] if self._working is None else [self._working]
        return _Stopped([*self._reading, *working])

    async def aclose(self) -> None:
        """Close it, and wait until the sources have heard of it."""
        await self.close()

    async def __aenter__(self) -> AsyncIteration[Out]:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __del__(self) -> None:
        for task in self._reading:  # maybe in another thread
            if not task.get_loop().is_closed():
                task.get_loop().call_soon_threadsafe(task.cancel)
        self._desk.leave()


def rows_of(batch: Any) -> int:
    """How many rows a batch has, as far as that is cheap to tell; else 1."""
    if isinstance(batch, Mapping):
        return max((len(v) for v in batch.values() if hasattr(v, "__len__")), default=0)
    rows = getattr(batch, "num_rows", None)
    if isinstance(rows, int):
        return rows
    return len(batch) if hasattr(batch, "__len__") and not isinstance(batch, str) else 1


def one_table(batches: list[Any], stream: str) -> Any:
    """Batches of a stream as one; just as it came if there is but one."""
    import pyarrow as pa
    from windjoin.inputs import as_table

    if len(batches) == 1:
        return batches[0]
    tables = [as_table(batch, stream) for batch in batches]
    try:
        return pa.concat_tables(tables).combine_chunks()
    except pa.ArrowInvalid as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"stream {stream!r}: batches of different schemas cannot be gathered"
            f" (batch_rows=): {reason}"
        ) from error


class _Stopped:
    """The end of tasks that were cancelled; it need not be awaited."""

    def __init__(self, reading: list[Future[Any]]) -> None:
        self._reading = reading

    def __await__(self) -> Generator[Any, None, None]:
        import asyncio

        yield from asyncio.gather(*self._reading, return_exceptions=True).__await__()


async def _next(source: Any) -> Any:
    return await anext(source, END)
