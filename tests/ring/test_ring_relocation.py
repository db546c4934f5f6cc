"""Slices are cut, moved and bounded as the published relocation says."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ring_model import Case, Joiner
from windjoin.diffusion.ring import Ring
from windjoin.diffusion.ring_host import RingPlan
from windjoin.diffusion.ring_relocation import (
    even_bounds,
    relocation_shares,
    retiring_bounds,
    ring_order_after,
    smoothing_bounds,
    weighted_bounds,
)
from windjoin.diffusion.ring_state import RingRows

PAIR = RingPlan(windows=(59, 59), orders={0: (1,), 1: (0,)})


def filled(hosts: int, rows: int = 240) -> Ring:
    steady = [(t // 4, t % 2) for t in range(2 * rows)]
    case = Case(steady, PAIR.windows, dict(PAIR.orders), "both",
                hosts, 4, 1, 0)  # fmt: skip
    ring = Ring(range(hosts), PAIR, Joiner(case))
    for number, (time, stream) in enumerate(case.rows[:rows]):
        ring.push({stream: RingRows.of([time], [number])})
    ring.drain()
    return ring


def test_even_slices_hold_even_state() -> None:
    held = filled(4).state_rows()
    assert sum(held.values()) == 240
    assert max(held.values()) - min(held.values()) <= 8


@pytest.mark.parametrize(("old", "joining", "leaving"), [(2, 1, []), (4, 2, []), (4, 0, [1])])
def test_aggressive_relocation_is_even_at_once_and_moves_no_more_than_it_must(
    old: int, joining: int, leaving: list[int]
) -> None:
    ring = filled(old)
    fresh = list(range(old, old + joining))
    moved = ring.relocate(joining=fresh, leaving=leaving)
    held = ring.state_rows()
    assert len(held) == old + joining - len(leaving)
    assert sum(held.values()) == 240
    assert max(held.values()) - min(held.values()) <= 8
    assert moved <= expected_moves(old, ring.order) * 240 + 16


def expected_moves(old: int, order: list[int]) -> float:
    """Share of the state that changes hosts when even slices of ``order`` replace ``old``."""
    stay = Fraction(0)
    for k, host in enumerate(order):
        if host < old:
            low = max(Fraction(host, old), Fraction(k, len(order)))
            high = min(Fraction(host + 1, old), Fraction(k + 1, len(order)))
            stay += max(high - low, Fraction(0))
    return float(1 - stay)


@given(st.integers(1, 12), st.integers(1, 6))
def test_shares_are_the_cuts_inside_the_old_slices(old: int, joining: int) -> None:
    new = old + joining
    cuts = [Fraction(i * old, new) for i in range(1, new)]
    assert relocation_shares(old, new) == [cut - int(cut) for cut in cuts]
    order = ring_order_after(range(old), range(old, new), [])
    assert sorted(order) == list(range(new))
    assert [host for host in order if host < old] == list(range(old))
    assert expected_moves(old, order) <= joining / new + (old - 1) / 2 / new + 1e-9


def test_passive_relocation_drifts_into_place() -> None:
    ring = filled(2)
    ring.add_tail(2, even_bounds([0, 1, 2], PAIR.expiry))
    assert ring.state_rows()[2] == 0
    number, time = 240, 60
    for _ in range(240):
        ring.push({number % 2: RingRows.of([time + (number - 240) // 4], [number])})
        number += 1
    ring.drain()
    held = ring.state_rows()
    assert max(held.values()) - min(held.values()) <= 8


def test_smoothing_bounds_a_burst_and_leaves_the_window_alone() -> None:
    ring = filled(4)
    ring.set_bounds(smoothing_bounds(ring.order, PAIR.expiry, [120, 120], slack=1.0))
    for number in range(240, 440):  # a burst: 200 rows in one time unit
        ring.operator.case.rows[number] = (60, number % 2)  # type: ignore[attr-defined]
        ring.push({number % 2: RingRows.of([60], [number])})
    ring.drain()
    held = ring.state_rows()
    assert all(held[host] <= 60 for host in ring.order[:-1])
    assert sum(held.values()) == 236 + 200  # the four rows of time 0 have expired


def test_weighted_bounds_follow_the_hosts() -> None:
    bounds = weighted_bounds([0, 1, 2], (100,), [1.0, 1.0, 2.0])
    assert [bounds[host].age for host in (0, 1, 2)] == [{0: 25}, {0: 50}, {}]


def test_relocation_refuses_what_cannot_be() -> None:
    with pytest.raises(ValueError, match=r"all hosts \[0\] would leave; at least one must stay"):
        retiring_bounds([0], [0], (5,))
    with pytest.raises(ValueError, match=r"all hosts \[0\] would leave; at least one must stay"):
        ring_order_after([0], [], [0])
    with pytest.raises(ValueError, match=r"hosts \[7\] are not in the ring \[0\]"):
        ring_order_after([0], [1], [7])
    with pytest.raises(ValueError, match="every host needs a weight above 0"):
        weighted_bounds([0, 1], (5,), [1.0, 0.0])
    with pytest.raises(ValueError, match=r"slack is 0\.5; below 1"):
        smoothing_bounds([0], (5,), [1.0], slack=0.5)
