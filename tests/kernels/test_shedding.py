"""Sessions that shed load: exact while nothing is shed, true always, and within their budget."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.shedding_streams import by_hash, lagging, play, pushes, scanned

WINDOW = 10_000
pytestmark = pytest.mark.filterwarnings("ignore::windjoin.SheddingWarning")


def shedding(per_s: float, **options: Any) -> wj.Shedding:
    return wj.Shedding(**{"comparisons_per_s": per_s, "clock": "event", **options})


@pytest.fixture(scope="module")
def streams() -> dict[str, Any]:
    return lagging(40, 40)


@pytest.fixture(scope="module")
def per_s(streams: dict[str, Any]) -> float:
    """Comparisons that an exact run needs in a second, once windows are full."""
    run = play(
        scanned(), {name: {k: v[:1200] for k, v in s.items()} for name, s in streams.items()}
    )
    more = play(scanned(), streams)
    assert set(more.results) == by_hash(streams, WINDOW)
    return (more.metrics["comparisons"] - run.metrics["comparisons"]) / 10


def test_nothing_is_shed_without_overload(streams: dict[str, Any], per_s: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = play(scanned(), streams, shed=shedding(1.1 * per_s))
    assert set(run.results) == by_hash(streams, WINDOW)
    assert run.shed["fraction"] == 1
    assert run.shed["recall"] == 1 == run.shed["recall_low"]
    assert run.shed["left_out"] == 0
    assert set(run.fractions) == {1.0}


@pytest.mark.parametrize("policy", ["selective", "partial", "drop"])
@pytest.mark.parametrize("directions", [True, False, "whole"])
def test_results_are_true_and_each_is_given_once(
    streams: dict[str, Any], per_s: float, policy: Any, directions: Any
) -> None:
    shed = shedding(per_s / 5, policy=policy, directions=directions)
    run = play(scanned(), streams, shed=shed)
    assert len(set(run.results)) == len(run.results) > 0
    assert set(run.results) < by_hash(streams, WINDOW)


@pytest.mark.parametrize("policy", ["selective", "partial", "drop"])
@pytest.mark.parametrize("part", [0.5, 0.2, 0.05])
def test_comparisons_keep_to_the_budget(per_s: float, policy: Any, part: float) -> None:
    streams = lagging(80, 40)
    warm, spent = 20, {}
    with scanned().open(rows_only=True, shed=shedding(part * per_s, policy=policy)) as session:
        for name, rows in pushes(streams):
            session.push(name, rows)
            spent[int(rows["t"][-1]) // 1000] = session.metrics["comparisons"]
        told = session.metrics["shedding"]
    late = spent[79] - spent[warm - 1]
    assert 0.95 <= late / (part * per_s * (80 - warm)) <= 1.05
    assert spent[79] <= 1.05 * part * per_s * 80
    assert told["comparisons"] == spent[79]


@pytest.mark.parametrize("basic", ["10s", "1m"])
def test_one_basic_window_is_asked_in_part(per_s: float, basic: str) -> None:
    streams = lagging(60, 40)
    run = play(scanned(), streams, 500, shed=shedding(0.04 * per_s, basic_window=basic))
    assert 0.9 <= run.metrics["comparisons"] / (0.04 * per_s * 60) <= 1.08
    asked = [
        one["asked"]
        for stream in run.shed["streams"].values()
        for direction in stream["directions"].values()
        for one in direction["worth"]
    ]
    assert max(asked) < 0.5
    assert set(run.results) <= by_hash(streams, WINDOW)


def test_most_results_are_found_where_they_are(streams: dict[str, Any], per_s: float) -> None:
    truth = by_hash(streams, WINDOW)
    found = {
        policy: len(play(scanned(), streams, shed=shedding(per_s / 5, policy=policy)).results)
        for policy in ("selective", "partial", "drop")
    }
    assert found["selective"] > 0.9 * len(truth)
    assert found["drop"] < 0.4 * len(truth)
    assert found["partial"] < 0.4 * len(truth)


def test_the_same_seed_and_clock_give_the_same(streams: dict[str, Any], per_s: float) -> None:
    runs = [play(scanned(), streams, shed=shedding(per_s / 4, seed=s)) for s in (5, 5, 6)]
    assert runs[0].results == runs[1].results
    assert runs[0].metrics == runs[1].metrics
    assert runs[0].results != runs[2].results


def test_the_fraction_follows_bursts_and_comes_back(per_s: float) -> None:
    streams = lagging(110, 25, rates={30: 75, 45: 25})
    run = play(scanned(), streams, 500, shed=shedding(0.6 * per_s))
    seconds = len(run.fractions) / 110
    calm, burst, after = (
        run.fractions[int(a * seconds) : int(b * seconds)]
        for a, b in ((0, 29), (38, 45), (100, 110))
    )
    assert set(calm) == {1.0}
    assert max(burst) < 0.5
    assert set(after) == {1.0}


def test_a_burst_that_grows_keeps_to_the_budget() -> None:
    """Rows joined fully become as few as can be afforded, and not slowly."""
    streams = lagging(64, 25, 2.0, rates={22: 40, 24: 60, 26: 90, 28: 140, 30: 200, 32: 300})
    budget = 2 * 25 * 25 * 4  # comparisons that all need in a second, before it begins
    shed = shedding(budget, adapt_every="10s")
    run = play(scanned("4s"), streams, shed=shed)
    assert run.metrics["comparisons"] <= 1.05 * budget * 64
    truth = by_hash(streams, 4000)
    assert set(run.results) < truth


def test_a_shift_that_moves_is_learned_anew(per_s: float) -> None:
    first, then = lagging(80, 40, 2.0), lagging(80, 40, 8.0)
    streams = {
        name: {key: np.concatenate((first[name][key][:1600], then[name][key][1600:]))
               for key in ("t", "x")}
        for name in "ab"
    }  # fmt: skip
    run = play(scanned(), streams, shed=shedding(per_s / 5))
    truth = by_hash(streams, WINDOW)
    late = {pair for pair in truth if streams["b"]["t"][pair[1]] > 60_000}
    assert len(late & set(run.results)) > 0.85 * len(late)


def with_results_anywhere(kind: str) -> dict[str, Any]:
    """Streams whose rows match at a lag and anywhere, or of which few have most of the results."""
    streams, random = lagging(24, 30, lag_s=5.0), np.random.default_rng(4)
    for columns in streams.values():
        n = len(columns["x"])
        if kind == "zipf":
            columns["x"] = np.minimum(random.zipf(1.5, n), 400)
        else:
            anywhere = random.random(n) < 0.6
            columns["x"] = np.where(anywhere, random.integers(1, 300, n), columns["x"])
    return streams


@pytest.mark.parametrize(
    ("kind", "runs"),
    [
        ("lag", 60),
        pytest.param("lag", 200, marks=pytest.mark.slow),
        pytest.param("zipf", 200, marks=pytest.mark.slow),
    ],
)
def test_recall_is_known_within_its_error(kind: str, runs: int) -> None:
    streams = with_results_anywhere(kind)
    truth = len(by_hash(streams, WINDOW))
    covered, signs = 0, 0
    for seed in range(runs):
        with scanned().open(rows_only=True, shed=shedding(3_000, seed=seed)) as session:
            found = 0
            for name, rows in pushes(streams, 1000):
                found += len(session.push(name, rows)["a"])
            told = session.metrics["shedding"]
        covered += told["recall_low"] <= found / truth <= told["recall_high"]
        signs += told["recall"] > found / truth
    assert covered >= 0.95 * runs
    assert 0.25 * runs < signs < 0.75 * runs  # too high as often as too low


def test_a_direction_that_finds_nothing_is_left_out_before_what_finds_little() -> None:
    streams, random = lagging(40, 60, 0.0), np.random.default_rng(0)
    lag = random.exponential(2000, len(streams["b"]["t"])).astype(np.int64)
    streams["b"]["x"] = 1_000_000 + (streams["b"]["t"] - lag) // 50 * 7 + streams["b"]["x"] % 7 % 3
    truth = play(scanned(), streams)
    shed = shedding(truth.metrics["comparisons"] / 35 / 2)
    run = play(scanned(), streams, shed=shed)
    assert len(run.results) > 0.88 * len(truth.results)
    assert run.shed["streams"]["a"]["fraction"] < 0.3 < run.shed["streams"]["b"]["fraction"]


def test_comparisons_done_and_left_out_are_those_of_an_exact_run(
    streams: dict[str, Any], per_s: float
) -> None:
    exact = play(scanned(), streams).metrics["comparisons"]
    shed = play(scanned(), streams, shed=shedding(per_s / 4)).shed
    whole = shed["comparisons"] + shed["left_out"]
    assert abs(whole - exact) <= max(2 * shed["left_out_error"], 0.01 * exact)


@pytest.mark.parametrize("policy", ["selective", "drop"])
def test_rows_in_are_kept_rejected_or_dropped(per_s: float, policy: Any) -> None:
    streams = lagging(30, 60)
    shed = shedding(per_s / 5, policy=policy)
    with scanned().open(lateness="1s", shed=shed, on_late="keep") as session:
        for begin in range(0, 1800, 15):
            for name, columns in streams.items():
                rows = {key: values[begin : begin + 15].copy() for key, values in columns.items()}
                rows["t"][3] -= 5000 * (begin > 200)
                session.push(name, rows)
        metrics = session.metrics
        kept = sum(metrics["streams"][name]["state_rows"] for name in "ab")
    assert metrics["rows_in"] == 3600
    assert metrics["rejected"] == metrics["late"] == 2 * 106
    dropped = metrics["shedding"]["dropped"]
    assert (dropped > 0) == (policy == "drop")
    assert metrics["unmatchable"] == 0
    assert metrics["expired"] + kept == 3600


def test_the_first_time_is_told_once() -> None:
    streams = lagging(20, 60)
    with pytest.warns(wj.SheddingWarning, match="rows come faster than a budget of 9,000") as told:
        run = play(scanned(), streams, shed=shedding(9000))
    assert len(told) == 1
    assert run.shed["missed"] > 0
    assert "shedding: selective, budget 9,000 comparisons a second" in run.explained


def test_a_clock_of_the_caller_decides() -> None:
    streams, now = lagging(20, 60), [0.0]
    shed = shedding(9000, clock=lambda: now[0])
    still = play(scanned(), streams, shed=shed)
    assert still.metrics["comparisons"] < 2.2 * 9000 * 5  # all of it in one period
    slow = play(scanned(), streams, shed=shedding(9000, clock=iter(range(10**9)).__next__))
    assert set(slow.results) == by_hash(streams, WINDOW)


def test_budget_of_time_is_kept() -> None:
    streams = lagging(30, 300)
    now = [0.0]
    query = scanned()
    with query.open(rows_only=True, shed=wj.Shedding(budget=1e-3, clock=lambda: now[0])) as session:
        for begin in range(0, 9000, 60):
            now[0] += 0.2
            for name, columns in streams.items():
                session.push(
                    name, {key: values[begin : begin + 60] for key, values in columns.items()}
                )
        shed = session.metrics["shedding"]
    exact = play(query, streams).metrics["comparisons"]
    assert shed["fraction"] < 0.9
    assert shed["comparisons"] < exact / 2
    assert shed["recall_low"] < 1


def three(window: int = 4000) -> wj.Query:
    a, b, c = (wj.stream(name, time="t", window=window, unit=None) for name in "abc")
    return wj.join(
        a, b, c, on=[a["x"] * b["x"] == b["x"] * b["x"], b["x"] * c["x"] == c["x"] * c["x"]]
    )


def three_streams(seconds: int) -> dict[str, Any]:
    two = lagging(seconds, 30, 1.0)
    return {**two, "c": lagging(seconds, 30, 2.0, seed=9)["b"]}


def test_three_streams_are_shed_along_the_order_of_hops() -> None:
    streams = three_streams(60)
    truth = play(three(), streams)
    needed = truth.metrics["comparisons"] / 60_000  # a tick
    run = play(three(), streams, shed=shedding(needed / 3, adapt_every=5000))
    assert set(run.results) < set(truth.results)
    same = play(three(), streams, shed=shedding(needed / 3, adapt_every=5000, policy="partial"))
    assert len(run.results) > 1.5 * len(same.results)
    assert set(run.shed["streams"]["c"]["directions"]) == {"a", "b"}


CONDITIONS: dict[str, Any] = {
    "equality": lambda a, b: a["k"] == b["k"],
    "band": lambda a, b: abs(a["x"] - b["x"]) <= 3,
    "inequality": lambda a, b: [a["k"] == b["k"], a["x"] < b["x"]],
    "box": lambda a, b: [a["x"] <= b["x"], b["x"] <= a["y"]],
    "function": lambda a, b: wj.udf(lambda x, y: x % 7 == y % 7, a["x"], b["x"]),
    "sets": lambda a, b: wj.overlap(a["s"], b["s"]) >= 2,
    "vectors": lambda a, b: wj.l2(a["v"], b["v"]) <= 0.7,
    "scan": lambda a, b: a["x"] * b["y"] > 900,
}


def table(random: np.random.Generator, n: int) -> dict[str, Any]:
    return {
        "t": np.sort(random.integers(0, 60, n)),
        "k": random.integers(0, 4, n),
        "x": random.integers(0, 40, n),
        "y": random.integers(20, 60, n),
        "s": [random.choice(12, 4, replace=False).tolist() for _ in range(n)],
        "v": random.random((n, 3)).astype(np.float32),
    }


@pytest.mark.parametrize("kind", list(CONDITIONS))
@settings(max_examples=examples(12), deadline=None)
@given(
    seed=st.integers(0, 2**20),
    budget=st.sampled_from([0.5, 4.0, 40.0, 1e6]),
    policy=st.sampled_from(["selective", "partial", "drop"]),
    basic=st.sampled_from([1, 3, 50]),
    windows=st.tuples(st.integers(0, 30), st.integers(0, 30)),
    each=st.integers(1, 40),
    late=st.booleans(),
)
def test_every_index_gives_true_results_and_all_of_them_without_overload(
    kind: str, seed: int, budget: float, policy: Any, basic: int, windows: Any, each: int,
    late: bool,
) -> None:  # fmt: skip
    random = np.random.default_rng(seed)
    a, b = (wj.stream(n, time="t", window=w) for n, w in zip("ab", windows, strict=True))
    query = wj.join(a, b, on=CONDITIONS[kind](a, b))
    tables = {name: table(random, 60) for name in "ab"}
    if late:
        for columns in tables.values():
            columns["t"] = random.permutation(columns["t"])
    exact = query.indices(tables)
    truth = set(zip(exact["a"].tolist(), exact["b"].tolist(), strict=True))
    shed = wj.Shedding(
        comparisons_per_s=budget, clock="event", policy=policy, basic_window=basic, adapt_every=4
    )
    found = []
    with query.open(rows_only=True, lateness=60, shed=shed) as session:
        for begin in range(0, 60, each):
            for name, columns in tables.items():
                rows = {key: values[begin : begin + each] for key, values in columns.items()}
                results = session.push(name, rows)
                found += zip(results["a"].tolist(), results["b"].tolist(), strict=True)
        fraction = session.metrics["shedding"]["shedding"]
    assert len(set(found)) == len(found)
    assert set(found) <= truth
    if budget == 1e6:
        assert set(found) == truth
        assert not fraction


@pytest.mark.parametrize("basic", ["200ms", "1s"])
def test_an_index_of_vectors_is_asked_for_the_same_rows_as_a_scan(basic: str) -> None:
    """It keeps answers about rows, which are about some ages only while load is shed."""
    streams = lagging(40, 60, 3.0)
    a, b = (wj.stream(name, time="t", window=WINDOW, unit="ms") for name in "ab")
    near = wj.join(a, b, on=wj.l2(a["v"], b["v"]) <= 0.5)
    found = []
    for query in (scanned(), near):
        session = query.open(rows_only=True, shed=shedding(9000, basic_window=basic))
        for name, rows in pushes(streams):
            values = (rows["x"] - 1_000_000).astype(np.float32)[:, None]
            results = session.push(name, {**rows, "v": values})
            found.append(set(zip(results["a"].tolist(), results["b"].tolist(), strict=True)))
        assert session.metrics["shedding"]["shedding"]
        session.close()
    half = len(found) // 2
    assert found[:half] == found[half:]
    assert sum(map(len, found)) > 200


def test_utility_says_what_is_worth_it() -> None:
    streams = lagging(60, 60, 3.0)
    other = lagging(60, 60, 7.0, seed=8)["b"]
    near = np.random.default_rng(1).random(len(other["t"])) < 0.7
    streams["b"]["x"] = np.where(near, streams["b"]["x"], other["x"])
    streams["b"]["u"] = np.where(near, 1, 50)
    query = scanned()
    b = query.streams[1]
    dear = {}
    for utility in (None, b["u"] * 2):
        run = play(query, streams, shed=shedding(2500, utility=utility))
        dear[utility is None] = sum(not near[row] for _, row in run.results)
    assert dear[False] > 1.3 * dear[True]


def two_ways(seconds: int, rate: int) -> dict[str, Any]:
    """Half of the rows of either stream follow rows that the other had 3 s before."""
    random, made = np.random.default_rng(3), {}
    for name in "ab":
        t = np.sort(random.integers(0, seconds * 1000, seconds * rate))
        kind = random.random(len(t)) < 0.5
        behind = np.where(kind == (name == "b"), 3000, 0)
        made[name] = {"t": t, "x": 1_000_000 + (t - behind) // 50 * 14 + 2 * (t % 3) + kind}
    return made


def test_pairs_of_directions_and_windows_find_more_than_the_better_direction_first() -> None:
    streams = two_ways(40, 60)
    exact = play(scanned(), streams)
    per_s = exact.metrics["comparisons"] / 35
    found = {
        directions: len(
            play(scanned(), streams, shed=shedding(per_s / 3, directions=directions)).results
        )
        for directions in (True, "whole")
    }
    assert found[True] > 1.3 * found["whole"]


@pytest.mark.parametrize("directions", [True, False])
def test_three_streams_find_most_with_a_quarter_of_the_work(directions: bool) -> None:
    streams = three_streams(40)
    exact = play(three(), streams)
    shed = shedding(exact.metrics["comparisons"] / 35_000 / 4, adapt_every=5000, seed=2,
                    directions=directions)  # fmt: skip
    run = play(three(), streams, shed=shed)
    assert set(run.results) < set(exact.results)
    assert len(run.results) > 0.6 * len(exact.results)


def test_nulls_and_late_rows_are_told_and_the_rest_is_shed() -> None:
    """Without a time a row is rejected, without an operand it is kept and matches nothing."""
    streams, random = lagging(30, 40), np.random.default_rng(2)
    tables, gone = {}, {}
    for name, columns in streams.items():
        timeless, empty = random.random((2, len(columns["t"]))) < 0.05
        t = pa.array(columns["t"], mask=timeless)
        tables[name] = pa.table({"t": t, "x": pa.array(columns["x"], mask=empty)})
        gone[name] = timeless | empty
    truth = {(a, b) for a, b in by_hash(streams, WINDOW) if not gone["a"][a] and not gone["b"][b]}
    nulls = sum(table["t"].null_count for table in tables.values())
    for per_s, all_of_it in ((1e12, True), (4_000, False)):
        with scanned().open(rows_only=True, lateness="10s", shed=shedding(per_s)) as session:
            for begin in range(0, 1200, 40):
                for name, table in tables.items():
                    session.push(name, table.slice(begin, 40).take(random.permutation(40)))
            metrics = session.metrics
        shed = metrics["shedding"]
        joined = sum(shed["streams"][name]["rows"] for name in "ab")
        assert metrics["rows_in"] == 2400 == joined + metrics["unmatchable"] + metrics["rejected"]
        assert metrics["rejected"] == nulls
        assert (metrics["results"] == len(truth)) == all_of_it
        assert metrics["results"] <= len(truth)
        assert shed["recall_low"] <= metrics["results"] / len(truth) <= shed["recall_high"]


def test_one_stream_may_be_silent() -> None:
    streams = three_streams(30)
    streams["c"] = {key: values[:60] for key, values in streams["c"].items()}
    exact = play(three(), streams)
    run = play(three(), streams, shed=shedding(3000, adapt_every=5000))
    assert set(run.results) <= set(exact.results)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "needs budget= .* or comparisons_per_s=.*neither is given"),
        ({"budget": 1, "comparisons_per_s": 1}, "one of them; both are given"),
        ({"budget": 0}, "budget=0: give a number above 0"),
        ({"budget": "1"}, "budget='1': give a number above 0"),
        ({"comparisons_per_s": -1}, "comparisons_per_s=-1: give a number above 0"),
        ({"budget": 1, "boost": 1}, "boost=1: the factor"),
        ({"budget": 1, "sample": 0.7}, "sample=0.7: the share"),
        ({"budget": 1, "policy": "some"}, "policy='some': load is shed by"),
        ({"budget": 1, "directions": 1}, 'directions=1: give True, False or "whole"'),
        ({"budget": 1, "clock": "sun"}, "clock='sun': give \"wall\""),
        ({"budget": 1, "seed": 1.5}, "seed=1.5: give an integer"),
        ({"budget": 1, "utility": "x"}, "utility='x': give a column"),
        ({"budget": 1, "adapt_every": "0s"}, "adapt_every='0s': give a duration above 0"),
        ({"budget": 1, "adapt_every": None}, "adapt_every=None: give a duration above 0"),
        ({"budget": 1, "adapt_every": "soon"}, "'soon' is not a duration"),
    ],
)
def test_shedding_refuses(options: dict[str, Any], says: str) -> None:
    with pytest.raises(wj.QueryError, match=says):
        wj.Shedding(**options)


def test_utility_of_two_streams_is_refused() -> None:
    query = scanned()
    a, b = query.streams
    with pytest.raises(wj.QueryError, match="uses columns of 2 streams; give an expression of one"):
        wj.Shedding(budget=1, utility=a["x"] + b["x"])
    other = wj.stream("other", time="t", window=1)
    with pytest.raises(wj.QueryError, match="uses stream 'other', which is not joined here"):
        query.open(shed=wj.Shedding(budget=1, utility=other["x"]))


def test_open_refuses_what_cannot_be_shed() -> None:
    query, streams = scanned(), lagging(2, 10)
    with pytest.raises(wj.QueryError, match=r"give a windjoin\.Shedding"):
        query.open(shed=0.8)  # type: ignore[arg-type]
    for length, says in (("1us", "shorter than the unit"), ("1ms", "makes 10,000 basic windows")):
        with pytest.raises(wj.QueryError, match=says):
            play(query, streams, shed=shedding(10, basic_window=length))
    a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    near = wj.join(a, b, on=wj.l2(a["v"], b["v"]) <= 1, nearest=1)
    with pytest.raises(wj.QueryError, match="nearest= with shed="):
        near.open(shed=shedding(10))
    with pytest.raises(wj.QueryError, match="shed= is not for how="):
        wj.join(a, b, on=a["k"] == b["k"], how="left").open(shed=shedding(10))
    named = wj.join(a, b, on=a["k"] == b["k"])
    with named.open(shed=shedding(10, utility=a["n"])) as session:
        session.push("a", {"t": [1], "k": [1], "n": ["x"]})
        with pytest.raises(wj.SchemaError, match="is text; give a number"):
            session.push("b", {"t": [1], "k": [1]})


def test_without_shed_nothing_of_it_is_there() -> None:
    """Not a module is loaded, and feeds run their pipelines over the plain indexes."""
    script = """
