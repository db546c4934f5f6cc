"""What was measured, told to a router: the same in a run, on Spark and in the simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from windjoin.diffusion.meter import Meter, Reading
from windjoin.diffusion.router import Router


def feed_back(
    router: Router,
    meter: Meter,
    readings: Mapping[int, Reading],
    come: Sequence[int],
    *,
    ticks: int,
    now: float,
    throughput: float | None,
    rates: Sequence[float] | None = None,
    since: int | None = None,
) -> None:
    """Loads, paces and rates of the ``ticks`` since the last time, and how much was done.

    come: rows of each stream since then
    rates: of the streams, where they are known; else they follow from ``come``
    now: seconds, on any clock that goes on
    since: work that was due before this time is part of the readings
    """
    book = router.book
    measured = meter.measure(book.hosts, readings, now=now, ticks=ticks, span=book.span)
    for one in measured.values():
        book.calibrate(one.capacity, tried=one.tried)
    rates = rates or meter.rates(come, ticks, router.max_window)
    loads = {number: one.usage for number, one in measured.items()}
    router.report(loads, rates=rates, throughput=throughput, since=since, now=now)
    router.retreat([number for number, one in measured.items() if one.slowed])
