"""The one door between these tests and the package: programs are run, results become multisets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tests import functions
from tests.cases import ROW, Case, SessionCase
from tests.oracle import TIME, Results


def build(case: Case) -> Any:
    """The query that the case's program builds."""
    namespace: dict[str, Any] = dict(vars(functions))
    exec(case.source(), namespace)
    return namespace["query"]


def index_rows(case: Case, indices: dict[str, Any]) -> list[tuple[int, ...]]:
    """What ``query.indices`` returns, as one tuple of row numbers per result, in order."""
    assert list(indices) == case.names
    columns = [np.asarray(indices[name]) for name in case.names]
    assert {column.dtype for column in columns} == {np.dtype(np.int64)}
    return list(zip(*(column.tolist() for column in columns), strict=True))


def table_rows(names: Sequence[str], table: pa.Table) -> list[tuple[int, ...]]:
    """The same for a table of results, by the row numbers that every stream carries."""
    columns = [table.column(f"{name}_{ROW}").to_pylist() for name in names]
    return list(zip(*columns, strict=True))


def run_session(
    session_case: SessionCase, session: Any
) -> tuple[list[Results], list[list[int]], Results]:
    """Take every step: results per step, rejected row numbers per stream, results of closing."""
    case, results = session_case.case, []
    for step in session_case.steps:
        stream = case.streams[step.stream]
        if step.time is None:
            table = session.push(stream.name, stream.table(step.start, step.stop))
            results.append(Counter(table_rows(case.names, table)))
        else:
            session.advance(stream.name, user_time(session_case, step.stream, step.time))
            results.append(Counter())
    rejected = [rejected_rows(session, name) for name in case.names]
    return results, rejected, Counter(table_rows(case.names, session.close()))


def user_time(session_case: SessionCase, stream: int, stored: int) -> Any:
    """A time as a user says it: an integer, or what the column's own values are."""
    kind = session_case.case.streams[stream].kinds[TIME]
    if pa.types.is_integer(kind.type):
        return stored
    return pa.array([stored], kind.type).cast(pa.timestamp("us", kind.type.tz))[0].as_py()


def schemas(case: Case) -> dict[str, pa.Schema]:
    return {stream.name: stream.table(0, 0).schema for stream in case.streams}


def open_session(session_case: SessionCase, *, with_schemas: bool = True) -> Any:
    """A session of the case's query with its lateness."""
    import datetime

    lateness = eval(session_case.lateness_source, {"datetime": datetime})
    given = schemas(session_case.case) if with_schemas else None
    return build(session_case.case).open(schemas=given, lateness=lateness, on_late="keep")


def rejected_rows(session: Any, name: str) -> list[int]:
    """Row numbers of a stream's rejected rows, sorted."""
    return sorted(session.rejected[name].column(ROW).to_pylist())


def metric(session: Any, name: str, stream: str | None = None) -> int:
    """A counter of the session, in all or of one stream."""
    metrics = session.metrics if stream is None else session.metrics["streams"][stream]
    value: int = metrics[name]
    return value
