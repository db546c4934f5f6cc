"""What users do with runs of `start`: they go on, in other ways, and with what went wrong."""

from __future__ import annotations

import os
import resource
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
import windjoin as wj
import windjoin.spark as wjs

from tests.spark import MARKS
from tests.spark.queries import rows_of
from tests.spark.test_stream import Sources

pytestmark = MARKS
NOW = {"availableNow": True}
SECOND = 1_000_000
YEAR = 365 * 86_400 * SECOND
BEGIN = 1_700_000_000 * SECOND


def query(window: str = "5s", **more: Any) -> wj.Query:
    a, b = (wj.stream(name, time="t", window=window) for name in "ab")
    return wj.join(a, b, on=a["k"] == b["k"], select=[a["n"], b["n"].alias("m")], **more)


def rows(number: int, count: int = 40, first: int | None = None) -> pa.Table:
    """Those of an epoch: four seconds of event time, if it does not begin elsewhere."""
    start = BEGIN + number * 4 * SECOND if first is None else first
    times = [start + row * 4 * SECOND // max(1, count) for row in range(count)]
    numbers = [100 * number + row for row in range(count)]
    keys = [n * 7 % 5 for n in numbers]
    stamps = pa.array(times, pa.timestamp("us", "UTC"))
    return pa.table([stamps, pa.array(keys, pa.int64()), pa.array(numbers, pa.int64())], "tkn")


class Epochs:
    """Files of two streams, an epoch each, and runs that read them."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder, self.count = spark, folder, 0
        self.given: dict[str, list[pa.Table]] = {"a": [], "b": []}
        self.sources = Sources(spark, folder, {name: rows(0, 1) for name in "ab"})

    def add(self, a: pa.Table | None = None, b: pa.Table | None = None) -> None:
        """The next epoch."""
        for name, own in (("a", a), ("b", b)):
            self.given[name].append(rows(self.count) if own is None else own)
            self.sources.tables[name] = self.given[name][-1]
        self.sources.add(self.count, 0, 1)
        self.count += 1

    @property
    def tables(self) -> dict[str, pa.Table]:
        return {name: pa.concat_tables(parts) for name, parts in self.given.items()}

    def begin(self, asked: wj.Query, frames: Any = None, **options: Any) -> wjs.Run:
        places = {"checkpoint": str(self.folder / "checkpoint"), "path": str(self.folder / "out")}
        given = {**places, "trigger": NOW, "slots": 2, **options}
        return wjs.start(asked, frames or self.sources.frames(), **given)

    def run(self, asked: wj.Query, frames: Any = None, **options: Any) -> wjs.Run:
        run = self.begin(asked, frames, **options)
        assert run.await_termination(300)
        return run

    def found(self, out: str = "out") -> Counter[Any]:
        return rows_of(self.spark.read.parquet(str(self.folder / out)))


@pytest.fixture
def epochs(spark: Any, tmp_path: Path) -> Epochs:
    return Epochs(spark, tmp_path)


def test_a_run_goes_on_with_other_slots_and_strategies(epochs: Epochs) -> None:
    for slots, strategy in [(2, "groups"), (3, "atr"), (1, "ctr"), (4, "psp"), (2, "auto")]:
        epochs.add()
        epochs.add()
        run = epochs.run(query(), slots=slots, strategy=strategy)
        assert len(run.hosts) == slots
        assert epochs.found() == rows_of(query().run(epochs.tables))
    assert run.status()["streams"]["a"]["rows"] == 400  # all, those before this run among them


def test_another_query_is_refused_before_anything_runs(epochs: Epochs) -> None:
    epochs.add()
    epochs.run(query())
    told = r"(?s)is of another query: stream 'a' was .*window='5s'.*now .*window='6s'.*begin anew"
    with pytest.raises(wj.QueryError, match=told):
        epochs.begin(query("6s"))
    frames = epochs.sources.frames()
    frames["a"] = frames["a"].selectExpr("t", "k", "cast(n as string) n")
    told = "columns of 'a' was .*n: int64, now .*n: string; go on with the query as it was"
    with pytest.raises(wj.QueryError, match=told):
        epochs.begin(query(), frames)


def test_batch_rows_may_come_in_another_order_and_no_others(epochs: Epochs) -> None:
    still = pa.concat_tables([rows(number) for number in range(4)])
    for half in range(2):
        epochs.add()
        epochs.add()
        given = epochs.spark.createDataFrame(still.take(list(range(160))[:: 1 - 2 * half]))
        frames = epochs.sources.frames() | {"b": given}
        epochs.run(query(), frames)
    assert epochs.found() == rows_of(query().run({**epochs.tables, "b": still}))
    frames["b"] = epochs.spark.createDataFrame(pa.concat_tables([still, rows(4)]))
    told = r"rows of batch DataFrames was 160 rows, static-\w+, now 200 rows, static-"
    with pytest.raises(wj.QueryError, match=told):
        epochs.begin(query(), frames)


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ("deleted", r"/1 is missing, and the window .*restore it from a copy of the log, or begin"),
        ("cut off", r"/1 is cut off: 100 bytes, and no footer at their end; restore it from"),
        ("manifest", r"manifest.json is cut off or damaged; restore it from a copy of the log"),
        ("all", r"has no epoch 2, and epoch 3 builds upon it: the log was deleted, or is not that"),
    ],
)
def test_a_broken_log_is_named_by_the_run(epochs: Epochs, broken: str, told: str) -> None:
    for _ in range(3):
        epochs.add()
    asked = query("20s")
    epochs.run(asked)
    epochs.add()
    log = epochs.folder / "checkpoint" / "windjoin"
    file = sorted(log.rglob("1"))[1]
    if broken == "deleted":
        file.unlink()
        with pytest.raises(wj.LogError, match="/1 is missing"):
            wjs.read_log(str(log))
    elif broken == "cut off":
        os.truncate(file, 100)
    elif broken == "manifest":
        os.truncate(sorted(log.rglob("manifest.json"))[-1], 50)
    else:
        shutil.rmtree(log)
    with pytest.raises(wj.LogError, match=told) as raised:
        epochs.run(asked)
    assert "Traceback" not in str(raised.value)


def test_what_ended_a_run_is_in_its_status(epochs: Epochs) -> None:
    epochs.add()
    broken = epochs.folder / "log"
    run = epochs.begin(query(), log=str(broken))
    assert run.await_termination(300)
    shutil.rmtree(broken)
    epochs.add()
    run = epochs.begin(query(), log=str(broken))
    with pytest.raises(wj.LogError) as raised:
        run.await_termination(300)
    assert run.status()["exception"] == str(raised.value)
    assert not run.status()["active"]


def python_workers() -> list[psutil.Process]:
    """The daemon of Spark's workers, which has all others from itself."""
    below = psutil.Process().children(recursive=True)
    alive = [one for one in below if one.status() != psutil.STATUS_ZOMBIE]
    return [one for one in alive if "pyspark.daemon" in " ".join(one.cmdline())]


def test_a_run_goes_on_when_there_is_room_again(epochs: Epochs) -> None:
    epochs.add()
    epochs.run(query())  # there are workers
    processes = python_workers()
    assert processes
    before = [one.rlimit(psutil.RLIMIT_FSIZE) for one in processes]
    epochs.add()
    epochs.add()
    for process, (_, most) in zip(processes, before, strict=True):
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (64, most))
    try:
        told = r"the log cannot be written: .*: File too large; the epoch fails as a whole and is"
        with pytest.raises(wj.LogError, match=told):
            epochs.run(query())
    finally:
        for process in python_workers():
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, before[0])
    assert not list((epochs.folder / "checkpoint" / "windjoin").rglob(".*"))
    epochs.run(query())
    assert epochs.found() == rows_of(query().run(epochs.tables))


