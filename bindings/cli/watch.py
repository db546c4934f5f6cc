"""``windjoin run QUERY.toml --watch``: the join as a session on hosts, drawn while it runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TextIO

import pyarrow as pa
from windjoin.query import Query
from windjoin.reporting import Report

EVERY = 0.5  # seconds between two drawings
BATCH = 4096  # rows that come at a time
HOME, BELOW = "\x1b[H", "\x1b[J"  # to the top; clear what is below


class Screen:
    """The newest report in place of the one before; not a terminal: only the last one."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._live = out.isatty()
        self._drawn = 0.0
        if self._live:
            out.write("\x1b[2J")

    def draw(self, report: Report) -> None:
        """Draw it, if it is time to."""
        if self._live and time.monotonic() - self._drawn >= EVERY:
            self._out.write(f"{HOME}{BELOW}{report}\n")
            self._out.flush()
            self._drawn = time.monotonic()

    def end(self, report: Report) -> None:
        """The last one stays."""
        self._out.write(f"{HOME}{BELOW}{report}\n" if self._live else f"{report}\n")
        self._out.flush()


def watched(
    query: Query, tables: dict[str, pa.Table], hosts: int, strategy: str, told: TextIO
) -> pa.Table:
    """Join tables as if their rows came one after the other, and draw how it goes."""
    screen = Screen(told)
    found = []
    schemas = {name: table.schema for name, table in tables.items()}
    with query.open(schemas, hosts=hosts, strategy=strategy, on_late="keep") as session:
        left = {name: _pieces(table) for name, table in tables.items()}
        while left:
            name = session.slowest(left)
            piece = next(left[name], None)
            if piece is None:
                session.finish(name)
                del left[name]
                continue
            found.append(session.push(name, piece))
            screen.draw(session.report())
        found.append(session.close())
        screen.end(session.report())
    return pa.concat_tables(found)


def _pieces(table: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, table.num_rows, BATCH):
        yield table.slice(start, BATCH)