import sys, windjoin as wj
a, b = (wj.stream(name, time="t", window=10) for name in "ab")
with wj.join(a, b, on=a["k"] == b["k"]).open(rows_only=True) as session:
    for name in "ab" * 2:
        session.push(name, {"t": [1], "k": [2]})
loaded = [name for name in sys.modules if "shed" in name.rsplit(".", 1)[-1] or "limited" in name]
assert set(loaded) <= {"windjoin.shedding"}, loaded
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_clock_has_to_give_seconds() -> None:
    with scanned().open(shed=wj.Shedding(budget=1, clock=lambda: "noon")) as session:  # type: ignore[arg-type,return-value]
        session.push("a", {"t": [1], "x": [1]})
        with pytest.raises(wj.QueryError, match="clock= gave 'noon': it has to give seconds"):
            session.push("b", {"t": [1], "x": [1]})


def test_a_budget_above_one_is_more_than_one_core() -> None:
    assert wj.Shedding(budget=2.5).budget == 2.5


def test_a_query_file_plays_files_into_a_session_that_sheds(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from windjoin.cli.main import main

    for name, columns in lagging(20, 60).items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    file = tmp_path / "query.toml"
    text = "on = \"a['x'] * b['x'] == b['x'] * b['x']\"\n"
    for name in "ab":
        text += (
            f'[streams.{name}]\npath = "{name}.parquet"\ntime = "t"\nwindow = "10s"\nunit = "ms"\n'
        )
    file.write_text(text + "[shed]\ncomparisons_per_s = 9000\nutility = 'b[\"x\"]'\n")
    assert main(["run", str(file)]) == 0
    told = capsys.readouterr().out
    assert "shedding: selective, budget 9,000 comparisons a second" in told
    assert "of the work is done" in told
    # all streams come in step, so what 72,000 comparisons a second need is no overload
    file.write_text(text + "[shed]\ncomparisons_per_s = 90_000\n")
    assert main(["run", str(file)]) == 0
    assert "nothing is shed now: all work is done\n  recall 100.0%" in capsys.readouterr().out
    for wrong, says in (
        ("[shed]\nbudgets = 1\n", "[shed] has the unknown key 'budgets'; did you mean 'budget'?"),
        ("[shed]\nbudget = 0\n", "[shed]: budget=0: give a number above 0"),
    ):
        file.write_text(text + wrong)
        assert main(["run", str(file)]) != 0
        assert says in capsys.readouterr().err
    file.write_text("shed = 1\n" + text)
    assert main(["run", str(file)]) != 0
    assert "shed = 1: describe it in a table, [shed]" in capsys.readouterr().err


def test_windows_may_change_while_load_is_shed() -> None:
    streams = lagging(30, 60, 3.0)
    truth = by_hash(streams, WINDOW)
    found = []
    with scanned().open(rows_only=True, shed=shedding(9000)) as session:
        for number, (name, rows) in enumerate(pushes(streams)):
            if number == 120:
                session.set_window("a", "4s")
            results = session.push(name, rows)
            found += zip(results["a"].tolist(), results["b"].tolist(), strict=True)
    assert len(found) == len(set(found)) > 0
    assert set(found) < truth
