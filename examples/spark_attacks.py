"""Correlated attacks: three streams of alerts from Parquet, joined by common hosts and time order.

    python examples/spark_attacks.py

A port scan, a break-in and data leaving, within ten minutes, in this order, with hosts in common:
the break-in shares at least two with the scan and at least one with the leak.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import windjoin as wj
import windjoin.spark as wjs
from pyarrow import parquet
from pyspark.sql import SparkSession

SECONDS = 1_000_000  # microseconds
HOURS = 6
ALERTS = {"scans": 20_000, "breakins": 8_000, "leaks": 4_000}
HOSTS, ATTACKS = 5_000, 25
WINDOW = "10m"


def alerts(folder: Path) -> None:
    """Write noise, and some real attacks in it."""
    rng = np.random.default_rng(4)
    span = HOURS * 3600 * SECONDS
    begun = rng.integers(0, span - 600 * SECONDS, ATTACKS)
    targets = [rng.choice(HOSTS, 6, replace=False) for _ in range(ATTACKS)]
    for number, (name, count) in enumerate(ALERTS.items()):
        times = rng.integers(0, span, count)
        hosts = [rng.choice(HOSTS, rng.integers(1, 8)) for _ in range(count)]
        attack = np.full(count, -1)
        steps = begun + rng.integers(1, 120, ATTACKS) * SECONDS + number * 180 * SECONDS
        times, attack = np.append(times, steps), np.append(attack, np.arange(ATTACKS))
        hosts += [target[: 6 - number] for target in targets]
        stamps = pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC"))
        columns = {"time": stamps, "hosts": pa.array(hosts), "attack": attack}
        parquet.write_table(pa.table(columns), folder / f"{name}.parquet")


def bars(title: str, values: list[float]) -> str:
    """A plot in text: a line for each host."""
    most = max([*values, 1])
    lines = [f"  {n} {'#' * round(50 * v / most):50} {v:,.0f}" for n, v in enumerate(values)]
    return "\n".join([title, *lines])


def main() -> None:
    """Generate, join, and show."""
    scans, breakins, leaks = (wj.stream(name, time="time", window=WINDOW) for name in ALERTS)
    query = wj.join(
        scans,
        breakins,
        leaks,
        on=[
            wj.overlap(scans["hosts"], breakins["hosts"]) >= 2,
            wj.overlap(breakins["hosts"], leaks["hosts"]) >= 1,
            scans["time"] < breakins["time"],
            breakins["time"] < leaks["time"],
        ],
    )
    spark = wjs.configure(SparkSession.builder.master("local[*]")).getOrCreate()
    with tempfile.TemporaryDirectory() as name:
        alerts(Path(name))
        frames = {one: spark.read.parquet(f"{name}/{one}.parquet") for one in ALERTS}
        found = wjs.join(query, frames, hosts=8, strategy="atr").cache()
        print(f"{found.count()} chains of alerts, of which by a planned attack:")
        planned = "scans_attack >= 0 and scans_attack = breakins_attack"
        found.where(f"{planned} and breakins_attack = leaks_attack").select(
            "scans_attack", "scans_time", "leaks_time", "leaks_hosts"
        ).orderBy("scans_attack").show(ATTACKS, truncate=False)
        print(bars("alerts per host:", [host["rows"] for host in wjs.measured(query)]))
        print(bars("comparisons per host:", [h["comparisons"] for h in wjs.measured(query)]))
        print(wjs.explain(query))
    spark.stop()


if __name__ == "__main__":
    main()
