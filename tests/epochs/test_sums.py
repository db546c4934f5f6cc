"""What tells batch rows apart from one start to the next: values, however they are laid out."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from windjoin.epochs.sums import sum_of

KINDS: dict[str, tuple[Any, list[Any]]] = {
    "long": (pa.int64(), [1, 2]),
    "double": (pa.float64(), [0.0, -0.0]),
    "flag": (pa.bool_(), [True, False]),
    "text": (pa.string(), ["a", "", "bc"]),
    "bytes": (pa.binary(), [b"a", b"", b"bc"]),
    "day": (pa.date32(), [dt.date(2020, 1, 1), dt.date(2021, 1, 1)]),
    "price": (pa.decimal128(9, 2), [Decimal("1.10"), Decimal("2.00")]),
    "tags": (pa.list_(pa.string()), [["a"], [], ["b", None]]),
    "three": (pa.list_(pa.float32(), 3), [[1.0, 2.0, 3.0], [1.0, None, 3.0]]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1)], [], [("a", None)]]),
    "pair": (pa.struct([("x", pa.int8()), ("y", pa.string())]), [{"x": 1, "y": "a"}, {"x": None}]),
    "word": (pa.dictionary(pa.int8(), pa.string()), ["a", "b"]),
    "nothing": (pa.null(), []),
}


def table(kind: str, values: list[Any]) -> pa.Table:
    return pa.table({"c": pa.array(values, KINDS[kind][0])})


def equal(kind: str, one: list[Any], other: list[Any]) -> bool:
    """Whether values are the same bit by bit."""
    return repr(table(kind, one).to_pylist()) == repr(table(kind, other).to_pylist())


def columns(kind: str) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.one_of(st.none(), *map(st.just, KINDS[kind][1])), max_size=20)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_sums_differ_as_values_do(kind: str, data: st.DataObject) -> None:
    one, other = (data.draw(columns(kind)) for _ in range(2))
    same = sum_of(table(kind, one)) == sum_of(table(kind, other))
    assert same == equal(kind, one, other)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_sums_are_those_of_any_layout(kind: str, data: st.DataObject) -> None:
    """Slices that begin within a byte of flags, several chunks, bytes below nulls."""
    before, own, after = (data.draw(columns(kind)) for _ in range(3))
    cut = data.draw(st.integers(0, len(own)))
    whole = table(kind, [*before, *own, *after])
    sliced = whole.slice(len(before), len(own))
    chunks = pa.concat_tables([sliced.slice(0, cut), sliced.slice(cut)])
    assert sum_of(sliced) == sum_of(chunks) == sum_of(table(kind, own))


def test_what_lies_below_nulls_does_not_count() -> None:
    values, there = pa.py_buffer(bytes([1, 2, 3])), pa.py_buffer(bytes([0b101]))
    made = pa.Array.from_buffers(pa.int8(), 3, [there, values])
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3]), [1, 2, 3], mask=pa.array([True, False]))
    for one, other in ((made, [1, None, 3]), (lists, [None, [3]])):
        assert sum_of(pa.table({"c": one})) == sum_of(pa.table({"c": pa.array(other, one.type)}))


def test_names_types_and_tables_count() -> None:
    rows = pa.table({"a": [1, 2], "b": [1, 2]})
    others = [
        rows.rename_columns(["a", "c"]),
        rows.cast(pa.schema([("a", pa.int64()), ("b", pa.timestamp("us"))])),
        rows.select(["a"]),
        rows.select(["b", "a"]),
    ]
    sums = [sum_of(one) for one in (rows, *others)]
    sums += [sum_of(rows, rows), sum_of(rows, rows.slice(0, 0)), sum_of(rows.slice(0, 0), rows)]
    assert len(set(sums)) == len(sums)


def test_sums_stay_what_they_are() -> None:
    """They are kept in logs, from one release to the next."""
    rows = pa.table({kind: pa.array([*values[:2], None][:2], k) for kind, (k, values) in [
        (name, KINDS[name]) for name in ("long", "double", "flag", "text", "tags", "map", "pair")
    ]})  # fmt: skip
    assert sum_of(rows) == "1e16d1b743b32eea51a2fb58"
