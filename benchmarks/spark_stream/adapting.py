"""Slots that become slow, slots that come and go, and a log over many epochs."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import windjoin as wj
import windjoin.spark as wjs
from windjoin.spark.slow_worker import VARIABLE

from benchmarks.spark.record import Line
from benchmarks.spark_stream.epochs import Files, bytes_of, folder, session

SLOTS, BY = 4, 4
FIRST, LAST, EPOCHS = 8, 22, 30  # from which epoch up to which a slot is slow, and all
WITHIN = 5  # epochs in which shares have to follow
PACE = 30  # times as long all slots take, asleep: they are machines of their own, on few processors
ROWS, KEYS = 4_000, 64
SECOND = 1_000_000
SCHEMA = "t timestamp, k long, x double"


def heavy() -> wj.Query:
    """Comparisons that cost enough for slots to be worth it, and a key for groups."""
    a, b = (wj.stream(name, time="t", window="4s") for name in "ab")
    near = wj.udf(lambda x, y: math.sin(x) * math.cos(y) > 0.999, a["x"], b["x"])
    return wj.join(a, b, on=[a["k"] == b["k"], near], select=[a["x"], b["x"].alias("y")])


def light() -> wj.Query:
    """Equal keys alone."""
    a, b = (wj.stream(name, time="t", window="4s") for name in "ab")
    return wj.join(a, b, on=a["k"] == b["k"], select=[a["x"], b["x"].alias("y")])


def files(place: Path, epochs: int, rows: int, keys: int = KEYS) -> Files:
    """A second of event time in each epoch."""
    chance, made = np.random.default_rng(3), Files(place, dict.fromkeys("ab", SCHEMA))
    for epoch in range(epochs):
        for name in "ab":
            times = (1_700_000_000 + epoch) * SECOND + np.sort(chance.integers(0, SECOND, rows))
            columns = {
                "t": pa.array(times, pa.timestamp("us", "UTC")),
                "k": chance.integers(0, keys, rows),
                "x": chance.random(rows) * 10,
            }
            made.write(name, epoch, pa.table(columns))
    return made


def driven(spark: Any, place: Path, query: wj.Query, sink: Any = "noop", **options: Any) -> wjs.Run:
    """All files through `start`."""
    made = Files(place / "in", dict.fromkeys("ab", SCHEMA))
    run = wjs.start(query, made.frames(spark), sink=sink, trigger={"availableNow": True}, **options)
    run.await_termination()
    return run


def slowest(run: wjs.Run) -> list[float]:
    """Seconds of the slot that takes longest, by epoch."""
    return [max(one["seconds"] for one in done.slots) for done in run.history]


def slowed(strategy: str) -> list[Line]:
    """One of four slots takes four times as long for a while: what does an epoch take?

    All slots sleep for most of the time, so that none waits for another's processor, and what
    every epoch of Spark costs is small beside what they take.  The best possible shares have all
    slots done at once: what one slot takes without any slow one, times 4 / (3 + 1/4).
    """
    found: dict[str, list[float]] = {}
    for name, slow, adaptive in (("even", 1, False), ("fixed", BY, False), ("adaptive", BY, True)):
        told = f"all {PACE} 0 {EPOCHS}; 0 {slow} {FIRST} {LAST}"
        spark = session(f"local[{SLOTS}]", **{
            "spark.python.daemon.module": "windjoin.spark.slow_worker",
            f"spark.executorEnv.{VARIABLE}": told})  # fmt: skip
        with folder() as place:
            files(place / "in", EPOCHS, ROWS)
            segment = {} if strategy == "groups" else {"segment": "50ms"}
            run = driven(spark, place, heavy(), checkpoint=str(place / "log"), slots=SLOTS,
                         strategy=strategy, adaptive=adaptive, **segment)  # fmt: skip
            found[name] = slowest(run)
        spark.stop()
    after = slice(FIRST + WITHIN, LAST)
    best = statistics.median(found["even"][after]) * SLOTS / (SLOTS - 1 + 1 / BY)
    own, fixed = (statistics.median(found[name][after]) for name in ("adaptive", "fixed"))
    detail = (
        f"slowest slot, median: {own:.3f} s, {fixed:.3f} with fixed shares, {best:.3f} with the"
        f" best; by epoch {' '.join(f'{s:.2f}' for s in found['adaptive'])}"
    )
    what = f"a slot slowed {BY} times, {strategy}"
    return [
        Line(f"{what}: against the best shares after {WITHIN} epochs", own / best, 1.5,
             at_least=False, detail=detail),
        Line(f"{what}: fixed shares against these", fixed / own, 1.0, detail=detail),
    ]  # fmt: skip


class Steps:
    """A sink that counts results, and changes the number of slots before some epochs."""

    def __init__(self, steps: dict[int, int]) -> None:
        self.steps, self.results = steps, 0
        self.run: wjs.Run | None = None

    def __call__(self, frame: Any, epoch: int) -> None:
        self.results += frame.count()
        if epoch + 1 in self.steps and self.run is not None:
            self.run.add_slots(self.steps[epoch + 1])


def changed(spark: Any) -> list[Line]:
    """From 2 slots to 4 and back, against a run without changes."""
    found = []
    with folder() as place:
        files(place / "in", EPOCHS, 20_000, keys=40_000)
        for steps in (Steps({}), Steps({10: 2, 20: -2})):
            made = Files(place / "in", dict.fromkeys("ab", SCHEMA))
            checkpoint = str(place / f"log{len(found)}")
            steps.run = wjs.start(
                light(), made.frames(spark), sink=steps, slots=2, checkpoint=checkpoint,
                trigger={"availableNow": True},
            )  # fmt: skip
            steps.run.await_termination()
            found.append((steps.results, steps.run))
    (right, _), (results, run) = found
    if results != right or not right:
        raise SystemExit(f"{results} results with changes of slots, {right} without")
    seconds = [done.seconds for done in run.history]
    usual = statistics.median(seconds[3:])
    most = max(seconds[epoch] for epoch in (10, 20))
    counts = [len(done.slots) for done in run.history]
    detail = f"{usual:.3f} s in the median epoch; slots {counts[9]}, {counts[10]}, {counts[20]}"
    line = Line("2 slots to 4 and back: the epochs of the changes against the median", most / usual,
                2, at_least=False, detail=f"{detail}; {right} results in both runs")  # fmt: skip
    return [line]


def log_bytes(spark: Any, epochs: int = 1_000) -> list[Line]:
    """Bytes that an epoch writes against those of its rows, and the log over many epochs."""
    query, lines = light(), []
    with folder() as place:
        files(place / "in", 16, 50_000, keys=100_000)
        run = driven(spark, place, query, checkpoint=str(place / "log"), slots=2)
        last = sorted((place / "log" / "windjoin").glob("*/0*"))[-3]
        written, routed = bytes_of(last), 24 * 100_000  # time, key and a number of each row
        detail = f"{written} bytes for {routed} of rows, {len(run.history)} epochs"
        lines.append(Line("bytes in the log, against those of the rows that came", written / routed,
                          1.2, at_least=False, detail=detail))  # fmt: skip
    with folder() as place:
        files(place / "in", epochs, 50, keys=100)
        sizes: list[int] = []

        def sink(frame: Any, epoch: int) -> None:
            frame.write.format("noop").mode("overwrite").save()
            sizes.append(bytes_of(place / "log" / "windjoin"))

        run = driven(spark, place, query, sink, checkpoint=str(place / "log"), slots=2)
        some = min(100, epochs // 4)
        parts = (slice(20, 20 + some), slice(-some, None))
        early, late = (statistics.median(sizes[part]) for part in parts)
        seconds = [done.seconds for done in run.history]
        times = [statistics.median(seconds[part]) for part in parts]
        detail = f"{early:.0f} bytes after 20 to {20 + some} epochs, {late:.0f} after {epochs}"
        lines.append(Line(f"bytes of the log over {epochs} epochs", late / early, 1.05,
                          at_least=False, detail=detail))  # fmt: skip
        detail = f"{times[0]:.3f} s an epoch, {times[1]:.3f} at the end"
        lines.append(Line(f"seconds of an epoch over {epochs} epochs", times[1] / times[0], 1.2,
                          at_least=False, detail=detail))  # fmt: skip
    return lines
