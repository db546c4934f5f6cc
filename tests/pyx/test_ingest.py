"""Tables that go through compiled code from Arrow to Arrow: what may they be, what do they give?"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin import tested

from tests.pushed_tables import HOSTS, ROWS, holey, in_session, pushed, query, rows, wanted

OPERATORS = ["<", "<=", ">", ">=", "==", "!="]
NUMBERS = [None, 0.0, -1.5, 2.0, float("nan"), float("inf"), 3.25]
LONG = [0, 1, 2**63, 2**64 + 1, -(2**63) - 1]  # the low 64 bits of some are those of others
KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int64": (pa.int64(), [None, -(2**63), -1, 0, 1, 2, 2**63 - 1]),
    "int8": (pa.int8(), [None, -1, 0, 1, 2]),
    "uint32": (pa.uint32(), [None, 0, 1, 2, 2**32 - 1]),
    "float64": (pa.float64(), NUMBERS),
    "float32": (pa.float32(), NUMBERS),
    "decimal": (pa.decimal128(12, 2), [None, Decimal("1.50"), Decimal("-0.01"), Decimal(2)]),
    "long decimal": (pa.decimal128(38, 0), [None, *map(Decimal, LONG)]),
    "wide decimal": (pa.decimal256(60, 0), [None, *map(Decimal, LONG)]),
}


def texts(table: pa.Table, arrow: pa.DataType) -> pa.Table:
    names = [None if k == 7 else f"name {k}" for k in table["k"].to_pylist()]
    return table.set_column(1, "k", pa.array(names, pa.string()).cast(arrow))


@HOSTS
@pytest.mark.parametrize("size", [1, 7, 130])
@pytest.mark.parametrize("arrow", [pa.string(), pa.large_string(), pa.binary()], ids=str)
def test_texts_are_keys(arrow: pa.DataType, size: int, hosts: int | None, only_short: None) -> None:
    tables = {name: texts(rows(seed), arrow) for seed, name in enumerate("ab")}
    assert pushed(query(), tables, size, hosts=hosts) == wanted(query(), tables)


@pytest.mark.parametrize("size", [1, 7, 130])
@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
def test_as_of_joins_read_the_same_way(direction: Any, size: int, only_short: None) -> None:
    a, b = (wj.stream(name, time="t", window=20) for name in "ab")
    joined = wj.join(a, b, on=a["k"] == b["k"], nearest=1, direction=direction)
    tables = {name: holey(seed) for seed, name in enumerate("ab")}
    expected = sorted(map(str, joined.run(tables).to_pylist()))
    assert in_session(joined, tables, size) == expected


@HOSTS
@pytest.mark.parametrize("size", [1, 7, 130])
@pytest.mark.parametrize("as_batch", [True, False])
def test_nulls_and_disorder_are_seen_to(
    size: int, as_batch: bool, hosts: int | None, only_short: None
) -> None:
    tables = {}
    for seed, name in enumerate("ab"):
        rng, table = np.random.default_rng(seed + 9), rows(seed)
        times = table["t"].to_numpy() - rng.integers(0, 9, ROWS)
        holes = pa.array(table["k"].to_numpy(), mask=rng.random(ROWS) < 0.1)
        late = pa.array(times, mask=rng.random(ROWS) < 0.1)
        tables[name] = table.set_column(0, "t", late).set_column(1, "k", holes)
    found = pushed(query(), tables, size, as_batch, lateness=9, hosts=hosts)
    assert found == wanted(query(), tables)


@pytest.mark.parametrize("size", [1, 7, 130])
@pytest.mark.parametrize("how", ["left", "full", "semi", "anti"])
@pytest.mark.parametrize("where", [None, lambda s: s["n"] % 5 > 0, lambda s: s["n"] > 50])
@HOSTS
def test_rows_alone_come_out_of_compiled_code(
    how: Any, where: Any, size: int, hosts: int | None, only_short: None
) -> None:
    a, b = (wj.stream(name, time="t", window=20, where=where) for name in "ab")
    joined = wj.join(a, b, on=~((a["k"] != b["k"]) | (a["n"] >= 350)), how=how)
    tables = {name: holey(seed) for seed, name in enumerate("ab")}
    expected = sorted(map(str, joined.run(tables).to_pylist()))
    assert in_session(joined, tables, size, hosts=hosts) == expected


def test_bounded_sessions_take_rows_the_same_way_until_memory_is_short(
    only_short: None, tmp_path: Any
) -> None:
    tables = {name: holey(seed) for seed, name in enumerate("ab")}
    expected = sorted(map(str, query().run(tables).to_pylist()))
    options = {"memory": "1GB", "spill": tmp_path}
    assert in_session(query(), tables, 7, **options) == expected


@HOSTS
def test_rows_in_several_chunks_are_taken_together(hosts: int | None, only_short: None) -> None:
    tables = {name: rows(seed) for seed, name in enumerate("ab")}
    parts = {
        name: pa.concat_tables([table.slice(start, 3) for start in range(0, ROWS, 3)])
        for name, table in tables.items()
    }
    assert parts["a"]["k"].num_chunks > 100
    expected = sorted(map(str, query().run(tables).to_pylist()))
    assert in_session(query(), parts, 50, hosts=hosts) == expected


def test_windows_that_change_do_not_change_the_way(only_short: None) -> None:
    schema = rows(0).schema
    with query().open(dict.fromkeys("ab", schema)) as session:
        session.push("a", {"t": [1, 2, 3], "k": [1, 1, 1], "n": [0, 1, 2]})
        session.set_window("a", 2, at=4)
        out = session.push("b", {"t": [3, 5], "k": [1, 1], "n": [0, 1]})
        assert out["a_n"].to_pylist() == [0, 1, 2, 2]
        assert session.metrics["results"] == 4
        session.set_window("a", 20, at=40)
        session.push("a", {"t": [500], "k": [1], "n": [3]})
        for time in range(501, 3000):
            session.push("b", {"t": [time], "k": [2], "n": [time]})
        assert session.push("b", {"t": [3000], "k": [1], "n": [0]}).num_rows == 0
        assert not session._resizing.changes


@HOSTS
@pytest.mark.parametrize("rows_only", [True, False])
def test_late_rows_are_kept_and_counted(
    rows_only: bool, hosts: int | None, only_short: None
) -> None:
    options: Any = {"on_late": "keep", "rows_only": rows_only, "hosts": hosts}
    with query().open(dict.fromkeys("ab", rows(0).schema), **options) as session:
        schema = rows(0).schema
        session.push("b", pa.table({"t": [50], "k": [1], "n": [0]}, schema))
        times = pa.array([60, None, 59, 61])
        given_rows = pa.table({"t": times, "k": [1, 1, 1, 2], "n": [5, 6, 7, 8]}, schema)
        out = session.push("a", given_rows)
        assert len(out["a" if rows_only else "a_n"]) == (hosts is None)
        if hosts is not None:
            for name in "ab":
                session.advance(name, 200)
        metrics = session.metrics["streams"]["a"]
        counted = ("rows_in", "late", "null_time", "rejected", "unmatchable", "results")
        assert [metrics[name] for name in counted] == [4, 1, 1, 2, 0, 1]
        assert session.rejected["a"].column("n").to_pylist() == [6, 7]


@given(
    kind=st.sampled_from(sorted(KINDS)),
    operator=st.sampled_from(OPERATORS),
    mirrored=st.booleans(),
    data=st.data(),
)
def test_conditions_of_one_stream_mean_what_they_mean_in_python(
    kind: str, operator: str, mirrored: bool, data: st.DataObject
) -> None:
    arrow, values = KINDS[kind]
    usual = [v for v in values if v is not None and v == v]
    constant = data.draw(st.sampled_from([*usual, 0.5, 10**30]))
    drawn = data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=30))
    column = pa.array([drawn[n % len(drawn)] for n in range(ROWS)], arrow)
    tables = {name: rows(seed, {"x": column}) for seed, name in enumerate("ab")}

    def kept(value: Any) -> Any:
        return compare(operator, *((constant, value) if mirrored else (value, constant)))

    try:
        joined = query(where=lambda stream: kept(stream["x"]))
        found = wanted(joined, tables)
    except wj.WindjoinError:
        return  # such values are not compared
    known = column.to_pylist()
    passing = {n for n, x in enumerate(known) if x is not None and x == x and kept(x)}
    expected = [pair for pair in wanted(query(), tables) if passing.issuperset(pair)]
    assert found == expected
    assert pushed(joined, tables, 150) == expected


def compare(operator: str, left: Any, right: Any) -> Any:
    return eval(f"left {operator} right", {}, {"left": left, "right": right})


def made_of(where: Any, arrow: pa.DataType) -> Any:
    schema = rows(0).schema.append(pa.field("x", arrow))
    bound = query(where=where).bind(dict.fromkeys("ab", schema))
    return tested.tests_of(bound.stream_rows(0).filters, schema)


def test_comparisons_with_numbers_of_the_column_are_tests() -> None:
    assert made_of(lambda s: s["x"] < 3, pa.int32()) == [((3, "integers", 4, "i8"), "<", 3)]
    of_doubles = made_of(lambda s: s["x"] >= 3, pa.float64())
    assert of_doubles == [((3, "as they lie", 8, "f8"), ">=", 3.0)]
    of_cents = made_of(lambda s: (s["x"] > 3) & (s["k"] == 1), pa.decimal128(9, 2))
    assert [(operator, constant) for _, operator, constant in of_cents] == [(">", 300), ("==", 1)]
    for where, arrow in (
        (lambda s: s["x"] < 2.5, pa.int32()),
        (lambda s: s["x"] < 2**70, pa.float32()),
        (lambda s: s["x"] + 1 < 3, pa.int64()),
        (lambda s: (s["x"] < 3) | (s["k"] == 1), pa.int64()),
        (lambda s: s["x"] == "a", pa.string()),
    ):
        made = made_of(where, arrow)
        assert made is None or arrow == pa.float32()


@HOSTS
def test_schemas_may_differ_in_what_they_say_of_nulls_and_in_metadata(
    hosts: int | None, only_short: None
) -> None:
    plain = rows(0)
    strict = pa.schema([field.with_nullable(False) for field in plain.schema])
    noted = plain.schema.with_metadata({"by": "me"})
    with query().open(dict.fromkeys("ab", plain.schema), hosts=hosts) as session:
        session.push("a", plain.slice(0, 50).cast(strict))
        session.push("a", plain.slice(50, 50).replace_schema_metadata(noted.metadata))
        session.push("a", plain.slice(100))
        assert session.metrics["rows_in"] == ROWS
        out = session.push("b", rows(1).slice(ROWS - 1).cast(strict))
        assert out.schema.field("b_n").nullable


@HOSTS
def test_slices_and_children_with_offsets_are_read_where_they_lie(
    hosts: int | None, only_short: None
) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(2.0 * ROWS + 8)), 2).slice(4)
    more = {"v": vectors, "s": [f"payload {n}" * (n % 5) for n in range(ROWS)]}
    tables = {name: rows(seed, more) for seed, name in enumerate("ab")}
    schemas = {name: table.schema for name, table in tables.items()}
    found = []
    with query().open(schemas, hosts=hosts) as session:
        for start in range(0, ROWS, 33):
            for name, table in tables.items():
                found.append(session.push(name, table.slice(start, 33)))
        found.append(session.close())
    out = pa.concat_tables(found)
    assert len(out) == len(wanted(query(), tables))
    for name in "ab":
        of_rows = tables[name].take(out[f"{name}_n"])
        assert out[f"{name}_v"].to_pylist() == of_rows["v"].to_pylist()
        assert out[f"{name}_s"].to_pylist() == of_rows["s"].to_pylist()


def test_results_outlive_the_session_and_inputs_may_change(only_short: None) -> None:
    keys, times = np.arange(ROWS) % 20, np.arange(ROWS)
    given_rows = pa.table({"t": times, "k": keys, "n": times})
    schemas = dict.fromkeys("ab", given_rows.schema)
    with query().open(schemas) as session:
        session.push("a", given_rows)
        out = session.push("b", given_rows.slice(0, 20))
        keys[:] = -1  # the table lies over these arrays
        times[:] = -1
        first = out.to_pylist()
        again = session.push("b", pa.table({"t": [ROWS - 1], "k": [1], "n": [7]}))
        assert again["a_n"].to_pylist() == [381]
        for start in range(ROWS, 40 * ROWS, ROWS):
            moved = pa.array(np.arange(start, start + ROWS))
            session.push("a", pa.table({"t": moved, "k": moved, "n": moved}))
    del session
    assert out.to_pylist() == first
    assert {row["a_k"] for row in first} == set(range(20))


@pytest.mark.parametrize("payload", [pa.int64(), pa.string(), pa.bool_()], ids=str)
@pytest.mark.parametrize("disorder", [False, True])
def test_results_have_the_rows_that_their_own_push_lets_go(
    payload: pa.DataType, disorder: bool
) -> None:
    """Pages serve again when results have been gathered, and not one push earlier."""
    a, b = (wj.stream(name, time="t", window=20) for name in "ab")
    rows, rounds = 30_000, 3  # some pages; a window of b holds none of them whole
    with wj.join(a, b, on=a["k"] == b["k"]).open(lateness=5) as session:
        for first in range(0, rounds * rows, rows):
            number = np.arange(first, first + rows)
            time = number - number % 7 % 5 * disorder
            table = pa.table({"t": time, "k": number, "v": pa.array(number % 1000).cast(payload)})
            session.push("a", table)
            found = session.push("b", table).sort_by("a_k")
            assert found["a_k"].to_pylist() == number.tolist()
            assert found["a_v"].combine_chunks() == table["v"].combine_chunks()
            assert found["b_v"].combine_chunks() == table["v"].combine_chunks()
        assert session.metrics["streams"]["a"]["state_rows"] < rows // 100
