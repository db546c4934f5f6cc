"""The log of a continuous join: late rows, restarts, what is refused, what is deleted."""

from __future__ import annotations

import json
import os
import pickle
import resource
import shutil
from collections import Counter
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import windjoin as wj
from windjoin.epochs import deciding, warm
from windjoin.epochs.deciding import decide
from windjoin.epochs.following import follow
from windjoin.epochs.planning import job_of
from windjoin.epochs.probing import probe_epoch
from windjoin.epochs.routing import EARLIEST, GROUPS, Owners, Routes, Span, Units
from windjoin.epochs.sinking import write_parquet
from windjoin.epochs.storage import Folder
from windjoin.epochs.warm import Kept

from tests.epochs.cluster import Cluster

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("n", pa.int64())])


def keyed(window: int = 10, **more: Any) -> wj.Query:
    a, b = (wj.stream(name, time="t", window=window) for name in "ab")
    return wj.join(a, b, on=a["k"] == b["k"], select=[a["n"], b["n"].alias("m")], **more)


def banded(window: int = 10) -> wj.Query:
    a, b = (wj.stream(name, time="t", window=window) for name in "ab")
    return wj.join(a, b, on=abs(a["k"] - b["k"]) <= 1, select=[a["n"], b["n"].alias("m")])


def rows(*given: tuple[int | None, int]) -> pa.Table:
    """Rows (time, key), numbered by their time."""
    times, keys = zip(*given, strict=True) if given else ((), ())
    return pa.table(
        [pa.array(times, pa.int64()), pa.array(keys, pa.int64()), pa.array(times, pa.int64())],
        schema=SCHEMA,
    )


def cluster(query: wj.Query, folder: Path, **options: Any) -> Cluster:
    made = Cluster(query, dict.fromkeys("ab", SCHEMA), str(folder / "log"), 1)
    made.start(**{"slots": 2, **options})
    return made


def pairs(found: list[pa.RecordBatch]) -> list[tuple[int, int]]:
    return sorted((row["a_n"], row["m"]) for batch in found for row in batch.to_pylist())


def test_late_rows_and_rows_without_time_go_to_a_folder_and_are_counted(tmp_path: Path) -> None:
    aside = str(tmp_path / "aside")
    made = cluster(keyed(100), tmp_path, lateness=5, rejected=aside)
    made.epoch(0, {"a": rows((10, 1), (None, 2)), "b": rows((20, 1))})
    found = made.epoch(1, {"a": rows((5, 1), (4, 1)), "b": rows((14, 1), (15, 1))}, again=[0])
    assert pairs(found) == [(5, 15), (5, 20), (10, 15)]
    told = pq.read_table(Path(aside) / "a").to_pylist()
    assert [(row["t"], row["k"], row["rejected_as"]) for row in told] == [
        (None, 2, "null time"), (4, 1, "late"),
    ]  # fmt: skip
    assert pq.read_table(Path(aside) / "b")["t"].to_pylist() == [14]
    last = deciding.decide(made.job, 2, made.run)
    assert last.totals == {
        "a": {"rows": 4, "late": 1, "null_time": 1, "unmatchable": 0},
        "b": {"rows": 3, "late": 1, "null_time": 0, "unmatchable": 0},
    }
    assert last.watermarks == (5, 15)


def test_a_stream_that_is_silent_for_long_holds_others_back_no_more(tmp_path: Path) -> None:
    made = cluster(keyed(10), tmp_path, idle="30s")
    for epoch in range(4):
        b = rows((0, 1)) if epoch == 0 else rows()
        made.clock = 20.0 * epoch
        made.epoch(epoch, {"a": rows((100 * epoch, 1)), "b": b})
    made.clock = 80.0
    last = deciding.decide(made.job, 4, made.run, now=lambda: made.clock)
    assert last.watermarks == (300, 300)
    assert [entry.epoch for entry in last.window] == [3]
    found = made.epoch(4, {"a": rows(), "b": rows((299, 1), (305, 1))})
    assert pairs(found) == [(300, 305)]


