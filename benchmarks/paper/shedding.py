"""Regenerate the published figures 2 to 9 of load shedding: data, plots, claims.

python benchmarks/paper/shedding.py [--seeds 10] [--out benchmarks/paper/results]

Figures come from sessions of the package with the published streams; `comparisons_per_s` stands for
the published machine, so they are the same everywhere.  Indexes, the right half of figure 9, are
those of ``inverted.py``, and timed for real.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import inverted
import windjoin as wj
from claims import Values, Verdict, less, said, verdict
from run import draw, table
from shedding_streams import Outcome, Setting, gains_there_are, play

Figure = dict[str, Any]
DROP = {"policy": "drop"}
RATE = {"policy": "partial"}  # rate adaptation alone: the newest part of the window
TIME = {"directions": False}
ALL: dict[str, Any] = {}
WAYS = {
    "random drop": DROP,
    "rate": RATE,
    "rate and time": TIME,
    "rate, time and direction": ALL,
}
STEADY = ((12, 100), (33, 500))  # seconds, rows a second


def figure(x: str, y: str, series: dict[str, list[list[float]]]) -> Figure:
    """A figure with its labels."""
    return {"x": x, "y": y, "series": series}


def over_time(values: Sequence[float], each: int = 3) -> list[list[float]]:
    """Means over some seconds."""
    return [
        [at + each / 2, sum(values[at : at + each]) / len(values[at : at + each])]
        for at in range(0, len(values), each)
    ]


def match_probability(seed: int) -> dict[str, Figure]:
    """Figure 2: where in the window matches are, as rows that were joined fully tell."""
    series = {}
    for skew in (0.6, 0.8):
        setting = Setting(skew, phases=((40, 150),))
        found = play(seed, setting, comparisons_per_s=1e12, sample=0.5)
        worth = found.metrics["streams"]["a"]["directions"]["b"]["worth"]
        points = sorted([one["from"], one["worth"]] for one in worth if 0 <= one["from"] < 20)
        series[f"kappa {skew}"] = points
    return {"shedding-2": figure("age, s", "results per comparison", series)}


def rate_adaptation(seed: int) -> dict[str, Figure]:
    """Figures 3 and 4: the fraction follows the rates; results against random drop."""
    setting = Setting(shifted=False)
    adapted, dropped = play(seed, setting, **RATE), play(seed, setting, **DROP)
    rates = [float(rate) for seconds, rate in setting.phases for _ in range(seconds)]
    return {
        "shedding-3": figure("s", "fraction r; rows/s per 500", {
            "r": over_time(adapted.fractions["a"]),
            "rows/s / 500": over_time([rate / 500 for rate in rates]),
        }),
        "shedding-4": figure("s", "results/s", {
            "rate adaptation": over_time([float(n) for n in adapted.results]),
            "random drop": over_time([float(n) for n in dropped.results]),
        }),
    }  # fmt: skip


def by_skew(seed: int) -> dict[str, Figure]:
    """Figure 5: rate adaptation over random drop, by skew and window."""
    series: dict[str, list[list[float]]] = {}
    for window in (10, 20):
        for skew in (0.6, 0.8, 1.0):
            setting = Setting(skew, window, shifted=False, phases=STEADY)
            for name, way in (("rate adaptation", RATE), ("random drop", DROP)):
                results = play(seed, setting, **way).rate(20, 45)
                series.setdefault(f"{name}, {window} s", []).append([skew, results])
    return {"shedding-5": figure("kappa", "results/s", series)}


def directions(seed: int) -> dict[str, Figure]:
    """Figures 6 and 7: fractions part by direction; what each adaptation brings."""
    runs = {name: play(seed, Setting(), **way) for name, way in WAYS.items()}
    last = runs["rate, time and direction"]
    return {
        "shedding-6": figure(
            "s", "fraction", {f"r of {k}": over_time(v) for k, v in last.fractions.items()}
        ),
        "shedding-7": figure("s", "results/s", {
            name: over_time([float(n) for n in run.results]) for name, run in runs.items()
        }),
    }  # fmt: skip


def adaptations_by_skew(seed: int) -> dict[str, Figure]:
    """Figure 8: the same by skew, with a threshold of 4."""
    series: dict[str, list[list[float]]] = {}
    for skew in (0.6, 0.8, 1.0):
        setting = Setting(skew, threshold=4, phases=STEADY)
        for name, way in WAYS.items():
            if way is not DROP:
                series.setdefault(name, []).append([skew, play(seed, setting, **way).rate(20, 45)])
    return {"shedding-8": figure("kappa", "results/s", series)}


def equality(seed: int) -> dict[str, Figure]:
    """As figure 7, for equality over 5000 values: results by skew."""
    series: dict[str, list[list[float]]] = {}
    for skew in (0.6, 0.8, 1.0):
        setting = Setting(skew, phases=STEADY, equality=True)
        for name, way in WAYS.items():
            series.setdefault(name, []).append([skew, play(seed, setting, **way).rate(20, 45)])
    return {"shedding-7-equality": figure("kappa", "results/s", series)}


def window_sizes(seed: int) -> dict[str, Figure]:
    """Figure 9, without an index: by the length of basic windows; 40: none, the newest part."""
    series: dict[str, list[list[float]]] = {}
    for skew in (0.6, 0.8):
        setting = Setting(skew, phases=STEADY)
        for length in (0.2, 1.0, 5.0, 10.0, 20.0):
            found = play(seed, setting, basic_window=f"{int(1000 * length)}ms").rate(20, 45)
            series.setdefault(f"kappa {skew}", []).append([length, found])
        none = play(seed, setting, **RATE).rate(20, 45)
        series[f"kappa {skew}"].append([40.0, none])
    return {"shedding-9": figure("basic window, s (40: none)", "results/s", series)}


MAKERS: tuple[Callable[[int], dict[str, Figure]], ...] = (
    match_probability, rate_adaptation, by_skew, directions, adaptations_by_skew, window_sizes,
    equality, inverted.indexed_window_sizes,
)  # fmt: skip


def between(points: list[list[float]], begin: float, end: float) -> float:
    """Mean of a series over a stretch of x."""
    values = [y for x, y in points if begin <= x < end]
    return sum(values) / len(values)


def stretch(runs: Any, name: str, key: str, begin: float, end: float) -> Values:
    """That of one line, by seed."""
    return [between(run[name]["series"][key], begin, end) for run in runs]


def gain(better: Values, worse: Values) -> Values:
    """By which share more, seed by seed."""
    return [a / b - 1 for a, b in zip(better, worse, strict=True)]


def at(runs: Any, name: str, key: str, x: float) -> Values:
    """One point of a line, by seed."""
    return [next(y for at, y in run[name]["series"][key] if at == x) for run in runs]


def judge(runs: Any) -> list[Verdict]:
    """All claims, on figures of every seed."""
    return [
        *_rates(runs), *_by_skew(runs), *_ways(runs), *_equality(runs), *_lengths(runs),
        *_indexes(runs),
    ]  # fmt: skip


def _rates(runs: Any) -> list[Verdict]:
    calm, burst, less_so = (
        stretch(runs, "shedding-3", "r", a, b) for a, b in ((40, 60), (65, 75), (85, 105))
    )
    found = [
        Verdict("shedding-3", "r is about 1 at 100 rows/s, falls at 500, less so at 300",
                verdict([less(burst, less_so), less(less_so, calm)]),
                f"r {said(calm, 2)} at 100, {said(burst, 2)} at 500, {said(less_so, 2)} at 300"),
    ]  # fmt: skip
    for rate, begin, end, claimed in ((500, 60, 75, 1.0), (300, 75, 105, 0.5)):
        one, other = (
            stretch(runs, "shedding-4", key, begin, end)
            for key in ("rate adaptation", "random drop")
        )
        more = gain(one, other)
        found.append(Verdict(
            "shedding-4", f"rate adaptation gives {claimed:.0%} more at {rate} rows/s",
            verdict([[each - claimed for each in more]]),
            f"{said([100 * each for each in more], 0)} % more",
        ))  # fmt: skip
        found.append(Verdict(
            "shedding-4", f"rate adaptation gives more at {rate} rows/s", verdict([more]),
            f"{said(one, 0)} against {said(other, 0)} results/s",
        ))  # fmt: skip
    return found


def _by_skew(runs: Any) -> list[Verdict]:
    gains = {
        (window, skew): gain(
            at(runs, "shedding-5", f"rate adaptation, {window} s", skew),
            at(runs, "shedding-5", f"random drop, {window} s", skew),
        )
        for window in (10, 20)
        for skew in (0.6, 0.8, 1.0)
    }
    told = "; ".join(
        f"{window} s, kappa {skew}: {said([100 * g for g in values], 0)} %"
        for (window, skew), values in gains.items()
    )
    return [
        Verdict("shedding-5", "the gain grows with skew",
                verdict([less(gains[w, 0.6], gains[w, 1.0]) for w in (10, 20)]), told),
        Verdict("shedding-5", "the gain grows with the window",
                verdict([less(gains[10, s], gains[20, s]) for s in (0.6, 0.8, 1.0)]), told),
    ]  # fmt: skip


def _ways(runs: Any) -> list[Verdict]:
    names = list(WAYS)[1:]
    useless, useful = (stretch(runs, "shedding-6", f"r of {key}", 60, 75) for key in "ba")
    found = [
        Verdict("shedding-6", "the fraction of the useless direction falls first",
                verdict([less(useless, useful)]),
                f"at 500 rows/s r of a, whose rows find matches, {said(useful, 2)}; of b "
                f"{said(useless, 2)}"),
    ]  # fmt: skip
    rate, timed, both = (stretch(runs, "shedding-7", name, 60, 105) for name in names)
    for claim, one, other, claimed in (
        ("time correlation gives 50 % more than rate adaptation alone", timed, rate, 0.5),
        ("join direction adaptation gives 40 % more on top", both, timed, 0.4),
    ):
        more = gain(one, other)
        found.append(Verdict(
            "shedding-7", claim, verdict([[each - claimed for each in more]]),
            f"{said([100 * each for each in more], 0)} % more: {said(one, 0)} against "
            f"{said(other, 0)} results/s",
        ))  # fmt: skip
        found.append(Verdict("shedding-7", claim.split(" gives")[0] + " gives more",
                             verdict([more]), "as above"))  # fmt: skip
    there = {
        (skew, r): gains_there_are(skew, r) for skew in (0.4, 0.6, 0.8, 1.0) for r in (0.38, 0.2)
    }
    found.append(Verdict(
        "shedding-7", "the streams hold 50 % for time correlation, and 40 % on top for directions",
        verdict([[max(min(timed - 0.5, way - 0.4) for timed, way in there.values())]]),
        "for who knows the worth of every basic window: " + "; ".join(
            f"kappa {skew}, r {r}: {100 * timed:.0f} % and {100 * way:.0f} %"
            for (skew, r), (timed, way) in there.items()
        ),
    ))  # fmt: skip
    grown = {
        name: gain(at(runs, "shedding-8", name, 1.0), at(runs, "shedding-8", name, 0.6))
        for name in names
    }
    over = {
        skew: [
            gain(at(runs, "shedding-8", name, skew), at(runs, "shedding-8", names[0], skew))
            for name in names[1:]
        ]
        for skew in (0.6, 1.0)
    }
    told = "; ".join(f"{name}: {said([100 * g for g in v], 0)} %" for name, v in grown.items())
    found.append(Verdict(
        "shedding-8", "what time and direction adaptation bring on top grows with skew",
        verdict([less(a, b) for a, b in zip(over[0.6], over[1.0], strict=True)]),
        "over rate adaptation at kappa 0.6 and 1: " + "; ".join(
            f"{said([100 * g for g in a], 0)} % and {said([100 * g for g in b], 0)} %"
            for a, b in zip(over[0.6], over[1.0], strict=True)
        ),
    ))  # fmt: skip
    found.append(Verdict(
        "shedding-8", "rate adaptation alone does not gain by skew",
        verdict([[-each for each in grown[names[0]]]]),
        f"results at kappa 1 over those at 0.6, {told}",
    ))  # fmt: skip
    return found


def _equality(runs: Any) -> list[Verdict]:
    found = []
    name = "shedding-7-equality"
    for better, worse in (("rate and time", "rate"), ("rate, time and direction", "rate and time"),
                          ("rate, time and direction", "random drop")):  # fmt: skip
        gains = {
            skew: gain(at(runs, name, better, skew), at(runs, name, worse, skew))
            for skew in (0.6, 0.8, 1.0)
        }
        found.append(Verdict(
            "shedding-7", f"equality over 5000 values: {better} gives more than {worse}",
            verdict(list(gains.values())),
            "; ".join(f"kappa {k}: {said([100 * g for g in v], 0)} %" for k, v in gains.items()),
        ))  # fmt: skip
    return found


def _lengths(runs: Any) -> list[Verdict]:
    found = []
    for key in ("kappa 0.6", "kappa 0.8"):
        values = {x: at(runs, "shedding-9", key, x) for x in (0.2, 1.0, 5.0, 10.0, 20.0, 40.0)}
        told = ", ".join(f"{x:g} s: {said(v, 0)}" for x, v in values.items())
        found.append(Verdict(
            "shedding-9", f"small basic windows are better ({key})",
            verdict([less(values[10.0], values[1.0]), less(values[20.0], values[5.0])]),
            f"results/s by basic window (40: none): {told}",
        ))  # fmt: skip
        found.append(Verdict(
            "shedding-9", f"no basic windows are worst ({key})",
            verdict([less(values[40.0], values[x]) for x in (0.2, 1.0, 5.0, 10.0)]), "as above",
        ))  # fmt: skip
    return found


def _indexes(runs: Any) -> list[Verdict]:
    found = []
    name, none = "shedding-9-indexed", inverted.NO_BASIC_WINDOWS
    for skew in (0.6, 0.8):
        timed, sorted_by = (
            {
                x: at(runs, name, f"{kind}, kappa {skew}", x)
                for x in (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, none)
            }
            for kind in inverted.KINDS
        )
        told, of_others = (
            ", ".join(f"{x:g} s: {said(v, 0)}" for x, v in values.items())
            for values in (timed, sorted_by)
        )
        share = {x: [a / b for a, b in zip(sorted_by[x], timed[x], strict=True)] for x in timed}
        found += [
            Verdict("shedding-9", f"with an index, smaller basic windows are better (kappa {skew})",
                    verdict([less(timed[none], timed[100.0]), less(timed[100.0], timed[10.0])]),
                    f"time-sorted lists, results/s by basic window ({none:g}: none): {told}"),
            Verdict("shedding-9", f"down to a point: very small ones are worse (kappa {skew})",
                    verdict([less(timed[1.0], timed[5.0])]), "as above"),
            Verdict("shedding-9", f"no basic windows are worst (kappa {skew})",
                    verdict([less(timed[none], timed[x]) for x in timed if x != none]), "as above"),
            Verdict("shedding-9", "identifier-sorted lists give less than a fifth, least where"
                    f" basic windows are large (kappa {skew})",
                    verdict([
                        *([0.2 - each for each in of] for of in share.values()),
                        less(share[100.0], share[1.0]),
                    ]),
                    f"identifier-sorted: {of_others}"),
        ]  # fmt: skip
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, write and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", help="makers by name; the others' figures stay as they are")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", wj.SheddingWarning)
    runs: list[dict[str, Any]] = [{} for _ in range(options.seeds)]
    if options.only:
        runs = json.loads((options.out / "shedding.json").read_text("utf-8"))
    only = options.only.split(",") if options.only else [make.__name__ for make in MAKERS]
    for make in [make for make in MAKERS if make.__name__ in only]:
        start = time.process_time()
        for seed, figures in enumerate(runs, 1):
            figures.update(make(seed))
        print(f"{make.__name__}: {time.process_time() - start:.0f} s of CPU", flush=True)
    (options.out / "shedding.json").write_text(json.dumps(runs) + "\n", "utf-8")
    for name in runs[0]:
        draw(name, [figures[name] for figures in runs], options.out)
    text = f"{len(runs)} seeds; ± is half of the spread over them.\n\n{table(judge(runs))}"
    (options.out / "shedding.md").write_text(text, "utf-8")
    print(text)
    return 0


__all__ = ["Outcome", "judge", "main"]

if __name__ == "__main__":
    raise SystemExit(main())
