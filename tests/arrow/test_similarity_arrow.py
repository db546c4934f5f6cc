"""Similarity joins whose hops are spread over hosts give what one process gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.arrow import Limits, place

from tests.arrow_exchange import carry_out, histogram

SMALL = Limits(block_rows=8, results=5)


def table(random: Any, rows: int) -> pa.Table:
    """Rows with a set, a weighted set in two columns, a vector and bytes; some of them null."""
    sizes = random.integers(0, 5, rows)
    words = [random.choice(list("abcdef"), size).tolist() for size in sizes]
    return pa.table(
        {
            "t": np.sort(random.integers(0, 60, rows)),
            "id": np.arange(rows),
            "s": pa.array([None if i % 9 == 0 else w for i, w in enumerate(words)]),
            "n": pa.array([random.normal(0, 1, size).tolist() for size in sizes]),
            "v": pa.array(random.normal(0, 1, (rows, 3)).tolist(), pa.list_(pa.float32(), 3)),
            "b": pa.array([random.bytes(2) for _ in range(rows)], pa.binary(2)),
        }
    )


@pytest.mark.parametrize("strategy", ["atr", "ctr", "psp", "single"])
def test_hosts_find_what_one_process_finds(strategy: Any) -> None:
    random = np.random.default_rng(8)
    tables = {name: table(random, 40) for name in "abc"}
    a, b, c = (wj.stream(name, time="t", window=12) for name in "abc")
    on = [
        wj.overlap(a["s"], b["s"]) >= 1,
        wj.inner_product((a["s"], a["n"]), (c["s"], c["n"])) > -0.5,
        wj.l2(b["v"], c["v"]) <= 2.5,
        wj.hamming(a["b"], c["b"], unit="bits") <= 9,
    ]
    query = wj.join(a, b, c, on=on, select=[a["id"], b["id"], c["id"]])
    schemas = {name: rows.schema for name, rows in tables.items()}
    counts = histogram(query, schemas, tables)
    hosts = 1 if strategy == "single" else 3
    plan, _ = place(
        query, schemas, hosts=hosts, strategy=strategy, histogram=counts, limits=SMALL
    )  # fmt: skip
    found = carry_out(plan, tables, random).to_pylist()
    expected = query.run(tables).to_pylist()
    assert len(expected) > 50
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    here = query.run(tables, hosts=hosts, strategy=strategy).to_pylist()
    assert sorted(map(repr, here)) == sorted(map(repr, expected))
