"""Answers of several rows that meet in one hop: few and many, with gaps, and of other lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj

from tests.similarity_paths import on_every_instruction_set

ROWS = 1400  # of each stream: three blocks
WIDTH = 6
SPAN = 4000
Pairs = dict[tuple[int, int], list[tuple[str, str, float]]]  # measure, sign, share that passes
NEAR: list[tuple[str, str, float]] = [("l2", "<=", 0.03)]
CASES: dict[str, tuple[tuple[int, ...], Pairs]] = {
    "few": ((500, 400, 450), {(0, 1): NEAR, (0, 2): NEAR, (1, 2): NEAR}),
    "many": (
        (30, 25, 40),
        {(0, 1): [("l1", "<", 0.3)], (0, 2): [("l2", "<=", 0.6)], (1, 2): [("l1", ">", 0.4)]},
    ),
    "ring": ((300, 200), {(0, 1): [("l2", ">=", 0.96), ("l2", "<", 0.08)]}),
    "four": (
        (120, 100, 140, 130),
        {(0, 1): NEAR, (0, 2): NEAR, (0, 3): NEAR, (1, 3): NEAR, (2, 3): NEAR},
    ),
    "products": (
        (200, 150, 220),
        {(0, 1): NEAR, (0, 2): [("dot", ">=", 0.05)], (1, 2): [("dot", ">", 0.07)]},
    ),
}


def vectors(random: Any, odd: bool) -> list[Any]:
    """Vectors of small integers around a few centres; if ``odd``, some are shorter."""
    centres = random.integers(-20, 20, (12, WIDTH))
    made = centres[random.integers(0, 12, ROWS)] + random.integers(-6, 7, (ROWS, WIDTH))
    short = random.random(ROWS) < (0.1 if odd else 0)
    return [row[: WIDTH - 2] if cut else row for row, cut in zip(made, short, strict=True)]


def table(random: Any, odd: bool) -> pa.Table:
    """Times with ties, a column to filter by, and vectors."""
    rows = [row.astype(np.float32) for row in vectors(random, odd)]
    kind = pa.list_(pa.float32()) if odd else pa.list_(pa.float32(), WIDTH)
    columns = {"t": np.sort(random.integers(0, SPAN, ROWS)), "k": random.integers(0, 5, ROWS)}
    return pa.table({**columns, "v": pa.array([row.tolist() for row in rows], kind)})


def values(name: str, a: pa.Table, b: pa.Table) -> Any:
    """The measure of all pairs; NaN where lengths differ."""
    padded, lengths = [], []
    for rows in (a, b):
        lists = rows["v"].to_pylist()
        lengths.append(np.array([len(row) for row in lists]))
        padded.append(np.array([row + [0.0] * (WIDTH - len(row)) for row in lists]))
    x, y = padded
    if name == "dot":
        value = x @ y.T  # of integers
    elif name == "l1":
        value = np.abs(x[:, None] - y).sum(2)
    else:
        value = np.sqrt(((x[:, None] - y) ** 2).sum(2))
    value[lengths[0][:, None] != lengths[1]] = np.nan
    return value


def wanted(tables: Sequence[pa.Table], windows: Sequence[int], pairs: Pairs) -> tuple[Any, Any]:
    """(all results, the conditions as functions of two columns)."""
    times = [rows["t"].to_numpy() for rows in tables]
    fits = {}
    for i in range(len(tables)):
        for j in range(i + 1, len(tables)):
            ahead = times[j] - times[i][:, None]
            fits[i, j] = (ahead <= windows[i]) & (-ahead <= windows[j])
    on = []
    for (i, j), conditions in pairs.items():
        for name, sign, share in conditions:
            value = values(name, tables[i], tables[j])
            known = np.sort(value[fits[i, j] & ~np.isnan(value)])
            share = 1 - share if sign.startswith(">") else share
            limit = float(known[int(share * (len(known) - 1))])
            on.append((name, i, j, sign, limit))
    for name, i, j, sign, limit in on:
        value = values(name, tables[i], tables[j])
        compare = {"<=": np.less_equal, "<": np.less, ">=": np.greater_equal, ">": np.greater}
        fits[i, j] = fits[i, j] & compare[sign](value, limit)
    return fits, on


def cliques(fits: Any, usable: Sequence[Any]) -> list[tuple[int, ...]]:
    """Row numbers that fit each other pair by pair."""
    partial = np.flatnonzero(usable[0])[:, None]
    for stream in range(1, len(usable)):
        longer = [np.empty((0, stream + 1), np.int64)]
        for start in range(0, len(partial), 2000):
            block = partial[start : start + 2000]
            both = np.broadcast_to(usable[stream], (len(block), len(usable[stream])))
            for bound in range(stream):
                both = both & fits[bound, stream][block[:, bound]]
            at, rows = np.nonzero(both)
            longer.append(np.column_stack([block[at], rows]))
        partial = np.concatenate(longer)
    return sorted(map(tuple, partial.tolist()))


def query(windows: Sequence[int], on: Any, filtered: bool) -> wj.Query:
    """The query of a case."""
    where = [("a", None), ("b", None), ("c", "k"), ("d", None)]
    streams = []
    for (name, column), window in zip(where, windows, strict=False):
        stream = wj.stream(name, time="t", window=window)
        if column and filtered:
            stream = wj.stream(name, time="t", window=window, where=stream[column] > 0)
        streams.append(stream)
    signs: Any = {
        "<=": lambda m, x: m <= x, "<": lambda m, x: m < x,
        ">=": lambda m, x: m >= x, ">": lambda m, x: m > x,
    }  # fmt: skip
    conditions = [
        signs[sign](getattr(wj, name)(streams[i]["v"], streams[j]["v"]), limit)
        for name, i, j, sign, limit in on
    ]
    return wj.join(*streams, on=conditions)


def by_pushes(asked: wj.Query, tables: Sequence[pa.Table], size: int) -> list[tuple[int, ...]]:
    """Streams take turns, as dictionaries of NumPy arrays where vectors are of one length."""
    names = "abcd"[: len(tables)]
    found: list[tuple[int, ...]] = []
    schemas = {n: rows.schema for n, rows in zip(names, tables, strict=True)}
    with asked.open(schemas=schemas, rows_only=True, lateness=SPAN) as session:
        for start in range(0, ROWS, size):
            for name, rows in zip(names, tables, strict=True):
                part: Any = rows.slice(start, size)
                if pa.types.is_fixed_size_list(part["v"].type):
                    flat = part["v"].combine_chunks().flatten().to_numpy()
                    columns = {c: part[c].to_numpy() for c in "tk"}
                    part = {**columns, "v": flat.reshape(-1, WIDTH)}
                out = session.push(name, part)
                found += zip(*(out[n].tolist() for n in names), strict=True)
    return sorted(found)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("form", ["plain", "filtered", "odd"])
def test_answers_that_meet_equal_all_pairs(case: str, form: str) -> None:
    windows, pairs = CASES[case]
    random = np.random.default_rng([len(case), len(form)])
    tables = [table(random, form == "odd") for _ in windows]
    fits, on = wanted(tables, windows, pairs)
    filtered = form == "filtered" and len(tables) > 2
    usable = [np.ones(ROWS, np.bool_) for _ in tables]
    if filtered:
        usable[2] = tables[2]["k"].to_numpy() > 0
    expected = cliques(fits, usable)
    assert len(expected) > 100
    asked = query(windows, on, filtered)
    named = dict(zip("abcd", tables, strict=False))
    for threads in (1, 2):
        found = asked.indices(named, threads=threads)
        rows = sorted(zip(*(found[n].tolist() for n in named), strict=True))
        assert len(rows) == len(expected)
        assert rows == expected
    for size in (1, 70):
        assert by_pushes(asked, tables, size) == expected


SCRIPT = """
import numpy as np
from tests.pyx.test_few_rows import CASES, by_pushes, query, table, wanted
for case, (windows, pairs) in CASES.items():
    tables = [table(np.random.default_rng(k), False) for k in range(len(windows))]
    _, on = wanted(tables, windows, pairs)
    asked = query(windows, on, False)
    found = asked.indices(dict(zip("abcd", tables)))
    rows = sorted(zip(*(part.tolist() for part in found.values())))
    assert rows == by_pushes(asked, tables, 70), case
    print([len(rows), hash(tuple(rows))])
"""


def test_every_instruction_set_finds_the_same() -> None:
    on_every_instruction_set(SCRIPT)
