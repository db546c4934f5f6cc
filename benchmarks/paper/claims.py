"""The published claims, judged on series of several seeds: holds, does not hold, or is not shown.

A claim says that some differences are above 0.  It holds where each of them is so by more than its
spread over the seeds, and does not hold where one is below 0 by more than that; what lies within
the spread shows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Series = dict[str, list[list[float]]]
Runs = Sequence[dict[str, Series]]  # by seed, by name of the figure
Values = list[float]  # by seed

HOLDS, FAILS, OPEN = "holds", "**does not hold**", "*not shown*"


class Verdict(NamedTuple):
    """What became of one claim."""

    figure: str
    claim: str
    verdict: str
    why: str


def verdict(differences: Sequence[Values]) -> str:
    """What differences, each with a value for every seed, say of a claim that all are above 0.

    >>> verdict([[2.0, 2.1, 1.9]]), verdict([[-2.0, -2.1]]), verdict([[0.1, 0.3], [9.0, 9.0]])
    ('holds', '**does not hold**', '*not shown*')
    """
    against = [mean(values) / max(spread(values), 1e-12) for values in differences]
    if all(each > 1 for each in against):
        return HOLDS
    return FAILS if any(each < -1 for each in against) else OPEN


def mean(values: Values) -> float:
    """Their middle."""
    return sum(values) / len(values)


def spread(values: Values) -> float:
    """How far the seeds are apart."""
    return max(values) - min(values)


def said(values: Values, places: int = 1) -> str:
    """A figure as it is told: its mean, and half of its spread."""
    return f"{mean(values):.{places}f} ± {spread(values) / 2:.{places}f}"


def less(small: Values, large: Values) -> Values:
    """By how much, seed by seed."""
    return [b - a for a, b in zip(small, large, strict=True)]


def late(points: list[list[float]]) -> float:
    """Mean of the second half of a series: after the windows have filled."""
    values = [y for _, y in points[len(points) // 2 :]]
    return sum(values) / len(values)


def peak(points: list[list[float]]) -> float:
    """The greatest of a series."""
    return max(y for _, y in points)


def of(runs: Runs, name: str, figure_of: Callable[[list[list[float]]], float]) -> dict[str, Values]:
    """For every line of a figure what a function makes of it, by seed."""
    return {key: [figure_of(run[name][key]) for run in runs] for key in runs[0][name]}


def at(runs: Runs, name: str) -> dict[str, dict[float, Values]]:
    """For every line of a figure and every x the values, by seed."""
    return {
        key: {x: [run[name][key][number][1] for run in runs] for number, (x, _) in enumerate(line)}
        for key, line in runs[0][name].items()
    }


def judge(runs: Sequence[dict[str, dict[str, Any]]]) -> list[Verdict]:
    """All verdicts, in the order of the figures; ``runs``: the figures of every seed."""
    series: Runs = [{name: one["series"] for name, one in figures.items()} for figures in runs]
    parts = (_throughput, _routing, _scaling, _crossings, _ring, _adaptation)
    return [found for part in parts for found in part(series)]


def _throughput(runs: Runs) -> list[Verdict]:
    found = []
    for name, window, ahead in (("diffusion-7", 60, "atr"), ("diffusion-8", 120, "ctr")):
        level, rows = of(runs, name, late), of(runs, f"{name}-rows", late)
        results = "results/s: " + ", ".join(f"{key} {said(v)}" for key, v in level.items())
        exact = [level["atr"], level["ctr"]]
        single = [less(level["single"], each) for each in exact]
        found.append(Verdict(name, f"W={window}: single < ATR and CTR in results",
                             verdict(single), results))  # fmt: skip
        between = [less(level["single"], level["random"])]
        between += [less(level["random"], each) for each in exact]
        found.append(Verdict(
            name, f"W={window}: single < random < ATR, CTR in results", verdict(between),
            f"{results}; least-loaded routing keeps partners apart, so random finds next to none "
            f"(rows processed/s: single {said(rows['single'], 0)}, "
            f"random {said(rows['random'], 0)})",
        ))  # fmt: skip
        other = "ctr" if ahead == "atr" else "atr"
        found.append(Verdict(
            name, f"W={window}: {ahead.upper()} is ahead",
            verdict([less(level[other], level[ahead])]),
            f"atr {said(level['atr'])}, ctr {said(level['ctr'])} results/s",
        ))  # fmt: skip
    return found


def _routing(runs: Runs) -> list[Verdict]:
    found = []
    for name in ("diffusion-9", "diffusion-10"):
        for key, worst in of(runs, name, peak).items():
            found.append(Verdict(
                name, f"routing a segment with {key} takes tens of microseconds at most",
                verdict([less(worst, [100.0] * len(worst))]),
                f"{said(worst, 0)} us at most, median over the borders of a run",
            ))  # fmt: skip
    return found


def _scaling(runs: Runs) -> list[Verdict]:
    found = []
    level, moved = at(runs, "diffusion-11"), at(runs, "diffusion-12")
    for key in ("atr", "ctr"):
        first = [max(pair) for pair in zip(level["atr"][1.0], level["ctr"][1.0], strict=True)]
        found.append(Verdict(
            "diffusion-11", f"{key} scales: at least half of linear from 1 to 24 hosts",
            verdict([less([12 * one for one in first], level[key][24.0])]),
            f"{said(first)} results/s on 1 host at best, {said(level[key][24.0])} on 24",
        ))  # fmt: skip
    for key, plain in (("atr", "atr-fixed"), ("ctr", "ctr-random")):
        found.append(_everywhere(
            "diffusion-11", f"{plain} reaches less than {key}", "results/s",
            {x: (level[plain][x], level[key][x]) for x in level[key] if x > 1},
        ))  # fmt: skip
        found.append(_everywhere(
            "diffusion-12", f"{plain} needs more bandwidth than {key}", "bytes per row",
            {x: (moved[key][x], moved[plain][x]) for x in moved[key] if x > 1},
        ))  # fmt: skip
    return found


def _everywhere(
    figure: str, claim: str, unit: str, pairs: dict[float, tuple[Values, Values]]
) -> Verdict:
    """Whether the first is less than the second at every number of hosts but one."""
    differences = {x: less(*pair) for x, pair in pairs.items()}
    shown = [f"{x:.0f}" for x, values in differences.items() if verdict([values]) == HOLDS]
    told = "; ".join(f"{x:.0f} hosts: {said(a)} against {said(b)}" for x, (a, b) in pairs.items())
    return Verdict(
        figure, f"{claim}, on {min(pairs):.0f} to {max(pairs):.0f} hosts",
        verdict(list(differences.values())),
        f"shown on {', '.join(shown) or 'no number of'} hosts; {unit} on {told}",
    )  # fmt: skip


def _crossings(runs: Runs) -> list[Verdict]:
    """What section 5 says of ATR and CTR; a difference is how far their ratio is from 1."""
    claims = (
        ("13", "ATR is better for 2-way and 3-way joins, CTR for larger numbers (section 5)",
         {2.0: "atr", 3.0: "atr", 4.0: "ctr", 5.0: "ctr", 6.0: "ctr"}),
        ("14", "ATR is better under small windows, CTR under large ones (section 5)",
         {10.0: "atr", 50.0: "ctr"}),
        ("15", "CTR is better under low selectivity, ATR under high (section 5)",
         {0.2: "ctr", 1.0: "atr"}),
        ("16", "CTR is better under bursty streams (section 5)",
         {0.5: "ctr", 0.75: "ctr", 1.0: "ctr"}),
    )  # fmt: skip
    found = []
    for number, claim, ahead in claims:
        for key, told in (("atr", ""), ("atr, published order", ", ATR in the published order")):
            ratio = _ratios(runs, f"diffusion-{number}", key)
            differences = [
                [(r - 1) * (1 if who == "ctr" else -1) for r in ratio[x]]
                for x, who in ahead.items()
            ]
            found.append(Verdict(
                f"diffusion-{number}", f"{claim}{told}", verdict(differences),
                "CTR / ATR in results: "
                + ", ".join(f"{x:g}: {said(q, 2)}" for x, q in ratio.items()),
            ))  # fmt: skip
    return found


def _ratios(runs: Runs, name: str, key: str) -> dict[float, Values]:
    """What CTR has of what ATR has, at every x."""
    lines = at(runs, name)
    return {
        x: [c / max(a, 1e-9) for a, c in zip(lines[key][x], lines["ctr"][x], strict=True)]
        for x in lines["ctr"]
    }


def _ring(runs: Runs) -> list[Verdict]:
    found = []
    for response, state in (("ring-8a", "ring-8b"), ("ring-8c", "ring-8d")):
        times, sizes = at(runs, response), at(runs, state)
        found.append(Verdict(
            response, "PSP answers faster than ATR and CTR at every number of hosts",
            verdict(_ahead(times)), _ends(times, "ms"),
        ))  # fmt: skip
        of_ring = list(zip(*sizes["psp"].values(), strict=True))
        same = [1.05 * min(each) - max(each) for each in of_ring]
        found.append(Verdict(
            state, "PSP keeps least state, the same for any number of hosts",
            verdict([same, *_ahead(sizes)]), _ends(sizes, "rows"),
        ))  # fmt: skip
    return found


def _ahead(lines: dict[str, dict[float, Values]]) -> list[Values]:
    """By how much PSP is below the others, at every x."""
    return [less(lines["psp"][x], lines[key][x]) for key in ("atr", "ctr") for x in lines["psp"]]


def _ends(lines: dict[str, dict[float, Values]], unit: str) -> str:
    ends = {key: list(line.values()) for key, line in lines.items()}
    told = (f"{key} {said(own[0], 0)} .. {said(own[-1], 0)}" for key, own in ends.items())
    return f"{unit} on fewest .. most hosts: " + "; ".join(told)


def _adaptation(runs: Runs) -> list[Verdict]:
    fixed, grown = "fixed slices", "smoothing, 5 hosts join, aggressive"
    passive = "5 hosts join, passive"
    fullest, after, even = (
        of(runs, "ring-8f", peak),
        of(runs, "ring-8e", late),
        of(runs, "ring-8g", late),
    )
    return [
        Verdict("ring-8f", "smoothing bounds the fullest host when the rate doubles",
                verdict([less(fullest["smoothing"], fullest[fixed])]),
                f"{said(fullest['smoothing'], 0)} rows against {said(fullest[fixed], 0)}"),
        Verdict("ring-8e", "hosts that join (aggressive) bring the response time down",
                verdict([less(after[grown], after[fixed])]),
                f"{said(after[grown], 0)} ms against {said(after[fixed], 0)}"),
        Verdict("ring-8e", "passive relocation helps as well, only later",
                verdict([less(after[grown], after[passive]), less(after[passive], after[fixed])]),
                f"{said(after[passive], 0)} ms, aggressive {said(after[grown], 0)}, "
                f"none {said(after[fixed], 0)}"),
        Verdict("ring-8g", "hosts that join bring the load of the busiest host down",
                verdict([less(even[grown], even[fixed])]),
                f"{said(even[grown], 2)} against {said(even[fixed], 2)}"),
    ]  # fmt: skip
