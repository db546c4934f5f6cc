"""A session on hosts, drawn over time: loads, shares, segments, master, ring, results, latency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from windjoin.diffusion.history import LoadSample
from windjoin.errors import InputError, QueryError
from windjoin.figures import figure

BARS = "▁▂▃▄▅▆▇█"
COLUMNS = 60  # of a line of text
WIDTH, HEIGHT = 640, 150  # of a drawing
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#777777")

Line = tuple[str, list[float]]


@dataclass(frozen=True, slots=True)
class Report:
    """What `Session.report` gives: text by itself, a page in a notebook, files by ``save``."""

    title: str
    totals: dict[str, str]
    seconds: list[float]
    panels: list[tuple[str, list[Line]]] = field(default_factory=list)

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """Lines for a terminal: each series as a row of bars, with its least and greatest value."""
        lines = [self.title, *(f"  {name}: {value}" for name, value in self.totals.items())]
        for heading, series in self.panels:
            lines.append(heading)
            width = max((len(name) for name, _ in series), default=0)
            for name, values in series:
                low, high = min(values, default=0.0), max(values, default=0.0)
                lines.append(f"  {name:<{width}} {bars(values)} {figure(low)} .. {figure(high)}")
        return "\n".join(lines)

    def html(self) -> str:
        """One page that needs nothing else."""
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>"
            for name, value in self.totals.items()
        )
        drawings = "".join(
            f"<h2>{escape(heading)}</h2>{svg(self.seconds, series)}"
            for heading, series in self.panels
        )
        style = "body{font-family:sans-serif;margin:2em}th{text-align:left;padding-right:1em}"
        return (
            f'<!doctype html><html><head><meta charset="utf-8"><title>{escape(self.title)}</title>'
            f"<style>{style}</style></head><body><h1>{escape(self.title)}</h1>"
            f"<table>{rows}</table>{drawings}</body></html>\n"
        )

    def _repr_html_(self) -> str:
        return self.html()

    def png(self) -> bytes:
        """The same as a picture; needs matplotlib."""
        from io import BytesIO

        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise ImportError("a PNG needs matplotlib: pip install 'windjoin[plot]'") from None
        drawn = Figure(figsize=(8, 2.2 * max(len(self.panels), 1)), layout="constrained")
        drawn.suptitle(self.title)
        axes = drawn.subplots(max(len(self.panels), 1), 1, squeeze=False)
        for (heading, series), (axis,) in zip(self.panels, axes, strict=False):
            for name, values in series:
                axis.plot(self.seconds, values, label=name)
            axis.set_title(heading, fontsize="small")
            axis.set_ylim(bottom=0)
            if 0 < len(series) <= 10:
                axis.legend(fontsize="x-small", loc="upper left")
        axes[-1][0].set_xlabel("seconds")
        into = BytesIO()
        drawn.savefig(into, format="png", dpi=100)
        return into.getvalue()

    def save(self, path: str | Path) -> Path:
        """Write it to a file: .txt, .html or .png."""
        file = Path(path)
        if file.suffix not in (".txt", ".html", ".png"):
            raise QueryError(f"report: {str(path)!r} is no .txt, .html or .png")
        try:
            if file.suffix == ".png":
                file.write_bytes(self.png())
            else:
                text = self.html() if file.suffix == ".html" else self.text() + "\n"
                file.write_text(text, "utf-8")
        except OSError as error:
            raise InputError(f"report: {str(path)!r} cannot be written: {error}") from error
        return file


def bars(values: Sequence[float]) -> str:
    """A series as so many characters at most.

    >>> bars([0, 1, 2, 4])
    '▁▂▄█'
    """
    count = min(len(values), COLUMNS)
    shown = [values[len(values) * at // count] for at in range(count)]
    top = max(shown, default=0.0) or 1.0
    return "".join(BARS[min(int(value / top * 7.99), 7)] for value in map(abs, shown))


def svg(seconds: Sequence[float], series: Sequence[Line]) -> str:
    """Lines over time."""
    top = max((value for _, values in series for value in values), default=0.0) or 1.0
    last = seconds[-1] if seconds and seconds[-1] else 1.0
    drawn = list(_lines(seconds, series, top, last))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH + 160}" height="{HEIGHT + 24}">'
        f'<rect x="0" y="0" width="{WIDTH}" height="{HEIGHT}" fill="#f6f6f6"/>'
        f'<text x="4" y="12" font-size="11">{figure(top)}</text>'
        f'<text x="{WIDTH - 60}" y="{HEIGHT + 16}" font-size="11">{last:,.1f} s</text>'
        f"{''.join(drawn)}</svg>"
    )


def _lines(
    seconds: Sequence[float], series: Sequence[Line], top: float, last: float
) -> Iterator[str]:
    for number, (name, values) in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(
            f"{WIDTH * at / last:.1f},{HEIGHT - HEIGHT * value / top:.1f}"
            for at, value in zip(seconds, values, strict=True)
        )
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        if number < 9:
            yield (
                f'<text x="{WIDTH + 8}" y="{14 + 15 * number}" font-size="11" fill="{colour}">'
                f"{escape(name)}</text>"
            )


def report_of(
    metrics: dict[str, Any], samples: Sequence[LoadSample], names: Sequence[str]
) -> Report:
    """The report of a session: its counters, and what was sampled of its hosts."""
    totals = {
        "rows": f"{metrics['rows_in']:,}",
        "results": f"{metrics['results']:,}",
        "state": f"{metrics['state_bytes'] / 1e6:,.1f} MB",
    }
    cluster = metrics.get("cluster")
    if cluster is not None:
        totals["strategy"] = f"{cluster['strategy']}, {len(cluster['hosts'])} hosts"
        totals["segment"] = f"{figure(cluster['segment'])} ticks"
        waited = cluster["latency"]
        totals["latency"] = ", ".join(f"{k} {figure(1000 * v)} ms" for k, v in waited.items())
        masters = [sample.master for sample in samples if sample.master is not None]
        changes = [m for at, m in enumerate(masters) if at == 0 or masters[at - 1] != m]
        if changes:
            totals["master"] = " -> ".join(changes[-8:])
    title = f"windjoin: {' x '.join(names)}"
    return Report(title, totals, [s.seconds for s in samples], list(_panels(samples, names)))


def _panels(
    samples: Sequence[LoadSample], names: Sequence[str]
) -> Iterator[tuple[str, list[Line]]]:
    if not samples:
        return
    hosts = sorted({host for sample in samples for host in sample.loads})
    yield "load by host", [(f"host {h}", [s.loads.get(h, 0.0) for s in samples]) for h in hosts]
    yield (
        "share of the rows stored",
        [(f"host {h}", [s.shares.get(h, 0.0) for s in samples]) for h in hosts],
    )
    yield "segment length, ticks", [("segment", [float(s.segment) for s in samples])]
    if any(s.master is not None for s in samples):
        number = {name: float(at) for at, name in enumerate(names)}
        label = ", ".join(f"{at} {name}" for at, name in enumerate(names))
        yield f"master ({label})", [("master", [number.get(s.master or "", 0.0) for s in samples])]
    most = max(len(s.borders[0]) if s.borders else 0 for s in samples)
    if most:
        yield (
            "ring borders of the first stream, age",
            [(f"slice {k}", [float(_border(s, k)) for s in samples]) for k in range(1, most)],
        )
    yield "results so far", [("results", [float(s.results) for s in samples])]
    yield "latency, p99 in ms", [("p99", [1000 * s.latency for s in samples])]


def _border(sample: LoadSample, number: int) -> int:
    ages = sample.borders[0] if sample.borders else []
    return ages[number] if number < len(ages) else 0
