"""Joins on hosts of this process: every strategy gives what one host gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.clustered import join_on_hosts
from windjoin.output import table_fetch
from windjoin.strategies import Hosts

from tests.api import build, index_rows, table_rows
from tests.cases import Case
from tests.compare import assert_same_results
from tests.oracle import join, ordered
from tests.strategies import cases

ANY_QUERY = ("single", "atr", "ctr", "psp", "atr-fixed", "ctr-random", "auto")
lengths = st.none() | st.sampled_from([1, 2, 3, 7, 16, 40, 1000])  # sixteenths of a window


def on_hosts(case: Case, hosts: Hosts) -> list[tuple[int, ...]]:
    """Results of a case; ``hosts.segment`` in sixteenths of its longest window."""
    tables = case.tables()
    bound = build(case).bind({name: table.schema for name, table in tables.items()})
    data = list(tables.values())
    rows = [bound.prepare(number, table).rows for number, table in enumerate(data)]
    if hosts.segment is not None:
        longest = max(stream.window for stream in bound.spec.streams)
        hosts = replace(hosts, segment=longest * hosts.segment // 16 + 1)
    found, _, _ = join_on_hosts(bound.spec_with(table_fetch(data)), rows, hosts, None)
    return list(zip(*(column.tolist() for column in found), strict=True))


@pytest.mark.parametrize("strategy", ANY_QUERY)
@given(case=cases(most=4), count=st.integers(1, 5), segment=lengths)
def test_hosts_together_give_the_oracles_results(
    strategy: str, case: Case, count: int, segment: int | None
) -> None:
    got = on_hosts(case, Hosts(count, strategy, segment))
    assert_same_results(got, join(case.query, case.rows()))


@pytest.mark.parametrize("strategy", ANY_QUERY)
@pytest.mark.usefixtures("small_blocks")
@given(case=cases(most=4), count=st.integers(1, 5), segment=lengths)
def test_blocks_of_partial_results_may_end_anywhere(
    strategy: str, case: Case, count: int, segment: int | None
) -> None:
    got = on_hosts(case, Hosts(count, strategy, segment))
    assert_same_results(got, join(case.query, case.rows()))


@given(case=cases(most=3), count=st.integers(1, 4), strategy=st.sampled_from(ANY_QUERY))
def test_run_and_indices_take_hosts(case: Case, count: int, strategy: str) -> None:
    query, expected = build(case), join(case.query, case.rows())
    table = query.run(case.tables(), hosts=count, strategy=strategy, ordered=True)
    assert table_rows(case.names, table) == ordered(expected, case.rows())
    rows = query.indices(case.tables(), hosts=count, strategy=strategy)
    assert_same_results(index_rows(case, rows), expected)
    assert query.metrics["results"] == expected.total()


A, B = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
SAME = wj.join(A, B, on=A["k"] == B["k"])
BAND = wj.join(A, B, on=abs(A["k"] - B["k"]) <= 1)
TABLES = {"a": {"t": [1, 4], "k": [7, 8]}, "b": {"t": [5, 6], "k": [8, 9]}}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hosts": 0}, r"hosts=0: give a number of hosts, 1 to 4096, or None"),
        ({"hosts": 2.0}, r"hosts=2.0: give a number"),
        ({"hosts": 2, "strategy": "atrr"}, r"strategy='atrr' is not known; did you mean 'atr'\?"),
        ({"strategy": "atr"}, r"strategy='atr' needs hosts=, the number of hosts"),
        ({"segment": 5}, r"segment=5 needs hosts="),
        ({"hosts": 2, "threads": 2}, r"threads=2 and hosts=2: every host is a thread"),
        ({"hosts": 2, "segment": 0}, r"segment=0 is shorter than the unit of the times"),
        ({"hosts": 2, "segment": -1}, r"segment=-1 is negative; give 0 or more"),
        ({"hosts": 2, "segment": "1s"}, r"segment='1s': the streams have integer times"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(wj.QueryError, match=message):
        SAME.run(TABLES, **options)


def test_groups_need_a_key_of_all_streams() -> None:
    assert SAME.run(TABLES, hosts=2, strategy="groups").num_rows == 1
    with pytest.raises(wj.QueryError, match="no equality ties all streams of this query together"):
        BAND.run(TABLES, hosts=2, strategy="groups")


def test_a_segment_far_too_short_is_refused() -> None:
    a, b = (wj.stream(name, time="t", window=10**6) for name in ("a", "b"))
    tables = {name: {"t": [0, 10**6], "k": [1, 1]} for name in ("a", "b")}
    with pytest.raises(wj.QueryError, match=r"1 ticks are too short for a window of 1000000; it"):
        wj.join(a, b, on=a["k"] == b["k"]).run(tables, hosts=2, segment=1)


def test_random_says_that_it_loses_results() -> None:
    times = list(range(200))
    tables = {name: {"t": times, "k": [1] * 200} for name in ("a", "b")}
    whole = SAME.run(tables).num_rows
    found = SAME.run(tables, hosts=4, strategy="random", segment=2).num_rows
    report = SAME.metrics["cluster"]
    assert found < whole
    assert not report["exact"]
    assert report["expected_loss"] == pytest.approx(1 - found / whole, abs=0.15)
