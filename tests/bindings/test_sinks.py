"""Results as files beside a session: whole, in order, none lost or doubled after a restart."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from windjoin import testing

from tests.effort import examples

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("s", pa.string())])


def streams(window: int = 5) -> Any:
    return [wj.stream(name, time="t", window=window) for name in "ab"]


def query(**options: Any) -> Any:
    a, b = streams()
    return wj.join(a, b, on=a["k"] == b["k"], **options)


def tables(rows: int = 200, seed: int = 3) -> dict[str, pa.Table]:
    random = np.random.default_rng(seed)
    return {
        name: pa.table(
            {
                "t": np.sort(random.integers(0, rows, rows)),
                "k": random.integers(0, 3, rows),
                "s": [f"{name}{n}" for n in range(rows)],
            }
        )
        for name in "ab"
    }


def written(folder: Path) -> pa.Table:
    """All that is in the folder, which has whole files and nothing else."""
    names = sorted(path.name for path in folder.iterdir())
    assert names == [f"results-{n:08d}.parquet" for n in range(len(names))]
    return pa.concat_tables([parquet.read_table(folder / name) for name in names])


def test_files_have_what_pushes_gave(tmp_path: Path) -> None:
    given_tables, found = tables(), []
    with query().open({"a": SCHEMA, "b": SCHEMA}) as s:
        sink = s.to_parquet(tmp_path / "out", every=100)
        for at in range(0, 200, 5):
            for name, rows in given_tables.items():
                found.append(s.push(name, rows.slice(at, 5)))
        assert s.metrics["sink"] == {
            "folder": str(tmp_path / "out"), "files": sink.number, "rows": sink.rows,
            "waiting": sink.waiting,
        }  # fmt: skip
        assert sink.number > 2
    results = pa.concat_tables(found)
    assert sink.waiting == 0
    assert written(tmp_path / "out").equals(results.replace_schema_metadata(None))
    sizes = [parquet.read_metadata(path).num_rows for path in (tmp_path / "out").iterdir()]
    assert sum(size < 100 for size in sizes) <= 1


@pytest.mark.parametrize("how", ["inner", "left"])
@settings(max_examples=examples(12))
@given(data=st.data(), crashes=st.integers(0, 3))
def test_no_row_is_lost_or_doubled_by_restarts(
    how: Any, tmp_path_factory: Any, data: Any, crashes: int
) -> None:
    folder = tmp_path_factory.mktemp("sink")
    q, given_tables = query(how=how), tables(40)
    s = q.open({"a": SCHEMA, "b": SCHEMA})
    s.to_parquet(folder / "out", every=data.draw(st.sampled_from([1, 10, 1000])))
    s.save(folder / "snapshot", position=0)
    at = 0
    while at < 40:
        for name, rows in given_tables.items():
            s.push(name, rows.slice(at, 4))
        at += 4
        if data.draw(st.booleans()):
            s.save(folder / "snapshot", position=at)
        if crashes and data.draw(st.integers(0, 3)) == 0:
            crashes -= 1
            (folder / "out" / ".results-00000099.parquet.part").write_bytes(b"half")
            s = wj.restore(q, folder / "snapshot")
            at = s.position
    s.close()
    testing.assert_same_results(written(folder / "out"), testing.expected(q, given_tables))


def test_a_file_is_written_after_a_time_too(tmp_path: Path) -> None:
    now = [0.0]
    with query().open({"a": SCHEMA, "b": SCHEMA}, clock=lambda: now[0]) as s:
        sink = s.to_parquet(tmp_path, every=timedelta(seconds=10))
        for name in "ab":
            s.push(name, {"t": [1], "k": [1], "s": ["x"]})
        now[0] = 9.0
        s.push("a", {"t": [2], "k": [7], "s": ["x"]})
        assert sink.number == 0
        now[0] = 10.0
        s.push("a", {"t": [3], "k": [7], "s": ["x"]})
        assert sink.number == 1


def test_numbers_go_on_and_push_many_and_close_count(tmp_path: Path) -> None:
    for _ in range(2):
        a, b = streams()
        q = wj.join(a, b, on=a["k"] == b["k"], nearest=1, direction="forward")
        with q.open({"a": SCHEMA, "b": SCHEMA}) as s:
            s.to_parquet(tmp_path)
            row = {"t": [1], "k": [1], "s": ["x"]}
            s.push_many({"a": row, "b": row})
    assert len(written(tmp_path)) == 2


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"t": [1], "k": [1], "s": ["x"]}
    with query().open({"a": SCHEMA, "b": SCHEMA}) as s:
        s.to_parquet(tmp_path, every=1)
        s.push("a", row)
        s.push("b", row)
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", _full)
            with pytest.raises(wj.StateError, match=r"results cannot be written to .*; they wait"):
                s.push("a", row)
        assert [path.name for path in tmp_path.iterdir()] == []
        s.push("a", row)
        assert s.metrics["streams"]["a"]["rows_in"] == 2
    assert len(written(tmp_path)) == 2


def _full(handle: int) -> None:
    raise OSError(28, "No space left on device")


def test_what_is_refused(tmp_path: Path) -> None:
    with query().open({"a": SCHEMA, "b": SCHEMA}) as s:
        for every in (0, True, 1.5, "0s", None):
            with pytest.raises(wj.QueryError, match=r"to_parquet: every=.*: give how many rows"):
                s.to_parquet(tmp_path, every=every)  # type: ignore[arg-type]
        s.to_parquet(tmp_path)
        with pytest.raises(wj.SessionError, match="to_parquet: results are written to"):
            s.to_parquet(tmp_path)
    with query().open(rows_only=True) as s, pytest.raises(wj.QueryError, match="rows_only=True"):
        s.to_parquet(tmp_path)
    (tmp_path / "file").write_text("")
    with query().open() as s, pytest.raises(wj.StateError, match="results cannot be written to"):
        s.to_parquet(tmp_path / "file")


def test_the_event_loop_goes_on_while_batches_are_joined() -> None:
    given_tables = tables(20_000)
    a, b = streams(200)
    q = wj.join(a, b, on=a["k"] == b["k"])
    beats: list[int] = []

    async def source(name: str) -> Any:
        yield given_tables[name]

    async def beat() -> None:
        while True:
            await asyncio.sleep(0)
            beats.append(1)

    async def main() -> int:
        rows = 0
        heart = asyncio.create_task(beat())
        results = q.aiterate({name: source(name) for name in "ab"})
        async for table in results:
            rows += len(table)
        heart.cancel()
        return rows

    assert asyncio.run(main()) > 500_000
    assert len(beats) > 100


def test_an_iteration_may_be_closed_while_it_joins() -> None:
    given_tables = tables(60_000)
    a, b = streams(200)
    q = wj.join(a, b, on=a["k"] == b["k"])

    async def source(name: str) -> Any:
        yield given_tables[name]
        await asyncio.sleep(60)

    async def main() -> Any:
        results = q.aiterate({name: source(name) for name in "ab"})
        waiting = asyncio.ensure_future(anext(results))
        while results._working is None:
            await asyncio.sleep(0)
        results.advance("a", 0)
        waiting.cancel()
        await asyncio.wait([waiting])
        await results.close()
        assert results._session.closed
        return results.metrics["rows_in"]

    assert asyncio.run(main()) > 0
