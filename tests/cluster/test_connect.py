"""Spark Connect: a client without a Spark context, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.cluster import MARKS
from tests.cluster.machines import QUICK, SECONDS
from tests.spark.queries import STRATEGIES, chain, rows_of, table

pytestmark = MARKS
ROOT = Path(__file__).parent.parent.parent
CLIENT = """
import json, sys
import windjoin.spark as wjs
from pyspark.sql import SparkSession
from tests.spark.queries import STRATEGIES, chain, frames, rows_of, table

wjs.use_java()
builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
spark = wjs.configure(builder.config("spark.driver.extraJavaOptions", sys.argv[1])).getOrCreate()
tables = {name: table(seed, 300) for seed, name in enumerate("abc")}
query = chain()
given = frames(spark, tables, 2)
found = {}
for strategy in STRATEGIES:
    found[strategy] = list(map(list, rows_of(wjs.join(query, given, hosts=3, strategy=strategy))))
print(json.dumps({"found": found, "told": wjs.explain(query), "measured": wjs.measured(query)}))
spark.stop()
"""


def test_join_works_through_spark_connect() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CLIENT, QUICK],
        cwd=ROOT, capture_output=True, text=True, timeout=2 * SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    tables = {name: table(seed, 300) for seed, name in enumerate("abc")}
    expected = sorted(map(list, rows_of(chain().run(tables))), key=str)
    for strategy in STRATEGIES:
        assert sorted(said["found"][strategy], key=str) == expected, strategy
    assert "measured: nothing, as Spark Connect has no accumulators" in said["told"]
    assert said["measured"] == []
