"""Shedding with one rule taken out: tests of what sessions give must notice.

Each mutant is a way in which shedding could be wrong while all results are still true.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import windjoin as wj
from windjoin.kernels.shedding import control
from windjoin.kernels.shedding.control import Controller
from windjoin.kernels.shedding.learned import AgeWindows
from windjoin.kernels.shedding.rate import Rate
from windjoin.kernels.shedding.recall import Sums
from windjoin.kernels.spec import F64

from tests.shedding_streams import by_hash, lagging, play, pushes, scanned

WINDOW = 10_000
pytestmark = pytest.mark.filterwarnings("ignore::windjoin.SheddingWarning")


def shedding(per_s: float, **options: Any) -> wj.Shedding:
    return wj.Shedding(comparisons_per_s=per_s, clock="event", **options)


def finds_a_shift_that_moved() -> bool:
    first, then = lagging(60, 40, 2.0), lagging(60, 40, 8.0)
    streams = {
        name: {key: np.concatenate((first[name][key][:1000], then[name][key][1000:]))
               for key in ("t", "x")}
        for name in "ab"
    }  # fmt: skip
    run = play(scanned(), streams, 500, shed=shedding(3_000))
    late = {pair for pair in by_hash(streams, WINDOW) if streams["b"]["t"][pair[1]] > 45_000}
    return len(late & set(run.results)) > 0.5 * len(late)


def work_is_even() -> bool:
    """With one basic window rows ask for a part of it; for all of it they could only by turns."""
    compared = []
    shed = shedding(4_000, basic_window="10s")
    with scanned().open(rows_only=True, shed=shed) as session:
        for name, rows in pushes(lagging(40, 40)):
            session.push(name, rows)
            compared.append(session.metrics["comparisons"])
    each = np.diff(compared)[-160:]
    return bool(each.std() < 1.8 * each.mean())


def comes_back_to_everything() -> bool:
    streams = lagging(70, 25, rates={15: 75, 25: 25})
    run = play(scanned(), streams, 500, shed=shedding(12_000))
    return min(run.fractions) < 0.8 and run.fractions[-1] == 1


def learn_from_rows_that_were_shed(
    self: Controller, watched: Any, _learn: Any = Controller._learn
) -> Sums:
    """What selective rows find lies where they look, so nothing else seems to be worth anything."""
    if watched.share is not None:
        for number, asked in enumerate(watched.share.windows):
            watched.shedder.found[number][:] *= asked
    sums: Sums = _learn(self, watched)
    return sums


def ask_for_whole_windows(
    windows: AgeWindows, share: F64, worth: F64, _ranges: Any = control.ranges
) -> Any:
    return _ranges(windows, np.ceil(share), worth)


def never_raise(self: Rate, available: float, needed: float, _adapt: Any = Rate.adapt) -> float:
    before = self.fraction
    _adapt(self, available, needed)
    self.fraction = min(self.fraction, before)
    return self.fraction


MUTANTS: list[tuple[Any, str, Callable[..., Any], Callable[[], bool]]] = [
    (Controller, "_learn", learn_from_rows_that_were_shed, finds_a_shift_that_moved),
    (control, "ranges", ask_for_whole_windows, work_is_even),
    (Rate, "adapt", never_raise, comes_back_to_everything),
]


@pytest.mark.parametrize(
    ("where", "name", "mutant", "holds"), MUTANTS, ids=[one[2].__name__ for one in MUTANTS]
)
def test_a_mutant_is_caught(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, mutant: Any, holds: Callable[[], bool]
) -> None:
    assert holds()
    monkeypatch.setattr(where, name, mutant)
    assert not holds()