@pytest.mark.parametrize("strategy", ["groups", "atr", "ctr", "psp"])
def test_times_may_jump_by_years(epochs: Epochs, strategy: str) -> None:
    for jump in (0, 10, 40, 40):
        number = epochs.count
        first = BEGIN + jump * YEAR + number * 4 * SECOND
        epochs.add(*(rows(number, first=first) for _ in "ab"))
    run = epochs.run(query(), strategy=strategy)
    assert epochs.found() == rows_of(query().run(epochs.tables))
    assert run.status()["window_epochs"] == 1


@pytest.mark.parametrize("strategy", ["groups", "atr", "ctr", "psp"])
def test_epochs_may_have_no_rows(epochs: Epochs, strategy: str) -> None:
    none = rows(0, 0)
    for a, b in ((none, none), (rows(0), none), (none, rows(0)), (none, none), (rows(1), rows(1))):
        epochs.add(a, b)
    run = epochs.run(query(), strategy=strategy)
    assert len(run.history) == 5
    assert epochs.found() == rows_of(query().run(epochs.tables))


def test_late_rows_are_counted_with_the_epoch_that_brings_them(epochs: Epochs) -> None:
    epochs.add()
    epochs.add()
    untimed = rows(2, 3).set_column(0, "t", pa.nulls(3, pa.timestamp("us", "UTC")))
    late = pa.concat_tables([rows(0, 7), untimed, rows(2)])
    epochs.add(late)
    rejected = epochs.folder / "rejected"
    asked = query()
    run = epochs.run(asked, lateness="1s", rejected=str(rejected))
    counts = {"rows": 130, "late": 7, "null_time": 3, "unmatchable": 0}
    assert run.status()["streams"]["a"] == counts
    assert "a: 130 rows, 7 late, 3 without time" in wjs.explain(asked)
    kept = epochs.spark.read.parquet(str(rejected / "a")).groupBy("rejected_as").count()
    assert rows_of(kept) == Counter([("late", 7), ("null time", 3)])
    assert not (rejected / "b").exists()


