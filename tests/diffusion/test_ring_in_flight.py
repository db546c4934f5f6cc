"""A ring whose rows move on while blocks are in flight gives what one host gives, whatever happens.

Loads and costs are whatever chance says, so that slices, the length of the ring and its hosts
change at any moment; windows change, hosts stall, join, leave and are lost amid moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given, settings
from hypothesis import strategies as st
from windjoin.clustered import ClusterJoin
from windjoin.diffusion import cluster as clusters
from windjoin.diffusion.cluster import Cluster
from windjoin.diffusion.passing import Passing
from windjoin.diffusion.ring_slices import Spent
from windjoin.diffusion.router import Hop
from windjoin.testing import slow

from tests.compare import assert_same_results
from tests.effort import examples

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.int64(), "x": pa.int64()})
NAMES = ("a", "b", "c")
WINDOWS = {"a": 12, "b": 5, "c": 20}


def query(streams: int, windows: dict[str, int] = WINDOWS) -> wj.Query:
    sides = [wj.stream(name, time="t", window=windows[name]) for name in NAMES[:streams]]
    same = [one["k"] == other["k"] for one, other in pairwise(sides)]
    return wj.join(*sides, on=[*same, sides[0]["x"] < sides[-1]["x"]])


class Played:
    """A session on a ring, and everything that was pushed into it."""

    def __init__(self, chance: np.random.Generator, streams: int, wild: bool) -> None:
        self.chance, self.streams, self.names = chance, streams, NAMES[:streams]
        self.kept: dict[str, list[pa.Table]] = {n: [SCHEMA.empty_table()] for n in self.names}
        self.found: list[Any] = []
        self.most_flying, self.passed = 0, 0
        tuning = wj.Tuning(
            relocation=str(chance.choice(["aggressive", "passive"])),
            slices=str(chance.choice(["rows", "age"])),
            objective=str(chance.choice(["latency", "rate"])),
            in_flight=int(chance.integers(1, 9)),
            ring_length=None if wild else int(chance.integers(1, 5)),
        )
        self.session = query(streams).open(
            dict.fromkeys(self.names, SCHEMA), rows_only=True, lateness=3, strategy="psp",
            hosts=int(chance.integers(2, 6)), segment=int(chance.integers(1, 8)), tuning=tuning,
        )  # fmt: skip

    def push(self, now: int) -> None:
        for name in self.names:
            n = int(self.chance.integers(0, 12))
            times = np.sort(now + self.chance.integers(0, 9, n))
            rows = {
                "t": times,
                "k": self.chance.integers(0, 2, n),
                "x": self.chance.integers(0, 9, n),
            }
            self.kept[name].append(pa.table(rows, schema=SCHEMA))
            self.found.append(self.session.push(name, self.kept[name][-1]))

    def disturb(self) -> None:
        hosts = [one["host"] for one in self.session.metrics["hosts"]]
        live = self.session._live
        assert isinstance(live, ClusterJoin)
        there = live.open_hosts
        match self.chance.choice(["join", "leave", "lose", "stall", "", "", ""]):
            case "join" if len(hosts) < 8:
                self.session.add_host(speed=float(self.chance.choice([1.0, 2.0])))
            case "leave" if len(there) > 1:
                self.session.remove_host(int(self.chance.choice(there)))
            case "lose" if len(there) > 1:
                self.session.remove_host(int(self.chance.choice(there)), lost=True)
            case "stall":
                slow(self.session, host=int(self.chance.choice(there)), by="300us")

    def play(self, steps: int) -> None:
        now = 0
        with self.session:
            for _ in range(steps):
                self.push(now)
                self.disturb()
                now += int(self.chance.choice([5, 9, 9, 60]))
            self.found.append(self.session.close())

    def check(self) -> None:
        tables = {name: pa.concat_tables(parts) for name, parts in self.kept.items()}
        whole = query(self.streams).indices(tables)
        got = [
            row
            for part in self.found
            for row in zip(*(part[n].tolist() for n in self.names), strict=True)
        ]
        expected = Counter(zip(*(whole[n].tolist() for n in self.names), strict=True))
        assert_same_results(got, expected)


def wildly(patch: pytest.MonkeyPatch, chance: np.random.Generator) -> None:
    """Hosts report at every border, and what they report is chance."""

    def measured(*_: object) -> Spent:
        joining, sending, network = 10.0 ** chance.uniform(-7, -1, 3)
        return Spent(joining, sending, network, float(chance.integers(1, 50)))

    patch.setattr(clusters, "REPORT_SECONDS", 0.0)
    patch.setattr(clusters.Spending, "measure", measured)
    patch.setattr(
        clusters.Worker, "busy", lambda self: self.tally.busy + float(chance.exponential(5.0))
    )


@pytest.mark.parametrize("streams", [2, 3])
@settings(deadline=None, max_examples=examples(25))
@given(seed=st.integers(0, 2**32))
def test_a_ring_gives_every_result_once_whatever_happens(streams: int, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        chance = np.random.default_rng(seed)
        wild = bool(chance.integers(2))
        if wild:
            wildly(patch, np.random.default_rng(seed + 1))
        played = Played(chance, streams, wild)
        played.play(10)
    played.check()


def ring_of_slow_hosts(steps: int = 12) -> tuple[Played, int]:
    """Three streams on hosts that are all slow; how many epochs were in flight as rows moved."""
    most = 0
    move = Cluster._move

    def watched(self: Cluster, moves: Any, ticket: Any) -> None:
        nonlocal most
        if moves:
            most = max(most, len(self._flying))
        move(self, moves, ticket)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cluster, "_move", watched)
        played = Played(np.random.default_rng(5), 3, wild=False)
        played.session.close()
        played.session = query(3).open(
            dict.fromkeys(NAMES, SCHEMA), rows_only=True, lateness=3, strategy="psp", hosts=4,
            segment=2, tuning=wj.Tuning(ring_length=4, in_flight=6),
        )  # fmt: skip
        with played.session:
            for host in range(4):
                slow(played.session, host=host, by="1ms")
            for now in range(0, 9 * steps, 9):
                played.push(now)
            played.found.append(played.session.close())
    return played, most


def test_rows_move_on_while_blocks_are_in_flight() -> None:
    played, flying = ring_of_slow_hosts()
    played.check()
    assert flying >= 4, "moves waited for blocks to end"


def unlimited(self: Passing, hop: Hop) -> Hop:
    return hop


def at_once(self: Passing, oldest: int | None) -> list[Any]:
    found, kept = list(self._kept), self._kept
    kept.clear()
    return found


def new_alone(self: Passing, hop: Hop) -> Hop:
    """What was passed on is not void where it came from."""
    limited = Passing.limited_as_it_is(self, hop)  # type: ignore[attr-defined]
    voids = {host: spans[1:] for host, spans in limited.voids.items()}
    return limited._replace(voids=voids)


def old_alone(self: Passing, hop: Hop) -> Hop:
    """What comes later is not void where it goes to."""
    limited = Passing.limited_as_it_is(self, hop)  # type: ignore[attr-defined]
    voids = {host: spans[:1] for host, spans in limited.voids.items()}
    return limited._replace(voids=voids)


@pytest.mark.parametrize(
    ("name", "mutant"),
    [("limited", unlimited), ("released", at_once), ("limited", new_alone), ("limited", old_alone)],
    ids=["no spans", "deleted at once", "no StateEnd", "no StateStart"],
)
def test_without_one_of_its_rules_a_ring_is_wrong(
    monkeypatch: pytest.MonkeyPatch, name: str, mutant: Callable[..., Any]
) -> None:
    monkeypatch.setattr(Passing, "limited_as_it_is", Passing.limited, raising=False)
    monkeypatch.setattr(Passing, name, mutant)
    played, _ = ring_of_slow_hosts(steps=20)
    with pytest.raises(AssertionError, match=r"unexpected|missing"):
        played.check()


def test_the_ring_is_as_long_as_the_cost_model_asks() -> None:
    """Where pairs cost next to nothing messages outweigh them; where they cost much not.

    That they cost much is measured; how little they cost beside messages is for the machine to say
    on a busy day, so it is given.
    """
    lengths = {}
    for name, pause in (("cheap", None), ("dear", "4ms")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(clusters, "REPORT_SECONDS", 0.0)
            if pause is None:
                patch.setattr(clusters.Spending, "measure", lambda *_: Spent(1e-7, 1e-4, 1e-3, 9.0))
            played = Played(np.random.default_rng(3), 2, wild=True)
            played.session.close()
            played.session = query(2).open(
                dict.fromkeys("ab", SCHEMA), rows_only=True, strategy="psp", hosts=4, segment=2,
                tuning=wj.Tuning(objective="latency"),
            )  # fmt: skip
            with played.session as session:
                if pause is not None:
                    for host in range(4):
                        slow(session, host=host, by=pause)
                for now in range(0, 900, 9):
                    played.push(now)
                live = session._live
                assert isinstance(live, ClusterJoin)
                lengths[name] = live.routing.router.describe().details["lengths"]
                played.found.append(session.close())
        played.check()
    assert min(lengths["cheap"]) < 4, lengths
    assert min(lengths["dear"]) == 4, lengths
