"""Segments travel narrow and arrive as they were; what files hold is told from their footers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from windjoin.arrow.narrow import FEWEST, narrowed, widened
from windjoin.arrow.parquet import Files, footers, read, same_values
from windjoin.arrow.plan import ROW

KINDS = [
    pa.int64(), pa.int32(), pa.int16(), pa.timestamp("us", "UTC"), pa.timestamp("ns"),
    pa.duration("ms"), pa.date32(), pa.float64(), pa.uint64(), pa.string(),
]  # fmt: skip


@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=4),
    rows=st.integers(0, 3 * FEWEST),
    span=st.sampled_from([0, 1, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**63 - 1]),
    low=st.sampled_from([-(2**63), -(2**31), -5, 0, 7, 2**40]),
    nulls=st.booleans(),
    seed=st.integers(0, 99),
)
def test_rows_arrive_as_they_were(
    kinds: list[pa.DataType], rows: int, span: int, low: int, nulls: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    columns = []
    for kind in kinds:
        integers = {pa.int16(): np.int16, pa.int32(): np.int32, pa.date32(): np.int32}
        bounds = np.iinfo(integers.get(kind, np.int64))
        least = min(max(low, int(bounds.min)), int(bounds.max))
        most = min(least + span, bounds.max)
        values = rng.integers(least, most, rows + 3, dtype=np.int64, endpoint=True)
        mask = rng.random(rows + 3) < 0.1 if nulls else None
        plain = pa.array(values.astype(bounds.dtype), mask=mask)
        if kind == pa.string() or kind == pa.float64() or kind == pa.uint64():
            columns.append(pa.array(values).cast(kind, safe=False).slice(3))
        else:
            columns.append(plain.view(kind).slice(3))
    given_rows = pa.record_batch(columns, names=[f"c{n}" for n in range(len(kinds))])
    narrow, form = narrowed(given_rows)
    assert widened(narrow, form, given_rows.schema).equals(given_rows)
    assert narrow.nbytes <= given_rows.nbytes


def test_narrow_rows_take_fewer_bytes() -> None:
    times = pa.array(np.arange(10**15, 10**15 + 1000))
    rows = pa.record_batch({"t": times, "k": np.arange(1000) % 100, "x": np.zeros(1000)})
    narrow, _ = narrowed(rows)
    assert narrow.schema.types == [pa.uint16(), pa.uint8(), pa.float64()]


def files(folder: Path, *tables: pa.Table, groups: int = 10) -> Files:
    for number, table in enumerate(tables):
        parquet.write_table(table, folder / f"{number}.parquet", row_group_size=groups)
    found = footers([str(path) for path in folder.iterdir()])
    assert found is not None
    return found


def test_shares_hold_every_row_once_and_number_it(tmp_path: Path) -> None:
    tables = [pa.table({"t": np.arange(n, n + 35), "s": ["x"] * 35}) for n in (0, 100)]
    found = files(tmp_path, *tables)
    assert found.rows == 70
    for tasks in (1, 2, 3, 50):
        shares = found.shares(tasks)
        assert len(shares) == min(tasks, 8)
        batches = [b for n, share in enumerate(shares) for b in read(share, ["t", ROW], n << 33)]
        got = pa.Table.from_batches(batches)
        assert got["t"].to_pylist() == [*range(35), *range(100, 135)]
        assert len(set(got[ROW].to_pylist())) == 70


def test_only_columns_that_need_no_reading_between_the_lines_are_read(tmp_path: Path) -> None:
    table = pa.table(
        {"t": pa.array([1], pa.int32()), "a.b": [1], "s": ["x"], "when": pa.array([1], pa.date32())}
    )
    found = files(tmp_path, table)
    assert found.hold(pa.schema([("t", pa.int32()), ("s", pa.large_string()), (ROW, pa.int64())]))
    for name, kind in [("t", pa.int64()), ("T", pa.int32()), ("a.b", pa.int64())]:
        assert not found.hold(pa.schema([(name, kind)]))
    other = table.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
    parquet.write_table(other, tmp_path / "other.parquet")
    assert footers([str(tmp_path / "other.parquet")]) is None
    (tmp_path / "broken.parquet").write_text("not Parquet")
    assert footers([str(tmp_path / "broken.parquet")]) is None


@pytest.mark.parametrize(
    ("given_type", "wanted", "same"),
    [
        (pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Berlin"), True),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), False),
        (pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC"), False),
        (pa.large_binary(), pa.binary(), True),
        (pa.list_(pa.int8()), pa.list_(pa.field("element", pa.int8())), True),
        (pa.dictionary(pa.int8(), pa.string()), pa.string(), False),
    ],
)
def test_types_are_the_same_or_not(given_type: object, wanted: object, same: bool) -> None:
    assert same_values(given_type, wanted) is same
