"""Selected measures: the values of plain Python for every result, on every path, as exact bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given, settings
from hypothesis import strategies as st
from windjoin.arrow import Limits, joiner, place
from windjoin.kernels import scores

from tests import similarity_oracle as oracle
from tests.arrow_exchange import carry_out, histogram
from tests.effort import examples
from tests.kernels.test_similarity import CASES, measure, wj_condition
from tests.similarity_oracle import Row
from tests.similarity_paths import streams

SMALL = Limits(block_rows=8, results=5)
Found = list[tuple[int, int, str]]


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small results be cut among threads."""
    monkeypatch.setattr(scores, "ROWS_AT_A_TIME", 3)


def table(rows: list[Row], arrow: pa.DataType, split: int = 0) -> pa.Table:
    """Rows with their numbers, the first ``split`` of them in a chunk of their own."""
    columns = {
        "t": pa.array([t for t, _ in rows], pa.int64()),
        "i": pa.array(range(len(rows)), pa.int64()),
        "v": pa.array([value for _, value in rows], arrow),
    }
    whole = pa.table(columns)
    return pa.concat_tables([whole[:split], whole[split:]]) if split else whole


def found_in(result: pa.Table) -> Found:
    """Row numbers with the score as its digits, which tell all doubles apart."""
    rows = zip(*(result[name].to_pylist() for name in ("a_i", "b_i", "score")), strict=True)
    return sorted((i, j, repr(score)) for i, j, score in rows)


def expected_score(family: str, name: str, left: Any, right: Any) -> str:
    """What the oracle says of two rows, as `found_in` shows it."""
    value = oracle.measure(family, name, left, right)
    if value is None or value != value:
        return repr(None)
    return repr(value if name in scores.COUNTS else float(value))


def pushed(query: Any, tables: dict[str, pa.Table], size: int, **options: Any) -> pa.Table:
    """The results of a session that gets the rows in order of time over both streams."""
    order = sorted(
        (t, name, i) for name, rows in tables.items() for i, t in enumerate(rows["t"].to_pylist())
    )
    parts = []
    schemas = {name: rows.schema for name, rows in tables.items()}
    with query.open(schemas=schemas, **options) as session:
        while order:
            name = order[0][1]
            taken = []
            while order and order[0][1] == name and len(taken) < size:
                taken.append(order.pop(0)[2])
            parts.append(session.push(name, tables[name].take(taken)))
        parts.append(session.close())
    return pa.concat_tables(parts)


def joined_by(query: Any, tables: dict[str, pa.Table]) -> pa.Table:
    """The results of `windjoin.arrow.joiner`."""
    schemas = {name: rows.schema for name, rows in tables.items()}
    join = joiner(query, stream_column="s", schemas=schemas, limits=SMALL)
    batches = [
        batch
        for name, rows in tables.items()
        for batch in rows.append_column("s", pa.array([name] * len(rows), pa.string())).to_batches()
    ]
    return pa.Table.from_batches(list(join(batches)), query.bind(schemas).schema)


def paths(query: Any, tables: dict[str, pa.Table]) -> dict[str, Callable[[], pa.Table]]:
    """Every way to run a query that gives a table."""
    return {
        "run": lambda: query.run(tables, threads=1),
        "threads": lambda: query.run(tables, threads=2),
        "hosts": lambda: query.run(tables, hosts=2, ordered=True),
        "push 1": lambda: pushed(query, tables, 1),
        "push 5": lambda: pushed(query, tables, 5),
        "push to hosts": lambda: pushed(query, tables, 5, hosts=2),
        "joiner": lambda: joined_by(query, tables),
    }


@pytest.mark.parametrize("condition", ["another", "the same"])
@pytest.mark.parametrize(("family", "name", "values", "arrow"), CASES)
@settings(max_examples=examples(6))
@given(data=st.data())
def test_scores_equal_the_oracle_on_every_path(
    family: str, name: str, values: Any, arrow: pa.DataType, condition: str, data: Any
) -> None:
    rows = st.lists(st.tuples(st.integers(0, 12), st.none() | values), max_size=8)
    left, right = data.draw(rows), data.draw(rows)
    windows = data.draw(st.tuples(st.integers(0, 12), st.integers(0, 12)))
    a, b = streams(windows)
    score = measure(name, a["v"], b["v"])
    on, holds = a["i"] <= b["i"] + 3, None
    if condition == "the same":
        on, holds = wj_condition(score, ">=", 0.5), oracle.condition(family, name, ">=", 0.5)
    expected = []
    for i, j in oracle.join(left, right, windows, holds or (lambda *_: True)):
        if holds or i <= j + 3:
            expected.append((i, j, expected_score(family, name, left[i][1], right[j][1])))
    query = wj.join(a, b, on=on, select=[a["i"], b["i"], score.alias("score")])
    tables = {"a": table(left, arrow, 1), "b": table(right, arrow)}
    assert query.bind({n: rows.schema for n, rows in tables.items()}).payload == [["i"], ["i"]]
    for path, run in paths(query, tables).items():
        assert found_in(run()) == sorted(expected), path


