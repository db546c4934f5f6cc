"""How long rows wait for a session that sheds, when they come faster than they can be joined.

python -m benchmarks.shedding_delay [--clock cpu|wall] [--kinds ...] [--periods 8] [--out FILE]

After some calm periods rows come at a pace at which an exact session would need 2, 5 and 10 times
the budget.  A push is due when its rows have come, and begins once the one before is over; its
delay is from then until its results are there.  With ``--clock cpu`` time passes as the thread
works, and jumps where there is nothing to do, so that other programs make no difference; with
``wall`` it is the time of the clock, and the machine should be quiet.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import windjoin as wj

from benchmarks.shedding import (
    COLUMNS,
    OVERLOAD_WINDOW_US,
    PUSH_US,
    RATES,
    columns_between,
    lagging,
    overloaded,
    play,
)  # fmt: skip

BUDGET, PERIOD = 0.8, 1.0
CALM_PERIODS, CALM = 3, 0.5  # how much of the budget an exact session needs then
SECONDS = 9  # of the streams, which then begin anew


class CpuClock:
    """Time passes as this thread works, and while it has nothing to do."""

    def __init__(self) -> None:
        self._before, self._begun = 0.0, time.thread_time()

    def now(self) -> float:
        """Seconds."""
        return self._before + time.thread_time() - self._begun

    def stop(self) -> float:
        """What is done from here on takes no time."""
        self._before = self.now()
        self._begun = float("inf")
        return self._before

    def go(self, due: float) -> None:
        """The next work begins when it is due, or when the last is over."""
        self._before, self._begun = max(self._before, due), time.thread_time()


class WallClock:
    """Time as it passes."""

    def __init__(self) -> None:
        self._begun = time.perf_counter()

    def now(self) -> float:
        """Seconds."""
        return time.perf_counter() - self._begun

    def stop(self) -> float:
        """It does not."""
        return self.now()

    def go(self, due: float) -> None:
        """Wait until it is due."""
        if (early := due - self.now()) > 0:
            time.sleep(early)


def turns(made: dict[str, dict[str, Any]], kind: str) -> Iterator[list[tuple[str, Any]]]:
    """Rows of both streams, PUSH_US at a time, over and over, times rising."""
    length = SECONDS * 1_000_000
    cut = [
        [(name, columns_between(columns, kind, begin, begin + PUSH_US))
         for name, columns in made.items()]
        for begin in range(0, length, PUSH_US)
    ]  # fmt: skip
    rounds = 0
    while True:
        for turn in cut:
            yield [(name, later(rows, rounds * length)) for name, rows in turn]
        rounds += 1


def later(rows: Any, ticks: int) -> Any:
    """The same rows some time later."""
    if isinstance(rows, dict):
        return {**rows, "t": rows["t"] + ticks}
    times = rows["t"].to_numpy() + ticks
    return rows.set_column(rows.schema.get_field_index("t"), "t", [times])


def waited(
    kind: str, made: dict[str, dict[str, Any]], core: float, factor: float, periods: int, wall: bool
) -> dict[str, float]:
    """Delays in periods once rows come ``factor`` times too fast, and what was done meanwhile."""
    calm, busy = (CALM * BUDGET / core, factor * BUDGET / core)  # seconds of rows in a second
    clock = WallClock() if wall else CpuClock()
    shed = wj.Shedding(
        budget=BUDGET, adapt_every=f"{PERIOD}s", clock="wall" if wall else clock.now, seed=1
    )
    delays, spent, due, results = [], 0.0, 0.0, 0
    with overloaded(kind).open(rows_only=True, shed=shed) as session:
        for turn in turns(made, kind):
            if due >= (CALM_PERIODS + periods) * PERIOD:
                break
            rush = due >= CALM_PERIODS * PERIOD
            due += PUSH_US / 1e6 / (busy if rush else calm)
            clock.go(due)
            begun = time.thread_time()
            found = sum(len(session.push(name, rows)["a"]) for name, rows in turn)
            took = time.thread_time() - begun
            at = clock.stop()
            if rush:
                delays.append((at - due) / PERIOD)
                spent += took
                results += found
        told = session.metrics["shedding"]
    p50, p99 = np.percentile(delays, [50, 99])
    return {
        "factor": factor, "p50": float(p50), "p99": float(p99), "max": max(delays),
        "pushes": len(delays), "of_budget": spent / (periods * PERIOD) / BUDGET,
        "results": results, "recall": told["recall"], "fraction": told["fraction"],
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the figures as JSON, too."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu")
    parser.add_argument("--kinds", default=",".join(COLUMNS))
    parser.add_argument("--factors", default="2,5,10")
    parser.add_argument("--periods", type=int, default=8)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", wj.SheddingWarning)
    found: dict[str, list[dict[str, float]]] = {}
    for kind in options.kinds.split(","):
        made = lagging(kind, SECONDS, RATES[kind], 5)
        exact = play(kind, made)
        core = exact["cpu"] / exact["seconds"]
        found[kind] = []
        for factor in map(float, options.factors.split(",")):
            one = waited(kind, made, core, factor, options.periods, options.clock == "wall")
            found[kind].append(one)
            print(
                f"{kind} x{factor:g}: delay of {one['pushes']} pushes in periods: p50"
                f" {one['p50']:.3f}, p99 {one['p99']:.3f}, max {one['max']:.3f}; of the budget"
                f" {one['of_budget']:.2f}, recall told {one['recall']:.0%}",
                flush=True,
            )
    if options.out:
        options.out.write_text(json.dumps(found) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    assert OVERLOAD_WINDOW_US < SECONDS * 1_000_000
    raise SystemExit(main())
