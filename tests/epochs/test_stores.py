"""Logs in a store of objects: without links, renames, and objects that are created only once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.epochs.reading import open_log
from windjoin.epochs.storage import Folder, local_path
from windjoin.epochs.stores import StoreFolder, folder_at, refuse_store

from tests.epochs.cluster import Cluster
from tests.epochs.objects import Objects, store
from tests.epochs.test_epoch_log import SCHEMA, keyed, pairs, rows

BUCKET = "s3://bucket/logs"


@pytest.fixture
def objects(monkeypatch: Any) -> Iterator[Objects]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with store() as server:
        yield server


def test_objects_are_written_whole_and_read_in_parts(objects: Objects) -> None:
    folder = folder_at(BUCKET + objects.options)
    assert isinstance(folder, StoreFolder)
    assert folder.names() == []
    assert not folder.has("1/a")
    assert folder.text("1/a") is None
    big = bytes(range(256)) * 50_000
    assert folder.put("1/a", [b"some", pa.py_buffer(b" words")])
    assert not folder.put("1/a", [b"others"])
    assert folder.put("1/2/big", [big])
    assert folder.text("1/a") == b"some words"
    assert folder.map("1/2/big").to_pybytes() == big
    assert folder.ending("1/2/big", 300).to_pybytes() == big[-300:]
    assert folder.ending("1/a").to_pybytes() == b"some words"
    assert folder.map("1/../1/a").to_pybytes() == b"some words"
    assert (folder.names(), folder.names(1)) == (["1"], ["2", "a"])
    folder.remove("1")
    assert [key for key in objects.objects if not key.endswith("/")] == []
    with pytest.raises(wj.LogError, match=r"s3://bucket/logs/1/a is missing, and the window"):
        folder.map("1/a")
    objects.is_full = True
    with pytest.raises(wj.LogError, match=r"the log cannot be written: s3://bucket/logs/9: "):
        folder.put("9", [b"x"])


def test_epochs_in_a_store_give_what_epochs_in_a_folder_give(
    objects: Objects, tmp_path: Path
) -> None:
    """Over a restart with more slots, an epoch that is done again, and files that are deleted."""
    found: dict[str, list[Any]] = {}
    for name, root in (("folder", str(tmp_path)), ("store", BUCKET + objects.options)):
        made = Cluster(keyed(30), dict.fromkeys("ab", SCHEMA), root, 1)
        found[name] = []
        for epoch in range(12):
            if epoch in (0, 6):
                made.start(run=f"run{epoch}", slots=2 + epoch // 6, strategy="groups")
            given = {n: rows((10 * epoch, 1), (10 * epoch + 5, epoch % 3)) for n in "ab"}
            if epoch == 6:
                made.epoch(epoch, given, until=1)
                made.run = "again"
            found[name].append(pairs(made.epoch(epoch, given, again=[1])))
        if name == "store":
            log = open_log(root)
            assert (log.last.epoch, log.last.slots) == (11, 3)
            assert log.rows("a").num_rows > 0
            epochs = {key.split("/")[3] for key in objects.objects if key.count("/") > 4}
            assert len(epochs) <= 7
    assert sum(map(len, found["folder"])) > 50
    assert found["folder"] == found["store"]


def test_tasks_that_write_at_once_leave_one_whole_object(objects: Objects) -> None:
    folder = folder_at(BUCKET + objects.options)
    writers = [
        threading.Thread(target=folder.put, args=("one", [b"rows" * 1000])) for _ in range(6)
    ]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert folder.text("one") == b"rows" * 1000


def test_what_stores_cannot_do_is_refused() -> None:
    with pytest.raises(wj.QueryError, match=r"use windjoin.spark.start, whose driver decides"):
        refuse_store("s3://bucket/log")
    refuse_store("/data/log")
    with pytest.raises(wj.LogError, match="mount ftp: as a folder"):
        folder_at("ftp://bucket/log").names()
    with pytest.raises(wj.LogError, match=r"log='s3://bucket/log' is no address"):
        folder_at("s3://someone:secret@bucket/log?nonsense=1").names()
    assert type(folder_at("/data")) is Folder
    assert local_path("s3a://bucket/log") == "s3://bucket/log"
