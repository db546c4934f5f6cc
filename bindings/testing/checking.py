"""`check`: a query gives what its definition says, in every way there is to run it."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.diffusion.registry import SHIPPED
from windjoin.errors import ClusterError, LateRowWarning, QueryError, hint
from windjoin.inputs import as_table
from windjoin.query import Query
from windjoin.row_windows import counts_rows
from windjoin.session import Session
from windjoin.state import restore
from windjoin.testing.comparing import as_one_table, difference
from windjoin.testing.definition import expected
from windjoin.testing.playing import arrivals_of, in_turn, push_all

Tables = dict[str, pa.Table]
Way = Callable[[Query, Tables, int], Any]  # results of a query, by a seed
MOST_PUSHED = 7  # rows at a time
STAYS = 0.6  # of pushes after which a session is not saved


@dataclass(frozen=True, slots=True)
class Failure:
    """What is wrong with a way to run a query, and the smallest tables that show it."""

    mode: str
    seed: int
    tables: Tables
    told: str

    def __str__(self) -> str:
        lines = [f"mode {self.mode!r} (seed={self.seed}) is not what is expected", self.told]
        lines.append("the smallest tables that differ (left: this mode, right: expected)")
        for name, table in self.tables.items():
            types = ", ".join(f"{field.name}: {field.type}" for field in table.schema)
            lines.append(f"  {name} ({types})")
            lines += [f"    {list(row.values())}" for row in table.to_pylist()]
        return "\n".join(lines)


def check(
    q: Query,
    tables: Mapping[str, Any],
    modes: str | Sequence[str] | None = None,
    seed: int = 0,
) -> None:
    """Raise `AssertionError` if a way to run the query gives something else than `expected`.

    ``modes``: some of "batch", "threads", "pushes" (random batches and orders within a lateness),
    "saved" (the same, with sessions saved and restored between pushes) and "hosts" (every
    strategy, of batches and of pushes); all of them if not given.
    ``seed``: of what is random; a failure tells it, and the smallest tables that differ.

    >>> import windjoin as wj
    >>> from windjoin import testing
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> q = wj.join(a, b, on=a["k"] == b["k"])
    >>> testing.check(q, {"a": {"t": [1, 9], "k": [5, 6]}, "b": {"t": [2], "k": [5]}}, seed=7)
    """
    read = {name: as_table(tables[name], name) for name in q.names}
    for mode, way in _ways(q, _chosen(modes)):
        told = _told(q, read, way, seed)
        if told:
            smallest, told = _shrunk(q, read, way, seed, told)
            raise AssertionError(str(Failure(mode, seed, smallest, told)))


def _chosen(modes: str | Sequence[str] | None) -> list[str]:
    chosen = list(MODES) if modes is None else [modes] if isinstance(modes, str) else list(modes)
    for mode in chosen:
        if mode not in MODES:
            raise QueryError(f"modes: {mode!r} is not one{hint(str(mode), tuple(MODES))}")
    return chosen


# -- ways to run a query --------------------------------------------------------------------


def _ways(q: Query, modes: Iterable[str]) -> Iterator[tuple[str, Way]]:
    for mode in modes:
        yield from MODES[mode](q)


def _batch(q: Query) -> Iterator[tuple[str, Way]]:
    yield "batch", lambda q, tables, seed: q.run(tables)


def _threads(q: Query) -> Iterator[tuple[str, Way]]:
    yield "threads", lambda q, tables, seed: q.run(tables, threads=2)


def _pushes(q: Query) -> Iterator[tuple[str, Way]]:
    yield "pushes", lambda q, tables, seed: _pushed(q, tables, seed)


def _saved(q: Query) -> Iterator[tuple[str, Way]]:
    if q.sides.combined(len(q.streams)):  # cannot be saved
        return

    def way(q: Query, tables: Tables, seed: int) -> Any:
        random = np.random.default_rng(seed)
        with tempfile.TemporaryDirectory() as folder:

            def go_on(session: Session) -> Session:
                """Another session from what this one saved; now and then it is this one."""
                if random.random() < STAYS:
                    return session
                session.save(folder)
                session.abandon()
                return restore(q, folder)

            return _pushed(q, tables, seed, go_on)

    yield "saved", way


def _on_hosts(q: Query) -> Iterator[tuple[str, Way]]:
    if q.nearest is not None:  # is not for hosts
        return
    for strategy in SHIPPED:
        for hosts in (2, 3):
            options = {"hosts": hosts, "strategy": strategy}
            yield (
                f"hosts={hosts}, {strategy}",
                _where_it_goes(lambda q, tables, seed, o=options: q.run(tables, **o)),
            )
        if counts_rows(q):  # are not for sessions with hosts
            continue
        yield (
            f"pushes, hosts=2, {strategy}",
            _where_it_goes(
                lambda q, tables, seed, s=strategy: _pushed(q, tables, seed, hosts=2, strategy=s)
            ),
        )


def _where_it_goes(way: Callable[..., Any]) -> Way:
    """None where a strategy is not for this query."""

    def run(q: Query, tables: Tables, seed: int) -> Any:
        try:
            return way(q, tables, seed)
        except (ClusterError, QueryError) as error:
            if "strategy" in str(error) or "groups" in str(error):
                return None
            raise

    return run


def _pushed(
    q: Query,
    tables: Tables,
    seed: int,
    go_on: Callable[[Session], Session] | None = None,
    **options: Any,
) -> Any:
    """Rows pushed in random batches, out of order within a random lateness."""
    random = np.random.default_rng(seed)
    bound = q.bind({name: table.schema for name, table in tables.items()})
    spans = [_span(bound.prepare(n, table)) for n, table in enumerate(tables.values())]
    span = max(spans, default=0)
    # arrivals decide which partners are nearest, and which rows are one: in order of the table
    keeps = q.nearest is not None or bool(q.exclude_self)
    ticks = 0 if keeps else int(random.integers(0, span + 1))
    if keeps:
        arrivals = [(np.arange(len(t)), np.arange(len(t))) for t in tables.values()]
    else:
        arrivals = arrivals_of(bound, list(tables.values()), ticks, random)
    order = in_turn(arrivals, lambda: int(random.integers(1, MOST_PUSHED + 1)))
    schemas = {name: table.schema for name, table in tables.items()}
    lateness = _length(bound.clock.step, span if keeps else ticks)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LateRowWarning)
        with q.open(schemas, lateness=lateness, **options) as session:
            results = [found for _, found in push_all(session, tables, order, go_on)]
    return as_one_table(results)


def _span(prepared: Any) -> int:
    times = prepared.rows.time
    if prepared.null_time is not None:
        times = times[~prepared.null_time]
    return int(times.max()) - int(times.min()) if len(times) else 0


def _length(step: Any, ticks: int) -> Any:
    """A number of ticks as a lateness."""
    from windjoin.durations import Duration

    return ticks if step is None else Duration(int(ticks * step * 10**9))


MODES: dict[str, Callable[[Query], Iterator[tuple[str, Way]]]] = {
    "batch": _batch,
    "threads": _threads,
    "pushes": _pushes,
    "saved": _saved,
    "hosts": _on_hosts,
}


# -- the smallest tables --------------------------------------------------------------------


def _told(q: Query, tables: Tables, way: Way, seed: int) -> str:
    """How what a way gives differs from what is expected; empty if it does not."""
    found = way(q, tables, seed)
    if found is None:
        return ""
    wanted = expected(q, tables)
    return difference(as_one_table(found).select(wanted.column_names), wanted)


def _shrunk(q: Query, tables: Tables, way: Way, seed: int, told: str) -> tuple[Tables, str]:
    """Tables without the rows that do not matter: halves first, then single rows."""
    step = max(max(map(len, tables.values())) // 2, 1)
    while step:
        smaller = _without_some(q, tables, way, seed, step)
        if smaller is None:
            step //= 2
        else:
            tables, told = smaller
    return tables, told


def _without_some(
    q: Query, tables: Tables, way: Way, seed: int, step: int
) -> tuple[Tables, str] | None:
    """Tables with ``step`` rows less that still differ, if there are such."""
    for name, table in tables.items():
        for start in range(0, len(table), step):
            rest = [table.slice(0, start), table.slice(start + step)]
            fewer = tables | {name: pa.concat_tables(rest)}
            told = _told(q, fewer, way, seed)
            if told:
                return fewer, told
    return None
