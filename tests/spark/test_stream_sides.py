"""Rows without partners, and the nearest of them, from streaming DataFrames on Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
import windjoin.spark as wjs

from tests.spark import MARKS
from tests.spark.queries import rows_of, table
from tests.spark.test_stream import Sources, run_all

pytestmark = MARKS
A, B, C = (wj.stream(n, time="ts", window=w) for n, w in zip("abc", (15, 30, 8), strict=True))
KEY = A["k"] == B["k"]
FAR = 10**6  # a time by which all before it is final
EPOCHS = 4


def left() -> wj.Query:
    return wj.join(A, B, on=[KEY, A["x"] < B["x"]], how="left", select=[A["n"], B["n"], B["w"]])


def full_of_a_band() -> wj.Query:
    return wj.join(A, B, on=abs(A["x"] - B["x"]) <= 0.05, how="full", select=[A["n"], B["n"]])


def semi() -> wj.Query:
    on = [abs(A["x"] - B["x"]) <= 0.4, B["w"] == C["w"]]
    return wj.join(A, B, C, on=on, how="semi", select=[A["n"], A["w"]])


def anti() -> wj.Query:
    return wj.join(A, B, on=abs(A["x"] - B["x"]) <= 0.1, how="anti", select=[A["n"], A["w"]])


def two_kept_of_three() -> wj.Query:
    on = [abs(A["x"] - B["x"]) <= 0.3, B["k"] == C["k"]]
    return wj.join(A, B, C, on=on, keep=["b", "c"], select=[A["n"], B["n"], C["n"]])


def missing() -> wj.Query:
    on = [KEY, abs(B["x"] - C["x"]) <= 0.3, A["w"] == C["w"]]
    return wj.join(A, B, C, on=on, missing=[C], select=[A["n"], B["n"]])


def exists() -> wj.Query:
    on = [KEY, B["w"] == C["w"]]
    return wj.join(A, B, C, on=on, exists=[C], select=[A["n"], B["n"]])


def nearest() -> wj.Query:
    on = [wj.l1(A["v"], B["v"]) <= 0.5, KEY]
    return wj.join(A, B, on=on, nearest=1, how="left", select=[A["n"], B["n"]])


Build = Callable[[], wj.Query]
FEW: list[tuple[Build, str]] = [(full_of_a_band, "ctr"), (missing, "auto")]
MORE: list[tuple[Build, str]] = [
    (left, "groups"), (left, "auto"), (left, "atr"), (left, "psp"), (left, "single"),
    (full_of_a_band, "atr"), (full_of_a_band, "psp"), (semi, "atr"), (semi, "single"),
    (anti, "atr"), (anti, "ctr"),
    (anti, "psp"), (two_kept_of_three, "atr"), (two_kept_of_three, "ctr"), (missing, "atr"),
    (two_kept_of_three, "psp"), (missing, "single"), (exists, "auto"), (exists, "atr"),
    (nearest, "groups"), (nearest, "single"), (nearest, "auto"),
]  # fmt: skip


def rows_with_vectors(seed: int) -> pa.Table:
    own = table(seed, 200, ordered=True)
    vectors = pa.array([[float(x)] for x in own.column("x").to_pylist()], pa.list_(pa.float64()))
    return own.append_column("v", vectors)


def at_the_end(number: int, rows: pa.Table, later: int) -> pa.Table:
    """A row that matches nothing, far behind all others."""
    first = rows.slice(0, 1).to_pylist()[0]
    alone = {"ts": FAR + later, "k": -1 - number, "w": f"end {number}", "x": 1e9 * (number + 1)}
    return pa.Table.from_pylist([{**first, **alone, "v": [1e9 * (number + 1)]}], rows.schema)


def check(spark: Any, folder: Path, build: Build, strategies: tuple[str, str]) -> None:
    query = build()
    tables = {name: rows_with_vectors(seed) for seed, name in enumerate(query.names)}
    ends = [{n: at_the_end(s, t, e) for s, (n, t) in enumerate(tables.items())} for e in (0, 1)]
    pieces = {n: pa.concat_tables([t, *(end[n] for end in ends)]) for n, t in tables.items()}
    sources = Sources(spark, folder, pieces)
    total = 200 + len(ends)
    borders = [*np.linspace(0, 200, EPOCHS + 1).astype(int).tolist(), 201, 202]
    half = EPOCHS // 2
    for part, strategy in zip((borders[: half + 1], borders[half:]), strategies, strict=True):
        for epoch, (first, last) in enumerate(pairwise(part)):
            sources.add(epoch + (half if part[0] else 0), first / total, last / total)
        joined = wjs.stream(
            query, sources.frames(), lateness=40, slots=3, strategy=strategy,
            log=str(folder / "log"),
        )  # fmt: skip
        run_all(joined, folder)
    found = rows_of(spark.read.parquet(str(folder / "out")))
    expected = rows_of(query.run(tables))
    assert expected.total() > 5
    assert found == expected, (found - expected, expected - found)


@pytest.mark.parametrize(("build", "strategy"), FEW)
def test_what_has_no_partner_comes_out_of_streaming_frames(
    spark: Any, tmp_path: Path, build: Build, strategy: str
) -> None:
    check(spark, tmp_path, build, (strategy, "auto"))


@pytest.mark.slow
@pytest.mark.parametrize(("build", "strategy"), MORE)
def test_every_form_and_strategy(spark: Any, tmp_path: Path, build: Build, strategy: str) -> None:
    check(spark, tmp_path, build, (strategy, strategy))


def test_rows_of_streams_that_join_batch_frames_leave_at_once(spark: Any, tmp_path: Path) -> None:
    """No row of the other side will come, so nothing is to wait for."""
    tables = {name: rows_with_vectors(seed) for seed, name in enumerate("ab")}
    sources = Sources(spark, tmp_path, tables)
    sources.add(0, 0, 1)
    query = left()
    frames = sources.frames() | {"b": spark.createDataFrame(tables["b"])}
    run_all(wjs.stream(query, frames, slots=2, log=str(tmp_path / "log")), tmp_path)
    found: Counter[Any] = rows_of(spark.read.parquet(str(tmp_path / "out")))
    assert found == rows_of(query.run(tables))
