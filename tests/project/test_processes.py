"""Which tests share a process when several run side by side."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.conftest import process_of

CASE = """
import os
import pytest

@pytest.mark.parametrize("number", range(6))
def test_where_it_runs(number):
    print(f"<{os.path.basename(__file__)} {os.environ['PYTEST_XDIST_WORKER']}>")
"""
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("test", "process"),
    [
        ("tests/spark/test_join.py::test_a[x::y/z]", "tests/spark"),
        ("tests/cluster/test_connect.py::test_a", "tests/cluster"),
        ("tests/test_spark/test_a.py::test_b", "tests/test_spark/test_a.py"),
        ("tests/kernels/test_bands.py::test_b[1]", "tests/kernels/test_bands.py"),
    ],
)
def test_files_stay_together_and_so_do_folders_with_a_session(test: str, process: str) -> None:
    assert process_of(test) == process


def test_pytest_deals_them_out_so(tmp_path: Path) -> None:
    """As mere marks once did not, unseen, from one version of pytest to the next."""
    (tmp_path / "tests" / "spark").mkdir(parents=True)
    names = (
        "tests/spark/test_a.py",
        "tests/spark/test_b.py",
        "tests/test_c.py",
        "tests/test_d.py",
    )
    for name in names:
        (tmp_path / name).write_text(CASE)
    text = (ROOT / "tests" / "conftest.py").read_text()
    text = text.replace("from .command import QUERY", "QUERY = ''")
    text = text.replace("from .effort import QUICK, THOROUGH", "QUICK, THOROUGH = 1, 1")
    (tmp_path / "conftest.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", "-rP", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    workers = defaultdict(set)
    for line in done.stdout.splitlines():
        if line.startswith("<"):
            name, worker = line.strip("<>").split()
            workers[name].add(worker)
    assert len(workers) == 4
    assert workers["test_a.py"] == workers["test_b.py"]
    assert all(len(found) == 1 for found in workers.values())
