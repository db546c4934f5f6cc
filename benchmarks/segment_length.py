"""Does the segment length that is found while a join runs come near the best fixed one?

    python -m benchmarks.segment_length --out benchmarks/results/segment_length

Three joins of `windjoin.host_trials` as sessions on four hosts: with segments of fixed lengths, and
with no length asked for.  What counts is the second half of the rows, by the clock and by processor
time of the host that worked most, as four hosts have not four processors everywhere.  The run that
looks for its length goes on looking in that half: so it is also told what the fixed length does
that is nearest to the one it had for most of that time.  Its lengths over time are kept.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.host_trials import HostTrial, host_trials

from benchmarks.measure import machine

HOSTS = 4
JOINS = {"function": (120_000, 400), "three": (40_000, 100), "sets": (2_000_000, 2_000)}
PARTS = (16, 8, 4, 2, 1)  # segments in a window
PUSH = 8  # windows


def trials() -> list[HostTrial]:
    """The joins, over more rows than to calibrate by."""
    known = {trial.name: trial for trial in host_trials()}
    return [
        replace(known[name], rows=rows, window=window) for name, (rows, window) in JOINS.items()
    ]


def run(trial: HostTrial, tables: dict[str, pa.Table], segment: int | None) -> dict[str, Any]:
    """Rows per second of the second half; segments over time."""
    query = trial.query(trial.window)
    schemas = {name: table.schema for name, table in tables.items()}
    step, half = PUSH * trial.window, trial.rows // 2
    at = dict.fromkeys(tables, 0)
    began, before = 0.0, np.zeros(HOSTS)
    with query.open(
        schemas, hosts=HOSTS, strategy=trial.strategy, segment=segment, rows_only=True
    ) as session:
        for stop in range(step, trial.rows + step, step):
            if not began and stop > half:
                began, before = perf_counter(), spent(session)
                first = sum(at.values())
            for name, table in tables.items():
                upto = int(np.searchsorted(table["t"].to_numpy(), stop))
                session.push(name, table.slice(at[name], upto - at[name]))
                at[name] = upto
        session.close()
        seconds = perf_counter() - began
        busiest = float((spent(session) - before).max())
        report = session.report()
        rows = trial.streams * trial.rows - first
        panels = dict(report.panels)  # none where there was no border to report at
        lengths = panels["segment length, ticks"][0][1] if panels else []
        return {
            "segment": segment,
            "rows_per_second": round(rows / seconds),
            "rows_per_processor_second": round(rows / busiest),
            "results": session.metrics["results"],
            "lengths": list(zip([round(s, 3) for s in report.seconds], lengths, strict=True)),
        }


def settled(own: dict[str, Any], fixed: list[dict[str, Any]]) -> dict[str, Any]:
    """The length that a run had most of its second half, and what the nearest fixed one does."""
    lengths = [length for _, length in own["lengths"]]
    late = lengths[len(lengths) // 2 :]
    most = max(set(late), key=late.count)
    near = min(fixed, key=lambda one: abs(math.log(one["segment"] / most)))
    told: dict[str, Any] = {"settled": most, "nearest_fixed": near["segment"]}
    for key in ("rows_per_second", "rows_per_processor_second"):
        told[f"settled_of_best_{key}"] = round(near[key] / max(one[key] for one in fixed), 3)
    return told


def spent(session: Any) -> Any:
    """Processor seconds of each host so far."""
    return np.array([host["cpu_seconds"] for host in session.metrics["hosts"]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--joins", nargs="*", default=list(JOINS))
    asked = parser.parse_args()
    found = []
    for trial in trials():
        if trial.name not in asked.joins:
            continue
        tables = trial.tables(trial.rows)
        run(
            trial, {name: table.slice(0, 2_000) for name, table in tables.items()}, None
        )  # compiles
        fixed = [run(trial, tables, round(trial.window / part)) for part in PARTS]
        own = run(trial, tables, None)
        assert {one["results"] for one in fixed} == {own["results"]}
        row: dict[str, Any] = {"join": trial.name, "strategy": trial.strategy, "own": own}
        row["fixed"] = [{key: one[key] for key in one if key != "lengths"} for one in fixed]
        for key in ("rows_per_second", "rows_per_processor_second"):
            row[f"of_best_{key}"] = round(own[key] / max(one[key] for one in fixed), 3)
        row |= settled(own, fixed)
        found.append(row)
        print(json.dumps({key: value for key, value in row.items() if key != "own"}))
        print([length for _, length in own["lengths"]][:: max(len(own["lengths"]) // 12, 1)])
    if asked.out:
        asked.out.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"machine": machine(), "joins": found}, indent=1)
        (asked.out / "segment_length.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
