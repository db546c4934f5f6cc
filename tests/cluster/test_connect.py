"""Spark Connect: a client without a Spark context, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

from tests.cluster import MARKS
from tests.cluster.machines import QUICK, SECONDS
from tests.spark.queries import STRATEGIES, chain, rows_of, table

pytestmark = MARKS
ROOT = Path(__file__).parent.parent.parent
CLIENT = """
import json, sys
import windjoin as wj
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
said = {"found": found, "told": wjs.explain(query), "measured": wjs.measured(query)}

folder = sys.argv[2]
reader = spark.readStream.schema("ts long, k long, w string, x double, n long")
reader = reader.option("maxFilesPerTrigger", 1)
given = {name: reader.parquet(f"{folder}/{name}") for name in "abc"}
joined = wjs.stream(query, given, lateness=400, slots=2, log=f"{folder}/log")
writer = joined.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
writer.trigger(availableNow=True).start(f"{folder}/out").awaitTermination()
said["streamed"] = list(map(list, rows_of(spark.read.parquet(f"{folder}/out"))))
said["held"] = wjs.read_log(f"{folder}/log", spark=spark).count()
try:
    wjs.start(query, given, checkpoint=f"{folder}/other", sink="noop")
except wj.QueryError as error:
    said["start"] = str(error)
print(json.dumps(said))
spark.stop()
"""


def test_joins_work_through_spark_connect(tmp_path: Path) -> None:
    tables = {name: table(seed, 300) for seed, name in enumerate("abc")}
    ordered = {name: table(seed, 240, ordered=True) for seed, name in enumerate("abc")}
    for name, rows in ordered.items():
        (tmp_path / name).mkdir()
        for epoch in range(3):
            path = tmp_path / name / f"{epoch}.parquet"
            pq.write_table(rows.slice(80 * epoch, 80), path)
            os.utime(path, (1.7e9 + epoch, 1.7e9 + epoch))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CLIENT, QUICK, str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=2 * SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    expected = sorted(map(list, rows_of(chain().run(tables))), key=str)
    for strategy in STRATEGIES:
        assert sorted(said["found"][strategy], key=str) == expected, strategy
    assert "measured: nothing, as Spark Connect has no accumulators" in said["told"]
    assert said["measured"] == []
    streamed = sorted(map(list, rows_of(chain().run(ordered))), key=str)
    assert sorted(said["streamed"], key=str) == streamed
    assert said["held"] > 0
    assert "under Spark Connect use windjoin.spark.stream" in said["start"]
