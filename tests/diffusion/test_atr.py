"""Aligned routing: who holds what, what it costs, when it adapts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from windjoin.diffusion.atr import ATR, MARK_BITS
from windjoin.diffusion.load import Host, Usage
from windjoin.diffusion.registry import make, restored
from windjoin.diffusion.router import Part
from windjoin.diffusion.segments import Segment, StreamProfile

STREAMS = (
    StreamProfile("a", window=10, rate=5.0),
    StreamProfile("b", window=20, rate=2.0),
    StreamProfile("c", window=30, rate=1.0),
)


def atr(hosts: int = 4, **options: object) -> ATR:
    router = make("atr", STREAMS, hosts, segment_length=10, **options)
    assert isinstance(router, ATR)
    return router


def run(router: ATR, borders: int, start: int = 0) -> int:
    border = start
    for _ in range(borders):
        router.advance(border)
        stop = router.stop(border)
        segments = [
            Segment(k, border, stop, rows=int(p.rate * (stop - border)))
            for k, p in enumerate(router.profiles)
        ]
        router.route(segments)
        border = stop
        router.expire(border)
    return border


def test_the_master_is_stored_once_and_segments_go_round_the_hosts() -> None:
    router = atr()
    hosts = [router.place(Segment(0, t, t + 10)).hosts for t in range(0, 80, 10)]
    assert hosts == [(0,), (1,), (2,), (3,)] * 2


def test_a_follower_goes_where_its_windows_reach() -> None:
    router = atr(hosts=50)
    # b at [100, 110): masters' segments [t, t + 10) with t - 20 < 110 and t + 10 + 10 > 100
    parts = router.place(Segment(1, 0, 10)).parts and router.place(Segment(1, 100, 110)).parts
    owner = {t: router.place(Segment(0, t, t + 10)).hosts[0] for t in range(90, 130, 10)}
    assert {part.host for part in parts} == set(owner.values())
    assert all((part.start, part.stop) == (100, 110) for part in parts)


def test_replication_is_equation_2() -> None:
    router = atr(hosts=64)
    run(router, 400)
    described = router.describe()
    elapsed = 4000
    extra = (described.counters.copies - described.counters.rows) / elapsed
    assert extra == pytest.approx(described.expected_overhead, rel=0.02)
    assert described.replication > 1


def test_the_master_follows_the_rates() -> None:
    router = atr()
    assert router.master == 0
    run(router, 5)
    router.report({}, rates=[0.1, 0.1, 50.0])
    assert router.master == 2
    assert router.counters.switches == 1
    fixed = make("atr-fixed", STREAMS, 4, segment_length=10)
    assert isinstance(fixed, ATR)
    fixed.report({}, rates=[0.1, 0.1, 50.0], throughput=1.0)
    assert (fixed.master, fixed.segment_length) == (0, 10)


def test_a_small_gain_is_not_worth_a_switch() -> None:
    router = atr()
    run(router, 5)
    before = router.overhead(0)
    router.report({}, rates=[5.0, 2.0, 5.1])
    assert router.master == 0
    assert router.overhead(0) > before


def test_segment_length_climbs_while_throughput_improves() -> None:
    longer = [replace(stream, window=4 * stream.window) for stream in STREAMS]  # they bound it
    router, border = make("atr", longer, 4, segment_length=10), 0
    assert isinstance(router, ATR)
    lengths = []
    for _ in range(600):
        border = run(router, 1, start=border)
        # best at 40, and only what is planned with a length counts for it
        router.report({}, throughput=100.0 - abs(router.segment_length - 40))
        lengths.append(router.segment_length)
    assert 34 <= lengths[-1] <= 47
    assert len(set(lengths[-200:])) == 1  # settled
    assert len(set(lengths)) > 3
    for _ in range(600):  # what is best becomes another
        border = run(router, 1, start=border)
        router.report({}, throughput=30.0 - abs(router.segment_length - 15))
    assert 12 <= router.segment_length <= 19


def test_equal_throughput_settles_where_it_began() -> None:
    router, border = atr(), 0
    for _ in range(400):
        border = run(router, 1, start=border)
        router.report({}, throughput=7.0)
    assert router.segment_length == 10


def test_what_a_slow_host_was_to_do_later_goes_to_others() -> None:
    router = atr()
    border = run(router, 5)
    slow = router.tasks[-1].host
    before = router.tasks
    router.retreat([slow])
    moves = router.advance(border)
    after = router.tasks
    assert [task._replace(host=0) for task in after] == [task._replace(host=0) for task in before]
    moved = [new for new, old in zip(after, before, strict=True) if new.host != old.host]
    assert moved
    assert all(task.low[router.master] >= border for task in moved)
    assert {move.target for move in moves} == {task.host for task in moved}
    assert all(move.source is None and move.stop <= border for move in moves)
    assert router.advance(border) == ()  # once


def test_a_switch_is_put_off_when_marks_run_out() -> None:
    router = atr()
    run(router, 2)
    done = [router.switch_master(1 + k % 2) for k in range(MARK_BITS)]
    assert done[0]
    assert not all(done)
    border = run(router, 40, start=20)  # what could be reached with the marks is gone
    assert router.switch_master(1)
    assert run(router, 2, start=border) > border


def test_marks_of_a_switch_part_old_rows_from_new_ones() -> None:
    router = atr(hosts=1, master=0)
    router.place(Segment(0, 0, 10))
    at = router.planned
    router.switch_master(1)
    parts = [
        part for t in range(0, at + 40, 10) for part in router.place(Segment(0, t, t + 10)).parts
    ]
    old, switch, new = 1, 2, 4
    assert [(p.start, p.stop, p.marks) for p in parts if p.start >= at - 20][:4] == [
        (at - 20, at - 10, old),
        (at - 10, at, old),
        (at, at + 10, switch | new),
        (at + 10, at + 20, switch | new),
    ]
    assert Part(0, at + 20, at + 30, new) in parts


def test_a_loaded_host_gets_nothing_and_a_large_one_more() -> None:
    router = make("atr", STREAMS, [Host(0), Host(1), Host(2, cpu=3.0)], segment_length=10)
    router.report({0: Usage(cpu=1e6)})
    hosts = [router.place(Segment(0, t, t + 10)).hosts[0] for t in range(0, 400, 10)]
    assert 0 not in hosts
    assert hosts.count(2) > 2 * hosts.count(1)


def test_a_leaving_host_drains_and_is_then_forgotten() -> None:
    router = atr(hosts=2)
    border = run(router, 4)
    assert router.remove_host(1, lost=False) == ()
    assert not router.drained(1)
    assert not router.drained(0)
    run(router, 12, start=border)
    assert router.drained(1)
    assert router.describe().hosts == (0,)


def test_a_lost_host_is_refilled_from_the_log() -> None:
    router = atr(hosts=2)
    border = run(router, 4)
    moves = router.remove_host(0, lost=True)
    assert moves
    assert {(move.source, move.target) for move in moves} == {(None, 1)}
    assert all(move.stop <= border for move in moves)
    assert {task.host for task in router.tasks} == {1}


def test_state_is_bounded_over_an_endless_run() -> None:
    router = atr()
    border = run(router, 100)
    sizes = set()
    for _ in range(20):
        border = run(router, 50, start=border)
        sizes.add(len(json.dumps(router.state())) // 100)
    assert max(sizes) - min(sizes) <= 2


def test_restored_by_the_registry() -> None:
    router = atr(master=1)
    run(router, 3)
    again = restored(STREAMS, json.loads(json.dumps(router.state())))
    assert again.state() == router.state()
    assert again.describe().details == router.describe().details


@pytest.mark.parametrize("master", [0, 1, 2])
def test_followers_probe_the_master_first(master: int) -> None:
    streams = tuple(StreamProfile(name, window=30) for name in "abc")
    router = make("atr", streams, 4, segment_length=10, master=master, adapt=False)
    router.advance(0)
    for route in router.route([Segment(k, 0, 10, 5) for k in range(3)]):
        (hop,) = route.path.hops
        assert sorted((*hop.streams, route.segment.stream)) == [0, 1, 2]
        assert route.segment.stream == master or hop.streams[0] == master
