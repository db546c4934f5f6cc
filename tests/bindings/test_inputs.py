"""Everything that is taken as a table, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
import windjoin as wj
from windjoin.errors import InputError
from windjoin.inputs import as_table

TABLE = pa.table({"t": pa.array([1, 2, 3]), "k": pa.array(["x", "y", None])})
ROWS = TABLE.to_pylist()


class ArrowArray:
    """Something that speaks the array interface only."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.batch.__arrow_c_array__(requested_schema)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TABLE,
        lambda: TABLE.to_batches()[0],
        lambda: TABLE.to_batches(max_chunksize=2),
        lambda: TABLE.to_reader(),
        lambda: ArrowArray(TABLE.to_batches()[0]),
        lambda: pl.from_arrow(TABLE),
        lambda: TABLE.to_pandas(),
        lambda: duckdb.from_arrow(TABLE),
        lambda: TABLE.to_pydict(),
        lambda: {"t": np.array([1, 2, 3]), "k": TABLE.column("k")},
    ],
    ids=[
        "table",
        "batch",
        "batches",
        "reader",
        "array",
        "polars",
        "pandas",
        "duckdb",
        "dict",
        "numpy",
    ],
)
def test_tables_of_all_kinds_are_taken(make: Callable[[], Any]) -> None:
    table = as_table(make(), "s")
    assert isinstance(table, pa.Table)
    assert table.to_pylist() == ROWS


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int16"])
def test_a_matrix_is_a_column_of_vectors(dtype: str) -> None:
    matrix = np.arange(12).reshape(4, 3).astype(dtype)
    for rows in (matrix, np.asfortranarray(matrix), np.repeat(matrix, 2, axis=0)[::2]):
        table = as_table({"t": np.arange(4), "v": rows}, "s")
        assert table["v"].type == pa.list_(pa.from_numpy_dtype(np.dtype(dtype)), 3)
        assert table["v"].to_pylist() == matrix.tolist()


def test_a_stack_of_images_is_a_column_of_their_bytes() -> None:
    images = np.random.default_rng(3).integers(0, 256, (6, 4, 5, 3), np.uint8)
    table = as_table({"t": np.arange(6), "v": images}, "s")
    assert table["v"].type == pa.list_(pa.uint8(), 60)
    assert table["v"].to_pylist() == images.reshape(6, 60).tolist()
    a, b = (wj.stream(name, time="t", window=2) for name in "ab")
    query = wj.join(a, b, on=wj.l1(a["v"], b["v"]) <= 5_000)
    rows = {"t": np.arange(6), "v": images}
    found = query.indices({"a": rows, "b": rows})
    pairs = set(zip(found["a"].tolist(), found["b"].tolist(), strict=True))
    apart = np.abs(images[:, None].astype(int) - images[None]).sum((2, 3, 4))
    near = np.abs(np.subtract.outer(np.arange(6), np.arange(6))) <= 2
    wanted = {(int(i), int(j)) for i, j in np.argwhere((apart <= 5_000) & near)}
    assert pairs == wanted
    assert len(wanted) > 6
    with query.open(schemas={name: as_table(rows, name).schema for name in "ab"}) as session:
        for start in (0, 3):
            some = {name: values[start : start + 3] for name, values in rows.items()}
            late = [session.push(name, some) for name in "ab"]
    assert session.metrics["results"] == len(wanted)
    assert late[-1].num_rows > 0


def test_a_table_is_not_copied() -> None:
    assert as_table(TABLE, "s") is TABLE


def test_string_views_become_large_strings() -> None:
    table = as_table(
        pl.DataFrame({"s": ["a"], "l": [["b"]], "c": pl.Series(["d"]).cast(pl.Categorical)}), "s"
    )
    assert table.schema.field("s").type == pa.large_string()
    assert table.schema.field("l").type.value_type == pa.large_string()
    assert table.schema.field("c").type.value_type == pa.large_string()
    assert table.take(pa.array([0, 0])).to_pylist() == [{"s": "a", "l": ["b"], "c": "d"}] * 2


