"""Outer, semi and anti joins: every way to run them against the oracle."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
import windjoin.arrow
import windjoin.testing
from hypothesis import given
from hypothesis import strategies as st

from tests.api import build, open_session, schemas, user_time
from tests.cases import ROW, Case, SessionCase
from tests.oracle import TIME, Results, departures, outcome
from tests.oracle import given as shown
from tests.strategies import outer_sessions, outers

A, B, C = (wj.stream(name, time="t", window=5) for name in "abc")
ON = A["k"] == B["k"]


def members(case: Case, table: Any) -> Results:
    """What came out, by the row numbers that rows carry."""
    columns = [
        [-1 if row is None else row for row in table.column(f"{case.names[s]}_{ROW}").to_pylist()]
        for s in shown(case.query)
    ]
    return Counter(zip(*columns, strict=True))


def numbered(indices: dict[str, Any]) -> Results:
    assert {column.dtype for column in indices.values()} == {np.dtype(np.int64)}
    return Counter(zip(*(column.tolist() for column in indices.values()), strict=True))


@given(outers())
def test_batches_equal_the_oracle(case: Case) -> None:
    query, expected = build(case), outcome(case.query, case.rows())
    assert members(case, query.run(case.tables())) == expected
    assert query.metrics["results"] == expected.total()
    ordered = query.indices(case.tables(), threads=2, ordered=True)
    assert numbered(ordered) == expected
    assert list(zip(*(c.tolist() for c in ordered.values()), strict=True)) == by_time(
        case, expected
    )


def by_time(case: Case, found: Results) -> list[tuple[int, ...]]:
    """By the time of what comes out, then by members; none comes before any row."""
    rows = case.rows()

    def key(numbers: tuple[int, ...]) -> Any:
        times = [
            rows[s][row][TIME] if row >= 0 else -(10**30)
            for s, row in zip(shown(case.query), numbers, strict=True)
        ]
        return max(times), list(zip(times, numbers, strict=True))

    return sorted(found.elements(), key=key)


@given(outer_sessions())
def test_sessions_give_out_what_is_final_when_it_is(drawn: SessionCase) -> None:
    """Results with their last member, what has no partner when none can come any more."""
    case = drawn.case
    expected = departures(case.query, drawn.events(), drawn.lateness)
    came: dict[tuple[int, ...], int] = {}
    found: Results = Counter()
    with open_session(drawn) as session:
        for number, step in enumerate([*drawn.steps, None]):
            if step is not None and step.time is not None:
                time = user_time(drawn, step.stream, step.time)
                session.advance(case.names[step.stream], time)
                continue
            if step is None:
                table = session.close()
            else:
                rows = case.streams[step.stream].table(step.start, step.stop)
                table = session.push(case.names[step.stream], rows)
            new = members(case, table)
            found += new
            came |= dict.fromkeys(new, number)
        assert session.metrics["results"] == found.total()
    assert found == Counter(expected.keys())
    for numbers, step in expected.items():
        while step < len(drawn.steps) and drawn.steps[step].time is not None:
            step += 1  # what a promise makes final comes with the next push
        if case.query.missing or -1 in numbers:
            assert came[numbers] <= step, numbers  # at once if its values can match nothing
        else:
            assert came[numbers] == step, numbers


@pytest.mark.parametrize("strategy", ["atr", "ctr", "psp"])
@given(case=outers(most=3), most=st.integers(1, 4), seed=st.integers(0, 99))
def test_hosts_equal_the_oracle(strategy: str, case: Case, most: int, seed: int) -> None:
    query, expected = build(case), outcome(case.query, case.rows())
    assert numbered(query.indices(case.tables(), hosts=2, strategy=strategy)) == expected
    random = np.random.default_rng(seed)
    left = {n: list(range(len(s.stored))) for n, s in enumerate(case.streams)}
    found: Results = Counter()
    kind = case.streams[0].kinds[TIME]
    plain = kind.family == "number" and "unit" not in case.streams[0].options
    options = {"hosts": 2, "strategy": strategy, "lateness": 10**6 if plain else "100d"}
    with query.open(schemas(case), **options) as session:
        while any(left.values()):
            stream = random.choice([n for n, rows in left.items() if rows])
            start, left[stream] = left[stream][0], left[stream][most:]
            table = case.streams[stream].table(start, start + most)
            found += members(case, session.push(case.names[stream], table))
        found += members(case, session.close())
        assert session.metrics["results"] == expected.total()
    assert found == expected


@given(outers(most=3))
def test_joined_partitions_equal_the_oracle(case: Case) -> None:
    """`windjoin.arrow.joiner`: rows of all streams in one partition."""
    query, tables = build(case), case.tables()
    join = wj.arrow.joiner(query, stream_column="of", schemas=schemas(case))
    batches = []
    for name, table in tables.items():
        column = pa.array([name] * len(table), pa.string())
        batches += table.append_column("of", column).to_batches(max_chunksize=3)
    found = pa.Table.from_batches(list(join(batches)), query.bind(schemas(case)).schema)
    assert members(case, found) == outcome(case.query, case.rows())


def test_rows_come_out_of_hosts_when_they_are_final() -> None:
    query = wj.join(A, B, on=ON, how="anti")
    with query.open(hosts=2, strategy="atr", segment=2) as session:
        assert len(session.push("a", {"t": [1], "k": [1]})) == 0
        assert len(session.push("b", {"t": [1], "k": [2]})) == 0
        session.push("a", {"t": [20], "k": [1]})
        session.advance("b", 20)
        out = session.push("a", {"t": [21], "k": [1]}).to_pylist()
        assert out == [{"a_t": 1, "a_k": 1}]
        assert session.close().num_rows == 2


def nearest(how: str) -> Any:
    return wj.join(A, B, on=wj.l1(A["v"], B["v"]) <= 5, nearest=1, how=how)  # type: ignore[arg-type]


@pytest.mark.parametrize("how", ["left", "right", "full", "semi", "anti"])
@given(
    left=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=8),
    right=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=8),
)
def test_rows_that_lose_their_partners_to_nearer_ones(how: str, left: Any, right: Any) -> None:
    tables = {name: vectors(rows) for name, rows in (("a", left), ("b", right))}
    wj.testing.check(nearest(how), tables, modes=["batch", "pushes"])


def vectors(rows: list[tuple[int, int]]) -> pa.Table:
    rows = sorted(rows)
    values = pa.array([[float(v)] for _, v in rows], pa.list_(pa.float64()))
    return pa.table({"t": pa.array([t for t, _ in rows], pa.int64()), "v": values})


def test_conditions_on_one_stream_are_no_filters() -> None:
    """What `where` keeps out is no row of the stream; what a condition refuses has no partner."""
    only = wj.stream("a", time="t", window=5, where=lambda a: a["k"] > 0)
    tables = {"a": {"t": [1, 2, 3], "k": [0, 1, 2]}, "b": {"t": [1], "k": [1]}}
    query = wj.join(only, B, on=~((A["k"] != B["k"]) | (A["k"] >= 2)), how="left")
    assert query.indices(tables)["a"].tolist() == [1, 2]
    assert query.indices(tables)["b"].tolist() == [0, -1]


def test_selected_columns_are_null_where_there_is_no_row() -> None:
    chosen = [A["k"], (A["k"] + B["k"]).alias("sum"), wj.l1(A["v"], B["v"]).alias("far"), B["s"]]
    query = wj.join(A, B, on=ON, how="full", select=chosen)
    tables = {
        "a": {"t": [1, 2], "k": [1, 2], "v": [[0.0], [1.0]], "s": ["x", "y"]},
        "b": {"t": [1, 2], "k": [1, 3], "v": [[2.0], [1.0]], "s": ["p", "q"]},
    }
    expected = [
        {"a_k": 1, "sum": 2, "far": 2.0, "b_s": "p"},
        {"a_k": 2, "sum": None, "far": None, "b_s": None},
        {"a_k": None, "sum": None, "far": None, "b_s": "q"},
    ]
    assert query.run(tables).to_pylist() == expected
    with query.open() as session:
        session.push("a", tables["a"])
        assert session.push("b", tables["b"]).to_pylist() == expected[:1]
        assert session.close().to_pylist() == expected[1:]


def test_columns_become_nullable() -> None:
    schema = pa.schema([pa.field("t", pa.int64(), nullable=False), ("k", pa.int64())])
    both = {"a": schema, "b": schema}
    bound = wj.join(A, B, on=ON, how="left").bind(both)
    assert not bound.schema.field("a_t").nullable
    assert bound.schema.field("b_t").nullable
    assert wj.join(A, B, on=ON, how="semi").bind(both).schema.names == ["a_t", "a_k"]


def test_every_how_says_what_it_keeps() -> None:
    tables = {"a": {"t": [1, 2], "k": [1, 2]}, "b": {"t": [1, 3], "k": [1, 3]}}
    found = {
        how: wj.join(A, B, on=ON, how=how).indices(tables)  # type: ignore[arg-type]
        for how in ("inner", "left", "right", "full", "semi", "anti")
    }
    plain = {how: {n: rows.tolist() for n, rows in one.items()} for how, one in found.items()}
    assert plain == {
        "inner": {"a": [0], "b": [0]},
        "left": {"a": [0, 1], "b": [0, -1]},
        "right": {"a": [0, -1], "b": [0, 1]},
        "full": {"a": [0, 1, -1], "b": [0, -1, 1]},
        "semi": {"a": [0]},
        "anti": {"a": [1]},
    }


def test_payments_with_no_login_before_them() -> None:
    """What the README promises to the reader."""
    logins = wj.stream("logins", time="ts", window=300)
    payments = wj.stream("payments", time="ts", window=0)
    query = wj.join(payments, logins, on=payments["user"] == logins["user"], how="anti")
    with query.open() as session:
        session.push("logins", {"ts": [0], "user": ["ann"]})
        session.push("payments", {"ts": [100, 301], "user": ["ann", "ann"]})
        out = session.push("logins", {"ts": [302], "user": ["bob"]})
        assert out.to_pylist() == [{"payments_ts": 301, "payments_user": "ann"}]


def test_missing_streams_of_three() -> None:
    on = [ON, B["k"] == C["k"]]
    tables = {
        "a": {"t": [1, 1], "k": [1, 2]},
        "b": {"t": [2, 2], "k": [1, 2]},
        "c": {"t": [3], "k": [2]},
    }
    assert wj.join(A, B, C, on=on, missing=[C]).run(tables).to_pylist() == [
        {"a_t": 1, "a_k": 1, "b_t": 2, "b_k": 1}
    ]
    assert wj.join(A, B, C, on=on, exists=["c"]).run(tables).to_pylist() == [
        {"a_t": 1, "a_k": 2, "b_t": 2, "b_k": 2}
    ]
    assert wj.join(A, B, C, on=on, keep=[A, B]).indices(tables)["c"].tolist() == [0, -1, -1]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"how": "outer"}, "how='outer': it is one of 'inner', 'left', 'right', 'full', 'semi'"),
        ({"how": "left", "keep": [A]}, "how='left' and keep= both say which rows come out"),
        ({"keep": [A], "missing": [B]}, "keep= is for streams whose rows are in results"),
        ({"exists": [B], "missing": [B]}, "is in exists= and in missing="),
        ({"exists": [A], "missing": [B]}, "have all streams, so no row could come out"),
        ({"keep": A}, "give a list of streams, or of their names"),
        ({"keep": "a"}, "give a list of streams, or of their names"),
        ({"keep": ["c"]}, "keep: 'c' is not a stream of this join"),
        ({"missing": [5]}, "missing: 5 is not a stream of this join"),
        ({"how": "semi", "select": [A["k"], B["k"]]}, "only asks whether rows fit; select col"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(wj.QueryError, match=told):
        wj.join(A, B, on=ON, **options)


def test_streams_asked_about_are_compared_with_those_that_come_out() -> None:
    on = [ON, A["k"] == C["k"], B["x"] < C["x"]]
    with pytest.raises(wj.QueryError, match="compares a stream of exists= with one of missing="):
        wj.join(A, B, C, on=on, exists=[B], missing=[C])
    on = [A["k"] == C["k"], B["k"] == C["k"]]
    with pytest.raises(wj.QueryError, match="no condition connects 'a' with 'b'"):
        wj.join(A, B, C, on=on, missing=[C])
    assert wj.join(A, B, C, on=on, exists=[C]).sides.exists == (2,)


def test_memory_stays_flat_and_is_a_bit_per_row() -> None:
    query = wj.join(A, B, on=ON, how="full")
    with query.open(rows_only=True, lateness=3) as session:
        held = []
        for start in range(0, 40_000, 500):
            times = np.arange(start, start + 500) ^ 1  # neighbours overtake each other
            session.push("a", {"t": times, "k": times % 7})
            session.push("b", {"t": times, "k": times % 5})
            held.append(session.metrics["state_bytes"])
        assert max(held[20:]) <= 2 * max(held[:20])


def test_late_rows_are_in_no_output() -> None:
    query = wj.join(A, B, on=ON, how="left")
    with query.open(on_late="keep") as session:
        session.push("a", {"t": [100, 1], "k": [1, None]})
        session.push("b", {"t": [100], "k": [2]})
        assert session.close().column("a_t").to_pylist() == [100]
        assert session.rejected["a"].num_rows == 1


def test_push_many_and_rows_before_the_schemas_are_known() -> None:
    query = wj.join(A, B, on=ON, how="left")
    tables = {"a": {"t": [1, 50], "k": [None, 1]}, "b": {"t": [60], "k": [2]}}
    with query.open() as session:
        assert len(session.push("a", pa.table(tables["a"]))) == 0
        first = session.push_many({"b": tables["b"]})
        assert first.column("a_t").to_pylist() == [1, 50]
    with query.open() as session:
        assert len(session.push_many(tables)) == 2


def test_replaced_queries_keep_their_sides() -> None:
    query = wj.join(A, B, on=ON, how="anti")
    assert replace(query, select=None).sides == query.sides


@pytest.mark.parametrize("how", ["left", "full", "semi", "anti"])
def test_saved_sessions_know_what_has_been_in_a_result(how: Any, tmp_path: Any) -> None:
    query = wj.join(A, B, on=ON, how=how)
    schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
    rows = [("a", 1, 1), ("a", 2, 2), ("b", 3, 1), ("a", 5, 3), ("b", 4, 9), ("b", 9, 3)]
    rest = [("a", 6, 9), ("b", 30, 1), ("a", 31, 1)]
    whole: list[Any] = []
    found: list[Any] = []
    with query.open({"a": schema, "b": schema}, lateness=4) as session:
        for name, t, k in [*rows, *rest]:
            whole += session.push(name, {"t": [t], "k": [k]}).to_pylist()
        whole += session.close().to_pylist()
    with query.open({"a": schema, "b": schema}, lateness=4) as session:
        for name, t, k in rows:
            found += session.push(name, {"t": [t], "k": [k]}).to_pylist()
        session.save(tmp_path / "snap")
        session.abandon()
    with wj.restore(query, tmp_path / "snap") as session:
        for name, t, k in rest:
            found += session.push(name, {"t": [t], "k": [k]}).to_pylist()
        found += session.close().to_pylist()
        assert session.metrics["results"] == len(whole)
    assert found == whole


def test_what_cannot_be_saved_or_spilled_is_refused(tmp_path: Any) -> None:
    asked = wj.join(A, B, C, on=[ON, B["k"] == C["k"]], missing=[C])
    with asked.open() as session, pytest.raises(wj.QueryError, match="ask about cannot be saved"):
        session.save(tmp_path / "snap")
    with pytest.raises(wj.QueryError, match="memory= is not for how="):
        wj.join(A, B, on=ON, how="left").open(memory="1GB")


def test_hosts_of_others_do_not_know_whether_rows_have_partners() -> None:
    schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
    query = wj.join(A, B, on=ON, how="left")
    with pytest.raises(wj.QueryError, match="which hosts that share the rows do not know"):
        wj.arrow.place(query, {"a": schema, "b": schema}, hosts=2, strategy="single")


@pytest.mark.parametrize("how", ["left", "full", "semi", "anti"])
def test_tables_in_stretches_have_the_same_rows_without_partners(how: Any) -> None:
    query = wj.join(A, B, on=ON, how=how)
    times = np.arange(400)
    tables = {"a": {"t": times, "k": times % 7}, "b": {"t": times, "k": times % 50}}
    wj.testing.assert_same_results(query.stream(tables), query.run(tables))
    wj.testing.assert_same_results(
        query.iterate({n: [t] for n, t in tables.items()}), query.run(tables)
    )


def test_query_files_say_how(tmp_path: Any) -> None:
    from windjoin.cli.queryfile import read_query_file

    streams = "".join(f'[streams.{n}]\npath = "{n}.csv"\ntime = "t"\nwindow = 5\n' for n in "abc")
    on = """on = ["a['k'] == b['k']", "b['k'] == c['k']"]\n"""
    path = tmp_path / "query.toml"
    path.write_text(f'how = "anti"\n{on}{streams}')
    assert read_query_file(path).query.sides.missing == (1, 2)
    path.write_text(f'keep = ["a", "c"]\n{on}{streams}')
    assert read_query_file(path).query.sides.keep == (0, 2)
    path.write_text(f'missing = "c"\n{on}{streams}')
    assert read_query_file(path).query.sides.missing == (2,)
    path.write_text(f'how = "outer"\n{on}{streams}')
    with pytest.raises(wj.QueryError, match="how='outer': it is one of"):
        read_query_file(path)


def test_plans_tell_which_rows_come_out() -> None:
    tables = {n: {"t": [1], "k": [1]} for n in "abc"}
    left = wj.join(A, B, on=ON, how="left")
    assert "and rows of a that are in no result" in left.explain()
    asked = wj.join(A, B, C, on=[ON, B["k"] == C["k"]], missing=[C])
    asked.run(tables)
    assert "combinations that no row of c fits\nby this join:" in asked.explain()
    assert asked.explain("json")["missing"] == ["c"]


@pytest.mark.parametrize("how", ["inner", "left", "full"])
def test_joined_partitions_give_nearest_partners(how: Any) -> None:
    query = nearest(how)
    tables = {"a": vectors([(1, 5), (2, 9)]), "b": vectors([(1, 4), (3, 6), (9, 9)])}
    schemas_ = {name: table.schema for name, table in tables.items()}
    join = wj.arrow.joiner(query, stream_column="of", schemas=schemas_)
    batches = []
    for name, table in tables.items():
        batches += table.append_column("of", pa.array([name] * len(table))).to_batches()
    found = pa.Table.from_batches(list(join(batches)), query.bind(schemas_).schema)
    wj.testing.assert_same_results(found, query.run(tables))


def test_payload_stays_with_combinations_that_wait() -> None:
    """Of rows that all joins of a session have forgotten, one of them as it could not use them."""
    number = pa.int64()
    schemas = {
        "a": pa.schema([("t", number), ("k", number), ("u", number), ("w", pa.list_(number))]),
        "b": pa.schema([("t", number), ("k", number)]),
        "c": pa.schema([("t", number), ("u", number)]),
    }
    a, b, c = (wj.stream(name, time="t", window=5) for name in "abc")
    on = [a["k"] == b["k"], a["u"] == c["u"]]
    query = wj.join(a, b, c, on=on, missing=[c], select=[a["t"], a["w"]])
    pushes = [("c", {"t": [1], "u": [5]}), ("b", {"t": [20], "k": [1]})]
    pushes.append(("a", {"t": [20], "k": [1], "u": [None], "w": [[7, 8]]}))
    for t in (40, 60, 80):
        pushes.append(("a", {"t": [t], "k": [2], "u": [0], "w": [[0]]}))
        pushes += [("b", {"t": [t], "k": [3]}), ("c", {"t": [10 + t // 10], "u": [9]})]
    pushes.append(("c", {"t": [100], "u": [9]}))
    for options in ({}, {"hosts": 2, "segment": 4}):
        found = []
        with query.open(schemas, **options) as session:
            for name, columns in pushes:
                rows = pa.Table.from_pydict(columns, schemas[name])
                found += session.push(name, rows).to_pylist()
                assert found or session.first_needed(0) == 0
            found += session.close().to_pylist()
        assert found == [{"a_t": 20, "a_w": [7, 8]}]