def test_the_log_stays_as_long_as_the_window(tmp_path: Path) -> None:
    made = cluster(keyed(30), tmp_path)
    sizes = []
    for epoch in range(60):
        made.epoch(epoch, {name: rows((10 * epoch, 1), (10 * epoch, 2)) for name in "ab"})
        sizes.append(len(os.listdir(made.job.root)))
    assert max(sizes[10:]) == sizes[10] <= 7


@pytest.mark.parametrize("build", [keyed, banded])
def test_many_files_are_merged_and_results_stay_the_same(
    tmp_path: Path, build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deciding, "MOST_FILES", 5)
    made = cluster(build(400), tmp_path, slots=3)
    chance = np.random.default_rng(3)
    every: dict[str, list[pa.Table]] = {"a": [], "b": []}
    found, most = [], 0
    for epoch in range(90):
        given = {}
        for name in "ab":
            given[name] = rows(
                *((10 * epoch + int(t), int(k)) for t, k in chance.integers(0, 9, (3, 2)))
            )
            every[name].append(given[name])
        found += made.epoch(epoch, given)
        most = max(most, len(deciding.decide(made.job, epoch, made.run).window))
        if epoch == 50:
            made.start(run="run1", slots=2)
    assert most <= 8
    tables = {name: pa.concat_tables(parts) for name, parts in every.items()}
    expected = build(400).run(tables)
    assert pairs(found) == sorted(
        zip(expected["a_n"].to_pylist(), expected["m"].to_pylist(), strict=True)
    )


def test_sessions_are_kept_caught_up_and_made_anew(tmp_path: Path) -> None:
    made = cluster(keyed(200), tmp_path, slots=3)
    chance = np.random.default_rng(5)
    given, found = [], []
    for epoch in range(80):
        given.append(
            {
                name: rows(
                    *((5 * epoch + int(t), int(k)) for t, k in chance.integers(0, 5, (4, 2)))
                )
                for name in "ab"
            }
        )
        if epoch == 60:
            made.start(run="run1", slots=2)
        found += made.epoch(epoch, given[-1], again=[1])
    assert set(made.hows) == {"warm", "caught up", "rebuilt", "nothing to do"}
    assert made.hows["rebuilt"] < made.hows["warm"]
    whole = {name: pa.concat_tables([one[name] for one in given]) for name in "ab"}
    expected = keyed(200).run(whole)
    assert pairs(found) == sorted(
        zip(expected["a_n"].to_pylist(), expected["m"].to_pylist(), strict=True)
    )


@pytest.mark.parametrize(
    ("made", "joined", "missed", "worth"),
    [
        ((0.01, 0), (1.0, 1_000), 10, True),  # a session takes as long to begin
        ((0.01, 0), (1.0, 1_000), 11, False),  # rows that are dear to join
        ((0.01, 1_000), (0.001, 1_000), 10_000, True),
        ((0.01, 1_000), (0.001, 1_000), 10_001, False),
        ((0.01, 0), (0.0, 0), 10**6, True),  # nothing was joined yet, so nothing is known
    ],
)
def test_epochs_are_pushed_where_a_new_session_would_be_dearer(
    made: tuple[float, int], joined: tuple[float, int], missed: int, worth: bool
) -> None:
    session: Any = None
    kept = Kept(session, 0, "", Routes(Units((1,)), Owners.in_turn(1)), made=made, joined=joined)
    assert kept.worth(missed, 1_000 if made[1] else 0) == worth


def test_sessions_take_no_more_than_they_may(tmp_path: Path) -> None:
    made = cluster(keyed(200), tmp_path, slots=3, warm_bytes=1)
    for epoch in range(4):
        made.epoch(epoch, {name: rows((epoch, 1), (epoch, 2)) for name in "ab"})
        done = deciding.loads_of(made.job.log, decide(made.job, epoch, made.run))
        assert sum(load["comparisons"] for load in done) > 0  # of sessions that have ended, too
    assert set(made.hows) == {"rebuilt", "scan", "nothing to do"}  # the first have room
    assert not any(made.workers)


