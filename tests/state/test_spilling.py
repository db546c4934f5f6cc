"""Sessions with little memory give what those give that have enough, each result once."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given, settings
from hypothesis import strategies as st
from windjoin.memory import parse_size
from windjoin.state.spill_folder import LOCK

from tests.api import build, schemas, table_rows, user_time
from tests.cases import SessionCase
from tests.compare import assert_same_results
from tests.effort import examples
from tests.oracle import Results, replay
from tests.similarity_paths import streams
from tests.strategies import sessions

KNOBS = st.fixed_dictionaries(
    {
        "share": st.sampled_from([0.05, 0.3, 0.7, 1.0]),
        "choose": st.sampled_from(["throughput", "largest", "random"]),
        "groups": st.sampled_from([1, 3, 300]),
    }
)


def opened(session_case: SessionCase, memory: Any, folder: str, learned: bool = True) -> Any:
    """A session of a case with a bound on its memory."""
    import datetime

    lateness = eval(session_case.lateness_source, {"datetime": datetime})
    given_schemas = schemas(session_case.case) if learned else None
    return build(session_case.case).open(
        given_schemas, lateness=lateness, on_late="keep", memory=memory, spill=folder
    )


def play(
    session_case: SessionCase, session: Any, cleaned: set[int], events: list[str] | None = None
) -> Results:
    """All results of a session; after some steps what is owed is asked for."""
    case, found = session_case.case, Counter()
    for number, step in enumerate(session_case.steps):
        stream = case.streams[step.stream]
        if step.time is None:
            got = session.push(stream.name, stream.table(step.start, step.stop))
            found += Counter(table_rows(case.names, got) if got.num_rows else [])
        else:
            session.advance(stream.name, user_time(session_case, step.stream, step.time))
        if number in cleaned:
            for got in session.clean_up():
                found += Counter(table_rows(case.names, got))
    return found + Counter(table_rows(case.names, session.close()))


@pytest.mark.parametrize("learned", [True, False])
@settings(max_examples=examples(25))
@given(session_case=sessions(), knobs=KNOBS, cleaned=st.sets(st.integers(0, 12), max_size=3))
def test_spilling_loses_and_doubles_nothing(
    learned: bool, session_case: SessionCase, knobs: dict[str, Any], cleaned: set[int]
) -> None:
    outcome = replay(session_case.case.query, session_case.events(), session_case.lateness)
    with tempfile.TemporaryDirectory() as folder:
        if not learned and not all(
            any(s.stream == n and s.time is None for s in session_case.steps)
            for n in range(len(session_case.case.streams))
        ):
            return  # a stream that nobody has seen
        session = opened(session_case, wj.Memory(1, **knobs), folder, learned)
        found = play(session_case, session, cleaned)
        assert [file for file in os.listdir(folder) if file != LOCK] == []
    assert_same_results(found.elements(), sum(outcome.results, Counter()))


def rows(count: int, seed: int, keys: int = 20, most: int = 300) -> pa.Table:
    random = np.random.default_rng(seed)
    time = np.sort(random.integers(0, most, count))
    key = random.integers(0, keys, count)
    return pa.table({"t": time, "k": key, "x": key * 0.5, "n": np.arange(count)})


def equality(count: int = 2, **options: Any) -> Any:
    named = [wj.stream(n, time="t", window=w) for n, w in zip("abc", (40, 30, 20), strict=True)]
    named = named[:count]
    on = [x["k"] == y["k"] for x, y in pairwise(named)]
    return wj.join(*named, on=on, **options)


def band(count: int = 2) -> Any:
    named = [wj.stream(n, time="t", window=w) for n, w in zip("abc", (40, 30, 20), strict=True)]
    pairs = pairwise(named[:count])
    return wj.join(*named[:count], on=[abs(x["x"] - y["x"]) <= 0.5 for x, y in pairs])


QUERIES = {"equality": equality(), "three": equality(3), "band": band(), "bands": band(3)}


def pushed(
    query: Any, tables: dict[str, pa.Table], session: Any, size: int = 7, clean_every: int = 0
) -> Results:
    """Results of rows pushed in turn, of clean-ups and of closing."""
    found: Results = Counter()

    def take(results: Any) -> None:
        if isinstance(results, dict):
            found.update(zip(*(c.tolist() for c in results.values()), strict=True))
        elif results.num_rows:
            columns = (results.column(f"{n}_n").to_pylist() for n in tables)
            found.update(zip(*columns, strict=True))

    for start in range(0, max(t.num_rows for t in tables.values()), size):
        for name, table in tables.items():
            take(session.push(name, table.slice(start, size)))
        if clean_every and start % clean_every == 0:
            for results in session.clean_up():
                take(results)
    take(session.close())
    return found


def named_rows(results: pa.Table) -> list[tuple[int, ...]]:
    """Row numbers in a result."""
    columns = [c.to_pylist() for n, c in zip(results.column_names, results.columns, strict=True)
               if n.endswith("_n")]  # fmt: skip
    return list(zip(*columns, strict=True))


def expected(query: Any, tables: dict[str, pa.Table]) -> Results:
    found = query.indices(tables)
    return Counter(zip(*(column.tolist() for column in found.values()), strict=True))


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("rows_only", [False, True])
def test_state_many_times_as_large_as_memory(name: str, rows_only: bool, tmp_path: Path) -> None:
    query = QUERIES[name]
    tables = {n: rows(200, seed, most=150) for seed, n in enumerate(query.names)}
    known = {n: t.schema for n, t in tables.items()}
    session = query.open(
        known, memory=wj.Memory(1), spill=tmp_path, lateness=3, rows_only=rows_only
    )
    assert pushed(query, tables, session, clean_every=70) == expected(query, tables)
    metrics = session.metrics
    assert metrics["memory"]["spills"] > 30
    assert metrics["memory"]["results_cleaned_up"] > 50
    assert metrics["results"] == expected(query, tables).total()


def test_a_row_never_meets_itself_though_rows_are_spilled(tmp_path: Path) -> None:
    query = equality(exclude_self=True)
    table = rows(300, 1, keys=5)
    tables = {"a": table, "b": table}
    known = {n: t.schema for n, t in tables.items()}
    session = query.open(known, memory=1, spill=tmp_path, rows_only=True)
    assert pushed(query, tables, session) == expected(query, tables)


def test_a_row_that_only_rows_on_disk_can_meet_stays(tmp_path: Path) -> None:
    a, b = (wj.stream(n, time="t", window=w) for n, w in zip("ab", (2, 0), strict=True))
    query = wj.join(a, b, on=a["t"] >= b["t"])
    session = query.open(memory=1, spill=tmp_path)
    session.push("b", {"t": pa.array([], pa.int64())})
    session.push("a", {"t": [0, 1]})
    found = session.push("b", {"t": [0]}).num_rows
    assert found + session.close().num_rows == 1


@pytest.mark.parametrize("strategy", ["sets", "vectors", "weighted", "texts"])
def test_wide_columns_are_spilled(strategy: str, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    a, b = streams((40, 30))
    items = [random.integers(0, 9, random.integers(0, 5)).tolist() for _ in range(160)]
    columns: dict[str, Any] = {
        "sets": items,
        "texts": [[f"w{i}" for i in one] for one in items],
        "vectors": pa.array(random.integers(0, 4, (160, 3)).tolist(), pa.list_(pa.float64())),
        "weighted": items,
    }
    data = pa.table(
        {"t": np.arange(160), "v": columns[strategy], "w": [[0.5] * len(i) for i in items],
         "n": np.arange(160)}
    )  # fmt: skip
    left, right = a["v"], b["v"]
    measure = wj.l2(left, right) if strategy == "vectors" else wj.jaccard(left, right)
    if strategy == "weighted":
        measure = wj.cosine((left, a["w"]), (right, b["w"]))
    near = measure <= 1.5 if strategy == "vectors" else measure >= 0.5
    chosen = [a["n"].alias("a_n"), b["n"].alias("b_n"), measure.alias("m")]
    query = wj.join(a, b, on=near, select=chosen)
    tables = {"a": data, "b": data}
    session = query.open(dict.fromkeys("ab", data.schema), memory=1, spill=tmp_path)
    assert pushed(query, tables, session) == expected(query, tables)
    assert session.metrics["memory"]["results_cleaned_up"] > 0


def test_conditions_that_only_arrow_decides_are_cleaned_up(tmp_path: Path) -> None:
    a, b = streams((40, 30))
    query = wj.join(a, b, on=(a["k"] == b["k"]) | (a["x"] == b["x"] + 1))
    tables = {n: rows(150, seed) for seed, n in enumerate("ab")}
    session = query.open({n: t.schema for n, t in tables.items()}, memory=1, spill=tmp_path)
    assert pushed(query, tables, session) == expected(query, tables)


def test_clean_up_is_interrupted_and_goes_on(tmp_path: Path) -> None:
    query = equality()
    tables = {n: rows(400, seed) for seed, n in enumerate("ab")}
    session = query.open({n: t.schema for n, t in tables.items()}, memory=1, spill=tmp_path)
    found: Results = Counter()
    for start in range(0, 400, 20):
        for name, table in tables.items():
            results = session.push(name, table.slice(start, 20))
            if results.num_rows:
                found.update(named_rows(results))
        for results in session.clean_up():
            found.update(named_rows(results))
            break  # the rest comes with later pushes, or from close
    found.update(named_rows(session.close()))
    assert found == expected(query, tables)


@pytest.mark.parametrize("how", ["clean_up", "close"])
def test_cleaning_up_says_how_far_it_is(how: str, tmp_path: Path) -> None:
    query = equality()
    tables = {n: rows(300, seed, keys=40) for seed, n in enumerate("ab")}
    session = query.open({n: t.schema for n, t in tables.items()}, memory=1, spill=tmp_path)
    for name, table in tables.items():
        session.push(name, table.slice(0, 150))
    for name, table in tables.items():
        session.push(name, table.slice(150))
    seen: list[tuple[int, int]] = []

    def see(done: int, total: int) -> None:
        seen.append((done, total))

    if how == "clean_up":
        list(session.clean_up(progress=see))
    session.close(progress=see)
    assert seen[-1][0] == seen[-1][1] > 0
    assert all(0 <= done <= total for done, total in seen)


def test_files_go_as_streams_come_on(tmp_path: Path) -> None:
    query = equality()
    session = query.open(memory=1, spill=tmp_path)
    most = 0
    for start in range(0, 2000, 20):
        for name in "ab":
            at = np.arange(start, start + 20)
            session.push(name, pa.table({"t": at, "k": at % 7, "n": at}))
        most = max(most, session.metrics["memory"]["generations"])
        numbering = session._memory.residence.numbering[0]
        assert len(numbering.tails) <= 200
    assert most <= 60
    assert session.metrics["memory"]["rows_on_disk"] < 500
    session.close()
    assert [file for file in os.listdir(tmp_path) if file != LOCK] == []


def test_idle_groups_go_first(tmp_path: Path) -> None:
    a, b = streams((1000, 1000))
    query = wj.join(a, b, on=a["k"] == b["k"])
    asked = wj.Memory(1_700_000, share=0.05, idle=50, groups=300)
    session = query.open(memory=asked, spill=tmp_path)
    session.push("b", {"t": [0], "k": [-1]})
    session.push("a", {"t": [1] * 300, "k": [-5] * 300})  # one key that nobody sends again
    for start in range(100, 1000):
        session.push("a", {"t": np.full(100, start), "k": np.arange(100) % 40})
        if session._memory.owing.generations:
            break
    assert session._memory.owing.generations
    (generation, *_) = session._memory.owing.generations
    groups = np.concatenate([block.group for block in generation.blocks[0]])
    assert np.bincount(groups).max() >= 300


def test_productive_groups_stay(tmp_path: Path) -> None:
    """The spilling of unproductive groups leaves fewer results for later."""
    later = {}
    for choose in ("throughput", "random"):
        random = np.random.default_rng(3)
        query = equality()
        session = query.open(memory=wj.Memory(2_000_000, choose=choose), spill=tmp_path / choose)
        for start in range(0, 60):
            for name in "ab":
                hot = random.integers(0, 20, 20)
                cold = random.integers(1000, 100_000, 480)
                key = np.concatenate([hot, cold])
                session.push(name, pa.table({"t": np.full(500, start // 2), "k": key}))
        later[choose] = session.metrics["memory"]
        assert later[choose]["spills"] > 0
        later[choose] = sum(t.num_rows for t in session.clean_up())
        session.close()
    assert later["throughput"] < 0.5 * later["random"]


WIDE = 160
PAYLOAD = {
    "big": pa.array([bytes([i % 251]) * 16_000 for i in range(WIDE)], pa.binary(16_000)),
    "text": pa.array([None if i % 7 == 3 else "ä" * (i % 5) for i in range(WIDE)]),
    "bit": pa.array([None if i % 5 == 2 else i % 3 == 0 for i in range(WIDE)]),
    "list": pa.array([None if i % 4 == 1 else [i, None][: i % 3] for i in range(WIDE)]),
    "fixed": pa.array([[i, None if i % 2 else 1] for i in range(WIDE)], pa.list_(pa.int16(), 2)),
    "texts": pa.array([["x", str(i)] for i in range(WIDE)]),
    "dict": pa.array([f"d{i % 3}" for i in range(WIDE)]).dictionary_encode(),
}


@pytest.mark.parametrize("kind", ["plain", "nearest", "hosts"])
def test_cold_payload_lies_in_files_and_comes_back(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windjoin.chunks.SMALL_BATCH", 4)
    a, b = streams((60, 60))
    data = pa.table(
        {"t": np.arange(WIDE), "k": np.arange(WIDE) % 9, "v": [[float(i % 5)] for i in range(WIDE)],
         **PAYLOAD}
    )  # fmt: skip
    options: dict[str, Any] = {}
    query = wj.join(a, b, on=a["k"] == b["k"])
    if kind == "nearest":
        query = wj.join(a, b, on=[a["k"] == b["k"], wj.l2(a["v"], b["v"]) <= 3], nearest=2)
    if kind == "hosts":
        options = {"hosts": 2, "strategy": "ctr"}
    limit = 2_000_000
    found: dict[str, list[str]] = {}
    for how, memory in (("bounded", limit), ("whole", None)):
        more = {"spill": tmp_path} if memory else {}
        session = query.open(dict.fromkeys("ab", data.schema), memory=memory, **more, **options)
        found[how], most = [], 0
        for start in range(0, WIDE, 5):
            for name in "ab":
                found[how] += map(str, session.push(name, data.slice(start, 5)).to_pylist())
            most = max(most, *(p.bytes_on_disk for p in session._payloads))
        if memory:
            assert most > 300_000
            assert session.metrics["memory"]["bytes_on_disk"] < 3_500_000
        found[how] += map(str, session.close().to_pylist())
    assert sorted(found["bounded"]) == sorted(found["whole"])


# -- disks -----------------------------------------------------------------------------------------


def test_two_sessions_do_not_share_a_folder(tmp_path: Path) -> None:
    session = equality().open({n: rows(1, 0).schema for n in "ab"}, memory="1MB", spill=tmp_path)
    with pytest.raises(wj.StateError, match="is in use by another session; give every session"):
        equality().open({n: rows(1, 0).schema for n in "ab"}, memory="1MB", spill=tmp_path)
    session.close()
    equality().open({n: rows(1, 0).schema for n in "ab"}, memory="1MB", spill=tmp_path).close()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(wj.StateError, match="file' cannot be used: "):
        equality().open({n: rows(1, 0).schema for n in "ab"}, memory="1MB", spill=tmp_path / "file")


CRASH = """
import os, sys
import numpy as np
import windjoin as wj
a, b = (wj.stream(name, time="t", window=1000) for name in "ab")
session = wj.join(a, b, on=a["k"] == b["k"]).open(
    memory=1, spill=sys.argv[1] if sys.argv[2] != "own" else None
)
for start in range(0, 100, 10):
    for name in "ab":
        session.push(name, {"t": np.arange(start, start + 10), "k": np.arange(10)})
