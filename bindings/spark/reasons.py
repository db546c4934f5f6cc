"""What ended a continuous join: the error itself, without what Spark wraps around it."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException
from windjoin import errors

# the last line of the traceback that a Python worker leaves
_RAISED = re.compile(r"^windjoin\.errors\.(\w+): (.*)", re.MULTILINE | re.DOTALL)


def reason_of(error: BaseException | None) -> BaseException | None:
    """The error of windjoin, or of the function that is the sink; None if it is one of Spark.

    >>> from pyspark.errors import PythonException
    >>> told = "In a worker:\\nwindjoin.errors.LogError: /log/0/1 is missing"
    >>> reason_of(PythonException(told))
    LogError('/log/0/1 is missing')
    >>> reason_of(PythonException("In a worker:\\nZeroDivisionError: division by zero"))
    """
    if not isinstance(error, PySparkException):
        return error if isinstance(error, Exception) else None
    raised = _RAISED.search(str(error))
    kind = None if raised is None else getattr(errors, raised[1], None)
    if raised is None or not isinstance(kind, type) or not issubclass(kind, errors.WindjoinError):
        return None
    return kind(raised[2].strip())
