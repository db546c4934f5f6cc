"""What `windjoin.plan` says of a query is what happens when it runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import windjoin as wj
from windjoin.assumed import assumed_schemas
from windjoin.errors import QueryError
from windjoin.kernels.enumeration import every_order
from windjoin.kernels.order import best_order
from windjoin.kernels.statistics import Statistics
from windjoin.planning import learned

from tests.command import TWO_STREAMS, query_file, refusal, windjoin


def rows(seed: int, rate: float, seconds: int = 60, keys: int = 50) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    count = int(rate * seconds)
    return {
        "t": np.sort(random.integers(0, seconds * 1000, count)),
        "k": random.integers(0, keys, count),
        "x": random.random(count),
    }


A, B, C = (
    wj.stream(name, time="t", window=window, unit="ms")
    for name, window in {"a": "2s", "b": "3s", "c": "1s"}.items()
)
RATES = {"a": 50.0, "b": 20.0, "c": 30.0}


@pytest.mark.parametrize(
    "on",
    [
        [A["k"] == B["k"], B["k"] == C["k"]],
        [A["k"] == B["k"], abs(B["x"] - C["x"]) <= 0.1],
        [A["x"] < B["x"], abs(A["x"] - C["x"]) <= 0.05],
    ],
)
def test_the_expected_output_is_what_comes(on: Any) -> None:
    query = wj.join(A, B, C, on=on)
    tables = {name: rows(seed, RATES[name]) for seed, name in enumerate("abc")}
    plan = wj.plan(query, rates=RATES, statistics=tables)
    found = query.run(tables).num_rows / 60
    assert plan.output_rate == pytest.approx(found, rel=0.25)
    assert plan.completeness == 1.0
    assert all(one.output_rate == pytest.approx(plan.output_rate) for one in plan.alternatives)
    costs = [one.cost for one in plan.alternatives if one.kind == "hops"]
    assert costs == sorted(costs)


def test_conditions_that_go_together_are_seen_as_they_are() -> None:
    near = wj.udf(lambda x, y: abs(x - y) < 0.1, A["x"], C["x"])
    query = wj.join(A, B, C, on=[abs(A["x"] - B["x"]) <= 0.05, abs(B["x"] - C["x"]) <= 0.05, near])
    tables = {name: rows(seed, RATES[name]) for seed, name in enumerate("abc")}
    plan = wj.plan(query, rates=RATES, statistics=tables)
    assert plan.output_rate == pytest.approx(query.run(tables).num_rows / 60, rel=0.25)


@pytest.mark.parametrize("noisy", [False, True])
def test_pairs_that_bounds_decide_are_not_planned_to_be_read(noisy: bool) -> None:
    """Means of segments tell flat images apart; of noise every byte is read."""
    query = wj.join(A, B, on=wj.mean_abs_diff(A["v"], B["v"]) <= (85.0 if noisy else 40.0))
    tables = {}
    for seed, name in enumerate("ab"):
        random = np.random.default_rng(seed)
        level = random.integers(0, 256, (240, 1), np.uint8).repeat(3000, axis=1)
        pixels = random.integers(0, 256, level.shape, np.uint8) if noisy else level
        tables[name] = {"t": np.arange(240) * 100, "v": pixels}
    seen = learned(query, tables).seen
    assert seen is not None
    query.run(tables)
    last = query.runs.last()
    assert last is not None
    (hop,) = last.run.hops
    assert hop["proposed"] > 1000
    share = hop["compared"] / hop["proposed"] * seen.selectivity[0]
    assert seen.compared[0] == pytest.approx(share, rel=0.5, abs=0.05)
    assert (seen.compared[0] > 0.2) is noisy


def test_filters_and_odd_functions_are_planned_for() -> None:
    half = wj.stream(
        "a",
        time="t",
        window="2s",
        unit="ms",
        where=wj.stream("a", time="t", window="2s")["x"] < 0.25,
    )
    query = wj.join(half, B, on=half["k"] == B["k"])
    tables = {name: rows(seed, RATES[name]) for seed, name in enumerate("ab")}
    rates = {name: RATES[name] for name in "ab"}
    plan = wj.plan(query, rates=rates, statistics=tables)
    assert plan.output_rate == pytest.approx(query.run(tables).num_rows / 60, rel=0.25)
    assumed = wj.plan(query, rates=rates)
    unfiltered = wj.plan(wj.join(A, B, on=A["k"] == B["k"]), rates=rates)
    assert assumed.output_rate == pytest.approx(unfiltered.output_rate / 2)

    def picky(x: float, y: float) -> bool:
        if x < 2:
            raise ValueError("never in life")
        return True

    odd = wj.join(A, B, on=[A["k"] == B["k"], wj.udf(picky, A["x"], B["x"])])
    assert wj.plan(odd, rates=rates, statistics=tables).output_rate > 0  # its share is assumed


def test_tables_are_planned_as_well() -> None:
    query = wj.join(A, B, C, on=[A["k"] == B["k"], abs(B["x"] - C["x"]) <= 0.1])
    plan = wj.plan(query, rates=RATES)
    assert sorted(plan.batch.order) == ["a", "b", "c"]
    assert set(plan.batch.indexes) == {"hash lists", "grid of cells"}
    assert 0 < plan.batch.cost < plan.cost
    assert plan.as_data()["batch"]["cost"] == plan.batch.cost


def test_tables_are_planned_for_threads() -> None:
    query = wj.join(A, B, C, on=[A["k"] == B["k"], abs(B["x"] - C["x"]) <= 0.1])
    plan = wj.plan(query, rates=RATES, threads=6)
    batch = plan.batch
    assert sorted(one.threads for one in batch.alternatives) == [1, 2, 4, 6]
    elapsed = [one.elapsed for one in batch.alternatives]
    assert elapsed == sorted(elapsed)
    assert batch.threads == batch.alternatives[0].threads == plan.as_data()["batch"]["threads"]
    for one in batch.alternatives:
        assert batch.cost <= one.cost <= 1.25 * batch.cost  # measured on two: 1.06 to 1.20
        assert one.cost / one.threads <= one.elapsed <= batch.cost
    two = next(one for one in batch.alternatives if one.threads == 2)
    assert 1.3 < batch.cost / two.elapsed < 1.75  # as long tables of W1 to W5 were measured
    assert "on 6 threads: " in str(plan)
    assert "threads" not in str(wj.plan(query, rates=RATES))
    with pytest.raises(QueryError, match="threads=0: give a number of threads, 1 or more"):
        wj.plan(query, rates=RATES, threads=0)


def test_in_overload_less_comes_and_all_of_the_machine_is_used() -> None:
    query = wj.join(A, B, C, on=[A["k"] == B["k"], B["k"] == C["k"]])
    plan = wj.plan(query, rates={"a": 1e5, "b": 1e5, "c": 1e5})
    assert plan.cost > 1
    assert plan.completeness < 0.01
    assert plan.best.saturated
    more = wj.plan(query, rates={"a": 1e5, "b": 1e5, "c": 1e5}, cpu=plan.cost * 1.01)
    assert more.completeness == 1.0
    assert more.output_rate > plan.output_rate


def test_the_cheapest_order_is_the_one_that_sessions_take() -> None:
    query = wj.join(A, B, C, on=[A["k"] == B["k"], A["k"] == C["k"], A["x"] < B["x"]])
    spec = query.bind(assumed_schemas(query)).spec
    for rates in ((1.0, 0.01, 0.1), (0.01, 1.0, 1.0)):
        held = tuple(int(1000 * rate) for rate in rates)
        for start in range(3):
            orders = every_order(spec, Statistics(held, rates, {}), start)
            taken = best_order(spec, Statistics(held, rates, {}), start)
            assert orders[0].cost == pytest.approx(sum(step.cost for step in taken.steps))
            assert len({order.streams for order in orders}) == len(orders)


def test_many_streams_are_searched_by_a_beam() -> None:
    streams = [wj.stream(f"s{n}", time="t", window=10) for n in range(7)]
    ties = [streams[0]["k"] == other["k"] for other in streams[1:]]
    spec = wj.join(*streams, on=ties).bind(assumed_schemas(wj.join(*streams, on=ties))).spec
    held = (100, 5, 10, 20, 40, 80, 160)
    statistics = Statistics(held, tuple(map(float, held)), {})
    beam = every_order(spec, statistics, 0)
    assert 1 < len(beam) <= 64
    assert beam[0].cost <= best_order(spec, statistics, 0).cost * 1.1


def test_a_plan_is_text_data_and_a_picture(tmp_path: Path) -> None:
    query = wj.join(A, B, C, on=[A["k"] == B["k"], B["k"] == C["k"]])
    plan = wj.plan(query, rates=RATES)
    text = str(plan)
    assert "types and selectivities are assumed" in text
    assert "a 50 rows/s" in text
    assert "-> b through hash" in text
    assert "would cost" in text
    data = json.loads(json.dumps(plan.as_data()))
    assert data["output_rate"] == plan.output_rate
    for name in ("plan.svg", "plan.png"):
        plan.draw(str(tmp_path / name))
        assert (tmp_path / name).stat().st_size > 1000
    with pytest.raises(QueryError, match=r"the path ends in .svg or .png or .pdf"):
        plan.draw("plan.txt")


def test_the_command_plans_for_its_files(folder: Path) -> None:
    file = query_file(folder, 'on = \'a["k"] == b["k"]\'\n' + TWO_STREAMS)
    done = windjoin("plan", file)
    assert done.returncode == 0, done.stderr
    assert "results/s" in done.stdout
    sites = folder / "sites.toml"
    sites.write_text('[sites.east]\nload = 0.3\nbandwidth = "80Mbit"\nstreams = ["a", "b"]\n')
    done = windjoin(
        "plan", file, "--rates", "a=100,b=5", "--sites", sites, "--json", "--hosts", "2",
        "--draw", folder / "plan.svg",
    )  # fmt: skip
    data = json.loads(done.stdout)
    assert data["rates"] == {"a": 100.0, "b": 5.0}
    assert [one["site"] for one in data["fragments"]] == ["east"]
    assert {one["hosts"] for one in data["alternatives"]} == {1, 2}
    assert (folder / "plan.svg").exists()
    assert "is not a stream and its rate, such as calls=2000" in refusal(
        "plan", file, "--rates", "a:5"
    )
    sites.write_text("east = 5\n")
    assert "describe each site in a table" in refusal("plan", file, "--sites", sites)
    assert "cannot be read" in refusal("plan", file, "--sites", folder / "none.toml")
    sites.write_text("= 5")
    assert "is not TOML" in refusal("plan", file, "--sites", sites)
