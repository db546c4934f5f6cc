"""What is said of a function that raises, and of what it is asked at all."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj

from tests.compare import assert_same_results
from tests.modes import ARROW, MODES

# -- what the error says --------------------------------------------------------------------------


def too_large(x: float, y: float) -> bool:
    if x > 0.9:
        raise ValueError("too large")
    return abs(x - y) <= 0.05


def told(x: float, y: float) -> bool:
    if x > 0.9:
        raise ValueError(x, 7)
    return abs(x - y) <= 0.05


def streams(names: str, window: int = 5) -> list[Any]:
    return [wj.stream(name, time="ts", window=window) for name in names]


def tables(**columns: list[float]) -> dict[str, pa.Table]:
    """One row a tick."""
    return {
        name: pa.table({"ts": range(len(x)), "x": pa.array(x, pa.float64()), "n": range(len(x))})
        for name, x in columns.items()
    }


A = [0.1, 0.3, 0.5, 0.95, 0.2]
B = [0.7, 0.4, 0.125, 0.6, 0.8]
CALLED = r"`udf\(too_large, a\[\"x\"\], b\[\"x\"\]\)`: too_large\(0.95, 0\.\d+\) raised "
CALLED += r"ValueError: too large \(File \".*test_function_errors.py\", line \d+\)"


@pytest.mark.parametrize("mode", MODES)
def test_the_error_names_function_streams_rows_values_and_exception(mode: str) -> None:
    a, b = streams("ab")
    query = wj.join(a, b, on=wj.udf(too_large, a["x"], b["x"]))
    with pytest.raises(wj.FunctionError) as caught:
        list(MODES[mode](query, tables(a=A, b=B)))
    rows = r"stream 'a', row 3, with stream 'b', row \d: "
    if mode in ARROW:
        rows = r"stream 'a', row of ts 3, with stream 'b', row of ts \d: "
    where = r"( \(on host \d, .*segment.*\))?"
    assert re.fullmatch(rows + CALLED + where, str(caught.value)), str(caught.value)
    assert isinstance(caught.value, wj.WindjoinError)
    assert isinstance(caught.value, RuntimeError)
    cause = caught.value.__cause__
    assert isinstance(cause, ValueError)
    assert cause.args == ("too large",)


def test_arguments_of_the_exception_are_its_own() -> None:
    a, b = streams("ab")
    with pytest.raises(wj.FunctionError, match=r"raised ValueError: \(0.95, 7\)") as caught:
        wj.join(a, b, on=wj.udf(told, a["x"], b["x"])).run(tables(a=A, b=B))
    assert caught.value.__cause__ is not None
    assert caught.value.__cause__.args == (0.95, 7)


def test_exceptions_without_a_text_are_named() -> None:
    def odd(x: float, y: float) -> bool:
        if x > 0.9:
            raise IndexError
        return True

    a, b = streams("ab")
    with pytest.raises(wj.FunctionError, match=r"odd\(0.95, 0.\d+\) raised IndexError \(File"):
        wj.join(a, b, on=wj.udf(odd, a["x"], b["x"])).run(tables(a=A, b=B))


def test_rows_have_the_numbers_of_their_tables() -> None:
    """Not in time order, some of them not usable."""
    a, b = streams("ab")
    query = wj.join(a, b, on=wj.udf(too_large, a["x"], b["x"]))
    columns = {"ts": [5, None, 1, 4, 3], "x": [0.1, 0.99, None, 0.2, 0.95]}
    other = {"ts": [4, 900], "x": [0.5, 0.5]}
    for options in ({"threads": 1}, {"hosts": 2}):
        with pytest.raises(wj.FunctionError, match=r"stream 'a', row 4, with stream 'b', row 0: "):
            query.indices({"a": columns, "b": other}, **options)


def test_an_exception_that_does_not_come_again() -> None:
    @numba.njit
    def moody(x: float, y: float) -> bool:
        if np.random.random() < 0.5:  # noqa: NPY002
            raise ValueError("now and then")
        return x < y

    a, b = streams("ab")
    query = wj.join(a, b, on=wj.udf(moody, a["x"], b["x"]))
    seen = set()
    for _ in range(200):
        try:
            query.run(tables(a=A, b=B))
        except wj.FunctionError as error:
            seen.add(re.sub(r"^.*raised (.*) \(File.*$", r"\1", str(error)))
    again = "an exception, but not when it was called again to say which"
    assert seen <= {"ValueError: now and then", again}
    assert again in seen


# -- what is asked, and what is not ----------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_pairs_out_of_reach_raise_nothing(mode: str) -> None:
    """Rows that raise lie between others in indexes, outside of all windows."""
    a, b = streams("ab", window=1)
    query = wj.join(a, b, on=wj.udf(too_large, a["x"], b["x"]))
    rows = tables(a=[0.5, 0.99, 0.5, 0.5] * 20, b=[0.52] * 80)
    far = rows["b"]["ts"].to_numpy().copy()
    far[[at for at in range(80) if at % 4 in (0, 1, 2)]] += 10_000
    rows["b"] = rows["b"].set_column(0, "ts", pa.array(far)).sort_by("ts")
    number = rows["b"]["n"].to_pylist()
    near = [at for at in range(80) if at % 4 == 3]
    owed = Counter(
        (i, number.index(j)) for j in near for i in (j - 1, j, j + 1) if i < 80 and i % 4 != 1
    )
    if mode in ARROW or "of tables" in mode or "on hosts" in mode:
        owed = Counter((i, number[j]) for i, j in owed)
    assert_same_results(MODES[mode](query, rows), owed)


@pytest.mark.parametrize("mode", MODES)
def test_what_other_conditions_exclude_raises_nothing(mode: str) -> None:
    a, b, c = streams("abc")
    query = wj.join(
        a, b, c, on=[wj.udf(too_large, a["x"], b["x"]), a["x"] < 0.9 + 0 * c["x"], a["n"] >= c["n"]]
    )
    found = Counter(MODES[mode](query, tables(a=A, b=A, c=A)))
    assert found == Counter(
        (i, j, k)
        for i in range(5)
        for j in range(5)
        for k in range(5)
        if i != 3 and abs(A[i] - A[j]) <= 0.05 and k <= i
    )


def quotient(x: float, y: float) -> bool:
    if x == y:
        raise ZeroDivisionError
    return 1 / (x - y) > 0


def test_a_row_and_itself_raise_nothing() -> None:
    a, b = streams("ab")
    query = wj.join(a, b, on=wj.udf(quotient, a["x"], b["x"]), exclude_self=True)
    table = tables(a=A)["a"]
    owed = Counter((i, j) for i in range(5) for j in range(5) if A[i] > A[j])
    modes = [mode for mode in MODES if mode != "joiner"]  # it cannot tell rows apart
    for mode in modes:
        assert Counter(MODES[mode](query, {"a": table, "b": table})) == owed, mode


def test_partial_results_that_raise_need_no_partner() -> None:
    """Of three streams: rows of two raise, and no row of the third completes them."""
    a, b, c = streams("abc")
    query = wj.join(a, b, c, on=[wj.udf(too_large, a["x"], b["x"]), b["n"] == c["n"]])
    rows = tables(a=A, b=A, c=[0.0])
    for mode in MODES:
        with pytest.raises(wj.FunctionError):
            list(MODES[mode](query, rows))
    rows["a"] = rows["a"].set_column(1, "x", pa.array([0.1, 0.3, 0.5, 0.5, 0.2]))
    rows["b"] = rows["b"].set_column(1, "x", pa.array([0.1, 0.99, 0.99, 0.99, 0.99]))
    turned = wj.join(a, b, c, on=[wj.udf(too_large, b["x"], a["x"]), b["n"] == c["n"]])
    for mode in MODES:
        assert Counter(MODES[mode](turned, rows)) == Counter([(0, 0, 0)]), mode


def test_plans_call_no_functions() -> None:
    """Of many rows samples are looked at; the function raises for nearly all pairs of those."""

    def only_neighbours(x: float, y: float) -> bool:
        if abs(x - y) > 1:
            raise ValueError("far apart")
        return x <= y

    a, b = streams("ab", window=1)
    n = 5000
    rows = {"ts": np.arange(n), "x": np.arange(n, dtype=float)}
    query = wj.join(a, b, on=[wj.udf(only_neighbours, a["x"], b["x"]), a["x"] != b["x"]])
    for options in ({"threads": 2}, {"hosts": 2}):
        assert len(query.indices({"a": rows, "b": rows}, **options)["a"]) == n - 1
    with query.open(rows_only=True) as session:
        found = 0
        for part in np.array_split(np.arange(n), 9):
            for name in "ab":
                found += len(session.push(name, {c: v[part] for c, v in rows.items()})["a"])
    assert found == n - 1


def test_exceptions_that_nobody_hears_of_take_no_memory() -> None:
    """Nine million with arguments of their own, of pairs that another condition excludes."""
    a, b = streams("ab", window=3000)
    query = wj.join(a, b, on=[wj.udf(told, a["x"], b["x"]), a["n"] != b["n"]], select=[a["n"]])
    n = 3000
    rows = {"ts": np.arange(n), "x": np.ones(n), "n": np.zeros(n, np.int64)}
    held = []
    for _ in range(2):
        assert len(query.indices({"a": rows, "b": rows})["a"]) == 0
        with open("/proc/self/statm") as statm:
            held.append(int(statm.read().split()[1]))
    assert (held[1] - held[0]) * 4096 < 50e6


def test_conditions_are_asked_before_the_nearest_are_chosen() -> None:
    a, b = streams("ab")
    on = [wj.l2(a["v"], b["v"]) <= 9, wj.udf(too_large, a["x"], b["x"])]
    query = wj.join(a, b, on=on, nearest=1)
    rows = tables(a=A, b=B)
    for name, table in rows.items():
        vectors = pa.FixedSizeListArray.from_arrays(table["x"].combine_chunks(), 1)
        rows[name] = table.append_column("v", vectors)
    with pytest.raises(wj.FunctionError, match=r"too_large\(0.95, "):
        query.run(rows)
    with query.open() as session:
        session.push("a", rows["a"])
        with pytest.raises(wj.FunctionError, match=r"too_large\(0.95, "):
            session.push("b", rows["b"])


# -- functions of one stream, and of results -------------------------------------------------------


def root(x: float) -> bool:
    if x < 0:
        raise ValueError("negative")
    return x**0.5 < 2


@pytest.mark.parametrize("mode", MODES)
def test_a_function_of_one_stream_names_its_row(mode: str) -> None:
    a = wj.stream("a", time="ts", window=5, where=lambda a: wj.udf(root, a["x"]))
    (b,) = streams("b")
    query = wj.join(a, b, cross=True)
    called = r"`udf\(root, a\[\"x\"\]\)`: root\(-1.0\) raised ValueError: negative \(File"
    with pytest.raises(wj.FunctionError, match=rf"^stream 'a', row \d+: {called}") as caught:
        list(MODES[mode](query, tables(a=[1.0, -1.0, 9.0], b=[1.0])))
    assert isinstance(caught.value.__cause__, ValueError)


def test_rows_that_other_conditions_exclude_are_not_in_error() -> None:
    conditions = "wj.udf(root, a['x']) & (a['x'] >= 0)"
    where = lambda a: eval(conditions, {"wj": wj, "root": root, "a": a})  # noqa: E731
    a = wj.stream("a", time="ts", window=5, where=where)
    (b,) = streams("b")
    rows = tables(a=[1.0, -1.0, 9.0], b=[1.0])
    assert wj.join(a, b, cross=True).indices(rows)["a"].tolist() == [0]
    rows["a"] = rows["a"].set_column(0, "ts", pa.array([0, None, 2], pa.int64()))
    a = wj.stream("a", time="ts", window=5, where=lambda a: wj.udf(root, a["x"]))
    assert wj.join(a, b, cross=True).indices(rows)["a"].tolist() == [0]


def test_a_side_of_a_comparison_that_raises() -> None:
    def whole(x: float) -> int:
        if x != int(x):
            raise ValueError(x)
        return int(x)

    a, b = streams("ab")
    query = wj.join(a, b, on=wj.udf(whole, a["x"]) == b["n"])
    assert query.indices(tables(a=[2.0, 0.0], b=[1.0, 1.0]))["a"].tolist() == [1]
    with pytest.raises(wj.FunctionError, match=r"^stream 'a', row 1: `udf\(whole, a\[\"x\"\]\)`"):
        query.indices(tables(a=[2.0, 0.5], b=[1.0, 1.0]))


def test_a_selected_function_that_raises_names_the_result() -> None:
    a, b = streams("ab")
    selected = wj.udf(too_large, a["x"], b["x"]).alias("close")
    query = wj.join(a, b, on=a["n"] == b["n"], select=[a["n"], selected])
    assert query.run(tables(a=[0.1, 0.2], b=[0.1, 0.5]))["close"].to_pylist() == [True, False]
    with pytest.raises(wj.FunctionError, match=rf"^select: result row 3: {CALLED}$"):
        query.run(tables(a=A, b=B))


# -- sessions --------------------------------------------------------------------------------------


def test_a_session_ends_with_the_error_of_a_result() -> None:
    a, b = streams("ab")
    query = wj.join(a, b, on=wj.udf(too_large, a["x"], b["x"]))
    rows = tables(a=A, b=B)
    for rows_only in (True, False):
        session = query.open({n: t.schema for n, t in rows.items()}, rows_only=rows_only)
        session.push("a", rows["a"])
        with pytest.raises(wj.FunctionError, match="row 3, with stream 'b', row 0"):
            session.push("b", rows["b"].slice(0, 1))
        with pytest.raises(wj.SessionError, match="ended when a push into it was broken off"):
            session.push("b", rows["b"])
        assert session.metrics["rows_in"] >= 5
        assert len(session.close()) == (2 if rows_only else 0)


def test_a_session_goes_on_after_a_function_of_one_stream_raised() -> None:
    a = wj.stream("a", time="ts", window=5, where=lambda a: wj.udf(root, a["x"]))
    (b,) = streams("b")
    schemas = {name: table.schema for name, table in tables(a=A, b=B).items()}
    with wj.join(a, b, cross=True).open(schemas) as session:
        session.push("b", tables(b=[1.0])["b"])
        with pytest.raises(wj.FunctionError, match="stream 'a', row 0"):
            session.push("a", tables(a=[-1.0])["a"])
        assert session.metrics["rows_in"] == 1
        assert session.push("a", tables(a=[1.0])["a"]).num_rows == 1
