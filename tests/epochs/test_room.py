"""How much memory a worker may use for its sessions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from windjoin.epochs import room as module

MEASURED = module.room.__wrapped__


def test_of_a_core_a_quarter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIMITS", ())
    monkeypatch.delenv(module.OF_SPARK, raising=False)
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert MEASURED() == whole // len(os.sched_getaffinity(0)) // 4


def test_limits_of_containers_and_of_spark_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(module.OF_SPARK, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(module, "LIMITS", (str(tmp_path / "none"), str(limit)))
    limit.write_text("max\n")
    unlimited = MEASURED()
    limit.write_text("80000000\n")
    assert MEASURED() == 10_000_000 < unlimited
    monkeypatch.setenv(module.OF_SPARK, "4")
    assert MEASURED() == 1 << 20
