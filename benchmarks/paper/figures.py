"""The published figures as simulations: each function returns its series for one seed.

A figure is ``{"x": label, "y": label, "series": {name: [[x, y], ...]}}``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from windjoin.diffusion.scenario import Change, Costs, HostSpec, Scenario, StreamSpec
from windjoin.diffusion.simulator import Outcome, simulate, with_hosts

Figure = dict[str, Any]
EVENTS = 400_000
RATE = 340.0
ROUTED = ("atr", "ctr", "atr-fixed", "ctr-random")


def streams(count: int, rate: float, window: float, burst: float = 0.0) -> tuple[StreamSpec, ...]:
    """Streams that are alike."""
    return tuple(StreamSpec(f"s{k}", rate, window, burst) for k in range(count))


def diffusion_base(seed: int, **changes: Any) -> Scenario:
    """Three streams on twenty hosts: sends and receives 1 ms, probing 10 ms.

    A row makes 19.6 ms of work without overhead, so the rate is what twenty hosts could just do.
    """
    base = Scenario(
        streams=streams(3, RATE, 60), hosts=(HostSpec(20),), matches=0.8, seconds=300,
        segment_s=5, events=EVENTS, sample_s=10, seed=seed,
    )  # fmt: skip
    return replace(base, **changes)


def over_time(scenario: Scenario, names: Iterable[str], key: str) -> dict[str, list[list[float]]]:
    """One series of the outcome per strategy."""
    return {name: timed(simulate(scenario, name), key) for name in names}


def timed(outcome: Outcome, key: str) -> list[list[float]]:
    """A series of an outcome with its times."""
    values = outcome.series[key]
    return [[outcome.seconds * (at + 1) / len(values), value] for at, value in enumerate(values)]


def sweep(
    scenarios: Sequence[tuple[float, Scenario]], names: Iterable[str], keys: Sequence[str]
) -> dict[str, dict[str, list[list[float]]]]:
    """Figures of merit over a parameter: ``{key: {strategy: [[x, y], ...]}}``."""
    found: dict[str, dict[str, list[list[float]]]] = {key: {} for key in keys}
    for name in names:
        for x, scenario in scenarios:
            outcome = simulate(scenario, name)
            for key in keys:
                found[key].setdefault(name, []).append([x, float(getattr(outcome, key))])
    return found


def figure(x: str, y: str, series: dict[str, list[list[float]]]) -> Figure:
    """A figure with its labels."""
    return {"x": x, "y": y, "series": series}


def diffusion_7_8(seed: int) -> dict[str, Figure]:
    """Throughput over time for windows of 60 s and 120 s."""
    found = {}
    for number, window in ((7, 60.0), (8, 120.0)):
        scenario = diffusion_base(seed, streams=streams(3, RATE, window))
        runs = {name: simulate(scenario, name) for name in ("single", "random", "atr", "ctr")}
        found[f"diffusion-{number}"] = figure(
            "s", "results/s", {name: timed(run, "throughput") for name, run in runs.items()}
        )
        found[f"diffusion-{number}-rows"] = figure(
            "s", "rows processed/s",
            {name: [[run.seconds, run.processed]] for name, run in runs.items()},
        )  # fmt: skip
    return found


def diffusion_9_10(seed: int) -> dict[str, Figure]:
    """Real time of routing a segment, over hosts and over window length."""
    hosts = [
        (float(n), with_hosts(diffusion_base(seed, seconds=200), n)) for n in (4, 8, 16, 32, 64)
    ]
    windows = [
        (w, diffusion_base(seed, seconds=200, streams=streams(3, 10, w)))
        for w in (10.0, 50.0, 150.0)
    ]
    over_hosts = sweep(hosts, ("atr", "ctr"), ["route_us"])["route_us"]
    over_windows = sweep(windows, ("atr", "ctr"), ["route_us"])["route_us"]
    return {
        "diffusion-9": figure("hosts", "microseconds per segment", over_hosts),
        "diffusion-10": figure("window, s", "microseconds per segment", over_windows),
    }


def diffusion_11_12(seed: int) -> dict[str, Figure]:
    """Throughput and bandwidth over hosts, one stream slow and one fast, for 24 hosts together."""
    unlike = tuple(StreamSpec(f"s{k}", rate, 30) for k, rate in enumerate((120.0, 240.0, 840.0)))
    scenario = diffusion_base(seed, streams=unlike, seconds=200)
    hosts = [(float(n), with_hosts(scenario, n)) for n in (1, 2, 4, 8, 16, 24)]
    found = sweep(hosts, ROUTED, ["throughput", "bytes_moved", "processed"])
    per_row = {
        name: [
            [x, y / max(done * scenario.seconds, 1.0)]
            for (x, y), (_, done) in zip(points, found["processed"][name], strict=True)
        ]
        for name, points in found["bytes_moved"].items()
    }
    return {
        "diffusion-11": figure("hosts", "results/s", found["throughput"]),
        "diffusion-12": figure("hosts", "bytes moved per processed row", per_row),
    }


PROFILED = (5.0, 10.0, 20.0)  # segment lengths of ATR, of which the best counts
SHORT = 2.0  # of CTR, whose overhead does not depend on it


def published(
    seed: int, count: int = 3, window: float = 30, sigma: float = 0.1, theta: float | None = None
) -> Scenario:
    """Thirty unlike hosts of 1000 to 5000 MIPS, links of 100 to 1000 Mbps, 5 to 20 rows/s."""
    chance = random.Random(seed)
    hosts = tuple(
        HostSpec(1, cpu=chance.uniform(1000, 5000) / 3000, network=chance.uniform(100, 1000) / 550)
        for _ in range(30)
    )
    specs = tuple(
        StreamSpec(f"s{k}", chance.uniform(5, 20), window, alternate=theta) for k in range(count)
    )
    return Scenario(
        streams=specs, hosts=hosts, selectivity=sigma, seconds=300, segment_s=SHORT,
        adapt_length=False, events=EVENTS // 4, sample_s=10, seed=seed,
    )  # fmt: skip


def profiled(scenario: Scenario) -> tuple[Outcome, float]:
    """ATR at the best of the lengths that are tried, and that length."""
    runs = [(simulate(replace(scenario, segment_s=t), "atr"), t) for t in PROFILED]
    return max(runs, key=lambda run: run[0].throughput)


def diffusion_13_16(seed: int) -> dict[str, Figure]:
    """Throughput and overhead over streams, windows, selectivity and burstiness, as published."""
    sweeps: dict[str, tuple[str, list[tuple[float, Scenario]]]] = {
        "13": ("streams", [(float(n), published(seed, count=n, window=20)) for n in range(2, 7)]),
        "14": ("window, s", [(float(w), published(seed, window=w)) for w in range(10, 60, 10)]),
        "15": (
            "selectivity",
            [(m, published(seed, sigma=m)) for m in (0.2, 0.4, 0.6, 0.8, 1.0)],
        ),
        "16": ("burst ratio", [(b, published(seed, theta=b)) for b in (0.0, 0.25, 0.5, 0.75, 1.0)]),
    }
    found = {}
    for number, (label, scenarios) in sweeps.items():
        series: dict[str, dict[str, list[list[float]]]] = {"throughput": {}, "received_rows": {}}
        for x, scenario in scenarios:
            best, length = profiled(scenario)
            theirs = replace(scenario, segment_s=length, order="selectivity")
            runs = {
                "atr": best,
                "atr, published order": simulate(theirs, "atr"),
                "ctr": simulate(scenario, "ctr"),
            }
            for key, lines in series.items():
                for name, run in runs.items():
                    lines.setdefault(name, []).append([x, float(getattr(run, key))])
        found[f"diffusion-{number}"] = figure(label, "results/s", series["throughput"])
        found[f"diffusion-{number}-received"] = figure(
            label, "rows received", series["received_rows"]
        )
    return found


def ring_base(seed: int, rate: float, **changes: Any) -> Scenario:
    """Three streams with a predicate of 5 ms per pair: comparing outweighs sending."""
    base = Scenario(
        streams=streams(3, rate, 30), hosts=(HostSpec(10),), selectivity=0.006, seconds=240,
        segment_s=5, events=EVENTS, sample_s=10, seed=seed,
        costs=Costs(send_ms=0.5, receive_ms=0.5, probe_ms=0, compare_ms=2.0, link_ms=1.0),
    )  # fmt: skip
    return replace(base, **changes)


def ring_8a_d(seed: int) -> dict[str, Figure]:
    """Response time and state over hosts, at a moderate and at a high rate."""
    found = {}
    for letters, rate in (("ab", 3.0), ("cd", 5.0)):
        hosts = [(float(n), with_hosts(ring_base(seed, rate), n)) for n in (4, 7, 10, 13, 16, 19)]
        both = sweep(hosts, ("psp", "atr", "ctr"), ["latency_mean_ms", "state_rows"])
        found[f"ring-8{letters[0]}"] = figure("hosts", "response, ms", both["latency_mean_ms"])
        found[f"ring-8{letters[1]}"] = figure("hosts", "state, rows", both["state_rows"])
    return found


def ring_8e_h(seed: int) -> dict[str, Figure]:
    """All rates double after 80 s: without and with adaptation."""
    doubled = tuple(Change(at_s=80, stream=f"s{k}", rate=4.5) for k in range(3))
    base = ring_base(seed, 2.25, changes=doubled)
    grown = (*doubled, Change(at_s=90, add_hosts=5))
    runs = {
        "fixed slices": simulate(replace(base, smoothing=False), "psp"),
        "smoothing": simulate(base, "psp"),
        "smoothing, 5 hosts join, aggressive": simulate(replace(base, changes=grown), "psp"),
        "5 hosts join, passive": simulate(
            replace(base, changes=grown, smoothing=False, relocation="passive"), "psp"
        ),
    }
    keys = {"e": "latency_ms", "f": "state_rows_fullest", "g": "load_peak", "h": "throughput"}
    labels = {"e": "response, ms", "f": "state of the fullest host, rows",
              "g": "load of the busiest host", "h": "results/s"}  # fmt: skip
    return {
        f"ring-8{letter}": figure(
            "s", labels[letter], {name: timed(run, key) for name, run in runs.items()}
        )
        for letter, key in keys.items()
    }


ALL: tuple[Callable[[int], dict[str, Figure]], ...] = (
    diffusion_7_8, diffusion_9_10, diffusion_11_12, diffusion_13_16, ring_8a_d, ring_8e_h,
)  # fmt: skip
