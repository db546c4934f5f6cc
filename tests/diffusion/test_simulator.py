"""The simulator obeys the laws of queues, and every exact strategy finds the same results."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from windjoin.diffusion.arrivals import arrivals_of
from windjoin.diffusion.choose import LoadStatistics, choose
from windjoin.diffusion.scenario import Change, Costs, HostSpec, Scenario, StreamSpec
from windjoin.diffusion.simulator import Simulation, percentile, simulate, with_hosts

EXACT = ["single", "atr", "atr-fixed", "ctr", "ctr-random", "psp", "groups"]


def scenario(**changes: Any) -> Scenario:
    base = Scenario(
        streams=tuple(StreamSpec(name, 3, 20) for name in "abc"),
        hosts=(HostSpec(6),),
        matches=0.8,
        seconds=400,
    )
    return replace(base, **changes)


@pytest.mark.parametrize("strategy", [*EXACT, "random"])
def test_the_same_seed_gives_the_same_figures(strategy: str) -> None:
    one, two = (asdict(simulate(scenario(), strategy)) for _ in range(2))
    one.pop("route_us"), two.pop("route_us")  # the only figure of real time
    assert one == two
    other = asdict(simulate(scenario(seed=2), strategy))
    assert other["results"] != one["results"]


@pytest.mark.parametrize("strategy", EXACT)
def test_exact_strategies_find_the_analytic_number_of_results_at_low_load(strategy: str) -> None:
    """Every row meets ``matches`` rows of each other window, less while the windows fill."""
    long = scenario(seconds=2000)
    outcome = simulate(long, strategy)
    expected = outcome.offered * 0.8**2 * (2000 - 20 * 4 / 3) / 2000
    assert outcome.throughput == pytest.approx(expected, rel=0.06)
    assert outcome.processed == pytest.approx(outcome.offered, rel=0.01)


def test_random_routing_loses_results() -> None:
    assert simulate(scenario(), "random").results < 0.5 * simulate(scenario(), "single").results


@pytest.mark.parametrize(("strategy", "asked"), [("single", 1), ("psp", 4)])
def test_asking_a_host_costs_as_much_however_little_it_holds(strategy: str, asked: int) -> None:
    """With slices on four hosts every row asks four; the whole window on one is asked once."""
    specs = tuple(StreamSpec(name, 10.0, 20) for name in "ab")
    costs = Costs(send_ms=0, receive_ms=0, probe_ms=0, call_ms=5, link_ms=0)
    outcome = simulate(
        Scenario(specs, hosts=(HostSpec(4),), selectivity=0.0, seconds=2000, costs=costs,
                 segment_s=0.5), strategy,
    )  # fmt: skip
    assert 4 * outcome.load_mean == pytest.approx(20 * 0.005 * asked, rel=0.05)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_one_host_waits_as_pollaczek_and_khinchine_say(load: float) -> None:
    """Poisson arrivals, constant service: M/D/1.  Mean time in system s + rho s / (2 (1 - rho))."""
    service = 21.0  # ms: receive 1, probe the one other window 20
    specs = tuple(StreamSpec(name, load * 1000 / service / 2, 5) for name in "ab")
    costs = Costs(send_ms=0, receive_ms=1, probe_ms=20)
    outcome = simulate(
        Scenario(specs, hosts=(HostSpec(1),), selectivity=0.0, seconds=4000, costs=costs), "single"
    )
    expected = service + load * service / (2 * (1 - load))
    assert outcome.response_mean_ms == pytest.approx(expected, rel=0.08)
    assert outcome.load_mean == pytest.approx(load, rel=0.03)


@pytest.mark.parametrize("strategy", EXACT)
def test_littles_law_holds(strategy: str) -> None:
    """Jobs in the system on average are their arrival rate times their mean time in it."""
    simulation = Simulation(scenario(), strategy)
    outcome = simulation.run()
    jobs = simulation.machine.figures[2]
    present = float(np.mean(outcome.series["jobs_in_system"]))
    rate = jobs / (outcome.seconds * 1000)
    assert present == pytest.approx(rate * outcome.response_mean_ms, rel=0.02)


@pytest.mark.parametrize("strategy", EXACT)
def test_no_host_works_more_than_there_is_time(strategy: str) -> None:
    crowded = scenario(streams=tuple(StreamSpec(name, 60, 20) for name in "abc"), seconds=100)
    outcome = simulate(crowded, strategy)
    assert max(outcome.host_load) <= 1 + 1e-9
    assert max(outcome.series["load_peak"]) <= 1 + 1e-9
    assert outcome.results <= simulate(replace(crowded, costs=Costs(0, 0, 0)), "single").results


def test_state_is_the_windows_once_without_replication_and_more_with_it() -> None:
    once = 3 * 3 * 20  # streams, rate, window
    for strategy in ("single", "psp", "groups"):
        outcome = simulate(scenario(), strategy)
        assert outcome.state_rows == pytest.approx(once, rel=0.1)
        assert outcome.replicated_rows == pytest.approx(0, abs=1e-6)
    for strategy in ("atr", "ctr"):
        outcome = simulate(scenario(), strategy)
        assert outcome.replicated_rows == pytest.approx(outcome.state_rows - once, rel=0.15)
        assert outcome.replicated_rows > 0


def test_atr_replicates_as_equation_2_says() -> None:
    spec = scenario(hosts=(HostSpec(40),), segment_s=10, seconds=1000)
    outcome = simulate(spec, "atr-fixed")
    copies = outcome.received_rows / (outcome.offered * outcome.seconds)
    assert copies == pytest.approx(1 + (2 / 3) * (20 + 20) / 10, rel=0.05)


def test_faster_hosts_get_more_of_the_work() -> None:
    slow, fast = HostSpec(3, cpu=1.0), HostSpec(3, cpu=4.0)
    mixed = simulate(scenario(hosts=(slow, fast)), "psp")
    work = [load * speed for load, speed in zip(mixed.host_load, [1] * 3 + [4] * 3, strict=True)]
    assert min(work[3:]) > max(work[:3])


def test_bursts_keep_the_mean_rate_and_raise_the_latency() -> None:
    calm = scenario(streams=tuple(StreamSpec(name, 3, 20) for name in "abc"), seconds=3000)
    wild = replace(calm, streams=tuple(StreamSpec(name, 3, 20, burst=1.0) for name in "abc"))
    before, after = simulate(calm, "single"), simulate(wild, "single")
    assert after.offered == pytest.approx(before.offered, rel=0.06)
    assert after.latency_mean_ms > 1.2 * before.latency_mean_ms


@pytest.mark.parametrize("strategy", ["atr", "ctr", "psp", "groups"])
@pytest.mark.parametrize("relocation", ["aggressive", "passive"])
def test_rates_and_hosts_that_change_lose_no_results(strategy: str, relocation: str) -> None:
    changes = (
        Change(at_s=100, stream="a", rate=6.0),
        Change(at_s=150, add_hosts=2),
        Change(at_s=250, remove_hosts=(1,)),
    )
    changing = scenario(changes=changes, relocation=relocation)
    expected = simulate(replace(changing, changes=changes[:1]), "single").results
    assert simulate(changing, strategy).results == pytest.approx(expected, rel=0.03)


def test_batches_of_rows_change_the_figures_little() -> None:
    rows = simulate(scenario(rows_per_batch=1), "atr-fixed")
    batches = simulate(scenario(rows_per_batch=3), "atr-fixed")
    assert batches.results == pytest.approx(rows.results, rel=0.03)
    assert batches.load_mean == pytest.approx(rows.load_mean, rel=0.03)
    assert batches.bytes_moved == pytest.approx(rows.bytes_moved, rel=0.03)


def test_arrivals_are_in_order_and_as_many_as_the_rates_say() -> None:
    many = arrivals_of(scenario(seconds=5000), visits=1.0)
    assert np.all(np.diff(many.time) >= 0)
    assert many.rows.sum() == pytest.approx(3 * 3 * 5000, rel=0.02)
    few = arrivals_of(scenario(seconds=5000, events=1000), visits=1.0)
    assert few.rows.sum() == many.rows.sum()
    assert few.time.size <= 1003


def test_percentile_reads_the_histogram() -> None:
    histogram = np.zeros(800)
    histogram[99] = 95.0
    histogram[299] = 5.0
    assert percentile(histogram, 0.95) == pytest.approx(1.0)
    assert percentile(histogram, 0.96) == pytest.approx(100.0)
    assert percentile(np.zeros(800), 0.95) == 0.0


def test_more_hosts_do_not_lose_results() -> None:
    few, many = (simulate(with_hosts(scenario(), hosts), "psp").results for hosts in (2, 12))
    assert many == pytest.approx(few, rel=0.02)


def test_the_host_of_the_most_frequent_key_has_its_share_of_the_work() -> None:
    costs = Costs(send_ms=0, receive_ms=0, probe_ms=10)
    even = simulate(scenario(hot_key=0.0, costs=costs, seconds=2000, adapt=False), "groups")
    assert max(even.host_load) == pytest.approx(min(even.host_load), rel=0.2)
    hot = simulate(scenario(hot_key=0.4, costs=costs, seconds=2000, adapt=False), "groups")
    share, other = 0.6 / 6 + 0.4, 0.6 / 6  # of the rows, and of the windows they meet
    assert hot.host_load[0] / hot.host_load[5] == pytest.approx((share / other) ** 2, rel=0.15)
    assert hot.results == pytest.approx(even.results, rel=0.02)


def test_groups_that_move_cost_their_rows() -> None:
    changes = (Change(at_s=100, add_hosts=2),)
    still = simulate(scenario(hot_key=0.0), "groups")
    moved = simulate(scenario(hot_key=0.0, changes=changes), "groups")
    assert still.moved_state_rows == 0
    # 1/7 and then 1/8 of 9 rows a second: those of 20 s of window and of the segment before
    assert moved.moved_state_rows == pytest.approx((1 / 7 + 1 / 8) * 9 * (20 + 5), rel=0.15)


@pytest.mark.parametrize("hot_key", [0.0, 0.1])
def test_groups_of_equal_hosts_stay_where_they_are_but_for_chance(hot_key: float) -> None:
    """Half loaded hosts of which one has more to do by chance must not be found to be slow."""
    busy = Scenario(
        streams=tuple(StreamSpec(name, 16, 30) for name in "abcd"), hosts=(HostSpec(2),),
        matches=1.0, seconds=300, hot_key=hot_key,
    )  # fmt: skip
    fixed, following = (simulate(replace(busy, adapt=a), "groups") for a in (False, True))
    assert following.results == pytest.approx(fixed.results, rel=0.01)
    assert following.backlog_ms < 1000


def test_a_host_counts_as_busy_as_it_is_when_work_waits_beyond_the_end() -> None:
    """All hosts have more to do than there is time for, so that none of them ever rests."""
    told: list[float] = []
    simulation = Simulation(scenario(hosts=(HostSpec(2),), costs=Costs(probe_ms=900)), "atr-fixed")
    measure = simulation.meter.measure

    def listen(hosts: Any, readings: Any, **when: Any) -> Any:
        told.append(sum(reading.busy for reading in readings.values()))
        return measure(hosts, readings, **when)

    simulation.meter.measure = listen  # type: ignore[method-assign]
    simulation.run()
    worked = np.diff(told)[50:]
    assert worked.min() >= 0
    assert worked.mean() == pytest.approx(2.0, rel=0.02)


def test_hosts_that_shed_keep_up_and_say_what_they_left_out() -> None:
    heavy = scenario(hosts=(HostSpec(2),), costs=Costs(probe_ms=600))
    late = simulate(heavy, "atr")
    shed = simulate(replace(heavy, queue_s=5.0), "atr")
    assert late.backlog_ms > 20_000 > 5_000 >= shed.backlog_ms
    assert (late.shed, shed.shed > 0.1) == (0.0, True)
    assert shed.latency_p95_ms < late.latency_p95_ms
    assert shed.results < 1.1 * late.results + 1000


def test_what_comes_before_the_warm_up_does_not_count() -> None:
    whole = simulate(scenario(seconds=800), "single")
    warm = simulate(scenario(seconds=800, warm_up_s=400), "single")
    assert warm.results < 0.6 * whole.results
    assert warm.throughput == pytest.approx(whole.throughput, rel=0.1)


def test_a_narrow_link_makes_results_late() -> None:
    wide = simulate(scenario(), "ctr")
    links = (HostSpec(6, bandwidth_mbps=0.02),)
    assert simulate(scenario(hosts=links), "ctr").latency_mean_ms > wide.latency_mean_ms + 5


@pytest.mark.parametrize(
    ("streams", "hosts", "window_s", "matches"), [(5, 30, 30.0, 0.2), (3, 12, 10.0, 1.0)]
)
def test_a_ring_keeps_up_where_its_formula_says_so(
    streams: int, hosts: int, window_s: float, matches: float
) -> None:
    """At a third of what all hosts can do: rows that once waited do not make the ring shorter."""
    work = 100.0 * sum(matches**hop for hop in range(streams - 1))  # ms of probing per row
    rate = 0.3 * hosts * 1000.0 / work / streams
    asked = Scenario(
        streams=tuple(StreamSpec(f"s{k}", rate, window_s) for k in range(streams)),
        hosts=(HostSpec(hosts),),
        matches=matches,
        seconds=5 * window_s,
        costs=Costs(probe_ms=100.0),
        events=60_000,
    )
    known = replace(LoadStatistics.of(asked), patience_s=asked.seconds)
    estimate = next(e for e in choose(known, hosts).estimates if e.strategy == "psp")
    outcome = simulate(asked, "psp")
    assert estimate.share == pytest.approx(1.0)
    assert outcome.processed >= 0.9 * outcome.offered
    assert outcome.results >= 0.8 * simulate(asked, "ctr").results
