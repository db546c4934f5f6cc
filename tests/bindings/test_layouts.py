"""Columns in every layout of Arrow give what plain columns give, however they are joined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.arrow import joiner, place
from windjoin.layout import gatherable_type, laid_out, plain_type

from tests.arrow_exchange import carry_out, histogram
from tests.layouts import LAYOUTS, LISTS, OTHERS, Build, Values, arranged, coded, tagged

Tables = dict[str, pa.Table]
A, B = (wj.stream(name, time="t", window=4) for name in "ab")
ROWS = 9
TIMES = pa.array(range(ROWS), pa.int64())


def rows_of(result: Any) -> Counter[str]:
    """Results as a multiset."""
    if isinstance(result, dict):
        return Counter(map(repr, zip(*(rows.tolist() for rows in result.values()), strict=True)))
    return Counter(map(repr, result.to_pylist()))


def together(parts: list[Any]) -> Any:
    if isinstance(parts[0], dict):
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return pa.concat_tables([part for part in parts if part.num_columns])


def pushed(query: Any, tables: Tables, size: int, known: bool, **options: Any) -> Any:
    """What a session finds, whose pushes are of ``size`` rows, and empty ones between them."""
    schemas = {name: table.schema for name, table in tables.items()} if known else None
    found = []
    with query.open(schemas, **options) as session:
        for first in range(0, ROWS, size):
            for name, table in tables.items():
                found.append(session.push(name, table.slice(first, size)))
                found.append(session.push(name, table.slice(first, 0)))
        assert all(table.num_rows == 0 for table in session.rejected.values())
        found.append(session.close())
    return together(found)


def exchanged(query: Any, tables: Tables, strategy: Any) -> Any:
    schemas = {name: table.schema for name, table in tables.items()}
    counts = histogram(query, schemas, tables)
    plan, _ = place(query, schemas, hosts=2, strategy=strategy, histogram=counts)
    return carry_out(plan, tables, np.random.default_rng(1))


def as_one_function(query: Any, tables: Tables) -> Any:
    schemas = {name: table.schema for name, table in tables.items()}
    join = joiner(query, stream_column="of", schemas=schemas)
    batches = []
    for name, table in tables.items():
        batches += table.append_column("of", pa.array([name] * len(table))).to_batches()
    return pa.Table.from_batches(join(batches), query.bind(schemas).schema)


Way = tuple[str, Callable[[Any, Tables], Any]]

READING: list[Way] = [
    ("run", lambda query, tables: query.run(tables)),
    ("pushes of two", lambda query, tables: pushed(query, tables, 2, True)),
    ("schemas learned", lambda query, tables: pushed(query, tables, ROWS, False)),
]
SPREADING: list[Way] = [  # what READING has read
    ("run on hosts", lambda query, tables: query.run(tables, hosts=2)),
    ("pushes to hosts", lambda query, tables: pushed(query, tables, 4, True, hosts=2)),
    ("one exchange", lambda query, tables: exchanged(query, tables, "atr")),
    ("an exchange per hop", lambda query, tables: exchanged(query, tables, "ctr")),
    ("joiner", lambda query, tables: as_one_function(query, tables)),
]


def check(query: Any, plain: Tables, tables: Tables, what: str, turn: int) -> None:
    """``tables`` give the results of ``plain``, and none where there are none.

    They are read in every way, and spread in one that takes turns: over all layouts of all kinds
    every layout meets every way.
    """
    expected, numbers = rows_of(query.run(plain)), rows_of(query.indices(plain))
    assert expected
    spread = [SPREADING[turn % len(SPREADING)]] if query.nearest is None else []
    for way, results in READING + spread:
        assert rows_of(results(query, tables)) == expected, f"{what}, {way}"
    assert rows_of(query.indices(tables)) == numbers, what
    assert rows_of(pushed(query, tables, 2, True, rows_only=True)) == numbers, what
    empty = {name: table.slice(0, 0) for name, table in tables.items()}
    assert query.run(empty).num_rows == pushed(query, empty, ROWS, False).num_rows == 0


def check_layouts(query: Any, values: Values, build: Build, layouts: dict[str, Any]) -> None:
    """Every layout of a column ``x`` of both streams."""
    base = pa.table({"t": TIMES, "x": build(values)})
    turn = crc32(str(base["x"].type).encode())  # each kind begins with another way
    for layout, make in layouts.items():
        for arrangement, column in arranged(values, make):
            table = pa.table({"t": TIMES, "x": column})
            what = f"{layout}, {arrangement}"
            check(query, {"a": base, "b": base}, {"a": table, "b": table}, what, turn)
            turn += 1


SCALARS: dict[str, tuple[pa.DataType, Values]] = {
    "int64": (pa.int64(), [1, 2]),
    "uint8": (pa.uint8(), [1, 2]),
    "float16": (pa.float16(), [np.float16(1), np.float16(2)]),
    "float64": (pa.float64(), [1.0, 2.0]),
    "bool": (pa.bool_(), [True, False]),
    "decimal": (pa.decimal128(5, 1), [Decimal("1.5"), Decimal("2")]),
    "wide decimal": (pa.decimal256(50, 1), [Decimal("1.5"), Decimal(10) ** 30]),
    "string": (pa.string(), ["a", "b"]),
    "string view": (pa.string_view(), ["a", "longer than twelve bytes"]),
    "binary view": (pa.binary_view(), [b"a", b"longer than twelve bytes"]),
    "fixed binary": (pa.binary(2), [b"ab", b"\x00a"]),
    "date": (pa.date32(), [datetime(2026, 1, 5).date(), datetime(2026, 1, 6).date()]),
    "time": (pa.time64("us"), [datetime(2026, 1, 5, 3).time(), datetime(2026, 1, 6).time()]),
    "timestamp": (pa.timestamp("ms", "UTC"), [1000, 2000]),
    "duration": (pa.duration("s"), [1, 2]),
}


@pytest.mark.parametrize("kind", SCALARS)
def test_keys_and_payload_of_every_layout_are_their_values(kind: str) -> None:
    arrow, (one, other) = SCALARS[kind]
    values = [one, one, other, None, None, other, one, None, other]

    def build(items: Values) -> Any:
        return pa.array(items, arrow)

    layouts = {name: lambda items, make=make: make(items, build) for name, make in LAYOUTS.items()}
    check_layouts(wj.join(A, B, on=A["x"] == B["x"]), values, build, layouts)


@pytest.mark.parametrize("kind", ["int64", "string view", "decimal", "timestamp"])
def test_conditions_on_columns_of_every_layout_read_their_values(kind: str) -> None:
    arrow, (one, other) = SCALARS[kind]
    values = [one, one, other, None, None, other, one, None, other]

    def build(items: Values) -> Any:
        return pa.array(items, arrow)

    layouts = {name: lambda items, make=make: make(items, build) for name, make in LAYOUTS.items()}
    a = wj.stream("a", time="t", window=4, where=lambda a: ~a["x"].is_null())
    query = wj.join(a, B, on=(A["x"] < B["x"]) | (A["t"] == B["t"]))
    check_layouts(query, values, build, layouts)


def check_lists(query: Any, lists: str, kind: str, rows: list[Any]) -> None:
    """Lists (or what else is nested) of items in every layout."""
    arrow, _ = SCALARS[kind]
    nested = (LISTS | OTHERS)[lists]

    def build(items: Values) -> Any:
        return pa.array(items, arrow)

    def inside(make: Any) -> Build:
        return lambda part: nested(part, lambda items: make(items, build))

    layouts = {name: inside(make) for name, make in LAYOUTS.items()}
    check_layouts(query, rows, layouts["plain"], layouts)


@pytest.mark.parametrize("kind", ["string view", "decimal"])
@pytest.mark.parametrize("lists", LISTS)
def test_sets_of_every_layout_are_their_items(lists: str, kind: str) -> None:
    one, other = SCALARS[kind][1]
    rows = [[one, other], None, [one, None], [other, other], [one, one], None, [None, other]]
    query = wj.join(A, B, on=wj.overlap(A["x"], B["x"]) >= 1)
    check_lists(query, lists, kind, [*rows, [one, other], [one, other]])


@pytest.mark.parametrize("kind", ["uint8", "float16"])
@pytest.mark.parametrize("lists", ["fixed list", "list view"])
def test_vectors_of_every_layout_are_their_components(lists: str, kind: str) -> None:
    one, other = SCALARS[kind][1]
    rows = [[one, other], None, [one, one], [other, other], [one, one], None, [one, other]]
    query = wj.join(A, B, on=wj.l1(A["x"], B["x"]) <= 1, nearest=2)
    check_lists(query, lists, kind, [*rows, [one, other], [one, other]])


@pytest.mark.parametrize("kind", ["string view", "float16"])
@pytest.mark.parametrize("nested", OTHERS)
def test_nested_payload_of_every_layout_is_its_values(nested: str, kind: str) -> None:
    one, other = SCALARS[kind][1]
    rows = [[one, other], None, [one, one], [], [other], None, [other, one], [], [one]]
    check_lists(wj.join(A, B, on=A["t"] == B["t"]), nested, kind, rows)


@pytest.mark.parametrize("kind", ["int64", "uint8", "timestamp"])
def test_times_of_every_layout_are_their_values(kind: str) -> None:
    arrow, _ = SCALARS[kind]
    window = "5ms" if kind == "timestamp" else 5
    a, b = (wj.stream(name, time="x", window=window) for name in "ab")
    query = wj.join(a, b, on=a["t"] > b["t"])
    values = [3, 3, 7, 8, 12, 14, 20, 21, 30]

    def build(items: Values) -> Any:
        return pa.array(items, arrow)

    for turn, (layout, make) in enumerate(LAYOUTS.items()):
        if layout != "nulls in dictionary":
            table = pa.table({"t": TIMES, "x": make(values, build)})
            plain = pa.table({"t": TIMES, "x": build(values)})
            check(query, {"a": plain, "b": plain}, {"a": table, "b": table}, layout, turn)
            segment = "6ms" if kind == "timestamp" else 6
            found = query.run({"a": table, "b": table}, hosts=2, segment=segment)
            assert found.num_rows == query.run({"a": plain, "b": plain}).num_rows


# -- what was seen --------------------------------------------------------------------------


def test_a_key_that_is_null_in_every_row_finds_nothing_in_a_session() -> None:
    for key in (A["x"] // 0, A["x"] % 0):
        with wj.join(A, B, on=key == B["x"]).open() as session:
            for name in "ab":
                out = session.push(name, {"t": [1, 2], "x": [3, 4]})
            assert out.num_rows == 0
            assert session.metrics["streams"]["a"]["unmatchable"] == 2


def words(start: int, count: int, make: Callable[[Any], Any] = lambda array: array) -> pa.Table:
    """Rows that name words of their own, by numbers of eight bits."""
    names = [f"word {number}" for number in range(start, start + count)]
    column = make(coded(names, lambda items: pa.array(items, pa.string())))
    return pa.table({"t": pa.array(range(start, start + count), pa.int64()), "word": column})


@pytest.mark.parametrize("make", [lambda array: array, tagged])
def test_dictionaries_may_have_more_words_together_than_each_has_numbers(make: Any) -> None:
    """Batches of categories, each with a dictionary of its own, as pandas makes them."""
    parts = [words(100 * n, 100, make) for n in range(15)]
    whole = pa.concat_tables(parts)
    expected = [f"word {number}" for number in range(1500)]
    a, b = (wj.stream(name, time="t", window=3000) for name in "ab")
    query = wj.join(a, b, on=a["t"] == b["t"])
    schemas = {"a": whole.schema, "b": whole.schema}
    with query.open(schemas, lateness=50, on_late="keep") as session:
        for part in parts:
            session.push("a", part)
        for first in range(0, 1500, 10):
            session.push("b", whole.slice(first, 10).select(["t", "word"]))
        late = session.push("b", whole.slice(0, 1400))
        assert session.metrics["results"] == 1500
        assert session.rejected["b"]["word"].to_pylist() == expected[:1400]
        assert late.num_rows == 0
    result = query.run({"a": whole, "b": whole}, ordered=True)
    assert result["a_word"].type == whole["word"].type
    assert result["a_word"].to_pylist() == result["b_word"].to_pylist() == expected
    tables = {"a": whole, "b": whole}
    for way in (exchanged(query, tables, "atr"), as_one_function(query, tables)):
        assert sorted(way["b_word"].to_pylist()) == sorted(expected)


def test_results_without_rows_have_columns_of_every_type() -> None:
    inner = pa.dictionary(pa.int8(), pa.decimal128(4, 1))
    types = [inner, pa.dictionary(pa.int32(), pa.timestamp("s")), pa.list_(inner)]
    for arrow in (*types, pa.struct([("x", inner)]), pa.list_(pa.list_(inner))):
        column = pa.nulls(1, arrow)
        table = pa.table({"t": [1], "x": column})
        query = wj.join(A, B, on=A["t"] == B["t"])
        with query.open({"a": table.schema, "b": table.schema}) as session:
            out = session.push("a", table)
            assert out.schema == session.close().schema
            assert session.rejected["a"].schema.field("x").type == arrow


def test_dictionaries_that_arrow_cannot_unify_leave_as_values() -> None:
    assert gatherable_type(pa.dictionary(pa.int8(), pa.float16())) == pa.float16()
    lists = pa.list_(pa.string())
    assert gatherable_type(pa.dictionary(pa.int8(), lists)) == lists
    nested = pa.list_(pa.dictionary(pa.int8(), pa.string_view()))
    assert gatherable_type(nested) == pa.list_(pa.dictionary(pa.int8(), pa.large_string()))
    assert plain_type(nested) == pa.list_(pa.large_string())


def test_a_column_is_laid_out_in_another_type_where_arrow_can_cast() -> None:
    assert laid_out(pa.array([1, None]), pa.int32()).equals(pa.array([1, None], pa.int32()))
    rows = pa.array([{"x": 1, "y": "a"}])
    wider = pa.struct([("x", pa.int64()), ("z", pa.int8()), ("y", pa.string())])
    assert laid_out(rows, wider).to_pylist() == [{"x": 1, "z": None, "y": "a"}]
    pair = pa.array([[1, 2]], pa.list_(pa.int64(), 2))
    assert laid_out(pair, pa.large_list(pa.int32())).to_pylist() == [[1, 2]]
    one_of = pa.list_(pa.dictionary(pa.int8(), pa.list_(pa.int64())))
    assert laid_out(pa.array([[[1], [2]]]), one_of).to_pylist() == [[[1], [2]]]
