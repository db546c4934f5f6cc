"""A session to a folder: what `Session.save` does."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from windjoin.errors import QueryError
from windjoin.kernels.intake import Intake
from windjoin.kernels.threads import in_threads
from windjoin.kernels.window import LONG_AGO
from windjoin.own_times import END
from windjoin.payload import Payload
from windjoin.query import Query
from windjoin.state.described import described
from windjoin.state.keeper import Keeper
from windjoin.state.kept import keeper_about, keeper_tables, sweep_generations
from windjoin.state.plain import to_plain
from windjoin.state.rows import AT_A_TIME, PAYLOAD, SAME, row_arrays, row_fields
from windjoin.state.snapshot import (
    NEW,
    SnapshotFolder,
    UnitFile,
    Written,
    as_data,
    still_needed,
    unwritable,
)
from windjoin.state.unit import UnitWriter

if TYPE_CHECKING:
    from windjoin.session import Session

# of `Options`; what is left out is given again to `restore`
KEPT_OPTIONS = (
    *("lateness", "rows_only", "keep_rejected", "strategy", "segment", "ordered", "on_late"),
    *("idle", "weights", "tuning", "memory", "spill", "on_full", "adaptation"),
)


def save(session: Session, path: Any, position: Any) -> None:
    """Write what changed since the last save to the same folder."""
    check_whole(session.query)
    folder = SnapshotFolder(path)
    if session._memory is not None:
        session.settle()  # what clean-ups under way give is saved as it is
        session._memory.residence.pack()
    if session._sink is not None:
        session._sink.flush()
    about = {
        "token": uuid.uuid4().hex,
        "query": described(session.query),
        "options": _options(session),
        "sequence": session.sequence,
        "position": to_plain(position, "position"),
        "learned": session._live is not None,
        "units": [],
        "sink": None if session._sink is None else session._sink.about(),
    }
    folder.make()
    units: list[UnitFile] = []
    if session._live is not None:
        about |= _counters(session, session._live)
        units = _save_rows(session, session._live, folder)
        about["units"] = as_data(units)
        if session._memory is not None:
            about["memory"] = keeper_about(session._memory, folder)
    else:
        about["waiting"] = _waiting(session)
    with _written(folder.writer(NEW, "snapshot", about)) as writer:
        for name, table in _tables(session):
            with writer.section(name, table.schema) as section:
                section.write_table(table)
    folder.put_in_place()
    folder.sweep(units)
    if "memory" in about:
        sweep_generations(folder, about["memory"])
    session._saved = Written(str(folder.path.resolve()), str(about["token"]), tuple(units))
    session._position = position


def check_whole(query: Query) -> None:
    """What is asked of several joins beside each other cannot be saved."""
    if query.sides.combined(len(query.streams)):
        raise QueryError(
            "save: combinations of several streams that exists= or missing= ask about cannot be"
            " saved; keep the rows of the last windows yourself, and push them again"
        )


def _options(session: Session) -> dict[str, Any]:
    given = {name: to_plain(getattr(session._options, name), f"{name}=") for name in KEPT_OPTIONS}
    hosts = session._options.hosts
    if hosts is not None and session._live is not None:
        hosts = len(session.hosts)  # some may have come or gone
        if session._asked_memory is not None:
            hosts = min(hosts, session._asked_memory.groups)
    return {**given, "hosts": hosts}


@contextmanager
def _written(writer: UnitWriter) -> Iterator[UnitWriter]:
    """Closes a unit, on disk; leaves no file if it cannot be written."""
    try:
        yield writer
        writer.close(sync=True)
    except BaseException as error:
        writer.abandon()
        if isinstance(error, OSError):
            assert writer.path is not None
            raise unwritable(writer.path, error) from error
        raise


# -- rows ------------------------------------------------------------------------------------------


def _save_rows(session: Session, live: Intake, folder: SnapshotFolder) -> list[UnitFile]:
    """Units that hold all rows: those of the last save, and one with what is new."""
    first = tuple(session.first_needed(number) for number in range(len(live.windows)))
    stop = tuple(window.tail for window in live.windows)
    units = still_needed(folder.reusable(session._saved), first, stop)
    if units:
        first = tuple(max(a, b) for a, b in zip(units[-1].stop, first, strict=True))
    if sum(stop) > sum(first):
        stretch = UnitFile(folder.next_file(), first, stop)
        same = [
            _same(session, number, ends)
            for number, ends in enumerate(zip(first, stop, strict=True))
        ]
        writer = folder.writer(stretch.file, "rows", {}, version=2 if any(same) else 1)
        with _written(writer):
            write_rows(writer, live, session._payloads, first, stop, session._memory, same)
        units.append(stretch)
    return units


def _same(session: Session, number: int, ends: tuple[int, int]) -> dict[str, str]:
    """Of the time and the keys of rows of a stream the columns that have the same values."""
    assert session._live is not None
    assert session._bound is not None
    window, kept = session._live.windows[number], session._payloads[number].columns
    same = session._bound.stream_rows(number).columns_as_they_lie()
    first, stop = ends
    here = session._memory is None and first >= window.head  # else times are not those of columns
    if not here or bool(
        (window.times_held()[first - window.head : stop - window.head] == LONG_AGO).any()
    ):
        same.pop("time", None)
    return {name: column for name, column in same.items() if column in kept}


def write_rows(
    writer: UnitWriter,
    live: Intake,
    payloads: list[Payload],
    first: Iterable[int],
    stop: Any,
    keeper: Keeper | None = None,
    same: Sequence[Mapping[str, str]] = (),
) -> None:
    """A section for each stream, with rows [first, stop) of it.

    same: by stream, columns whose values serve as time and keys, by the names of these
    """
    for number, (begin, end) in enumerate(zip(first, stop, strict=True)):
        payload = payloads[number]
        left_out = same[number] if same else {}
        fields = [one for one in row_fields(live.spec.streams[number]) if one.name not in left_out]
        fields += [payload.schema.field(n).with_name(PAYLOAD + n) for n in payload.columns]
        told = {name: PAYLOAD + column for name, column in left_out.items()}
        schema = pa.schema(fields, {SAME: json.dumps(told).encode()} if told else None)
        made = _parts(live, number, payload, schema, (begin, end), keeper, left_out)
        with writer.section(str(number), schema) as section:
            _write_all(section.write_table, made)


def _parts(
    live: Intake,
    number: int,
    payload: Payload,
    schema: pa.Schema,
    ends: tuple[int, int],
    keeper: Keeper | None,
    left_out: Mapping[str, str],
) -> Iterator[pa.Table]:
    """Rows [first, stop) of a stream, but for the columns of the kernels that are ``left_out``.

    So many at a time, made when they are asked for.
    """
    exporter, (begin, end) = live.exporter(number), ends
    names = [field.name for field in row_fields(live.spec.streams[number])]
    for at in range(begin, end, AT_A_TIME):
        rows = np.arange(at, min(at + AT_A_TIME, end))
        arrays: list[Any] = []
        if len(left_out) < len(names):
            held = rows if keeper is None else keeper.residence.numbers(number, rows)
            # what is not written need not be found
            keys = {int(k[4:]): rows for k in left_out if k.startswith("key.")}
            made = row_arrays(exporter.rows(held, keys))
            arrays = [one for name, one in zip(names, made, strict=True) if name not in left_out]
        yield pa.Table.from_arrays(arrays + payload.take(payload.columns, rows), schema=schema)


def _write_all(write: Callable[[pa.Table], None], made: Iterator[pa.Table]) -> None:
    """Write some rows while another thread makes the next ready."""
    rows = next(made, None)
    while rows is not None:
        if len(rows) < AT_A_TIME:  # the last
            write(rows)
            return
        _, rows = in_threads(2, _call, [(write, rows), (next, made, None)])


def _call(call: Callable[..., Any], *arguments: Any) -> Any:
    return call(*arguments)


# -- all else --------------------------------------------------------------------------------------


def _counters(session: Session, live: Intake) -> dict[str, Any]:
    streams = []
    for number, name in enumerate(session.query.names):
        window, clock, counts = live.windows[number], live.clocks[number], live.counts[number]
        rejected = session._rejected[name]
        streams.append(
            {
                **{"head": window.head, "tail": window.tail, "first": session.first_needed(number)},
                "horizon": window.extent.horizon,
                **{one: getattr(clock, one) for one in ("newest", "promised", "silenced")},
                **{one: getattr(counts, one) for one in ("rows_in", "unusable", "late", "expired")},
                "done": list(live.done_by(number)),
                **{"null_time": rejected.null_time, "rejected_late": rejected.late},
            }
        )
    return {
        "streams": streams,
        "results": live.results,
        "replanned": live.replanned,
        "given_before": live.given_before,
        "told": sorted(session._late.told),
        "keys": live.keys_known(),
        "outer": _outer(live),
    }


def _outer(live: Intake) -> dict[str, Any] | None:
    """What there is to know of rows in no result, but for which they are."""
    if live.outer is None:
        return None
    streams = {str(s): live.outer.state(s)[0] for s in live.outer.kept.streams}
    return {"matched": live.outer.matched, "streams": streams}


def _waiting(session: Session) -> dict[str, Any]:
    """What came before the schemas of all streams were known; tables are sections of their own."""
    came = [
        [number, "table" if isinstance(what, pa.Table) else _promised(what)]
        for number, what in session._waiting.came
    ]
    marks = session._waiting.marks
    return {"came": came, "rows": session._waiting.counted, "marks": marks}


def _promised(time: Any) -> Any:
    return "end" if time is END else {"time": to_plain(time, "advance")}


def _tables(session: Session) -> Iterator[tuple[str, pa.Table]]:
    """What is tables already: schemas, rejected rows, results that wait to leave."""
    for name, schema in session._known_schemas.items():
        yield f"schema.{name}", schema.empty_table()
    for name, table in session.rejected.items():
        yield f"rejected.{name}", table
    for number, owed in enumerate(session._owed):
        yield f"owed.{number}", pa.table(owed) if isinstance(owed, dict) else owed
    outer = None if session._live is None else session._live.outer
    for stream in () if outer is None else outer.kept.streams:
        _, matched, deferred = outer.state(stream)  # type: ignore[union-attr]
        yield f"matched.{stream}", pa.table({"row": matched})
        yield f"deferred.{stream}", pa.table({"row": deferred})
    if session._live is not None and session._live.pairs:
        columns = session._live.pairs
        yield "pairs", pa.table({str(k): column for k, column in enumerate(columns)})
    if session._memory is not None:
        yield from keeper_tables(session._memory)
    for number, (_, what) in enumerate(session._waiting.came):
        if isinstance(what, pa.Table):
            yield f"came.{number}", what
