"""A page about a run: its slots over time, in HTML that needs nothing else."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Any

from windjoin.epochs.job import Job
from windjoin.figures import figure

WIDTH, HEIGHT, MARGIN = 900, 220, 40
COLOURS = ("#1b6ca8", "#d1495b", "#3a7d44", "#edae49", "#7b4b94", "#00798c", "#8d6b48", "#555")
MOST_POINTS = 600
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>body{{font:15px sans-serif;max-width:960px;margin:2em auto;color:#222}}
td,th{{padding:.2em .8em;text-align:right}}th{{border-bottom:1px solid #999}}</style>
<h1>{title}</h1>
{body}
</html>
"""


def as_page(job: Job, done: Sequence[Any], status: dict[str, Any]) -> str:
    """The page."""
    names = ", ".join(job.plan.query.names)
    body = [
        f"<p>{status['slots']} slots, strategy {status['strategy']}, last epoch {status['epoch']},"
        f" {status['window_epochs']} epochs in the window, {status['log_bytes']:,} bytes of log.",
        "</p>",
        _chart("CPU seconds of each slot, by epoch", done, lambda one: one["cpu"]),
        _chart("Rows of each slot, by epoch", done, lambda one: one["rows"]),
        _chart(
            "Rows in the window that each slot read, by epoch", done, lambda one: one["window_rows"]
        ),
        _streams(status),
        _last(done),
    ]
    return PAGE.format(title=html.escape(f"Continuous join of {names}"), body="\n".join(body))


def _chart(title: str, done: Sequence[Any], value: Callable[[dict[str, Any]], float]) -> str:
    """A line for each slot."""
    shown = list(done)[:: max(1, len(done) // MOST_POINTS)]
    lines: dict[int, list[tuple[int, float]]] = {}
    for place, epoch in enumerate(shown):
        for one in epoch.slots:
            lines.setdefault(one["slot"], []).append((place, float(value(one))))
    most = max((v for points in lines.values() for _, v in points), default=0.0) or 1.0
    step = (WIDTH - 2 * MARGIN) / max(1, len(shown) - 1)
    drawn = []
    for slot, points in sorted(lines.items()):
        path = " ".join(
            f"{MARGIN + place * step:.1f},{HEIGHT - MARGIN - v / most * (HEIGHT - 2 * MARGIN):.1f}"
            for place, v in points
        )
        colour = COLOURS[slot % len(COLOURS)]
        drawn.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{path}"/>'
        )
        left = MARGIN + 70 * (slot % 12)
        drawn.append(f'<text x="{left}" y="{HEIGHT - 8}" fill="{colour}">slot {slot}</text>')
    axis = f'<text x="2" y="{MARGIN - 10}">{figure(most)}</text>'
    axis += f'<text x="2" y="{HEIGHT - MARGIN}">0</text>'
    return (
        f"<h2>{html.escape(title)}</h2>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{axis}{"".join(drawn)}</svg>'
    )


def _streams(status: dict[str, Any]) -> str:
    names = ("rows", "late", "null_time", "unmatchable")
    head = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in names)
    rows = "".join(
        f"<tr><td>{html.escape(stream)}</td>"
        + "".join(f"<td>{counts.get(name, 0):,}</td>" for name in names)
        + "</tr>"
        for stream, counts in status["streams"].items()
    )
    return f"<h2>Streams</h2><table><tr><th></th>{head}</tr>{rows}</table>"


def _last(done: Sequence[Any]) -> str:
    if not done:
        return "<p>No epoch yet.</p>"
    names = ("slot", "rows", "results", "window_rows", "bytes", "cpu", "seconds", "how")
    head = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in names)
    rows = "".join(
        "<tr>" + "".join(f"<td>{_shown(one[name])}</td>" for name in names) + "</tr>"
        for one in done[-1].slots
    )
    return f"<h2>Last epoch</h2><table><tr>{head}</tr>{rows}</table>"


def _shown(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else html.escape(str(value))
