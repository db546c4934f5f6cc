"""A plan as a picture: for every stream the way of its rows through the windows of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windjoin.errors import InputError, QueryError
from windjoin.figures import figure, percent

if TYPE_CHECKING:
    from windjoin.planner import Plan

ENDINGS = (".svg", ".png", ".pdf")
BOX: dict[str, Any] = {"boxstyle": "round,pad=0.45", "facecolor": "white", "edgecolor": "black"}


def draw(plan: Plan, path: str) -> None:
    """Write the picture; nodes have selectivity and cost, edges the rates between them."""
    if not str(path).endswith(ENDINGS):
        raise QueryError(f"draw({str(path)!r}): the path ends in {' or '.join(ENDINGS)}")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise QueryError("drawing needs matplotlib: pip install 'windjoin[plot]'") from error
    hops = plan.best.hops
    wide = max(len(one) for one in hops.values()) + 2
    sheet = Figure(figsize=(2.6 * wide, 1.1 * len(hops) + 0.9), layout="constrained")
    axes = sheet.add_subplot()
    axes.set_axis_off()
    axes.set_xlim(-0.5, wide - 0.3)
    axes.set_ylim(-0.6, len(hops) - 0.3)
    axes.set_title(
        f"{figure(plan.output_rate)} results/s, {percent(plan.completeness)} complete,"
        f" cost {figure(plan.cost)} of {plan.cpu:g}"
    )
    for row, (name, way) in enumerate(reversed(hops.items())):
        axes.text(0, row, name, ha="center", va="center", bbox=BOX, weight="bold")
        rates = [plan.rates[name], *(hop.kept for hop in way)]
        for column, hop in enumerate(way, 1):
            took = f"selectivity {figure(hop.share, 2)}, cost {figure(hop.cost, 2)}"
            shown = f"{hop.stream}\n{hop.index}\n{took}"
            axes.text(column, row, shown, ha="center", va="center", bbox=BOX, size="small")
        axes.text(len(way) + 1, row, "results", ha="center", va="center")
        for column, rate in enumerate(rates):
            _arrow(axes, column, row, f"{figure(rate)}/s")
    try:
        sheet.savefig(path)
    except OSError as error:
        raise InputError(f"draw: {path!r} cannot be written: {error}") from error


def _arrow(axes: Any, column: int, row: int, shown: str) -> None:
    ends = {"xy": (column + 0.62, row), "xytext": (column + 0.36, row)}
    axes.annotate("", **ends, arrowprops={"arrowstyle": "->"})
    axes.text(column + 0.49, row + 0.12, shown, ha="center", size="small")
