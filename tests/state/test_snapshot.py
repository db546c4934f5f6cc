"""Sessions that are saved and restored, at any moment, give what those give that are not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given, settings
from hypothesis import strategies as st
from windjoin.state.snapshot import MANIFEST
from windjoin.state.unit import Unit, UnitWriter, checksum
from windjoin.testing import check

from tests.api import build, open_session, schemas, table_rows, user_time
from tests.cases import Case, SessionCase
from tests.compare import assert_same_results
from tests.effort import examples
from tests.oracle import Results, replay
from tests.similarity_paths import streams, table
from tests.strategies import outers, sessions


def total(results: list[Results]) -> Results:
    return sum(results, Counter())


def run_with_saves(
    session_case: SessionCase, session: Any, saves: set[int], folder: str
) -> tuple[list[Results], Any]:
    """Results of every step; after some of them the session is saved, and another goes on."""
    case, results = session_case.case, []
    query = build(case)
    for number, step in enumerate(session_case.steps):
        stream = case.streams[step.stream]
        if step.time is None:
            found = session.push(stream.name, stream.table(step.start, step.stop))
            results.append(Counter(table_rows(case.names, found) if found.num_rows else []))
        else:
            session.advance(stream.name, user_time(session_case, step.stream, step.time))
            results.append(Counter())
        if number in saves:
            session.save(folder, position=number)
            metrics, rejected = session.metrics, session.rejected
            session.abandon()
            session = wj.restore(query, folder)
            assert session.position == number
            assert without_sizes(session.metrics) == without_sizes(metrics)
            # as text: a NaN is no other NaN
            assert {n: str(t.to_pylist()) for n, t in session.rejected.items()} == {
                n: str(t.to_pylist()) for n, t in rejected.items()
            }
    return results, session


def without_sizes(metrics: Any) -> Any:
    """Counters, without what depends on how much room was once needed."""
    if not isinstance(metrics, dict):
        return metrics
    left_out = ("state_bytes", "held_bytes")
    return {k: without_sizes(v) for k, v in metrics.items() if k not in left_out}


@pytest.mark.parametrize("learned", [True, False])
@given(session_case=sessions(), saves=st.sets(st.integers(0, 12), max_size=4))
def test_a_restored_session_goes_on_where_the_saved_one_was(
    learned: bool, session_case: SessionCase, saves: set[int]
) -> None:
    outcome = replay(session_case.case.query, session_case.events(), session_case.lateness)
    with tempfile.TemporaryDirectory() as folder:
        opened = open_session(session_case, with_schemas=learned)
        results, session = run_with_saves(session_case, opened, saves, folder)
    if learned:
        for number, (got, owed) in enumerate(zip(results, outcome.results, strict=True)):
            assert_same_results(got.elements(), owed, f"step {number}")
    else:
        assert_same_results(total(results).elements(), total(outcome.results))
    assert session.close().num_rows == 0


@pytest.mark.parametrize("strategy", ["atr", "ctr", "psp", "auto"])
@settings(max_examples=examples(10))
@given(session_case=sessions(most=3), saves=st.sets(st.integers(0, 12), max_size=3))
def test_sessions_on_hosts_are_restored(
    strategy: str, session_case: SessionCase, saves: set[int]
) -> None:
    outcome = replay(session_case.case.query, session_case.events(), session_case.lateness)
    case, query = session_case.case, build(session_case.case)
    lateness = eval(session_case.lateness_source, {"datetime": __import__("datetime")})
    found: Results = Counter()
    session = query.open(
        schemas(case), lateness=lateness, on_late="keep", hosts=2, strategy=strategy
    )
    with tempfile.TemporaryDirectory() as folder:
        for number, step in enumerate(session_case.steps):
            stream = case.streams[step.stream]
            if step.time is None:
                got = session.push(stream.name, stream.table(step.start, step.stop))
                found += Counter(table_rows(case.names, got))
            else:
                session.advance(stream.name, user_time(session_case, step.stream, step.time))
            if number in saves:
                session.save(folder)
                session.abandon()
                session = wj.restore(query, folder)
        found += Counter(table_rows(case.names, session.close()))
    assert_same_results(found.elements(), total(outcome.results))


TEXTS, PLANE = pa.list_(pa.string()), pa.list_(pa.float32(), 2)
FAMILIES = [
    ("sets", "jaccard", st.lists(st.integers(-3, 3), max_size=4), pa.list_(pa.int64())),
    ("sets", "overlap", st.lists(st.sampled_from(["a", "", "ü"]), max_size=3), TEXTS),
    ("vectors", "l2", st.lists(st.integers(-2, 2), min_size=2, max_size=2), pa.list_(pa.float64())),
    ("vectors", "l1", st.lists(st.integers(-2, 2), min_size=2, max_size=2), PLANE),
    ("bytes", "hamming", st.binary(min_size=2, max_size=2), pa.binary()),
]  # fmt: skip


@pytest.mark.parametrize(("family", "name", "values", "arrow"), FAMILIES)
@pytest.mark.parametrize("nearest", [None, 2])
@settings(max_examples=examples(10))
@given(data=st.data())
def test_wide_columns_and_scores_are_restored(
    family: str, name: str, values: Any, arrow: pa.DataType, nearest: int | None, data: Any
) -> None:
    rows = st.lists(st.tuples(st.integers(0, 12), st.none() | values), max_size=8)
    left, right = data.draw(rows), data.draw(rows)
    saves = data.draw(st.sets(st.integers(0, 15), max_size=4))
    a, b = streams((9, 5))
    measure = getattr(wj, name)(a["v"], b["v"])
    selected = [a["v"].alias("a"), b["v"].alias("b"), measure.alias("m")]
    query = wj.join(a, b, on=oracle_condition(family, measure), select=selected, nearest=nearest)
    tables = {"a": table(left, arrow), "b": table(right, arrow)}
    assert played(query, tables, saves) == played(query, tables, set())


def oracle_condition(family: str, measure: Any) -> Any:
    return measure >= 0.2 if family == "sets" else measure <= 2


def played(query: Any, tables: dict[str, pa.Table], saves: set[int]) -> list[str]:
    """All results of rows pushed one by one in turn; saved and restored after some of them."""
    found: list[str] = []
    session = query.open({n: t.schema for n, t in tables.items()}, lateness=99)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(2 * max(t.num_rows for t in tables.values())):
            name = "ab"[number % 2]
            found += map(str, session.push(name, tables[name].slice(number // 2, 1)).to_pylist())
            if number in saves:
                session.save(folder)
                session.abandon()
                session = wj.restore(query, folder)
        found += map(str, session.close().to_pylist())
    return sorted(found)


def test_weighted_sets_keep_their_norms_to_the_last_bit(tmp_path: Path) -> None:
    items = [[3, 1, 3, 2], [2, 9], [1], [7, 2, 1]]
    weights = [[0.1, 0.7, 0.3, 1e-9], [0.9, 0.1], [1.5], [0.2, 0.3, 0.77]]
    data = pa.table({"t": [1, 2, 3, 4], "i": items, "w": weights})
    a, b = streams((9, 9))
    measure = wj.cosine((a["i"], a["w"]), (b["i"], b["w"]))
    query = wj.join(a, b, on=measure > 0, select=[a["t"].alias("x"), measure.alias("m")])
    whole = query.open({"a": data.schema, "b": data.schema})
    whole.push("a", data)
    whole.save(tmp_path)
    again = wj.restore(query, tmp_path)
    assert again.push("b", data).to_pylist() == whole.push("b", data).to_pylist()


COLUMNS = {
    "dictionary": pa.array(["x", "y", None, "x"]).dictionary_encode(),
    "struct": pa.array([{"p": 1}, {"p": None}, None, {"p": 4}]),
    "texts": pa.array([["a", None], [], None, ["b"]]),
    "text": pa.array(["", None, "abc", "ä" * 50]),
    "bits": pa.array([True, None, False, True]),
    "items": pa.array([[1, None], None, [], [3]]),
    "fixed": pa.array([[1, None], None, [5, 6], [3, 4]], pa.list_(pa.int16(), 2)),
    "null": pa.nulls(4),
    "decimal": pa.array([1, None, 3, 4]).cast(pa.decimal128(30, 2)),
    "zoned": pa.array([1, None, 3, 4], pa.timestamp("us", "Europe/Berlin")),
}


@pytest.mark.parametrize("rows_at_a_time", [1, 3])
def test_columns_of_any_type_are_restored(
    tmp_path: Path, rows_at_a_time: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windjoin.state.saving.AT_A_TIME", rows_at_a_time)
    data = pa.table({"t": [1, 2, 3, 4], "k": ["u", "v", "u", "w"], **COLUMNS})
    a, b = streams((9, 9))
    query = wj.join(a, b, on=a["k"] == b["k"])
    whole = query.open()
    whole.push("a", data)
    whole.push("b", data.slice(0, 1))
    whole.save(tmp_path)
    again = wj.restore(query, tmp_path)
    assert again.push("b", data).to_pylist() == whole.push("b", data).to_pylist()


def pairs(session: Any, name: str, rows: dict[str, Any]) -> list[tuple[int, int]]:
    found = session.push(name, rows)
    return sorted(zip(found["a"].tolist(), found["b"].tolist(), strict=True))


def test_arrival_numbers_go_on_and_rows_of_one_table_stay_apart(tmp_path: Path) -> None:
    a, b = streams((5, 5))
    query = wj.join(a, b, on=a["k"] == b["k"], exclude_self=True)
    first, second = ({"t": np.array([t, t + 1]), "k": np.array([7, 7])} for t in (1, 9))
    session = query.open({n: pa.schema([("t", pa.int64()), ("k", pa.int64())]) for n in "ab"},
                         rows_only=True)  # fmt: skip
    for name in "ab":
        session.push(name, first)
    session.push("a", second)
    session.save(tmp_path)
    expected = pairs(session, "b", second)
    again = wj.restore(query, tmp_path)
    assert again.rows_only
    assert pairs(again, "b", second) == expected == [(2, 3), (3, 2)]
    assert again.sequence == session.sequence == 4


def numbers(count: int, first: int = 0) -> dict[str, Any]:
    at = np.arange(first, first + count)
    return {"t": at, "k": at % 1000, "x": at * 0.5, "y": at, "z": at}


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


@given(outers(most=3), st.integers(0, 99))
def test_rows_without_partners_are_restored(case: Case, seed: int) -> None:
    check(build(case), case.tables(), modes="saved", seed=seed)


def test_a_row_that_left_before_earlier_ones_does_not_leave_again(tmp_path: Path) -> None:
    a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"], how="left")
    with query.open(lateness=100) as session:
        session.push("a", {"t": [20, 3], "k": [1, 2]})
        alone = session.push("b", {"t": [110], "k": [3]})  # nothing before 10 comes
        session.save(tmp_path)
    assert alone["a_t"].to_pylist() == [3]
    with wj.restore(query, tmp_path) as session:
        assert session.close()["a_t"].to_pylist() == [20]


def test_a_save_writes_what_is_new(tmp_path: Path) -> None:
    a, b = streams((10**6, 10**6))
    query = wj.join(a, b, on=a["k"] == b["k"], select=[a["x"].alias("x"), b["t"].alias("t")])
    session = query.open()
    session.push("b", numbers(10))
    session.push("a", numbers(200_000))
    session.save(tmp_path)
    before = {file: file.stat() for file in tmp_path.glob("rows-*")}
    session.push("a", numbers(2_000, 200_000))
    session.save(tmp_path)
    after = {file: file.stat() for file in tmp_path.glob("rows-*")}
    assert all(after[file].st_mtime_ns == stat.st_mtime_ns for file, stat in before.items())
    whole = sum(stat.st_size for stat in before.values())
    assert sum(stat.st_size for stat in after.values()) - whole <= 0.03 * whole
    for turn in range(40):  # units that are small are written again together
        session.push("a", numbers(10, 300_000 + 10 * turn))
        session.save(tmp_path)
    assert len(list(tmp_path.glob("rows-*"))) < 10
    again, more = wj.restore(query, tmp_path), numbers(50, 10)
    assert again.push("b", more).num_rows == session.push("b", more).num_rows > 50


def test_units_whose_rows_have_gone_go(tmp_path: Path) -> None:
    a, b = streams((10, 10))
    query = wj.join(a, b, on=a["k"] == b["k"])
    session = query.open()
    for first in range(0, 4000, 100):
        for name in "ab":
            session.push(name, numbers(100, first))
        session.save(tmp_path)
    assert size_of(tmp_path) < 200_000
    again = wj.restore(query, tmp_path)
    assert again.metrics["results"] == session.metrics["results"]


def test_another_session_does_not_add_to_a_snapshot_that_is_not_its_own(tmp_path: Path) -> None:
    a, b = streams((99, 99))
    query = wj.join(a, b, on=a["k"] == b["k"])
    one, other = query.open(), query.open()
    for session, first in ((one, 0), (other, 50)):
        session.push("a", numbers(5, first))
        session.push("b", numbers(1, first))
        session.save(tmp_path)
    one.save(tmp_path)
    again = wj.restore(query, tmp_path)
    assert again.push("b", numbers(9)).num_rows == 5


def test_results_carry_the_number_of_their_push(tmp_path: Path) -> None:
    a, b = streams((99, 99))
    session = wj.join(a, b, on=a["k"] == b["k"]).open()
    session.push("a", numbers(5))
    found = session.push("b", numbers(2))
    assert found.schema.metadata == {b"windjoin.push": b"2"}
    assert session.sequence == 2
    with pytest.raises(wj.SchemaError):
        session.push("b", {"t": [1]})
    assert session.sequence == 2


POSITIONS = [
    None, 3, {"topic": {0: 17, 1: 4}}, [1, (2, b"x")], {"at": datetime(2024, 1, 2)},
    {"d": timedelta(seconds=2.5)}, {"$": 1}, {"f": 1.5, "t": True},
]  # fmt: skip


@pytest.mark.parametrize("position", POSITIONS)
def test_positions_come_back_as_they_were(tmp_path: Path, position: Any) -> None:
    a, b = streams((9, 9))
    query = wj.join(a, b, on=a["k"] == b["k"])
    query.open().save(tmp_path, position=position)
    assert wj.restore(query, tmp_path).position == position


def test_options_are_restored(tmp_path: Path) -> None:
    a, b = streams((9, 9))
    query = wj.join(a, b, on=a["k"] == b["k"])
    query.open(lateness=3, on_late="raise", idle="20s", keep_rejected=7).save(tmp_path)
    options = wj.restore(query, tmp_path)._options
    assert (options.lateness, options.on_late, options.idle) == (3, "raise", "20s")
    assert options.keep_rejected == 7


# -- refusals --------------------------------------------------------------------------------------


def saved(folder: Path, **options: Any) -> Any:
    a, b = streams((9, 9))
    query = wj.join(a, b, on=a["k"] == b["k"], **options)
    session = query.open()
    session.push("a", numbers(5))
    session.push("b", numbers(5))
    session.save(folder)
    return query


def refusal(query: Any, folder: Any) -> str:
    with pytest.raises(wj.StateError) as caught:
        wj.restore(query, folder)
    return str(caught.value)


def test_another_query_is_refused_and_what_differs_is_said(tmp_path: Path) -> None:
    saved(tmp_path)
    a, b = streams((9, 9))
    c = wj.stream("b", time="t", window=8)
    assert "closed= had 'both' there and has 'right' in this query" in refusal(
        wj.join(a, b, on=a["k"] == b["k"], closed="right"), tmp_path
    )
    assert """on= had 'a["k"] == b["k"]' there and has 'a["k"] == b["y"]' in""" in refusal(
        wj.join(a, b, on=a["k"] == b["y"]), tmp_path
    )
    assert "window=9)\" there and has \"stream('b', time='t', window=8)" in refusal(
        wj.join(a, c, on=a["k"] == c["k"]), tmp_path
    )
    assert "select= had None there" in refusal(
        wj.join(a, b, on=a["k"] == b["k"], select=a["k"]), tmp_path
    )


def test_another_function_of_the_same_name_is_refused(tmp_path: Path) -> None:
    a, b = streams((9, 9))

    def query(factor: float) -> Any:
        return wj.join(a, b, on=wj.udf(lambda x, y: x < factor * y, a["x"], b["x"]))

    query(1.0).open().save(tmp_path)
    wj.restore(query(1.0), tmp_path)
    assert "a function that a condition calls computes something else" in refusal(
        query(2.0), tmp_path
    )


def test_a_folder_without_a_snapshot_is_refused(tmp_path: Path) -> None:
    query = saved(tmp_path / "there")
    assert f"there is no snapshot in {str(tmp_path)!r}: no file 'snapshot.wj'" in refusal(
        query, tmp_path
    )
    assert "3 (int) is not the path of a folder" in refusal(query, 3)


@pytest.mark.parametrize("pattern", [MANIFEST, "rows-*"])
def test_corrupt_and_truncated_files_are_found_and_named(tmp_path: Path, pattern: str) -> None:
    query = saved(tmp_path)
    (file,) = tmp_path.glob(pattern)
    whole = file.read_bytes()
    unit = Unit.map(file)
    last = max(one.offset + one.length for one in unit.sections.values())
    for at in range(0, len(whole), 97):
        inside = any(s.offset <= at < s.offset + s.length for s in unit.sections.values())
        if not inside and 12 <= at < last + 64:  # nobody looks at zeros between sections
            continue
        data = bytearray(whole)
        data[at] ^= 0x10
        file.write_bytes(data)
        assert file.name in refusal(query, tmp_path)
    for length in (0, 10, 64, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        assert file.name in refusal(query, tmp_path)
    file.unlink()
    assert file.name in refusal(query, tmp_path)


def test_what_is_wrong_with_a_file_is_said(tmp_path: Path) -> None:
    query = saved(tmp_path)
    (file,) = tmp_path.glob("rows-*")
    whole = file.read_bytes()
    older = whole[:8] + (0).to_bytes(4, "little") + whole[12:]
    for data, why in (
        (whole[:-1], "is truncated"),
        (b"x" + whole[1:], "is not one: it does not begin as they do"),
        (older, "is of format version 0; this windjoin reads versions 1 and 2"),
        (whole[:-25] + b"?" + whole[-24:], "is corrupt: the checksum of its footer"),
        (whole[:300] + b"?" + whole[301:], "is corrupt: the checksum of section '0'"),
    ):
        file.write_bytes(data)
        assert why in refusal(query, tmp_path)
    file.unlink()
    assert "cannot be read: No such file" in refusal(query, tmp_path)
    (tmp_path / MANIFEST).write_bytes(whole)
    assert "is not a snapshot but 'rows'" in refusal(query, tmp_path)


def keyed(unit: str | None, key: Any, missing: bool) -> tuple[Any, pa.Table]:
    """Two streams with times of a unit, and keys of which some are missing."""
    window: Any = 50 if unit is None else timedelta(seconds=50)
    a, b = (wj.stream(name, time="t", window=window) for name in "ab")
    times = pa.array(np.arange(40))
    if unit is not None:
        times = times.cast(pa.timestamp(unit))
    keys = pa.array(np.arange(40) % 7, mask=np.arange(40) % 5 == 0 if missing else None)
    return wj.join(a, b, on=a["k"] == b["k"]), pa.table({"t": times, "k": keys.cast(key)})


@pytest.mark.parametrize("later", [False, True], ids=["whole", "second"])
@pytest.mark.parametrize(
    ("unit", "key", "missing", "left_out"),
    [
        (None, pa.int64(), False, {"time", "key.0"}),
        (None, pa.int64(), True, {"key.0"}),  # rows without a key match nothing: their time says so
        (None, pa.int32(), False, {"time"}),
        (None, pa.string(), False, {"time"}),
        ("us", pa.int64(), False, {"time", "key.0"}),
        ("s", pa.int64(), False, {"time", "key.0"}),
    ],
)
@pytest.mark.parametrize("older", [False, True], ids=["version 2", "version 1"])
def test_what_a_column_has_is_not_written_twice(
    unit: str | None, key: Any, missing: bool, left_out: set[str], older: bool, later: bool,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    query, table = keyed(unit, key, missing)
    if older:
        monkeypatch.setattr("windjoin.state.saving._same", lambda *_: {})
    session = query.open({"a": table.schema, "b": table.schema})
    session.push("a", table.slice(0, 30))
    session.save(tmp_path)
    monkeypatch.undo()
    if later:  # beside a file of the older version, too
        session.push("a", table.slice(30))
        session.save(tmp_path)
    wanted = {"time", "key.0", "column.t", "column.k"}
    for file in tmp_path.glob("rows-*"):
        version = file.read_bytes()[8]
        assert version == 2 or (older and file.name == min(p.name for p in tmp_path.glob("rows-*")))
        names = set(Unit.map(file).table("0").column_names)
        assert names == (wanted - left_out if version == 2 else wanted)
    restored = wj.restore(query, tmp_path)
    assert restored.push("b", table).sort_by("a_t") == session.push("b", table).sort_by("a_t")


def test_saving_is_refused_where_it_cannot_be(tmp_path: Path) -> None:
    a, b = streams((9, 9))
    session = wj.join(a, b, on=a["k"] == b["k"]).open()
    (tmp_path / "file").write_text("")
    with pytest.raises(wj.StateError, match=r"no folder .* can be made"):
        session.save(tmp_path / "file")
    with pytest.raises(wj.StateError, match=r"position: \{1\} \(set\) cannot be saved; give"):
        session.save(tmp_path, position={1})
    (tmp_path / "snapshot.wj.new").mkdir()
    with pytest.raises(wj.StateError, match="cannot be written"):
        session.save(tmp_path)
    session.push("a", numbers(3))  # it goes on
    session.close()
    with pytest.raises(wj.SessionError, match="is closed"):
        session.save(tmp_path)


def test_checksums_are_xxh64() -> None:
    assert [hex(checksum(data)) for data in (b"", b"a", b"abc", bytes(range(101)))] == [
        "0xef46db3751d8e999",
        "0xd24ec4f1a98c6e5b",
        "0x44bc2cf5ad770999",
        "0xe99038495f85381e",
    ]


def test_units_are_mapped_where_they_lie(tmp_path: Path) -> None:
    writer = UnitWriter(tmp_path / "unit", "rows", {})
    rows = pa.table({"time": np.arange(100_000)})
    with writer.section("0", rows.schema) as section:
        section.write_table(rows)
    writer.close()
    before = pa.total_allocated_bytes()
    found = Unit.map(tmp_path / "unit").table("0")
    assert found.equals(rows)
    assert pa.total_allocated_bytes() - before < 10_000


# -- kills -----------------------------------------------------------------------------------------

PROGRAM = """
import sys
import numpy as np
import windjoin as wj
folder, log, pushes = sys.argv[1], sys.argv[2], int(sys.argv[3])
a, b = (wj.stream(name, time="t", window=40) for name in "ab")
query = wj.join(a, b, on=a["k"] == b["k"])
try:
    session = wj.restore(query, folder)
