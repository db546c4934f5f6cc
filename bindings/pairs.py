"""Measures of two columns (distances, overlaps): one definition each, found by name.

A measure is one new file: it makes a `PairDefinition` and calls `register`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from windjoin.errors import QueryError, SchemaError
from windjoin.expressions import Column, Expression
from windjoin.function_nodes import PairFunction, Parallel
from windjoin.kinds import value_type

if TYPE_CHECKING:
    from windjoin.columns import Values
    from windjoin.kinds import Kind


class PairDefinition(Protocol):
    """What a measure's name means."""

    def check(
        self, node: PairFunction, left: pa.DataType | None, right: pa.DataType | None
    ) -> Kind:
        """The kind of the result; raises `SchemaError` for columns it cannot measure."""

    def evaluate(self, node: PairFunction, fetch: Callable[[Column], Any]) -> Values:
        """The measure row by row, of columns that ``fetch`` gives as Arrow arrays of one length."""


_DEFINITIONS: dict[str, PairDefinition] = {}


def register(name: str, definition: PairDefinition) -> None:
    """Make ``name`` known to the checker, the evaluator and the lowering."""
    _DEFINITIONS[name] = definition


def definition(node: PairFunction) -> PairDefinition:
    """The definition of a measure."""
    if node.name not in _DEFINITIONS:
        raise QueryError(f"`{node!r}`: no measure is called {node.name!r}")
    return _DEFINITIONS[node.name]


def known() -> frozenset[str]:
    """The names of all measures; those that come with the package need not be in use yet."""
    from windjoin.measures import NAMES

    return NAMES | frozenset(_DEFINITIONS)


def measured_type(part: Expression, type_of: Callable[[Column], Any]) -> pa.DataType:
    """The Arrow type of one side of a measure; two list columns are a list of structs."""
    if isinstance(part, Column):
        arrow: pa.DataType = type_of(part)
        return arrow
    if not isinstance(part, Parallel):
        raise SchemaError(f"`{part!r}`: a measure takes plain columns; compute this one beforehand")
    inner = []
    for column in (part.items, part.weights):
        arrow = value_type(type_of(column))
        if not hasattr(arrow, "value_type"):
            raise SchemaError(f"`{part!r}` must be two columns of lists; `{column!r}` is {arrow}")
        inner.append(arrow.value_type)
    return pa.list_(pa.struct([("item", inner[0]), ("weight", inner[1])]))
