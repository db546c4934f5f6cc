"""The ring completes every combination inside the windows at exactly one place."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from ring_cases import cases
from ring_model import Case, Joiner, brute_force, check_laws, completed, run
from windjoin.diffusion.ring import Ring
from windjoin.diffusion.ring_host import RingPlan
from windjoin.diffusion.ring_messages import End
from windjoin.diffusion.ring_state import RingRows, Slice, Span

PAIR = RingPlan(windows=(5, 5), orders={0: (1,), 1: (0,)})


@given(cases())
@settings(max_examples=600, deadline=None)
def test_ring_completes_every_combination_once(case: Case) -> None:
    assert run(case) == brute_force(case)


@given(cases(changes=True))
@settings(max_examples=600, deadline=None)
def test_ring_completes_every_combination_once_while_it_changes(case: Case) -> None:
    assert run(case) == brute_force(case)


@given(cases(block=6, changes=True))
@settings(max_examples=300, deadline=None)
def test_ring_takes_blocks_of_many_rows(case: Case) -> None:
    assert run(case) == brute_force(case)


def test_a_cycle_of_n_streams_ends_with_the_end_mark_number_n_minus_1() -> None:
    for streams in (2, 3, 5):
        plan = RingPlan(
            windows=(9,) * streams,
            orders={s: tuple(k for k in range(streams) if k != s) for s in range(streams)},
        )
        case = Case([(0, 0)], plan.windows, dict(plan.orders), "both", 3, 1, 1, 0)
        ring = Ring([0, 1, 2], plan, Joiner(case))
        ring.push({0: RingRows.of([0], [0])})
        marks = 0
        while ready := ring.ready():
            marks += isinstance(ring.links[0][0], End) if ring.links[0] else 0
            ring.deliver(0 if 0 in ready else ready[0])
        assert marks == streams - 1
        assert not ring.under_way


def test_rows_in_flight_are_bounded_and_wait_in_order() -> None:
    case = Case([(t, t % 2) for t in range(9)], (5, 5), dict(PAIR.orders), "both", 3, 2, 1, 0)
    ring = Ring([0, 1, 2], PAIR, Joiner(case), in_flight=2)
    results = []
    for number, (time, stream) in enumerate(case.rows):
        results += ring.push({stream: RingRows.of([time], [number])})
    assert (len(ring.under_way), len(ring.waiting)) == (2, 7)
    assert completed(results + ring.drain()) == brute_force(case)


def test_a_ring_saved_in_the_middle_goes_on_as_if_nothing_had_happened() -> None:
    case = Case([(t, t % 2) for t in range(12)], (5, 5), dict(PAIR.orders), "both", 3, 4, 1, 0)
    ring = Ring([0, 1, 2], PAIR, Joiner(case), in_flight=4)
    results = []
    for number, (time, stream) in enumerate(case.rows):
        results += ring.push({stream: RingRows.of([time], [number])})
        for host in ring.ready()[:1]:
            results += ring.deliver(host)
    restored = pickle.loads(pickle.dumps(ring))
    check_laws(restored)
    ours, theirs = ring.drain(), restored.drain()
    assert [r.payload for r in ours] == [r.payload for r in theirs]
    assert completed(results + theirs) == brute_force(case)


def test_ring_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match=r"distinct hosts, at least one; got \[1, 1\]"):
        Ring([1, 1], PAIR, lambda *_: None)
    with pytest.raises(ValueError, match="in_flight is 0; at least 1 block"):
        Ring([1], PAIR, lambda *_: None, in_flight=0)
    ring = Ring([0, 1], PAIR, lambda *_: None)
    ring.push({0: RingRows.of([7], [0])})
    with pytest.raises(ValueError, match="starts at time 6 after time 7 had entered"):
        ring.push({1: RingRows.of([6], [1])})
    assert ring.push({1: RingRows.of([], [])}) == []
    with pytest.raises(RuntimeError, match="cannot relocate while 1 blocks are under way; drain"):
        ring.relocate(joining=[2])
    with pytest.raises(RuntimeError, match="cannot remove host 1 while 1 blocks are under way"):
        ring.remove(1)
    with pytest.raises(ValueError, match=r"host 1 is in the ring already: \[0, 1\]"):
        ring.add_tail(1, {})
    ring.drain()
    ring.remove(1)
    with pytest.raises(ValueError, match="host 0 is the only one"):
        ring.remove(0)


def test_plan_refuses_what_is_no_join() -> None:
    with pytest.raises(ValueError, match="closed is 'left'; it must be 'both' or 'right'"):
        RingPlan((1, 1), {0: (1,), 1: (0,)}, "left")
    with pytest.raises(ValueError, match="at least 2 streams, got 1"):
        RingPlan((1,), {0: ()})
    with pytest.raises(ValueError, match=r"order of stream 1 is \(1,\); .* every other stream"):
        RingPlan((1, 1), {0: (1,), 1: (1,)})


def test_slice_refuses_disorder_and_what_it_has_forgotten() -> None:
    part = Slice()
    part.append(RingRows.of([4, 6], [0, 1]))
    with pytest.raises(ValueError, match="row 2 of time 5 came after time 6"):
        part.append(RingRows.of([5], [2]))
    part.purge(older_than=4)
    part.release(1)
    with pytest.raises(IndexError, match=r"0\.\.2 are not stored: this slice holds 1\.\.2"):
        part.view(Span(0, 2))


def test_slice_memory_follows_what_it_holds() -> None:
    part = Slice()
    for time in range(5000):
        part.append(RingRows.of([time], [time]))
        part.purge(older_than=time - 20)
        part.release(part.start)
    assert part.own.row.tolist() == list(range(4980, 5000))
    assert part._time.shape[0] <= 64
