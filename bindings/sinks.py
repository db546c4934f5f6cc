"""Results of a session as files: what `Session.to_parquet` sets up."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from windjoin.durations import is_duration, parse_duration
from windjoin.errors import QueryError, StateError

if TYPE_CHECKING:
    from windjoin.session_state import Results

EVERY_ROWS = 1_000_000
MOST_BYTES = 64 << 20  # that wait to be written, whatever was asked for
NAME = "results-{:08d}.parquet"
_NAMED = re.compile(r"results-(\d{8,})\.parquet")


class ParquetSink:
    """Writes results to a folder, one whole file after the other; made by `Session.to_parquet`.

    A file is there under its name once it is complete, and on disk.

    >>> import tempfile
    >>> import windjoin as wj
    >>> from pyarrow import parquet
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> folder = tempfile.mkdtemp()
    >>> with wj.join(a, b, on=a["k"] == b["k"]).open() as s:
    ...     sink = s.to_parquet(folder, every=1000)
    ...     _ = s.push("a", {"t": [1], "k": [5]}), s.push("b", {"t": [2], "k": [5]})
    >>> sink.rows, parquet.read_table(folder).num_rows
    (1, 1)
    """

    def __init__(
        self, folder: Path, every: int | float, timed: bool, clock: Callable[[], float], number: int
    ) -> None:
        """``every``: rows, or seconds if ``timed``; ``number``: of the next file."""
        self.folder = folder
        self.number = number
        self.rows = 0
        self._every, self._timed, self._clock = every, timed, clock
        self._tables: list[pa.Table] = []
        self._waiting_rows = self._waiting_bytes = 0
        self._since = 0.0

    @property
    def waiting(self) -> int:
        """Rows that are not in a file yet.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> import tempfile
        >>> session = q.open()
        >>> sink = session.to_parquet(tempfile.mkdtemp(), every=1000)
        >>> for name in q.names:
        ...     _ = session.push(name, {"t": [1], "k": [5]})
        >>> sink.waiting
        1
        """
        return self._waiting_rows

    def add(self, results: Results) -> None:
        """Take results; nothing is written before the next push, so that this does not fail."""
        if not isinstance(results, pa.Table) or not results.num_rows:
            return
        if not self._tables:
            self._since = self._clock()
        self._tables.append(results.replace_schema_metadata(None))
        self._waiting_rows += results.num_rows
        self._waiting_bytes += results.nbytes

    def write_due(self) -> None:
        """Write a file if it is time to."""
        if not self._tables:
            return
        so_far = self._clock() - self._since if self._timed else self._waiting_rows
        if so_far >= self._every or self._waiting_bytes >= MOST_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write all that waits now.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> import tempfile
        >>> session = q.open()
        >>> sink = session.to_parquet(tempfile.mkdtemp(), every=1000)
        >>> for name in q.names:
        ...     _ = session.push(name, {"t": [1], "k": [5]})
        >>> sink.flush()
        >>> sink.rows, sink.waiting
        (1, 0)
        """
        if not self._tables:
            return
        self._write(pa.concat_tables(self._tables))
        self.number += 1
        self.rows += self._waiting_rows
        self._tables, self._waiting_rows, self._waiting_bytes = [], 0, 0

    def _write(self, table: pa.Table) -> None:
        from pyarrow import parquet

        name = NAME.format(self.number)
        draft = self.folder / f".{name}.part"
        try:
            with open(draft, "wb") as file:
                parquet.write_table(table, file)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.folder / name)
            _sync(self.folder)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise StateError(
                f"results cannot be written to {str(self.folder)!r}: {error}; they wait in memory,"
                " and nothing of this push was taken: make room, and push again"
            ) from error

    def about(self) -> dict[str, Any]:
        """What a snapshot keeps of it, once all is written."""
        return {
            "folder": str(self.folder.resolve()),
            "every": self._every,
            "timed": self._timed,
            "number": self.number,
            "rows": self.rows,
        }

    def metrics(self) -> dict[str, Any]:
        """Counters, as `Session.metrics` has them.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> import tempfile
        >>> session = q.open()
        >>> sink = session.to_parquet(tempfile.mkdtemp(), every=1000)
        >>> for name in q.names:
        ...     _ = session.push(name, {"t": [1], "k": [5]})
        >>> sink.metrics()["waiting"]
        1
        """
        return {
            "folder": str(self.folder), "files": self.number, "rows": self.rows,
            "waiting": self.waiting,
        }  # fmt: skip


def new_sink(folder: Any, every: Any, clock: Callable[[], float]) -> ParquetSink:
    """One that goes on behind the files that are there."""
    path = Path(folder)
    length, timed = _every(every)
    try:
        path.mkdir(parents=True, exist_ok=True)
        numbers = _numbers(path)
    except OSError as error:
        raise StateError(f"results cannot be written to {str(path)!r}: {error}") from error
    return ParquetSink(path, length, timed, clock, max(numbers, default=-1) + 1)


def resumed_sink(about: dict[str, Any], clock: Callable[[], float]) -> ParquetSink:
    """The sink of a snapshot; files written after it go, as their results come again."""
    path = Path(about["folder"])
    try:
        path.mkdir(parents=True, exist_ok=True)
        for draft in path.glob(".results-*.part"):
            draft.unlink(missing_ok=True)
        for number in _numbers(path):
            if number >= about["number"]:
                (path / NAME.format(number)).unlink()
    except OSError as error:
        raise StateError(f"results cannot be written to {str(path)!r}: {error}") from error
    sink = ParquetSink(path, about["every"], about["timed"], clock, about["number"])
    sink.rows = about["rows"]
    return sink


def _numbers(path: Path) -> list[int]:
    found = (_NAMED.fullmatch(one.name) for one in path.iterdir())
    return [int(one[1]) for one in found if one]


def _every(every: Any) -> tuple[int | float, bool]:
    if isinstance(every, int) and not isinstance(every, bool) and every > 0:
        return every, False
    if isinstance(every, str) or is_duration(every):
        length = parse_duration(every, "to_parquet: every").nanoseconds
        if length > 0:
            return length / 1e9, True
    raise QueryError(
        f"to_parquet: every={every!r}: give how many rows a file has, such as 100_000, or how long"
        ' results wait for one at most, such as "10s"'
    )


def _sync(folder: Path) -> None:
    """A rename is on disk when its folder is."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