def test_a_named_pandas_index_becomes_a_column() -> None:
    frame = pd.DataFrame({"x": [1.5]}, index=pd.Index(pd.to_datetime(["2024-01-01"]), name="ts"))
    assert as_table(frame, "s").column_names == ["x", "ts"]
    assert as_table(frame.reset_index(drop=True), "s").column_names == ["x"]
    assert as_table(frame.rename_axis(index=None), "s").column_names == ["x"]


def write_ipc(path: Path, stream: bool) -> None:
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(str(path), TABLE.schema) as writer:
        writer.write_table(TABLE)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("t.parquet", lambda path: pa.parquet.write_table(TABLE, path)),
        ("t.pq", lambda path: pa.parquet.write_table(TABLE, path)),
        ("t.arrow", lambda path: write_ipc(path, False)),
        ("t.ARROW", lambda path: write_ipc(path, True)),
        ("t.arrows", lambda path: write_ipc(path, True)),
        ("t.ipc", lambda path: write_ipc(path, False)),
        ("t.feather", lambda path: pa.feather.write_feather(TABLE, path)),
        ("t.jsonl", lambda path: pl.from_arrow(TABLE).write_ndjson(path)),
        ("t.ndjson", lambda path: pl.from_arrow(TABLE).write_ndjson(path)),
        ("t.json", lambda path: pl.from_arrow(TABLE).write_ndjson(path)),
    ],
)
def test_files_are_read_by_their_suffix(name: str, write: Any, tmp_path: Path) -> None:
    path = tmp_path / name
    write(path)
    assert as_table(path, "s").to_pylist() == ROWS
    assert as_table(str(path), "s").to_pylist() == ROWS


def test_csv_is_read_compressed_or_not(tmp_path: Path) -> None:
    rows = TABLE.slice(0, 2)
    pa.csv.write_csv(rows, tmp_path / "t.csv")
    with pa.CompressedOutputStream(str(tmp_path / "t.csv.gz"), "gzip") as out:
        pa.csv.write_csv(rows, out)
    for name in ("t.csv", "t.csv.gz"):
        assert as_table(tmp_path / name, "s").to_pylist() == ROWS[:2]


def test_a_folder_of_parquet_files_is_one_table(tmp_path: Path) -> None:
    pa.parquet.write_table(TABLE.slice(0, 1), tmp_path / "1.parquet")
    pa.parquet.write_table(TABLE.slice(1), tmp_path / "2.parquet")
    assert sorted(row["t"] for row in as_table(tmp_path, "s").to_pylist()) == [1, 2, 3]


def test_what_is_not_a_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("x")
    (tmp_path / "t").write_text("x")
    (tmp_path / "t.parquet").write_text("x")
    (tmp_path / "t.arrow").write_text("nonsense")
    cases: list[tuple[Any, str]] = [
        (5, "stream 's': int is not a table; give a pyarrow, polars or pandas table"),
        ([], r"stream 's': \[\] has no columns, and nothing has said yet which there are"),
        (pl.Series([1]), "stream 's': Series cannot be read as a table"),
        (
            {"a": [1], "b": np.array([1]), "c": [1, 2]},
            "stream 's': column 'a' has 1 rows but column 'c' has 2; give all columns of a table",
        ),
        ({"a": [1, "x"]}, "stream 's': dict cannot be read as a table: "),
        (tmp_path / "missing.parquet", "stream 's': there is no file '.*missing.parquet'"),
        (tmp_path / "t.txt", "has no suffix that says what it holds; known are .parquet, .pq"),
        (tmp_path / "t", "has no suffix that says what it holds"),
        (tmp_path / "t.parquet", "'.*t.parquet' cannot be read as a table: "),
        (tmp_path / "t.arrow", "'.*t.arrow' cannot be read as a table: "),
    ]
    for source, message in cases:
        with pytest.raises(InputError, match=message):
            as_table(source, "s")


def test_columns_of_different_lengths_are_refused_by_a_session_too() -> None:
    a, b = (wj.stream(name, time="t", window=1) for name in "ab")
    columns = {"t": np.array([1, 2]), "k": np.array([1, 2, 3])}
    with wj.join(a, b, on=a["k"] == b["k"]).open(rows_only=True) as session:
        for _ in range(2):
            session.push("a", {"t": np.array([1]), "k": np.array([1])})
            with pytest.raises(InputError, match="'a': column 't' has 2 rows but column 'k' has 3"):
                session.push("a", columns)
