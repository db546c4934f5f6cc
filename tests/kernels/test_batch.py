"""Batch joins: what `indices` and `run` return, and what it must not depend on."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.kernels import batch
from windjoin.pyx.base import cpu

from tests.api import build, index_rows, table_rows
from tests.cases import ROW, Case, tiny
from tests.compare import assert_same_results
from tests.oracle import TIME, Apply, Column, join, ordered
from tests.strategies import cases
from tests.values import KINDS

INT = KINDS["int64"]


def indices(case: Case, **options: object) -> list[tuple[int, ...]]:
    return index_rows(case, build(case).indices(case.tables(), **options))


@given(cases())
def test_indices_equal_the_oracle(case: Case):
    assert_same_results(indices(case), join(case.query, case.rows()))


@given(cases())
def test_run_equals_the_oracle(case: Case):
    table = build(case).run(case.tables())
    assert_same_results(table_rows(case.names, table), join(case.query, case.rows()))


@given(cases(most=3))
def test_run_names_columns_by_stream_and_keeps_their_types(case: Case):
    table = build(case).run(case.tables())
    expected = [
        pa.field(f"{stream.name}_{field.name}", field.type)
        for stream in case.streams
        for field in stream.table().schema
    ]
    assert [(field.name, field.type) for field in table.schema] == [
        (field.name, field.type) for field in expected
    ]


@given(cases(most=3))
def test_run_gathers_every_column_of_the_rows_it_names(case: Case):
    query, tables = build(case), case.tables()
    rows = index_rows(case, query.indices(tables))
    result = query.run(tables)
    assert table_rows(case.names, result) == rows
    for number, stream in enumerate(case.streams):
        taken = tables[stream.name].take(pa.array([row[number] for row in rows], pa.int64()))
        for name in stream.kinds:
            got = result.column(f"{stream.name}_{name}").to_pylist()
            assert repr(got) == repr(taken.column(name).to_pylist())


@given(cases(), st.randoms(use_true_random=False))
def test_indices_do_not_depend_on_the_order_of_rows(case: Case, random: Random):
    orders = [list(range(len(stream.stored))) for stream in case.streams]
    for order in orders:
        random.shuffle(order)
    shuffled = Case(
        tuple(
            replace(stream, stored=[stream.stored[row] for row in order])
            for stream, order in zip(case.streams, orders, strict=True)
        ),
        case.query,
    )
    back = [
        tuple(order[row] for order, row in zip(orders, rows, strict=True))
        for rows in indices(shuffled)
    ]
    assert_same_results(back, join(case.query, case.rows()))


@given(cases())
def test_indices_do_not_depend_on_the_order_of_streams(case: Case):
    source = case.source()
    forward, backward = ", ".join(case.names), ", ".join(reversed(case.names))
    namespace: dict[str, object] = {}
    exec(source.replace(f"wj.join({forward}, on=", f"wj.join({backward}, on="), namespace)
    got = namespace["query"].indices(case.tables())  # type: ignore[attr-defined]
    assert list(got) == case.names[::-1]
    in_order = {name: got[name] for name in case.names}
    assert_same_results(index_rows(case, in_order), join(case.query, case.rows()))


@given(cases(), st.integers(2, 5))
def test_indices_do_not_depend_on_threads(case: Case, threads: int):
    assert_same_results(indices(case, threads=threads), Counter(indices(case, threads=1)))


@given(cases())
def test_indices_do_not_depend_on_blocks(small_blocks: None, case: Case):
    assert_same_results(indices(case), join(case.query, case.rows()))


@given(cases(), st.integers(2, 5))
def test_indices_do_not_depend_on_threads_with_small_blocks(
    small_blocks: None, case: Case, threads: int
):
    assert_same_results(indices(case, threads=threads), join(case.query, case.rows()))


@given(cases(), st.integers(1, 7))
def test_indices_do_not_depend_on_chunks(case: Case, size: int):
    chunked = {
        stream.name: pa.concat_tables(
            [stream.table(start, start + size) for start in range(0, len(stream.stored), size)]
            or [stream.table()]
        )
        for stream in case.streams
    }
    got = index_rows(case, build(case).indices(chunked))
    assert got == indices(case)


@given(cases())
def test_indices_come_in_the_same_order_every_time(case: Case):
    assert indices(case) == indices(case)


@given(cases(), st.sampled_from([1, 3]))
def test_ordered_indices_go_by_time_then_by_members(case: Case, threads: int):
    rows = case.rows()
    expected = ordered(join(case.query, rows), rows)
    assert indices(case, ordered=True, threads=threads) == expected


@given(cases(most=3))
def test_ordered_run_goes_by_time_then_by_members(case: Case):
    rows = case.rows()
    expected = ordered(join(case.query, rows), rows)
    assert table_rows(case.names, build(case).run(case.tables(), ordered=True)) == expected


@given(cases(), st.booleans())
def test_rows_of_one_table_do_not_meet_themselves(case: Case, first_pair_only: bool):
    names = case.names
    pairs = [(i, j) for j in range(len(names)) for i in range(j)]
    distinct = tuple(pairs[:1] if first_pair_only else pairs)
    apart = replace(case, query=replace(case.query, distinct=distinct))
    assert_same_results(indices(apart), join(apart.query, apart.rows()))


def test_cross_join_needs_nothing_but_the_windows():
    times = {TIME: (INT, [0, 3, 3, 9])}
    case = tiny([], times, times, windows=[3, 0])
    namespace: dict[str, object] = {}
    exec(case.source().replace("closed='both')", "closed='both', cross=True)"), namespace)
    got = namespace["query"].indices(case.tables())  # type: ignore[attr-defined]
    assert_same_results(index_rows(case, got), join(case.query, case.rows()))


def test_run_passes_nested_and_string_columns_through():
    equal = Apply("==", (Column(0, "k"), Column(1, "k")))
    columns = {TIME: (INT, [0, 1]), "k": (INT, [7, 8])}
    case = tiny([equal], columns, columns)
    payload = {
        "list": pa.array([[1, None], None], pa.list_(pa.int32())),
        "struct": pa.array([{"a": 1, "b": "x"}, None]),
        "text": pa.array(["é", None], pa.large_string()),
        "view": pa.array([None, "longer than twelve bytes"], pa.string_view()),
        "map": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int8())),
    }
    tables = case.tables()
    for name, array in payload.items():
        tables["s1"] = tables["s1"].append_column(name, array)
    result = build(case).run(tables, ordered=True)
    for name, array in payload.items():
        column = result.column(f"s1_{name}")
        # Arrow cannot gather views: they come out as the plain layout of the same values.
        expected = pa.large_string() if array.type == pa.string_view() else array.type
        assert column.type == expected
        assert column.to_pylist() == array.to_pylist()


def test_select_narrows_and_renames():
    equal = Apply("==", (Column(0, "k"), Column(1, "k")))
    columns = {TIME: (INT, [0, 1]), "k": (INT, [7, 8])}
    case = tiny([equal], columns, columns)
    select = f", select=[s1['k'], s0[{ROW!r}].alias('left')])"
    namespace: dict[str, object] = {}
    exec(case.source().rstrip().removesuffix(")") + select, namespace)
    result = namespace["query"].run(case.tables(), ordered=True)  # type: ignore[attr-defined]
    assert result.to_pydict() == {"s1_k": [7, 8], "left": [0, 1]}


@pytest.mark.parametrize("isa", cpu.supported())
def test_results_do_not_depend_on_the_instruction_set(isa: str, tmp_path: Path):
    command = [sys.executable, "-W", "error", "-m", "tests.fuzz", "--seed", "7"]
    command += ["--cases", "12", "--seconds", "600"]  # a slow machine may take its time
    environment = {**os.environ, "WINDJOIN_ISA": isa}
    run = subprocess.run(
        [*command, "--folder", str(tmp_path)],
        cwd=Path(__file__).parents[2],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "12 cases" in run.stdout


def test_a_row_may_be_in_many_results():
    columns = {TIME: (INT, [0] * 5), "k": (INT, [1] * 5)}
    equal = [Apply("==", (Column(i, "k"), Column(i + 1, "k"))) for i in range(2)]
    case = tiny(equal, columns, columns, columns)
    assert Counter(indices(case)).total() == 5**3


def test_a_run_leaves_nothing_to_be_collected() -> None:
    a, b = (wj.stream(name, time="t", window=1) for name in "ab")
    query, rows = wj.join(a, b, on=a["k"] == b["k"]), {"t": [0, 1], "k": [7, 7]}
    gc.collect()
    gc.disable()
    try:
        for threads in (1, 2):
            assert len(query.indices({"a": rows, "b": rows}, threads=threads)["a"]) == 4
            assert not [one for one in gc.get_objects() if type(one) is batch._Job]
    finally:
        gc.enable()
