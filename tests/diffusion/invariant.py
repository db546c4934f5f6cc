"""The invariant of all exact routers, on row times alone.  Knows nothing of how routers decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tests.diffusion.reference import Row


def combinations_inside(
    rows: Iterable[Row], windows: Sequence[int], *, same_group: bool
) -> Iterator[tuple[Row, ...]]:
    """Every combination with ``T - t_i <= W_i``, by definition: one row per stream, all tried."""
    by_stream: list[list[Row]] = [[] for _ in windows]
    for row in rows:
        by_stream[row.stream].append(row)

    def extend(chosen: tuple[Row, ...]) -> Iterator[tuple[Row, ...]]:
        if chosen:
            latest = max(row.t for row in chosen)
            if any(latest - row.t > windows[row.stream] for row in chosen):
                return
            if same_group and len({row.group for row in chosen}) > 1:
                return
        if len(chosen) == len(windows):
            yield chosen
            return
        for row in by_stream[len(chosen)]:
            yield from extend((*chosen, row))

    return extend(())


def violations(
    completed: Counter[tuple[Row, ...]],
    rows: Iterable[Row],
    windows: Sequence[int],
    *,
    same_group: bool = False,
) -> list[str]:
    """What is lost, doubled or invented; empty when the invariant holds."""
    expected = set(combinations_inside(rows, windows, same_group=same_group))
    found = {
        rows: times
        for rows, times in completed.items()
        if not same_group or len({row.group for row in rows}) == 1
    }
    lost = [f"lost: {rows}" for rows in sorted(expected - found.keys())]
    doubled = [f"{times} times: {rows}" for rows, times in sorted(found.items()) if times > 1]
    invented = [f"outside: {rows}" for rows in sorted(found.keys() - expected)]
    return lost + doubled + invented