def test_a_silent_source_is_waited_for_no_longer_than_idle(spark: Any, epochs: Epochs) -> None:
    a = epochs.sources.frames()["a"]
    for number in range(5):
        epochs.add(b=rows(0) if number == 0 else rows(number, 0))
    for idle, held in ((None, 4), ("1ms", 2)):
        frames = {"a": a, "b": epochs.sources.frames()["b"]}
        name = f"checkpoint {idle}"
        options = {"checkpoint": str(epochs.folder / name), "sink": "noop", "path": None}
        run = epochs.run(query(), frames, idle=idle, **options)
        marks = run.status()["watermarks"]
        assert (marks["b"] == marks["a"]) == (idle is not None)
        assert run.status()["window_epochs"] == held


def test_a_run_is_stopped_and_goes_on(epochs: Epochs) -> None:
    for _ in range(4):
        epochs.add()
    run = epochs.begin(query(), trigger=None)
    run.query.processAllAvailable()
    assert not run.await_termination(0.1)
    assert run.status()["active"]
    run.stop()
    assert run.await_termination(60)
    assert run.status()["exception"] is None
    epochs.add()
    epochs.run(query())
    assert epochs.found() == rows_of(query().run(epochs.tables))


def test_what_are_no_folders_and_no_epochs_is_refused(epochs: Epochs) -> None:
    file = epochs.folder / "file"
    file.touch()
    for option in ("checkpoint", "path", "log", "rejected"):
        with pytest.raises(wj.QueryError, match=f"{option}='.*file' is a file; give the path of"):
            epochs.begin(query(), **{option: str(file)})
        with pytest.raises(wj.QueryError, match=f"{option}='': give the path of a folder"):
            epochs.begin(query(), **{option: ""})
    with pytest.raises(wj.QueryError, match="an epoch of a join ends before the next one begins"):
        epochs.begin(query(), trigger={"continuous": "1 second"})