def rows_of_all(random: Any, rows: int) -> pa.Table:
    """Rows with a set, a weighted set in two columns, two vectors and bytes; some are null."""
    sizes = random.integers(0, 5, rows)
    words = [random.choice(list("abcdef"), size).tolist() for size in sizes]
    return pa.table(
        {
            "t": np.sort(random.integers(0, 60, rows)),
            "i": np.arange(rows),
            "s": pa.array([None if i % 9 == 0 else w for i, w in enumerate(words)]),
            "n": pa.array([random.normal(0, 1, size).tolist() for size in sizes]),
            "v": pa.array(random.normal(0, 1, (rows, 3)).tolist(), pa.list_(pa.float32(), 3)),
            "w": pa.array(random.normal(0, 1, (rows, 3)).tolist(), pa.list_(pa.float64(), 3)),
            "b": pa.array([random.bytes(2) for _ in range(rows)], pa.binary(2)),
        }
    )


def shown_of(a: Any, b: Any, c: Any) -> dict[str, Any]:
    """Measures of all pairs of three streams, one of them of columns of one stream."""
    return {
        "common": wj.overlap(a["s"], b["s"]),
        "share": wj.jaccard(c["s"], b["s"]),
        "product": wj.inner_product((a["s"], a["n"]), (c["s"], c["n"])),
        "far": wj.l2(b["v"], c["v"]),
        "itself": wj.linf(b["v"], b["w"]),
        "bits": wj.hamming(a["b"], c["b"], unit="bits"),
        "sum": wj.overlap(a["s"], b["s"]) + wj.l2(b["v"], c["v"]) * 2,
    }


def by_hand(tables: dict[str, pa.Table], rows: tuple[int, int, int]) -> dict[str, Any]:
    """What `shown_of` shows of three rows."""
    members = zip("abc", rows, strict=True)
    a, b, c = (tables[name].slice(row, 1).to_pylist()[0] for name, row in members)

    def weighted(row: Any) -> Any:
        return None if row["s"] is None else list(zip(row["s"], row["n"], strict=True))

    common = oracle.measure("sets", "overlap", a["s"], b["s"])
    far = oracle.measure("vectors", "l2", b["v"], c["v"])
    assert far is not None
    return {
        "a_i": a["i"], "b_i": b["i"], "c_i": c["i"],
        "common": common,
        "share": oracle.measure("sets", "jaccard", c["s"], b["s"]),
        "product": oracle.measure("weighted", "inner_product", weighted(a), weighted(c)),
        "far": far,
        "itself": oracle.measure("vectors", "linf", b["v"], b["w"]),
        "bits": oracle.measure("bytes", "hamming_bits", a["b"], c["b"]),
        "sum": None if common is None else common + far * 2,
    }  # fmt: skip


@pytest.mark.parametrize("strategy", ["atr", "ctr", "psp", "single", "push", "here"])
def test_scores_of_three_streams(strategy: Any) -> None:
    random = np.random.default_rng(8)
    tables = {name: rows_of_all(random, 40) for name in "abc"}
    a, b, c = (wj.stream(name, time="t", window=12) for name in "abc")
    shown = shown_of(a, b, c)
    select = [a["i"], b["i"], c["i"], *(value.alias(name) for name, value in shown.items())]
    on = [wj.l2(b["v"], c["v"]) <= 1.5, abs(a["i"] - b["i"]) <= 9]
    query = wj.join(a, b, c, on=on, select=select)
    schemas = {name: rows.schema for name, rows in tables.items()}
    assert len(query.bind(schemas).spec.scores) == 6  # two of them are measured once for both
    hosts = 1 if strategy == "single" else 3
    if strategy == "push":
        found = pushed(query, tables, 4)
    elif strategy == "here":
        found = query.run(tables, threads=2)
    else:
        counts = histogram(query, schemas, tables)
        plan, _ = place(
            query, schemas, hosts=hosts, strategy=strategy, histogram=counts, limits=SMALL
        )
        found = carry_out(plan, tables, random)
        again = query.run(tables, hosts=hosts, strategy=strategy)
        assert sorted(map(repr, again.to_pylist())) == sorted(map(repr, found.to_pylist()))
    assert len(found) > 50
    for row in found.to_pylist():
        assert repr(row) == repr(by_hand(tables, (row["a_i"], row["b_i"], row["c_i"])))
    bare = wj.join(a, b, c, on=on).indices(tables)
    rows = zip(*(bare[name].tolist() for name in "abc"), strict=True)
    assert sorted(rows) == sorted((r["a_i"], r["b_i"], r["c_i"]) for r in found.to_pylist())


