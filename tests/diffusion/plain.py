"""What the compiled parts of routers do, as plain definitions.  Imports nothing compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

Task = tuple[int, int, Sequence[int], Sequence[int]]  # host, mark, low and high per stream
Range = tuple[int, int, int]  # host, start, stop


def parts_of(
    tasks: Sequence[Task], stream: int, start: int, stop: int
) -> list[tuple[int, int, int, int]]:
    """(host, start, stop, marks) by host and time: the longest stretches of the same marks."""
    parts: list[tuple[int, int, int, int]] = []
    for wanted in sorted({task[0] for task in tasks}):
        boxes = [(low[stream], high[stream], m) for host, m, low, high in tasks if host == wanted]
        inside = {min(max(cut, start), stop) for low, high, _ in boxes for cut in (low, high)}
        for first, last in pairwise(sorted({start, stop} | inside)):
            marks = 0
            for low, high, mark in boxes:
                if low <= first and last <= high:
                    marks |= 1 << mark
            if marks and parts and parts[-1][0] == wanted and parts[-1][2:] == (first, marks):
                parts[-1] = (wanted, parts[-1][1], last, marks)
            elif marks:
                parts.append((wanted, first, last, marks))
    return parts


def settled(
    held: Sequence[Range], slices: Sequence[Range], order: Sequence[int], *, onward: bool
) -> tuple[list[Range], list[tuple[int, int, int, int]]]:
    """Stretches where their slices want them, and moves as (start, stop, source, target)."""
    renewed: list[Range] = []
    moves = []
    for host, start, stop in held:
        for target, first, last in slices:
            low, high = max(start, first), min(stop, last)
            if low >= high:
                continue
            if onward and order.index(target) < order.index(host):
                target = host
            if target != host:
                moves.append((low, high, host, target))
            if renewed and renewed[-1][0] == target and renewed[-1][2] == low:
                renewed[-1] = (target, renewed[-1][1], high)
            else:
                renewed.append((target, low, high))
    return renewed, moves


@dataclass
class Work:
    """One host's share of what was assigned at once."""

    due: int
    host: int
    rows: int
    bytes: int
    settled: bool = False  # any report covers it


@dataclass
class Book:
    """In-flight work and reported load per host; capacities are all one, the span is 1."""

    weights: tuple[float, float, float]
    base: dict[int, float]
    flying: list[Work] = field(default_factory=list)

    def assign(self, hosts: Sequence[int], rows: int, n_bytes: int, due: int) -> None:
        self.flying += [Work(due, host, rows, n_bytes) for host in hosts]

    def settle(self, now: int) -> None:
        """Entries from the front, as long as they are due."""
        for work in self.flying:
            if not work.settled and work.due > now:
                return
            work.settled = True

    def report(self, usage: Mapping[int, tuple[float, float, float]], now: int) -> None:
        for host, used in usage.items():
            self.base[host] = sum(w * u for w, u in zip(self.weights, used, strict=True))
        self.flying = [
            work
            for work in self.flying
            if not (work.host in usage and (work.settled or work.due <= now))
        ]

    def load(self, host: int) -> float:
        mine = [work for work in self.flying if work.host == host]
        cpu, memory, network = self.weights
        rows, n_bytes = sum(w.rows for w in mine), sum(w.bytes for w in mine)
        return self.base[host] + rows * cpu + n_bytes * (memory + network)
