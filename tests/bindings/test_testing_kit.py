"""`windjoin.testing`: its own definition against the oracle, and what it says of wrong results."""

from __future__ import annotations

import contextlib
import io
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given, settings
from hypothesis import strategies as st
from windjoin import testing

from tests import similarity_oracle
from tests.api import build, table_rows
from tests.cases import Case
from tests.effort import examples
from tests.kernels.test_outer import members
from tests.oracle import join, outcome
from tests.strategies import cases, outers

A, B = (wj.stream(name, time="t", window=5) for name in "ab")
QUERY = wj.join(A, B, on=A["k"] == B["k"])
TABLES = {
    "a": {"t": [1, 4, 9, 9], "k": [1, 2, 1, 1]},
    "b": {"t": [2, 3, 3, 30], "k": [1, 2, 2, 1]},
}


@given(cases(most=4))
def test_expected_equals_the_oracle(case: Case) -> None:
    found = testing.expected(build(case), case.tables())
    assert Counter(table_rows(case.names, found)) == join(case.query, case.rows())


@given(outers(most=3))
def test_expected_knows_rows_without_partners(case: Case) -> None:
    found = testing.expected(build(case), case.tables())
    assert members(case, found) == outcome(case.query, case.rows())


@pytest.mark.parametrize(
    ("family", "arrow", "names"),
    [
        ("sets", pa.list_(pa.int64()), list(similarity_oracle.SETS)),
        ("weighted", pa.map_(pa.int64(), pa.float64()), list(similarity_oracle.WEIGHTED)),
        ("vectors", pa.list_(pa.float64()), list(similarity_oracle.VECTORS)),
        ("bytes", pa.binary(), list(similarity_oracle.BYTES)),
    ],
)
def test_measures_of_the_kit_equal_those_of_the_oracle(
    family: str, arrow: Any, names: list[str]
) -> None:
    rows: list[Any] = {
        "sets": [[1, 2], [2, None, 3], [], None],
        "weighted": [[(1, 0.5), (2, 2.0)], [(2, 3.0)], [], None],
        "vectors": [[1.0, 2.0], [0.0, 0.0], [3.0, -1.5], [1.0], [None, 1.0], None],
        "bytes": [b"ab", b"az", b"", b"abc", None],
    }[family]
    table = pa.table({"t": pa.array([0] * len(rows), pa.int64()), "v": pa.array(rows, arrow)})
    for name in names:
        bits = {"unit": "bits"} if name == "hamming_bits" else {}
        measure = getattr(wj, name.removesuffix("_bits"))(A["v"], B["v"], **bits)
        query = wj.join(A, B, on=[], cross=True, select=[measure.alias("m")])
        tables = {"a": table, "b": table}
        defined = [similarity_oracle.measure(family, name, x, y) for x in rows for y in rows]
        found = testing.expected(query, tables)
        assert Counter(found["m"].to_pylist()) == Counter(defined)
        testing.assert_same_results(found, query.run(tables))


def tenths(*values: str) -> Any:
    return pa.array(list(map(Decimal, values)), pa.decimal128(4, 1))


def test_expected_selects_computes_and_keeps_types() -> None:
    on = [A["k"] == B["k"], A["t"] < B["t"]]
    chosen = [(A["k"] + 1).alias("n"), B["t"], (A["x"] * B["x"]).alias("p")]
    query = wj.join(A, B, on=on, select=chosen, closed="right")
    tables = {
        "a": pa.table({"t": [1, 4], "k": [1, 2], "x": tenths("1.5", "2.0")}),
        "b": pa.table({"t": [2, 9], "k": [1, 2], "x": tenths("3.1", "2.0")}),
    }
    found = testing.expected(query, tables)
    assert found.schema == query.run(tables).schema
    testing.assert_same_results(found, query.run(tables))
    assert len(found) == 1


def test_expected_raises_what_a_function_raises() -> None:
    def quotient(x: int, y: int) -> bool:
        return x // y > 0

    query = wj.join(A, B, on=[A["k"] == B["k"], wj.udf(quotient, A["k"], B["t"])])
    with pytest.raises(wj.FunctionError, match="raised ZeroDivisionError"):
        testing.expected(query, {"a": {"t": [0], "k": [1]}, "b": {"t": [0], "k": [1]}})


def test_the_nearest_are_those_of_the_definition() -> None:
    query = wj.join(A, B, on=wj.l1(A["v"], B["v"]) <= 3, nearest=1)
    tables = {
        "a": {"t": [1, 2, 3], "v": np.array([[0.0], [2.0], [5.0]])},
        "b": {"t": [2, 3, 4], "v": np.array([[1.0], [2.0], [4.0]])},
    }
    testing.check(query, tables)
    assert len(testing.expected(query, tables)) == 3


