"""CPU seconds that `windjoin.plan` predicts over those measured, of pushes and of whole tables.

    python -m benchmarks.plan_costs --out benchmarks/results/plan_costs

Row numbers come out.  Pushes of 1024 rows take turns; they are measured once the windows are full.
The least thread time of the rounds counts.  Run ``windjoin doctor --calibrate`` first.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import windjoin as wj
from windjoin.unit_costs import costs_file

from benchmarks.measure import headline, keep, load_now, machine
from benchmarks.peers import letters
from benchmarks.queries import conditions
from benchmarks.workloads import WORKLOADS, Workload

NAMES = ("W1", "W2", "W3", "W4", "W5", "W6", "W7")
BATCH_ROWS = {"W6": 64, "W7": 64}  # else 1024; fewer where a window has few rows
SECOND = 1_000_000  # of the workloads' times
MOST_ROWS = 400_000  # of a stream
# so often the rows of a workload of few windows come, one stretch of time after the other
STRETCHES = {"W3": 3, "W4": 3, "W6": 4}
NANOSECONDS = 1_500_000_000  # for the pushes of a round, at most


@dataclass(frozen=True, slots=True)
class Line:
    """One workload in one way."""

    workload: str
    way: str
    predicted: float  # nanoseconds a row
    measured: float
    rate_predicted: float  # results a second of the streams
    rate_measured: float

    @property
    def ratio(self) -> float:
        """Predicted over measured."""
        return self.predicted / self.measured


def numbered(workload: Workload) -> wj.Query:
    """The query of a workload with row numbers as its results."""
    streams = [wj.stream(n, time="ts", window=workload.window) for n in letters(workload.streams)]
    on = conditions(workload.kind, streams, workload.limit)
    return wj.join(*streams, on=on, select=[one["i"] for one in streams])


def pushed(
    query: wj.Query, tables: dict[str, pa.Table], size: int, full: int
) -> tuple[float, int, int, int]:
    """Nanoseconds, rows of each stream and results once windows are full, and ticks gone by."""
    rows = min(table.num_rows for table in tables.values())
    first = next(iter(tables.values()))["ts"]
    spent = results = 0
    with query.open(schemas={name: table.schema for name, table in tables.items()}) as session:
        begun = None
        for at in range(0, rows - size, size):
            parts = [(name, table.slice(at, size)) for name, table in tables.items()]
            if begun is None and first[at].as_py() >= full:
                begun, spent, results = at, 0, 0
                gc.collect()
            before = time.thread_time_ns()
            for name, part in parts:
                results += session.push(name, part).num_rows
            spent += time.thread_time_ns() - before
            if begun is not None and spent > NANOSECONDS:
                break
    start = begun or 0
    stop = at + size
    return spent, stop - start, results, first[stop - 1].as_py() - first[start].as_py()


def stretched(table: pa.Table, times: int) -> pa.Table:
    """The rows of a table again and again, each time later by all the time that they span."""
    if times == 1:
        return table
    at, span = table.column_names.index("ts"), table["ts"][-1].as_py() - table["ts"][0].as_py() + 1
    parts = [table.set_column(at, "ts", pc.add(table["ts"], n * span)) for n in range(times)]
    return pa.concat_tables(parts).combine_chunks()


def measure(name: str, rounds: int) -> list[Line]:
    """Predict and measure one workload both ways."""
    workload = WORKLOADS[name]
    query, names = numbered(workload), letters(workload.streams)
    tables = [stretched(table, STRETCHES.get(name, 1)) for table in workload.tables()]
    whole = {n: t.slice(0, MOST_ROWS) for n, t in zip(names, tables, strict=True)}
    ticks = max(t["ts"][-1].as_py() for t in whole.values()) - min(
        t["ts"][0].as_py() for t in whole.values()
    )
    seconds = ticks / SECOND
    # whole streams of integers: their unit of time is a tick
    rates = {n: t.num_rows / ticks for n, t in whole.items()}
    size = BATCH_ROWS.get(name, 1024)
    plan = wj.plan(query, rates=rates, statistics=whole, batch_rows=size)
    rows = sum(table.num_rows for table in whole.values())
    full = min(workload.window, ticks // 2)
    runs = [pushed(query, whole, size, full) for _ in range(rounds)]
    spent, count, results, went = min(runs, key=lambda run: run[0] / run[1])
    live = Line(
        name, "pushes", plan.cost * went * 1e9 / (count * len(names)), spent / (count * len(names)),
        plan.output_rate / plan.completeness * SECOND, results / went * SECOND,
    )  # fmt: skip
    least, found = best(rounds, lambda: query.run(whole, threads=1).num_rows)
    batch = Line(
        name, "tables", plan.batch.cost * ticks * 1e9 / rows, least / rows,
        plan.output_rate / plan.completeness * SECOND, found / seconds,
    )  # fmt: skip
    return [live, batch]


def best(rounds: int, run: Callable[[], Any]) -> tuple[float, Any]:
    """The least thread time, in nanoseconds, and the answer."""
    least = float("inf")
    for _ in range(rounds + 1):
        gc.collect()
        before = time.thread_time_ns()
        answer = run()
        least = min(least, time.thread_time_ns() - before)
    return least, answer


def markdown(before: dict[str, Any], lines: list[Line]) -> str:
    """Write the table."""
    source = "measured on this machine" if costs_file().exists() else "shipped"
    text = [
        headline(before), f"Unit costs: {source}.", "",
        "| workload | rows come as | ns a row, predicted | measured | ratio"
        " | results/s, predicted | measured |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    text += [
        f"| {x.workload} | {x.way} | {x.predicted:,.0f} | {x.measured:,.0f} | {x.ratio:.2f}"
        f" | {x.rate_predicted:,.0f} | {x.rate_measured:,.0f} |"
        for x in lines
    ]
    return "\n".join([*text, ""])


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan_costs", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    chosen = parser.parse_args()
    before = machine()
    lines = [line for name in chosen.names or NAMES for line in measure(name, chosen.rounds)]
    before["load_after"] = load_now()
    keep(chosen.out, "plan_costs", before, markdown(before, lines), [asdict(x) for x in lines])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
