"""kill -9 of drivers, executors and Python workers of a continuous join: every result once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cluster import MARKS
from tests.cluster.machines import SECONDS, Cluster
from tests.cluster.stream_driver import LATENESS, QUERIES
from tests.spark.queries import rows_of, table

ROOT = Path(__file__).parent.parent.parent
pytestmark = MARKS[1:]  # many kills are for a command of their own: pytest -m slow tests/cluster
KINDS = ("driver", "executor", "worker", "worker")


class Victims:
    """The processes of one driver on a cluster."""

    def __init__(
        self, cluster: Cluster, folder: Path, how: str, query: str, chance: random.Random
    ) -> None:
        self.cluster, self.folder, self.how, self.chance = cluster, folder, how, chance
        self.query = query
        self.kills: Counter[str] = Counter()
        self.driver = self.begin()

    def begin(self) -> subprocess.Popen[bytes]:
        """A driver with as many slots as chance will have it."""
        slots, strategy = self.chance.choice("123"), self.chance.choice(["groups", "atr", "ctr"])
        command = [sys.executable, "-m", "tests.cluster.stream_driver", self.cluster.url]
        with open(self.folder / "driver.log", "ab") as log:
            return subprocess.Popen(
                [*command, str(self.folder), slots, strategy, self.how, self.query],
                cwd=ROOT, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def kill(self, kind: str) -> None:
        """Kill one process of a kind, if there is any."""
        if kind == "driver":
            os.killpg(self.driver.pid, signal.SIGKILL)
            self.driver.wait()
            self.kills[kind] += 1
            self.driver = self.begin()
            return
        found = [one for one in self._children() if self._is(one, kind)]
        if found:
            self.chance.choice(found).kill()
            self.kills[kind] += 1

    def _children(self) -> list[psutil.Process]:
        workers = [psutil.Process(one.pid) for one in self.cluster.processes if one.poll() is None]
        return [child for one in workers for child in one.children(recursive=True)]

    def _is(self, process: psutil.Process, kind: str) -> bool:
        try:
            line = " ".join(process.cmdline())
            if kind == "executor":
                return "CoarseGrainedExecutorBackend" in line
            parent = process.parent()
            own = parent is not None and "pyspark.daemon" in " ".join(parent.cmdline())
            return own and "pyspark.daemon" in line
        except psutil.NoSuchProcess:
            return False


def committed(folder: Path) -> int:
    """How many epochs Spark knows to be done."""
    return len(list((folder / "checkpoint" / "commits").glob("[0-9]*")))


def write(folder: Path, tables: dict[str, pa.Table], epochs: int) -> None:
    """A file of each stream for each epoch, taken in that order: by the time it was written."""
    began = int(time.time()) - epochs
    for name, rows in tables.items():
        (folder / name).mkdir()
        for epoch in range(epochs):
            first, last = (len(rows) * e // epochs for e in (epoch, epoch + 1))
            path = folder / name / f"{epoch:05d}.parquet"
            pq.write_table(rows.slice(first, last - first), path)
            os.utime(path, (began + epoch, began + epoch))


def the_end(number: int, rows: pa.Table, epochs: int) -> pa.Table:
    """Rows for epochs of their own that match nothing, and before which all is final."""
    count = len(rows) // epochs
    far = {"ts": [2 * LATENESS] * count, "k": [-1 - number] * count, "n": range(count)}
    ends = [{**far, "ts": [t + step for t in far["ts"]]} for step in (0, 1)]
    tables = [rows.slice(0, count).to_pydict() | end for end in ends]
    return pa.concat_tables([rows, *(pa.table(one, schema=rows.schema) for one in tables)])


def survive(
    cluster: Cluster, folder: Path, how: str, kills: int, seed: int, query: str = "chain"
) -> Victims:
    """Run to the end with so many kills on the way."""
    epochs = 2 * kills + 6
    names = QUERIES[query]().names
    tables = {n: table(s, 20 * epochs, ordered=True) for s, n in enumerate(names)}
    ended = {n: the_end(s, rows, epochs) for s, (n, rows) in enumerate(tables.items())}
    write(folder, ended, epochs + 2)
    chance = random.Random(seed)
    victims = Victims(cluster, folder, how, query, chance)
    try:
        done, since = 0, time.monotonic()
        while victims.driver.poll() is None:
            now = committed(folder)
            if now > done and victims.kills.total() < kills:
                time.sleep(chance.random() * 0.5)
                victims.kill(chance.choice(KINDS))
                done, since = now + 1, time.monotonic()
            if time.monotonic() - since > 4 * SECONDS and now <= done:
                raise TimeoutError((folder / "driver.log").read_text(errors="replace")[-4000:])
            time.sleep(0.05)
        assert victims.driver.returncode == 0, (folder / "driver.log").read_text()[-4000:]
    finally:
        if victims.driver.poll() is None:
            os.killpg(victims.driver.pid, signal.SIGKILL)
    expected = rows_of(QUERIES[query]().run(tables))
    assert expected.total() > 100
    assert rows_of(results(folder, how)) == expected
    return victims


def results(folder: Path, how: str) -> pa.Table:
    """What the sink has: Spark's own names the files that count."""
    out = folder / "out"
    if how == "start":
        return pq.read_table(out)
    named: dict[str, Any] = {}
    logged = (out / "_spark_metadata").glob("[0-9]*")
    for path in sorted(logged, key=lambda path: int(path.stem)):
        for line in path.read_text().splitlines()[1:]:
            named[json.loads(line)["path"]] = None
    files = [name.removeprefix("file://") for name in named]
    return pa.concat_tables([pq.read_table(f, partitioning=None) for f in files])


@pytest.mark.cluster
@pytest.mark.parametrize(("how", "kills", "query"), [("start", 7, "chain"), ("stream", 3, "kept")])
def test_ten_kills_lose_and_double_nothing(
    cluster: Cluster, tmp_path: Path, how: str, kills: int, query: str
) -> None:
    victims = survive(cluster, tmp_path, how, kills, 5, query)
    assert victims.kills.total() == kills


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "seed", "query"),
    [("start", 1, "chain"), ("stream", 2, "chain"), ("start", 3, "kept"), ("stream", 4, "kept")],
)
def test_two_hundred_kills_lose_and_double_nothing(
    cluster: Cluster, tmp_path: Path, how: str, seed: int, query: str
) -> None:
    victims = survive(cluster, tmp_path, how, 50, seed, query)
    assert victims.kills.total() == 50
