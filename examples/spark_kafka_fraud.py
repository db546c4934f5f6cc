"""Calls with the large trades that follow them, or none: two Kafka topics, joined as they come.

    python examples/spark_kafka_fraud.py [folder]

Starts a broker (see ``kafka_broker.py``), writes two topics, joins them with a left outer join,
stops half-way and goes on with more slots.  Calls without a trade leave when watermarks say that
none can come any more.  The end is compared with a batch join; the folder gets a picture.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import windjoin as wj
import windjoin.spark as wjs
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQueryListener

sys.path.insert(0, str(Path(__file__).parent))
from kafka_broker import Broker, connector

SECOND = 1_000_000  # microseconds
START = 1_767_600_000 * SECOND
ROWS = {"calls": 6_000, "trades": 18_000}  # of four minutes
FIELDS = {"calls": "ts long, who long, share long, id long"}
FIELDS["trades"] = f"{FIELDS['calls']}, amount double"
Tables = dict[str, pa.Table]


def some(seed: int, begin: int, seconds: int) -> Tables:
    """Rows of both topics, up to three seconds out of order."""
    chance, found = np.random.default_rng(seed), {}
    for name, count in ROWS.items():
        times = START + (begin * SECOND) + np.linspace(0, seconds * SECOND, count).astype(int)
        columns: dict[str, Any] = {
            "ts": times + chance.integers(-3 * SECOND, 1, count),
            "who": chance.integers(0, 400, count),
            "share": chance.integers(0, 12, count),
            "id": np.arange(count) + seed * 1_000_000,
        }
        if name == "trades":
            columns["amount"] = chance.exponential(1000.0, count)
        found[name] = pa.table(columns)
    return found


def the_end(after: int) -> Tables:
    """A call and a trade of nobody's, so much later that all before them is final."""
    none = {"ts": [START + after * SECOND], "who": [-1], "share": [-1], "id": [-after]}
    return {"calls": pa.table(none), "trades": pa.table({**none, "amount": [0.0]})}


def produce(spark: Any, address: str, tables: Tables) -> None:
    """Write rows to their topics, those of a caller to one partition."""
    for name, table in tables.items():
        rows = spark.createDataFrame(table).coalesce(1)
        message = rows.select(
            F.col("who").cast("string").alias("key"), F.to_json(F.struct("*")).alias("value")
        )
        options = {"kafka.bootstrap.servers": address, "topic": name}
        message.write.format("kafka").options(**options).save()


def topics(spark: Any, address: str, most: int) -> dict[str, Any]:
    """Streaming DataFrames of both topics, ``most`` messages of each in an epoch."""
    frames = {}
    for name, fields in FIELDS.items():
        options = {"subscribe": name, "startingOffsets": "earliest", "maxOffsetsPerTrigger": most}
        reader = spark.readStream.format("kafka").options(**options)
        raw = reader.option("kafka.bootstrap.servers", address).load()
        rows = raw.select(F.from_json(F.col("value").cast("string"), fields).alias("m"))
        frames[name] = rows.select("m.*").withColumn("ts", F.timestamp_micros("ts"))
    return frames


def followed() -> wj.Query:
    """Large trades of the caller in what the call was about, within 30 seconds; or none."""
    calls = wj.stream("calls", time="ts", window="30s")
    trades = wj.stream("trades", time="ts", window="0s", where=lambda t: t["amount"] > 800.0)
    same = [calls["who"] == trades["who"], calls["share"] == trades["share"]]
    chosen = [calls["id"].alias("call"), trades["id"].alias("trade"), trades["amount"]]
    return wj.join(calls, trades, on=same, how="left", select=chosen)


def run(spark: Any, address: str, folder: Path, slots: int, most: int = 6_000) -> wjs.Run:
    """Join what the topics have."""
    begun = wjs.start(
        followed(),
        topics(spark, address, most),
        checkpoint=str(folder / "checkpoint"),
        path=str(folder / "found"),
        lateness="60s",  # partitions of a topic run apart
        rejected=str(folder / "rejected"),
        trigger={"availableNow": True},
        slots=slots,
    )
    begun.await_termination()
    return begun


