"""Groups, single and random: balance, moves, and the loss that random admits."""

from __future__ import annotations

import random
from collections import Counter

from windjoin.diffusion.baselines import Random
from windjoin.diffusion.groups import Groups
from windjoin.diffusion.load import Host
from windjoin.diffusion.registry import make
from windjoin.diffusion.segments import Segment, StreamProfile

from tests.diffusion.invariant import combinations_inside
from tests.diffusion.reference import ReferenceCluster, Row

STREAMS = (StreamProfile("a", window=40), StreamProfile("b", window=40))


def groups(hosts: int) -> Groups:
    router = make("groups", STREAMS, hosts, segment_length=5, group_count=64)
    assert isinstance(router, Groups)
    router.advance(0)
    router.route([Segment(0, 0, 5, 3), Segment(1, 0, 5, 4)])
    return router


def test_random_loses_what_it_expects_to_lose() -> None:
    rng = random.Random(5)
    rows = [Row(t, rng.randrange(2), t) for t in range(1500)]
    router = make("random", STREAMS, 4, segment_length=5)
    assert isinstance(router, Random)
    cluster = ReferenceCluster(router)
    border = 0
    while border < 1500:
        router.expire(border)
        border = cluster.epoch(border, rows)
    inside = sum(1 for _ in combinations_inside(rows, router.windows, same_group=False))
    lost = 1 - len(cluster.completed) / inside
    described = router.describe()
    assert not described.exact
    assert described.entries <= 2 * 10
    assert abs(described.expected_loss - lost) < 0.1
    assert 0.6 < lost < 0.9


def test_groups_stay_balanced_when_hosts_come_and_go() -> None:
    router = groups(4)
    moves = router.add_host(Host(9))
    assert {move.target for move in moves} == {9}
    assert len(router.groups_of(9)) == 12
    moves += router.remove_host(0, lost=False)
    counts = router.describe().details["groups_per_host"]
    assert sum(counts.values()) == 64
    assert max(counts.values()) - min(counts.values()) <= 1
    assert router.drained(0)
    lost = router.remove_host(1, lost=True)
    assert {move.source for move in lost} == {None}
    assert Counter(router.table().tolist()) == router.describe().details["groups_per_host"]


def test_moved_groups_bring_the_window_of_all_streams() -> None:
    router = groups(2)
    moves = router.move_groups([0, 2, 3], 1)
    assert [(m.stream, m.start, m.stop, m.source, m.target, m.groups) for m in moves] == [
        (0, -40, 5, 0, 1, (0, 2)),
        (1, -40, 5, 0, 1, (0, 2)),
    ]
    assert router.describe().replication == 1.0


def test_single_moves_home_when_home_goes() -> None:
    router = make("single", STREAMS, 3, segment_length=5)
    router.advance(0)
    router.route([Segment(0, 0, 5, 3), Segment(1, 0, 5, 4)])
    assert router.remove_host(2, lost=False) == ()
    assert {(m.source, m.target) for m in router.remove_host(0, lost=False)} == {(0, 1)}
    assert router.drained(0)
    assert router.describe().hosts == (1, 2)
    assert router.path(Segment(1, 5, 10)).hops[0].hosts == (1,)
