"""Bytes that cross exchanges, by Spark's own count, against the rows that must cross them.

python -m benchmarks.spark.bytes W1 W2 W5
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import windjoin.spark as wjs
from windjoin.spark.joining import last_plan

from benchmarks.spark.engines import query_of
from benchmarks.spark.record import Line, record
from benchmarks.spark.run import answer, parquet_paths, session
from benchmarks.workloads import WORKLOADS, Workload

HOSTS = 8
MOST = 1.15


def shuffled(spark: Any, group: str) -> int:
    """What the stages of a group of jobs wrote for others, aggregation of the answer included."""
    tracker, store = spark.sparkContext.statusTracker(), spark.sparkContext._jsc.sc().statusStore()
    infos = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = {stage for info in infos if info is not None for stage in info.stageIds}
    done = [stage for stage in stages if tracker.getStageInfo(stage) is not None]
    return sum(int(store.lastStageAttempt(stage).shuffleWriteBytes()) for stage in done)


def line(spark: Any, workload: Workload, strategy: str) -> Line:
    """Shuffled bytes over those of the travelling columns, each row as often as it was sent."""
    frames = [spark.read.parquet(str(path)) for path in parquet_paths(workload)]
    query = query_of(workload)
    given = dict(zip(query.names, frames, strict=True))
    joined = wjs.join(query, given, hosts=HOSTS, strategy=strategy)
    group = f"{workload.name} {strategy}"
    spark.sparkContext.setJobGroup(group, group)
    if answer(joined) != (workload.results, workload.checksum):
        raise SystemExit(f"{group}: a wrong answer")
    planned = last_plan(query)
    assert planned is not None
    assert planned.meter is not None
    packed, needed = planned.meter.packed, 0.0
    for name, frame in given.items():
        kept = frame.select(*planned.plan.schemas[name].names).toArrow()
        needed += kept.nbytes * packed[name]["copies"] / packed[name]["joinable"]
    sent = shuffled(spark, group)
    detail = f"{sent / 1e6:.1f} MB shuffled, {needed / 1e6:.1f} MB of input times replication"
    print(f"{group}: {detail}, ratio {sent / needed:.2f}", flush=True)
    return Line(f"{group}: bytes", sent / needed, MOST, at_least=False, detail=detail)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the strategies that copy rows or send each once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["W1", "W3", "W4", "W6"])
    given = parser.parse_args(arguments)
    spark = session("local[2]", **{"spark.windjoin.readFiles": "false"})  # or nothing would cross
    lines = [line(spark, WORKLOADS[name], "atr") for name in given.names]
    if "W1" in given.names:
        lines.append(line(spark, WORKLOADS["W1"], "groups"))
    record("Bytes shuffled, against bytes of the input times copies per row", lines)
    spark.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