def expected(tables: list[Tables]) -> Counter[Any]:
    """What a batch join of all rows finds."""
    kind = pa.timestamp("us", "UTC")
    whole = {}
    for name in ROWS:
        rows = pa.concat_tables([one[name] for one in tables])
        whole[name] = rows.set_column(0, "ts", rows["ts"].cast(kind))
    return as_rows(followed().run(whole))


def as_rows(table: pa.Table) -> Counter[Any]:
    """Pairs of a call and a trade; what `the_end` brought is left out."""
    calls, trades = table["call"].to_pylist(), table["trade"].to_pylist()
    return Counter((c, t) for c, t in zip(calls, trades, strict=True) if c >= 0)


class Watcher(StreamingQueryListener):
    """Tells how far behind the topics the join is, epoch by epoch."""

    def onQueryStarted(self, event: Any) -> None:
        """Nothing to tell."""

    def onQueryProgress(self, event: Any) -> None:
        """Rows of an epoch, and how many offsets of each topic are still to come."""
        behind = {}
        for source in event.progress.sources:
            lag = (source.metrics or {}).get("maxOffsetsBehindLatest")
            behind[source.description] = lag
        rows = event.progress.numInputRows
        print(f"epoch {event.progress.batchId}: {rows} messages; behind: {list(behind.values())}")

    def onQueryIdle(self, event: Any) -> None:
        """Nothing to tell."""

    def onQueryTerminated(self, event: Any) -> None:
        """Nothing to tell."""


def draw(found: pa.Table, runs: list[wjs.Run], path: Path) -> None:
    """Results of each epoch, and milliseconds that each took."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    epochs = [done for one in runs for done in one.history]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.5))
    left.bar([e.epoch for e in epochs], [e.rows for e in epochs], label="rows kept")
    left.plot([e.epoch for e in epochs], [e.results for e in epochs], "k.-", label="results")
    left.set(xlabel="epoch", title=f"{found.num_rows} calls with a trade, or none")
    left.legend()
    right.plot([e.epoch for e in epochs], [1e3 * e.seconds for e in epochs], ".-")
    right.set(xlabel="epoch", ylabel="ms", ylim=(0, None))
    figure.tight_layout()
    figure.savefig(path)


def session() -> Any:
    """A session that can read and write topics."""
    builder: Any = SparkSession.builder
    builder = builder.master("local[2]").appName("fraud from Kafka")
    for key, value in {
        "spark.jars": connector(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(key, value)
    spark = wjs.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def main(folder: Path) -> None:
    """Two runs with other slots, the end of the streams, and a batch join to compare with."""
    with Broker() as broker:
        spark = session()
        spark.streams.addListener(Watcher())
        tables = [some(1, 0, 120), some(2, 120, 120)]
        runs = []
        for number, part in enumerate(tables):
            produce(spark, broker.address, part)
            runs.append(run(spark, broker.address, folder, 2 + 2 * number))
        for later in (3_600, 3_601):  # what waited for trades that cannot come is given out
            produce(spark, broker.address, the_end(later))
            runs.append(run(spark, broker.address, folder, 2))
        found = spark.read.parquet(str(folder / "found")).toArrow()
        spark.stop()
    rows, right = as_rows(found), expected(tables)
    alone = sum(1 for _, trade in rows if trade is None)
    print(f"{rows.total()} results, {alone} of them calls without a trade")
    print(f"as a batch join finds them: {rows == right}")
    draw(found, runs, folder / "spark_kafka_fraud.png")
    if rows != right:
        raise SystemExit(f"missing {right - rows}, too many {rows - right}"[:2000])


if __name__ == "__main__":
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as place:
            main(Path(place))
