"""Measures of two columns: defined once, known to checker, evaluator and binding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import windjoin as wj
from windjoin.columns import Values
from windjoin.errors import QueryError, SchemaError
from windjoin.function_nodes import PairFunction
from windjoin.kinds import INTEGER, Kind
from windjoin.output import table_fetch
from windjoin.pairs import register


class LengthGap:
    """How much longer the left list is."""

    def check(self, node: PairFunction, left: pa.DataType, right: pa.DataType) -> Kind:
        for arrow in (left, right):
            if not pa.types.is_list(arrow):
                raise SchemaError(f"`{node!r}`: {arrow} is not a list")
        return INTEGER

    def evaluate(self, node: PairFunction, fetch: Any) -> Values:
        sizes = [np.asarray(pc.list_value_length(fetch(side))) for side in node.parts]
        return Values(INTEGER, (sizes[0] - sizes[1]).astype(np.int64))


register("length_gap", LengthGap())
A, B = (wj.stream(name, time="t", window=10) for name in "ab")
DATA = pa.table({"t": [1, 2], "v": [[1, 2, 3], []], "x": [1, 2]})
SCHEMAS = {"a": DATA.schema, "b": DATA.schema}


def test_a_measure_is_evaluated_on_pairs_and_selected() -> None:
    measure = PairFunction("length_gap", A["v"], B["v"])
    bound = wj.join(A, B, on=measure >= 3, select=[measure.alias("gap")]).bind(SCHEMAS)
    (predicate,) = bound.spec_with(table_fetch([DATA, DATA])).predicates
    pairs = {0: np.array([0, 0, 1, 1]), 1: np.array([0, 1, 0, 1])}
    assert predicate.evaluate(pairs).tolist() == [False, True, False, False]  # type: ignore[union-attr]
    gaps = bound.gather([DATA, DATA], list(pairs.values())).column("gap")
    assert gaps.to_pylist() == [0, 3, -3, 0]


def test_a_measure_checks_its_columns() -> None:
    with pytest.raises(SchemaError, match="int64 is not a list"):
        wj.join(A, B, on=PairFunction("length_gap", A["x"], B["v"]) > 1).bind(SCHEMAS)
    with pytest.raises(SchemaError, match="a measure takes plain columns"):
        wj.join(A, B, on=PairFunction("length_gap", A["x"] + 1, B["v"]) > 1).bind(SCHEMAS)


def test_an_unknown_measure_is_named() -> None:
    with pytest.raises(QueryError, match="no measure is called 'nope'"):
        wj.join(A, B, on=PairFunction("nope", A["v"], B["v"]) > 1).bind(SCHEMAS)
