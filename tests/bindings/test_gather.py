"""Gathering the result's columns: with threads, and more text than one Arrow array holds."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj

MEBIBYTE = 1 << 20
COPIES = 2100  # of a text of a MiB: more than 32-bit offsets reach


def query(window: int = 10, **options: Any) -> Any:
    a, b = (wj.stream(name, time="t", window=window) for name in "ab")
    return wj.join(a, b, on=a["k"] == b["k"], **options)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_columns_do_not_depend_on_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("windjoin.output"), "ROWS_FOR_THREADS", 1)
    n, random = 500, np.random.default_rng(3)
    tables = {
        name: pa.table(
            {
                "t": np.sort(random.integers(0, 400, n)),
                "k": random.integers(0, 20, n),
                "x": random.random(n),
                "text": [f"{name} {i}" if i % 7 else None for i in range(n)],
                "list": [[i, i + 1] for i in range(n)],
            }
        )
        for name in "ab"
    }
    join = query()
    rows = join.indices(tables, threads=1)
    result = join.run(tables, threads=threads, ordered=True)
    assert result.num_rows == len(rows["a"]) > n
    at = {name: pa.array(numbers) for name, numbers in rows.items()}
    for name, table in tables.items():
        for column in table.column_names:
            owed = table.column(column).take(at[name]).to_pylist()
            got = result.column(f"{name}_{column}").to_pylist()
            assert sorted(map(repr, got)) == sorted(map(repr, owed))
    whole = [tuple(row.values()) for row in result.to_pylist()]
    again = join.run(tables, threads=1, ordered=True).to_pylist()
    assert whole == [tuple(row.values()) for row in again]


def test_an_error_in_a_thread_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    output = import_module("windjoin.output")
    monkeypatch.setattr(output, "ROWS_FOR_THREADS", 1)

    def no_memory(column: Any, rows: Any) -> Any:
        raise MemoryError("no room for a column")

    monkeypatch.setattr(output, "take", no_memory)
    table = {"t": [1, 2], "k": [1, 1]}
    with pytest.raises(MemoryError, match="no room for a column"):
        query().run({"a": table, "b": table}, threads=2)


def large() -> dict[str, pa.Table]:
    return {
        "a": pa.table({"t": [5], "k": [1], "text": ["x" * MEBIBYTE]}),
        "b": pa.table({"t": np.full(COPIES, 5), "k": np.ones(COPIES, np.int64)}),
    }


@pytest.mark.parametrize("continuous", [False, True])
def test_more_text_than_32_bit_offsets_reach(continuous: bool) -> None:
    join = query(select=[wj.stream("a", time="t", window=10)["text"].alias("text")])
    if continuous:
        with join.open() as session:
            session.push("a", large()["a"])
            result = session.push("b", large()["b"])
    else:
        result = join.run(large())
    text = result.column("text")
    assert len(text) == COPIES
    assert text.num_chunks > 1
    assert text.nbytes > 2**31
    assert text[0].as_py() == text[COPIES - 1].as_py() == "x" * MEBIBYTE