def test_a_session_at_rest_makes_room_and_one_in_use_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm, "AT_REST", 1e9)
    made = cluster(keyed(200), tmp_path, warm_bytes=10**9, slots=1)
    made.workers = made.workers[:1]
    for epoch in range(3):
        made.epoch(epoch, {name: rows((epoch, 1), (epoch, 2)) for name in "ab"})
    (kept,) = made.workers[0].values()
    warm._kept, least = made.workers[0], kept.bytes
    assert warm._make_room(10, least + 10)
    assert not warm._make_room(10, least + 9)
    assert len(made.workers[0]) == 1
    monkeypatch.setattr(warm, "AT_REST", 0.0)
    assert warm._make_room(10, least + 9)
    assert not made.workers[0]
    assert not warm._make_room(0, 0)


@pytest.mark.parametrize("strategy", ["groups", "atr", "ctr"])
def test_a_window_that_does_not_fit_is_joined_in_parts(tmp_path: Path, strategy: str) -> None:
    query, chance = keyed(1_000), np.random.default_rng(7)
    given = [
        {name: rows(*((50 * e + t, int(chance.integers(9))) for t in range(50))) for name in "ab"}
        for e in range(8)
    ]
    found: dict[Any, list[Any]] = {}
    for memory in (None, "1GB", "2kB"):
        made = cluster(query, tmp_path / str(memory), strategy=strategy, memory=memory)
        found[memory] = [pairs(made.epoch(epoch, rows)) for epoch, rows in enumerate(given)]
        if strategy != "ctr":  # where rows are not stored in sessions
            assert (made.hows["in parts"] >= 12) == (memory == "2kB")
    assert sum(map(len, found[None])) > 1_000
    assert found[None] == found["1GB"] == found["2kB"]


def test_rows_of_one_table_are_told_apart(tmp_path: Path) -> None:
    a, b = (wj.stream(name, time="t", window=50) for name in "ab")
    query = wj.join(
        a, b, on=a["k"] == b["k"], select=[a["n"], b["n"].alias("m")], exclude_self=True
    )
    made = cluster(query, tmp_path, slots=3)
    found = []
    tables = [rows((1, 1), (1, 1), (2, 2)), rows((3, 1), (4, 2))]
    for epoch, table in enumerate(tables):
        found += made.epoch(epoch, {"a": table, "b": table})
    whole = pa.concat_tables(tables)
    expected = query.run({"a": whole, "b": whole})
    assert pairs(found) == sorted(
        zip(expected["a_n"].to_pylist(), expected["m"].to_pylist(), strict=True)
    )


def test_a_jump_of_years_costs_nothing(tmp_path: Path) -> None:
    made = cluster(banded(10), tmp_path, slots=4, segment=1, lateness=2**62)
    far = 10**17
    made.epoch(0, {"a": rows((0, 1)), "b": rows((5, 1))})
    found = made.epoch(1, {"a": rows((far, 1), (-far, 1), (9, 1)), "b": rows((far + 10, 2))})
    assert pairs(found) == [(9, 5), (far, far + 10)]


