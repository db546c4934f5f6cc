"""Conditions taken apart into conditions that must all hold."""

from __future__ import annotations

from typing import Any, cast

from windjoin.expressions import NEGATED, Alias, Between, Binary, Comparison, Expression, Unary


def conjuncts(expression: Expression) -> list[Expression]:
    """The conditions that ``&`` joins at the top of ``expression``.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    >>> conjuncts(a["x"] & a["y"] & b["z"])
    [a["x"], a["y"], b["z"]]
    """
    if isinstance(expression, Binary) and expression.operator == "&":
        return conjuncts(expression.left) + conjuncts(expression.right)
    return [expression]


def atoms(condition: Expression) -> list[Expression]:
    """A condition as a conjunction of the simplest conditions that means the same.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    >>> atoms(~((a["x"] < b["x"]) | (a["y"] != b["y"])))
    [a["x"] >= b["x"], a["y"] == b["y"]]
    """
    if isinstance(condition, Alias):
        return atoms(condition.expression)
    if isinstance(condition, Binary) and condition.operator == "&":
        return [atom for part in conjuncts(condition) for atom in atoms(part)]
    if isinstance(condition, Between):
        above: Any = ">=" if condition.closed in ("both", "left") else ">"
        below: Any = "<=" if condition.closed in ("both", "right") else "<"
        return [
            Comparison(above, condition.value, condition.low),
            Comparison(below, condition.value, condition.high),
        ]
    if isinstance(condition, Unary) and condition.operator == "~":
        return _denied(condition)
    return [condition]


def _denied(condition: Unary) -> list[Expression]:
    """``~x`` is true where x is false, never where x is null: so it moves inwards."""
    inner = condition.operand
    if isinstance(inner, Comparison):
        negated = cast(Any, NEGATED[inner.operator])
        return atoms(Comparison(negated, inner.left, inner.right))
    if isinstance(inner, Unary) and inner.operator == "~":
        return atoms(inner.operand)
    if isinstance(inner, Binary) and inner.operator == "|":
        return atoms(~inner.left) + atoms(~inner.right)
    return [condition]
