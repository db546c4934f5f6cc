"""The same join on one executor process and on two, a core each, on a standalone cluster.

python -m benchmarks.spark.scaling W4_long W4 W6 --times 24

W4 itself spends as long on its results as in kernels, and W6 nearly all on moving its bytes, as the
kernel tells most of its images apart by a few averages.  W4_long has five times the window and a
smaller radius, W6_long four times the pairs of images, too noisy for averages to say much: hardly
anything but comparisons is left to do.

Every worker is tied to a core of its own, and what it starts with it: a JVM and its Python workers
would else take two.  The driver is not: one executor leaves it a core, two do not.  So the rows
come many times, one stretch of time after the other, for what the driver does not to count, and
after as many runs as the JVMs need to have compiled most of what they run.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.generators import generator, images
from benchmarks.spark.engines import ours
from benchmarks.spark.record import Line, record
from benchmarks.spark.run import answer, parquet_paths
from benchmarks.spark.sizes import longer
from benchmarks.workloads import WORKLOADS, Workload
from tests.cluster.machines import Cluster, session

WARM, REPEAT, HOSTS = 8, 2, 16  # WARM: runs of the workload as it is
LONG = replace(
    WORKLOADS["W4"], name="W4_long", window=300_000_000, limit=3200.5, results=1_056_626,
    checksum=1134573859007424, about="three distances of vectors, 300 s, fewer of them close",
)  # fmt: skip
NOISY = replace(
    WORKLOADS["W6"], name="W6_long", window=40_000_000, results=199_928,
    checksum=214_688_366_798_648,
    generate=lambda: images(generator("W6_long"), rows=2_000, seconds=40, noise=80),
    about="2 x 2,000 noisy images of 15,000 bytes, mean difference <= 76.4",
)  # fmt: skip
SCALED = {"W4_long": LONG, "W6_long": NOISY, "W4": WORKLOADS["W4"], "W6": WORKLOADS["W6"]}


def pin(cluster: Cluster) -> None:
    """A core for each worker, and for all that it starts."""
    cores = sorted(os.sched_getaffinity(0))
    for number, process in enumerate(cluster.processes[1:]):
        threads = os.listdir(f"/proc/{process.pid}/task")
        for thread in threads:
            os.sched_setaffinity(int(thread), {cores[number % len(cores)]})


def seconds(cluster: Cluster, workload: Workload, times: int, executors: int) -> float:
    """The best of several runs of the workload many times, after some of it once."""
    conf = {
        "spark.executor.memory": "1g", "spark.executor.cores": "1",
        "spark.cores.max": str(executors), "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.executor.extraJavaOptions": "", "spark.driver.extraJavaOptions": "",
    }  # fmt: skip
    with session(cluster.url, **conf) as spark:
        for _ in range(WARM):
            run(spark, workload)
        return min(run(spark, longer(workload, times)) for _ in range(REPEAT))


def run(spark: Any, workload: Workload) -> float:
    """Seconds of one join."""
    frames = [spark.read.parquet(str(path)) for path in parquet_paths(workload)]
    began = time.perf_counter()
    found = answer(ours(workload, frames, hosts=HOSTS, strategy="atr"))
    taken = time.perf_counter() - began
    if found[0] != workload.results:
        raise SystemExit(f"{workload.name}: found {found[0]}, not {workload.results}")
    return taken


def main(arguments: Sequence[str] | None = None) -> int:
    """Print seconds for one and two, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(SCALED), choices=list(SCALED))
    parser.add_argument("--times", type=int, default=24, help="how often the rows come")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder))
        try:
            cluster.start(workers=2)
            pin(cluster)
            for name in given.names:
                one, two = (seconds(cluster, SCALED[name], given.times, n) for n in (1, 2))
                detail = f"{one:.2f} s on one, {two:.2f} s on two"
                print(f"{name}: {detail}, ratio {one / two:.2f}")
                line = Line(f"{name}x{given.times} on two executors", one / two, 1.7, detail=detail)
                record(f"{name}: one executor process of a core against two", [line])
        finally:
            cluster.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
