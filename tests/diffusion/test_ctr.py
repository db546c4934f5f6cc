"""Coordinated routing: the compiled search against a plain one, and what the table does."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from windjoin.diffusion.ctr import CTR
from windjoin.diffusion.load import Host, Usage
from windjoin.diffusion.orders import candidate_orders, fan_out, search_space, travelling
from windjoin.diffusion.registry import make
from windjoin.diffusion.segments import Segment, StreamProfile

from tests.diffusion.test_cover import textbook
from tests.effort import examples

Table = list[list[tuple[int, int, set[int]]]]  # per stream: start, stop, hosts


def streams(n: int, window: int, seed: int = 0) -> tuple[StreamProfile, ...]:
    rng = random.Random(seed)
    return tuple(
        StreamProfile(
            f"s{k}", window, rng.choice([0.1, 1.0]), tuple(rng.random() for _ in range(n))
        )
        for k in range(n)
    )


def run(router: CTR, borders: int, start: int = 0, rows: int = 10) -> int:
    border = start
    for _ in range(borders):
        router.expire(border)
        router.advance(border)
        stop = router.stop(border)
        n = len(router.profiles)
        router.route([Segment(k, border, stop, rows, rows * 100) for k in range(n)])
        border = stop
    return border


def plain_search(
    table: Table,
    windows: tuple[int, ...],
    weights: list[float],
    segment: Segment,
    until: int,
    base: set[int],
    orders: list[tuple[tuple[int, ...], list[float]]],
) -> tuple[float, list[set[int]]]:
    """Equation 3 for all orders by textbook covers; the cheapest cost and its hosts per hop."""
    results = []
    for order, factors in orders:
        cost, before, hops = 0.0, base, []
        for k, factor in zip(order, factors, strict=True):
            near = [s for s in table[k] if s[1] > segment.start - windows[k] and s[0] < until]
            now = {host for host in before if any(host in s[2] for s in near)}
            rest = [s for s in near if not s[2] & now]
            if rest:
                held = np.array([[h in s[2] for s in rest] for h in range(len(weights))])
                now |= set(textbook(held, np.array(weights)) or ())
            cost += factor * len(now - before)
            before = now
            hops.append(now)
        results.append((cost, hops))
    return min(results, key=lambda result: result[0])


@given(st.integers(0, 1 << 40))
@settings(max_examples=examples(70), deadline=None)
def test_the_compiled_search_equals_the_plain_one(seed: int) -> None:
    rng = random.Random(seed)
    n, hosts = rng.choice([2, 3, 4]), rng.choice([2, 5, 70])
    profiles = streams(n, rng.choice([5, 40, 100]), seed)
    router = make("ctr", profiles, hosts, segment_length=rng.choice([1, 10]), crowded=1.5)
    assert isinstance(router, CTR)
    border = run(router, rng.randint(1, 80))
    router.report({h: Usage(cpu=rng.random()) for h in range(hosts)})
    router.advance(border)
    segments = [Segment(k, border, router.stop(border)) for k in range(n)]
    placed = [router.place(segment) for segment in segments]
    table: Table = [[(a, b, set(held)) for a, b, held in rows] for rows in router.table.dump()]
    loads = router.book.loads()
    segment = rng.choice(segments)
    weights = [1 + int(load / loads.max() * 1023) for load in loads]
    orders = [
        (order, travelling(profiles, segment.stream, order))
        for order in candidate_orders(profiles, segment.stream, at_most=8)
    ]
    base = set(placed[segment.stream].hosts)
    cost, hops = plain_search(table, router.windows, weights, segment, segment.stop, base, orders)
    path = router.path(segment)
    assert router.table.cost == pytest.approx(cost)
    for hop, allowed in zip(path.hops, hops, strict=True):
        assert set(hop.hosts) <= allowed
        check_voids(table, hop.streams[0], hop.hosts, hop.voids, segment, router.windows, weights)


def check_voids(
    table: Table,
    k: int,
    hosts: tuple[int, ...],
    voids: Mapping[int, tuple[tuple[int, int], ...]],
    segment: Segment,
    windows: tuple[int, ...],
    weights: list[float],
) -> None:
    """Of the visited hosts that hold a segment exactly one, the least loaded, is not void."""
    computing = set()
    for start, stop, held in table[k]:
        if stop <= segment.start - windows[k] or start >= segment.stop:
            continue
        present = [host for host in hosts if host in held]
        active = [  # not void
            host
            for host in present
            if not any(low <= start and stop <= high for low, high in voids.get(host, ()))
        ]
        assert active == [min(present, key=lambda host: (weights[host], host))]
        computing.update(active)
    assert computing == set(hosts)


def test_voids_are_a_mapping() -> None:
    router = make("ctr", streams(2, 50), 4, segment_length=10, copies=3)
    assert isinstance(router, CTR)
    border, voids = 0, {}
    while not voids and border < 1000:
        border = run(router, 1, start=border)
        voids = router.path(Segment(0, border - 10, border)).hops[0].voids
    assert isinstance(voids, Mapping)
    assert len(voids) == len(list(voids)) == len(voids.keys()) > 0
    as_dict = {host: voids[host] for host in voids}
    assert voids == as_dict == dict(voids.items())
    assert list(voids.values()) == list(as_dict.values())
    assert repr(voids) == repr(as_dict)
    host = next(iter(voids))
    assert host in voids
    assert 99 not in voids
    assert voids.get(99, ()) == ()
    assert voids.get(99) is None
    with pytest.raises(KeyError, match="99"):
        voids[99]
    assert voids != {99: ((0, 1),)}


def test_placement_is_topped_up_more_during_the_first_window() -> None:
    router = make("ctr", streams(2, 40), 12, segment_length=10, crowded=1.0)
    assert isinstance(router, CTR)
    counts = []
    for border in range(0, 80, 10):
        router.advance(border)
        placed = router.route([Segment(k, border, border + 10, 10) for k in (0, 1)])
        counts.append([len(route.placement.hosts) for route in placed])
    assert counts[0] == [5, 5]
    assert min(min(pair) for pair in counts[:4]) >= 5
    assert min(min(pair) for pair in counts[4:]) >= 2


@pytest.mark.parametrize("hosts", [3, 16])
@pytest.mark.parametrize("window", [20, 200])
def test_state_spreads_over_all_hosts(hosts: int, window: int) -> None:
    router = make("ctr", streams(3, window), hosts, segment_length=10)
    assert isinstance(router, CTR)
    stored = np.zeros(hosts)
    border = 0
    for _ in range(300):
        router.expire(border)
        router.advance(border)
        for route in router.route([Segment(k, border, border + 10, 10) for k in range(3)]):
            stored[list(route.placement.hosts)] += 1
        border += 10
    loads = router.book.loads()  # nobody reports: all work ever assigned, rows and probes
    for spread in (stored, loads):
        assert spread.min() > 0.6 * spread.mean()
        assert spread.max() < 1.6 * spread.mean()


def test_entries_and_bytes_stay_flat_and_expire() -> None:
    router = make("ctr", streams(3, 100), 8, segment_length=1)
    assert isinstance(router, CTR)
    border = run(router, 300)
    described = router.describe()
    assert described.entries == 3 * 101
    assert described.state_bytes == router.table.nbytes() > 0
    assert described.details["microseconds_per_route"] > 0
    assert described.expected_overhead > 0
    border = run(router, 500, start=border)
    assert router.describe().state_bytes == described.state_bytes
    router.expire(border + 100)
    assert router.describe().entries == 0


def test_a_new_host_is_used_at_once_and_a_lost_one_only_costs_last_copies() -> None:
    router = make("ctr", streams(2, 60), 3, segment_length=10)
    assert isinstance(router, CTR)
    border = run(router, 10)
    before = router.table.dump()
    moves = router.remove_host(0, lost=True)
    lonely = [
        (stream, start)
        for stream, rows in enumerate(before)
        for start, _, hosts in rows
        if hosts == [0]
    ]
    assert [(move.stream, move.start) for move in moves] == lonely
    router.add_host(Host(70))
    run(router, 8, start=border)
    assert router.table.holds(70)


def test_place_asked_again_answers_the_same_also_after_a_restore() -> None:
    router = make("ctr", streams(3, 60), 5, segment_length=10)
    assert isinstance(router, CTR)
    border = run(router, 10)
    segment = Segment(1, border - 10, border, 10, 1000)
    answer, state = router.place(segment), json.dumps(router.state())
    assert router.place(segment) == answer
    assert json.dumps(router.state()) == state
    again = make("ctr", streams(3, 60), 5, segment_length=10)
    again.restore(json.loads(state))
    assert again.place(segment) == answer
    assert again.path(segment) == router.path(segment)


def test_rates_change_the_orders_unless_told_not_to() -> None:
    profiles = streams(3, 60)
    router = make("ctr", profiles, 5, segment_length=10)
    assert isinstance(router, CTR)
    run(router, 8)
    router.report({}, rates=[9.0, 0.1, 3.0], throughput=4.0)
    assert [profile.rate for profile in router.profiles] == [9.0, 0.1, 3.0]


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_candidate_orders_start_with_the_best(n: int) -> None:
    profiles = streams(n, 7, seed=n)

    def partial_results(order: tuple[int, ...]) -> float:
        rows, total, bound = 1.0, 0.0, [0]
        for stream in order:
            rows *= fan_out(profiles, bound, stream)
            total += rows
            bound.append(stream)
        return total

    orders = candidate_orders(profiles, 0, at_most=720)
    everything = list(permutations(range(1, n)))
    assert sorted(orders) == everything
    assert orders[0] == min(everything, key=partial_results)
    few, factors = search_space(profiles, at_most=2)
    assert few.shape == factors.shape == (n, min(2, len(everything)), n - 1)
