"""The published claims, judged on series of several seeds: holds, does not hold, or is not shown.

A claim says that some differences are above 0.  It holds where each of them is so by more than its
spread over the seeds, and does not hold where one is below 0 by more than that; what lies within
the spread shows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log
from typing import Any, NamedTuple

Series = dict[str, list[list[float]]]
Runs = Sequence[dict[str, Series]]  # by seed, by name of the figure
Values = list[float]  # by seed

TINY = 1e-9
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
    """By how much, seed by seed.

    As a ratio, on a logarithmic scale: every seed has hosts and rates of its own, so that amounts
    differ more between seeds than between what is compared.
    """
    return [log(max(b, TINY) / max(a, TINY)) for a, b in zip(small, large, strict=True)]


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
    parts = (_hump, _throughput, _routing, _scaling, _crossings, _ring, _adaptation, _model)
    return [found for part in parts for found in part(series)]


def _hump(runs: Runs) -> list[Verdict]:
    """Section 3: throughput rises with the segment length, and falls again."""
    differences, told = [], []
    for key, line in at(runs, "diffusion-4").items():
        first, *inner, last = line.values()
        best = [max(values) for values in zip(*inner, strict=True)]
        differences += [less(first, best), less(last, best)]
        told.append(f"{key}: {', '.join(f'T={t:g} {said(v, 0)}' for t, v in line.items())}")
    return [Verdict("diffusion-4", "ATR has a hump over the segment length (section 3)",
                    verdict(differences), "results/s, " + "; ".join(told))]  # fmt: skip


def last(points: list[list[float]]) -> float:
    """Where a series ends."""
    return points[-1][1]


def _throughput(runs: Runs) -> list[Verdict]:
    found = []
    for name, window, ahead in (("diffusion-7", 60, "atr"), ("diffusion-8", 120, "ctr")):
        level, rows = of(runs, name, last), of(runs, f"{name}-rows", last)
        results = "results in 1200 s: " + ", ".join(f"{k} {said(v, 0)}" for k, v in level.items())
        exact = [level["atr"], level["ctr"]]
        for other in ("single", "random"):
            found.append(Verdict(
                name, f"W={window}: ATR and CTR find more than {other} (section 5)",
                verdict([less(level[other], each) for each in exact]),
                f"{results}; rows processed/s: {other} {said(rows[other], 0)}",
            ))  # fmt: skip
        behind = "ctr" if ahead == "atr" else "atr"
        found.append(Verdict(
            name, f"W={window}: {ahead.upper()} is ahead (section 5)",
            verdict([less(level[behind], level[ahead])]), results,
        ))  # fmt: skip
    return found


def _routing(runs: Runs) -> list[Verdict]:
    found = []
    for name in ("diffusion-9", "diffusion-10"):
        for key, worst in of(runs, name, peak).items():
            found.append(Verdict(
                name, f"routing a row with {key} takes tens of microseconds (section 5)",
                verdict([less(worst, [100.0] * len(worst))]), f"{said(worst)} us a row",
            ))  # fmt: skip
            table = of(runs, f"{name}-table", peak)[key]
            found.append(Verdict(
                name, f"what {key} remembers is several KB at most (section 5)",
                verdict([less(table, [10_000.0] * len(table))]), f"{said(table, 0)} bytes",
            ))  # fmt: skip
    return found


def _scaling(runs: Runs) -> list[Verdict]:
    found = []
    level, moved = at(runs, "diffusion-11"), at(runs, "diffusion-12")
    for key in ("atr", "ctr"):
        for other in ("groups", "random"):
            found.append(_everywhere(
                "diffusion-11", f"{other} reaches less than {key}", "results/s",
                {x: (level[other][x], level[key][x]) for x in level[key] if x >= 10},
            ))  # fmt: skip
    for key, plain in (("atr", "atr-fixed"), ("ctr", "ctr-random")):
        found.append(_everywhere(
            "diffusion-11", f"{plain} reaches less than {key}", "results/s",
            {x: (level[plain][x], level[key][x]) for x in level[key] if x >= 10},
        ))  # fmt: skip
        found.append(_everywhere(
            "diffusion-12", f"{plain} needs more bandwidth than {key}", "bytes per row",
            {x: (moved[key][x], moved[plain][x]) for x in moved[key] if x >= 10},
        ))  # fmt: skip
    return found


def _everywhere(
    figure: str, claim: str, unit: str, pairs: dict[float, tuple[Values, Values]]
) -> Verdict:
    """Whether the first is less than the second at every number of hosts."""
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
    """What sections 7 and 8 say of PSP, ATR and CTR over hosts."""
    figures = {letter: at(runs, f"ring-8{letter}") for letter in "abcdef"}
    best = {key: _shortest(line) for key, line in figures["a"].items()}
    fewest, most = min(figures["a"]["selectivity 0.1"]), max(figures["a"]["selectivity 0.1"])
    optima = "best number of hosts: " + ", ".join(f"{k} {said(v, 0)}" for k, v in best.items())
    inside = [[min(n - fewest, most - n) - 0.5 for n in each] for each in best.values()]
    copies = [figures["e"][f"{n} copies"][most] for n in (2, 5, 9)]
    kept = [figures["f"][f"{n} copies"][most] for n in (2, 5, 9)]
    return [
        Verdict("ring-8a", "response is best on some number of hosts, worse on more (8.2)",
                verdict(inside), f"{optima}; {_ends(figures['a'], 'ms')}"),
        Verdict("ring-8a", "with less selectivity more hosts are best (8.2)",
                verdict([less(best["selectivity 0.5"], best["selectivity 0.05"])]), optima),
        Verdict("ring-8a", "PSP answers faster than ATR and CTR (8.3)",
                verdict(_below(figures, "a", "ce")), "; ".join(_ends(figures[x], "ms")
                for x in "ace")),
        Verdict("ring-8b", "PSP keeps less state than ATR and CTR (8.3)",
                verdict(_below(figures, "b", "df")), "; ".join(_ends(figures[x], "rows")
                for x in "bdf")),
        Verdict("ring-8b", "state is the same on any number of hosts (8.2)",
                verdict(_same(figures["b"])), _ends(figures["b"], "rows")),
        Verdict("ring-8c", "ATR: response does not fall with more hosts (8.3)",
                verdict(_same(figures["c"])), _ends(figures["c"], "ms")),
        Verdict("ring-8d", "ATR: state grows with hosts (8.3)",
                verdict(_grows(figures["d"])), _ends(figures["d"], "rows")),
        Verdict("ring-8e", "CTR: response falls with more hosts (8.3)",
                verdict([[-v for v in each] for each in _grows(figures["e"])]),
                _ends(figures["e"], "ms")),
        Verdict("ring-8e", "CTR: more copies, longer response (8.3)",
                verdict([less(copies[0], copies[1]), less(copies[1], copies[2])]),
                f"ms on {most:.0f} hosts: " + ", ".join(map(said, copies))),
        Verdict("ring-8f", "CTR: state is the same on any number of hosts (8.3)",
                verdict(_same(figures["f"])), _ends(figures["f"], "rows")),
        Verdict("ring-8f", "CTR: state grows with copies (8.3)",
                verdict([less(kept[0], kept[1]), less(kept[1], kept[2])]),
                f"rows on {most:.0f} hosts: " + ", ".join(map(said, kept))),
    ]  # fmt: skip


def _below(
    figures: dict[str, dict[str, dict[float, Values]]], ring: str, others: str
) -> list[Values]:
    """By how much PSP is below every line of the others at the same selectivity."""
    mine = figures[ring]["selectivity 0.1"]
    lines = [line for letter in others for line in figures[letter].values()]
    return [less(mine[x], line[x]) for line in lines for x in line]


def _shortest(line: dict[float, Values]) -> Values:
    """Where a line is lowest, by seed."""
    return [min(line, key=lambda x: line[x][seed]) for seed in range(len(line[min(line)]))]


def _same(lines: dict[str, dict[float, Values]]) -> list[Values]:
    """By how much each line varies less than a tenth."""
    return [
        [1.1 * min(each) - max(each) for each in zip(*line.values(), strict=True)]
        for line in lines.values()
    ]


def _grows(lines: dict[str, dict[float, Values]]) -> list[Values]:
    """By how much each line of several hosts ends above where it begins."""
    return [less(line[min(line)], line[max(line)]) for line in lines.values() if len(line) > 1]


def _ends(lines: dict[str, dict[float, Values]], unit: str) -> str:
    ends = {key: list(line.values()) for key, line in lines.items()}
    told = (f"{key} {said(own[0], 0)} .. {said(own[-1], 0)}" for key, own in ends.items())
    return f"{unit} on fewest .. most hosts: " + "; ".join(told)


def _adaptation(runs: Runs) -> list[Verdict]:
    """Section 8.4: the second half is after the rates have doubled."""
    after, rows = of(runs, "ring-8g", late), of(runs, "ring-8h", late)
    told = ", ".join(f"{key} {said(v, 0)}" for key, v in after.items())
    fullest = ", ".join(f"{key} {said(v, 0)}" for key, v in rows.items())
    fixed = "no adaptation"
    return [
        Verdict(figure, f"{how} relocation when rates double: {what} (8.4)",
                verdict([less(values[how], values[fixed])]), text)
        for figure, what, values, text in (
            ("ring-8g", "the response is shorter", after, f"ms: {told}"),
            ("ring-8h", "the fullest host holds less", rows, f"rows: {fullest}"),
        )
        for how in ("aggressive", "passive")
    ]  # fmt: skip


def _model(runs: Runs) -> list[Verdict]:
    ratios = at(runs, "ring-model")
    near = [[0.5 - abs(r - 1) for r in values] for line in ratios.values() for values in
            line.values()]  # fmt: skip
    told = "; ".join(
        f"{key}: {', '.join(f'{x:.0f} streams {said(v, 2)}' for x, v in line.items())}"
        for key, line in ratios.items()
    )
    return [Verdict("ring-model", "the latency of the cost model is right within half (section 5)",
                    verdict(near), f"simulated / model, {told}")]  # fmt: skip
