"""Loads are measured: busy time over time, paces, shares that follow, hosts on trial."""

from __future__ import annotations

import random

import pytest
from windjoin.diffusion.load import Host, LoadBook, Usage
from windjoin.diffusion.meter import Meter, Reading
from windjoin.diffusion.shares import Shares
from windjoin.diffusion.trials import Trials

HOSTS = [Host(number) for number in range(4)]


def report(meter: Meter, now: float, busy: list[float], rows: list[int], ticks: float = 10) -> dict:
    readings = {n: Reading(busy[n], rows[n], 0, 0) for n in range(4)}
    return meter.measure(HOSTS, readings, now=now, ticks=ticks)


@pytest.mark.parametrize("unit", [1, 1000, 10**9])
def test_loads_do_not_depend_on_the_unit_of_time(unit: int) -> None:
    meter, book = Meter(), LoadBook(HOSTS, span=5 * unit)
    for now in (0.0, 1.0, 2.0):
        found = report(
            meter, now, [now * 0.8, now * 0.2, 0, 0], [int(now * 8), int(now * 2), 0, 0], 10 * unit
        )
        for one in found.values():
            book.calibrate(one.capacity)
        book.report({n: one.usage for n, one in found.items()}, now=0)
    book.assign([2], rows=5, bytes=0, due=99 * unit)
    loads = book.loads()
    assert loads[0] == pytest.approx(0.5 * 0.75 * 0.8, rel=0.4)  # half of the weights is the cpu's
    assert loads[0] > loads[1] > loads[3] == 0
    # 5 rows are half a second of work, a segment is half a second long
    assert loads[2] == pytest.approx(0.5, rel=0.01)


def test_a_slow_host_is_last_and_is_looked_at_once_when_it_has_rested() -> None:
    meter, book = Meter(), LoadBook(HOSTS, span=10)
    busy, rows = [0.0] * 4, [0] * 4
    chosen = []
    for step in range(400):
        host = book.least_with(rows=10, bytes=0)
        book.assign([host], rows=10, bytes=0, due=step)
        chosen.append(host)
        busy[host] += 0.1 * (20 if host == 0 and step < 200 else 1)
        rows[host] += 10
        found = report(meter, step * 0.1, busy, rows)
        for one in found.values():
            book.calibrate(one.capacity, tried=one.tried)
        book.report({n: one.usage for n, one in found.items()}, now=step)
    slow = chosen[5:200].count(0)
    assert 1 <= slow <= 6  # looks
    assert chosen[-60:].count(0) >= 10  # it has recovered


def test_looks_take_a_bounded_share_of_the_time() -> None:
    trials, spent, now = Trials(), 0.0, 0.0
    trials.rest(1, now=now, cost=1.0)
    while now < 1000:
        now += 0.5
        if trials.due(now):
            now, spent = now + 1.0, spent + 1.0
            trials.rest(1, now=now, cost=1.0)
    assert spent < 0.13 * now
    trials.forget(1)
    assert not trials.resting(1)


def settle(
    shares: Shares,
    cost: list[float],
    fixed: list[float],
    steps: int = 60,
    least: list[float] | None = None,
) -> list[float]:
    """What weights come to if a host's load is ``fixed + cost * its part``."""
    for step in range(steps):
        weights = [shares.weight(n) for n in range(4)]
        parts = [w / sum(weights) for w in weights]
        loads = {n: (fixed[n] + cost[n] * parts[n]) * (parts[n] > 0) for n in range(4)}
        shares.follow(loads, now=float(step))
        if least is not None:
            least.append(shares.weight(0))
    total = sum(shares.weight(n) for n in range(4))
    return [shares.weight(n) / total for n in range(4)]


def test_shares_become_those_that_load_all_hosts_alike() -> None:
    even = settle(Shares(dict.fromkeys(range(4), 1.0)), [1.0] * 4, [0.3] * 4)
    assert even == pytest.approx([0.25] * 4)
    half = settle(Shares(dict.fromkeys(range(4), 1.0)), [2.0, 1.0, 1.0, 1.0], [0.0] * 4)
    assert half[0] == pytest.approx(1 / 7, rel=0.35)


