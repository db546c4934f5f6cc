"""`read_log`: what a continuous join holds, as a DataFrame."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession
from windjoin.epochs.reading import open_log


def read_log(path: str, stream: str | None = None, *, spark: Any = None) -> Any:
    """What the log of a continuous join holds, as a batch DataFrame.

    ``path``: the folder that ``log=`` named, that of one query in it, or a checkpoint of `start`.
    ``stream``: the rows of that stream in the window, with the epoch and slot they are kept in.
    Without: for each file and stream how many rows it has, from when to when, in how many bytes.
    """
    found = open_log(path)
    table = found.sections() if stream is None else found.rows(stream)
    session = SparkSession.getActiveSession() if spark is None else spark
    assert session is not None
    return session.createDataFrame(table)
