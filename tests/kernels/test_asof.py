"""As-of joins, ``nearest=`` with a direction: the definition in plain Python, on every path."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin import testing

from tests import oracle

ROWS = st.lists(
    st.tuples(st.integers(0, 12) | st.none(), st.integers(0, 2) | st.none(), st.integers(0, 3)),
    max_size=14,
)
DIRECTIONS = ["backward", "forward", "nearest"]
CONDITIONS: dict[str, Any] = {
    "nothing": (lambda a, b: [], ()),
    "a key": (
        lambda a, b: [a["k"] == b["k"]],
        (oracle.Apply("==", (oracle.Column(0, "k"), oracle.Column(1, "k"))),),
    ),
    "two keys": (
        lambda a, b: [a["k"] == b["k"], a["x"] == b["x"]],
        (
            oracle.Apply("==", (oracle.Column(0, "k"), oracle.Column(1, "k"))),
            oracle.Apply("==", (oracle.Column(0, "x"), oracle.Column(1, "x"))),
        ),
    ),
    "more than keys": (
        lambda a, b: [a["k"] == b["k"], a["x"] <= b["x"]],
        (
            oracle.Apply("==", (oracle.Column(0, "k"), oracle.Column(1, "k"))),
            oracle.Apply("<=", (oracle.Column(0, "x"), oracle.Column(1, "x"))),
        ),
    ),
    "a key twice": (
        lambda a, b: [a["k"] == b["k"], a["x"] == b["k"]],
        (
            oracle.Apply("==", (oracle.Column(0, "k"), oracle.Column(1, "k"))),
            oracle.Apply("==", (oracle.Column(0, "x"), oracle.Column(1, "k"))),
        ),
    ),
}


def table(rows: list[Any]) -> pa.Table:
    columns = [pa.array([row[k] for row in rows], pa.int64()) for k in range(3)]
    return pa.table(columns, ["ts", "k", "x"])


def in_words(rows: list[Any]) -> list[oracle.Row]:
    return [dict(zip(("ts", "k", "x"), row, strict=True)) for row in rows]


def pairs(found: Any) -> list[tuple[int, int]]:
    return sorted(zip(found["a"].tolist(), found["b"].tolist(), strict=True))


@st.composite
def joins(draw: Any) -> Any:
    name = draw(st.sampled_from(list(CONDITIONS)))
    windows = draw(st.tuples(st.integers(0, 9), st.integers(0, 9)))
    closed = draw(st.sampled_from(["both", "right"]))
    direction = draw(st.sampled_from(DIRECTIONS))
    most = draw(st.sampled_from([1, 1, 1, 2, 3]))
    how = draw(st.sampled_from(["inner", "inner", "left", "right", "full", "semi", "anti"]))
    a, b = (wj.stream(n, time="ts", window=w) for n, w in zip("ab", windows, strict=True))
    on, predicates = CONDITIONS[name]
    q = wj.join(a, b, on=on(a, b), closed=closed, nearest=most, direction=direction, how=how)
    asked = oracle.Query(windows, predicates, (None, None), closed)
    return q, asked, direction, most, how


def expected(
    asked: oracle.Query, rows: list[Any], direction: str, most: int, how: str
) -> list[tuple[int, int]]:
    words = [in_words(side) for side in rows]
    there = [[r for r in side if r["ts"] is not None] for side in words]
    places = [[n for n, r in enumerate(side) if r["ts"] is not None] for side in words]
    found = [
        (places[0][i], places[1][j])
        for i, j in oracle.nearest_in_time(asked, there, direction, most)
    ]
    alone = [(i, -1) for i in places[0] if i not in {i for i, _ in found}]
    others = [(-1, j) for j in places[1] if j not in {j for _, j in found}]
    return sorted(
        {
            "inner": found,
            "left": [*found, *alone],
            "right": [*found, *others],
            "full": [*found, *alone, *others],
            "semi": [(i, -1) for i in {i for i, _ in found}],
            "anti": alone,
        }[how]
    )


def given_pairs(found: Any, how: str) -> list[tuple[int, int]]:
    if how in ("semi", "anti"):
        return sorted((i, -1) for i in found["a"].tolist())
    return pairs(found)


@given(join=joins(), left=ROWS, right=ROWS, threads=st.sampled_from([1, 2]))
def test_whole_tables_are_joined_as_defined(join: Any, left: Any, right: Any, threads: int) -> None:
    q, asked, direction, most, how = join
    found = q.indices({"a": table(left), "b": table(right)}, threads=threads)
    assert given_pairs(found, how) == expected(asked, [left, right], direction, most, how)


@given(join=joins(), left=ROWS, right=ROWS, data=st.data())
def test_pushed_rows_are_joined_as_defined(join: Any, left: Any, right: Any, data: Any) -> None:
    q, asked, direction, most, how = join
    lateness = data.draw(st.sampled_from([0, 0, 2, 12]))
    for side in (left, right):  # late rows are another matter
        side.sort(key=lambda row: 0 if row[0] is None else row[0] // (lateness + 1))
    tables, sent = {"a": table(left), "b": table(right)}, {"a": 0, "b": 0}
    found: list[tuple[int, int]] = []
    schemas = {name: one.schema for name, one in tables.items()}
    with q.open(schemas, lateness=lateness, rows_only=True) as s:
        while any(sent[name] < len(tables[name]) for name in "ab"):
            name = data.draw(st.sampled_from([n for n in "ab" if sent[n] < len(tables[n])]))
            some = data.draw(st.integers(1, 4))
            batch = tables[name].slice(sent[name], some)
            found += given_pairs(s.push(name, batch), how)
            sent[name] += len(batch)
            if data.draw(st.integers(0, 9)) == 0:
                for index in s._live.windows[1].indexes.values():  # type: ignore[union-attr]
                    index.compact()
                s._live.begin_anew()  # type: ignore[union-attr]
        found += given_pairs(s.close(), how)
    assert sorted(found) == expected(asked, [left, right], direction, most, how)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_rows_are_given_out_when_they_are_final(direction: Any) -> None:
    """Neither before a nearer partner can come, nor later."""
    a, b = (wj.stream(name, time="ts", window=5) for name in "ab")
    q = wj.join(a, b, nearest=1, direction=direction, how="left")
    final_at = {"backward": 11, "forward": 16, "nearest": 16}[direction]
    with q.open(rows_only=True) as s:
        s.push("b", {"ts": [9]})
        s.push("a", {"ts": [10]})
        for time in range(10, 20):
            found = s.push("b", {"ts": [time]})
            assert len(found["a"]) == (time == final_at), time
        assert s.metrics["results"] == 1


def test_state_stays_small_however_long_it_goes_on() -> None:
    a, b = (wj.stream(name, time="ts", window=50) for name in "ab")
    q = wj.join(a, b, on=a["k"] == b["k"], nearest=1, direction="nearest")
    sizes = []
    with q.open(rows_only=True) as s:
        for at in range(0, 60_000, 500):
            time = np.arange(at, at + 500)
            s.push("a", {"ts": time, "k": time})
            s.push("b", {"ts": time, "k": time})
            sizes.append(s.state_bytes)
    assert max(sizes[60:]) <= 1.5 * max(sizes[:60])


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_saved_sessions_go_on(direction: Any, tmp_path: Any) -> None:
    random = np.random.default_rng(5)
    a, b = (wj.stream(name, time="ts", window=6) for name in "ab")
    q = wj.join(a, b, on=a["k"] == b["k"], nearest=2, direction=direction, how="left")
    tables = {
        name: pa.table(
            {"ts": np.sort(random.integers(0, 90, 120)), "k": random.integers(0, 3, 120)}
        )
        for name in "ab"
    }
    found, s = [], q.open({name: one.schema for name, one in tables.items()}, lateness=2)
    for at in range(0, 120, 10):
        for name, one in tables.items():
            found.append(s.push(name, one.slice(at, 10)))
        if at % 30 == 0:
            s.save(tmp_path / "snapshot")
            s.abandon()
            s = wj.restore(q, tmp_path / "snapshot")
    found.append(s.close())
    testing.assert_same_results(pa.concat_tables(found), testing.expected(q, tables))


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_threads_share_large_tables(direction: Any) -> None:
    """Compared with sorting by hand: too many rows for the oracle."""
    random = np.random.default_rng(9)
    n, keys, reach = 300_000, 50, int(random.integers(0, 40))
    sides = [(random.integers(0, 10_000, n), random.integers(0, keys, n)) for _ in range(2)]
    a, b = (wj.stream(name, time="ts", window=reach) for name in "ab")
    q = wj.join(a, b, on=a["k"] == b["k"], nearest=1, direction=direction)
    given_tables = {name: {"ts": t, "k": k} for name, (t, k) in zip("ab", sides, strict=True)}
    found = q.indices(given_tables, threads=2)
    assert q.metrics["threads"] == 2
    alone = q.indices(given_tables, threads=1)
    for name in "ab":
        np.testing.assert_array_equal(found[name], alone[name])
    wanted = _by_hand(sides, reach, direction)
    partner = np.full(n, -1)
    partner[found["a"]] = found["b"]
    np.testing.assert_array_equal(partner, wanted)


def _by_hand(sides: list[Any], reach: int, direction: str) -> Any:
    (t, k), (u, m) = sides
    order = np.lexsort((u, m))  # stable: equal times as they came
    mixed = m[order] * 100_000 + u[order]
    asked = k * 100_000 + t
    back = np.searchsorted(mixed, asked, "right") - 1
    ahead = np.searchsorted(mixed, asked, "left" if direction == "forward" else "right")
    back_gap = asked - mixed[np.maximum(back, 0)]
    ahead_gap = mixed[np.minimum(ahead, len(mixed) - 1)] - asked
    back_fits = (back >= 0) & (back_gap <= reach) & (direction != "forward")
    ahead_fits = (ahead < len(mixed)) & (ahead_gap <= reach) & (direction != "backward")
    takes_back = back_fits & (~ahead_fits | (back_gap <= ahead_gap))
    chosen = np.where(takes_back, back, np.where(ahead_fits, ahead, -1))
    return np.where(chosen < 0, -1, order[chosen])


def test_ends_of_time_do_not_wrap() -> None:
    least, most = -(2**63) + 1, 2**63 - 1
    a, b = (wj.stream(name, time="ts", window=most) for name in "ab")
    tables = {"a": {"ts": [least, 0, most]}, "b": {"ts": [least, most]}}
    for direction, wanted in (
        ("backward", [(0, 0), (1, 0), (2, 1)]),
        ("forward", [(0, 0), (1, 1), (2, 1)]),
        ("nearest", [(0, 0), (1, 0), (2, 1)]),
    ):
        q = wj.join(a, b, nearest=1, direction=direction)  # type: ignore[arg-type]
        assert pairs(q.indices(tables)) == wanted
        with q.open(rows_only=True) as s:
            found = [s.push("a", tables["a"]), s.push("b", tables["b"]), s.close()]
        assert sorted(p for some in found for p in pairs(some)) == wanted


def test_columns_texts_and_select() -> None:
    trades = wj.stream("trades", time="ts", window="5s", unit="s")
    quotes = wj.stream("quotes", time="ts", window="2s", unit="s")
    q = wj.join(
        trades, quotes, on=trades["symbol"] == quotes["symbol"], nearest=1, direction="backward",
        how="left", select=[trades["ts"], quotes["bid"]],
    )  # fmt: skip
    found = q.run(
        {
            "trades": {"ts": [10, 11, 14], "symbol": ["x", "y", "x"]},
            "quotes": {"ts": [9, 10, 11], "symbol": ["x", "x", "z"], "bid": [1.0, 2.0, 3.0]},
        },
        ordered=True,
    )
    assert found.column("quotes_bid").to_pylist() == [2.0, None, None]
    assert "of every row of trades the 1 row of quotes nearest in time" in q.explain()
    assert "a merge in order of time" in q.explain()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"nearest": 1, "direction": "back"}, "direction='back' is not one of backward, forward"),
        ({"direction": "backward"}, "direction='backward' says where nearest= looks in time; add"),
        ({"nearest": 0, "direction": "forward"}, "nearest=0: give how many partners"),
        ({"nearest": 1}, 'for partners nearest in time say direction="backward"'),
    ],
)
def test_what_is_refused(options: Any, said: str) -> None:
    a, b = (wj.stream(name, time="ts", window=5) for name in "ab")
    with pytest.raises(wj.QueryError, match=said):
        wj.join(a, b, on=a["k"] == b["k"], **options)


def test_three_streams_and_hosts_are_refused() -> None:
    a, b, c = (wj.stream(name, time="ts", window=5) for name in "abc")
    with pytest.raises(wj.QueryError, match="joins of two streams, not of 3"):
        wj.join(a, b, c, on=[], nearest=1, direction="backward")
    q = wj.join(a, b, nearest=1, direction="backward")
    rows = {"ts": [1]}
    with pytest.raises(wj.QueryError, match="nearest= is not for hosts="):
        q.run({"a": rows, "b": rows}, hosts=2)


def test_the_kit_knows_the_definition() -> None:
    a, b = (wj.stream(name, time="ts", window=5) for name in "ab")
    q = wj.join(a, b, on=a["k"] == b["k"], nearest=1, direction="nearest")
    rows = {"ts": [1, 3, 3, 8, 9], "k": [1, 1, 2, 2, 1]}
    testing.check(q, {"a": rows, "b": {"ts": [2, 2, 4, 7, 7], "k": [1, 1, 2, 2, 1]}}, seed=3)


def test_query_files_have_directions(tmp_path: Any) -> None:
    from windjoin.cli.queryfile import read_query_file
    from windjoin.query_text import query_text

    a, b = (wj.stream(name, time="ts", window=5) for name in "ab")
    q = wj.join(a, b, nearest=2, direction="forward")
    text = query_text(q, {"a": "a.parquet", "b": "b.parquet"})
    (tmp_path / "query.toml").write_text(text)
    read = read_query_file(tmp_path / "query.toml").query
    assert (read.nearest, read.direction, read.on) == (2, "forward", ())
