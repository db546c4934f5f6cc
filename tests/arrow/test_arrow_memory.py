"""What a host holds at a time does not grow with the rows it is sent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import windjoin as wj
from windjoin.arrow import Limits, place

from tests.arrow_exchange import carry_out, histogram

SMALL = Limits(gather_rows=256, payload_bytes=4096, block_rows=512, block_bytes=1 << 14)
TEXT = "x" * 50


def most_held(rows: int, strategy: Any) -> int:
    """Bytes, for so many rows of a stream over as long a time."""
    a, b = (wj.stream(name, time="ts", window=20) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    own = pa.table({"ts": np.arange(rows), "k": np.arange(rows) % 7, "w": [TEXT] * rows})
    tables = {"a": own, "b": own}
    schemas = dict.fromkeys("ab", own.schema)
    counts = histogram(query, schemas, tables)
    plan, _ = place(query, schemas, hosts=2, strategy=strategy, histogram=counts, limits=SMALL)
    reports: list[dict[str, Any]] = []
    found = carry_out(plan, tables, np.random.default_rng(2), reports)
    assert found.num_rows == query.run(tables).num_rows
    return max(int(report["most_bytes"]) for report in reports if report["step"] == "probe")


def test_a_host_holds_a_window_and_a_block() -> None:
    for strategy in ("atr", "ctr"):
        few, many = most_held(4_000, strategy), most_held(16_000, strategy)
        assert many < 1.5 * few, strategy
        assert many < 16_000 * len(TEXT) / 4, strategy
