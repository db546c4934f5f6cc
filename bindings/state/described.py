"""A query as plain data: whether another one, in another process, is the same."""

from __future__ import annotations

import sys
from typing import Any

from windjoin.errors import StateError
from windjoin.expressions import Expression
from windjoin.function_nodes import Udf
from windjoin.kernels.fingerprint import fingerprint
from windjoin.query import Query

PARTS = ("streams", "on", "select", "closed", "exclude_self", "nearest", "direction", "sides")


def described(query: Query) -> dict[str, Any]:
    """All that decides what a query computes."""
    conditions = [*query.on, *(query.select or ())]
    conditions += [stream.where for stream in query.streams if stream.where is not None]
    functions = [fingerprint(one.function) for part in conditions for one in _functions(part)]
    return {
        "streams": [repr(stream) for stream in query.streams],
        "on": [repr(condition) for condition in query.on],
        "select": None if query.select is None else [repr(one) for one in query.select],
        "closed": query.closed,
        "exclude_self": [list(pair) for pair in query.exclude_self],
        "nearest": query.nearest,
        "direction": query.direction,
        "sides": {one: list(getattr(query.sides, one)) for one in ("keep", "exists", "missing")},
        # code is not the same in another version of Python
        "functions": {"python": list(sys.version_info[:2]), "are": functions},
    }


def _functions(expression: Expression) -> list[Udf]:
    found = [expression] if isinstance(expression, Udf) else []
    for part in expression.parts:
        found += _functions(part)
    return found


def check_same(saved: dict[str, Any], query: Query, place: str) -> None:
    """`StateError` that says what differs, unless the query is the one that was saved."""
    given = described(query)
    for part in PARTS:
        was, now = saved[part], given[part]
        if was == now:
            continue
        if isinstance(was, list) and isinstance(now, list):
            pairs = zip(was, now, strict=False)
            was, now = next(((a, b) for a, b in pairs if a != b), (was, now))
        raise StateError(
            f"{place} is of another query: {part}= had {was!r} there and has {now!r} in this query"
        )
    then, now = saved["functions"], given["functions"]
    if then["python"] == now["python"] and then["are"] != now["are"]:
        raise StateError(
            f"{place} is of another query: a function that a condition calls computes something"
            " else there"
        )
