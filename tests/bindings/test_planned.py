"""A session begins with a plan, tells how far it is from it, and does not go to and fro."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.errors import QueryError
from windjoin.kernels.replanning import WORTHWHILE, Replanner
from windjoin.kernels.spec import Equal, JoinSpec, Key, StreamSpec
from windjoin.kernels.statistics import Statistics

A, B, C = (wj.stream(name, time="t", window="2s", unit="ms") for name in "abc")
QUERY = wj.join(A, B, C, on=[A["k"] == B["k"], abs(B["x"] - C["x"]) <= 0.05, A["k"] == C["k"]])
RATES = {"a": 50.0, "b": 20.0, "c": 30.0}


def rows(seed: int, rate: float, seconds: int = 20) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    count = int(rate * seconds)
    return {
        "t": np.sort(random.integers(0, seconds * 1000, count)),
        "k": random.integers(0, 5, count),
        "x": random.random(count),
    }


TABLES = {name: rows(seed, RATES[name]) for seed, name in enumerate("abc")}
SCHEMAS = {name: pa.table(table).schema for name, table in TABLES.items()}


def played(session: Any) -> Counter[str]:
    found: Counter[str] = Counter()
    for begin in range(0, 20_000, 250):
        for name, table in TABLES.items():
            at = slice(*np.searchsorted(table["t"], [begin, begin + 250]))
            out = session.push(name, {key: values[at] for key, values in table.items()})
            found.update(map(str, out.to_pylist()))
    return found


def ways(session: Any) -> dict[str, list[tuple[str, str]]]:
    return {
        order["start"]: [(step["stream"], step["index"]) for step in order["steps"]]
        for order in session.explain("json")["orders"]
    }


def test_every_alternative_runs_as_it_says_and_finds_the_same() -> None:
    plan = wj.plan(QUERY, rates=RATES, statistics=TABLES)
    expected = Counter(map(str, QUERY.run(TABLES).to_pylist()))
    indexes = set()
    for one in plan.alternatives:
        if one.kind == "tree":
            with pytest.raises(QueryError, match="a tree of joins, which the engine does not run"):
                QUERY.open(plan=plan.taking(one))
            continue
        with QUERY.open(SCHEMAS, plan=plan.taking(one), pin=True) as session:
            assert played(session) == expected
            assert ways(session) == {
                name: [(hop.stream, hop.index) for hop in hops] for name, hops in one.hops.items()
            }
            assert "pinned to the plan" in session.explain()
        indexes |= {hop.index for hops in one.hops.values() for hop in hops}
    assert indexes >= {"hash lists", "grid of cells", "scan"}
    assert expected


def test_rates_and_cost_are_told_beside_those_of_the_plan() -> None:
    plan = wj.plan(QUERY, rates={"a": 5.0, "b": 5.0, "c": 5.0}, statistics=TABLES)
    with QUERY.open(SCHEMAS, plan=plan) as session:
        played(session)
        told = session.explain("json")["measured"]
        text = session.explain()
    assert told["rates"] == pytest.approx(RATES, rel=0.3)
    assert told["planned"]["rates"] == plan.rates
    assert told["planned"]["cost"] == plan.cost < told["cost"]
    assert "(planned 5/s)" in text
    with QUERY.open(SCHEMAS) as session:
        played(session)
        assert "rates measured: a " in session.explain()
        assert "planned" not in session.explain()


def test_a_plan_that_does_not_fit_is_left_unless_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    replanning = import_module("windjoin.kernels.replanning")
    monkeypatch.setattr(replanning, "FIRST_LOOK", 400)
    monkeypatch.setattr(replanning, "LEAST_ROWS", 10)
    plan = wj.plan(QUERY, rates=RATES, statistics=TABLES)
    scans = max(plan.alternatives, key=lambda one: one.cost if one.kind == "hops" else 0)
    poor = plan.taking(scans)
    expected = Counter(map(str, QUERY.run(TABLES).to_pylist()))
    for pin in (False, True):
        with QUERY.open(SCHEMAS, plan=poor, pin=pin) as session:
            before = ways(session)
            assert played(session) == expected
            told = session.explain("json")
            assert (ways(session) == before) is pin
            assert (told["replanned"] > 0) is not pin
            assert len(told["measured"]["changes"]) == told["replanned"]
            if not pin:
                assert "of the cost" in session.explain()
            session.set_window("a", "1s")
            assert (ways(session) == before) is pin


def test_what_is_no_plan_of_this_is_refused() -> None:
    plan = wj.plan(QUERY, rates=RATES)
    two = wj.join(A, B, on=A["k"] == B["k"])
    with pytest.raises(QueryError, match="pin=True keeps to a plan: give plan="):
        QUERY.open(pin=True)
    with pytest.raises(QueryError, match="plan=5: give a plan that windjoin"):
        QUERY.open(plan=5)
    with pytest.raises(QueryError, match="plan= is of another query"):
        two.open(plan=plan)
    with pytest.raises(QueryError, match="plan= is not for shed="):
        QUERY.open(plan=plan, shed=wj.Shedding(budget=0.5))
    with pytest.raises(QueryError, match="give one of the alternatives of this plan"):
        plan.taking(wj.plan(two, rates={"a": 1, "b": 1}).best)
    some = wj.join(A, B, C, on=[A["k"] == B["k"], B["k"] == C["k"]], missing=[C])
    with pytest.raises(QueryError, match="these are several joins"):
        some.open(plan=wj.plan(some, rates=RATES))


SPEC = JoinSpec(
    tuple(StreamSpec(name, 100, keys=("int64",), spaces=(0,)) for name in "abc"),
    (Equal(Key(0, 0, 0), Key(1, 0, 0)), Equal(Key(1, 0, 0), Key(2, 0, 0))),
)


@pytest.mark.parametrize("seed", range(3))
def test_noisy_rates_change_orders_a_few_times_only(seed: int) -> None:
    """Rates that are ten times as high or low from look to look: other orders look best."""
    random = np.random.default_rng(seed)
    replanner = Replanner()
    order = import_module("windjoin.kernels.order")
    orders = [order.best_order(SPEC, Statistics((100,) * 3, (1.0,) * 3, {}), s) for s in range(3)]
    changes, looks = 0, 100
    for look in range(looks):
        rates = tuple(10 ** random.uniform(-1, 1, 3))
        held = tuple(max(int(100 * rate), 64) for rate in rates)
        shares = {0: 10 ** random.uniform(-3, 0), 1: 10 ** random.uniform(-3, 0)}
        rows = 4096 * 2 ** min(look, 20)
        seen = Statistics(held, rates, shares)
        found = replanner.better(SPEC, seen, orders, lambda _: 0.0, rows)
        if found is not None:
            orders, changes = found, changes + 1
    assert changes <= looks / 5


def test_orders_change_where_it_pays_and_not_before_the_indexes_do() -> None:
    order = import_module("windjoin.kernels.order")
    alike = Statistics((1000,) * 3, (10.0,) * 3, {0: 0.5, 1: 0.001})
    other = Statistics((1000,) * 3, (10.0,) * 3, {0: 0.001, 1: 0.5})
    orders = [order.best_order(SPEC, alike, start) for start in range(3)]
    assert Replanner().better(SPEC, other, orders, lambda _: 1e12, 5000) is None
    replanner = Replanner()
    found = replanner.better(SPEC, other, orders, lambda _: 1e3, 5000)
    assert found is not None
    assert replanner.changes[0].share < WORTHWHILE
    pinned = Replanner(pinned=True)
    assert not pinned.due(10**9, lambda: True)


def test_hosts_are_taken_where_one_cannot_keep_up() -> None:
    slow: dict[str, Any] = {"rates": RATES, "statistics": TABLES, "hosts": 6}
    one = wj.plan(QUERY, **slow)
    assert (one.best.hosts, one.best.strategy) == (1, None)
    tried = {(plan.hosts, plan.strategy) for plan in one.alternatives if plan.hosts > 1}
    assert tried >= {(hosts, name) for hosts in (2, 4, 6) for name in ("atr", "ctr", "psp")}
    assert "groups" in {strategy for _, strategy in tried}  # one key ties all streams
    several = wj.plan(QUERY, cpu=one.cost / 3, **slow)
    assert several.best.hosts > 1
    assert (
        several.output_rate > wj.plan(QUERY, cpu=one.cost / 3, **{**slow, "hosts": 1}).output_rate
    )
    assert f"on {several.best.hosts} hosts by {several.best.strategy}" in str(several)
    expected = Counter(map(str, QUERY.run(TABLES).to_pylist()))
    for pin in (False, True):
        with QUERY.open(SCHEMAS, plan=several, pin=pin) as session:
            found = played(session)
            found.update(map(str, session.close().to_pylist()))
            assert session.metrics["cluster"]["strategy"] == several.best.strategy
            assert len(session.metrics["cluster"]["hosts"]) == several.best.hosts
        assert found == expected
    with pytest.raises(QueryError, match="hosts=0: give a number of hosts"):
        wj.plan(QUERY, rates=RATES, hosts=0)