def test_check_passes_in_every_mode() -> None:
    for seed in range(3):
        testing.check(QUERY, TABLES, seed=seed)
    testing.check(wj.join(A, B, on=A["k"] < B["k"], exclude_self=True), TABLES)


def test_check_prints_the_smallest_tables_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = wj.Query.run

    def wrong(query: Any, tables: Any, **options: Any) -> Any:
        found = whole(query, tables, **options)
        return found.filter(pa.compute.field("b_t") != 3)

    monkeypatch.setattr(wj.Query, "run", wrong)
    with pytest.raises(AssertionError) as caught:
        testing.check(QUERY, TABLES, modes="batch", seed=5)
    told = str(caught.value)
    assert "mode 'batch' (seed=5) is not what is expected" in told
    assert "1 row on the right only:\n    a_t=4, a_k=2, b_t=3, b_k=2" in told
    types = "(t: int64, k: int64)"
    assert told.endswith(f"  a {types}\n    [4, 2]\n  b {types}\n    [3, 2]")
    testing.check(QUERY, TABLES, modes=["pushes"])


def test_check_finds_a_session_that_forgets_what_was_saved(monkeypatch: Any) -> None:
    monkeypatch.setattr(testing.checking, "STAYS", 0)
    monkeypatch.setattr(testing.checking, "restore", lambda q, folder: q.open(lateness=100))
    with pytest.raises(AssertionError, match="mode 'saved' \\(seed=3\\) is not what is expected"):
        testing.check(QUERY, TABLES, modes="saved", seed=3)


def test_check_knows_its_modes() -> None:
    with pytest.raises(wj.QueryError, match="modes: 'push' is not one; did you mean 'pushes'"):
        testing.check(QUERY, TABLES, modes=["push"])


@given(batch=st.integers(1, 5), disorder=st.integers(0, 9), seed=st.integers(0, 99))
@settings(max_examples=examples(20))
def test_play_gives_all_results(batch: int, disorder: int, seed: int) -> None:
    played = list(testing.play(QUERY, TABLES, batch=batch, disorder=disorder, seed=seed))
    testing.assert_same_results([results for _, results in played], QUERY.run(TABLES))
    steps = [step for step, _ in played]
    assert [step.number for step in steps] == list(range(len(steps)))
    assert steps[-1].stream is None
    assert sum(len(step.rows) for step in steps[:-1]) == 8
    assert all(0 < len(step.rows) <= batch for step in steps[:-1])
    again = testing.play(QUERY, TABLES, batch=batch, disorder=disorder, seed=seed)
    assert [step.rows for step, _ in again] == [step.rows for step in steps]


def test_play_takes_rows_without_a_time_and_options_of_open() -> None:
    tables = TABLES | {"a": pa.table({"t": pa.array([None, 4], pa.int64()), "k": [1, 2]})}
    played = testing.play(QUERY, tables, rows_only=True)
    assert sum(len(results["a"]) for _, results in played) == 2
    with pytest.raises(wj.QueryError, match="give how many rows come in a push, 1 or more"):
        list(testing.play(QUERY, TABLES, batch=0))


def test_play_disturbs_the_order_of_rows() -> None:
    times = {"t": list(range(50)), "k": [0] * 50}
    rows = [
        step.rows["t"][0].as_py()
        for step, _ in testing.play(QUERY, {"a": times, "b": TABLES["b"]}, batch=1, disorder=5)
        if step.stream == "a" and step.rows is not None
    ]
    assert sorted(rows) == list(range(50)) != rows


def test_same_results_are_told_from_others() -> None:
    one = pa.table({"a": [1, 1, 2], "b": ["x", "x", None]})
    testing.assert_same_results(one, one.select(["b", "a"]).take([2, 1, 0]))
    testing.assert_same_results(one, one.to_batches(max_chunksize=1))
    testing.assert_same_results({"a": np.array([1])}, {"a": [1]})
    testing.assert_same_results({"v": [float("nan")]}, {"v": [None]})
    with pytest.raises(AssertionError, match="3 rows on the left, 2 on the right\n  1 row on the"):
        testing.assert_same_results(one, one.slice(1))
    with pytest.raises(AssertionError, match=r"results have other columns: \['a', 'b'\] on the le"):
        testing.assert_same_results(one, {"a": [1]})
    with pytest.raises(AssertionError, match="and 2 more"):
        testing.assert_same_results({"a": []}, {"a": list(range(12))})
    with pytest.raises(TypeError, match="results are a int; give a table"):
        testing.assert_same_results(one, 5)


def test_a_clock_is_moved_by_hand() -> None:
    clock = testing.Clock(5)
    clock.advance(1.5)
    clock.advance("1m")
    assert clock() == clock.now == 66.5
    with pytest.raises(wj.QueryError, match="a clock goes forward"):
        clock.advance(-1)


def test_the_page_on_testing_runs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
    namespace: dict[str, Any] = {}
    for program in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(program, namespace)
    namespace["test_my_join"]()