print(len(os.listdir(sys.argv[1])), flush=True)
if sys.argv[2] != "exit":
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("how", ["crash", "exit"])
def test_files_go_on_exit_and_after_a_crash_with_the_next_session(how: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", CRASH, str(tmp_path), how], capture_output=True, text=True
    )
    assert int(ran.stdout) > 10, ran.stderr
    left = [file for file in os.listdir(tmp_path) if file != LOCK]
    assert bool(left) == (how == "crash")
    equality().open({n: rows(1, 0).schema for n in "ab"}, memory="1MB", spill=tmp_path)
    assert [file for file in os.listdir(tmp_path) if file != LOCK] == []


def test_folders_among_temporary_files_go_after_a_crash_with_the_next_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    known = {n: rows(1, 0).schema for n in "ab"}
    session = equality().open(known, memory="1MB")
    (own,) = tmp_path.iterdir()
    given = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", CRASH, str(tmp_path), "own"], env=given, check=False)
    assert len(list(tmp_path.iterdir())) == 2
    other = equality().open(known, memory="1MB")
    assert len(list(tmp_path.iterdir())) == 2
    assert own.exists()  # its session is still there
    session.close()
    other.close()
    assert list(tmp_path.iterdir()) == []


def test_corrupt_files_are_never_joined(tmp_path: Path) -> None:
    query = equality()
    session = query.open(memory=1, spill=tmp_path)
    for start in range(0, 100, 10):
        for name in "ab":
            session.push(name, rows(10, start, most=5).set_column(0, "t", [np.arange(10) + start]))
    file = sorted(tmp_path.glob("windjoin-*"))[0]
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 0xFF
    with open(file, "r+b") as out:  # it is mapped
        out.write(data)
    with pytest.raises(wj.StateError, match=f"{file.name}' is corrupt: the checksum of section"):
        list(session.clean_up())
    assert session.closed  # what was under way is not known any more
    with pytest.raises(wj.SessionError, match="results may be missing"):
        list(session.clean_up())


