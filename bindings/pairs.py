"""Measures of two columns (distances, overlaps): one definition each, found by name.

A measure is one new file: it makes a `PairDefinition` and calls `register`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from windjoin.errors import QueryError
from windjoin.expressions import PairFunction

if TYPE_CHECKING:
    from windjoin.columns import Values
    from windjoin.kinds import Kind


class PairDefinition(Protocol):
    """What a measure's name means."""

    def check(
        self, node: PairFunction, left: pa.DataType | None, right: pa.DataType | None
    ) -> Kind:
        """The kind of the result; raises `SchemaError` for columns it cannot measure."""

    def evaluate(self, node: PairFunction, left: Any, right: Any) -> Values:
        """The measure of every pair of values of two Arrow arrays of one length."""


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
    """The names of all measures."""
    return frozenset(_DEFINITIONS)
