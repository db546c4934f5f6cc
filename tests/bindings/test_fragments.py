"""A query cut anywhere is the query: fragments against the oracle, as files too."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import windjoin as wj
from hypothesis import assume, given
from hypothesis import strategies as st
from windjoin.arrow import Limits, place
from windjoin.cli.queryfile import read_query_file
from windjoin.dividing import run_fragments
from windjoin.errors import QueryError
from windjoin.fragment_query import Leaf, Partial
from windjoin.fragments import Edge, Fragment

from tests import api
from tests.arrow_exchange import carry_out, histogram
from tests.command import windjoin
from tests.compare import assert_same_results
from tests.oracle import join
from tests.strategies import cases

EDGE = Edge("", 0.0, 0.0)


@st.composite
def cuts(draw: Any, count: int) -> list[tuple[Any, ...]]:
    """What every fragment puts together: streams and what fragments before it sent."""
    left: list[Any] = [Leaf(number) for number in range(count)]
    made = []
    while len(left) > 1:
        size = draw(st.integers(2, len(left)))
        taken = draw(st.permutations(left))[:size]
        members = frozenset().union(*(one.members for one in taken))
        made.append(tuple(taken))
        left = [one for one in left if one not in taken]
        left.append(Partial(f"part{len(made)}", members))
    return made


def fragments_of(query: Any, made: list[tuple[Any, ...]], schemas: Any) -> list[Fragment]:
    return [
        Fragment(
            f"part{at + 1}", "here", inputs, (), EDGE, query, at == len(made) - 1, schemas, False
        )
        for at, inputs in enumerate(made)
    ]


@given(st.data())
def test_any_cut_gives_what_the_query_gives(data: Any) -> None:
    case = data.draw(cases(least=2, most=4))
    query = api.build(case)
    assume(not query.exclude_self and query.nearest is None)
    made = data.draw(cuts(len(case.streams)))
    fragments = fragments_of(query, made, api.schemas(case))
    found = api.table_rows(case.names, run_fragments(fragments, case.tables()))
    assert_same_results(found, join(case.query, case.rows()))


@given(st.data())
def test_any_sites_give_what_the_query_gives(data: Any) -> None:
    case = data.draw(cases(least=2, most=4))
    query = api.build(case)
    names = list(query.names)
    amounts = st.sampled_from([0.0, 0.1, 1.0, 50.0])
    at = {name: data.draw(st.sampled_from("xyz")) for name in names}
    sites = {
        site: wj.Site(
            load=data.draw(st.sampled_from([0.0, 0.3, 1.0])),
            bandwidth=data.draw(st.sampled_from([0, 500, "1MB"])),
            streams=[name for name in names if at[name] == site],
        )
        for site in "xyz"
    }
    load = data.draw(st.sampled_from([0.0, 0.2, 1.0]))
    rates = {name: data.draw(amounts) for name in names}
    weights = (load, 1 - load)
    tables = case.tables()
    plan = wj.plan(query, rates=rates, statistics=tables, sites=sites, weights=weights)
    found = api.table_rows(case.names, plan.run(tables))
    assert_same_results(found, join(case.query, case.rows()))


STREAMS = [wj.stream(name, time="t", window=w) for name, w in {"a": 5, "b": 3, "c": 4}.items()]


def rows(seed: int, count: int = 60) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {
        "t": np.sort(random.integers(0, 50, count)),
        "k": random.integers(0, 3, count),
        "id": np.arange(count),
    }


@pytest.mark.parametrize("closed", ["both", "right"])
def test_windows_hold_across_fragments_to_the_last_tick(closed: Any) -> None:
    a, b, c = STREAMS
    query = wj.join(a, b, c, on=[a["k"] == b["k"], b["k"] == c["k"]], closed=closed)
    tables = {name: rows(seed) for seed, name in enumerate("abc")}
    schemas = {name: pa.table(table).schema for name, table in tables.items()}
    expected = query.run(tables)
    ends = [(Leaf(0), Leaf(1)), (Leaf(1), Leaf(2)), (Leaf(0), Leaf(2))]
    for first in ends:
        members = first[0].members | first[1].members
        rest = next(Leaf(s) for s in range(3) if s not in members)
        made = [first, (Partial("part1", members), rest)]
        found = run_fragments(fragments_of(query, made, schemas), tables)
        assert found.schema.equals(expected.schema)
        assert Counter(map(str, found.to_pylist())) == Counter(map(str, expected.to_pylist()))
    assert expected.num_rows > 100


def division(closed: Any = "both", **options: Any) -> Any:
    a, b, c = STREAMS
    query = wj.join(a, b, c, on=[a["k"] == b["k"], b["k"] == c["k"]], closed=closed)
    tables = {name: rows(seed) for seed, name in enumerate("abc")}
    sites = {
        "east": wj.Site(load=0.2, bandwidth=1000, streams=["a", "b"]),
        "west": wj.Site(load=0.1, bandwidth=1000, streams=["c"]),
    }
    rates = {"a": 5.0, "b": 5.0, "c": 0.5}
    given = {"sites": sites, "statistics": tables, "rates": rates, "weights": (0.2, 0.8)}
    return query, tables, wj.plan(query, **{**given, **options})


def divided_ab(closed: Any = "both") -> Any:
    """Streams a and b meet at one site, and what they find meets c at another."""
    return division(
        closed,
        sites={
            "east": wj.Site(load=0.5, bandwidth=1000, streams=["a", "b"]),
            "west": wj.Site(load=0.1, bandwidth=1000, streams=["c"]),
        },
        weights=(0.15, 0.85),
        rates={"a": 5.0, "b": 5.0, "c": 40.0},
    )


def test_fragments_are_queries_and_files_of_their_own(tmp_path: Path) -> None:
    query, tables, plan = divided_ab()
    assert [one.site for one in plan.fragments] == ["east", "west"]
    first, second = plan.fragments
    assert first.query.names == ("a", "b")
    assert second.query.names == ("part1", "c") == tuple(edge.name for edge in second.reads)
    assert first.sends == second.reads[0]
    expected = Counter(map(str, query.run(tables).to_pylist()))
    assert Counter(map(str, plan.run(tables).to_pylist())) == expected
    for name, table in tables.items():
        pq.write_table(pa.table(table), tmp_path / f"{name}.parquet")
    paths = {name: f"{name}.parquet" for name in "abc"} | {"part1": "part1.arrow"}
    for one, output in ((first, "part1.arrow"), (second, "results.parquet")):
        file = tmp_path / f"{one.name}.toml"
        file.write_text(one.query_file(paths, output))
        assert read_query_file(file).query.names == one.query.names
        assert windjoin("run", file).returncode == 0
    found = pq.read_table(tmp_path / "results.parquet")
    assert Counter(map(str, found.to_pylist())) == expected


def test_fragments_are_functions_of_arrow_batches() -> None:
    query, tables, plan = divided_ab()
    sent = {name: pa.table(table) for name, table in tables.items()}
    for seed, one in enumerate(plan.fragments):
        schemas = {name: sent[name].schema for name in one.query.names}
        counts = histogram(one.query, schemas, sent)
        placed, _ = place(
            one.query, schemas, hosts=3, strategy="atr", histogram=counts, limits=Limits()
        )
        sent[one.name] = carry_out(placed, sent, np.random.default_rng(seed))
    found = Counter(map(str, sent[plan.fragments[-1].name].to_pylist()))
    expected = Counter(map(str, query.run(tables).to_pylist()))
    assert found == expected
    assert expected.total() > 100


@pytest.mark.parametrize("closed", ["both", "right"])
@given(seed=st.integers(0, 2**32))
def test_fragments_are_sessions(closed: Any, seed: int) -> None:
    """Partial results are out of order by as much as the longest of their windows."""
    query, tables, plan = divided_ab(closed)
    random = np.random.default_rng(seed)
    first, last = plan.fragments
    longest = max(stream.window for stream in first.query.streams)
    found: list[Any] = []
    schemas = {name: pa.table(tables[name]).schema for name in first.query.names}
    with first.query.open(schemas=schemas) as one, last.query.open(lateness=longest) as other:
        left = {name: pa.table(table) for name, table in tables.items()}
        while any(map(len, left.values())):
            name = random.choice([name for name, rows in left.items() if len(rows)])
            most = int(random.integers(1, 20))
            rows, left[name] = left[name].slice(0, most), left[name].slice(most)
            if name in first.query.names:
                name, rows = first.name, one.push(name, rows)
            found += other.push(name, rows).to_pylist()
        assert other.metrics["streams"][first.name]["late"] == 0
    expected = Counter(map(str, query.run(tables).to_pylist()))
    assert Counter(map(str, found)) == expected


def test_times_of_any_type_cross_fragments() -> None:
    a = wj.stream("a", time="t", window="5s", unit="s")
    b = wj.stream("b", time="t", window="2500ms")
    c = wj.stream("c", time="t", window="1m", unit="m")
    query = wj.join(a, b, c, on=[a["k"] == b["k"], b["k"] == c["k"]])
    tables: dict[str, Any] = {name: rows(seed) for seed, name in enumerate("abc")}
    tables["b"]["t"] = pa.array(tables["b"]["t"] * 1000 + 500).cast(pa.timestamp("ms"))
    tables["c"]["t"] = tables["c"]["t"] // 40
    schemas = {name: pa.table(table).schema for name, table in tables.items()}
    expected = query.run(tables)
    made = [(Leaf(0), Leaf(2)), (Partial("part1", frozenset((0, 2))), Leaf(1))]
    found = run_fragments(fragments_of(query, made, schemas), tables)
    assert Counter(map(str, found.to_pylist())) == Counter(map(str, expected.to_pylist()))
    assert expected.num_rows > 10


def test_what_cannot_be_said_is_refused() -> None:
    a, b, c = STREAMS
    sites = {
        "east": wj.Site(load=0.5, bandwidth=1000, streams=["a", "b"]),
        "west": wj.Site(load=0.1, bandwidth=1000, streams=["c"]),
    }
    rates = {"a": 5.0, "b": 5.0, "c": 40.0}
    query = wj.join(a, b, c, on=[a["k"] == b["k"], b["k"] == c["k"]])
    plan = wj.plan(query, rates=rates, sites=sites, weights=(0.15, 0.85))
    tables = {name: rows(seed) for seed, name in enumerate("abc")}
    assert plan.run(tables).num_rows == query.run(tables).num_rows  # types are known by then
    with pytest.raises(QueryError, match="which columns there are is not known"):
        _ = plan.fragments[0].query
    with pytest.raises(QueryError, match="'d' is not a stream of this query"):
        plan.run({**tables, "d": tables["a"]})
    called = wj.join(a, b, on=wj.udf(lambda x, y: x < y, a["k"], b["k"]))
    with pytest.raises(QueryError, match="is code, which a query file cannot have"):
        wj.plan(called, rates={"a": 1, "b": 1}).fragments[0].query_file({"a": "", "b": ""}, "")
    whole = wj.plan(wj.join(a, b, on=a["k"] == b["k"]), rates={"a": 1, "b": 1}).fragments[0]
    with pytest.raises(QueryError, match="there is no path for stream 'b'"):
        whole.query_file({"a": "a.csv"}, "results.csv")


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 2),
        ({"exclude_self": [["a", "b"]]}, 2),
        ({"exclude_self": [["a", "c"]]}, 1),  # numbers of rows do not travel
        ({"keep": ["a"]}, 1),
        ({"missing": ["c"]}, 1),
        ({"how": "left"}, 1),
    ],
)
def test_what_needs_to_be_in_one_place_is(
    tmp_path: Path, options: dict[str, Any], count: int
) -> None:
    a, b, c = STREAMS
    query = wj.join(a, b, c, on=[a["k"] == b["k"], b["k"] == c["k"]], **options)
    tables = {name: rows(1) for name in "abc"}
    sites = {
        "east": wj.Site(load=0.5, bandwidth=1000, streams=["a", "b"]),
        "west": wj.Site(load=0.1, bandwidth=1000, streams=["c"]),
    }
    rates = {"a": 5.0, "b": 5.0, "c": 40.0}
    plan = wj.plan(
        query, rates=rates, statistics=tables, sites=sites, weights=(0.15, 0.85), cpu=1e-9
    )
    assert len(plan.fragments) == count
    expected = Counter(map(str, query.run(tables).to_pylist()))
    assert Counter(map(str, plan.run(tables).to_pylist())) == expected
    paths = {name: f"{name}.parquet" for name in "abc"} | {"part1": "part1.arrow"}
    for one in plan.fragments:
        file = tmp_path / f"{one.name}.toml"
        file.write_text(one.query_file(paths, "results.parquet"))
        read = read_query_file(file).query
        assert (read.exclude_self, read.sides) == (one.query.exclude_self, one.query.sides)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sites": {"east": 5}}, "give a windjoin.Site"),
        ({"sites": ["east"]}, "sites=\\['east'\\]: give a windjoin.Site by name"),
        ({"sites": None, "links": {("e", "w"): 1}}, "links= says how sites are chosen; give the"),
        ({"sites": None}, "weights= says how sites are chosen; give the sites, too"),
        ({"weights": "ab"}, "weights='ab': give two numbers, of load and of bandwidth"),
        ({"sites": {}}, "there are no sites to choose from"),
        ({"sites": {"e": wj.Site(streams=["a", "x"])}}, "names 'x', which is no stream"),
        ({"sites": {"e": wj.Site(streams=["a", "b"])}}, "stream 'c' is at no site"),
        ({"sites": {"e": wj.Site(load=2, streams=[*"abc"])}}, "load of site 'e' is 2"),
        ({"weights": (0.5, 0.6)}, "give two of 0 or more, of load and of bandwidth"),
        ({"links": {("east", "north"): 1.0}}, "links name the site 'north'"),
        ({"links": {("east", "west"): 0}}, "a length must be above 0"),
        ({"links": {("east", "west"): "0Mbit"}}, "nothing goes over the link \\('east', 'west'\\)"),
        ({"links": {("east", "west"): None}}, "is None; give the length of every link"),
        ({"rates": {"a": 1, "b": 1}}, "stream 'c' has none; say how many rows a second it has"),
        ({"rates": {"a": 1, "b": 1, "c": -1}}, "-1 of stream 'c' is not a rate"),
        ({"rates": {"a": 1, "b": 1, "d": 1}}, "'d' is no stream of the query"),
        ({"cpu": 0}, "cpu=0: give a number above 0"),
        ({"batch_rows": True}, "batch_rows=True: give a number above 0"),
        ({"statistics": {"a": {"t": [1]}}}, "there is no table of stream 'b'"),
    ],
)
def test_what_does_not_fit_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        division(**options)


def test_sites_are_checked_as_they_are_made() -> None:
    with pytest.raises(QueryError, match=r"bandwidth='fast': give bytes per second"):
        wj.Site(bandwidth="fast")
    with pytest.raises(QueryError, match=r"Site\(load='high'\): give how busy it is, 0 to 1"):
        wj.Site(load="high")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match=r"Site\(streams='abc'\): give a list of names"):
        wj.Site(streams="abc")
