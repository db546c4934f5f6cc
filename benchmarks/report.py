"""Figures as a Markdown table, as JSON, and as a bar chart."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

from benchmarks.contest import Measurement
from benchmarks.peers import OURS
from benchmarks.workloads import WORKLOADS

HEAD = "| workload | threads | engine | wall ms | cpu ms | results/s | peak MB | against windjoin |"
COLOURS = {OURS: "#d1495b"}
PLAIN = "#8d99ae"


def write(
    folder: Path, before: dict[str, Any], load_after: float, measured: list[Measurement]
) -> list[Path]:
    """Write table, figures and chart to a folder and give their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = {"machine": {**before, "load_after": load_after}}
    figures["measurements"] = [m.as_dict() for m in measured]  # type: ignore[assignment]
    json_path, table_path = folder / "results.json", folder / "results.md"
    json_path.write_text(json.dumps(figures, indent=1) + "\n")
    table_path.write_text(markdown(figures["machine"], measured))
    charts = [folder / "results.png", folder / "results.svg"]
    if any(m.counts for m in measured):
        chart(measured, charts)
        return [table_path, json_path, *charts]
    return [table_path, json_path]


def kept(folder: Path, measured: list[Measurement]) -> list[Measurement]:
    """Put what a folder has before what was measured now, where that does not stand for it."""
    path = folder / "results.json"
    if not path.exists():
        return measured
    before = json.loads(path.read_text())["measurements"]
    names = {field.name for field in fields(Measurement)}
    found = [Measurement(**{k: v for k, v in one.items() if k in names}) for one in before]
    both = {(m.workload, m.threads, m.engine, m.variant): m for m in (*found, *measured)}
    order = list(WORKLOADS)
    return sorted(both.values(), key=lambda m: (order.index(m.workload), m.threads))


def ours(measured: list[Measurement], like: Measurement) -> Measurement | None:
    """Find windjoin's figures for the same workload and threads."""
    for m in measured:
        if (m.engine, m.workload, m.threads) == (OURS, like.workload, like.threads) and m.counts:
            return m
    return None


def markdown(machine: dict[str, Any], measured: list[Measurement]) -> str:
    """Write all figures, best of the runs, with what they were taken on."""
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    lines = [
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB,"
        f" {machine['system']}, Python {machine['python']}, {machine['time']}.",
        f"{versions}. Instruction set: {machine['isa']}."
        f" Load before and after: {machine['load']}, {machine['load_after']}.",
        "",
        "Best of the runs; the same answers (count and checksum) or no time."
        " *Against windjoin* above 1 means that windjoin is faster.",
        "",
        HEAD,
        "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [row(m, ours(measured, m)) for m in measured]
    lines += ["", *(f"* **{n}** {WORKLOADS[n].about}" for n in unique(measured)), ""]
    return "\n".join(lines)


def row(m: Measurement, reference: Measurement | None) -> str:
    """Write one line of the table."""
    name = f"**{m.label}**" if m.engine == OURS else m.label
    if not m.counts:
        return f"| {m.workload} | {m.threads} | {name} | {m.note} | | | | |"
    wall, peak = min(m.walls), "" if m.peak is None else f"{m.peak / 1e6:.0f}"
    speed = f"{(m.results or 0) / wall:.3g}"
    ratio = f"{wall / min(reference.walls):.2f}" if reference else ""
    return (
        f"| {m.workload} | {m.threads} | {name} | {wall * 1e3:.1f} | {min(m.cpus) * 1e3:.1f}"
        f" | {speed} | {peak} | {ratio} |"
    )


def unique(measured: list[Measurement]) -> list[str]:
    """Give the workloads in the order they were measured."""
    return list(dict.fromkeys(m.workload for m in measured))


def chart(measured: list[Measurement], paths: list[Path]) -> None:
    """Draw one panel per workload: wall time on a logarithmic axis, shorter is better."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot, ticker

    panels = [[m for m in measured if m.workload == n and m.counts] for n in unique(measured)]
    panels = [sorted(p, key=lambda m: -min(m.walls)) for p in panels if p]
    figure, axes = pyplot.subplots(
        len(panels), 1, squeeze=False, layout="constrained",
        figsize=(8.5, sum(0.34 * len(p) + 1.0 for p in panels)),
        height_ratios=[len(p) + 1 for p in panels],
    )  # fmt: skip
    for axis, panel in zip(axes[:, 0], panels, strict=True):
        walls = [min(m.walls) * 1e3 for m in panel]
        names = [f"{m.label}, {m.threads} thread{'s' * (m.threads > 1)}" for m in panel]
        bars = axis.barh(names, walls, color=[COLOURS.get(m.engine, PLAIN) for m in panel])
        axis.bar_label(bars, [f"{wall:,.1f}" for wall in walls], padding=3, fontsize=8)
        axis.set_xscale("log")
        axis.set_xlim(10.0 ** math.floor(math.log10(min(walls) / 1.5)), max(walls) * 2)
        axis.xaxis.set_minor_formatter(ticker.NullFormatter())
        axis.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,g}"))
        axis.set_title(f"{panel[0].workload}: {WORKLOADS[panel[0].workload].about}",
                       loc="left", fontsize=9, fontweight="bold")  # fmt: skip
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    axes[-1, 0].set_xlabel("wall time in ms, logarithmic; shorter is better", fontsize=8)
    for path in paths:
        figure.savefig(path, dpi=150)
    pyplot.close(figure)
