"""Hypothesis profiles, chosen by ``HYPOTHESIS_PROFILE``: ``default``, ``thorough``, ``first``.

With ``-n`` a file stays in one process, so that what it compiles or loads is made once; so do all
files of a folder that shares a Spark session.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from .command import QUERY
from .effort import QUICK, THOROUGH

for _profile, _examples in (("default", QUICK), ("thorough", THOROUGH)):
    settings.register_profile(
        _profile,
        max_examples=_examples,
        deadline=None,  # the first call of a user's function compiles it
        print_blob=True,
        derandomize=os.environ.get("CI") == "true",
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.function_scoped_fixture,  # set once per test on purpose
        ],
    )
# A first answer: is there a failure at all?
settings.register_profile(
    "first", settings.get_profile("default"), phases=[Phase.explicit, Phase.reuse, Phase.generate]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

SHARED = ("tests/spark", "tests/cluster")  # folders with one session for all


def process_of(test: str) -> str:
    """What runs in one process with a test: its file, or its folder."""
    file = test.split("::", 1)[0]
    return next((folder for folder in SHARED if file.startswith(f"{folder}/")), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """As ``--dist loadfile``, but for those folders; marks for that are lost on pytest 9.2."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class LoadProcess(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return process_of(nodeid)

    return LoadProcess(config, log)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let blocks of partial results end every few rows, so that small cases cross their borders."""
    monkeypatch.setattr(import_module("windjoin.kernels.hops"), "BLOCK_ROWS", 7)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two small streams as files, and a query over them for the command."""
    (tmp_path / "a.csv").write_text("t,k,x\n1,u,1.5\n2,v,2.5\n30,u,3.5\n")
    (tmp_path / "b.csv").write_text("t,k,y\n5,u,10\n6,v,20\n7,w,30\n")
    (tmp_path / "query.toml").write_text(QUERY)
    return tmp_path