def test_a_clean_up_that_cannot_read_a_row_ends_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results that were found are not left out in silence."""
    query = equality()
    session = query.open(memory=1, spill=tmp_path)
    for start in range(0, 100, 10):
        for name in "ab":
            session.push(name, rows(10, start, most=5).set_column(0, "t", [np.arange(10) + start]))

    def unreadable(*_: Any) -> None:
        raise OSError("rows of a window cannot be read: Input/output error")

    monkeypatch.setattr(session, "_results", unreadable)
    with pytest.raises(OSError, match="cannot be read"):
        list(session.clean_up())
    monkeypatch.undo()
    assert session.closed
    with pytest.raises(wj.SessionError, match="results may be missing"):
        session.push("a", rows(1, 0))


def test_whoever_cleans_up_may_leave_or_close(tmp_path: Path) -> None:
    query = equality()
    tables = {n: rows(300, seed) for seed, n in enumerate("ab")}
    known = {n: t.schema for n, t in tables.items()}
    for close_within in (False, True):
        found: Results = Counter()
        session = query.open(known, memory=1, spill=tmp_path)
        for start in range(0, 300, 20):
            for name, table in tables.items():
                found.update(named_rows(session.push(name, table.slice(start, 20))))
        for results in session.clean_up():
            found.update(named_rows(results))
            if close_within:
                found.update(named_rows(session.close()))
            else:
                break
        found.update(named_rows(session.close()))
        assert found == expected(query, tables)


def test_wide_values_keep_to_the_limit_of_the_disk(tmp_path: Path) -> None:
    a, b = (wj.stream(n, time="t", window=10**6) for n in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"], select=[a["text"], b["k"]])
    known = {"a": pa.schema({"t": pa.int64(), "k": pa.int64(), "text": pa.string()}),
             "b": pa.schema({"t": pa.int64(), "k": pa.int64()})}  # fmt: skip
    told = 0
    with query.open(known, memory=wj.Memory("2MB", disk_limit="6MB"), spill=tmp_path) as session:
        for start in range(0, 16_000, 1000):
            key = np.arange(start, start + 1000)
            some = pa.table({"t": key, "k": key, "text": [f"{k:05}" * 200 for k in key]})
            told += len(pushed_again(session, "a", some)[1])
            assert session.metrics["memory"]["bytes_on_disk"] <= 6_000_000
        asked = np.array([0, 7_777, 15_999])
        results, _ = pushed_again(session, "b", pa.table({"t": asked, "k": asked}))
        assert told > 0
        left = pa.concat_tables([results, session.close()])
    assert sorted(left["a_text"].to_pylist()) == [f"{k:05}" * 200 for k in asked.tolist()]


def test_a_disk_without_room_is_told_of_and_the_session_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = equality()
    tables = {n: rows(200, seed) for seed, n in enumerate("ab")}
    asked = wj.Memory(1, disk_limit=3000)
    session = query.open({n: t.schema for n, t in tables.items()}, memory=asked, spill=tmp_path)
    found: Results = Counter()
    told = 0
    for start in range(0, 200, 5):
        for name, table in tables.items():
            some = table.slice(start, 5)
            results, errors = pushed_again(session, name, some)
            told += len(errors)
            assert all("reached disk_limit=3,000 bytes; the session goes on" in e for e in errors)
            found.update(named_rows(results))
    found.update(named_rows(session.close()))
    assert told > 0
    assert session.metrics["memory"]["spill_failures"] == told
    assert found == expected(query, tables)


def pushed_again(session: Any, name: str, some: pa.Table) -> tuple[pa.Table, list[str]]:
    """Results of a push, which is made again if it is refused; and why it was."""
    try:
        return session.push(name, some), []
    except wj.StateError as error:
        return session.push(name, some), [str(error)]


def tiny_disk(folder: Path) -> bool:
    """Mount a file system of 256 kB; False where that is not allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "windjoin", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("wide", [False, True])
