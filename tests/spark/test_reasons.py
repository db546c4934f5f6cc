"""What ended a continuous join is told without what Spark wraps around it."""

from __future__ import annotations

import windjoin as wj
from py4j.protocol import Py4JError
from pyspark.errors import PythonException
from windjoin.spark.reasons import reason_of

WORKER = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "one.py", line 1
windjoin.errors.LogError: /log/0/1 is missing

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "other.py", line 2
windjoin.errors.%s: stream 'a', row 3:
more in another line

\tat org.apache.spark.api.python.BasePythonRunner
"""


def test_of_errors_that_follow_from_each_other_the_last_is_told() -> None:
    found = reason_of(PythonException(WORKER % "FunctionError"))
    assert type(found) is wj.FunctionError
    assert str(found) == "stream 'a', row 3:\nmore in another line"


def test_late_rows_are_told_though_their_numbers_are_not_known() -> None:
    found = reason_of(PythonException(WORKER % "LateRowError"))
    assert type(found) is wj.DataError


def test_an_error_of_the_jvm_is_none_of_ours() -> None:
    assert reason_of(Py4JError("An error occurred while calling o1.save")) is None
    assert reason_of(PythonException("windjoin.errors.NoSuchError: what")) is None
    assert reason_of(None) is None
    sink = ZeroDivisionError("in the sink")
    assert reason_of(sink) is sink
