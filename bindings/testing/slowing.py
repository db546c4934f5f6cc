"""Make a host of a session slow, for real: what adapts to it has to find out by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any

from windjoin.durations import parse_duration
from windjoin.errors import QueryError, SessionError

if TYPE_CHECKING:
    from windjoin.diffusion.worker import Operator, Stretches, Worker
    from windjoin.kernels.spec import I64
    from windjoin.session import Session


class Slowed:
    """An operator each of whose calls takes longer; what it gives is the same."""

    def __init__(self, operator: Operator, pause: float, times: float) -> None:
        self.operator = operator
        self._pause, self._times = pause, times

    def _slowly(self, call: Callable[..., Any], *args: Any) -> Any:
        began = perf_counter()
        answer = call(*args)
        sleep(self._pause + (self._times - 1) * (perf_counter() - began))
        return answer

    def over(self, operator: Operator) -> Slowed:
        """Another operator, as slow."""
        return Slowed(operator, self._pause, self._times)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.operator, name)

    def store(self, stream: int, rows: I64) -> None:
        self._slowly(self.operator.store, stream, rows)

    def hold(self, stream: int, rows: I64) -> None:
        self._slowly(self.operator.hold, stream, rows)

    def extend(
        self,
        bound: tuple[int, ...],
        targets: tuple[int, ...],
        partials: Sequence[I64],
        voids: Mapping[int, Stretches],
        held: Callable[[int], I64],
    ) -> list[I64]:
        found: list[I64] = self._slowly(self.operator.extend, bound, targets, partials, voids, held)
        return found


class Slowness:
    """A host is slow until this ends; `slow` makes it.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> q = wj.join(a, b, on=a["k"] == b["k"])
    >>> import pyarrow as pa
    >>> from windjoin.testing import slow
    >>> schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
    >>> session = q.open(schemas={"a": schema, "b": schema}, hosts=2)
    >>> with slow(session, host=1, by="1ms"):
    ...     session.push("a", {"t": [1], "k": [5]}).num_rows
    0
    """

    def __init__(self, worker: Worker, pause: float, times: float) -> None:
        self._worker = worker
        worker.operator = Slowed(worker.operator, pause, times)

    def end(self) -> None:
        """The host is as fast again as it was before.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> import pyarrow as pa
        >>> from windjoin.testing import slow
        >>> schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
        >>> session = q.open(schemas={"a": schema, "b": schema}, hosts=2)
        >>> slowness = slow(session, host=1, by=2.0)
        >>> slowness.end()
        """
        if isinstance(self._worker.operator, Slowed):
            self._worker.operator = self._worker.operator.operator

    def __enter__(self) -> Slowness:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()


def slow(session: Session, *, host: int = 0, by: str | timedelta | float = "20ms") -> Slowness:
    """Slow one host of a session down; neither the session nor its router is told.

    ``by``: how much longer the host takes each time it stores rows or joins some, such as "20ms";
    or how many times as long, such as 2.0.  It stays slow until ``end()`` of what this returns, or
    to the end of a ``with`` block.

    >>> import windjoin as wj
    >>> from windjoin.testing import slow
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> import pyarrow as pa
    >>> schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
    >>> with wj.join(a, b, on=a["k"] == b["k"]).open({"a": schema, "b": schema}, hosts=2) as s:
    ...     with slow(s, host=1, by="1ms"):
    ...         _ = s.push("a", {"t": [1], "k": [5]})
    """
    from windjoin.clustered import ClusterJoin

    live = getattr(session, "_live", None)
    if not isinstance(live, ClusterJoin):
        raise SessionError(
            "slow() needs an open session with hosts= that knows the schemas of all its streams"
        )
    workers = live.cluster.workers
    if host not in workers:
        raise QueryError(f"slow(host={host!r}): there is no such host; there are {sorted(workers)}")
    pause, times = 0.0, 1.0
    if isinstance(by, (int, float)) and not isinstance(by, bool):
        times = float(by)
        if times < 1:
            raise QueryError(f"slow(by={by!r}): give 1.0 or more, or a duration such as '20ms'")
    else:
        pause = parse_duration(by, "slow(by=)").nanoseconds / 1e9
        if pause < 0:
            raise QueryError(f"slow(by={by!r}): a host cannot be made faster")
    return Slowness(workers[host], pause, times)
