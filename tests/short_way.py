"""Sessions by the short way of pushes and by the long one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.kernels.live import LiveJoin

Pushes = list[tuple[str, pa.Table]]


def outcome(query: wj.Query, come: Pushes, lateness: int) -> tuple[list[Any], dict[str, Any]]:
    """What every push returns, and the counters at the end."""
    schemas = {name: rows.schema for name, rows in come}
    results = []
    with query.open(schemas=schemas, rows_only=True, lateness=lateness) as session:
        for name, rows in come:
            out = session.push(name, rows)
            results.append(sorted(zip(*(part.tolist() for part in out.values()), strict=True)))
        metrics = session.metrics
    for counts in (metrics, *metrics["streams"].values()):
        counts.pop("state_bytes")
    return results, metrics


def differs_in_nothing(query: wj.Query, come: Pushes, lateness: int) -> int:
    """Compare both ways; how many results there are."""
    short = outcome(query, come, lateness)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LiveJoin, "_short_ways", lambda join: [])
        assert outcome(query, come, lateness) == short
    return sum(map(len, short[0]))
