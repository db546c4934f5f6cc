"""What the hosts of this process did and hold, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windjoin.diffusion.cluster import ROW_NUMBER, Cluster
from windjoin.explain import order_as_data
from windjoin.kernels.hosted import Way
from windjoin.kernels.order import Order

if TYPE_CHECKING:
    from windjoin.clustered import ClusterJoin


def report_of(join: ClusterJoin) -> dict[str, Any]:
    """Strategy and why, and by host what it holds and did: plain data."""
    described = join.routing.router.describe()
    names = [stream.name for stream in join.spec.streams]
    tallies = join.cluster.tallies()
    stored = sum(tally.rows_in for _, tally, _ in tallies)
    work = [
        tally.rows_in + tally.partials_in + tally.results + sum(compared)
        for _, tally, compared in tallies
    ]
    return {
        "strategy": described.strategy,
        "reasons": list(join.routing.reasons),
        "exact": described.exact,
        "expected_loss": described.expected_loss,
        "segment": join.routing.router.segment_length << join.routing.clock.shift,
        "epochs": join.cluster.epochs,
        "replication": stored / max(described.counters.rows, 1),
        "overhead": described.expected_overhead,
        "switches": described.counters.switches,
        "ring": dict(zip(names, described.details.get("lengths", ()), strict=False)),
        "revised": join.reviser.revised,
        "latency": join.cluster.latencies.as_data(),
        "ways": _ways(join),
        "hosts": [
            {
                "host": number,
                "load": done / max(sum(work), 1),
                "rows_stored": tally.rows_in,
                "rows_moved": tally.rows_moved,
                "partials_received": tally.partials_in,
                "results": tally.results,
                "comparisons": sum(compared),
            }
            for (number, tally, compared), done in zip(tallies, work, strict=True)
        ],
    }


def _ways(join: ClusterJoin) -> list[dict[str, Any]]:
    """How hosts extend the partial results they get, with what all of them measured."""
    names = [stream.name for stream in join.spec.streams]
    orders: dict[Way, tuple[Order, list[dict[str, int]]]] = {}
    for worker in join.cluster.workers.values():
        host: Any = worker.operator  # a `HostJoin`, of which `diffusion` knows less
        for way, order, hops in host.ways():
            so_far = orders[way][1] if way in orders else [dict.fromkeys(h, 0) for h in hops]
            added = [
                {name: hop[name] + old[name] for name in hop}
                for hop, old in zip(hops, so_far, strict=True)
            ]
            orders[way] = order, added
    return [
        {"bound": [names[s] for s in bound], **order_as_data(join.spec, order, hops)}
        for (bound, _), (order, hops) in sorted(orders.items(), key=lambda item: item[0])
    ]


def hosts_as_data(cluster: Cluster) -> list[dict[str, Any]]:
    """What each host did and holds, and how loaded it was measured to be: plain data."""
    book = cluster.router.book
    there = set(book.numbers)
    found = []
    for number, tally, compared in cluster.tallies():
        worker = cluster.workers.get(number)
        held = 0 if worker is None else sum(map(len, worker.host_windows))
        found.append(
            {
                "host": number,
                "rows": tally.rows_in,
                "results": tally.results,
                "comparisons": sum(compared),
                "cpu_seconds": tally.cpu,
                "busy_seconds": tally.busy,
                "bytes": held * cluster.room.row_bytes,
                "bytes_sent": tally.sent * ROW_NUMBER,
                "load": book.reported(number) if number in there and worker else 0.0,
                "pace": cluster.meter.pace(number),
            }
        )
    return found