def test_a_full_disk_is_told_of_and_the_session_goes_on(tmp_path: Path, wide: bool) -> None:
    disk, query = tmp_path / "disk", equality()
    if not tiny_disk(disk):
        pytest.skip("mounting a small file system needs more rights than this user has")
    tables = {n: rows(6000, seed, keys=3000) for seed, n in enumerate("ab")}
    values = [bytes([i % 251]) * 600 for i in range(6000)]
    if wide:  # is written as it comes
        tables = {n: t.append_column("p", [values]) for n, t in tables.items()}
    session = query.open({n: t.schema for n, t in tables.items()}, memory=1, spill=disk)
    try:
        found: Results = Counter()
        told = 0
        for start in range(0, 6000, 300):
            for name, table in tables.items():
                results, errors = pushed_again(session, name, table.slice(start, 300))
                told += len(errors)
                assert all("the disk is full; the session goes on in memory" in e for e in errors)
                found.update(named_rows(results))
        found.update(named_rows(session.close()))
        assert told > 0
        assert found == expected(query, tables)
    finally:
        session.abandon()
        del session
        gc.collect()  # of what is mapped
        subprocess.run(["umount", "-l", str(disk)], check=True)


# -- options ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory": "2 elephants"}, "memory='2 elephants': give bytes, as a text such as \"2GB\""),
        ({"memory": 0}, "memory=0 is no memory at all"),
        ({"memory": True}, "memory=True: give bytes"),
        ({"spill": "x"}, "spill='x' needs memory=, such as memory=\"2GB\""),
        ({"on_full": "error"}, "on_full='error' needs memory="),
        ({"memory": 1, "on_full": "wait"}, "on_full='wait'; there are 'spill', 'shed' and 'error'"),
    ],
)
def test_open_refuses(options: dict[str, Any], message: str) -> None:
    with pytest.raises(wj.QueryError) as caught:
        equality().open(**options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": 0}, "share=0: give a part of the state, above 0 and up to 1"),
        ({"choose": "best"}, "choose='best'; there are"),
        ({"groups": 0}, "groups=0: give how many there are, 1 to 32768"),
        ({"spill": 3}, "spill=3: give the path of a folder"),
        ({"disk_limit": "x"}, "disk_limit='x': give bytes"),
    ],
)
def test_memory_refuses(options: dict[str, Any], message: str) -> None:
    with pytest.raises(wj.QueryError) as caught:
        wj.Memory("1GB", **options)
    assert message in str(caught.value)


