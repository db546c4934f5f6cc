"""The published claims, judged on the series: holds, or does not hold, with the figures."""

from __future__ import annotations

from typing import Any, NamedTuple

Series = dict[str, list[list[float]]]


class Verdict(NamedTuple):
    """What became of one claim."""

    figure: str
    claim: str
    holds: bool
    why: str


def late(points: list[list[float]]) -> float:
    """Mean of the second half of a series: after the windows have filled."""
    values = [y for _, y in points[len(points) // 2 :]]
    return sum(values) / len(values)


def judge(figures: dict[str, dict[str, Any]]) -> list[Verdict]:
    """All verdicts, in the order of the figures."""
    series = {name: figure["series"] for name, figure in figures.items()}
    return [
        *_throughput(series), *_routing(series), *_scaling(series), *_crossings(series),
        *_ring(series), *_adaptation(series),
    ]  # fmt: skip


def _throughput(series: dict[str, Series]) -> list[Verdict]:
    found = []
    for name, window, ahead in (("diffusion-7", 60, "atr"), ("diffusion-8", 120, "ctr")):
        level = {key: late(points) for key, points in series[name].items()}
        rows = {key: late(points) for key, points in series[f"{name}-rows"].items()}
        said = ", ".join(f"{key} {value:.1f}" for key, value in level.items())
        exact = min(level["atr"], level["ctr"])
        found.append(Verdict(name, f"W={window}: single < ATR and CTR in results",
                             level["single"] < exact, f"results/s: {said}"))  # fmt: skip
        found.append(Verdict(
            name, f"W={window}: single < random < ATR, CTR in results",
            level["single"] < level["random"] < exact,
            f"results/s: {said}; least-loaded routing keeps partners apart, so random finds next "
            f"to none (rows processed/s: single {rows['single']:.0f}, random {rows['random']:.0f})",
        ))  # fmt: skip
        other = "ctr" if ahead == "atr" else "atr"
        found.append(Verdict(
            name, f"W={window}: {ahead.upper()} is ahead", level[ahead] > 1.01 * level[other],
            f"atr {level['atr']:.1f}, ctr {level['ctr']:.1f} results/s",
        ))  # fmt: skip
    return found


def _routing(series: dict[str, Series]) -> list[Verdict]:
    found = []
    for name in ("diffusion-9", "diffusion-10"):
        for key, points in series[name].items():
            worst = max(y for _, y in points)
            found.append(Verdict(
                name, f"routing a segment with {key} takes tens of microseconds at most",
                worst < 100, f"{worst:.0f} us at most, median over the borders of a run",
            ))  # fmt: skip
    return found


def _scaling(series: dict[str, Series]) -> list[Verdict]:
    found = []
    level = {key: dict(map(tuple, points)) for key, points in series["diffusion-11"].items()}
    for key in ("atr", "ctr"):
        first, last = max(level["atr"][1.0], level["ctr"][1.0]), level[key][24.0]
        found.append(Verdict(
            "diffusion-11", f"{key} scales: at least half of linear from 1 to 24 hosts",
            last >= 12 * first, f"{first:.1f} results/s on 1 host at best, {last:.1f} on 24",
        ))  # fmt: skip
    for key, plain in (("atr", "atr-fixed"), ("ctr", "ctr-random")):
        found.append(Verdict(
            "diffusion-11", f"{plain} reaches less than {key}",
            level[plain][24.0] < level[key][24.0],
            f"{level[plain][24.0]:.1f} against {level[key][24.0]:.1f} results/s on 24 hosts",
        ))  # fmt: skip
        bytes_moved = {k: p[-1][1] for k, p in series["diffusion-12"].items()}
        found.append(Verdict(
            "diffusion-12", f"{plain} needs more bandwidth than {key}",
            bytes_moved[plain] > bytes_moved[key],
            f"{bytes_moved[plain]:.0f} against {bytes_moved[key]:.0f} bytes per row on 24 hosts",
        ))  # fmt: skip
    return found


def _crossings(series: dict[str, Series]) -> list[Verdict]:
    claims = (
        ("13", "more streams favour ATR: partial results multiply", -1),
        ("14", "longer windows favour CTR: ATR replicates windows", 1),
        ("15", "more matches favour ATR: CTR sends partial results", -1),
    )
    found = []
    for number, claim, sign in claims:
        points = series[f"diffusion-{number}"]
        received = series[f"diffusion-{number}-received"]
        ratio = [c[1] / a[1] for a, c in zip(points["atr"], points["ctr"], strict=True)]
        cost = [c[1] / a[1] for a, c in zip(received["atr"], received["ctr"], strict=True)]
        said = ", ".join(f"{r:.2f}" for r in ratio)
        costs = ", ".join(f"{r:.2f}" for r in cost)
        found.append(Verdict(
            f"diffusion-{number}", f"{claim} (throughput)", sign * (ratio[-1] - ratio[0]) > 0,
            f"CTR / ATR in results: {said}",
        ))  # fmt: skip
        found.append(Verdict(
            f"diffusion-{number}", f"{claim} (overhead)", sign * (cost[0] - cost[-1]) > 0,
            f"CTR / ATR in rows received: {costs}",
        ))  # fmt: skip
    burst = series["diffusion-16"]
    ratio = [c[1] / a[1] for a, c in zip(burst["atr"], burst["ctr"], strict=True)]
    found.append(Verdict(
        "diffusion-16", "ATR and CTR cross as burstiness grows", min(ratio) < 1 < max(ratio),
        "CTR / ATR in results: " + ", ".join(f"{r:.2f}" for r in ratio)
        + f"; the strongest bursts leave {burst['atr'][-1][1] / burst['atr'][0][1]:.0%} (ATR) and "
        f"{burst['ctr'][-1][1] / burst['ctr'][0][1]:.0%} (CTR) of the throughput",
    ))  # fmt: skip
    return found


def _ring(series: dict[str, Series]) -> list[Verdict]:
    found = []
    for response, state in (("ring-8a", "ring-8b"), ("ring-8c", "ring-8d")):
        times = {key: [y for _, y in points] for key, points in series[response].items()}
        sizes = {key: [y for _, y in points] for key, points in series[state].items()}
        found.append(Verdict(
            response, "PSP answers faster than ATR and CTR at every number of hosts",
            all(p < min(a, c) for p, a, c in zip(times["psp"], times["atr"], times["ctr"],
                                                 strict=True)),
            "; ".join(f"{key} {values[0]:.0f}..{values[-1]:.0f} ms"
                      for key, values in times.items()),
        ))  # fmt: skip
        found.append(Verdict(
            state, "PSP keeps least state, the same for any number of hosts",
            max(sizes["psp"]) < 1.05 * min(sizes["psp"])
            and all(p < min(a, c) for p, a, c in zip(sizes["psp"], sizes["atr"], sizes["ctr"],
                                                     strict=True)),
            "; ".join(f"{key} {values[0]:.0f}..{values[-1]:.0f} rows"
                      for key, values in sizes.items()),
        ))  # fmt: skip
    return found


def _adaptation(series: dict[str, Series]) -> list[Verdict]:
    fixed, grown = "fixed slices", "smoothing, 5 hosts join, aggressive"
    peak = {key: max(y for _, y in points) for key, points in series["ring-8f"].items()}
    after = {key: late(points) for key, points in series["ring-8e"].items()}
    even = {key: late(points) for key, points in series["ring-8g"].items()}
    return [
        Verdict("ring-8f", "smoothing bounds the fullest host when the rate doubles",
                peak["smoothing"] < peak[fixed],
                f"{peak['smoothing']:.0f} rows against {peak[fixed]:.0f}"),
        Verdict("ring-8e", "hosts that join (aggressive) bring the response time down",
                after[grown] < after[fixed],
                f"{after[grown]:.0f} ms against {after[fixed]:.0f}"),
        Verdict("ring-8e", "passive relocation helps as well, only later",
                after[grown] <= after["5 hosts join, passive"] < after[fixed],
                f"{after['5 hosts join, passive']:.0f} ms, aggressive {after[grown]:.0f}, "
                f"none {after[fixed]:.0f}"),
        Verdict("ring-8g", "hosts that join bring the load of the busiest host down",
                even[grown] < even[fixed], f"{even[grown]:.2f} against {even[fixed]:.2f}"),
    ]  # fmt: skip
