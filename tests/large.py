"""Two-stream joins of thousands of rows against NumPy: long lists, full blocks, ends of int64.

``python -m tests.large`` compares every shape and prints how many results each has.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import windjoin as wj
from numpy.typing import NDArray

Array = NDArray[np.int64]
Tables = dict[str, dict[str, NDArray[Any]]]
END = 2**63 - 1


def times(random: np.random.Generator, kind: str, rows: int) -> Array:
    """Times in order: spread evenly, in bursts, all equal, or at the ends of int64."""
    if kind == "equal":
        return np.full(rows, 5)
    if kind == "ends":
        near = random.integers(0, 4, rows)
        return np.sort(np.where(random.random(rows) < 0.5, END - near, -END - 1 + near))
    spread = random.integers(0, 10_000, rows)
    if kind == "bursts":
        spread = spread // 1000 * 1000 + random.integers(0, 3, rows)
    return np.sort(spread)


def in_windows(t: Array, u: Array, windows: tuple[int, int]) -> NDArray[np.bool_]:
    """Which pairs of rows are inside the windows, without wrapping."""
    ahead = t[:, None].astype(object) - u[None, :].astype(object)
    inside = (ahead <= windows[1]) & (-ahead <= windows[0])
    return inside.astype(np.bool_)


def shapes() -> Iterator[tuple[str, int, tuple[int, int], int]]:
    """Kind of times, keys, windows, rows."""
    for kind in ("even", "bursts", "equal", "ends"):
        yield kind, 7, (30, 2), 1200
    yield "even", 1, (400, 100), 1500
    yield "even", 1, (END, END), 300
    yield "even", 400, (3000, 900), 1500
    yield "even", 1500, (0, 10_000), 1500
    yield "ends", 1, (0, 0), 700


def expected(holds: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Row numbers where a matrix is true."""
    a, b = np.nonzero(holds)
    return list(zip(a.tolist(), b.tolist(), strict=True))


def joined(query: wj.Query, tables: Tables, **options: int) -> list[tuple[int, int]]:
    """Row numbers of all results, sorted."""
    found = query.indices(tables, **options)
    return sorted(zip(found["a"].tolist(), found["b"].tolist(), strict=True))


def pushed(query: wj.Query, tables: Tables, rows: int, lateness: int = 0) -> list[tuple[int, int]]:
    """The same by pushes of both streams in turn."""
    found: list[tuple[int, int]] = []
    with query.open(rows_only=True, lateness=lateness) as session:
        for start in range(0, len(tables["a"]["t"]), rows):
            for name in "ba":
                part = {c: v[start : start + rows] for c, v in tables[name].items()}
                out = session.push(name, part)
                found += zip(out["a"].tolist(), out["b"].tolist(), strict=True)
    return sorted(found)


def compare(kind: str, keys: int, windows: tuple[int, int], rows: int) -> tuple[int, int]:
    """An equality and a band of one shape; how many results they have."""
    random = np.random.default_rng(keys)
    tables = {
        name: {
            "t": times(random, kind, rows),
            "k": random.zipf(1.3, rows) % keys if keys > 7 else random.integers(0, keys, rows),
            "v": random.integers(0, 40 * keys, rows),
        }
        for name in "ab"
    }
    inside = in_windows(tables["a"]["t"], tables["b"]["t"], windows)
    a, b = (wj.stream(n, time="t", window=w) for n, w in zip("ab", windows, strict=True))
    equal = tables["a"]["k"][:, None] == tables["b"]["k"][None, :]
    close = np.abs(tables["a"]["v"][:, None] - tables["b"]["v"][None, :]) <= 25
    counts = []
    for on, holds in ((a["k"] == b["k"], equal), (abs(a["v"] - b["v"]) <= 25, close)):
        query, wanted = wj.join(a, b, on=on), expected(holds & inside)
        assert joined(query, tables) == wanted, (kind, keys, windows, repr(on))
        assert joined(query, tables, threads=3) == wanted, (kind, keys, windows, repr(on))
        if kind != "ends":
            for rows, lateness in ((97, 20_000), (11, 0), (700, 0)):
                assert pushed(query, tables, rows, lateness) == wanted, (kind, windows, repr(on))
        counts.append(len(wanted))
    return counts[0], counts[1]


def compare_three(keys: int, rows: int) -> int:
    """A three-way equality by pushes against one whole run; how many results it has."""
    random = np.random.default_rng(keys)
    tables = {
        name: {"t": times(random, "even", rows), "k": random.zipf(1.3, rows) % keys}
        for name in "abc"
    }
    streams = [wj.stream(n, time="t", window=w) for n, w in zip("abc", (300, 90, 600), strict=True)]
    a, b, c = streams
    query = wj.join(*streams, on=[a["k"] == b["k"], b["k"] == c["k"]])
    matrix = [
        (tables[x]["k"][:, None] == tables[y]["k"][None, :])
        & in_windows(tables[x]["t"], tables[y]["t"], windows)
        for x, y, windows in (("a", "b", (300, 90)), ("b", "c", (90, 600)), ("a", "c", (300, 600)))
    ]
    wanted = np.argwhere(matrix[0][:, :, None] & matrix[1][None, :, :] & matrix[2][:, None, :])
    for size in (1, 50, rows):
        found = []
        with query.open(rows_only=True) as session:
            for start in range(0, rows, size):
                for name in "cab":
                    part = {n: v[start : start + size] for n, v in tables[name].items()}
                    out = session.push(name, part)
                    found += zip(*(out[n].tolist() for n in "abc"), strict=True)
        assert sorted(found) == [tuple(row) for row in wanted.tolist()], (keys, size)
    return len(wanted)


if __name__ == "__main__":
    assert min(compare_three(keys, 300) for keys in (5, 60)) > 100
    for shape in shapes():
        sys.stdout.write(f"{shape}: {compare(*shape)}\n")
