"""The same join on one executor process and on two, a core each, on a standalone cluster.

python -m benchmarks.spark.scaling W4 W6

Every worker is tied to a core of its own, and what it starts with it: a JVM and its Python workers
would else take two.  The rows come several times, one stretch of time after the other.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.spark.engines import ours
from benchmarks.spark.record import Line, record
from benchmarks.spark.run import answer, parquet_paths
from benchmarks.spark.sizes import longer
from benchmarks.workloads import WORKLOADS, Workload
from tests.cluster.machines import Cluster, session

REPEAT, HOSTS, TIMES = 2, 8, 6


def pin(cluster: Cluster) -> None:
    """A core for each worker, and for all that it starts."""
    cores = sorted(os.sched_getaffinity(0))
    for number, process in enumerate(cluster.processes[1:]):
        threads = os.listdir(f"/proc/{process.pid}/task")
        for thread in threads:
            os.sched_setaffinity(int(thread), {cores[number % len(cores)]})


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
            if found[0] != workload.results:
                raise SystemExit(f"{workload.name}: found {found[0]}, not {workload.results}")
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
            pin(cluster)
            for name in given.names:
                workload = longer(WORKLOADS[name], TIMES)
                one, two = (seconds(cluster, workload, n) for n in (1, 2))
                detail = f"{one:.2f} s on one, {two:.2f} s on two"
                print(f"{name}: {detail}, ratio {one / two:.2f}")
                line = Line(f"{workload.name} on two executors", one / two, 1.7, detail=detail)
                record(f"{name}: one executor process of a core against two", [line])
        finally:
            cluster.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