def test_an_epoch_that_is_done_again_writes_the_same_files(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    made = cluster(banded(50), tmp_path, slots=3)
    given = [{name: rows((e, 1), (e + 5, 2)) for name in "ab"} for e in range(0, 40, 10)]
    for epoch, tables in enumerate(given):
        for run, slots, until in (("x", 2 + epoch, 2), ("y", 2, None)):
            made.start(run=f"{run}{epoch}", slots=slots)
            manifest = decide(made.job, epoch, made.run, slots=slots, adopt=True)
            assert manifest.slots == 2 + epoch
            arrived = made._packed(manifest, tables)
            for slot in range(manifest.slots)[:until]:
                results = probe_epoch(made._of(slot, arrived), made.job, manifest, slot)
                write_parquet(results, made.job, manifest, slot, out)
    whole = {name: pa.concat_tables([one[name] for one in given]) for name in "ab"}
    expected = banded(50).run(whole)
    assert pairs(pq.read_table(out).to_batches()) == sorted(
        zip(expected["a_n"].to_pylist(), expected["m"].to_pylist(), strict=True)
    )


def test_a_log_of_the_first_format_is_gone_on_with(tmp_path: Path) -> None:
    """`golden_log` is as the first version wrote it, after three of these epochs."""
    given = [{n: rows((10 * e, 1), (10 * e + 5, e % 3)) for n in "ab"} for e in range(5)]
    shutil.copytree(Path(__file__).parent / "golden_log", tmp_path / "log")
    made = cluster(keyed(30), tmp_path, slots=3, run="new")
    found = [pair for epoch in (3, 4) for pair in pairs(made.epoch(epoch, given[epoch]))]
    before, after = (
        Counter(pairs(keyed(30).run(whole).to_batches()))
        for whole in (
            {n: pa.concat_tables([one[n] for one in given[:stop]]) for n in "ab"} for stop in (3, 5)
        )
    )
    assert Counter(found) == after - before
    assert found


# -- what is refused -------------------------------------------------------------------------------


def begun(tmp_path: Path, epochs: int = 2, **options: Any) -> Cluster:
    made = cluster(keyed(1000), tmp_path, **options)
    for epoch in range(epochs):
        made.epoch(epoch, {name: rows((epoch, 1)) for name in "ab"})
    return made


def test_another_query_is_refused_and_told_apart(tmp_path: Path) -> None:
    begun(tmp_path)
    other = cluster(keyed(2000, closed="right"), tmp_path)
    other.run = "run1"
    told = (
        r"(?s)is of another query: stream 'a' was .*window=1000.*now .*window=2000.*"
        "closed was both, now right; go on with the query as it was"
    )
    with pytest.raises(wj.QueryError, match=told):
        other.epoch(2, {name: rows((2, 1)) for name in "ab"})


def test_two_joins_in_one_log_are_refused(tmp_path: Path) -> None:
    made = cluster(keyed(), tmp_path)
    made.epoch(0, {name: rows((0, 1)) for name in "ab"})
    other = cluster(keyed(), tmp_path)  # of the same streaming query: its run is the same
    with pytest.raises(wj.QueryError, match="two joins of one streaming query keep their windows"):
        other.epoch(0, {name: rows((0, 1)) for name in "ab"})


def test_another_query_may_write_to_the_same_folders(tmp_path: Path) -> None:
    """Begun anew with an empty checkpoint, it does not take what is there for its own."""
    out, aside = str(tmp_path / "out"), str(tmp_path / "aside")
    for query in ("one", "two"):
        made = cluster(keyed(), tmp_path / query, slots=1, rejected=aside)
        made.wire = pickle.dumps(replace(made.job, root=str(tmp_path / query / query)))
        manifest = decide(made.job, 0, made.run)
        arrived = made._packed(manifest, {name: rows((0, 1), (None, 1)) for name in "ab"})
        results = probe_epoch(made._of(0, arrived), made.job, manifest, 0)
        write_parquet(results, made.job, manifest, 0, out)
    assert pairs(pq.read_table(out).to_batches()) == [(0, 0), (0, 0)]
    assert pq.read_table(Path(aside) / "a").num_rows == 2


def test_functions_of_one_name_are_told_apart(tmp_path: Path) -> None:
    def query(function: Any) -> wj.Query:
        a, b = (wj.stream(name, time="t", window=10) for name in "ab")
        return wj.join(a, b, on=wj.udf(function, a["k"], b["k"]))

    schemas = dict.fromkeys("ab", SCHEMA)
    one, other = (
        job_of(query(function), schemas, str(tmp_path), slots=1).described()
        for function in (lambda x, y: x > y, lambda x, y: x < y)
    )
    assert one["on"] != other["on"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    made = begun(tmp_path)
    lost = made.job.log.path("0000000000", "run0", 1)
    os.unlink(lost)
    with pytest.raises(
        wj.LogError, match=rf"{lost} is missing, and the window cannot be had without"
    ):
        made.epoch(2, {name: rows((2, 1)) for name in "ab"})


@pytest.mark.parametrize("left", [0, 10, -3])
def test_a_file_that_was_cut_off_is_named(tmp_path: Path, left: int) -> None:
    made = begun(tmp_path)
    cut = Path(made.job.log.path("0000000001", "run0", 0))
    cut.write_bytes(cut.read_bytes()[:left])
    with pytest.raises(wj.LogError, match=rf"{cut} is cut off: \d+ bytes"):
        made.epoch(2, {name: rows((2, 1)) for name in "ab"})


def test_a_manifest_that_was_cut_off_is_named(tmp_path: Path) -> None:
    made = begun(tmp_path)
    cut = Path(made.job.log.path("0000000001", "run0", "manifest.json"))
    cut.write_bytes(cut.read_bytes()[:40])
    with pytest.raises(wj.LogError, match=r"manifest\.json is cut off or damaged"):
        made.epoch(2, {name: rows((2, 1)) for name in "ab"})


def test_a_lost_log_is_refused(tmp_path: Path) -> None:
    made = begun(tmp_path)
    made.job.log.remove()
    with pytest.raises(wj.LogError, match="has no epoch 1, and epoch 2 builds upon it"):
        made.epoch(2, {name: rows((2, 1)) for name in "ab"})


def test_an_epoch_that_was_done_in_part_is_refused(tmp_path: Path) -> None:
    made = begun(tmp_path)
    made.epoch(2, {name: rows((2, 1)) for name in "ab"}, until=1)
    with pytest.raises(
        wj.LogError, match=r"epoch 2 was not computed as a whole: slots '\d' left no file"
    ):
        made.epoch(3, {name: rows((3, 1)) for name in "ab"})


@pytest.mark.parametrize("name", ["manifest.json", "0"])
def test_a_newer_format_is_refused(tmp_path: Path, name: str) -> None:
    made = begun(tmp_path)
    path = Path(made.job.log.path("0000000001", "run0", name))
    told = path.read_bytes()
    path.write_bytes(told.replace(b'"version": 1', b'"version": 9'))
    with pytest.raises(wj.LogError, match="has format 9, and this windjoin reads formats up to 1"):
        made.epoch(2, {name: rows((2, 1)) for name in "ab"})


def test_want_of_room_fails_the_epoch_as_a_whole_and_leaves_nothing(tmp_path: Path) -> None:
    made = begun(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    given = {name: rows((2, 1)) for name in "ab"}
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, limits[1]))
        with pytest.raises(wj.LogError, match=r"the log cannot be written: .*: File too large"):
            made.epoch(2, given)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(Path(made.job.root).rglob(".*"))
    assert len(pairs(made.epoch(2, given))) == 5


def test_a_log_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    with pytest.raises(wj.LogError, match="the log cannot be read: "):
        Folder(str(tmp_path / "0")).read_json(".")
    with pytest.raises(wj.LogError, match="the log cannot be read: "):
        Folder(str(tmp_path)).map("0")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"slots": 0}, "slots=0: give a number of slots, 1 to 4096"),
        ({"slots": 2, "strategy": "ring"}, "strategy='ring' is not known here"),
        ({"slots": 2, "segment": 0}, "segment=0 is shorter than a tick"),
        ({"slots": 2, "strategy": "groups", "segment": 5}, "sends rows by their keys, not by time"),
        ({"slots": 2, "lateness": "2s"}, "lateness='2s'"),
        ({"slots": 2, "memory": "much"}, "memory='much': give bytes"),
        ({"slots": 2, "memory": 9, "shed": wj.Shedding(budget=0.8)}, "memory=9 and shed=: what is"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, options: Any, told: str) -> None:
    with pytest.raises(wj.QueryError, match=told):
        job_of(keyed(), dict.fromkeys("ab", SCHEMA), str(tmp_path), **options)


