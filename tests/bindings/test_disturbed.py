"""All that can change on hosts at once: windows, hosts, loads, plans; results are by definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import windjoin as wj
from hypothesis import given, settings
from hypothesis import strategies as st
from windjoin import revising
from windjoin.diffusion import cluster as clusters
from windjoin.testing import slow

from tests.bindings.test_resizing import SCHEMAS, Change, expected, query
from tests.compare import assert_same_results

OWN: dict[str, list[dict[str, Any]]] = {  # settings of a strategy
    "ctr": [{"copies": 1}, {"copies": 3, "warm_up_copies": 2}],
    "psp": [{"relocation": "passive"}, {"relocation": "aggressive", "ring_length": 2}],
    "atr": [{"order": "selectivity"}, {"master": "c"}],
}


def settings_of(strategy: str, chance: np.random.Generator) -> wj.Tuning:
    own = [{}, *OWN.get(strategy, [])]
    in_flight = int(chance.integers(1, 5)) if chance.random() < 0.5 else None
    return wj.Tuning(in_flight=in_flight, **own[int(chance.integers(len(own)))])


def measured_wildly(patch: pytest.MonkeyPatch, chance: np.random.Generator) -> None:
    """Hosts report at every border, whatever comes to their minds; plans are looked at often."""
    patch.setattr(clusters, "REPORT_SECONDS", 0.0)
    patch.setattr(
        clusters.Worker, "busy", lambda self: self.tally.busy + float(chance.exponential(5.0))
    )
    patch.setattr(revising, "FIRST_LOOK", 20)
    patch.setattr(revising, "LEAST_ROWS", 1)
    patch.setattr(revising, "next_look", lambda rows: rows + 15)


class Disturbed:
    """A session whose hosts come, go, are lost and stall while its windows change."""

    def __init__(self, chance: np.random.Generator, session: Any, lateness: int) -> None:
        self.chance, self.session, self.lateness = chance, session, lateness
        self.rows: dict[str, list[tuple[int, int]]] = {name: [] for name in "abc"}
        self.changes: dict[str, list[Change]] = {name: [] for name in "abc"}
        self.got: list[tuple[int, ...]] = []
        self.stalled: list[Any] = []
        self.newest = 0

    def take(self, found: Any) -> None:
        self.got.extend(zip(*(found[name].tolist() for name in "abc"), strict=True))

    def resize(self) -> None:
        name = "abc"[int(self.chance.integers(3))]
        last = max([self.newest + 1, *(at for at, _ in self.changes[name])])
        at, length = last + int(self.chance.integers(0, 9)), int(self.chance.choice([0, 1, 4, 25]))
        self.session.set_window(name, length, at=at)
        self.changes[name].append((at, length))

    def push(self, name: str, now: int) -> None:
        n = int(self.chance.integers(0, 4))
        times = np.sort(now + self.chance.integers(0, 4, n))
        keys = self.chance.integers(0, 2, n)
        mark = max((t for t, _ in self.rows[name]), default=-99) - self.lateness
        self.rows[name] += [  # late rows have a number, and join nothing
            (t, k if t >= mark else -1 - len(self.rows[name]))
            for t, k in zip(times.tolist(), keys.tolist(), strict=True)
        ]
        self.newest = max([self.newest, *times.tolist()])
        self.take(self.session.push(name, {"t": times, "k": keys}))

    def disturb(self) -> None:
        there = self.session.hosts
        one = int(self.chance.choice(there))
        match self.chance.choice(["join", "leave", "lose", "stall", "go on", *[""] * 10]):
            case "join" if len(there) < 6:
                self.session.add_host(2.0)
            case "leave" if len(there) > 1:
                self.session.remove_host(one)
            case "lose" if len(there) > 1:
                self.session.remove_host(one, lost=True)
            case "stall":
                self.stalled.append(slow(self.session, host=one, by="300us"))
            case "go on" if self.stalled:
                self.stalled.pop().end()

    def play(self, steps: int) -> None:
        now = 0
        for _ in range(steps):
            if self.chance.random() < 0.4:
                self.resize()
            for name in "abc":
                self.push(name, now)
                self.disturb()
            now += int(self.chance.choice([3, 4, 5, 20, 300]))
        self.take(self.session.close())


@pytest.mark.parametrize("strategy", ["atr", "ctr", "psp", "groups", "auto"])
@settings(deadline=None, max_examples=6)
@given(seed=st.integers(0, 2**32), lateness=st.sampled_from([0, 3]), wild=st.booleans())
def test_whatever_happens_to_hosts_results_are_those_of_the_definition(
    strategy: str, seed: int, lateness: int, wild: bool
) -> None:
    chance = np.random.default_rng(seed)
    options: dict[str, Any] = {
        "hosts": int(chance.integers(2, 5)),
        "strategy": strategy,
        "ordered": bool(chance.integers(2)),
    }
    if strategy != "auto":
        options["tuning"] = settings_of(strategy, chance)
        options["segment"] = [None, 1, 3, 9][int(chance.integers(4))]
    with pytest.MonkeyPatch.context() as patch:
        if wild:
            measured_wildly(patch, np.random.default_rng(seed + 1))
        with query().open(
            SCHEMAS, lateness=lateness, rows_only=True, on_late="keep", **options
        ) as session:
            played = Disturbed(chance, session, lateness)
            played.play(12)
    assert_same_results(played.got, expected(played.rows, played.changes))
