"""What was measured, part by part: one JSON file, and a table and a chart made of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import machine

FOLDER = Path(__file__).parent.parent / "results" / "spark"


@dataclass(frozen=True, slots=True)
class Line:
    """One figure against its target."""

    what: str
    reached: float
    target: float
    at_least: bool = True
    bound: bool = False  # the peer was stopped: the true figure is further away
    detail: str = ""

    @property
    def good(self) -> bool:
        """Whether the target is reached."""
        return self.reached >= self.target if self.at_least else self.reached <= self.target


def told(line: Line) -> str:
    """A line in words."""
    sign = ">=" if line.at_least else "<="
    return f"{line.what}: {line.reached:.2f} ({sign} {line.target:g}); {line.detail}"


def record(part: str, lines: list[Line], folder: Path = FOLDER, about: str = "") -> None:
    """Replace lines of a part of the results; write everything anew.

    ``about``: versions and the machine's load when a part was last measured.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "results.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"parts": {}}
    found["machine"] = machine()
    known = {line["what"]: line for line in found["parts"].get(part, [])}
    found["parts"][part] = list((known | {line.what: asdict(line) for line in lines}).values())
    if about:
        found.setdefault("about", {})[part] = about
    file.write_text(json.dumps(found, indent=1) + "\n")
    parts = {name: [Line(**one) for one in some] for name, some in found["parts"].items()}
    told_of = found.get("about", {})
    (folder / "results.md").write_text(markdown(found["machine"], parts, told_of))
    chart(parts, folder)


def markdown(about: dict[str, Any], parts: dict[str, list[Line]], told_of: dict[str, str]) -> str:
    """All parts as tables."""
    text = [
        f"{about['cpu']}, {about['cores']} cores, {about['memory_gib']} GiB, {about['system']},"
        f" Python {about['python']}, {about['time']}; Spark on two cores of it.",
        "",
    ]
    for name, lines in parts.items():
        text += [f"## {name}", ""]
        if name in told_of:
            text += [told_of[name] + ".", ""]
        text += ["| what | measured | target | reached | |"]
        text.append("| --- | ---: | ---: | :---: | --- |")
        for line in lines:
            sign = ">=" if line.at_least else "<="
            shown = f"{'> ' if line.bound else ''}{line.reached:.2f}"
            good = "yes" if line.good else "no"
            text.append(
                f"| {line.what} | {shown} | {sign} {line.target:g} | {good} | {line.detail} |"
            )
        text.append("")
    return "\n".join(text)


def chart(parts: dict[str, list[Line]], folder: Path) -> None:
    """Every figure as a multiple of its target, on a logarithmic axis; right of 1 is good."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    lines = [line for some in parts.values() for line in some][::-1]
    values = [
        line.reached / line.target if line.at_least else line.target / line.reached
        for line in lines
    ]
    figure, axis = pyplot.subplots(layout="constrained", figsize=(8.5, 0.32 * len(lines) + 1))
    colours = ["#2a9d8f" if line.good else "#d1495b" for line in lines]
    bars = axis.barh([line.what for line in lines], values, color=colours)
    axis.bar_label(bars, [f"{line.reached:.2f}" for line in lines], padding=3, fontsize=8)
    axis.set_xscale("log")
    axis.axvline(1, color="#333333", linewidth=0.8)
    axis.set_xlabel("measured against target; right of the line is good", fontsize=8)
    axis.tick_params(labelsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    for kind in ("png", "svg"):
        figure.savefig(folder / f"results.{kind}", dpi=150)
    pyplot.close(figure)
