"""Everything windjoin raises on purpose, and how its messages name things.

A message says what is wrong, where (stream, column, row, value) and what would be right.
``docs/errors.md`` lists them all with cause and cure.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence


class WindjoinError(Exception):
    """Base of every error windjoin raises on purpose.

    >>> issubclass(QueryError, WindjoinError) and issubclass(QueryError, ValueError)
    True
    """


class QueryError(WindjoinError, ValueError):
    """The query itself is wrong, whatever the data: raised when it is built."""


class SchemaError(WindjoinError, TypeError):
    """The query does not fit the columns and types of the data: raised when it is bound."""


class DataError(WindjoinError, ValueError):
    """A value cannot be used: the message names stream, column or expression, row and value."""


class LateRowError(DataError):
    """Rows came too late, and the session was opened with ``on_late="raise"``.

    ``stream`` is their stream, ``rows`` their numbers in the push, which was refused whole.
    """

    def __init__(self, message: str, stream: str, rows: Sequence[int]) -> None:
        super().__init__(message)
        self.stream = stream
        self.rows = rows

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (str(self), self.stream, self.rows)


class FunctionError(WindjoinError, RuntimeError):
    """A function of the user's raised for rows of a result: its exception is ``__cause__``."""


class InputError(WindjoinError, ValueError):
    """What was handed in as a table is not one, or cannot be read."""


class SessionError(WindjoinError, RuntimeError):
    """A session is used in a way it cannot be: after its end, or by two threads at a time."""


class StateError(WindjoinError, RuntimeError):
    """State in files cannot be written or read, or is of another query: the message says which."""


class ClusterError(WindjoinError, RuntimeError):
    """Hosts cannot do what was asked of them, or one of them failed: the message says where."""


class LogError(WindjoinError, RuntimeError):
    """The log of a continuous join on Spark cannot be read or written, or is not of this query."""


class LateRowWarning(UserWarning):
    """The first late row of a stream: it is kept in `Session.rejected`, and not joined."""


class HeldBackWarning(UserWarning):
    """A stream holds far more than its window, as another one is behind."""


class SheddingWarning(UserWarning):
    """A session sheds load: for the first time, results are left out."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn about the line of the program that called windjoin, however deep inside this is."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "windjoin":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def quoted(names: Iterable[str]) -> str:
    """``'a', 'b' and 'c'``, for messages.

    >>> quoted(["calls", "trades", "news"])
    "'calls', 'trades' and 'news'"
    """
    shown = [repr(name) for name in names]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def hint(name: str, known: Iterable[str]) -> str:
    """What the user may have meant by ``name``: the nearest known name, else all of them.

    >>> hint("persn", ["person", "x"])
    "; did you mean 'person'?"
    >>> hint("q", ["person", "x"])
    "; there are 'person' and 'x'"
    >>> hint("q", [])
    '; there is none'
    """
    from difflib import get_close_matches

    known = list(known)
    near = get_close_matches(name, known, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    if not known:
        return "; there is none"
    return f"; there are {quoted(known)}" if len(known) > 1 else f"; there is {quoted(known)}"
