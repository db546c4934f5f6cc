"""`assert_same_results`: two sets of results, with a difference that people can read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.testing.values import plain

SHOWN = 10  # rows of each side


def assert_same_results(left: Any, right: Any) -> None:
    """Results are the same rows, each as often, in whatever order and chunks.

    ``left``, ``right``: tables, record batches, dictionaries of columns (such as `Query.indices`
    and sessions with ``rows_only`` give), or iterables of those.  Columns are told by their names,
    values are compared exactly; NaN is null.  Types need not be the same.

    >>> assert_same_results({"a": [1, 2]}, [{"a": [2]}, {"a": [1]}])
    >>> assert_same_results({"a": [1, 2]}, {"a": [2, 2]})
    Traceback (most recent call last):
        ...
    AssertionError: results differ: 2 rows on the left, 2 on the right
      1 row on the left only:
        a=1
      1 row on the right only:
        a=2
    """
    one, other = as_one_table(left), as_one_table(right)
    if set(one.column_names) != set(other.column_names):
        raise AssertionError(
            f"results have other columns: {one.column_names} on the left,"
            f" {other.column_names} on the right"
        )
    told = difference(one, other.select(one.column_names))
    if told:
        raise AssertionError(told)


def difference(left: pa.Table, right: pa.Table) -> str:
    """What tells two tables of the same columns apart; empty if they have the same rows."""
    rows, others = _counted(left), _counted(right)
    if rows == others:
        return ""
    lines = [f"results differ: {len(left)} rows on the left, {len(right)} on the right"]
    for side, extra in (("left", rows - others), ("right", others - rows)):
        total = extra.total()
        if not total:
            continue
        lines.append(f"  {total} row{'s' if total > 1 else ''} on the {side} only:")
        shown = [_text(left.column_names, row) for row in extra.elements()]
        lines += [f"    {text}" for text in shown[:SHOWN]]
        lines += [f"    ... and {total - SHOWN} more"] if total > SHOWN else []
    return "\n".join(lines)


def as_one_table(results: Any) -> pa.Table:
    """Results in whatever form they are given out, as one table."""
    if isinstance(results, pa.Table):
        return results
    if isinstance(results, pa.RecordBatch):
        return pa.Table.from_batches([results])
    if isinstance(results, Mapping):
        return pa.table({name: _column(values) for name, values in results.items()})
    if not isinstance(results, Iterable) or isinstance(results, (str, bytes)):
        raise TypeError(
            f"results are a {type(results).__name__}; give a table, a dictionary of columns,"
            " or an iterable of those"
        )
    tables = [as_one_table(part) for part in results]
    filled = [table for table in tables if len(table)] or tables[:1]
    return pa.concat_tables(filled, promote_options="permissive") if filled else pa.table({})


def _column(values: Any) -> Any:
    return pa.array(values) if isinstance(values, (list, np.ndarray)) else values


def _counted(table: pa.Table) -> Counter[tuple[Any, ...]]:
    columns = [[_hashable(plain(value)) for value in column] for column in table.columns]
    return Counter(zip(*columns, strict=True))


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, (list, tuple)) else value


def _text(names: list[str], row: tuple[Any, ...]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in zip(names, row, strict=True))
