"""Streaming joins: `windjoin.spark` against Spark's own joins of streams, in one run.

    python -m benchmarks.spark_stream                 all of it; --record writes it down
    python -m benchmarks.spark_stream equality --rows 100000 --epochs 18 --peers hdfs

Each engine gets the same files, one of each stream an epoch, and a sink that takes all rows.  CPU
seconds are those of the driver, the JVM and all Python workers; epochs before a window is full do
not count.  Results are compared.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.spark.record import Line, record, told
from benchmarks.spark_stream import adapting, equality
from benchmarks.spark_stream.epochs import about, session
from benchmarks.spark_stream.named import LARGE, TIMES, named

RESULTS = Path(__file__).parent.parent / "results" / "spark_stream"
Part = Callable[[Any, argparse.Namespace], list[Line]]
PARTS: dict[str, tuple[str, Part]] = {
    "small": ("Fixed cost of an epoch", lambda s, g: equality.small(s, warm=g.warm)),
    "windows": ("Long windows", lambda s, g: equality.windows(s, 10_000, g.slots)),
    "equality": (
        "Equality, against Spark's join of two streams",
        lambda s, g: equality.equality(
            s, equality.Shape(g.rows, g.epochs, g.window), g.slots, g.peers, g.rounds, g.warm
        ),
    ),
    "named": (
        "The named workloads as streams",
        lambda s, g: [
            line
            for name in g.workloads
            for line in named(s, name, g.first, g.times, g.warm, g.large)
        ],
    ),
    "state": ("The log", lambda s, g: adapting.log_bytes(s, g.many)),
    "slots": ("Slots that come and go", lambda s, g: adapting.changed(s)),
}
ALONE = "slowed"  # has sessions of its own


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[*PARTS, ALONE], help=", ".join(PARTS))
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--epochs", type=int, default=18)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--peers", nargs="*", default=["hdfs", "rocksdb"])
    parser.add_argument("--workloads", nargs="*", default=["W2", "W3", "W4", "W5", "W7"])
    parser.add_argument("--first", type=int, help="epochs of each of these; all if not given")
    parser.add_argument("--large", type=int, default=LARGE, help="rows of an epoch of these")
    parser.add_argument("--times", type=int, default=TIMES, help="how often; the least counts")
    parser.add_argument("--window", type=int, default=equality.WINDOW, help="epochs")
    parser.add_argument("--rounds", type=int, default=2, help="of each engine; the best counts")
    parser.add_argument(
        "--warm", type=int, default=equality.WARM_EPOCHS, help="small epochs before each engine"
    )
    parser.add_argument("--memory", default="4g", help="of the JVM")
    parser.add_argument("--many", type=int, default=1_000, help="epochs of the log")
    parser.add_argument("--strategies", nargs="*", default=["groups", "atr"])
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args(arguments)
    print(about(), flush=True)
    for name in given.names:
        here, load = about(), os.getloadavg()[0]
        if name == ALONE:
            title, lines = "A slow slot", [
                line for strategy in given.strategies for line in adapting.slowed(strategy)
            ]  # fmt: skip
        else:
            spark = session(**{"spark.driver.memory": given.memory})
            title, part = PARTS[name]
            lines = part(spark, given)
            spark.stop()
        # parts are measured at several times
        lines = [replace(line, detail=f"{line.detail}; load {load:.1f} before") for line in lines]
        for line in lines:
            print(told(line), flush=True)
        if given.record:
            record(title, lines, RESULTS, here)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
