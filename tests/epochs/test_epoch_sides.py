"""Rows without partners from joins cut into epochs: what the definition says, when it says so."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
import windjoin.testing
from hypothesis import given, settings
from hypothesis import strategies as st
from windjoin.arrow.plan import Limits
from windjoin.epochs import deciding
from windjoin.epochs.planning import job_of
from windjoin.epochs.requested import COMBINED, SEMI, requested_by
from windjoin.kernels.pairwise import common_key

from tests.api import build, schemas
from tests.cases import ROW, Case
from tests.effort import examples
from tests.epochs.cluster import Cluster
from tests.epochs.test_epochs import anyhow, borders, not_late, ticks
from tests.oracle import Results, outcome
from tests.oracle import given as shown
from tests.strategies import outers


def members(case: Case, batches: list[pa.RecordBatch]) -> Results:
    """What came out, by the row numbers that rows carry."""
    found: Results = Counter()
    for batch in batches:
        columns = [
            [
                -1 if row is None else row
                for row in batch.column(f"{case.names[s]}_{ROW}").to_pylist()
            ]
            for s in shown(case.query)
        ]
        found.update(zip(*columns, strict=True))
    return found


ONLY_ADAPTIVE = ("ctr", "psp")


def strategies_for(query: Any, case: Case) -> list[str]:
    """Those that can tell what is asked."""
    own, kept, asked = requested_by(query, schemas(case), Limits())
    assert asked is not None
    known = ["auto", "atr", "single"]
    if asked.form not in (SEMI, COMBINED):
        known += ["ctr", "psp"]
    if asked.form != COMBINED and common_key(own.bind(kept).spec):
        known.append("groups")
    return known


@settings(max_examples=examples(15))
@given(data=st.data(), case=outers(most=3), seed=st.integers(0, 2**32), small=st.booleans())
def test_epochs_give_out_what_has_no_partner(data: Any, case: Case, seed: int, small: bool) -> None:
    """All of it once the streams have ended, and none of it before it is final."""
    query, draw = build(case), data.draw
    tables = case.tables()
    epochs = draw(st.integers(1, 6))
    shares = st.lists(st.floats(0, 1), min_size=epochs - 1, max_size=epochs - 1)
    ends = borders(case, [draw(shares) for _ in case.streams])
    lateness = draw(st.sampled_from([0, 2, 30, 10**12]))
    adaptive = draw(st.booleans())  # as `windjoin.spark.start` does it, and not `stream`
    known = [name for name in strategies_for(query, case) if adaptive or name not in ONLY_ADAPTIVE]
    options: dict[str, Any] = {"lateness": ticks(case, lateness), "small": small, "idle": "1s"}
    options["warm_bytes"] = draw(st.sampled_from([0, 10**9]))
    options["memory"] = draw(st.sampled_from([None, None, 500, 4_000]))
    still = draw(st.sampled_from([None, None, None, 0, 1]))
    if still is not None:
        options["static"] = {still: tables[case.names[still]]}
        ends[still] = ends[still][-1:] * epochs
    expected = outcome(case.query, not_late(case, ends, lateness).rows())
    found: Results = Counter()
    with tempfile.TemporaryDirectory() as root:
        cluster = Cluster(query, schemas(case), root, seed)
        starts = 0
        for epoch in range(epochs):
            broken = draw(st.sampled_from([None, None, None, 0, 1]))
            for until in [None] if broken is None else [broken, None]:
                if epoch == 0 or until is not None or draw(st.integers(0, 2)) == 0:
                    starts += 1
                    slots = draw(st.integers(1, 4))
                    strategy = draw(st.sampled_from(known))
                    cluster.start(run=f"run{starts}", slots=slots, strategy=strategy, **options)
                elif broken is not None:
                    starts += 1
                    cluster.run = f"run{starts}"
                firsts = [0 if not epoch else stops[epoch - 1] for stops in ends]
                rows: dict[str, Any] = {
                    name: tables[name].slice(a, stops[epoch] - a)
                    for name, a, stops in zip(case.names, firsts, ends, strict=True)
                }
                if still is not None:
                    rows[case.names[still]] = None
                again = draw(st.sets(st.integers(0, 3)))
                router = draw(st.sampled_from([None, None, anyhow(draw(st.randoms()))]))
                out = cluster.epoch(
                    epoch, rows, until=until, again=sorted(again), adopt=adaptive,
                    router=router if adaptive else None,
                )  # fmt: skip
            found += members(case, out)
            assert found <= expected, found - expected
        found += members(case, cluster.flush(epochs))
        assert Path(root).is_dir()
    assert found == expected, (found - expected, expected - found)


@pytest.mark.parametrize("taken", [0, 1])
@pytest.mark.parametrize("strategies", [("single", "atr"), ("atr", "single")])
def test_an_epoch_that_is_done_again_by_another_strategy_gives_the_same(
    strategies: tuple[str, str], taken: int, tmp_path: Path
) -> None:
    """Also rows without partners, whichever of the two times a sink has taken."""
    a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    query = wj.join(a, b, on=abs(a["x"] - b["x"]) <= 1, how="full")
    times = pa.array([1, 2, 40, 41], pa.int64())
    x = {"a": [1, 9, 1, 9], "b": [1, 5, 2, 5]}
    tables = {name: pa.table({"t": times, "x": pa.array(x[name], pa.int64())}) for name in "ab"}
    cluster = Cluster(query, {n: t.schema for n, t in tables.items()}, str(tmp_path), 1)
    outs = []
    for strategy in strategies:
        cluster.start(run=strategy, slots=2, strategy=strategy, static={0: tables["a"]})
        outs.append(cluster.epoch(0, {"a": None, "b": tables["b"].slice(0, 2)}))
    found = [*outs[taken], *cluster.epoch(1, {"a": None, "b": tables["b"].slice(2)})]
    rows = Counter(tuple(row.values()) for batch in [*found, *cluster.flush(2)]
                   for row in batch.to_pylist())  # fmt: skip
    assert rows == Counter(tuple(row.values()) for row in query.run(tables).to_pylist())


HOWS = ["inner", "left", "right", "full", "semi", "anti"]
some = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9)), max_size=12)


@settings(max_examples=examples(8))
@given(data=st.data(), left=some, right=some, how=st.sampled_from(HOWS), most=st.integers(1, 2))
def test_epochs_give_the_nearest_partners(
    data: Any, left: Any, right: Any, how: Any, most: int
) -> None:
    """Those of a batch join, of rows in any order; with one slot or keys in several."""
    a, b = (wj.stream(name, time="t", window=3) for name in "ab")
    keyed = data.draw(st.booleans())
    direction = data.draw(st.sampled_from([None, None, "backward", "forward", "nearest"]))
    on = [*([] if direction else [wj.l1(a["v"], b["v"]) <= 5])]
    on += [a["k"] == b["k"]] if keyed else []
    query = wj.join(a, b, on=on, nearest=most, how=how, direction=direction)
    tables = {name: vectors(rows) for name, rows in (("a", left), ("b", right))}
    epochs = data.draw(st.integers(1, 4))
    cuts = {
        name: [0, *sorted(data.draw(st.integers(0, len(t))) for _ in range(epochs - 1)), len(t)]
        for name, t in tables.items()
    }
    found: list[pa.RecordBatch] = []
    with tempfile.TemporaryDirectory() as root:
        cluster = Cluster(query, {name: table.schema for name, table in tables.items()}, root, 5)
        for epoch in range(epochs):
            if epoch == 0 or data.draw(st.booleans()):
                slots = data.draw(st.integers(1, 3))
                cluster.start(run=f"run{epoch}", slots=slots, lateness=20)
            rows = {n: t.slice(cuts[n][epoch], cuts[n][epoch + 1] - cuts[n][epoch])
                    for n, t in tables.items()}  # fmt: skip
            found += cluster.epoch(epoch, rows)
        found += cluster.flush(epochs)
        schema = cluster.job.result.schema
    got = pa.Table.from_batches(found, schema)
    wj.testing.assert_same_results(got, wj.testing.expected(query, tables))


def vectors(rows: list[tuple[int, int]]) -> pa.Table:
    values = pa.array([[float(v)] for _, v in rows], pa.list_(pa.float64()))
    keys = pa.array([v % 2 for _, v in rows], pa.int64())
    return pa.table({"t": pa.array([t for t, _ in rows], pa.int64()), "v": values, "k": keys})


A, B, C = (wj.stream(name, time="t", window=5) for name in "abc")
SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64())])


def job(query: wj.Query, root: Path, schema: pa.Schema = SCHEMA, **options: Any) -> Any:
    return job_of(query, dict.fromkeys(query.names, schema), str(root), slots=2, **options)


@pytest.mark.parametrize(
    ("query", "strategy", "told"),
    [
        (wj.join(A, B, on=A["k"] == B["k"], how="semi"), "ctr", "none of them knows which comes"),
        (
            wj.join(A, B, C, on=[A["k"] == B["k"], B["k"] == C["k"]], missing=[C]),
            "groups",
            "told by several joins, which need not share a key",
        ),
        (wj.join(A, B, on=wj.l1(A["v"], B["v"]) <= 1, nearest=1), "atr", "have to be in one slot"),
    ],
)
def test_what_slots_cannot_tell_is_refused(
    tmp_path: Path, query: wj.Query, strategy: str, told: str
) -> None:
    schema = SCHEMA.append(pa.field("v", pa.list_(pa.float64())))
    with pytest.raises(wj.QueryError, match=told):
        job(query, tmp_path, schema, strategy=strategy)


def test_the_name_of_identities_is_kept_free(tmp_path: Path) -> None:
    schema = SCHEMA.append(pa.field("windjoin_id", pa.int64()))
    with pytest.raises(wj.SchemaError, match="stream 'a': column 'windjoin_id' is a name that"):
        job(wj.join(A, B, on=A["k"] == B["k"], how="left"), tmp_path, schema)


@pytest.mark.parametrize(
    ("how", "master", "kind"), [("left", 0, "atr"), ("right", 1, "atr"), ("anti", 0, "atr")]
)
def test_rows_that_are_asked_about_are_not_copied(
    tmp_path: Path, how: Any, master: int, kind: str
) -> None:
    made = job(wj.join(A, B, on=A["k"] < B["k"], how=how), tmp_path)
    assert (made.units.kind, made.units.master) == (kind, master)


def test_another_how_is_refused_by_the_log(tmp_path: Path) -> None:
    rows = {n: pa.table({"t": [1], "k": [1]}) for n in "ab"}
    schemas_ = dict.fromkeys("ab", SCHEMA)
    made = Cluster(wj.join(A, B, on=A["k"] == B["k"], how="left"), schemas_, str(tmp_path), 1)
    made.epoch(0, rows)
    other = Cluster(wj.join(A, B, on=A["k"] == B["k"], how="full"), schemas_, str(tmp_path), 1)
    other.run = "another"
    with pytest.raises(wj.QueryError, match="keep was a, now a, b"):
        other.epoch(1, rows)
    with pytest.raises(wj.QueryError, match="keep was a, now a, b"):
        other.epoch(0, rows)  # also the first epoch, done again


def test_batch_rows_are_the_same_in_any_order(tmp_path: Path) -> None:
    """Also rows that differ in what has no order, or in a sign of zero."""
    rows = pa.table(
        {
            "t": [1, 1, 1, 1, 2],
            "k": [1, 1, 1, 1, None],
            ".x": pa.array([0.0, -0.0, float("nan"), float("nan"), 1.0]),
            "tags": [["b"], ["a"], ["c"], None, []],
        }
    )
    query = wj.join(A, B, on=A["k"] == B["k"])
    folders = set()
    for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]):
        cluster = Cluster(query, {"a": rows.schema, "b": SCHEMA}, str(tmp_path), 1)
        cluster.start(slots=1, static={0: rows.take(pa.array(order))})
        folders.add(cluster.job.static.folder)
    assert len(folders) == 1


def test_an_epoch_without_its_marks_is_refused(tmp_path: Path) -> None:
    rows = {n: pa.table({"t": [1], "k": [1]}) for n in "ab"}
    query = wj.join(A, B, on=A["k"] == B["k"], how="left")
    made = Cluster(query, dict.fromkeys("ab", SCHEMA), str(tmp_path), 1)
    made.epoch(0, rows)
    Path(made.job.log.path("0000000000", "run0", "0.marks")).unlink()
    with pytest.raises(wj.LogError, match=r"slots '0\.marks' left no file"):
        made.epoch(1, rows)


def test_marks_of_many_epochs_are_merged(tmp_path: Path, monkeypatch: Any) -> None:
    """The log stays as long as the window, and what comes out is the same."""
    monkeypatch.setattr(deciding, "MOST_FILES", 5)
    a, b, c = (wj.stream(name, time="t", window=90) for name in "abc")
    on = [abs(a["k"] - b["k"]) <= 1, abs(b["k"] - c["k"]) <= 1]
    for number, asked in enumerate([{"keep": ["a", "b"]}, {"missing": [c]}, {"exists": [c]}]):
        query = wj.join(a, b, c, on=on, **asked)  # type: ignore[arg-type]
        chance = np.random.default_rng(number)
        made = Cluster(query, dict.fromkeys("abc", SCHEMA), str(tmp_path / str(number)), 1)
        made.start(slots=3)
        every: dict[str, list[pa.Table]] = {"a": [], "b": [], "c": []}
        found: list[pa.RecordBatch] = []
        held = []
        for epoch in range(40):
            given_rows = {
                name: pa.table({"t": 5 * epoch + np.arange(3), "k": chance.integers(0, 40, 3)})
                for name in "abc"
            }
            found += made.epoch(epoch, given_rows)
            held.append(len(deciding.decide(made.job, epoch, made.run).window))
            for name, rows in given_rows.items():
                every[name].append(rows)
        found += made.flush(40)
        got = pa.Table.from_batches(found, made.job.result.schema)
        tables = {name: pa.concat_tables(parts) for name, parts in every.items()}
        wj.testing.assert_same_results(got, query.run(tables))
        assert max(held) <= 12


@pytest.mark.parametrize(("strategy", "epoch"), [("groups", 1), ("atr", 1), ("ctr", 2)])
def test_rows_that_come_when_nothing_can_meet_them_leave(
    tmp_path: Path, strategy: str, epoch: int
) -> None:
    """At once where one slot knows all of them, else with the next epoch."""
    query = wj.join(A, B, on=A["k"] == B["k"], how="left")
    made = Cluster(query, dict.fromkeys("ab", SCHEMA), str(tmp_path), 1)
    made.start(slots=2, strategy=strategy)
    none = pa.table({"t": [], "k": []}, schema=SCHEMA)
    made.epoch(0, {"a": none, "b": pa.table({"t": [100], "k": [1]})})
    found = [
        made.epoch(number, {"a": rows, "b": none})
        for number, rows in enumerate([pa.table({"t": [0], "k": [1]}), none], start=1)
    ]
    times = [[row["a_t"] for batch in one for row in batch.to_pylist()] for one in found]
    assert times == ([[0], []] if epoch == 1 else [[], [0]])
