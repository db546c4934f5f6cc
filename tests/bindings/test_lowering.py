"""What becomes of a condition: the predicate that has an index, or one on pairs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.kernels.spec import (
    Between,
    Compare,
    Equal,
    Function,
    NotEqual,
    Opaque,
)

from tests.played import (
    A,
    B,
    X,
    Y,
    tables_of,
)
from tests.typed_values import TYPES


def lowered(on: Any, left: str, right: str) -> list[Any]:
    tables = tables_of([TYPES[left], TYPES[right]], [[], []])
    schemas = {"a": tables[0].schema, "b": tables[1].schema}
    return list(wj.join(A, B, on=on).bind(schemas).spec.predicates)


@pytest.mark.parametrize(
    ("on", "left", "right", "expected"),
    [
        (X == Y, "int64", "uint64", Equal),
        (X == Y, "int64", "float64", Equal),
        (X == Y, "string", "dictionary", Equal),
        (X == Y, "decimal128_30_4", "decimal256_60_10", Equal),
        (X == Y, "timestamp_s", "timestamp_ns", Equal),
        (X != Y, "int8", "int64", NotEqual),
        (X != Y, "decimal128_30_4", "int64", NotEqual),
        (X != Y, "int64", "float64", Opaque),
        (X != Y, "int64", "uint64", Opaque),
        (X < Y, "int64", "float64", Compare),
        (X < Y, "uint64", "float64", Compare),
        (X < Y, "int64", "uint64", Compare),
        (X < Y, "date32", "timestamp_ns", Compare),
        (X < Y, "string", "string", Opaque),
        (X < Y, "decimal128_30_4", "int64", Opaque),
        (abs(X - Y) <= 5, "int64", "int8", Between),
        (abs(X - Y) <= 5, "uint64", "uint64", Between),
        (abs(X - Y) <= 5, "int64", "float64", Between),
        (abs(X - Y) <= 0.05, "decimal128_5_2", "decimal128_5_2", Between),
        (abs(X - Y) <= 5, "int64", "uint64", Opaque),
        (abs(X - Y) > 5, "int64", "int64", Opaque),
        (abs(X - Y) > -1, "int64", "int64", Between),
        (~(abs(X - Y) > "5s"), "timestamp_s", "timestamp_ns", Between),
        ((X - Y).between("-5s", "1m"), "timestamp_s", "date32", Between),
        (X - Y == 5, "int64", "int64", Between),
        (X - Y != 5, "int64", "int64", Opaque),
        ((X == Y) | (X > Y), "int64", "int64", Opaque),
        (wj.udf(lambda x, y: x < y, X, Y), "int64", "float64", Function),
        (wj.udf(min, X, Y) <= 0.5, "int64", "float64", Function),
        (wj.udf(min, X, Y) < 3, "int64", "int64", Function),
        (wj.udf(min, X, Y) <= Y, "int64", "float64", Function),
        (wj.udf(min, X, Y) <= 2.5, "int64", "int64", Opaque),
    ],
)
def test_conditions_become_the_predicate_that_has_an_index(
    on: Any, left: str, right: str, expected: type
) -> None:
    (predicate,) = lowered(on, left, right)
    assert type(predicate) is expected
    assert predicate.text == repr(on)


def test_integer_bounds_are_rounded_inwards() -> None:
    (band,) = lowered(abs(X - Y) < 2.5, "int64", "int64")
    assert (band.low, band.high, band.dtype) == (-2, 2, "int64")
    (band,) = lowered(abs(X - Y) < 2, "int64", "int64")
    assert (band.low, band.high) == (-1, 1)
    (band,) = lowered(abs(X - Y) < 0.5, "float64", "int64")
    assert (band.low, band.high) == (math.nextafter(-0.5, 0), math.nextafter(0.5, 0))
    (band,) = lowered(abs(X - Y) <= -1, "int64", "int64")
    assert band.low > band.high
    (band,) = lowered(abs(X - Y) < "1ms", "timestamp_us", "timestamp_us")
    assert (band.low, band.high) == (-999, 999)


def test_keys_that_meet_share_a_space() -> None:
    streams = [wj.stream(name, time="t", window=1) for name in "abc"]
    a, b, c = streams
    schema = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("s", pa.string())])
    on = [a["k"] == b["k"], a["s"] == b["s"], b["s"] == c["s"], a["k"] == c["k"], b["k"] != c["k"]]
    bound = wj.join(*streams, on=on).bind(dict.fromkeys("abc", schema))
    spaces = {
        (number, form): space
        for number, stream in enumerate(bound.spec.streams)
        for form, space in zip(stream.keys, stream.spaces, strict=True)
    }
    assert all(len(stream.keys) == 2 for stream in bound.spec.streams)
    assert len({spaces[number, "int64"] for number in range(3)}) == 1
    assert len({spaces[number, "bytes"] for number in range(3)}) == 1
    assert len(set(spaces.values())) == 2


def test_an_operand_used_twice_is_made_once() -> None:
    on = [X < Y, X * 1 < Y, X - Y > -5, X != Y]
    tables = tables_of([TYPES["int64"], TYPES["int64"]], [[], []])
    schemas = {"a": tables[0].schema, "b": tables[1].schema}
    spec = wj.join(A, B, on=on).bind(schemas).spec
    assert spec.streams[0].columns == ("int64", "int64")
    assert spec.streams[1].columns == ("int64",)


def test_opaque_predicates_have_no_data_before_they_are_given_some() -> None:
    (predicate,) = lowered((X < Y) | (X > Y), "int64", "int64")
    with pytest.raises(RuntimeError, match=r"take the spec from BoundQuery\.spec_with"):
        predicate.evaluate({0: np.zeros(0, np.int64), 1: np.zeros(0, np.int64)})