@pytest.mark.parametrize("kind", ["sets", "vectors", "texts"])
def test_pushes_whose_own_rows_are_forgotten_give_their_scores(kind: str) -> None:
    """Of a push of many rows the first are out of every window when the last have come."""
    random = np.random.default_rng(3)
    make = {
        "sets": lambda: pa.array([random.integers(0, 9, 3).tolist() for _ in range(4000)]),
        "vectors": lambda: pa.FixedSizeListArray.from_arrays(random.random(12_000), 3),
        "texts": lambda: pa.array([random.choice(list("abcdef"), 3).tolist() for _ in range(4000)]),
    }[kind]
    tables = {n: pa.table({"t": np.arange(4000), "i": np.arange(4000), "v": make()}) for n in "ab"}
    a, b = streams((20, 20))
    score = wj.l1(a["v"], b["v"]) if kind == "vectors" else wj.overlap(a["v"], b["v"])
    on = abs(a["i"] - b["i"]) <= 9
    query = wj.join(a, b, on=on, select=[a["i"], b["i"], score.alias("score")])
    expected = found_in(query.run(tables))
    assert len(expected) > 50_000
    with query.open(schemas={name: rows.schema for name, rows in tables.items()}) as session:
        parts = []
        for first, last in ((0, 2000), (2000, 4000)):
            parts += [session.push(n, tables[n][first:last]) for n in "ab"]
    assert found_in(pa.concat_tables(parts)) == expected


@pytest.mark.parametrize("other", [False, True])
def test_results_that_wait_for_nearer_partners_keep_their_scores(other: bool) -> None:
    random = np.random.default_rng(5)
    tables = {name: rows_of_all(random, 300) for name in "ab"}
    a, b = streams((12, 12))
    near, far = wj.l2(a["v"], b["v"]), wj.overlap(a["s"], b["s"])
    select = [a["i"], b["i"], (far if other else near).alias("score")]
    query = wj.join(a, b, on=near <= 2.5, nearest=2, select=select)
    expected = found_in(query.run(tables, threads=1))
    assert len(expected) > 300
    assert found_in(query.run(tables, threads=2)) == expected
    for size in (1, 50):
        assert found_in(pushed(query, tables, size, lateness=3)) == expected
    values = {name: rows.to_pylist() for name, rows in tables.items()}
    for i, j, score in expected:
        left, right = values["a"][i], values["b"][j]
        family, column = ("sets", "s") if other else ("vectors", "v")
        name = "overlap" if other else "l2"
        assert score == expected_score(family, name, left[column], right[column])


def test_rows_are_told_apart_before_their_scores_are_taken() -> None:
    random = np.random.default_rng(6)
    rows = rows_of_all(random, 60)
    tables = {"a": rows, "b": rows}
    a, b = streams((12, 12))
    score = wj.l2(a["v"], b["v"])
    select = [a["i"], b["i"], score.alias("score")]
    query = wj.join(a, b, on=score <= 3, exclude_self=True, select=select)
    expected = found_in(query.run(tables))
    assert not any(i == j for i, j, _ in expected)
    schemas = dict.fromkeys(tables, rows.schema)
    counts = histogram(query, schemas, tables)
    plan, _ = place(query, schemas, hosts=2, strategy="atr", histogram=counts, limits=SMALL)
    assert found_in(carry_out(plan, tables, random)) == expected


def test_row_numbers_alone_need_no_scores() -> None:
    random = np.random.default_rng(7)
    tables = {name: rows_of_all(random, 30) for name in "ab"}
    a, b = streams((12, 12))
    select = [a["i"], wj.overlap(a["s"], b["s"]).alias("score")]
    query = wj.join(a, b, on=a["i"] == b["i"], select=select)
    schemas = {name: rows.schema for name, rows in tables.items()}
    bound = query.bind(schemas)
    assert [len(stream.varlen) for stream in bound.spec.streams] == [1, 1]
    assert bound.selected == [["i", "s"], ["s"]]
    bare = bound.without_scores()
    assert (bare.spec.scores, [stream.varlen for stream in bare.spec.streams]) == ((), [(), ()])
    expected = sorted(query.run(tables)["a_i"].to_pylist())
    assert sorted(query.indices(tables)["a"].tolist()) == expected
    assert sorted(query.run(tables)["a_i"].to_pylist()) == expected
    with query.open(schemas=schemas, rows_only=True) as session:
        session.push("a", tables["a"])
        assert sorted(session.push("b", tables["b"])["a"].tolist()) == expected


def test_a_selected_pair_of_lists_names_the_row_that_differs() -> None:
    a, b = streams((5, 5))
    rows = pa.table({"t": [1, 2], "i": [[1], [1, 2]], "w": [[1.0], [2.0]]})
    score = wj.inner_product((a["i"], a["w"]), (b["i"], b["w"]))
    query = wj.join(a, b, on=a["t"] == b["t"], select=[score.alias("score")])
    with pytest.raises(wj.DataError, match=r"stream 'a', row 1: `a\[\"i\"\]` has 2 items but"):
        query.run({"a": rows, "b": rows})