except wj.StateError as error:
    assert "there is no snapshot" in str(error), error
    session = query.open()
with open(log, "a") as out:
    for n in range(session.position or 0, pushes):
        at = np.arange(5 * n, 5 * n + 5)
        rows = {"t": at, "k": at * 7919 % 11, "n": at}
        for name in "ab":
            found = session.push(name, rows)
            # all or nothing of a push is in the log, with its number
            if found.num_rows:
                pairs = list(zip(found["a_n"].to_pylist(), found["b_n"].to_pylist()))
                out.write(f"{session.sequence} {pairs}\\n")
                out.flush()
        session.save(folder, position=n + 1)
    print("done", flush=True)
"""


def logged(log: Path) -> list[tuple[int, int]]:
    """Pairs in the log, each push once by its number."""
    pushes: dict[int, str] = {}
    for line in log.read_text().splitlines(keepends=True):
        number, _, found = line.partition(" ")
        if line.endswith("]\n"):
            assert pushes.setdefault(int(number), found) == found
    return [pair for found in pushes.values() for pair in eval(found)]


def killed_again_and_again(folder: Path, kills: int, pushes: int, seed: int) -> None:
    log, random = folder / "log", np.random.default_rng(seed)
    program = [sys.executable, "-c", PROGRAM, str(folder / "snap"), str(log), str(pushes)]
    environment = {**os.environ, "PYTHONPATH": ""}
    for _ in range(kills):
        with subprocess.Popen(program, stdout=subprocess.PIPE, env=environment) as process:
            try:
                process.wait(0.25 + random.random() * 0.5)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        text = log.read_text() if log.exists() else ""
        log.write_text(text[: text.rfind("\n") + 1])  # of a line that was cut nothing counts
    last = subprocess.run(program, capture_output=True, env=environment, text=True)
    assert last.stdout == "done\n", last.stderr
    at = np.arange(5 * pushes)
    keys = at * 7919 % 11
    expected = Counter(
        (i, j)
        for i in at.tolist()
        for j in range(max(0, i - 40), min(len(at), i + 41))
        if keys[i] == keys[j]
    )
    assert_same_results(logged(log), expected)


def test_nothing_is_lost_or_doubled_by_kills(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, kills=4, pushes=400, seed=1)


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(50))
def test_nothing_is_lost_or_doubled_by_a_thousand_kills(tmp_path: Path, seed: int) -> None:
    killed_again_and_again(tmp_path, kills=20, pushes=2000, seed=seed)


def test_an_unfinished_save_is_as_if_it_had_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = streams((99, 99))
    query = wj.join(a, b, on=a["k"] == b["k"])
    session = query.open()
    session.push("b", numbers(1))
    for saved_rows in range(1, 5):
        session.push("a", numbers(1, 1000 * saved_rows))
        if saved_rows % 2:
            session.save(tmp_path)
            continue
        with monkeypatch.context() as patch:

            def fail(*_: Any) -> None:
                raise KeyboardInterrupt

            patch.setattr(os, "replace", fail)
            with pytest.raises(KeyboardInterrupt):
                session.save(tmp_path)
        again = wj.restore(query, tmp_path)
        assert again.metrics["streams"]["a"]["rows_in"] == saved_rows - 1
    session.save(tmp_path)
    assert wj.restore(query, tmp_path).metrics["streams"]["a"]["rows_in"] == 4


@pytest.mark.parametrize("keys", [900, 3000])
def test_rows_that_left_memory_are_not_there_again_after_a_restore(
    keys: int, tmp_path: Path
) -> None:
    """Units that were written while they were there are not written again."""
    streams, random = [wj.stream(n, time="t", window=5000) for n in "ab"], np.random.default_rng(7)
    query = wj.join(*streams, on=streams[0]["k"] == streams[1]["k"])
    tables = {
        name: pa.table({"t": range(6000), "k": random.integers(0, keys, 6000), "row": range(6000)})
        for name in "ab"
    }
    expected = table_rows(list("ab"), query.run(tables))
    session = query.open({n: t.schema for n, t in tables.items()}, memory="1300kB")
    found: list[Any] = []
    for at in range(0, 6000, 250):
        for name, rows in tables.items():
            found += table_rows(list("ab"), session.push(name, rows.slice(at, 250)))
        if at % 500 == 250 and at < 5000:
            session.save(tmp_path)
            session.abandon()
            session = wj.restore(query, tmp_path)
    spilled = session.metrics["memory"]["spills"]
    found += table_rows(list("ab"), session.close())
    assert spilled > 5
    assert Counter(found) == Counter(expected)
