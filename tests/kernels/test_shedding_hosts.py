"""Sessions that shed on hosts, each by its own load, and sessions that shed and spill."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import windjoin as wj

from tests.kernels.test_shedding import WINDOW, shedding, three, three_streams
from tests.shedding_streams import Run, by_hash, lagging, pushes, scanned

pytestmark = pytest.mark.filterwarnings("ignore::windjoin.SheddingWarning")
STRATEGIES = [
    (1, "auto"), (2, "auto"), (2, "atr"), (2, "ctr"), (3, "psp"), (2, "single"),
]  # fmt: skip


def play(query: wj.Query, streams: dict[str, Any], each: int = 250, **options: Any) -> Run:
    """Push all rows and close; what came of it."""
    run = Run()
    with query.open(rows_only=True, **options) as session:
        for name, rows in pushes(streams, each):
            _add(run, streams, session.push(name, rows))
        _add(run, streams, session.close())
        run.metrics, run.explained = session.metrics, session.explain()
    return run


def _add(run: Run, streams: dict[str, Any], found: Any) -> None:
    run.results += zip(*(np.asarray(found[name]).tolist() for name in streams), strict=True)


@pytest.fixture(scope="module")
def streams() -> dict[str, Any]:
    return lagging(40, 40)


@pytest.fixture(scope="module")
def needed(streams: dict[str, Any]) -> float:
    """Comparisons a second of an exact run."""
    return float(play(scanned(), streams).metrics["comparisons"]) / 40


@pytest.mark.parametrize(("hosts", "strategy"), STRATEGIES)
def test_hosts_give_all_results_without_overload(
    streams: dict[str, Any], needed: float, hosts: int, strategy: str
) -> None:
    run = play(scanned(), streams, 500, hosts=hosts, strategy=strategy, shed=shedding(3 * needed))
    assert set(run.results) == by_hash(streams, WINDOW)
    assert len(run.results) == len(set(run.results))
    assert run.shed["fraction"] == run.shed["recall"] == run.shed["recall_low"] == 1
    assert not run.shed["shedding"]
    assert run.shed["left_out"] == 0


@pytest.mark.parametrize(("hosts", "strategy"), STRATEGIES)
def test_results_of_hosts_that_shed_are_true_and_each_is_given_once(
    streams: dict[str, Any], needed: float, hosts: int, strategy: str
) -> None:
    shed = shedding(needed / 4 / hosts)
    run = play(scanned(), streams, 500, hosts=hosts, strategy=strategy, shed=shed)
    assert len(set(run.results)) == len(run.results) > 0
    assert set(run.results) < by_hash(streams, WINDOW)
    assert run.metrics["comparisons"] < 0.7 * 40 * needed
    assert run.shed["recall"] < 1
    assert set(run.shed["hosts"]) == set(range(hosts))
    assert "shedding: selective" in run.explained


def test_what_hosts_tell_adds_up(streams: dict[str, Any], needed: float) -> None:
    run = play(scanned(), streams, 500, hosts=2, strategy="atr", shed=shedding(needed / 8))
    hosts = run.shed["hosts"].values()
    assert run.shed["missed"] == pytest.approx(sum(host["missed"] for host in hosts))
    assert run.shed["left_out"] == pytest.approx(sum(host["left_out"] for host in hosts))
    assert run.shed["missed"] == pytest.approx(
        sum(one["missed"] for one in run.shed["streams"].values())
    )
    whole = run.shed["comparisons"] + run.shed["left_out"]
    exact = 40 * needed
    assert abs(whole - exact) < max(2 * run.shed["left_out_error"], 0.15 * exact)
    assert run.shed["results"] == len(run.results)


def test_a_host_that_has_less_to_do_sheds_less(needed: float) -> None:
    streams = lagging(60, 40, 3.0)
    for columns in streams.values():  # nine of ten rows have one key
        columns["k"] = np.where(np.arange(len(columns["t"])) % 10 == 0, 1, 0)
    a, b = scanned().streams
    query = wj.join(a, b, on=[a["k"] == b["k"], a["x"] * b["x"] == b["x"] * b["x"]])
    shed = shedding(needed / 3)
    run = play(query, streams, 500, hosts=2, strategy="groups", shed=shed,
               tuning=wj.Tuning(adapt=False))  # fmt: skip
    fractions = sorted(host["fraction"] for host in run.shed["hosts"].values())
    assert fractions[0] < 0.8
    assert fractions[1] == 1


def test_three_streams_on_hosts_are_true_and_exact_without_overload() -> None:
    streams = three_streams(25)
    truth = set(play(three(2000), streams).results)
    for per_s, all_of_it in ((1e9, True), (1, False)):
        shed = shedding(per_s, adapt_every=5000)
        run = play(three(2000), streams, 500, hosts=2, shed=shed)
        assert set(run.results) <= truth
        assert len(set(run.results)) == len(run.results)
        assert (set(run.results) == truth) == all_of_it


def test_hosts_that_come_and_go_keep_what_was_told(streams: dict[str, Any], needed: float) -> None:
    found = Run()
    shed = shedding(needed / 6)
    with scanned().open(rows_only=True, hosts=2, strategy="atr", shed=shed) as session:
        for number, (name, rows) in enumerate(pushes(streams, 500)):
            if number == 60:
                session.add_host()
            if number == 110:
                before = session.metrics["shedding"]["missed"]
                session.remove_host(0)
                assert session.metrics["shedding"]["missed"] >= before
            _add(found, streams, session.push(name, rows))
        _add(found, streams, session.close())
    assert len(set(found.results)) == len(found.results) > 0
    assert set(found.results) < by_hash(streams, WINDOW)


def test_the_first_host_that_sheds_tells_once(streams: dict[str, Any]) -> None:
    with pytest.warns(wj.SheddingWarning, match="rows come faster than a budget of 3,000") as told:
        play(scanned(), streams, hosts=2, strategy="atr", shed=shedding(3000))
    assert len(told) == 1


def test_budget_of_time_on_hosts() -> None:
    streams, now = lagging(12, 300), [0.0]
    shed = wj.Shedding(budget=1e-3, clock=lambda: now[0])
    found = Run()
    with scanned().open(rows_only=True, hosts=2, strategy="atr", shed=shed) as session:
        for name, rows in pushes(streams, 250):
            now[0] += 0.1
            _add(found, streams, session.push(name, rows))
        _add(found, streams, session.close())
        told = session.metrics["shedding"]
    assert set(found.results) < by_hash(streams, WINDOW)
    assert told["fraction"] < 0.9
    assert told["recall_low"] < 1


def test_what_hosts_cannot_shed_is_refused() -> None:
    with pytest.raises(wj.QueryError, match=r"strategy='ctr': partial results of 3 streams"):
        three().open(hosts=2, strategy="ctr", shed=shedding(10))
    for options, says in (({"hosts": 2}, "hosts="), ({"memory": "1GB"}, "memory=")):
        with pytest.raises(wj.QueryError, match=f'policy="drop" with {says}'):
            scanned().open(shed=shedding(10, policy="drop"), **options)


# -- memory= ------------------------------------------------------------------------------------


def keyed() -> wj.Query:
    a, b = (wj.stream(name, time="t", window="10s", unit="ms") for name in "ab")
    return wj.join(a, b, on=[a["k"] == b["k"], a["x"] * b["x"] == b["x"] * b["x"]])


@pytest.fixture(scope="module")
def many() -> dict[str, Any]:
    streams = lagging(20, 300, 0.5)
    for columns in streams.values():
        columns["k"] = columns["x"] % 11
    return streams


@pytest.mark.parametrize("per_s", [1e12, 50.0])
def test_a_session_may_shed_and_spill(many: dict[str, Any], tmp_path: Path, per_s: float) -> None:
    truth = by_hash(many, WINDOW)
    shed = shedding(per_s)
    run = play(keyed(), many, 1000, memory="500KB", spill=str(tmp_path), shed=shed)
    assert run.metrics["memory"]["spills"] > 0
    assert len(set(run.results)) == len(run.results)
    assert set(run.results) <= truth
    if per_s == 1e12:
        assert set(run.results) == truth
        assert run.shed["recall_low"] == 1
    else:
        assert run.shed["left_out"] > 0
        assert len(run.results) < len(truth)
        assert run.shed["recall"] == pytest.approx(len(run.results) / len(truth), abs=0.15)


def test_utility_is_read_of_rows_that_were_renumbered(many: dict[str, Any], tmp_path: Path) -> None:
    query = keyed()
    b: Callable[[str], Any] = query.streams[1].__getitem__
    shed = shedding(200, utility=b("x") % 3)
    run = play(query, many, 1000, memory="500KB", spill=str(tmp_path), shed=shed)
    assert run.metrics["memory"]["spills"] > 0
    assert set(run.results) <= by_hash(many, WINDOW)
