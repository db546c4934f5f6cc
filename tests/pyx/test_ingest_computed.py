"""Pushed tables with columns that compiled code cannot read: they are computed on the same way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import windjoin as wj

from tests.pushed_tables import HOSTS, ROWS, holey, in_session, rows

DAY = 86_400 * 10**6  # microseconds
COMPUTED: dict[str, Any] = {
    "a sum": lambda a, b: a["k"] + 1 == b["k"],
    "a sum of doubles": lambda a, b: a["x"] * 2 == b["x"] - 1,
    "a band": lambda a, b: abs(a["x"] - b["n"] % 7) <= 1,
    "a part of a time": lambda a, b: a["d"].dt.hour() == b["k"],
    "dictionaries": lambda a, b: a["s"] == b["s"],
    "texts": lambda a, b: (a["w"].str.lower() == b["w"]) & (a["k"] == b["k"]),
    "two kinds of number": lambda a, b: (a["x"] == b["k"]) & (a["n"] != b["n"]),
    "unsigned and signed": lambda a, b: a["u"] == b["k"],
}


def computed_rows(seed: int) -> pa.Table:
    """Rows with columns of all kinds that have to be computed, with nulls and in no order."""
    rng = np.random.default_rng(seed + 20)
    table = holey(seed).select(["t", "k", "n"])
    words = [None if n % 9 == 0 else ("X" if seed == 0 else "x") + str(n % 4) for n in range(ROWS)]
    doubles = pa.array(rng.integers(0, 9, ROWS) / 2, mask=rng.random(ROWS) < 0.1)
    more = {
        "x": doubles,
        "d": pa.array(rng.integers(0, DAY, ROWS), pa.timestamp("us")),
        "s": pc.utf8_lower(pa.array(words))
        if seed
        else pc.utf8_lower(pa.array(words)).dictionary_encode(),
        "w": pa.array(words),
        "u": pa.array(rng.integers(0, 20, ROWS), pa.uint64()),
    }
    return pa.table({**dict(zip(table.column_names, table.columns, strict=True)), **more})


@HOSTS
@pytest.mark.parametrize("size", [1, 130])
@pytest.mark.parametrize("where", [None, lambda s: s["n"] % 5 > 0])
@pytest.mark.parametrize("computed", list(COMPUTED))
def test_columns_are_computed_on_the_same_way(
    computed: str, where: Any, size: int, hosts: int | None, only_short: None
) -> None:
    a, b = (wj.stream(name, time="t", window=20, where=where) for name in "ab")
    joined = wj.join(a, b, on=COMPUTED[computed](a, b))
    tables = {name: computed_rows(seed) for seed, name in enumerate("ab")}
    expected = sorted(map(str, joined.run(tables).to_pylist()))
    assert len(expected) > 10
    assert in_session(joined, tables, size, hosts=hosts) == expected


@HOSTS
def test_times_of_other_units_are_computed_on_the_same_way(
    hosts: int | None, only_short: None
) -> None:
    a, b = (wj.stream(name, time="t", window="20s") for name in "ab")
    joined = wj.join(a, b, on=a["k"] == b["k"], how="left")
    tables = {}
    for name, unit in zip("ab", ("s", "ms"), strict=True):
        table = holey(len(unit))
        tables[name] = table.set_column(0, "t", table["t"].cast(pa.timestamp("s")))
        time = tables[name]["t"].cast(pa.timestamp(unit))
        tables[name] = tables[name].set_column(0, "t", time)
    expected = sorted(map(str, joined.run(tables).to_pylist()))
    schemas = {name: table.schema for name, table in tables.items()}
    with joined.open(schemas, lateness="9s", on_late="keep", hosts=hosts) as session:
        found = [
            session.push(name, table.slice(start, 30))
            for start in range(0, ROWS, 30)
            for name, table in tables.items()
        ]
        found.append(session.close())
    assert sorted(str(row) for out in found for row in out.to_pylist()) == expected


def not_zero(value: int) -> int:
    if value == 0:
        raise ValueError("zero")
    return value


def test_a_function_that_raises_is_told_of_before_a_row_is_taken(only_short: None) -> None:
    a, b = (wj.stream(name, time="t", window=20) for name in "ab")
    joined = wj.join(a, b, on=a["k"] == wj.udf(not_zero, b["n"]))
    with joined.open(dict.fromkeys("ab", rows(0).schema)) as session:
        with pytest.raises(wj.FunctionError, match="stream 'b', row 0"):
            session.push("b", rows(1).slice(0, 5))
        assert session.push("b", rows(1).slice(1, 5)).num_rows == 0
        assert session.metrics["streams"]["b"]["rows_in"] == 5


WIDE: dict[str, tuple[Any, Any]] = {
    "sets": (pa.list_(pa.int64()), lambda a, b: wj.jaccard(a["w"], b["w"]) >= 0.5),
    "sets of texts": (pa.list_(pa.string()), lambda a, b: wj.jaccard(a["w"], b["w"]) >= 0.5),
    "vectors": (pa.list_(pa.float32(), 3), lambda a, b: wj.l2(a["w"], b["w"]) <= 1),
    "bytes": (pa.list_(pa.uint8(), 3), lambda a, b: wj.mean_abs_diff(a["w"], b["w"]) <= 0.5),
}


def wide_rows(seed: int, kind: str, holes: bool) -> pa.Table:
    """Rows in no order, some late, with sets or vectors of which some are null, or have nulls."""
    rng, arrow = np.random.default_rng(seed + 30), WIDE[kind][0]
    sets = kind.startswith("sets")
    values: list[Any] = [[int(v) for v in rng.integers(0, 4, 3)] for _ in range(ROWS)]
    if sets:
        values = [sorted(set(one)) for one in values]
    if "texts" in kind:
        values = [[str(item) for item in one] for one in values]
    if holes:
        values = [None if n % 9 == 4 else one for n, one in enumerate(values)]
        values = [[None, *one[1:]] if one and n % 7 == 2 else one for n, one in enumerate(values)]
    table = (holey if holes else rows)(seed).select(["t", "k", "n"])
    return table.append_column("w", pa.array(values, arrow))


@HOSTS
@pytest.mark.parametrize("size", [1, 130])
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("kind", list(WIDE))
def test_sets_and_vectors_with_nulls_or_late_go_the_same_way(
    kind: str, holes: bool, size: int, hosts: int | None, only_short: None
) -> None:
    a, b = (wj.stream(name, time="t", window=20) for name in "ab")
    joined = wj.join(a, b, on=[a["k"] == b["k"], WIDE[kind][1](a, b)])
    tables = {name: wide_rows(seed, kind, holes) for seed, name in enumerate("ab")}
    expected = sorted(map(str, joined.run(tables).to_pylist()))
    assert len(expected) > 10
    assert in_session(joined, tables, size, hosts=hosts) == expected


@pytest.mark.parametrize("size", [1, 7, 130])
@pytest.mark.parametrize("keep", [(), ("a",)])
@pytest.mark.parametrize("where", [None, lambda s: s["n"] % 5 > 0])
def test_windows_of_rows_read_the_same_way(
    where: Any, keep: Any, size: int, only_short: None
) -> None:
    a = wj.stream("a", time="t", window=wj.rows(30), where=where)
    b = wj.stream("b", time="t", window=20)
    joined = wj.join(a, b, on=~((a["k"] != b["k"]) | (a["n"] < 3)), keep=keep)
    tables = {name: holey(seed) for seed, name in enumerate("ab")}
    expected = sorted(map(str, joined.run(tables).to_pylist()))
    assert len(expected) > 10
    assert in_session(joined, tables, size) == expected


def test_rows_that_match_nothing_leave_windows_of_rows_that_are_pushed(only_short: None) -> None:
    """Each row counts in a window of the last two, also one without a key or that is late."""
    a = wj.stream("a", time="t", window=wj.rows(2), where=lambda s: s["n"] > 0)
    b = wj.stream("b", time="t", window=20)
    schema = rows(0).schema
    joined = wj.join(a, b, on=a["k"] == b["k"])
    with joined.open(dict.fromkeys("ab", schema), on_late="keep") as session:
        session.push("a", pa.table({"t": [10, 11, 12], "k": [1, 1, None], "n": [1, 2, 3]}, schema))
        session.push("a", pa.table({"t": [13, 5, None], "k": [1, 1, 1], "n": [0, 5, 6]}, schema))
        found = [session.push("b", pa.table({"t": [12, 20], "k": [1, 1], "n": [0, 1]}, schema))]
        found.append(session.close())
    pairs = [(row["a_n"], row["b_n"]) for out in found for row in out.to_pylist()]
    assert pairs == [(2, 0), (2, 1)]
