"""Programs of pages on Spark run as they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.project.pages import run_page
from tests.spark import MARKS

pytestmark = MARKS


def test_the_readme_joins_frames(spark: Any, tmp_path: Path) -> None:
    for name, columns in (
        ("calls", {"ts": [120], "person": ["ann"]}),
        ("trades", {"ts": [140], "person": ["ann"], "price": [99.5]}),
        ("news", {"ts": [0], "id": [1], "price": [99.25]}),
    ):
        parquet.write_table(pa.table(columns), tmp_path / name)
    names: dict[str, Any] = {}
    assert run_page("README.md", tmp_path, names, spark=True) == []
    found = spark.read.parquet(str(tmp_path / "found")).collect()
    assert [row.asDict() for row in found] == [
        {"calls_person": "ann", "trades_price": 99.5, "news": 1}
    ]


@pytest.mark.parametrize("page", ["docs/spark.md", "docs/spark_streaming.md"])
def test_programs_of_a_page_run(spark: Any, page: str, tmp_path: Path) -> None:
    assert run_page(page, tmp_path, {"spark": spark}) == []


def test_fragments_of_a_plan_stream(spark: Any, tmp_path: Path) -> None:
    names: dict[str, Any] = {"spark": spark, "__name__": "a page"}
    assert run_page("docs/planning.md", tmp_path, names, spark=True) == []
    found = spark.read.parquet(str(tmp_path / "found")).toArrow()
    expected = names["query"].run(names["tables"])
    times = [name for name in expected.column_names if name.endswith("_ts")]  # in Spark's zone
    assert found.column_names == expected.column_names
    assert found.drop_columns(times).to_pylist() == expected.drop_columns(times).to_pylist()
    assert found["news_price"].to_pylist() == [3.2]
