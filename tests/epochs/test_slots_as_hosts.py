"""Slots as hosts of routers: whatever these say, each combination is found exactly once."""

from __future__ import annotations

import itertools
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given, settings
from hypothesis import strategies as st
from windjoin.epochs.deciding import decide, loads_of
from windjoin.epochs.following import follow
from windjoin.epochs.manifest import Manifest
from windjoin.epochs.placing import NOBODY, HopPath, Placed, UnitSlots, copies_for
from windjoin.epochs.routing import Routes

from tests.api import build, schemas, table_rows
from tests.cases import Case
from tests.compare import assert_same_results
from tests.effort import examples
from tests.epochs.cluster import Cluster
from tests.epochs.test_epochs import borders, not_late, ticks
from tests.oracle import TIME, join
from tests.strategies import cases

TRAVELLING = ("ctr", "psp")


def any_slots(chance: random.Random, slots: int) -> UnitSlots:
    some = [*range(slots), NOBODY]
    return UnitSlots(
        chance.randrange(-30, 60), tuple(chance.choices(some, k=chance.randrange(1, 40)))
    )


def any_order(chance: random.Random, stream: int, streams: int) -> tuple[int, ...]:
    others = [s for s in range(streams) if s != stream]
    chance.shuffle(others)
    return (stream, *others)


def any_placed(chance: random.Random, streams: int, slots: int) -> Placed:
    """Writers, orders and readers for no reason."""
    every = range(streams)
    orders = [any_order(chance, s, streams) for s in every]
    orders += [any_order(chance, chance.choice(every), streams) for _ in range(2)]
    paths = []
    for stream in every:
        fitting = [n for n, order in enumerate(orders) if order[0] == stream]
        for unit in sorted(chance.sample(range(-30, 60), chance.randrange(60))):
            readers = tuple(any_slots(chance, slots) for _ in range(streams - 1))
            paths.append(HopPath(stream, unit, chance.choice(fitting), readers))
    written = tuple(any_slots(chance, slots) for _ in every)
    return Placed(written, copies_for(orders, paths), tuple(orders), tuple(paths))


def anything(chance: random.Random) -> Any:
    """A router that places segments at random."""

    def router(*told: Any) -> tuple[Routes, Any]:
        job, routes, slots = told[0], told[3], told[4]
        placed = any_placed(chance, job.streams, slots)
        owners = routes.owners.from_unit(chance.randrange(-30, 60), range(slots))
        return Routes(routes.units, owners, chance.choice([None, placed, placed])), None

    return router


def at_random(chance: random.Random, made: Cluster, manifest: Manifest) -> None:
    """Slots are said to have been busy, or idle, for no reason."""
    folder = Path(made.job.log.path(manifest.folder))
    for path in folder.glob("*.load"):
        busy = chance.choice([0.0, 0.1, 0.5, 0.9, 3.0])
        path.write_text(json.dumps(json.loads(path.read_text()) | {"seconds": busy}))


@settings(max_examples=examples(20))
@given(data=st.data(), case=cases(2, 4), seed=st.integers(0, 2**32), small=st.booleans())
def test_each_combination_is_found_once_wherever_segments_are_placed(
    data: Any, case: Case, seed: int, small: bool
) -> None:
    query, draw, chance = build(case), data.draw, random.Random(seed)
    tables, epochs = case.tables(), draw(st.integers(2, 8))
    shares = st.lists(st.floats(0, 1), min_size=epochs - 1, max_size=epochs - 1)
    ends = borders(case, [draw(shares) for _ in case.streams])
    lateness = draw(st.sampled_from([0, 2, 30, 10**12]))
    given_ = {"lateness": ticks(case, lateness), "small": small}
    given_["memory"] = draw(st.sampled_from([None, None, 500]))
    if draw(st.booleans()):
        number = case.streams[0].kinds[TIME].family == "number"
        given_["segment"] = ticks(case, draw(st.sampled_from([1, 3, 20]))) if number else "1s"
    found: list[pa.RecordBatch] = []
    with tempfile.TemporaryDirectory() as root:
        made = Cluster(query, schemas(case), root, seed)
        for epoch in range(epochs):
            if epoch == 0 or chance.random() < 0.3:
                # a segment's length is not changed without being said
                kind = chance.choice(TRAVELLING)
                made.start(run=f"run{epoch}", slots=chance.randint(1, 5), strategy=kind, **given_)
            firsts = [0 if not epoch else stops[epoch - 1] for stops in ends]
            rows = {
                name: tables[name].slice(a, stops[epoch] - a)
                for name, a, stops in zip(case.names, firsts, ends, strict=True)
            }
            made.clock = float(epoch)
            router = anything(chance) if chance.random() < 0.4 else follow
            again = [slot for slot in range(5) if chance.random() < 0.2]
            if chance.random() < 0.2:  # broken off, and done again by another run
                made.epoch(epoch, rows, until=chance.randint(0, 1), router=router)
                made.run += "again"
            found += made.epoch(epoch, rows, router=router, again=again)
            at_random(chance, made, decide(made.job, epoch, made.run))
        result = pa.Table.from_batches(found, made.job.plan.bound.schema)
    expected = not_late(case, ends, lateness)
    assert_same_results(table_rows(case.names, result), join(case.query, expected.rows()))


SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("n", pa.int64())])


def three_way(window: int) -> Any:
    a, b, c = (wj.stream(name, time="t", window=window) for name in "abc")
    columns = [stream["n"] for stream in (a, b, c)]
    return wj.join(a, b, c, on=[a["k"] == b["k"], b["k"] == c["k"]], select=columns)


def dear(*_: Any) -> dict[str, float]:
    """Joining is what takes time, so a ring is as long as can be."""
    return {"cpu": 10.0, "joining": 9.9}


def driven(
    made: Cluster,
    epochs: int,
    router: Any,
    *,
    told: Any = None,
    slots: dict[int, int] | None = None,
) -> tuple[list[Manifest], list[int]]:
    """Epochs of 100 ticks, checked against a batch join; how much slots took in each.

    ``told``: what a slot is said to have been measured to take in an epoch.
    """
    chance, names = np.random.default_rng(0), "abc"
    every: dict[str, list[pa.Table]] = {name: [] for name in names}
    found: list[pa.RecordBatch] = []
    manifests, taken = [], []
    for epoch in range(epochs):
        made.clock = float(epoch)
        if slots and epoch in slots:
            made.start(run=f"run{epoch}", slots=slots[epoch], strategy=made.job.units.kind)
        rows = {}
        for name in names:
            times = np.sort(chance.integers(100 * epoch, 100 * epoch + 100, 60)) + 5000
            columns = [times, chance.integers(0, 40, 60), np.arange(60) + 60 * epoch]
            rows[name] = pa.Table.from_arrays([pa.array(c) for c in columns], schema=SCHEMA)
            every[name].append(rows[name])
        found += made.epoch(epoch, rows, router=router)
        manifests.append(decide(made.job, epoch, made.run))
        loads = loads_of(made.job.log, manifests[-1])
        taken.append(sum(load["taken"] for load in loads))
        for load in loads if told else ():
            for stage in range(manifests[-1].stages):
                name = f"{load['slot']}-{stage}.load"
                path = Path(made.job.log.path(manifests[-1].folder, name))
                said = dict.fromkeys(("cpu", "joining", "seconds"), 0.0)
                if not stage:  # and nothing in the others, as this machine may be busy
                    said |= told(manifests[-1], load["slot"])
                path.write_text(json.dumps(json.loads(path.read_text()) | said))
    expected = made.query.run({name: pa.concat_tables(tables) for name, tables in every.items()})
    both = [pa.Table.from_batches(found), expected]
    first, second = (sorted(zip(*table.to_pydict().values(), strict=True)) for table in both)
    assert first == second
    return manifests, taken


@pytest.mark.parametrize("kind", TRAVELLING)
def test_slots_come_and_go_while_routers_place_segments(tmp_path: Path, kind: str) -> None:
    made = Cluster(three_way(500), dict.fromkeys("abc", SCHEMA), str(tmp_path), 1)
    made.start(slots=2, strategy=kind)
    manifests, _ = driven(made, 14, follow, slots={5: 4, 10: 3}, told=dear)
    assert [m.own.placed is not None for m in manifests] == [False] + [True] * 13
    for manifest in manifests[6:]:
        placed = manifest.own.placed
        assert placed is not None
        written = {slot for own in placed.written for slot in own.slots}
        assert written <= set(range(manifest.slots))
        assert len(written) > 1
    restored = Manifest.heard(json.loads(manifests[-1].as_bytes()))
    assert restored.every == manifests[-1].every


