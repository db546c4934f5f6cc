"""Join asynchronous iterables of batches as they come."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Generator, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from windjoin.given import Out, Time
from windjoin.iterate import END, Joining, rows_of

if TYPE_CHECKING:
    from asyncio import Future, Task

    from windjoin.session import Session
    from windjoin.session_state import Results

AsyncSources = Mapping[str, AsyncIterable[object]]
Made = TypeVar("Made")


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


class AsyncIteration(Joining, Generic[Out]):
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


class _Stopped:
    """The end of tasks that were cancelled; it need not be awaited."""

    def __init__(self, reading: list[Future[Any]]) -> None:
        self._reading = reading

    def __await__(self) -> Generator[Any, None, None]:
        import asyncio

        yield from asyncio.gather(*self._reading, return_exceptions=True).__await__()


async def _next(source: Any) -> Any:
    return await anext(source, END)
