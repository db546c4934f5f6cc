"""Schemas that are bound, data that is read, and the columns that leave."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.binding import Prepared
from windjoin.errors import DataError, SchemaError
from windjoin.expressions import Column
from windjoin.output import table_fetch

from tests.played import (
    A,
    B,
    X,
    Y,
    joined,
    outcome,
    tables_of,
)
from tests.typed_values import TYPES

INT = pa.int64()
SCHEMA = pa.schema([("t", INT), ("x", pa.int64()), ("y", pa.int64())])


@pytest.mark.parametrize(
    ("schemas", "message"),
    [
        ({"a": SCHEMA}, "no data for stream 'b'"),
        ({"a": SCHEMA, "b": SCHEMA, "bb": SCHEMA}, "'bb' is not a stream of this query; did you"),
        ({"a": SCHEMA, "b": 5}, "schema of stream 'b' is int, not a pyarrow.Schema"),
        ({"a": SCHEMA, "b": pa.schema([("t", INT), ("x", INT)])}, "stream 'b' has no column 'y'"),
    ],
)
def test_schemas_must_be_those_of_the_streams(schemas: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        wj.join(A, B, on=X == Y).bind(schemas)


def test_a_condition_must_be_true_or_false() -> None:
    schema = pa.schema([("t", pa.int64()), ("x", pa.int64()), ("y", pa.int64())])
    streams = wj.stream("a", time="t", window=1, where=lambda a: a["x"] + 1), B
    with pytest.raises(SchemaError, match=r'`a\["x"\] \+ 1` is not a condition: .* is integer'):
        wj.join(*streams, on=X == Y).bind({"a": schema, "b": schema})


def test_data_must_have_the_bound_types() -> None:
    bound = wj.join(A, B, on=X == Y).bind({"a": SCHEMA, "b": SCHEMA})
    data = pa.table({"t": [1], "x": [1.5]})
    with pytest.raises(SchemaError, match="stream 'a': column 'x' is double but the query was"):
        bound.prepare(0, data)


def test_nothing_is_copied_that_need_not_be() -> None:
    bound = wj.join(A, B, on=X < Y).bind({"a": SCHEMA, "b": SCHEMA})
    batch = pa.record_batch({"t": pa.array([1, 2]), "x": pa.array([3, 4])})
    rows = bound.prepare(0, batch).rows
    for array, column in ((rows.time, "t"), (rows.columns[0], "x")):
        address = batch.column(column).buffers()[1].address
        assert array.__array_interface__["data"][0] == address  # type: ignore[attr-defined]
    assert rows.usable is None


@given(
    st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 3), st.floats() | st.none()))
)
def test_batches_and_tables_are_read_alike(rows: list[tuple[Any, ...]]) -> None:
    schema = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("x", pa.float64())])
    arrays = [
        pa.array([None, *c, None], f.type)[1:-1]
        for c, f in zip(_columns(rows), schema, strict=True)
    ]
    batch = pa.record_batch(arrays, schema=schema)
    table = pa.Table.from_batches([batch.slice(0, 2), batch.slice(2)])
    on = [A["k"] == B["k"], abs(A["x"] - B["x"]) < 1]
    bound = wj.join(A, B, on=on).bind({"a": schema, "b": schema})
    one, other = bound.prepare(0, batch), bound.prepare(0, table)
    assert one.rows.time.tolist() == other.rows.time.tolist() == [row[0] for row in rows]
    usable = [_usable(one), _usable(other)]
    assert (
        usable[0] == usable[1] == [k is not None and x == x and x is not None for _, k, x in rows]
    )
    for mine, yours in zip(
        (*one.rows.columns, *one.rows.keys), (*other.rows.columns, *other.rows.keys), strict=True
    ):
        for row, ok in enumerate(usable[0]):
            assert not ok or mine[row] == yours[row]


def _columns(rows: list[tuple[Any, ...]]) -> list[list[Any]]:
    return [[row[number] for row in rows] for number in range(3)]


def _usable(prepared: Prepared) -> list[bool]:
    usable = prepared.rows.usable
    return [True] * len(prepared.rows) if usable is None else usable.tolist()


def test_all_columns_leave_with_their_types() -> None:
    left = pa.table(
        {
            "t": pa.array([1, 2], pa.int64()),
            "x": pa.array([3, 4]),
            "word": pa.array(["u", "v"]).dictionary_encode(),
            "when": pa.array([0, 1], pa.timestamp("ms", "UTC")),
            "list": pa.array([[1], [2, 3]]),
            "name": pa.chunked_array([["p"], ["q"]]),
        }
    )
    right = pa.table({"t": [5], "y": [6]})
    bound = wj.join(A, B, on=X < Y).bind({"a": left.schema, "b": right.schema})
    result = bound.gather([left, right], [np.array([1, 0, 1]), np.array([0, 0, 0])])
    assert result.schema == bound.schema
    for name in left.column_names:
        column = result.column(f"a_{name}")
        assert column.type == left.schema.field(name).type
        assert column.to_pylist() == [left.column(name).to_pylist()[i] for i in (1, 0, 1)]
    assert result.column("b_y").to_pylist() == [6, 6, 6]


def test_layouts_that_cannot_be_gathered_are_replaced() -> None:
    views = pa.array(["p", None], pa.string_view())
    data = pa.table(
        {
            "t": pa.array([1, 2], pa.int64()),
            "x": pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), views),
            "y": views,
            "bin": pa.array([b"q", b"r"], pa.binary_view()),
            "list": pa.array([["a"], []], pa.list_(pa.string_view())),
            "big": pa.array([["a"], []], pa.large_list(pa.string_view())),
            "pair": pa.array([["a"], ["b"]], pa.list_(pa.string_view(), 1)),
            "struct": pa.array([{"s": "u"}, None], pa.struct([("s", pa.string_view())])),
            "map": pa.array([[("k", "v")], []], pa.map_(pa.string(), pa.string_view())),
            "words": pa.DictionaryArray.from_arrays(pa.array([0, 1]), views),
        }
    )
    on = (X == Y) | (A["y"] < B["words"])
    bound = wj.join(A, B, on=on).bind({"a": data.schema, "b": data.schema})
    assert outcome(bound, [data, data]) == [[True, False], [False, False]]
    result = bound.gather([data, data], [np.array([1, 0]), np.array([0, 0])])
    result.validate(full=True)
    for name in data.column_names:
        expected = [data.column(name).to_pylist()[i] for i in (1, 0)]
        assert result.column(f"a_{name}").to_pylist() == expected
    assert result.schema.field("a_y").type == pa.large_string()
    words = result.schema.field("a_words").type
    assert words == pa.dictionary(pa.int64(), pa.large_string())


@pytest.mark.slow
def test_more_text_than_one_chunk_holds_is_gathered_in_several() -> None:
    text = "x" * 2**20
    left = pa.table({"t": [1], "x": [1], "s": [text]})
    right = pa.table({"t": [1], "y": [2]})
    bound = wj.join(A, B, on=X < Y, select=[A["s"]]).bind({"a": left.schema, "b": right.schema})
    rows = np.zeros(2**11 + 8, np.int64)
    column = bound.gather([left, right], [rows, rows]).column("a_s")
    assert (len(column), column.num_chunks) == (len(rows), 2)
    assert column[-1].as_py() == text


def test_select_takes_only_what_it_needs() -> None:
    select = [B["y"], X.alias("left"), (X - Y).alias("gap"), (X < Y).alias("less")]
    bound = wj.join(A, B, on=X < Y, select=select).bind({"a": SCHEMA, "b": SCHEMA})
    assert bound.payload == [["x"], ["y"]]
    data = pa.table({"t": [1, 2], "x": [1, None], "y": [10, 20]})
    asked: list[Any] = []

    def fetch(stream: int, names: list[str], rows: Any) -> list[Any]:
        asked.append((stream, names))
        return table_fetch([data, data])(stream, names, rows)

    result = bound.gather_with(fetch, [np.array([0, 1]), np.array([1, 1])])
    assert asked == [(0, ["x"]), (1, ["y"])]
    assert result.to_pydict() == {
        "b_y": [20, 20], "left": [1, None], "gap": [-19, None], "less": [True, None]
    }  # fmt: skip


def test_selected_expressions_keep_their_kind() -> None:
    schema = pa.schema(
        [
            ("t", pa.timestamp("ms")), ("d", pa.decimal128(10, 2)), ("day", pa.date32()),
            ("z", pa.timestamp("s", "UTC")), ("n", pa.null()), ("u", pa.uint64()),
        ]
    )  # fmt: skip
    a, b = (wj.stream(name, time="t", window="1s") for name in "ab")
    select = [
        (a["t"] - b["t"]).alias("gap"),
        (a["t"] + "1us").alias("later"),
        (a["z"] + "1s").alias("zoned"),
        (a["d"] * b["d"]).alias("product"),
        (a["d"] / 4).alias("quarter"),
        (a["day"] - b["day"]).alias("days"),
        (a["day"] + "1d").alias("tomorrow"),
        (a["n"] + b["d"]).alias("nothing"),
        (a["u"] * 1).alias("u"),
    ]
    bound = wj.join(a, b, on=a["d"] == b["d"], select=select).bind({"a": schema, "b": schema})
    data = pa.table(
        {
            "t": pa.array([5, None], pa.timestamp("ms")),
            "d": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
            "day": pa.array([1, 3], pa.int32()).view(pa.date32()),
            "z": pa.array([0, 1], pa.timestamp("s", "UTC")),
            "n": pa.nulls(2),
            "u": pa.array([1, None], pa.uint64()),
        }
    )
    rows = [np.array([0, 1]), np.array([0, 0])]
    result = bound.gather([data, data], rows)
    assert result.schema.types == [
        pa.duration("ms"), pa.timestamp("us"), pa.timestamp("s", "UTC"), pa.decimal128(38, 4),
        pa.float64(), pa.duration("s"), pa.timestamp("s"), pa.null(), pa.int64(),
    ]  # fmt: skip
    assert result.column("product").to_pylist() == [Decimal("2.2500"), None]
    assert result.column("gap").to_pylist() == [timedelta(0), None]
    assert result.column("days").to_pylist() == [timedelta(0), timedelta(days=2)]
    assert result.column("quarter").to_pylist() == [0.375, None]
    assert result.column("tomorrow").to_pylist()[0].isoformat() == "1970-01-03T00:00:00"
    assert result.column("nothing").to_pylist() == [None, None]
    result.validate(full=True)


def test_a_selected_value_that_does_not_fit_is_an_error_with_its_row() -> None:
    bound = wj.join(A, B, on=X < Y, select=[(X * Y).alias("p")]).bind({"a": SCHEMA, "b": SCHEMA})
    data = pa.table({"t": [1], "x": [2**62], "y": [2]})
    with pytest.raises(
        DataError, match=r"result row 0: value 9223372036854775808 does not fit int"
    ):
        bound.gather([data, data], [np.array([0]), np.array([0])])


def test_too_many_decimal_places_are_refused() -> None:
    schema = pa.schema([("t", INT), ("x", pa.decimal256(76, 40)), ("y", pa.decimal256(76, 40))])
    with pytest.raises(SchemaError, match="has 80 decimal places, Arrow holds 76"):
        wj.join(A, B, on=X < Y, select=[(X * Y).alias("p")]).bind({"a": schema, "b": schema})


def test_result_names_must_differ() -> None:
    a, ab = wj.stream("a", time="t", window=1), wj.stream("a_b", time="t", window=1)
    schemas = {"a": pa.schema([("t", INT), ("b_t", INT)]), "a_b": pa.schema([("t", INT)])}
    with pytest.raises(SchemaError, match="2 columns called 'a_b_t'"):
        wj.join(a, ab, on=a["b_t"] == ab["t"]).bind(schemas)


def test_pair_masks_ask_for_their_columns_only() -> None:
    schema = pa.schema([("t", INT), ("x", INT), ("y", INT), ("z", INT)])
    bound = wj.join(A, B, on=(X < Y) | (A["z"] == B["z"])).bind({"a": schema, "b": schema})
    assert bound.evaluated == [["x", "z"], ["y", "z"]]


def test_null_columns_join_nothing() -> None:
    tables = tables_of([TYPES["null"], TYPES["string"]], [[None], ["a"]])
    for on in (X == Y, X != Y, X < Y):
        assert joined(on, tables) == [[False]]


def test_column_is_found_by_stream_name() -> None:
    assert Column("a", "x").same(X)
