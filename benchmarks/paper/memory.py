"""Regenerate the published figures 6 to 21 of the memory paper: series, plots, claims.

python benchmarks/paper/memory.py [--seeds 5] [--out benchmarks/paper/results]

Every run is a session of the package: a three-way equality over 300 partition groups, on a virtual
clock, with the published rates in proportion and every count 1/4 of the published one or less.
Tuple range and range join ratio are the paper's: within one range a key comes ``ratio`` times on
each stream.  Memory limits are shares of what the same run takes without one, as a session of this
size is small against what every session takes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import windjoin as wj
from claims import Values, Verdict, less, said, verdict
from run import draw, table
from windjoin.state.residence import groups_of_hashes

GROUPS, STEPS, RANGE, RANGES = 300, 30, 7200, 2
MINUTES = 60.0  # of a run, by the clock of the session
NAMES = "abc"
SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64())])


@dataclass(frozen=True)
class Setting:
    """One line of a figure."""

    ratios: tuple[float, ...] = (3.0,)  # of the groups, by their number's remainder
    hosts: int | None = None
    part: float | None = None  # the limit, against what is held without one
    heavy: float = 1.0  # rows of host 0 against those of others
    turns: bool = False  # hosts 0 and 1 get most rows in turn
    memory: dict[str, Any] = field(default_factory=dict)
    on_full: str = "spill"


@dataclass
class Run:
    """What came of a line."""

    results: list[float]  # so far, by step
    bytes: list[float]
    spills: int
    relocations: int
    owed: int
    seconds: float  # of the clean-up
    by_host: list[list[float]]
    owed_by_host: dict[int, int]
    full_at: float  # minutes, at the end if never


def keys_by_group() -> Any:
    """Some keys of every group."""
    keys = np.arange(60 * GROUPS)
    groups, most = groups_of_hashes(keys, GROUPS), RANGE // GROUPS
    return np.array([keys[groups == group][:most] for group in range(GROUPS)])


KEYS = keys_by_group()


def rows_of(setting: Setting, step: int, random: Any) -> Any:
    """Keys of the rows of one stream in one step."""
    count = RANGE * RANGES // STEPS
    weights = np.ones(GROUPS)
    hosts = setting.hosts or 1
    favoured = 0 if not setting.turns else step * 4 // STEPS % 2
    weights[np.arange(GROUPS) % hosts == favoured] *= 10.0 if setting.turns else setting.heavy
    groups = random.choice(GROUPS, count, p=weights / weights.sum())
    ratios = np.array(setting.ratios)[groups % len(setting.ratios)]
    domains = np.maximum(np.rint(RANGE / GROUPS / ratios), 1)
    return KEYS[groups, (random.random(count) * domains).astype(np.int64)]


def play(setting: Setting, seed: int, limit: int | None = None) -> Run:
    """All steps of a line, then the clean-up."""
    streams = [wj.stream(n, time="t", window=10 * STEPS) for n in NAMES]
    on = [streams[0]["k"] == streams[1]["k"], streams[1]["k"] == streams[2]["k"]]
    random, now = np.random.default_rng(seed), [0.0]
    options: dict[str, Any] = {} if setting.hosts is None else {"hosts": setting.hosts}
    if setting.hosts is not None:
        options |= {"segment": 1, "clock": lambda: now[0]}
    with tempfile.TemporaryDirectory() as folder:
        memory = wj.Memory(limit or "100GB", groups=GROUPS, **setting.memory)
        if setting.on_full == "spill":
            options |= {"spill": folder}
        session = wj.join(*streams, on=on).open(
            dict.fromkeys(NAMES, SCHEMA), rows_only=True, memory=memory, on_full=setting.on_full,
            **options,
        )  # fmt: skip
        return played(session, setting, random, now)


def played(session: Any, setting: Setting, random: Any, now: list[float]) -> Run:
    done, results, held, by_host, full_at = 0, [], [], [], MINUTES
    for step in range(STEPS):
        now[0] = step / STEPS * MINUTES * 60
        try:
            for name in NAMES:
                keys = rows_of(setting, step, random)
                found = session.push(name, {"t": np.full(len(keys), step), "k": keys})
                done += len(found["a"])
        except wj.StateError:
            full_at = step / STEPS * MINUTES
            break
        results.append(float(done))
        metrics = session.metrics["memory"]
        held.append(float(metrics["bytes_in_memory"]))
        by_host.append([h["bytes"] for h in metrics.get("hosts", {}).values()])
    metrics = session.metrics["memory"]
    shares = {one["host"]: 0 for one in metrics.get("groups", [])}
    began, owed = time.perf_counter(), 0
    for found in session.clean_up():
        owed += len(found["a"])
    seconds = time.perf_counter() - began
    for one in metrics.get("groups", []):
        shares[one["host"]] += one["rows_on_disk"]
    session.abandon()
    return Run(
        results, held, metrics["spills"], metrics.get("relocations", 0), owed, seconds, by_host,
        shares, full_at,
    )  # fmt: skip


def limited(setting: Setting, seed: int, part: float, whole: Run) -> Run:
    """The same line with part of what it takes without a limit."""
    empty = whole.bytes[0]
    return play(setting, seed, int(empty + part * (whole.bytes[-1] - empty)))


Lines = dict[str, Run]
EVEN, MIXED = (3.0,), (4.0, 2.0, 1.0)


def one_machine(seed: int) -> dict[str, Lines]:
    """Figures 9 to 12."""
    even = play(Setting(EVEN), seed)
    mixed = play(Setting(MIXED), seed)
    pushes = {"0 %": even}
    for share in (0.1, 0.3, 0.5, 1.0):
        knobs = {"share": share, "choose": "random"}
        pushes[f"{share:.0%}"] = limited(Setting(EVEN, memory=knobs), seed, 0.5, even)
    lines = {"9": pushes, "10": pushes}
    for figure, ratios, whole in (("11", MIXED, mixed), ("12", EVEN, even)):
        lines[figure] = {
            name: limited(Setting(ratios, memory={"choose": choose}), seed, 0.5, whole)
            for name, choose in (("low output rate", "throughput"), ("high", "productive"))
        }
    return lines


def machines(seed: int) -> dict[str, Lines]:
    """Figures 6 and 7: hosts whose memory suffices, or not."""
    small = {f"{n}": play(Setting((1.0,), hosts=n), seed) for n in (1, 3, 5)}
    large, most = {}, 0.0
    for n in (1, 2, 4, 5):
        whole = play(Setting((2.0,), hosts=n), seed)  # hosts take room of their own
        most = most or whole.bytes[-1] - whole.bytes[0]
        setting = Setting((2.0,), hosts=n, on_full="error")
        large[f"{n}"] = play(setting, seed, int(whole.bytes[0] + 0.35 * n * most))
    return {"6": small, "7": large}


def relocations(seed: int) -> dict[str, Lines]:
    """Figures 14 to 17: when groups move, and what it is good for."""
    lines: dict[str, Lines] = {"14": {}, "15": {}, "17": {}}
    for theta in (0.0, 0.5, 0.7, 0.9):
        knobs = {"theta_d": theta, "adaptation": "lazy" if theta else "none"}
        lines["14"][f"{theta:.0%}"] = play(Setting(EVEN, hosts=2, turns=True, memory=knobs), seed)
    for span in ("15s", "30s", "450s"):
        knobs = {"theta_d": 0.9, "span": span}
        lines["15"][span] = play(Setting(EVEN, hosts=2, turns=True, memory=knobs), seed)
    lines["16"] = {"none": lines["14"]["0%"], "relocated": lines["15"]["15s"]}
    skewed = Setting(EVEN, hosts=3, heavy=4.0, memory={"adaptation": "none"})
    whole = play(skewed, seed)
    for name, adaptation in (("none", "none"), ("relocated", "lazy")):
        setting = Setting(EVEN, hosts=3, heavy=4.0, memory={"adaptation": adaptation})
        lines["17"][name] = limited(setting, seed, 1.2, whole)
    return lines


def together(seed: int) -> dict[str, Lines]:
    """Figures 20 and 21: lazy-disk and active-disk."""
    lines: dict[str, Lines] = {"20": {}, "21": {}}
    whole = play(Setting(EVEN, hosts=3, heavy=4.0, memory={"adaptation": "none"}), seed)
    for name in ("none", "lazy"):
        setting = Setting(EVEN, hosts=3, heavy=4.0, memory={"adaptation": name})
        lines["20"][name] = limited(setting, seed, 0.7, whole)
    ratios = (4.0, 1.0, 1.0)  # host 0 has groups of a high ratio
    whole = play(Setting(ratios, hosts=3, memory={"adaptation": "none"}), seed)
    for name in ("lazy", "active"):
        setting = Setting(ratios, hosts=3, memory={"adaptation": name})
        lines["21"][name] = limited(setting, seed, 0.7, whole)
    return lines


def judged(runs: Sequence[dict[str, Lines]]) -> list[Verdict]:
    """Every claim of the text."""

    def last(figure: str, line: str) -> Values:
        return [run[figure][line].results[-1] for run in runs]

    def of(figure: str, line: str, what: str) -> Values:
        return [float(getattr(run[figure][line], what)) for run in runs]

    def row(figure: str, claim: str, differences: Sequence[Values], why: str) -> Verdict:
        return Verdict(f"memory {figure}", claim, verdict(differences), why)

    def near(a: Values, b: Values, part: float) -> Values:
        return [part - abs(x - y) / max(y, 1.0) for x, y in zip(a, b, strict=True)]

    low, high = of("11", "low output rate", "owed"), of("11", "high", "owed")
    sent = {n: of("11", n, "seconds") for n in ("low output rate", "high")}
    burden = {n: [float(max(r["20"][n].owed_by_host.values())) for r in runs]
              for n in ("none", "lazy")}  # fmt: skip
    apart = {n: [mean_apart(run["16"][n]) for run in runs] for n in ("none", "relocated")}
    return [
        row("6", "more machines than needed change nothing (within 2 %)",
            [near(last("6", "5"), last("6", "1"), 0.02)], f"5: {said(last('6', '5'), 0)} results,"
            f" 1: {said(last('6', '1'), 0)}"),
        row("7", "with more machines memory lasts longer",
            [less(of("7", "1", "full_at"), of("7", "2", "full_at"))],
            f"1: {said(of('7', '1', 'full_at'))} minutes, 2: {said(of('7', '2', 'full_at'))}"),
        row("9", "the more is pushed at a time, the fewer results during the run",
            [less(last("9", "30%"), last("9", "10%")), less(last("9", "100%"), last("9", "30%")),
             less(last("9", "10%"), last("9", "0 %"))],
            ", ".join(f"{n}: {said(last('9', n), 0)}" for n in runs[0]["9"])),
        row("10", "the more is pushed at a time, the fewer pushes",
            [less(of("10", "30%", "spills"), of("10", "10%", "spills")),
             less(of("10", "100%", "spills"), of("10", "30%", "spills"))],
            ", ".join(f"{n}: {said(of('10', n, 'spills'))}" for n in runs[0]["10"])),
        row("11", "unproductive groups first: many more results during the run",
            [less(last("11", "high"), last("11", "low output rate"))],
            f"{said(last('11', 'low output rate'), 0)} against {said(last('11', 'high'), 0)}"),
        row("4.4", "and about a fifth of the results owed (below 0.3)",
            [[0.3 - a / max(b, 1.0) for a, b in zip(low, high, strict=True)]],
            f"{said(low, 0)} against {said(high, 0)}"),
        row("4.4", "and about 13 times quicker to clean up (above 6)",
            [[b / max(a, 1e-9) - 6.0 for a, b in zip(*sent.values(), strict=True)]],
            f"{said(sent['low output rate'], 2)} s against {said(sent['high'], 2)} s"),
        row("12", "the same, by a little, where groups are alike",
            [less(last("12", "high"), last("12", "low output rate"))],
            f"{said(last('12', 'low output rate'), 0)} against {said(last('12', 'high'), 0)}"),
        row("14", "relocation costs no results, whenever it begins (within 2 %)",
            [near(last("14", n), last("14", "0%"), 0.02) for n in ("50%", "70%", "90%")],
            ", ".join(f"{n}: {said(of('14', n, 'relocations'))} moves" for n in runs[0]["14"])),
        row("14", "the higher the threshold, the more relocations",
            [less(of("14", "50%", "relocations"), of("14", "90%", "relocations"))], "as above"),
        row("15", "the shorter the time-span, the more relocations, and as many results",
            [less(of("15", "450s", "relocations"), of("15", "15s", "relocations")),
             near(last("15", "15s"), last("15", "450s"), 0.02)],
            ", ".join(f"{n}: {said(of('15', n, 'relocations'))}" for n in runs[0]["15"])),
        row("16", "relocation balances memory", [less(apart["relocated"], apart["none"])],
            f"least over most apart from 1 by {said(apart['relocated'], 2)},"
            f" else {said(apart['none'], 2)}"),
        row("17", "relocation instead of spilling: more results during the run",
            [less(last("17", "none"), last("17", "relocated"))],
            f"{said(last('17', 'relocated'), 0)} against {said(last('17', 'none'), 0)}"),
        row("20", "lazy-disk yields more than no relocation",
            [less(last("20", "none"), last("20", "lazy"))],
            f"{said(last('20', 'lazy'), 0)} against {said(last('20', 'none'), 0)}"),
        row("6.1", "lazy-disk leaves the busiest host less to clean up",
            [less(burden["lazy"], burden["none"])],
            f"{said(burden['lazy'], 0)} rows against {said(burden['none'], 0)}"),
        row("21", "active-disk yields more than lazy-disk in the long run",
            [less(last("21", "lazy"), last("21", "active"))],
            f"{said(last('21', 'active'), 0)} against {said(last('21', 'lazy'), 0)}"),
    ]  # fmt: skip


def mean_apart(run: Run) -> float:
    """How far hosts are from holding as much as each other, over the second half."""
    half = run.by_host[len(run.by_host) // 2 :]
    return sum(1 - min(step) / max(max(step), 1.0) for step in half) / len(half)


def main() -> None:
    """Run all, write series and claims."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    given = parser.parse_args()
    runs = []
    for seed in range(given.seeds):
        lines: dict[str, Lines] = {}
        for part in (one_machine, machines, relocations, together):
            lines |= part(seed)
        runs.append(lines)
    claims = judged(runs)
    text = table(claims)
    (given.out / "memory.md").write_text(text)
    series = {
        figure: {name: [run[figure][name].results for run in runs] for name in lines}
        for figure, lines in runs[0].items()
    }
    (given.out / "memory.json").write_text(json.dumps(series) + "\n")
    minutes = [step / STEPS * MINUTES for step in range(STEPS)]
    for figure, lines in series.items():
        plots = [
            {"x": "minutes", "y": "results so far", "series": {
                name: list(zip(minutes, by_seed[seed], strict=False))
                for name, by_seed in lines.items()}}
            for seed in range(given.seeds)
        ]  # fmt: skip
        draw(f"memory-{figure}", plots, given.out)
    print(text)


if __name__ == "__main__":
    main()
