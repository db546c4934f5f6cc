"""Where the time of a join on Spark goes: the same work, cut off after each step.

python -m benchmarks.spark.profile W1
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import functions as F
from windjoin.spark.joining import Planned, _frame, _packed, planned_join, union
from windjoin.spark.sources import FrameSource

from benchmarks.spark.engines import query_of
from benchmarks.spark.run import answer, cpu_seconds, parquet_paths, session
from benchmarks.workloads import WORKLOADS

REPEAT = 8


def used(run: Callable[[], Any]) -> tuple[float, float]:
    """Wall and CPU seconds, the best of several runs."""
    walls, cpus = [], []
    for _ in range(REPEAT):
        began, before = time.perf_counter(), cpu_seconds()
        run()
        walls.append(time.perf_counter() - began)
        cpus.append(cpu_seconds() - before)
    return min(walls), min(cpus)


def nothing(frame: Any) -> None:
    """Make all rows and let them go."""
    frame.write.format("noop").mode("append").save()


def packed(planned: Planned, streams: list[FrameSource]) -> Any:
    """The segments of the first exchange."""
    first = planned.plan.inputs[0]
    return union(_packed(planned.plan, first, streams, None))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print seconds up to each step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", default="W1", choices=sorted(WORKLOADS))
    workload = WORKLOADS[parser.parse_args(arguments).name]
    spark = session("local[2]")
    frames = [spark.read.parquet(str(path)) for path in parquet_paths(workload)]
    query = query_of(workload)
    given = dict(zip(query.names, frames, strict=True))
    planned, streams = planned_join(query, given, 2, "atr", None, "spread")
    segments = packed(planned, streams)
    sent = segments.repartitionById(2, F.col("host")).sortWithinPartitions("start", "sequence")
    joined = _frame(planned, streams)
    steps: dict[str, Callable[[], Any]] = {
        "scan": lambda: [nothing(frame) for frame in frames],
        "plan: look at the times": lambda: planned_join(query, given, 2, "atr", None, "spread"),
        "read, pack": lambda: nothing(segments),
        "... exchange, sort segments": lambda: nothing(sent),
        "... decode, kernel, encode": lambda: nothing(joined),
        "... aggregate results": lambda: answer(joined),
    }
    if not planned.exchanges:  # every host reads and packs for itself
        del steps["... exchange, sort segments"]
    print(f"{workload.name:30} {'wall s':>8} {'cpu s':>8}")
    for name, run in steps.items():
        wall, cpu = used(run)
        print(f"{name:30} {wall:8.2f} {cpu:8.2f}", flush=True)
    spark.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
