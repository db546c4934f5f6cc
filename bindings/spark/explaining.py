"""`explain`: what a join on Spark will do and why, and what its last run did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windjoin.diffusion.registry import SHIPPED
from windjoin.figures import length
from windjoin.query import Query, check_query
from windjoin.spark.explaining_stream import explain_stream
from windjoin.spark.joining import Planned, last_plan, planned_join
from windjoin.spark.settings import missing
from windjoin.spark.streaming import last_stream, planned_stream

NONE = "none, as every host reads the files and keeps its rows"
CONNECT = "measured: nothing, as Spark Connect has no accumulators"
SENT = ("rows", "rejected", "joinable", "copies", "bytes", "segments")
COUNTED = ("rows", "results", "comparisons", "seconds", "bytes_onward", "most_bytes")


def explain(
    query: Query,
    frames: Mapping[str, Any] | None = None,
    *,
    hosts: int | None = None,
    strategy: str = "auto",
    segment: str | int | None = None,
    skew: str = "spread",
    slots: int | None = None,
    lateness: Any = 0,
    log: str | None = None,
) -> str:
    """The plan of a join, as text.

    With ``frames``: what `join` would do with them and these options.  Without: what the last
    `join` of this query planned, and after its result was used also what was measured.
    Streaming frames, and queries that `stream` or `start` were called with last: the plan, and what
    the log says; ``slots``, ``lateness`` and ``log`` are for them.
    """
    check_query(query, "explain")
    if frames is not None and any(getattr(one, "isStreaming", False) for one in frames.values()):
        options = {"strategy": strategy, "segment": segment, "lateness": lateness}
        count = hosts if slots is None else slots
        return explain_stream(planned_stream(query, frames, log=log, slots=count, **options))
    streaming = last_stream(query)
    if frames is None and streaming is not None:
        return explain_stream(streaming)
    if frames is not None:
        planned: Planned | None = planned_join(query, frames, hosts, strategy, segment, skew)[0]
    else:
        planned = last_plan(query)
    if planned is None:
        return "nothing planned yet: give the frames, or join them first"
    return "\n".join([*_plan_lines(planned), *_measured_lines(planned), *_settings(planned)])


def _plan_lines(planned: Planned) -> list[str]:
    plan, expected = planned.plan, planned.expected
    names, unit = plan.query.names, plan.bound.time_unit
    lines = [
        f"strategy: {plan.strategy} ({SHIPPED[plan.strategy]})",
        f"why: {planned.why}",
        f"hosts: {plan.hosts}, exchanges: {planned.exchanges or NONE}",
    ]
    if plan.order:
        lines.append(f"order: {' -> '.join(names[stream] for stream in plan.order)}")
    elif plan.strategy == "atr":
        lines.append(f"master: {names[plan.master]}")
    if expected.segment:
        lines.append(f"segments: about {length(expected.segment, unit)} long")
        lines.append(
            f"expected: {expected.copies:.3f} rows sent per row, imbalance {expected.imbalance:.2f}"
        )
    if planned.direct:
        lines.append(f"read by tasks from Parquet files: {', '.join(planned.direct)}")
    lines += [f"travels of {name}: {', '.join(plan.schemas[name].names)}" for name in names]
    return lines


def measured(query: Query) -> list[dict[str, Any]]:
    """What every host did when the result of the last `join` of this query was last used.

    One dictionary for each exchange and host, also for those that got nothing: ``exchange`` (1 also
    where every host reads the files), ``host``, ``rows``, ``results``, ``comparisons``,
    ``seconds``, ``bytes_onward``, ``most_bytes``.
    Empty before the result is used, and under Spark Connect.
    """
    planned = last_plan(query)
    if planned is None or planned.meter is None or not planned.meter.packed:
        return []
    found = []
    for stage in range(planned.plan.stages):
        reported = planned.meter.hosts(stage)
        for host in range(planned.plan.hosts):
            counts = reported.get(host, {})
            found.append(
                {"exchange": stage + 1, "host": host} | {k: counts.get(k, 0) for k in COUNTED}
            )
    return found


def _measured_lines(planned: Planned) -> list[str]:
    if planned.meter is None:
        return [CONNECT]
    packed = planned.meter.packed
    if not packed:
        return ["measured: nothing yet, the result has not been used"]
    sums = {name: sum(one[name] for one in packed.values()) for name in SENT}
    lines = [
        f"measured: {sums['rows']} rows, {sums['rejected']} rejected (no time),"
        f" {sums['copies'] / max(1, sums['joinable']):.3f} rows sent per joinable row,"
        f" {sums['bytes']} bytes in {sums['segments']} segments"
    ]
    onward = {"rows_onward": 0, "bytes_onward": 0}
    for stage in range(planned.plan.stages):
        hosts = planned.meter.hosts(stage)
        lines += _exchange_lines(planned, stage, hosts, onward)
        onward = {name: sum(host[name] for host in hosts.values()) for name in onward}
    return lines


def _exchange_lines(
    planned: Planned, stage: int, hosts: Mapping[int, Any], onward: Mapping[str, int]
) -> list[str]:
    """An exchange: what was shuffled, and what each host did with it."""
    assert planned.meter is not None
    names = [planned.plan.query.names[stream] for stream in planned.plan.inputs[stage]]
    sent = [one for stream, one in planned.meter.packed.items() if stream in names]
    rows = sum(one["copies"] for one in sent) + onward["rows_onward"]
    size = sum(one["bytes"] for one in sent) + onward["bytes_onward"]
    if planned.exchanges:
        label, host_label = f"exchange {stage + 1}", f"exchange {stage + 1}, host"
        lines = [f"  {label}: {rows} rows in {size} bytes shuffled"]
    else:
        label, host_label, lines = "hosts", "host", []
    for number, host in sorted(hosts.items()):
        lines.append(
            f"  {host_label} {number}: {host['rows']} rows, {host['results']} results,"
            f" {host['comparisons']} comparisons, {host['seconds']:.3f} s"
        )
    for what in ("rows", "results", "seconds"):
        done = [host[what] for host in hosts.values()]
        mean = sum(done) / planned.plan.hosts
        if mean:
            lines.append(f"  {label}: imbalance in {what} {max(done) / mean:.2f}")
    return lines


def _settings(planned: Planned) -> list[str]:
    return [
        f"setting missing: {one.key}={one.value}, without it {one.cost}"
        for one in missing(planned.spark)
    ]
