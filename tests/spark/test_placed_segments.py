"""Segments that routers place on slots between epochs, on Spark: covers, copies and slices."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
import windjoin.spark as wjs
from windjoin.epochs import diffusing, lengthening
from windjoin.epochs.deciding import decide
from windjoin.epochs.manifest import Manifest

from tests.spark import MARKS
from tests.spark.queries import rows_of
from tests.spark.test_stream import Sources

pytestmark = MARKS
NAMES, EPOCHS, ROWS, SPAN = "abc", 10, 60, 100
GROWS, SHRINKS = 4, 7  # epochs with another number of slots from there on
STEPS = {GROWS: 2, SHRINKS: -1}
TRAVELLING = ["ctr", "psp"]


def query() -> wj.Query:
    a, b, c = (wj.stream(name, time="t", window=5 * SPAN) for name in NAMES)
    on = [a["k"] == b["k"], b["k"] == c["k"]]
    return wj.join(a, b, c, on=on, select=[a["n"], b["n"], c["n"]])


def rows(seed: int) -> pa.Table:
    chance = np.random.default_rng(seed)
    times = [
        np.sort(chance.integers(SPAN * epoch, SPAN * (epoch + 1), ROWS)) for epoch in range(EPOCHS)
    ]
    whole = np.concatenate(times)
    return pa.table(
        {"t": whole, "k": chance.integers(0, 40, len(whole)), "n": np.arange(len(whole))}
    )


class Sink:
    """Keeps results and what was decided, and changes the number of slots."""

    def __init__(
        self, end: int | None = None, steps: Mapping[int, int] = MappingProxyType(STEPS)
    ) -> None:
        self.found: Counter[Any] = Counter()
        self.decided: list[Manifest] = []
        self.end, self.steps = end, steps
        self.run: wjs.Run | None = None

    def __call__(self, frame: Any, epoch: int) -> None:
        assert self.run is not None
        own = rows_of(frame)
        if epoch == self.end:
            raise RuntimeError("the driver ends here")
        self.found += own
        self.decided.append(decide(self.run.job, epoch, self.run._run))
        if epoch + 1 in self.steps:
            self.run.add_slots(self.steps[epoch + 1])


def driven(sources: Sources, folder: Path, kind: str, sink: Sink, slots: int) -> None:
    options = {"checkpoint": str(folder / "checkpoint"), "strategy": kind, "slots": slots}
    sink.run = wjs.start(query(), sources.frames(), sink=sink, **options)
    try:
        if sink.end is None:
            sink.run.query.processAllAvailable()
        else:
            with pytest.raises(RuntimeError, match="the driver ends here"):
                sink.run.await_termination(300)
    finally:
        sink.run.stop()


@pytest.mark.parametrize("kind", TRAVELLING)
def test_slots_come_and_go_while_segments_are_placed(spark: Any, tmp_path: Path, kind: str) -> None:
    sources = Sources(spark, tmp_path, {name: rows(seed) for seed, name in enumerate(NAMES)})
    for epoch in range(EPOCHS):
        sources.add(epoch, epoch / EPOCHS, (epoch + 1) / EPOCHS)
    first, second = Sink(end=6), Sink()
    driven(sources, tmp_path, kind, first, 2)  # epoch 6 is done, and done again after a start
    driven(sources, tmp_path, kind, second, 4)
    assert first.found + second.found == rows_of(query().run(sources.tables))
    manifests = first.decided + second.decided
    assert [m.epoch for m in manifests] == list(range(EPOCHS))
    assert [m.slots for m in manifests] == [2] * GROWS + [4] * (SHRINKS - GROWS) + [3] * (
        EPOCHS - SHRINKS
    )
    every = [m.own.placed for m in manifests[1:]]
    placed = [one for one in every if one is not None]
    assert len(placed) == len(every)
    written = [{slot for own in one.written for slot in own.slots} for one in placed]
    assert all(
        slots <= set(range(m.slots)) for slots, m in zip(written, manifests[1:], strict=True)
    )
    # a ring becomes shorter once it is known that few rows are to be joined
    assert all(len(slots) > 1 for slots in (written if kind == "ctr" else written[:2]))
    assert len({os.path.basename(m.run) for m in manifests}) == 2
    if kind == "ctr":
        assert any(one.copies for one in placed)  # first hops read them elsewhere
    else:
        assert any(moved(before, after) for before, after in pairwise(manifests[1:]))


def moved(before: Manifest, after: Manifest) -> bool:
    """Whether other slots read a part of the window now."""
    length = before.own.units.length
    assert length is not None
    lows = [low for entry in after.window for low in entry.low if low is not None]
    units = np.arange(min(lows) // length, SPAN * before.epoch // length)
    return bool((before.own.writers(0, units) != after.own.writers(0, units)).any())


def test_a_ring_of_few_rows_comes_to_be_one_slot(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where joining is measured to take next to nothing beside sending."""
    told = diffusing._spent

    def cheap(before: Any, report: Any) -> Any:
        measured = told(before, report)
        return measured and measured._replace(joining=measured.sending / 100)

    monkeypatch.setattr(diffusing, "_spent", cheap)
    sources = Sources(spark, tmp_path, {name: rows(seed) for seed, name in enumerate(NAMES)})
    for epoch in range(EPOCHS):
        sources.add(epoch, epoch / EPOCHS, (epoch + 1) / EPOCHS)
    sink = Sink(steps={})
    driven(sources, tmp_path, "psp", sink, 3)
    assert sink.found == rows_of(query().run(sources.tables))
    spent = [m.state["spent"] for m in sink.decided[1:]]
    assert all(one is not None and one[0] > 0 and one[1] > 0 for one in spent)
    lengths = [m.state["router"]["lengths"][0] for m in sink.decided[1:]]
    assert min(lengths[0]) >= 3
    assert lengths[-1] == [1, 1, 1]


def test_covers_look_for_a_length(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On slots that are never busy, so the least that is busy enough is nothing here."""
    monkeypatch.setattr(lengthening, "BUSY", 0.0)
    sources = Sources(spark, tmp_path, {name: rows(seed) for seed, name in enumerate(NAMES)})
    for epoch in range(EPOCHS):
        sources.add(epoch, epoch / EPOCHS, (epoch + 1) / EPOCHS)
    sink = Sink(steps={})
    driven(sources, tmp_path, "ctr", sink, 2)
    assert sink.found == rows_of(query().run(sources.tables))
    told = [m.state["length"] for m in sink.decided[1:]]
    judged = [one["climber"] for one in told if one is not None and one["climber"] is not None]
    assert judged
    assert judged[-1]["length"] == sink.decided[-1].own.units.length
