"""Sessions whose rows are taken as they lie, and as rows of which some might be unusable."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.kernels.live import LiveJoin
from windjoin.session import Session

Pushes = list[tuple[str, pa.Table]]


def outcome(query: wj.Query, come: Pushes, lateness: int) -> tuple[list[Any], dict[str, Any]]:
    """What every push returns, and the counters at the end."""
    schemas = {name: rows.schema for name, rows in come}
    results = []
    options = {"rows_only": True, "lateness": lateness, "on_late": "keep"}
    with query.open(schemas=schemas, **options) as session:
        for name, rows in come:
            out = session.push(name, rows)
            results.append(sorted(zip(*(part.tolist() for part in out.values()), strict=True)))
        metrics = session.metrics
    for counts in (metrics, *metrics["streams"].values()):
        counts.pop("state_bytes")
        counts.pop("held_bytes", None)
    return results, metrics


@contextmanager
def looked_at_twice() -> Iterator[None]:
    """No row is taken as it lies."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "_open_stream_inputs", lambda session, *_: None)
        patch.setattr(LiveJoin, "_push_as_they_lie", lambda join, stream, rows: None)
        yield


def differs_in_nothing(query: wj.Query, come: Pushes, lateness: int) -> int:
    """Compare both ways; how many results there are."""
    as_they_lie = outcome(query, come, lateness)
    with looked_at_twice():
        assert outcome(query, come, lateness) == as_they_lie
    return sum(map(len, as_they_lie[0]))
