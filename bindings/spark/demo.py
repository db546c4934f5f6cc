"""Tables joined on Spark on this machine, for ``windjoin demo --spark``."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from windjoin.cli.text import pace
from windjoin.query import Query
from windjoin.spark.explaining import explain
from windjoin.spark.joining import join
from windjoin.spark.settings import configure


def join_tables(query: Query, tables: Mapping[str, pa.Table]) -> None:
    """Join in a session of its own; say what came out, how fast, and what each host did."""
    builder: Any = SparkSession.builder
    builder = builder.master("local[*]").appName("windjoin demo")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.log.level", "ERROR")
    spark = configure(builder).getOrCreate()
    try:
        frames = {name: spark.createDataFrame(table) for name, table in tables.items()}
        joined = join(query, frames, strategy="atr").cache()
        began = time.perf_counter()
        results = joined.count()
        rows = sum(table.num_rows for table in tables.values())
        say = sys.stdout.write
        say(f"{pace(rows, results, time.perf_counter() - began)}\n\n{explain(query)}\n\n")
        joined.show(5)
    finally:
        spark.stop()
