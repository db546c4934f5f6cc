"""Another router while a cluster runs: what hosts hold is dealt out anew, as it would have done it.

Nothing is joined twice: rows of the windows are placed border by border by the new router, and no
row travels.  Its borders are laid so that one of them is the border the cluster has come to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from windjoin.diffusion.arrays import I64
from windjoin.diffusion.host_window import LONG_AGO, HostWindow, Stretch
from windjoin.diffusion.router import Router
from windjoin.diffusion.router_clock import RouterClock
from windjoin.diffusion.segments import Segment
from windjoin.diffusion.worker import Ticket
from windjoin.pyx.base.pieces import joined

if TYPE_CHECKING:
    from windjoin.diffusion.cluster import Cluster


def reroute(cluster: Cluster, router: Router, clock: RouterClock) -> None:
    """Go on with another router (and clock) from the border that was reached."""
    cluster.drain()
    begun, now = cluster.clock.begun, cluster.earliest
    stay = {host.number for host in router.book.hosts}
    for number in [n for n in cluster.workers if n not in stay]:
        cluster.end_worker(number)
    cluster.router, cluster.clock = router, clock
    cluster.renew_operators()
    cluster.begin_reports()
    if not begun:
        return
    log, cluster.log = cluster.log, [HostWindow() for _ in cluster.log]
    step = router.segment_length << clock.shift
    borders = -(-(max(router.windows) << clock.shift) // step) + 1
    clock.begin(now - borders * step)
    for _ in range(borders):
        _place_again(cluster, log)
    assert clock.real_now == now, "the last border is not the one that was reached"


def _place_again(cluster: Cluster, log: list[HostWindow]) -> None:
    """One epoch of rows that were joined before."""
    router, clock = cluster.router, cluster.clock
    border = clock.now
    router.expire(border)
    stop = border + router.segment_length
    cluster.carry_out(router.advance(border))
    assert router.stop(border) == stop, "segments do not end where they should"
    real, real_stop = clock.real(border), clock.real_stop(stop)
    rows = [_between(host_window, real, real_stop) for host_window in log]
    size = cluster.room.row_bytes
    segments = [
        Segment(k, border, stop, len(stretch.rows), len(stretch.rows) * size)
        for k, stretch in enumerate(rows)
    ]
    ticket = Ticket(real, real_stop, border)
    ticket.left.add(1)
    for stretch, route in zip(rows, router.route(segments), strict=True):
        if len(stretch.rows):
            parts = route.placement.parts
            cluster.store(route.segment.stream, stretch.times, stretch.rows, parts, ticket)
    ticket.left.finish()
    cluster.wait(ticket)
    clock.advance(stop)


def _between(host_window: HostWindow, start: int, stop: int) -> Stretch:
    """The rows of a stretch of time, in order."""
    found = host_window.find(max(start, LONG_AGO), stop, None)
    if not found:
        return Stretch(start, stop, 1, *_nothing())
    times = joined([one.times for one in found])
    return Stretch(start, stop, 1, times, joined([one.rows for one in found]))


def _nothing() -> tuple[I64, I64]:
    return np.empty(0, np.int64), np.empty(0, np.int64)
