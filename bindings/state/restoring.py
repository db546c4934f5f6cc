"""A session from a folder: what `windjoin.restore` does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.kernels.intake import Intake
from windjoin.kernels.outer import Outer
from windjoin.own_times import END
from windjoin.query import Query
from windjoin.session import Session
from windjoin.session_state import SessionOptions
from windjoin.sinks import resumed_sink
from windjoin.state.described import check_same
from windjoin.state.kept import resident, resume_keeper, resume_numbering
from windjoin.state.plain import from_plain
from windjoin.state.rows import payload_of, rows_of
from windjoin.state.snapshot import SnapshotFolder, UnitFile, Written
from windjoin.state.unit import Unit


def restored(query: Query, path: Any, clock: Callable[[], float]) -> Session:
    """What `windjoin.restore` gives."""
    folder = SnapshotFolder(path)
    manifest = folder.manifest()
    about = manifest.about
    check_same(about["query"], query, f"the snapshot in {str(folder.path)!r}")
    options = {name: from_plain(value) for name, value in about["options"].items()}
    schemas = _schemas(query, manifest)
    session = Session(
        query, schemas if about["learned"] else None, SessionOptions(clock=clock, **options)
    )
    try:
        _fill(session, folder, manifest, schemas)
    except BaseException:
        session.abandon()
        raise
    return session


def _fill(
    session: Session, folder: SnapshotFolder, manifest: Unit, schemas: dict[str, pa.Schema]
) -> None:
    about = manifest.about
    session.sequence = about["sequence"]
    session._position = from_plain(about["position"])
    _take_results(session, manifest)
    if about.get("sink") is not None:
        session._sink = resumed_sink(about["sink"], session._options.clock)
        session._stream_inputs.clear()
    if session._live is None:
        _take_waiting(session, manifest, schemas)
        return
    units = folder.units(manifest)
    if session._memory is not None:
        resume_numbering(session._memory, about["memory"], manifest)
    known = about.get("keys", {})  # of earlier versions nothing
    session._live.reserve_keys({int(n): (keys, begin) for n, (keys, begin) in known.items()})
    _take_rows(session, session._live, about["streams"], units)
    if session._memory is not None:
        resume_keeper(session._memory, about["memory"], folder)
    _take_counters(session, session._live, manifest)
    if session._memory is not None:
        session._memory.went_on()
    found = session._live.loaded(about["given_before"])
    if len(found[0]):
        session._owed.append(session._results(session._numbered(found)))
    stretches = tuple(stretch for stretch, _ in units)
    session._saved = Written(str(folder.path.resolve()), about["token"], stretches)


def _schemas(query: Query, manifest: Unit) -> dict[str, pa.Schema]:
    return {
        name: manifest.table(f"schema.{name}").schema
        for name in query.names
        if f"schema.{name}" in manifest.sections
    }


def _take_rows(
    session: Session,
    live: Intake,
    streams: list[dict[str, Any]],
    units: list[tuple[UnitFile, Unit]],
) -> None:
    for number, known in enumerate(streams):
        keeper, begin = session._memory, known["first"]
        if keeper is not None and keeper.residence.numbering[number].base:
            numbering = keeper.residence.numbering[number]
            kept = len(numbering.kept_from(0))
            begin = numbering.base - kept if kept else max(numbering.base, begin)
        live.begin_at(number, begin)
        live.windows[number].make_room(known["tail"] - begin)
        session._payloads[number].begin(known["first"])
        came = known["first"]
        for stretch, unit in units:
            came = _take_section(session, live, number, (stretch.first[number], came), unit)
        extent = live.windows[number].extent
        extent.head, extent.horizon = known["head"], known["horizon"]


def _take_section(
    session: Session, live: Intake, number: int, ends: tuple[int, int], unit: Unit
) -> int:
    """Rows of one stream; where it begins, up to where rows have come; up to where they have."""
    at, came = ends
    payload, spec = session._payloads[number], live.spec.streams[number]
    # hosts ask beside each other; what a bound counts lies in pages, and leaves memory with them
    alone = session._memory is None and session._options.hosts is None
    for whole in unit.table(str(number)).to_batches():
        skipped = min(max(came - at, 0), whole.num_rows)
        batch, first = whole.slice(skipped), at + skipped
        at += whole.num_rows
        if not batch.num_rows:
            continue
        came = at
        if payload.columns:
            columns = payload_of(batch, payload.columns, payload.schema)
            (payload.lend if alone else payload.append)(columns)
        arrivals = np.arange(first, at)
        there = resident(session._memory, number, arrivals)
        if there is not None and len(there) < batch.num_rows:
            batch, arrivals = batch.take(there), arrivals[there]
        if batch.num_rows:
            live.load(number, rows_of(spec, batch), arrivals)
    return came


def _take_counters(session: Session, live: Intake, manifest: Unit) -> None:
    about = manifest.about
    for number, (name, known) in enumerate(zip(session.query.names, about["streams"], strict=True)):
        clock, counts = live.clocks[number], live.counts[number]
        for one in ("newest", "promised", "silenced"):
            setattr(clock, one, known[one])
        for one in ("rows_in", "unusable", "late", "expired"):
            setattr(counts, one, known[one])
        rejected = session._rejected[name]
        rejected.resume(
            manifest.table(f"rejected.{name}"), known["null_time"], known["rejected_late"]
        )
    results = about["results"]
    if live.outer is not None:
        _take_outer(live.outer, about["outer"], manifest)
        results -= live.outer.given
    live.resume(results, [tuple(known["done"]) for known in about["streams"]])
    live.replanned = about["replanned"]
    session._late.told.update(about["told"])
    if "pairs" in manifest.sections:
        live.resume_pairs([column.to_numpy() for column in manifest.table("pairs").columns])


def _take_outer(outer: Outer, about: dict[str, Any], manifest: Unit) -> None:
    """Which rows have been in a result."""
    outer.matched = about["matched"]
    for stream in outer.kept.streams:
        matched, waiting = (
            manifest.table(f"{what}.{stream}").column("row").to_numpy()
            for what in ("matched", "deferred")
        )
        outer.resume(stream, about["streams"][str(stream)], matched, waiting)


def _take_results(session: Session, manifest: Unit) -> None:
    """Results that were complete and had not left."""
    number = 0
    while f"owed.{number}" in manifest.sections:
        table = manifest.table(f"owed.{number}")
        rows = dict(zip(table.column_names, (c.to_numpy() for c in table.columns), strict=True))
        session._owed.append(rows if session.rows_only else table)
        number += 1


def _take_waiting(session: Session, manifest: Unit, schemas: dict[str, pa.Schema]) -> None:
    about = manifest.about["waiting"]
    came = [
        (stream, _came(what, place, manifest)) for place, (stream, what) in enumerate(about["came"])
    ]
    session._waiting.resume(schemas, came, about["rows"], about["marks"])


def _came(what: Any, place: int, manifest: Unit) -> Any:
    if what == "table":
        return manifest.table(f"came.{place}")
    return END if what == "end" else from_plain(what["time"])
