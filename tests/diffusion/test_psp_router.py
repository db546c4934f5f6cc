"""The ring as a router keeps the invariant of all routers, on row times alone."""

from __future__ import annotations

import itertools
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from windjoin.diffusion.errors import RoutingError
from windjoin.diffusion.load import Host
from windjoin.diffusion.psp import PSP
from windjoin.diffusion.segments import Segment, StreamProfile

from tests.diffusion.reference import ReferenceCluster, Row
from tests.effort import examples


def random_rows(chance: random.Random, streams: int) -> list[Row]:
    most = {2: 40, 3: 24, 4: 15}[streams]
    keys = [(chance.randrange(60), chance.randrange(streams)) for _ in range(most)]
    return [Row(time, stream, number) for number, (time, stream) in enumerate(sorted(keys))]


def brute_force(rows: list[Row], windows: tuple[int, ...]) -> set[tuple[Row, ...]]:
    by_stream = [[row for row in rows if row.stream == k] for k in range(len(windows))]
    return {
        found
        for found in itertools.product(*by_stream)
        if all(max(r.t for r in found) - row.t <= windows[row.stream] for row in found)
    }


def disturb(chance: random.Random, cluster: ReferenceCluster) -> None:
    router = cluster.router
    assert isinstance(router, PSP)
    kind = chance.choice(["join", "leave", "lose", "save", "none", "none"])
    open_hosts = router.book.open_hosts
    if kind == "join":
        fresh = max(host.number for host in router.book.hosts) + 1
        cluster.apply(router.add_host(Host(fresh, cpu=chance.choice([1.0, 2.0]))))
    elif kind in ("leave", "lose") and len(open_hosts) > 1:
        leaving = chance.choice(open_hosts)
        moves = router.remove_host(leaving, lost=kind == "lose")
        if kind == "lose":
            cluster.stored.pop(leaving, None)
        cluster.apply(moves)
        assert kind == "lose" or router.drained(leaving)
    elif kind == "save":
        state = json.loads(json.dumps(router.state()))
        restored = PSP(
            router.profiles, router.book.hosts, segment_length=router.segment_length,
            relocation=router.relocation, centred=router.centred,
        )  # fmt: skip
        restored.restore(state)
        assert json.dumps(restored.state()) == json.dumps(state)
        cluster.router = restored


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(150), deadline=None)
def test_each_combination_is_completed_at_exactly_one_place(seed: int) -> None:
    chance = random.Random(seed)
    streams = chance.choice([2, 2, 3, 4])
    windows = tuple(chance.randrange(25) for _ in range(streams))
    profiles = [StreamProfile(str(k), window) for k, window in enumerate(windows)]
    hosts = [Host(number) for number in range(chance.randint(1, 5))]
    router = PSP(
        profiles, hosts, segment_length=chance.randint(1, 20),
        relocation=chance.choice(["aggressive", "passive"]), centred=chance.choice([False, True]),
    )  # fmt: skip
    cluster, border = ReferenceCluster(router), 0
    rows = random_rows(chance, streams)
    while border < 60:
        border = cluster.epoch(border, rows)
        cluster.router.expire(border)
        disturb(chance, cluster)
        held = [row for at in cluster.stored.values() for row in at]
        assert len(held) == len(set(held)), "a row is stored at two hosts"
    expected = brute_force(rows, windows)
    assert cluster.completed.keys() == expected
    assert set(cluster.completed.values()) <= {1}


def test_psp_describes_itself_and_refuses_what_it_does_not_know() -> None:
    streams = [StreamProfile("a", 10, rate=2.0), StreamProfile("b", 10, rate=1.0)]
    hosts = [Host(0), Host(1), Host(2)]
    with pytest.raises(RoutingError, match="'slow'; it must be 'aggressive' or 'passive'"):
        PSP(streams, hosts, segment_length=5, relocation="slow")
    router = PSP(streams, hosts, segment_length=5)
    router.advance(0)
    router.place(Segment(0, 0, 5, rows=10))
    said = router.describe()
    assert (said.exact, said.replication, said.expected_overhead) == (True, 1.0, 12.0)
    assert router.place(Segment(0, 0, 5, rows=10)) == router.place(Segment(0, 0, 5, rows=10))
    assert router.describe().counters.segments == 1


def test_centred_slices_share_out_what_a_row_in_mid_segment_meets() -> None:
    streams = [StreamProfile("a", 799), StreamProfile("b", 799)]
    met = {}
    for centred in (False, True):
        router = PSP(
            streams, [Host(n) for n in range(4)], segment_length=200, centred=centred
        )  # fmt: skip
        for border in range(0, 2000, 200):
            router.expire(border)
            router.advance(border)
            for stream in (0, 1):
                router.place(Segment(stream, border, border + 200))
        now = 1900  # the middle of the segment that came last
        met[centred] = {
            host: max(0, min(stop, now) - max(start, now - 800))
            for host, start, stop in router.held[0]
        }
    assert met == {False: {0: 300, 1: 200, 2: 200, 3: 100}, True: {0: 200, 1: 200, 2: 200, 3: 200}}


def test_what_a_router_wrote_before_it_noted_which_length_is_wanted_is_read() -> None:
    profiles = [StreamProfile(name, window=100) for name in "ab"]
    ring = PSP(profiles, [Host(0), Host(1), Host(2)], segment_length=10)
    state = ring.state() | {"lengths": [2, 3]}
    ring.restore(state)
    assert ring.state()["lengths"] == [[2, 3], None, 0]