def test_groups_need_a_key(tmp_path: Path) -> None:
    with pytest.raises(wj.QueryError, match="sends equal keys to one slot, but no key is equal"):
        job_of(banded(), dict.fromkeys("ab", SCHEMA), str(tmp_path), slots=2, strategy="groups")


def test_too_many_partitions_have_no_numbers(tmp_path: Path) -> None:
    from windjoin.epochs.packing import pack_epoch

    a, b = (wj.stream(name, time="t", window=50) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"], exclude_self=True)
    made = cluster(query, tmp_path)
    manifest = deciding.decide(made.job, 0, "run0")
    with pytest.raises(wj.QueryError, match="partition 8192 with 1 rows"):
        list(pack_epoch(rows((1, 1)).to_batches(), made.job, manifest, [0, 1], 8192))


@pytest.mark.parametrize("build", [keyed, banded])
def test_owners_follow_what_slots_are_measured_to_do(tmp_path: Path, build: Any) -> None:
    """A slot that is slowed 4 times gets about a quarter of what others get."""
    made = cluster(build(), tmp_path, slots=3, **({} if build is keyed else {"segment": 4}))
    times = np.arange(0, 400_000, 7)
    shares = []
    for epoch in range(12):
        made.clock = float(epoch)
        made.epoch(epoch, {name: rows((400 * epoch, 1)) for name in "ab"}, router=follow)
        manifest = decide(made.job, epoch, made.run)
        units = np.arange(GROUPS) if build is keyed else (10**6 + times) // 4
        counts = np.bincount(manifest.own.owners.of(units), minlength=3)
        shares.append(counts / counts.sum())
        for slot, share in enumerate(shares[-1]):
            path = Path(made.job.log.path(manifest.folder, f"{slot}-0.load"))
            told = json.loads(path.read_text())
            path.write_text(
                json.dumps(told | {"seconds": share * (4 if slot == 0 else 1), "behind": 0})
            )
    assert np.allclose(shares[0], 1 / 3, atol=0.01)
    slowest = [max(4 * share[0], share[1], share[2]) for share in shares]
    best = 4 / 9  # what is left to a slot when all are done at once
    assert slowest[5] <= 1.5 * best
    assert slowest[-1] <= 1.4 * best


def test_a_slot_that_came_to_another_worker_is_not_taken_for_slow(tmp_path: Path) -> None:
    """What its worker had missed is most of what it took, however slow the machine is."""
    made = cluster(keyed(), tmp_path, slots=3)
    for epoch in range(8):
        made.clock = float(epoch)
        made.epoch(epoch, {name: rows((400 * epoch, 1)) for name in "ab"}, router=follow)
        manifest = decide(made.job, epoch, made.run)
        counts = np.bincount(manifest.own.owners.of(np.arange(GROUPS)), minlength=3)
        assert counts.max() <= counts.min() + 1
        for slot in range(3):
            path = Path(made.job.log.path(manifest.folder, f"{slot}-0.load"))
            told = json.loads(path.read_text())
            assert (told["behind"] > 0) == (told["how"] in ("rebuilt", "caught up", "warm"))
            own = {"cpu": 0.1, "seconds": 0.9, "behind": 0.0}
            if slot == epoch % 2:
                own = {"cpu": 0.3, "seconds": 2.7, "behind": 0.2}
            path.write_text(json.dumps(told | own))


@pytest.mark.parametrize("build", [keyed, banded])
def test_a_slot_that_was_given_nothing_is_looked_at_again(tmp_path: Path, build: Any) -> None:
    """A slot that stands still for a while has no work then, and its share some time after."""
    made = cluster(build(), tmp_path, slots=3, **({} if build is keyed else {"segment": 4}))
    shares = []
    for epoch in range(50):
        made.clock = float(epoch)
        made.epoch(epoch, {name: rows((400 * epoch, 1)) for name in "ab"}, router=follow)
        manifest = decide(made.job, epoch, made.run)
        units = np.arange(GROUPS) if build is keyed else 10**6 + np.arange(GROUPS)
        share = np.bincount(manifest.own.owners.of(units), minlength=3) / GROUPS
        shares.append(share[0])
        for slot in range(3):
            path = Path(made.job.log.path(manifest.folder, f"{slot}-0.load"))
            slower = 200 if slot == 0 and 2 <= epoch < 12 else 1
            path.write_text(
                json.dumps(
                    json.loads(path.read_text()) | {"seconds": share[slot] * slower, "behind": 0}
                )
            )
    assert min(shares[2:12]) == 0
    assert shares[-1] > 0.2


def test_the_stream_that_is_cheapest_to_align_with_becomes_master(tmp_path: Path) -> None:
    """As the router ATR decides it: the others, which follow, are copied."""
    made = cluster(banded(), tmp_path, strategy="atr")
    found: list[pa.RecordBatch] = []
    every: dict[str, list[pa.Table]] = {"a": [], "b": []}
    masters: list[int] = []
    for epoch in range(6):
        made.clock = float(epoch)
        given = {
            name: rows(*((20 * epoch + 20 * row // count, row % 3) for row in range(count)))
            for name, count in (("a", 2), ("b", 40 if epoch else 2))
        }
        found += made.epoch(epoch, given, router=follow)
        masters.append(decide(made.job, epoch, made.run).own.units.master)
        for name, table in given.items():
            every[name].append(table)
    assert masters[0] == masters[1] == 0
    assert masters[-1] == 1
    tables = {name: pa.concat_tables(parts) for name, parts in every.items()}
    expected = banded().run(tables)
    assert pairs(found) == sorted((r["a_n"], r["m"]) for r in expected.to_pylist())


@pytest.mark.parametrize("strategies", list(permutations(("groups", "atr", "psp"), 2)))
def test_a_run_by_another_strategy_goes_on_from_what_was_measured(
    tmp_path: Path, strategies: tuple[str, str]
) -> None:
    made = cluster(keyed(), tmp_path, strategy=strategies[0])
    found: list[pa.RecordBatch] = []
    for epoch in range(4):
        if epoch == 2:
            made.start(run="run1", slots=3, strategy=strategies[1])
        made.clock = float(epoch)
        found += made.epoch(epoch, {name: rows((epoch, 1)) for name in "ab"}, router=follow)
    assert len(pairs(found)) == 16


def test_segments_take_the_length_with_which_most_is_joined(tmp_path: Path) -> None:
    """Slots that are busy with copies of rows get longer segments, up to what is best."""
    made = cluster(banded(100), tmp_path, strategy="atr")
    lengths = []
    for epoch in range(60):
        made.clock = float(epoch)
        made.epoch(epoch, {n: rows((400 * epoch, 1)) for n in "ab"}, router=follow)
        manifest = decide(made.job, epoch, made.run)
        lengths.append(manifest.own.units.length)
        for slot in range(2):
            path = Path(made.job.log.path(manifest.folder, f"{slot}-0.load"))
            busy = 0.6 + abs(np.log2(lengths[-1] / 12)) / 10
            path.write_text(
                json.dumps(json.loads(path.read_text()) | {"seconds": busy, "behind": 0})
            )
    assert lengths[0] == 3
    assert 8 <= lengths[-1] <= 18
    assert lengths[-1] == lengths[-5]


def test_owners_of_stretches_equal_a_loop() -> None:
    chance = np.random.default_rng(0)
    owners = Owners(((EARLIEST, (0, 2, 1)), (-3, (1,)), (5, (3, 0))))
    low = chance.integers(-20, 20, 400)
    span = Span(low, low + chance.integers(0, 12, 400))
    copies = owners.copies(span, np.arange(400))
    found: dict[int, list[int]] = {}
    for row, slot in zip(copies.rows.tolist(), copies.hosts.tolist(), strict=True):
        found.setdefault(row, []).append(slot)
    for row in range(400):
        units = np.arange(span.low[row], span.high[row] + 1)
        assert found[row] == sorted(set(owners.of(units).tolist()))
        for slot in range(4):
            one = Span(span.low[row : row + 1], span.high[row : row + 1])
            assert owners.owned(one, slot).tolist() == [slot in found[row]]