def test_sizes_have_units() -> None:
    assert [parse_size(s, "m") for s in ("2GB", "1.5 MiB", "64", 9, "3kb")] == [
        2 * 10**9,
        3 * 2**19,
        64,
        9,
        3000,
    ]


@pytest.mark.parametrize("hosts", [None, 2])
def test_on_full_shed_drops_the_oldest_rows_and_tells(hosts: int | None) -> None:
    query = equality(3)
    tables = {n: rows(300, seed, most=150) for seed, n in enumerate(query.names)}
    known = {n: t.schema for n, t in tables.items()}
    shared = {} if hosts is None else {"hosts": hosts, "segment": 5}
    session = query.open(known, memory=wj.Memory(1, share=0.03), on_full="shed", **shared)
    with pytest.warns(wj.SheddingWarning, match="the oldest rows are dropped, and results that"):
        found = pushed(query, tables, session)
    whole = expected(query, tables)
    assert found <= whole
    assert 0 < found.total() < whole.total()
    assert session.metrics["memory"]["rows_shed"] > 0
    assert session.metrics["memory"]["bytes_on_disk"] == 0
    assert session.metrics["results"] == found.total()


def test_on_full_shed_is_not_for_nearest() -> None:
    a, b = streams((60, 60))
    query = wj.join(a, b, on=[a["k"] == b["k"], wj.l2(a["v"], b["v"]) <= 3], nearest=2)
    with pytest.raises(wj.QueryError, match="without some rows others would be the nearest"):
        query.open(memory="1MB", on_full="shed")


