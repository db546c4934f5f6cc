"""Conditions that compiled code tests: a column of numbers compared with a constant."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa
from windjoin.checking import Typed
from windjoin.compared import is_double
from windjoin.expressions import MIRRORED, Column, Comparison, Constant
from windjoin.kinds import INT64_MAX, INT64_MIN
from windjoin.plain import FLOAT64, Direct, ReadColumn, number_column, read_column

# a column, an operator, and an int or a float of the column's domain
Test = tuple[ReadColumn, str, float]


def tests_of(filters: Sequence[Typed], schema: pa.Schema) -> list[Test] | None:
    """Conditions as comparisons of columns with constants; None if any is something else."""
    tests = [_test(condition, schema) for condition in filters]
    return None if None in tests else [test for test in tests if test is not None]


def _test(condition: Typed, schema: pa.Schema) -> Test | None:
    node = condition.node
    if not isinstance(node, Comparison):
        return None
    value, other = condition.parts
    operator: str = node.operator
    if isinstance(value.node, Constant):
        value, other, operator = other, value, MIRRORED[node.operator]
    if not isinstance(value.node, Column) or not isinstance(other.node, Constant):
        return None
    column = number_column(value.node.name, schema)
    if column is None:
        return None
    constant = _in_domain(value, other, column)
    return None if constant is None else (read_column(column), operator, constant)


def _in_domain(value: Typed, other: Typed, column: Direct) -> float | None:
    """A constant as the column has its values; None if it has no such value."""
    kinds = value.kind, other.kind
    if kinds[1].family not in ("integer", "decimal", "float"):
        return None
    if kinds[0].exact and not kinds[0].fits_int64:
        return None
    if isinstance(other.value, float) and not np.isfinite(other.value):
        return None
    number = Fraction(other.value) * (kinds[1].step if kinds[1].exact else 1)
    if column.dtype == FLOAT64:
        return float(number) if kinds[0].family == "float" and is_double(number) else None
    if kinds[0].family not in ("integer", "decimal") or kinds[1].family == "float":
        return None
    mantissa = number / kinds[0].step
    fits = mantissa.denominator == 1 and INT64_MIN <= mantissa <= INT64_MAX
    return int(mantissa) if fits else None
