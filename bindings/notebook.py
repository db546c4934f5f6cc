"""What is shown: queries, counters, sessions as text and HTML, the order of hops as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from windjoin.figures import figure

if TYPE_CHECKING:
    from windjoin.query import Query

WIDE, HIGH, GAP = 190, 58, 46  # of a box, and between two of them


class Explanation(str):
    """What ``explain()`` says; a notebook shows the order of hops as a picture above it.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> wj.join(a, b, on=a["k"] == b["k"]).explain().splitlines()[0]
    "windowed join of 2 streams, closed='both'"
    """

    __slots__ = ("data",)
    data: Mapping[str, Any]

    def __new__(cls, text: str, data: Mapping[str, Any]) -> Explanation:
        made = super().__new__(cls, text)
        made.data = data
        return made

    def _repr_html_(self) -> str:
        orders = self.data.get("orders") or [self.data.get("order")]
        pictures = "".join(order_picture(order) for order in orders if order)
        return f"{pictures}<pre>{escape(str(self))}</pre>"


class Counters(dict[str, Any]):
    """Counters of a run or session: a dictionary that prints as lines, and shows as tables.

    >>> print(Counters(rows_in=3000, streams={"calls": {"rows_in": 3000, "lag": 0.5}}))
    rows_in 3,000
      calls: rows_in 3,000, lag 0.5
    """

    def __str__(self) -> str:
        streams = self.get("streams", {})
        lines = [_counted(self), *(f"  {name}: {_counted(one)}" for name, one in streams.items())]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return metrics_html(self)


def _counted(counts: Mapping[str, Any]) -> str:
    shown = {name: value for name, value in counts.items() if isinstance(value, (int, float))}
    return ", ".join(f"{name} {_shown(value)}" for name, value in shown.items())


def query_html(query: Query) -> str:
    """A query as a table of its streams, and its conditions."""
    rows = [
        (s.name, s.time, s.window, " and ".join(map(repr, s.conditions))) for s in query.streams
    ]
    on = "".join(f"<li><code>{escape(repr(condition))}</code></li>" for condition in query.on)
    return f"{table(('stream', 'time', 'window', 'where'), rows)}<ul>{on}</ul>"


def metrics_html(metrics: Mapping[str, Any]) -> str:
    """Counters of a session: one table for all, one row for each stream."""
    streams: Mapping[str, Mapping[str, Any]] = metrics.get("streams", {})
    plain = {key: value for key, value in metrics.items() if not isinstance(value, Mapping)}
    whole = table(tuple(plain), [tuple(plain.values())]) if plain else ""
    if not streams:
        return whole
    names = list(dict.fromkeys(key for one in streams.values() for key in one))
    rows = [(name, *(one.get(key) for key in names)) for name, one in streams.items()]
    return whole + table(("stream", *names), rows)


def table(names: Iterable[Any], rows: Iterable[Sequence[Any]]) -> str:
    """A table of HTML."""
    head = "".join(f"<th>{escape(str(name))}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(f'<td>{_shown(value)}</td>' for value in row)}</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return figure(value)
    return "" if value is None else escape(str(value))


def order_picture(order: Mapping[str, Any]) -> str:
    """The hops of an order as boxes from left to right, with what is expected between them."""
    boxes = [(order["start"], "every row")]
    between = []
    for step in order["steps"]:
        boxes.append((step["stream"], step["index"]))
        kept = step.get("measured", step["expected"])["kept"]
        between.append(f"{kept:,}")
    parts = []
    for number, (name, below) in enumerate(boxes):
        left = number * (WIDE + GAP)
        parts.append(
            f'<rect x="{left}" y="1" width="{WIDE}" height="{HIGH}" rx="6" fill="none"'
            f' stroke="currentColor"/>{_text(left + WIDE / 2, 25, name, "bold")}'
            f"{_text(left + WIDE / 2, 45, below)}"
        )
        if number:
            parts.append(
                f'<path d="M{left - GAP} 30 H{left - 4}" stroke="currentColor"'
                f' marker-end="url(#head)"/>{_text(left - GAP / 2, 24, between[number - 1])}'
            )
    width = len(boxes) * (WIDE + GAP) - GAP + 2
    head = (
        '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="6" refY="3" orient="auto">'
        '<path d="M0 0 L6 3 L0 6 z" fill="currentColor"/></marker></defs>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HIGH + 2}"'
        f' font-family="sans-serif" font-size="12">{head}{"".join(parts)}</svg>'
    )


def _text(x: float, y: float, text: str, weight: str = "normal") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="middle" fill="currentColor"'
        f' font-weight="{weight}">{escape(text)}</text>'
    )
