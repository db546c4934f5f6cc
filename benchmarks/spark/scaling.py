"""The same join on one executor process and on two, a core each, on a standalone cluster.

python -m benchmarks.spark.scaling W4 W6
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.spark.engines import ours
from benchmarks.spark.record import Line, record
from benchmarks.spark.run import answer, parquet_paths
from benchmarks.workloads import WORKLOADS, Workload
from tests.cluster.machines import Cluster, session

REPEAT, HOSTS = 3, 8


def seconds(cluster: Cluster, workload: Workload, executors: int) -> float:
    """The best of several runs, after one that warms up."""
    conf = {
        "spark.executor.memory": "1g", "spark.executor.cores": "1",
        "spark.cores.max": str(executors), "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.executor.extraJavaOptions": "", "spark.driver.extraJavaOptions": "",
    }  # fmt: skip
    taken = []
    with session(cluster.url, **conf) as spark:
        for _ in range(REPEAT + 1):
            frames = [spark.read.parquet(str(path)) for path in parquet_paths(workload)]
            began = time.perf_counter()
            found = answer(ours(workload, frames, hosts=HOSTS, strategy="atr"))
            taken.append(time.perf_counter() - began)
            if found != (workload.results, workload.checksum):
                raise SystemExit(f"{workload.name}: found {found}")
    return min(taken[1:])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print seconds for one and two, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["W4", "W6"], choices=sorted(WORKLOADS))
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder))
        try:
            cluster.start(workers=2)
            for name in given.names:
                one, two = (seconds(cluster, WORKLOADS[name], n) for n in (1, 2))
                detail = f"{one:.2f} s on one, {two:.2f} s on two"
                print(f"{name}: {detail}, ratio {one / two:.2f}")
                line = Line(f"{name} on two executors", one / two, 1.7, detail=detail)
                record(f"{name}: one executor process of a core against two", [line])
        finally:
            cluster.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