def test_a_host_that_is_slow_to_be_asked_has_nothing_and_comes_back() -> None:
    shares = Shares(dict.fromkeys(range(4), 1.0))
    seen: list[float] = []
    settle(shares, [1.0] * 4, [9.0, 0, 0, 0], 60, seen)
    assert seen[1:].count(0.0) > 25
    assert settle(shares, [1.0] * 4, [0.0] * 4, 400)[0] == pytest.approx(0.25, rel=0.3)


def test_the_last_host_with_a_share_may_leave() -> None:
    shares = Shares({0: 1.0, 1: 1.0})
    for step in range(6):
        shares.follow({0: 9.0, 1: 0.1}, now=float(step))
    assert shares.weight(0) == 0 < shares.weight(1)
    shares.remove(1)
    assert shares.weight(0) > 0


def test_shares_are_plain_data() -> None:
    shares, again = Shares({0: 1.0, 1: 2.0}), Shares({})
    rng = random.Random(3)
    for step in range(9):
        shares.follow({0: rng.random(), 1: rng.random()}, now=float(step))
    again.restore(shares.state(), now=9.0)
    assert [again.weight(n) for n in (0, 1)] == [shares.weight(n) for n in (0, 1)]


def test_memory_and_network_are_shares_of_what_there_is() -> None:
    meter = Meter(bandwidth=1000.0, memory=400.0)
    host = [Host(0)]
    for now, sent in ((0.0, 0), (1.0, 250), (2.0, 500), (3.0, 750)):
        found = meter.measure(host, {0: Reading(0.0, 0, sent, 100)}, now=now, ticks=7)
    usage, there = found[0].usage, found[0].capacity
    assert usage.memory / there.memory == 0.25
    assert usage.network / there.network == pytest.approx(0.25, rel=0.2)
    assert isinstance(usage, Usage)


def test_a_host_is_told_to_be_slow_once_when_that_is_found() -> None:
    meter, told = Meter(), []
    for step in range(1, 8):
        busy = [step * 0.5, *[step * 0.05] * 3]
        found = report(meter, float(step), busy, [step * 10] * 4)
        told += [(step, n) for n, one in found.items() if one.slowed]
    assert [host for _, host in told] == [0]
    assert told[0][0] <= 3


def test_work_that_waits_is_part_of_a_load() -> None:
    """By the ticks that work on its way is spread over: half a span of it is a load of a half."""
    meter = Meter()
    for now in (1.0, 2.0):  # ten ticks a second
        readings = {n: Reading(0.0, 10, 0, 0, 0.5 * (n == 1)) for n in range(4)}
        found = meter.measure(HOSTS, readings, now=now, ticks=10, span=10)
    loads = {n: one.usage.cpu / one.capacity.cpu for n, one in found.items()}
    assert loads == pytest.approx({0: 0.0, 1: 0.5, 2: 0.0, 3: 0.0})


def test_the_first_readings_are_of_the_time_since_hosts_began() -> None:
    """Two milliseconds that wait at the first look are little, not more than all there is."""
    meter = Meter()
    meter.begin(5.0)
    readings = {n: Reading(0.2, 10, 0, 0, 0.002 * (n == 1)) for n in range(4)}
    found = meter.measure(HOSTS, readings, now=6.0, ticks=10, span=10)
    loads = {n: one.usage.cpu / one.capacity.cpu for n, one in found.items()}
    assert loads == pytest.approx({0: 0.2, 1: 0.202, 2: 0.2, 3: 0.2})


def test_a_host_that_gets_work_again_is_judged_by_that_work() -> None:
    """What it used while it had nothing to do is no reading of how busy it is now."""
    meter = Meter()
    meter.begin(0.0)
    busy, rows, loads = 0.0, 0, []
    for step in range(1, 9):
        if step in (1, 2, 6):
            busy, rows = busy + 0.9, rows + 10
        readings = {0: Reading(busy, rows, 0, 0), 1: Reading(0.1 * step, 10 * step, 0, 0)}
        found = meter.measure(HOSTS[:2], readings, now=float(step), ticks=10)
        loads.append(found[0].usage.cpu / found[0].capacity.cpu)
    assert loads[5] == pytest.approx(0.9)
    assert loads[4] == 0.0
