"""Columns of tables as they lie in Arrow's memory, and what has to be computed of them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from windjoin.pyx.arrow.reader import Reader

I8, F8 = np.dtype("i8"), np.dtype("f8")


class Asked:
    """Tells what a reader wanted to be computed, and has computed nothing."""

    def __init__(self) -> None:
        self.wanted: list[int] = []

    def __call__(self, timed: Any, rows: Any, first_row: int, wanted: list[int]) -> Any:
        self.wanted = wanted
        return timed, None, None, [np.zeros(rows.num_rows, np.int64) for _ in wanted]


def reader(
    table: Any, columns: list[Any], wide: int = 0, tests: Any = (), asked: Any = None
) -> Reader:
    names = table.schema.names
    return Reader(columns, wide, tests, len(tests), asked or Asked(), names, pa.Table)


def one(
    table: Any, form: str = "as they lie", size: int = 8, dtype: Any = np.int64, number: int = 0
) -> Any:
    """What is read of one column, and which rows are usable."""
    (values,), _, _, usable, _ = reader(table, [(number, form, size, np.dtype(dtype))]).read(
        table, 0
    )
    return values, usable


def test_a_reader_gives_what_lies_in_memory() -> None:
    table = pa.table({"x": range(10)})
    for rows in (table.slice(3, 4), table.slice(3, 4).to_batches()[0]):
        found, usable = one(rows)
        assert found.tolist() == [3, 4, 5, 6]
        assert usable is None
        assert not found.flags.writeable
        assert found.ctypes.data == table["x"].chunk(0).buffers()[1].address + 24
    chunks = pa.concat_tables([table, table])
    assert one(chunks)[0].tolist() == [*range(10)] * 2


def test_a_reader_tells_nulls_and_nan() -> None:
    table = pa.table({"t": [1, None, 3, 4], "x": [0.5, 1.0, np.nan, None]})
    both = reader(table, [(0, "as they lie", 8, I8), (1, "as they lie", 8, F8)])
    (times, numbers), _, bad, usable, present = both.read(table, 0)
    assert bad.tolist() == [False, True, False, False]
    assert usable.tolist() == [True, False, False, False]
    assert present.tolist() == [True, False, True, True]
    assert (times[0], numbers[0]) == (1, 0.5)
    _, _, bad, usable, present = both.read(table.slice(2), 0)
    assert bad is present is None
    assert usable.tolist() == [False, False]
    assert both.read(table.slice(0, 1), 0)[2:] == (None, None, None)


def test_conditions_become_flags_and_rows_of_a_stream_are_told_from_those_that_join() -> None:
    table = pa.table({"t": [1, 2, None, 4, 5], "x": pa.array([5, 6, 7, None, 8], pa.int32())})
    column = (1, "integers", 4, I8)
    made = Reader(
        [(0, "as they lie", 8, I8)], 0, [(column, ">", 5), (column, "<", 8)], 1, Asked(),
        table.schema.names, pa.Table,
    )  # fmt: skip
    _, _, bad, usable, present = made.read(table, 0)
    assert bad.tolist() == [False, False, True, False, False]
    assert usable.tolist() == [False, True, False, False, False]
    assert present.tolist() == [False, True, False, False, True]


@pytest.mark.parametrize(
    ("arrow", "form", "dtype"),
    [
        *((arrow, "integers", "i8") for arrow in (pa.int8(), pa.int16(), pa.int32(), pa.date32())),
        *((arrow, "naturals", "i8") for arrow in (pa.uint8(), pa.uint16(), pa.uint32())),
        (pa.float32(), "reals", "f8"),
        *((arrow, "decimals", "i8") for arrow in (pa.decimal128(12, 0), pa.decimal256(12, 0))),
    ],
)
def test_a_reader_widens_numbers(arrow: pa.DataType, form: str, dtype: str) -> None:
    least = 0 if form == "naturals" else -7
    given = pa.array([5, least, None, 100], pa.int32()).cast(arrow)
    found, usable = one(pa.table({"x": given}).slice(1), form, arrow.bit_width // 8, dtype)
    assert usable.tolist() == [True, False, True]
    assert found.dtype == dtype
    assert found[[0, 2]].tolist() == [least, 100]


@pytest.mark.parametrize("arrow", [pa.string(), pa.large_string(), pa.binary()], ids=str)
def test_a_reader_gives_texts_with_their_offsets(arrow: pa.DataType) -> None:
    given = pa.table({"x": pa.array(["a", "bc", None, "", "def"], arrow)})
    form = "texts", 8 if pa.types.is_large_string(arrow) else 4, np.uint8
    (offsets, data), usable = one(given.slice(1), *form)
    assert usable.tolist() == [True, False, True, True]
    pieces = [data[i:j].tobytes() for i, j in pairwise(offsets)]
    assert pieces == [b"bc", b"", b"", b"def"]
    (offsets, data), _ = one(given.slice(3, 1), *form)
    assert offsets[0] == offsets[1]


def test_lists_and_vectors_lie_with_their_offsets_and_those_with_nulls_are_computed() -> None:
    def read(table: pa.Table, form: str, size: int, dtype: Any) -> tuple[Any, list[int]]:
        asked = Asked()
        columns = [(0, "as they lie", 8, I8), (1, form, size, np.dtype(dtype))]
        _, (wide,), *_ = reader(table, columns, 1, asked=asked).read(table, 0)
        return wide, asked.wanted

    def table(values: list[Any], arrow: pa.DataType) -> pa.Table:
        return pa.table({"t": range(len(values)), "v": pa.array(values, arrow)})

    sets, pairs = ("lists", 8, np.int64), ("vectors", 2, np.float32)
    lists = pa.list_(pa.int64())
    (offsets, items), wanted = read(table([[9], [1, 2], [], [3]], lists).slice(1), *sets)
    assert [items[i:j].tolist() for i, j in pairwise(offsets)] == [[1, 2], [], [3]]
    assert wanted == []
    assert read(table([[1], None], lists), *sets)[1] == [1]
    assert read(table([[1], [None]], lists), *sets)[1] == [1]
    two = pa.list_(pa.float32(), 2)
    (offsets, values), wanted = read(table([[1, 2], [3, 4], [5, 6]], two).slice(1), *pairs)
    assert (offsets.tolist(), values.tolist()) == ([0, 2, 4], [3, 4, 5, 6])
    assert wanted == []
    holes = table([[1, None], None], two)
    assert read(holes, *pairs)[1] == read(holes.slice(1), *pairs)[1] == [1]
    assert read(table([[1, np.nan]], two), *pairs)[1] == [1]


def test_a_reader_takes_few_columns_of_wide_tables_and_finds_others_by_name() -> None:
    wide = pa.table({f"c{n}": [n, n + 1] for n in range(40)})
    assert one(wide, number=33)[0].tolist() == [33, 34]
    made = reader(wide, [(33, "as they lie", 8, I8), (2, "as they lie", 8, I8)])
    (first, second), *_ = made.read(wide.select(["c2", "c9", "c33"]), 0, True)
    assert (first.tolist(), second.tolist()) == ([33, 34], [2, 3])


def test_columns_of_chunks_and_of_wide_tables_may_have_to_be_computed() -> None:
    wide = pa.table({f"c{n}": [n, n + 1] for n in range(40)})
    for table in (wide, pa.concat_tables([wide.select(["c0", "c1", "c2", "c3"])] * 2)):
        asked, plain = Asked(), (3, "as they lie", 8, I8)
        made = Reader([plain, None, None], 1, (), 0, asked, table.schema.names, pa.Table)
        (times, zeros), (wide_column,), *_ = made.read(table, 0)
        assert asked.wanted == [1, 2]
        assert times.tolist() == table["c3"].to_pylist()
        assert zeros.tolist() == wide_column.tolist() == [0] * len(table)


def test_all_of_an_empty_table_is_computed() -> None:
    asked, nothing = Asked(), pa.array([], pa.int64())
    table = pa.table({"t": nothing, "s": nothing.cast(pa.string())})
    columns = [(0, "as they lie", 8, I8), (1, "texts", 4, np.dtype("u1"))]
    (times, _), *_ = reader(table, columns, asked=asked).read(table, 0)
    assert asked.wanted == [0, 1]
    assert len(times) == 0