def test_covers_send_partial_results_to_fewer_slots(tmp_path: Path) -> None:
    taken = []
    for router in (None, follow):
        root = tmp_path / str(len(taken))
        made = Cluster(three_way(500), dict.fromkeys("abc", SCHEMA), str(root), 1)
        made.start(slots=4, strategy="ctr")
        taken.append(sum(driven(made, 12, router)[1][6:]))
    assert taken[1] < 0.8 * taken[0]


def test_new_rows_enter_a_ring_at_its_head_and_age(tmp_path: Path) -> None:
    """A slice is a stretch of time, read from files of the slot that was the head."""
    made = Cluster(three_way(800), dict.fromkeys("abc", SCHEMA), str(tmp_path), 1)
    made.start(slots=4, strategy="psp")
    manifests, _ = driven(made, 14, follow, told=dear)
    last = manifests[-1]
    assert last.own.placed is not None
    for own in last.own.placed.written:
        borders = [a != b for a, b in itertools.pairwise(own.slots)]
        assert sum(borders) == 3  # four stretches
    length = last.own.units.length
    moved = 0
    for entry in last.window:
        units = np.arange(entry.low[0] // length, entry.high[0] // length + 1)
        now, then = last.own.writers(0, units), last.of(entry).writers(0, units)
        moved += int((now != then).sum())
    assert moved > 0


def test_a_slow_slot_has_a_short_slice(tmp_path: Path) -> None:
    def share(manifest: Manifest, slot: int) -> float:
        latest = max(m for m in manifest.newest if m is not None) if manifest.epoch else 0
        length = manifest.own.units.length
        units = np.arange((latest - 800) // length, latest // length)
        return float((manifest.own.writers(0, units) == slot).mean())

    def busy(manifest: Manifest, slot: int) -> float:
        return share(manifest, slot) * (4 if slot == 0 else 1)

    made = Cluster(three_way(800), dict.fromkeys("abc", SCHEMA), str(tmp_path), 1)
    made.start(slots=3, strategy="psp")

    def told(manifest: Manifest, slot: int) -> dict[str, float]:
        return dear() | {"seconds": busy(manifest, slot)}

    manifests, _ = driven(made, 20, follow, told=told)
    loads = [[busy(manifest, slot) for slot in range(3)] for manifest in manifests[14:]]
    assert max(map(max, loads)) <= 1.5 * 4 / 9


def test_a_ring_is_as_long_as_its_cost_model_says(tmp_path: Path) -> None:
    """Where rows cost much to send and little to join, one slot has the window; and back."""

    def told(manifest: Manifest, slot: int) -> dict[str, float]:
        return {"cpu": 10.0, "joining": 0.01 if 6 <= manifest.epoch < 18 else 9.9}

    made = Cluster(three_way(400), dict.fromkeys("abc", SCHEMA), str(tmp_path), 1)
    made.start(slots=3, strategy="psp")
    manifests, _ = driven(made, 36, follow, told=told)
    lengths = [manifest.state["router"]["lengths"][0] for manifest in manifests[1:]]
    assert min(lengths[5]) >= 3
    assert lengths[17] == [1, 1, 1]
    assert min(lengths[-1]) >= 3
    short, long = manifests[18].own.placed, manifests[-1].own.placed
    assert short is not None
    assert long is not None
    # the end of the ring has what is older than a window, which only late rows can meet
    assert all(len(set(own.slots[-50:])) == 1 for own in short.written)
    assert all(len(set(own.slots)) == 3 for own in long.written)


def test_covers_take_segments_with_which_most_is_joined(tmp_path: Path) -> None:
    """Lengths are tried, each once the window has no others; a chosen one stays."""
    best = 100

    def told(manifest: Manifest, slot: int) -> dict[str, float]:
        length = manifest.own.units.length
        assert length is not None
        return {"seconds": 0.6 + 0.1 * abs(np.log2(length / best))}

    lengths = {}
    for segment, epochs in ((None, 60), (25, 12)):
        made = Cluster(
            three_way(200), dict.fromkeys("abc", SCHEMA), str(tmp_path / f"s{segment}"), 1
        )
        made.start(slots=2, strategy="ctr", segment=segment)
        manifests, _ = driven(made, epochs, follow, told=told)
        lengths[segment] = [manifest.own.units.length for manifest in manifests]
    tried = lengths[None]
    assert min(tried[:16]) <= 30  # a quarter of an epoch on two slots, as long as nothing is known
    assert 70 <= tried[-1] <= 150
    assert tried[-1] == tried[-8]  # settled
    assert set(lengths[25]) == {25}
