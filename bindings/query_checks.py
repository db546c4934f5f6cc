"""What `join` is given, checked: streams, conditions, columns to select, and who is one table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from windjoin.conjunctions import conjuncts
from windjoin.errors import QueryError, hint, quoted
from windjoin.expressions import Alias, Between, Binary, Column, Comparison, Expression, Unary
from windjoin.function_nodes import PairFunction, Udf
from windjoin.hows import Sides
from windjoin.methods import CONDITIONS, Coalesce, Method
from windjoin.streams import Stream

MOST_STREAMS = 16


def check_nearest(nearest: object, conditions: Iterable[Expression], names: list[str]) -> None:
    """``nearest=`` is a number of partners, of two streams that one measure compares."""
    if not isinstance(nearest, int) or isinstance(nearest, bool) or nearest < 1:
        raise QueryError(f"nearest={nearest!r}: give how many partners a row keeps, 1 or more")
    if len(names) != 2:
        raise QueryError(f"nearest= is for joins of two streams, not of {len(names)}")
    measures = sum(_measures(condition) for condition in conditions)
    if measures != 1:
        raise QueryError(
            f"nearest= needs one condition that compares a distance or similarity with a number,"
            f' such as wj.l2(a["v"], b["v"]) <= 0.5; on= has {measures}; for partners nearest in'
            ' time say direction="backward", "forward" or "nearest"'
        )


def _measures(expression: Expression) -> bool:
    return isinstance(expression, PairFunction) or any(map(_measures, expression.parts))


def check_streams(streams: Sequence[object]) -> None:
    """2 to 16 streams, each with a name of its own."""
    for given in streams:
        if not isinstance(given, Stream):
            raise QueryError(
                f"join got {given!r} ({type(given).__name__}) where a stream is expected;"
                " make one with windjoin.stream, and pass conditions as on="
            )
    if not 2 <= len(streams) <= MOST_STREAMS:
        raise QueryError(f"join takes 2 to {MOST_STREAMS} streams, got {len(streams)}")
    names = [given.name for given in streams if isinstance(given, Stream)]
    for name in names:
        if names.count(name) > 1:
            raise QueryError(
                f"{names.count(name)} streams are called {name!r}; give every stream a name of its"
                " own (the same table may be several streams)"
            )


def checked_conditions(on: Any, names: list[str]) -> tuple[Expression, ...]:
    """The conjuncts of ``on=``, each a condition on streams that are joined."""
    given = [on] if isinstance(on, Expression) or not isinstance(on, Iterable) else list(on)
    conditions: list[Expression] = []
    for element in given:
        if not isinstance(element, Expression):
            raise QueryError(
                f"on= got {element!r} ({type(element).__name__}) where a condition is expected;"
                ' write comparisons of columns, such as calls["person"] == trades["person"]'
            )
        conditions += conjuncts(element)
    for condition in conditions:
        _check_known(condition, names, "on")
        _check_condition(condition)
    return tuple(conditions)


def _check_known(expression: Expression, names: list[str], place: str) -> None:
    for name in expression.streams:
        if name not in names:
            raise QueryError(
                f"{place}: `{expression!r}` uses stream {name!r}, which is not joined here"
                + hint(name, names)
            )


def _check_condition(condition: Expression) -> None:
    logical = isinstance(condition, Binary) and condition.operator == "|"
    logical |= isinstance(condition, Unary) and condition.operator in ("~", "is_null")
    logical |= isinstance(condition, Method) and condition.name in CONDITIONS
    if isinstance(condition, PairFunction):
        raise QueryError(f"on: `{condition!r}` is a measure; compare it with a threshold")
    if not logical and not isinstance(condition, (Comparison, Between, Udf, Column, Coalesce)):
        raise QueryError(
            f"on: `{condition!r}` is not a condition; compare it with something,"
            " for example with <= or =="
        )
    if len(condition.streams) < 2:
        of = quoted(condition.streams) if condition.streams else "no stream"
        raise QueryError(
            f"on: `{condition!r}` uses columns of {of} alone; a condition on one stream belongs"
            f" in its where=, as in stream({of}, ..., where=...)"
        )


def check_connected(conditions: Iterable[Expression], names: list[str]) -> None:
    """Conditions connect all streams."""
    group = {name: {name} for name in names}
    for condition in conditions:
        joined = set().union(*(group[name] for name in condition.streams))
        for name in joined:
            group[name] = joined
    apart = [name for name in names if name not in group[names[0]]]
    if apart:
        together = [name for name in names if name in group[names[0]]]
        raise QueryError(
            f"no condition connects {quoted(together)} with {quoted(apart)}: that is a cross"
            " product; add a condition, or say cross=True if it is meant"
        )


def check_base_connected(
    asked: Sides, conditions: Iterable[Expression], names: Sequence[str]
) -> None:
    """Streams whose combinations come out are connected without those that are missing."""
    if asked.missing:
        base = [name for s, name in enumerate(names) if s not in asked.missing]
        check_connected([c for c in conditions if set(c.streams) <= set(base)], base)


def checked_selection(select: Any, names: list[str]) -> tuple[Expression, ...]:
    """The expressions of ``select=``, each with a name of its own."""
    chosen = [select] if isinstance(select, Expression) else list(select)
    if not chosen:
        raise QueryError("select=[] leaves no column; leave select out to get all columns")
    seen: dict[str, Expression] = {}
    for expression in chosen:
        if not isinstance(expression, Expression) or not expression.streams:
            raise QueryError(
                f"select got {expression!r} ({type(expression).__name__}) where a column"
                ' expression is expected, such as calls["person"]'
            )
        _check_known(expression, names, "select")
        name = output_name(expression)
        if name in seen:
            raise QueryError(
                f"select: `{seen[name]!r}` and `{expression!r}` are both called {name!r};"
                " rename one with .alias"
            )
        seen[name] = expression
    return tuple(chosen)


def output_name(expression: Expression) -> str:
    """The name of a selected expression in the result."""
    if isinstance(expression, Alias):
        return expression.name
    if isinstance(expression, Column):
        return f"{expression.stream}_{expression.name}"
    raise QueryError(f'select: `{expression!r}` needs a name; write (...).alias("name")')


def checked_self_pairs(given: Any, names: list[str]) -> tuple[tuple[int, int], ...]:
    """Pairs of numbers of streams that ``exclude_self=`` says are one table."""
    if isinstance(given, bool):
        groups: list[Any] = [names] if given else []
    else:
        groups = list(given)
        if groups and all(isinstance(member, (str, Stream)) for member in groups):
            groups = [groups]
    pairs = set()
    for group in groups:
        numbers = sorted(_stream_number(member, names) for member in group)
        if len(set(numbers)) < 2:
            raise QueryError(
                f"exclude_self: {group!r} names fewer than two streams;"
                " name the streams that are one table"
            )
        pairs |= {(low, high) for low in numbers for high in numbers if low < high}
    return tuple(sorted(pairs))


def _stream_number(member: object, names: list[str]) -> int:
    name = member.name if isinstance(member, Stream) else member
    if not isinstance(name, str) or name not in names:
        known = hint(str(name), names)
        raise QueryError(f"exclude_self: {name!r} is not a stream of this join{known}")
    return names.index(name)
