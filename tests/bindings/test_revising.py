"""Strategies and orders that change while a session on hosts runs, as what it sees changes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given, settings
from hypothesis import strategies as st
from windjoin import revising

from tests.compare import assert_same_results
from tests.effort import examples

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.int64(), "x": pa.int64()})


@pytest.mark.parametrize("strategy", ["auto", "atr", "ctr", "psp"])
@settings(deadline=None, max_examples=examples(20))
@given(seed=st.integers(0, 2**32), hosts=st.integers(1, 4))
def test_changes_at_any_moment_lose_and_double_nothing(
    strategy: str, seed: int, hosts: int
) -> None:
    """Every push may be the one after which all is dealt out anew, by another strategy too."""
    rng = np.random.default_rng(seed)
    a, b, c = (wj.stream(name, time="t", window=w) for name, w in (("a", 8), ("b", 3), ("c", 12)))
    query = wj.join(a, b, c, on=[a["k"] == b["k"], b["k"] == c["k"], a["x"] < c["x"]])
    kept: dict[str, list[pa.Table]] = {name: [SCHEMA.empty_table()] for name in "abc"}
    found: list[Any] = []
    with query.open(
        dict.fromkeys("abc", SCHEMA), rows_only=True, ordered=True, lateness=4, hosts=hosts,
        strategy=strategy, segment=3 if rng.random() < 0.5 else None,
    ) as session:  # fmt: skip
        now = 0
        for _ in range(16):
            for name in "abc":
                n = int(rng.integers(0, 9))
                times = np.sort(now + rng.integers(0, 7, n))
                rows = {"t": times, "k": rng.integers(0, 2, n), "x": rng.integers(0, 9, n)}
                kept[name].append(pa.table(rows, schema=SCHEMA))
                found.append(session.push(name, kept[name][-1]))
            if rng.random() < 0.4:
                change(session, str(rng.choice(["atr", "ctr", "psp", "groups", "single"])))
            if rng.random() < 0.2 and len(session.hosts) > 1:
                session.remove_host(session.hosts[0], lost=bool(rng.random() < 0.5))
            if rng.random() < 0.2:
                session.add_host(2.0)
            now += int(rng.choice([3, 7, 7, 50]))
        found.append(session.close())
    tables = {name: pa.concat_tables(parts) for name, parts in kept.items()}
    whole = query.indices(tables)
    got = [row for part in found for row in zip(*(part[n].tolist() for n in "abc"), strict=True)]
    expected = list(zip(*(whole[n].tolist() for n in "abc"), strict=True))
    assert_same_results(got, Counter(expected))


def change(session: Any, strategy: str) -> None:
    """As if another strategy had been found to be better."""
    join = session._live
    reviser = join.reviser
    reviser._hosts = revising.replace(reviser._hosts, strategy=strategy)
    found = reviser._routing(join, join.plan.spec, join.plan.statistics)
    reviser._take(join, found, revising.OperatorPlan(join.plan.spec, join.plan.statistics))


def test_orders_follow_what_the_windows_hold() -> None:
    a, b, c = (wj.stream(name, time="t", window=400) for name in "abc")
    query = wj.join(a, b, c, on=[abs(a["x"] - b["x"]) <= 50, abs(a["x"] - c["x"]) <= 50])
    rng, found = np.random.default_rng(5), 0
    every: dict[str, list[pa.Table]] = {name: [] for name in "abc"}
    with query.open(dict.fromkeys("abc", SCHEMA), hosts=2, strategy="atr") as session:
        for step in range(12):
            for name in "abc":
                n = 500
                times = np.sort(rng.integers(step * 100, step * 100 + 100, n))
                # c matches hardly anything: it should be probed first
                wide = 10**6 if name == "c" else 1000
                x = rng.integers(0, wide, n)
                rows = pa.table({"t": times, "k": x, "x": x}, schema=SCHEMA)
                every[name].append(rows)
                found += session.push(name, rows).num_rows
        found += session.close().num_rows
        revised = session.metrics["cluster"]["revised"]
    assert revised >= 1
    tables = {name: pa.concat_tables(parts) for name, parts in every.items()}
    assert found == query.run(tables).num_rows
