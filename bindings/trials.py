"""Small joins of every kind, by which `windjoin doctor --calibrate` learns what work costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from windjoin.binding import BoundQuery
from windjoin.expressions import Expression
from windjoin.function_nodes import udf
from windjoin.kernels.batch import statistics_of
from windjoin.kernels.spec import Rows
from windjoin.kernels.statistics import Statistics
from windjoin.plan_work import widths_of
from windjoin.query import Query
from windjoin.query_making import join
from windjoin.similarity import l2, mean_abs_diff, overlap
from windjoin.streams import Stream, stream

Columns = dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """A join that does much of one unit of work."""

    name: str
    query: Query
    tables: dict[str, pa.Table]
    batch_rows: int = 1024

    def widths(self, bound: BoundQuery) -> tuple[tuple[float, ...], ...]:
        """What `widths_of` says of the rows."""
        return widths_of(self._sample(bound))

    def statistics(self, bound: BoundQuery) -> Statistics:
        """What a planner would know of the rows."""
        return statistics_of(bound.spec, self._sample(bound))

    def _sample(self, bound: BoundQuery) -> list[Rows]:
        tables = (self.tables[name].slice(0, 4096) for name in self.query.names)
        return [bound.prepare(number, table).rows for number, table in enumerate(tables)]


def trials(seed: int = 1) -> Iterator[Trial]:
    """Every kind of index with few and with many candidates; filters; columns of results."""
    random = np.random.default_rng(seed)
    yield from _keys(random)
    yield from _ranges(random)
    yield from _filters(random)
    yield from _three(random)
    yield from _alike(random)


def _trial(
    name: str,
    random: Generator,
    columns: Any,
    on: Any,
    *,
    window: int,
    rows: int,
    streams: int = 2,
    batch_rows: int = 1024,
    narrow: bool = False,
) -> Trial:
    """Streams with a row a tick; ``columns`` makes those of one, ``on`` the conditions."""
    named = [stream(letter, time="t", window=window) for letter in "abc"[:streams]]
    tables = {}
    for one in named:
        made = columns(random, rows, one.name)
        tables[one.name] = pa.table({"t": np.arange(rows), "i": np.arange(rows), **made})
    select = [column for one in named for column in (one["t"], one["i"])] if narrow else None
    return Trial(name, join(*named, on=on(*named), select=select), tables, batch_rows)


def _keys(random: Generator) -> Iterator[Trial]:
    def on(a: Stream, b: Stream) -> Expression:
        return a["k"] == b["k"]

    def of(keys: int) -> Any:
        return lambda r, n, _: {"k": r.integers(0, keys, n)}

    for keys, window, rows, batch_rows in (
        (200_000, 20_000, 180_000, 1024),
        (20_000, 20_000, 180_000, 1024),
        (2_000, 20_000, 90_000, 1024),
        (1_000, 2_000, 180_000, 1024),
        (1_000, 1_000, 40_000, 64),
        (1_000, 1_000, 12_000, 16),
    ):
        yield _trial(
            f"{window} rows, {keys} keys, pushes of {batch_rows}",
            random,
            of(keys),
            on,
            window=window,
            rows=rows,
            batch_rows=batch_rows,
            narrow=True,
        )
    for keys in (500, 200_000):
        yield _trial(
            f"text keys, {keys}",
            random,
            lambda r, n, _, k=keys: {"k": _words(r, n, k)},
            on,
            window=2_000,
            rows=60_000,
            narrow=True,
        )
    for keys, values in ((1000, 8), (200_000, 8), (1000, 2)):
        yield _trial(
            f"{keys} keys, {values} more columns",
            random,
            lambda r, n, _, k=keys, v=values: {"k": r.integers(0, k, n), **_values(r, n, v)},
            on,
            window=2_000,
            rows=60_000,
        )
    for keys in (1000, 200_000):
        yield _trial(
            f"texts in results, {keys} keys",
            random,
            lambda r, n, _, k=keys: {"k": r.integers(0, k, n), "s": _words(r, n, k)},
            on,
            window=2_000,
            rows=60_000,
        )
        yield _trial(
            f"vectors in results, {keys} keys",
            random,
            lambda r, n, _, k=keys: {"k": r.integers(0, k, n), "v": _vectors(r, n, 16)},
            on,
            window=2_000,
            rows=40_000,
        )


def _values(r: Generator, n: int, many: int) -> Columns:
    return {f"v{number}": r.random(n) for number in range(many)}


def _words(r: Generator, n: int, many: int) -> Any:
    return pa.array([f"text {k:x}" for k in r.integers(0, many, n)])


def _ranges(random: Generator) -> Iterator[Trial]:
    def values(r: Generator, n: int, name: str) -> Columns:
        return {"x": r.random(n), "y": r.random(n)}

    for window, width in ((10_000, 1e-5), (10_000, 1e-4), (10_000, 1e-3), (2_000, 1e-3)):
        yield _trial(
            f"band {width} of {window}",
            random,
            values,
            lambda a, b, w=width: abs(a["x"] - b["x"]) <= w,
            window=window,
            rows=90_000,
            narrow=True,
        )
    for window, above in ((10_000, 0.99), (10_000, 0.95), (2_000, 0.95)):
        yield _trial(
            f"inequality {above} of {window}",
            random,
            values,
            lambda a, b, p=above: a["x"] + p < b["x"],
            window=window,
            rows=45_000,
            narrow=True,
        )
    for window, above in ((10_000, 0.9), (2_000, 0.8), (2_000, 0.5)):
        yield _trial(
            f"boxes {above} of {window}",
            random,
            values,
            lambda a, b, p=above: [a["x"] + p < b["x"], a["y"] + p < b["y"]],
            window=window,
            rows=45_000,
            narrow=True,
        )
    for window in (200, 1000):
        yield _trial(
            f"unequal of {window}",
            random,
            lambda r, n, _: {"k": np.where(r.random(n) < 0.001, r.integers(1, 9, n), 0)},
            lambda a, b: a["k"] != b["k"],
            window=window,
            rows=16_000,
            narrow=True,
        )
        yield _trial(
            f"function of {window}",
            random,
            values,
            lambda a, b: udf(_product, a["x"], b["x"]),
            window=window,
            rows=16_000,
            narrow=True,
        )
    yield _trial(
        "function that lets much pass",
        random,
        values,
        lambda a, b: udf(_larger, a["x"], b["x"]),
        window=200,
        rows=16_000,
        narrow=True,
    )


def _product(x: float, y: float) -> bool:
    return x * y > 0.99


def _larger(x: float, y: float) -> bool:
    return x > y + 0.5


def _filters(random: Generator) -> Iterator[Trial]:
    """Equal keys propose 40 rows, of which a filter keeps some."""

    def rows(r: Generator, n: int, name: str) -> Columns:
        return {
            "k": r.integers(0, 50, n),
            "j": r.integers(0, 2, n),
            "x": r.random(n),
            "s": _words(r, n, 1000),
        }

    conditions: dict[str, Any] = {
        "compare": lambda a, b: a["x"] < b["x"],
        "notequal": lambda a, b: a["j"] != b["j"],
        "function": lambda a, b: udf(_product, a["x"], b["x"]),
        "opaque": lambda a, b: a["s"] < b["s"],
    }
    for name, condition in conditions.items():
        yield _trial(
            f"filter by {name}",
            random,
            rows,
            lambda a, b, more=condition: [a["k"] == b["k"], more(a, b)],
            window=2000,
            rows=20_000,
            batch_rows=512,
            narrow=True,
        )


def _three(random: Generator) -> Iterator[Trial]:
    def rows(few: int) -> Any:
        return lambda r, n, _: {
            "k": r.integers(0, 4000, n),
            "m": r.integers(0, 2000 // few, n),
            "x": r.random(n),
        }

    ways: dict[str, tuple[int, Any]] = {
        "three of one key": (1, lambda a, b, c: [a["k"] == b["k"], b["k"] == c["k"]]),
        "three of two keys": (1, lambda a, b, c: [a["k"] == b["k"], b["m"] == c["m"]]),
        "many ask by key": (40, lambda a, b, c: [a["m"] == b["m"], b["k"] == c["k"]]),
        "three by key and band": (
            1,
            lambda a, b, c: [a["m"] == b["m"], abs(b["x"] - c["x"]) <= 1e-3],
        ),
        "many ask by band": (40, lambda a, b, c: [a["m"] == b["m"], abs(b["x"] - c["x"]) <= 1e-4]),
        "many ask by wide band": (
            40,
            lambda a, b, c: [a["m"] == b["m"], abs(b["x"] - c["x"]) <= 5e-4],
        ),
        "many ask by order": (40, lambda a, b, c: [a["m"] == b["m"], b["x"] + 0.95 < c["x"]]),
        "many ask by boxes": (
            40,
            lambda a, b, c: [a["m"] == b["m"], b["x"] + 0.9 < c["x"], a["x"] + 0.9 < c["x"]],
        ),
    }
    for name, (few, on) in ways.items():
        yield _trial(name, random, rows(few), on, window=2000, rows=30_000, streams=3, narrow=True)


def _alike(random: Generator) -> Iterator[Trial]:
    for items, domain, least, window in (
        (1, 500, 1, 2000),
        (2, 400, 1, 2000),
        (5, 100, 3, 2000),
        (5, 100, 3, 10_000),
        (5, 100, 2, 4000),
        (10, 1000, 4, 8000),
    ):
        yield _trial(
            f"{items} of {domain} items in {window} rows",
            random,
            lambda r, n, _, i=items, d=domain: {"v": _sets(r, n, i, d)},
            lambda a, b, least=least: overlap(a["v"], b["v"]) >= least,
            window=window,
            rows=30_000,
            narrow=True,
        )
    for width, window in ((8, 2000), (64, 2000), (64, 200)):
        yield _trial(
            f"{window} vectors of {width}",
            random,
            lambda r, n, _, w=width: {"v": _vectors(r, n, w)},
            lambda a, b, w=width: l2(a["v"], b["v"]) <= 0.5 * w**0.5,
            window=window,
            rows=12_000,
            narrow=True,
        )
    for size, window, most in (
        (500, 500, 50.0),
        (2000, 500, 30.0),
        (8000, 200, 30.0),
        (8000, 200, 60.0),
        (16_000, 200, 30.0),
        (16_000, 200, 45.0),
    ):
        yield _trial(
            f"{window} images of {size} bytes, {most:g} apart",
            random,
            lambda r, n, _, w=size: {"v": _images(r, n, w)},
            lambda a, b, m=most: mean_abs_diff(a["v"], b["v"]) <= m,
            window=window,
            rows=4 * window,
            batch_rows=64,
            narrow=True,
        )


def _sets(r: Generator, n: int, items: int, domain: int) -> Any:
    drawn: Any = pa.array(r.integers(0, domain, (n, items)).reshape(-1))
    offsets: Any = pa.array(np.arange(n + 1, dtype=np.int32) * items)
    return pa.ListArray.from_arrays(offsets, drawn)


def _vectors(r: Generator, n: int, width: int) -> Any:
    """Some clusters, so that few are near."""
    centres = np.random.default_rng(width).normal(0, 1, (50, width))
    found = centres[r.integers(0, 50, n)] + r.normal(0, 0.3, (n, width))
    return pa.FixedSizeListArray.from_arrays(pa.array(found.reshape(-1).astype(np.float32)), width)


def _images(r: Generator, n: int, size: int) -> Any:
    """Smooth ones with noise."""
    level = r.integers(0, 256, (n, 8)).repeat(size // 8 + 1, axis=1)[:, :size]
    found = np.clip(level + r.integers(0, 50, (n, size)), 0, 255).astype(np.uint8)
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(size), n, [None, pa.py_buffer(found.tobytes())]
    )
