"""What a Python worker of Spark keeps from one task to the next; no Spark is needed."""

from __future__ import annotations

import gc
import importlib.metadata
import pickle
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from windjoin.spark import workers
from windjoin.spark.bootstrap import bootstrap


@pytest.fixture(autouse=True)
def nothing_left_out() -> Iterator[None]:
    yield
    gc.unfreeze()


def work(batches: Any, partition: int, meter: Any) -> list[Any]:
    return [batches, partition, meter]


def test_what_a_task_imports_is_left_out_of_later_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    workers.settle()
    before = gc.get_freeze_count()
    late = ModuleType("late")
    late.rows = [[number] for number in range(10_000)]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "late", late)
    workers.settle()
    assert gc.get_freeze_count() > before + 9_000  # some of what was there is gone


def test_searches_go_on_for_what_comes_later() -> None:
    workers.settle()
    before = gc.get_freeze_count()
    kept = [[number] for number in range(10_000)]
    workers.settle()
    assert gc.get_freeze_count() <= before
    assert len(kept) == 10_000


def test_a_worker_compares_versions_and_opens_its_work_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = importlib.metadata.version("windjoin")
    task = bootstrap(pickle.dumps(work), release)
    assert task([1]) == [[1], 0, None]
    asked: list[str] = []
    monkeypatch.setattr(importlib.metadata, "version", asked.append)
    assert task([2]) == [[2], 0, None]
    assert not asked
    assert workers.opened(pickle.dumps(Job())) is workers.opened(pickle.dumps(Job()))


class Job:
    """Something to open."""
