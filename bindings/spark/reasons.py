"""What ended a continuous join: the error itself, without what Spark wraps around it."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException
from windjoin import errors

# what ends a traceback that a Python worker leaves, up to the next one or that of the JVM
_RAISED = re.compile(
    r"^windjoin\.errors\.(\w+): (.*?)"
    r"(?=^During handling |^The above exc|^Traceback |^\tat |^JVM stacktrace|\Z)",
    re.MULTILINE | re.DOTALL,
)


def reason_of(error: BaseException | None) -> BaseException | None:
    """The error of windjoin, or of the function that is the sink; None if it is one of Spark.

    >>> from pyspark.errors import PythonException
    >>> told = "In a worker:\\nwindjoin.errors.LogError: /log/0/1 is missing"
    >>> reason_of(PythonException(told))
    LogError('/log/0/1 is missing')
    >>> reason_of(PythonException("In a worker:\\nZeroDivisionError: division by zero"))
    """
    if type(error).__module__ == "py4j.protocol":  # a client of Spark Connect has no py4j
        return None
    if not isinstance(error, PySparkException):
        return error if isinstance(error, Exception) else None
    raised = _RAISED.findall(str(error))
    if not raised:
        return None
    name, told = raised[-1]  # those before are its causes
    kind = getattr(errors, name, None)
    if not isinstance(kind, type) or not issubclass(kind, errors.WindjoinError):
        return None
    if issubclass(kind, errors.LateRowError):  # which has rows, too
        kind = errors.DataError
    return kind(told.strip())