def test_on_full_error_refuses_pushes_until_rows_have_gone() -> None:
    query = equality()
    session = query.open({n: rows(1, 0).schema for n in "ab"}, memory=2_000_000, on_full="error")
    at = np.arange(2000)
    taken = 0
    for start in range(0, 100_000, 2000):
        data = {"t": np.full(2000, 1), "k": at + start, "x": at * 0.5, "n": at}
        if session.state_bytes > 2_000_000:
            break
        session.push("a", data)
        taken += 2000
    for _ in range(2):
        with pytest.raises(wj.StateError, match=r"limit is 2,000,000: nothing of the push was"):
            session.push("a", data)
    assert session.metrics["streams"]["a"]["rows_in"] == taken
    session.advance("b", 10_000)
    session.push("b", rows(3, 0, most=2).set_column(0, "t", [[10_000] * 3]))
    session.push("b", rows(3, 0, most=2).set_column(0, "t", [[10_000] * 3]))


@settings(max_examples=examples(15))
@given(session_case=sessions(most=2))
def test_nothing_changes_while_memory_suffices(session_case: SessionCase) -> None:
    outcome = replay(session_case.case.query, session_case.events(), session_case.lateness)
    with tempfile.TemporaryDirectory() as folder:
        session = opened(session_case, "1GB", folder)
        found = play(session_case, session, {3, 7})
        assert session.metrics["memory"]["spills"] == 0
    assert_same_results(found.elements(), sum(outcome.results, Counter()))
