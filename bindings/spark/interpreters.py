"""Which Python the workers of Spark run: it has to have what the driver has."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from windjoin.spark.meter import is_classic
from windjoin.spark.settings import SparkVersionError

ASK = """
import sys
print("%d.%d" % sys.version_info[:2], flush=True)
import windjoin
print(windjoin.__version__)
"""
SECONDS = 60


def check_python(spark: Any) -> None:
    """Refuse, before there is a job, workers of this machine that could not do its tasks.

    Those of other machines are asked by the first task that reaches them.
    """
    if not is_classic(spark):
        return
    context = spark.sparkContext
    if not str(context.master).startswith("local"):
        return
    path = context.environment.get("PYTHONPATH", "")
    wrong = _lack_of(str(context.pythonExec), path)
    if wrong:
        raise SparkVersionError(
            f"workers of this session run {context.pythonExec}, {wrong}, and this program"
            f" {sys.executable}: make the session with windjoin.spark.configure(builder), or set"
            f" PYSPARK_PYTHON={sys.executable} before it is made"
        )


@cache
def _lack_of(program: str, path: str) -> str:
    """What a Python has not that this one has; empty: nothing.  ``path``: of Spark's settings."""
    found = shutil.which(program)
    if found is None:
        return "which is not there"
    if Path(found).absolute().parent == Path(sys.executable).absolute().parent:
        return ""  # links of one environment
    folders = [folder for folder in (path, os.environ.get("PYTHONPATH")) if folder]
    given = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)} if folders else None
    asked = subprocess.run(
        [found, "-c", ASK], capture_output=True, text=True, timeout=SECONDS, env=given
    )
    said = asked.stdout.split()
    own = "{}.{}".format(*sys.version_info)
    if not said:
        return "which does not run"
    if said[0] != own:
        return f"which is Python {said[0]} (this is {own})"
    if len(said) == 1:
        return "which cannot import windjoin"
    if said[1] != version("windjoin"):
        return f"which has windjoin {said[1]} (this is {version('windjoin')})"
    return ""
