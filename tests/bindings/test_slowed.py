"""Hosts that are slow, or seem to be: shares follow, and no result is lost or doubled."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given, settings
from hypothesis import strategies as st
from windjoin.diffusion import cluster as clusters
from windjoin.testing import slow

from tests.compare import assert_same_results
from tests.effort import examples

STRATEGIES = ["atr", "ctr", "psp", "groups"]
A, B, C = (wj.stream(name, time="t", window=w) for name, w in (("a", 8), ("b", 3), ("c", 12)))
THREE = wj.join(A, B, C, on=[A["k"] == B["k"], B["k"] == C["k"], A["x"] < C["x"]])
SCHEMA = pa.schema({"t": pa.int64(), "k": pa.int64(), "x": pa.int64()})


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(deadline=None, max_examples=examples(25))
@given(seed=st.integers(0, 2**32), segment=st.integers(1, 12), wild=st.floats(0, 1))
def test_loads_measured_at_any_moment_change_no_result(
    strategy: str, seed: int, segment: int, wild: float
) -> None:
    """Hosts report whatever they like, as often as they like."""
    chance, rng = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    kept: dict[str, list[pa.Table]] = {name: [SCHEMA.empty_table()] for name in "abc"}
    found: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clusters, "REPORT_SECONDS", 0.0)
        patch.setattr(clusters.Worker, "busy", lambda self: self.tally.busy + tall(chance, wild))
        with THREE.open(
            dict.fromkeys("abc", SCHEMA), rows_only=True, lateness=4, hosts=4,
            strategy=strategy, segment=segment,
        ) as session:  # fmt: skip
            now = 0
            for _ in range(14):
                for name in "abc":
                    n = int(rng.integers(0, 9))
                    times = np.sort(now + rng.integers(0, 7, n))
                    rows = {"t": times, "k": rng.integers(0, 2, n), "x": rng.integers(0, 9, n)}
                    kept[name].append(pa.table(rows, schema=SCHEMA))
                    found.append(session.push(name, kept[name][-1]))
                now += int(rng.choice([3, 7, 7, 30]))
            found.append(session.close())
    tables = {name: pa.concat_tables(parts) for name, parts in kept.items()}
    whole = THREE.indices(tables)
    got = [row for part in found for row in zip(*(part[n].tolist() for n in "abc"), strict=True)]
    assert_same_results(got, Counter(zip(*(whole[n].tolist() for n in "abc"), strict=True)))


def tall(chance: np.random.Generator, wild: float) -> float:
    return float(chance.exponential(10.0)) if chance.random() < wild else 0.0


def shares(session: Any, steps: range) -> list[float]:
    """Host 0's part of what is stored and joined, push by push."""
    rng, before, parts = np.random.default_rng(7), 0.0, []
    total = 0.0
    for step in steps:
        for name in "ab":
            times = np.sort(rng.integers(step * 10, step * 10 + 10, 60))
            session.push(name, {"t": times, "k": rng.integers(0, 64, 60)})
        hosts = session.metrics["hosts"]
        mine = hosts[0]["rows"] + hosts[0]["comparisons"]
        every = sum(host["rows"] + host["comparisons"] for host in hosts)
        parts.append((mine - before) / max(every - total, 1))
        before, total = mine, every
    return parts


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_slow_host_gets_less_and_its_share_when_it_is_quick_again(strategy: str) -> None:
    a, b = (wj.stream(name, time="t", window=20) for name in "ab")
    schema = pa.schema({"t": pa.int64(), "k": pa.int64()})
    options: dict[str, Any] = {"hosts": 4, "strategy": strategy, "segment": 10, "rows_only": True}
    with wj.join(a, b, on=a["k"] == b["k"]).open(dict.fromkeys("ab", schema), **options) as session:
        even = shares(session, range(12))
        with slow(session, host=0, by="10ms"):
            slowly = shares(session, range(12, 36))
        after = 0.0
        for start in range(36, 4000, 20):
            after = max(after, *shares(session, range(start, start + 20))[1:])
            if after > 0.1:
                break
    assert sum(slowly[8:]) / 16 < 0.5 * max(sum(even) / 12, 0.1)
    assert after > 0.1


def test_slow_refuses_what_it_cannot_do() -> None:
    a, b = (wj.stream(name, time="t", window=20) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    schema = pa.schema({"t": pa.int64(), "k": pa.int64()})
    with pytest.raises(wj.SessionError, match=r"slow\(\) needs an open session with hosts="):
        slow(query.open(dict.fromkeys("ab", schema)))
    with query.open(dict.fromkeys("ab", schema), hosts=2) as session:
        with pytest.raises(
            wj.QueryError, match=r"slow\(host=2\): there is no such host; there are \[0"
        ):
            slow(session, host=2)
        with pytest.raises(wj.QueryError, match=r"slow\(by=0.5\): give 1.0 or more"):
            slow(session, by=0.5)
        with pytest.raises(wj.QueryError, match=r"a host cannot be made faster"):
            slow(session, by="-5ms")


def test_groups_go_into_the_index_of_a_host_at_once_and_out_of_it() -> None:
    """Rows of several epochs, from and to several hosts: a call per stream, as that may be dear."""
    a, b = (wj.stream(name, time="t", window=40) for name in "ab")
    schema = pa.schema({"t": pa.int64(), "k": pa.int64()})
    rng = np.random.default_rng(3)
    rows = {
        name: {"t": np.sort(rng.integers(0, 60, 900)), "k": rng.integers(0, 64, 900)}
        for name in "ab"
    }
    query = wj.join(a, b, on=a["k"] == b["k"])
    with query.open(
        dict.fromkeys("ab", schema), rows_only=True, hosts=3, strategy="groups", segment=5
    ) as session:
        live: Any = session._live
        router = live.cluster.router
        router.adapt = False
        found = [part["a"] for part in pushed(session, rows, 0, 45)]
        calls = Calls(live.cluster.workers[2])
        mine = router.groups_of(2)
        live.cluster.carry_out(
            (*router.move_groups(mine[:7], 0), *router.move_groups(mine[7:12], 1))
        )
        assert calls.taken() == [("hold", 0), ("hold", 1)]
        theirs = [*router.groups_of(0)[:5], *router.groups_of(1)[:5]]
        live.cluster.carry_out(router.move_groups(theirs, 2))
        assert len(calls.taken()) == 2
        found += [part["a"] for part in pushed(session, rows, 45, 60)]
        found.append(session.close()["a"])
    whole = query.indices({name: pa.table(given, schema=schema) for name, given in rows.items()})
    assert Counter(np.concatenate(found).tolist()) == Counter(whole["a"].tolist())


def pushed(session: Any, rows: Any, start: int, stop: int) -> list[Any]:
    found = []
    for at in range(start, stop, 5):
        for name, given_rows in rows.items():
            low, high = np.searchsorted(given_rows["t"], [at, at + 5])
            found.append(session.push(name, {k: v[low:high] for k, v in given_rows.items()}))
    return found


class Calls:
    """What an operator of a host is asked to store or to hold."""

    def __init__(self, worker: Any) -> None:
        self.operator, self.found = worker.operator, []
        worker.operator = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.operator, name)

    def store(self, stream: int, rows: Any) -> None:
        self.found.append(("store", stream))
        self.operator.store(stream, rows)

    def hold(self, stream: int, rows: Any) -> None:
        self.found.append(("hold", stream))
        self.operator.hold(stream, rows)

    def taken(self) -> list[tuple[str, int]]:
        found, self.found = self.found, []
        return found
