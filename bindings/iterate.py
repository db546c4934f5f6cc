"""Join iterables of batches as they come, also asynchronous ones."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from windjoin.errors import QueryError, quoted

if TYPE_CHECKING:
    from windjoin.session import Results, Session

Sources = Mapping[str, Iterable[Any]]
AsyncSources = Mapping[str, AsyncIterable[Any]]


def _check_sources(names: tuple[str, ...], sources: Any, needed: str) -> None:
    if not isinstance(sources, Mapping) or set(sources) != set(names):
        given = quoted(map(str, sources)) if isinstance(sources, Mapping) else repr(sources)
        raise QueryError(
            f"sources: got {given}; give one iterable of batches for each of {quoted(names)}"
        )
    for name, source in sources.items():
        if not hasattr(source, needed):
            raise QueryError(
                f"sources[{name!r}] is a {type(source).__name__}; give an"
                f" {'asynchronous ' if needed == '__aiter__' else ''}iterable of batches"
            )


def _any(results: Results) -> bool:
    return len(next(iter(results.values())) if isinstance(results, dict) else results) > 0


def joined(session: Session, sources: Sources) -> Iterator[Results]:
    """Results of every batch, which is taken from the stream that has come least far."""
    _check_sources(session.query.names, sources, "__iter__")
    left = {name: iter(source) for name, source in sources.items()}
    with session:
        while left:
            name = session.slowest(left)
            batch = next(left[name], None)
            if batch is None:
                del left[name]
                session.finish(name)
                continue
            results = session.push(name, batch)
            if _any(results):
                yield results
        if _any(results := session.close()):
            yield results


async def joined_async(session: Session, sources: AsyncSources) -> AsyncIterator[Results]:
    """The same for asynchronous iterables: each batch is joined when it is there."""
    import asyncio

    _check_sources(session.query.names, sources, "__aiter__")

    iterators = {name: aiter(source) for name, source in sources.items()}
    waiting: dict[asyncio.Task[Any], str] = {
        asyncio.create_task(_next(source)): name for name, source in iterators.items()
    }
    try:
        with session:
            while waiting:
                done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in sorted(done, key=lambda task: session.query.names.index(waiting[task])):
                    name = waiting.pop(task)
                    batch = task.result()
                    if batch is None:
                        session.finish(name)
                        continue
                    waiting[asyncio.create_task(_next(iterators[name]))] = name
                    results = session.push(name, batch)
                    if _any(results):
                        yield results
            if _any(results := session.close()):
                yield results
    finally:
        for task in waiting:
            task.cancel()


async def _next(source: AsyncIterator[Any]) -> Any:
    return await anext(source, None)
