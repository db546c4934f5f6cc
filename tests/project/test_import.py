"""``import windjoin`` is cheap: it loads no compiler, no Spark, nothing that only some need."""

from __future__ import annotations

import json
import subprocess
import sys

LATER = {"numba", "llvmlite", "pyspark", "pandas", "polars", "duckdb", "rich", "windjoin.kernels"}
MOST_MODULES = 60
REPORT = """
import sys, time
def seconds(name):
    began = time.process_time()
    __import__(name)
    return time.process_time() - began
theirs = seconds("pyarrow")
before = set(sys.modules)
ours = seconds("windjoin")
import json
print(json.dumps([theirs, ours, sorted(sys.modules.keys() - before)]))
"""


def imported() -> tuple[float, float, list[str]]:
    """CPU seconds for pyarrow and, after it, for windjoin; the modules that windjoin added."""
    done = subprocess.run(
        [sys.executable, "-c", REPORT], capture_output=True, text=True, check=True
    )
    theirs, ours, added = json.loads(done.stdout)
    return theirs, ours, added


def test_import_loads_only_what_every_query_needs() -> None:
    _, _, added = imported()
    assert LATER.isdisjoint(added)
    assert len(added) <= MOST_MODULES, added


def test_import_costs_less_than_pyarrow_itself() -> None:
    """pyarrow takes about 0.2 s, windjoin may take 0.25 s more; CPU time, the best of three."""
    ratios = [ours / theirs for theirs, ours, _ in (imported() for _ in range(3))]
    assert min(ratios) < 1.0
