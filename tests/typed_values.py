"""Column types with values worth testing, and what the values mean as plain Python numbers.

Imports nothing of the package.  Meanings: integers are ``int``, decimals and times are ``Fraction``
(times in seconds), floats are ``float``; null and NaN are ``None``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

UNITS = {"s": Fraction(1), "ms": Fraction(1, 10**3), "us": Fraction(1, 10**6)}
UNITS["ns"] = Fraction(1, 10**9)
INTS = [0, 1, -1, 2, 3, 5, 100, 127, 128, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1]
INTS += [2**63 + 2048, 10**18, -128]
FLOATS = [0.0, -0.0, 1.0, -1.0, 1.5, 2.0, 3.0, -2.5, 0.1, 2.0**53, 2.0**63, -(2.0**63), 2.0**64]
FLOATS += [math.inf, -math.inf, math.nan, 1e308, 5e-324, 2.0**63 + 2048, 100.0]
MANTISSAS = [0, 1, -1, 2, 1000, 1500, 10**6, 10**9, 86_400, 86_400_000, -86_400_000]
EXTREMES = [2**63 - 1, -(2**63), 2**62 + 1]


@dataclass(frozen=True)
class ColumnType:
    """An Arrow type, a pool of raw values, how raw values become an array and what they mean."""

    name: str
    family: str
    arrow: pa.DataType
    pool: tuple[Any, ...]
    build: Callable[[list[Any]], pa.Array]
    meaning: Callable[[Any], Any]

    def array(self, raw: list[Any]) -> pa.Array:
        return self.build(raw)

    def means(self, raw: Any) -> Any:
        return None if raw is None else self.meaning(raw)


def _plain(arrow: pa.DataType) -> Callable[[list[Any]], pa.Array]:
    return lambda raw: pa.array(raw, arrow)


def _integer(name: str, low: int, high: int) -> ColumnType:
    arrow = getattr(pa, name)()
    pool = tuple(value for value in INTS if low <= value <= high)
    return ColumnType(name, "number", arrow, pool, _plain(arrow), int)


def _float(name: str, dtype: Any) -> ColumnType:
    arrow = pa.from_numpy_dtype(dtype)
    with np.errstate(over="ignore"):
        pool = tuple(float(dtype(value)) for value in FLOATS)

    def build(raw: list[Any]) -> pa.Array:
        return pa.array([None if v is None else dtype(v) for v in raw], arrow, from_pandas=False)

    return ColumnType(
        name, "number", arrow, pool, build, lambda v: None if math.isnan(v) else float(v)
    )


def _decimal(make: Any, precision: int, scale: int) -> ColumnType:
    arrow = make(precision, scale)
    largest = 10**precision - 1
    unit = 10 ** max(scale, 0)
    mantissas = {0, 1, -1, 150, unit, 2 * unit, -unit, 100 * unit, unit // 10, largest, -largest}
    mantissas |= {2**63 * unit, (2**53 + 1) * unit}
    kept = sorted(m for m in mantissas if abs(m) <= largest)
    exact = Context(prec=100)
    pool = tuple(Decimal(m).scaleb(-scale, exact) for m in kept)
    return ColumnType(
        f"{make.__name__}_{precision}_{scale}", "number", arrow, pool, _plain(arrow), Fraction
    )


def _temporal(name: str, family: str, arrow: pa.DataType, step: Fraction, bits: int) -> ColumnType:
    limit = 2 ** (bits - 1)
    pool = [m for m in MANTISSAS + EXTREMES if -limit <= m < limit]
    storage = pa.int32() if bits == 32 else pa.int64()
    if family == "time":
        pool = [m for m in pool if 0 <= m * step < 86_400]

    def build(raw: list[Any]) -> pa.Array:
        return pa.array(raw, storage).view(arrow)

    return ColumnType(name, family, arrow, tuple(pool), build, lambda m: m * step)


TEXT = ("", "a", "b", "ab", "é", "\x00", "a\x00")
BINARY = (b"", b"a", b"ab", b"\x00", b"\xff")
STRUCT = pa.struct([("x", pa.int64())])

TYPES: dict[str, ColumnType] = {
    column.name: column
    for column in [
        _integer("int8", -128, 127),
        _integer("int32", -(2**31), 2**31 - 1),
        _integer("int64", -(2**63), 2**63 - 1),
        _integer("uint8", 0, 255),
        _integer("uint64", 0, 2**64 - 1),
        _float("float32", np.float32),
        _float("float64", np.float64),
        _decimal(pa.decimal128, 5, 2),
        _decimal(pa.decimal128, 18, 0),
        _decimal(pa.decimal128, 30, 4),
        _decimal(pa.decimal128, 4, -2),
        _decimal(pa.decimal256, 60, 10),
        ColumnType("bool", "bool", pa.bool_(), (True, False), _plain(pa.bool_()), bool),
        ColumnType("string", "text", pa.string(), TEXT, _plain(pa.string()), str),
        ColumnType("large_string", "text", pa.large_string(), TEXT, _plain(pa.large_string()), str),
        ColumnType("string_view", "text", pa.string_view(), TEXT, _plain(pa.string_view()), str),
        ColumnType("binary", "binary", pa.binary(), BINARY, _plain(pa.binary()), bytes),
        ColumnType("fixed", "binary", pa.binary(2), (b"ab", b"\x00a"), _plain(pa.binary(2)), bytes),
        ColumnType(
            "dictionary",
            "text",
            pa.dictionary(pa.int32(), pa.string()),
            TEXT,
            lambda raw: pa.array(raw, pa.string()).dictionary_encode(),
            str,
        ),
        ColumnType(
            "dictionary_int",
            "number",
            pa.dictionary(pa.int32(), pa.int64()),
            (0, 1, -1, 2**63 - 1),
            lambda raw: pa.array(raw, pa.int64()).dictionary_encode(),
            int,
        ),
        ColumnType("null", "null", pa.null(), (None,), lambda raw: pa.nulls(len(raw)), int),
        _temporal("date32", "instant", pa.date32(), Fraction(86_400), 32),
        _temporal("date64", "instant", pa.date64(), UNITS["ms"], 64),
        _temporal("time32_s", "time", pa.time32("s"), UNITS["s"], 32),
        _temporal("time64_us", "time", pa.time64("us"), UNITS["us"], 64),
        *(
            _temporal(f"timestamp_{unit}", "instant", pa.timestamp(unit), step, 64)
            for unit, step in UNITS.items()
        ),
        _temporal("zoned_ms", "zoned", pa.timestamp("ms", "Europe/Paris"), UNITS["ms"], 64),
        _temporal("zoned_us", "zoned", pa.timestamp("us", "UTC"), UNITS["us"], 64),
        _temporal("duration_s", "duration", pa.duration("s"), UNITS["s"], 64),
        _temporal("duration_ns", "duration", pa.duration("ns"), UNITS["ns"], 64),
    ]
}


def families() -> dict[str, list[str]]:
    """Names of the types that can be compared with each other."""
    grouped: dict[str, list[str]] = {}
    for column in TYPES.values():
        grouped.setdefault(column.family, []).append(column.name)
    for names in grouped.values():
        if "null" not in names:
            names.append("null")
    return grouped


COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
}


def nearest(value: Any) -> float:
    """The double nearest to a number."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def compare(operator: str, x: Any, y: Any) -> bool | None:
    """``x <operator> y`` as real numbers; None for null."""
    if x is None or y is None:
        return None
    return COMPARE[operator](x, y)


def arithmetic(operator: str, x: Any, y: Any) -> Any:
    """``x <operator> y``: integers and fractions exactly, floats as doubles; None for null."""
    if x is None or y is None:
        return None
    if operator == "/" or isinstance(x, float) or isinstance(y, float):
        a, b = np.float64(nearest(x)), np.float64(nearest(y))
        operations = {
            "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide,
            "//": np.floor_divide, "%": np.mod,
        }  # fmt: skip
        with np.errstate(all="ignore"):
            answer = float(operations[operator](a, b))
        return None if math.isnan(answer) else answer
    if operator in ("//", "%"):
        if y == 0:
            return None
        return x // y if operator == "//" else x % y
    return {"+": x + y, "-": x - y, "*": x * y}[operator]


def both(x: bool | None, y: bool | None) -> bool | None:
    """Kleene's and."""
    if x is False or y is False:
        return False
    return None if x is None or y is None else True


def negation(x: bool | None) -> bool | None:
    return None if x is None else not x
