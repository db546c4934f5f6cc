"""Tables and speeds as lines of text."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

MOST_WIDTH = 26  # of a cell


def first_rows(table: pa.Table, most: int) -> str:
    """The first rows, in columns.

    >>> print(first_rows(pa.table({"n": [1, 20], "who": ["ann", "bob"]}), most=1))
    n | who
    1 | ann
    ... 1 more row
    """
    columns = [
        [name, *map(_cell, table.column(i).slice(0, most).to_pylist())]
        for i, name in enumerate(table.column_names)
    ]
    widths = [max(map(len, column)) for column in columns]
    lines = [
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*columns, strict=True)
    ]
    more = table.num_rows - most
    if more > 0:
        lines.append(f"... {more:,} more row{'s' if more > 1 else ''}")
    return "\n".join(lines)


def _cell(value: Any) -> str:
    shown = "" if value is None else str(value)
    return shown if len(shown) <= MOST_WIDTH else shown[: MOST_WIDTH - 1] + "…"


def pace(rows: int, results: int, seconds: float) -> str:
    """How fast it went.

    >>> pace(3_000_000, 250_000, 0.5)
    '250,000 results from 3,000,000 rows in 0.50 s: 6,000,000 rows/s'
    """
    rate = rows / max(seconds, 1e-9)
    return f"{results:,} results from {rows:,} rows in {seconds:.2f} s: {rate:,.0f} rows/s"
