"""Join iterables of batches as they come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from windjoin.errors import InputError, QueryError, quoted
from windjoin.given import Out, SessionMetrics, Time

if TYPE_CHECKING:
    import pyarrow as pa
    from windjoin.session import Session
    from windjoin.session_state import Results

Sources = Mapping[str, Iterable[object]]
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


class Joining:
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


class Iteration(Joining, Generic[Out]):
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
