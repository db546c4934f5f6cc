"""The published figures as simulations: each function returns its series for one seed.

A figure is ``{"x": label, "y": label, "series": {name: [[x, y], ...]}}``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from windjoin.diffusion.ring_cost import Probed, RingCosts, ring_latency
from windjoin.diffusion.scenario import Change, Costs, HostSpec, Scenario, StreamSpec
from windjoin.diffusion.simulator import Outcome, simulate

Figure = dict[str, Any]
EVENTS = 200_000
SECONDS, WARM_UP = 120.0, 60.0


def timed(outcome: Outcome, key: str) -> list[list[float]]:
    """A series of an outcome with its times."""
    values = outcome.series[key]
    return [[outcome.seconds * (at + 1) / len(values), value] for at, value in enumerate(values)]


def figure(x: str, y: str, series: dict[str, list[list[float]]]) -> Figure:
    """A figure with its labels."""
    return {"x": x, "y": y, "series": series}


PROFILED = (1.0, 5.0)  # segment lengths of ATR, of which the best counts
SHORT = 2.0  # of CTR, whose overhead does not depend on it
BATCH = 4  # rows that a host takes or sheds together; with 2 figures are the same within seeds
SHORT_ONES = (2.0, 5.0)  # where ATR's and CTR's best are compared
PROBE = Costs(probe_ms=0.0, call_ms=10.0)  # one probing takes as long whatever the host holds
ROWWISE = 0.1  # of chance, which deals rows out one by one
QUEUE = 20.0  # seconds of work that hosts let wait before they shed


def published(
    seed: int,
    count: int = 3,
    window: float = 30,
    sigma: float = 0.1,
    theta: float | None = None,
    hosts: int = 30,
    **changes: Any,
) -> Scenario:
    """Unlike hosts of 1000 to 5000 MIPS that shed, links of 100 to 1000 Mbps, 5 to 20 rows/s."""
    chance = random.Random(seed)
    speeds = [chance.uniform(1000, 5000) / 3000 for _ in range(30)][:hosts]
    links = [chance.uniform(100, 1000) for _ in range(30)][:hosts]
    specs = tuple(
        StreamSpec(f"s{k}", chance.uniform(5, 20), window, alternate=theta) for k in range(count)
    )
    base = Scenario(
        streams=specs,
        hosts=tuple(
            HostSpec(1, cpu=speed, network=speed, bandwidth_mbps=link)
            for speed, link in zip(speeds, links, strict=True)
        ),
        selectivity=sigma, seconds=SECONDS + WARM_UP, warm_up_s=WARM_UP, segment_s=SHORT,
        adapt_length=False, queue_s=QUEUE, events=EVENTS, sample_s=10, seed=seed, costs=PROBE,
        order="selectivity", rows_per_batch=BATCH,
    )  # fmt: skip
    return replace(base, **changes)


def profiled(
    scenario: Scenario, lengths: Sequence[float] = PROFILED, strategy: str = "atr"
) -> tuple[Outcome, float]:
    """A strategy at the best of the lengths that are tried, and that length."""
    runs = [(simulate(replace(scenario, segment_s=t), strategy), t) for t in lengths]
    return max(runs, key=lambda run: run[0].throughput)


def diffusion_4(seed: int) -> dict[str, Figure]:
    """ATR over the length of its segments, for two joins."""
    lengths = (0.25, 1.0, 5.0, 15.0)
    series = {
        f"W={window:.0f}": [
            [t, simulate(published(seed, window=window, segment_s=t), "atr").throughput]
            for t in lengths
        ]
        for window in (20.0, 50.0)
    }
    return {"diffusion-4": figure("segment length, s", "results/s", series)}


def diffusion_7_10(seed: int) -> dict[str, Figure]:
    """Results so far on six hosts that shed, over 1200 s; what routing a row took there."""
    found = {}
    for number, window in ((7, 60.0), (8, 120.0)):
        base = published(
            seed, window=window, sigma=0.02, hosts=6, seconds=1200.0, warm_up_s=0.0,
            sample_s=60.0,
        )  # fmt: skip
        atr, length = profiled(base, (5.0, 15.0))
        runs = {name: simulate(base, name) for name in ("single", "ctr")} | {"atr": atr}
        runs["random"] = simulate(replace(base, segment_s=ROWWISE), "random")
        found[f"diffusion-{number}"] = figure(
            "s", "results so far", {name: so_far(run) for name, run in runs.items()}
        )
        found[f"diffusion-{number}-rows"] = figure(
            "s", "rows processed/s",
            {name: [[run.seconds, run.processed]] for name, run in runs.items()},
        )  # fmt: skip
        rows = {"atr": length, "ctr": SHORT}
        mean = atr.offered / len(base.streams)
        found[f"diffusion-{number + 2}"] = figure(
            "hosts", "microseconds per row",
            {name: [[6.0, runs[name].route_us / (mean * t)]] for name, t in rows.items()},
        )  # fmt: skip
        found[f"diffusion-{number + 2}-table"] = figure(
            "hosts", "bytes of the routing table",
            {name: [[6.0, runs[name].routing_bytes]] for name in rows},
        )  # fmt: skip
    return found


def so_far(outcome: Outcome) -> list[list[float]]:
    """Results from the beginning to each time."""
    total, points = 0.0, []
    for at, rate in timed(outcome, "throughput"):
        total += rate * outcome.seconds / len(outcome.series["throughput"])
        points.append([at, total])
    return points


def diffusion_11_12(seed: int) -> dict[str, Figure]:
    """Four streams over hosts, against unoptimised forms, values and chance."""
    names = ("atr", "ctr", "atr-fixed", "ctr-random", "groups", "random")
    results: dict[str, list[list[float]]] = {name: [] for name in names}
    moved: dict[str, list[list[float]]] = {name: [] for name in names}
    for hosts in (1, 10, 20, 30):
        base = published(seed, count=4, hosts=hosts, hot_key=0.1)
        for name in names:
            length = {"atr-fixed": 5.0, "random": ROWWISE}.get(name, SHORT)
            run = profiled(base)[0] if name == "atr" else simulate(
                replace(base, segment_s=length), name
            )  # fmt: skip
            results[name].append([float(hosts), run.throughput])
            counted = max(run.processed * (run.seconds - WARM_UP), 1.0)
            moved[name].append([float(hosts), run.bytes_moved / counted])
    return {
        "diffusion-11": figure("hosts", "results/s", results),
        "diffusion-12": figure("hosts", "bytes moved per processed row", moved),
    }


Points = Sequence[tuple[float, Scenario]]


def diffusion_13(seed: int) -> dict[str, Figure]:
    """Over streams."""
    points = [(float(n), published(seed, count=n, window=20)) for n in range(2, 7)]
    return crossing("13", "streams", points)


def diffusion_14(seed: int) -> dict[str, Figure]:
    """Over windows."""
    points = [(float(w), published(seed, window=w)) for w in range(10, 60, 10)]
    return crossing("14", "window, s", points)


def diffusion_15(seed: int) -> dict[str, Figure]:
    """Over matches."""
    points = [(m, published(seed, sigma=m)) for m in (0.2, 0.4, 0.6, 0.8, 1.0)]
    return crossing("15", "selectivity", points)


def diffusion_16(seed: int) -> dict[str, Figure]:
    """Over bursts."""
    points = [(b, published(seed, theta=b)) for b in (0.0, 0.25, 0.5, 0.75, 1.0)]
    return crossing("16", "burst ratio", points)


def crossing(number: str, label: str, points: Points) -> dict[str, Figure]:
    """Throughput and overhead of ATR, in both orders of probing, and of CTR."""
    series: dict[str, dict[str, list[list[float]]]] = {"throughput": {}, "received_rows": {}}
    for x, scenario in points:
        runs = {
            "atr": profiled(replace(scenario, order="master"))[0],
            "atr, published order": profiled(scenario)[0],
            "ctr": profiled(scenario, SHORT_ONES, "ctr")[0],
        }
        for key, lines in series.items():
            for name, run in runs.items():
                lines.setdefault(name, []).append([x, float(getattr(run, key))])
    received = figure(label, "rows received", series["received_rows"])
    return {
        f"diffusion-{number}": figure(label, "results/s", series["throughput"]),
        f"diffusion-{number}-received": received,
    }


def ring_base(seed: int, hosts: int, **changes: Any) -> Scenario:
    """Windows of 10 s; a pair of pictures takes 0.02 ms, a message as long, a link 0.1 ms."""
    base = Scenario(
        streams=alike(3, 10.0), hosts=(HostSpec(hosts),), selectivity=0.1, seconds=60,
        warm_up_s=20, segment_s=0.25, ring_length=hosts, adapt_length=False, events=EVENTS,
        sample_s=5, seed=seed,
        costs=Costs(send_ms=0.02, receive_ms=0.02, probe_ms=0, compare_ms=0.02, link_ms=0.1),
    )  # fmt: skip
    return replace(base, **changes)


def alike(count: int, rate: float) -> tuple[StreamSpec, ...]:
    """Streams of 10 s that are alike."""
    return tuple(StreamSpec(f"s{k}", rate, 10.0) for k in range(count))


NODES = (4, 7, 10, 14, 19)


def ring_8a_f(seed: int) -> dict[str, Figure]:
    """Response time and state over hosts: PSP by selectivity, ATR by length, CTR by copies."""
    ways: dict[str, list[tuple[str, str, dict[str, Any]]]] = {
        "ab": [(f"selectivity {s}", "psp", {"selectivity": s}) for s in (0.05, 0.1, 0.5)],
        "cd": [(f"T = {t:.0f} s", "atr", {"segment_s": t}) for t in (10.0, 30.0, 50.0)],
        "ef": [
            (f"{copies} copies", "ctr", {"copies": copies, "segment_s": 1.0})
            for copies in (2, 5, 9)
        ],
    }
    found = {}
    for letters, lines in ways.items():
        response: dict[str, list[list[float]]] = {}
        state: dict[str, list[list[float]]] = {}
        for label, strategy, options in lines:
            for nodes in NODES:
                if nodes < 2 * options.get("copies", 0):
                    continue
                run = simulate(ring_base(seed, nodes, **options), strategy)
                response.setdefault(label, []).append([float(nodes), run.latency_mean_ms])
                state.setdefault(label, []).append([float(nodes), run.state_rows])
        found[f"ring-8{letters[0]}"] = figure("hosts", "response, ms", response)
        found[f"ring-8{letters[1]}"] = figure("hosts", "state, rows", state)
    return found


def ring_8g_h(seed: int) -> dict[str, Figure]:
    """All rates double half way, on ten hosts of which four make the ring at first."""
    doubled = tuple(Change(at_s=60, stream=f"s{k}", rate=20.0) for k in range(3))
    base = ring_base(seed, 10, changes=doubled, seconds=120, objective="latency", warm_up_s=0)
    runs = {
        "no adaptation": simulate(
            replace(base, adapt=False, smoothing=False, ring_length=4), "psp"
        ),
        "aggressive": simulate(replace(base, ring_length=None), "psp"),
        "passive": simulate(replace(base, ring_length=None, relocation="passive"), "psp"),
    }
    return {
        "ring-8g": figure(
            "s", "response, ms", {name: timed(run, "latency_ms") for name, run in runs.items()}
        ),
        "ring-8h": figure(
            "s", "rows of the fullest host",
            {name: timed(run, "state_rows_fullest") for name, run in runs.items()},
        ),
    }  # fmt: skip


def ring_model(seed: int) -> dict[str, Figure]:
    """Latency in the simulation against the cost model's, for 3 to 9 streams and three costs."""
    series: dict[str, list[list[float]]] = {}
    for compare in (0.1, 0.2, 0.4):
        for count in (3, 5, 7, 9):
            costs = Costs(
                send_ms=0.01, receive_ms=0.01, probe_ms=0, compare_ms=compare, link_ms=0.1
            )
            run = simulate(
                ring_base(
                    seed, 8, streams=alike(count, 2.0), selectivity=0.03, costs=costs,
                    segment_s=0.5,
                ), "psp",
            )  # fmt: skip
            met = [Probed(2.0, 10.0, 0.03)] * (count - 1)
            expected = ring_latency(RingCosts(0, 0, compare, 0.02, 0.1), met, 8)
            series.setdefault(f"{compare} ms a pair", []).append(
                [float(count), run.latency_mean_ms / expected]
            )
    return {"ring-model": figure("streams", "latency, simulated / model", series)}


ALL: tuple[Callable[[int], dict[str, Figure]], ...] = (
    diffusion_4, diffusion_7_10, ring_8a_f, ring_8g_h, ring_model, diffusion_11_12, diffusion_13,
    diffusion_14, diffusion_15, diffusion_16,
)  # fmt: skip
