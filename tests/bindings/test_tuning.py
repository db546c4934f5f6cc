"""What can be set of how hosts share a join, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import windjoin as wj

A, B = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
SAME = wj.join(A, B, on=A["k"] == B["k"])
ROWS = {"t": list(range(40)), "k": [t % 3 for t in range(40)]}
TABLES = {"a": ROWS, "b": ROWS}


@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        ("ctr", {"copies": 1, "warm_up_copies": 1, "crowded": 3.0}),
        ("ctr-random", {"copies": 2, "warm_up_copies": 2}),
        ("atr", {"master": "b", "order": "selectivity", "adapt": False}),
        ("atr", {"order": "master", "weights": (0.2, 0.3, 0.5), "bandwidth": 1e6, "memory": 1e6}),
        ("atr-fixed", {"master": "b"}),
        ("psp", {"relocation": "passive", "in_flight": 1, "smoothing": 0.5}),
        ("groups", {"group_count": 7, "adapt": False}),
        ("single", {"in_flight": 2}),
        ("auto", {"in_flight": 2}),
    ],
)
def test_whatever_is_set_the_results_are_the_same(strategy: str, options: dict[str, Any]) -> None:
    tuned = SAME.run(TABLES, hosts=3, strategy=strategy, segment=4, tuning=wj.Tuning(**options))
    assert tuned.num_rows == SAME.run(TABLES).num_rows


def test_what_is_set_is_what_routers_do() -> None:
    with SAME.open(
        {"a": _schema(), "b": _schema()}, hosts=3, strategy="atr", weights=(0.5, 0.25, 0.25),
        tuning=wj.Tuning(master="b", order="selectivity"),
    ) as session:  # fmt: skip
        router = session._live.routing.router
        assert (router.master, router.order) == (1, "selectivity")
        assert router.book.weights.memory == 0.25


def _schema() -> Any:
    import pyarrow as pa

    return pa.schema({"t": pa.int64(), "k": pa.int64()})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"copies": 0}, r"Tuning\(copies=0\): give a whole number, 1 or more"),
        ({"in_flight": 1.5}, r"Tuning\(in_flight=1.5\): give a whole number"),
        ({"crowded": 0.5}, r"Tuning\(crowded=0.5\): give 1 or more"),
        ({"smoothing": -1}, r"Tuning\(smoothing=-1\): give 0 or more"),
        ({"memory": 0}, r"Tuning\(memory=0\): give a number of bytes above 0"),
        ({"order": "mastr"}, r"Tuning\(order='mastr'\) is not known; did you mean 'master'"),
        ({"relocation": 3}, r"Tuning\(relocation=3\) is not known"),
        ({"weights": (1, 1, 1)}, r"weights=\(1, 1, 1\): give three numbers of 0 or more that sum"),
        ({"weights": 0.5}, r"weights=0.5: give three numbers, \(cpu, memory, network\)"),
    ],
)
def test_wrong_settings_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(wj.QueryError, match=message):
        wj.Tuning(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tuning": {"copies": 2}}, r"tuning=\{'copies': 2\}: give a windjoin.Tuning"),
        ({"tuning": wj.Tuning(copies=2)}, r"Tuning\(copies=...\) is not for strategy 'atr', which"),
        ({"tuning": wj.Tuning(master="c")}, r"Tuning\(master='c'\) is not a stream of this query"),
        ({"weights": (2, -1, 0)}, r"weights=\(2, -1, 0\): give three numbers of 0 or more"),
    ],
)
def test_settings_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(wj.QueryError, match=message):
        SAME.run(TABLES, hosts=2, strategy="atr", **options)


def test_settings_need_hosts() -> None:
    with pytest.raises(wj.QueryError, match=r"weights=\(1, 0, 0\) needs hosts="):
        SAME.run(TABLES, weights=(1, 0, 0))
