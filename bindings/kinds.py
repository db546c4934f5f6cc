"""What a value means, apart from how Arrow lays it out.

Integers, decimals, dates, times, timestamps and durations are all *mantissa times step*: an int64
(or wider) integer that counts units.  ``decimal(10, 2)`` counts hundredths, ``timestamp[ms]``
thousandths of a second.  One rule then serves them all: steps divide each other, so two of them
are compared exactly by counting both in the finer unit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import pyarrow as pa
import pyarrow.types as pat

Family = Literal[
    "bool", "integer", "decimal", "float", "text", "binary",
    "date", "time", "timestamp", "duration", "null", "nested",
]  # fmt: skip

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
UINT64_MAX = 2**64 - 1
UNIT_STEPS = {
    "w": Fraction(604_800),
    "d": Fraction(86_400),
    "h": Fraction(3_600),
    "m": Fraction(60),
    "s": Fraction(1),
    "ms": Fraction(1, 10**3),
    "us": Fraction(1, 10**6),
    "ns": Fraction(1, 10**9),
}
STEP_UNITS = {step: unit for unit, step in UNIT_STEPS.items()}
EXACT = frozenset(("integer", "decimal", "date", "time", "timestamp", "duration"))
NUMBERS = frozenset(("integer", "decimal", "float"))
INSTANTS = frozenset(("date", "timestamp"))


@dataclass(frozen=True, slots=True)
class Kind:
    """A family, and for mantissas the unit they count and the range they can have."""

    family: Family
    step: Fraction = Fraction(1)
    low: int = INT64_MIN
    high: int = INT64_MAX
    zone: str | None = None

    @property
    def exact(self) -> bool:
        """Whether values are mantissas times a step."""
        return self.family in EXACT

    @property
    def fits_int64(self) -> bool:
        """Whether every mantissa is an int64."""
        return self.low >= INT64_MIN and self.high <= INT64_MAX

    @property
    def fits_uint64(self) -> bool:
        """Whether every mantissa is a uint64, and some may not be an int64."""
        return not self.fits_int64 and self.low >= 0 and self.high <= UINT64_MAX

    def counted_in(self, step: Fraction) -> Kind:
        """The same values counted in a finer ``step``."""
        ratio = int(self.step / step)
        return replace(self, step=step, low=self.low * ratio, high=self.high * ratio)

    def __str__(self) -> str:
        if self.family in ("timestamp", "duration", "time"):
            unit = STEP_UNITS.get(self.step, f"{self.step} s")
            return f"{self.family}[{unit}{f', tz={self.zone}' if self.zone else ''}]"
        return self.family


BOOL, FLOAT, TEXT, BINARY = Kind("bool"), Kind("float"), Kind("text"), Kind("binary")
INTEGER, NULL, NESTED = Kind("integer"), Kind("null"), Kind("nested")


def value_type(arrow: pa.DataType) -> pa.DataType:
    """The type behind dictionary, run-end and extension encodings."""
    while True:
        if pat.is_dictionary(arrow) or pat.is_run_end_encoded(arrow):
            arrow = arrow.value_type
        elif isinstance(arrow, pa.BaseExtensionType):
            arrow = arrow.storage_type
        else:
            return arrow


def kind_of(arrow: pa.DataType) -> Kind:
    """The kind of the values of an Arrow type.

    >>> import pyarrow as pa
    >>> kind_of(pa.decimal128(10, 2)).step
    Fraction(1, 100)
    """
    return _kind_of_values(value_type(arrow))


@lru_cache(maxsize=256)
def _kind_of_values(arrow: pa.DataType) -> Kind:
    if pat.is_integer(arrow):
        bits, signed = arrow.bit_width, pat.is_signed_integer(arrow)
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        return Kind("integer", low=low, high=high)
    if pat.is_decimal(arrow):
        largest = 10**arrow.precision - 1
        return Kind("decimal", Fraction(10) ** -arrow.scale, -largest, largest)
    if pat.is_timestamp(arrow):
        return Kind("timestamp", UNIT_STEPS[arrow.unit], zone=arrow.tz)
    if pat.is_duration(arrow):
        return Kind("duration", UNIT_STEPS[arrow.unit])
    if pat.is_time32(arrow):
        return Kind("time", UNIT_STEPS[arrow.unit], low=-(2**31), high=2**31 - 1)
    if pat.is_time64(arrow):
        return Kind("time", UNIT_STEPS[arrow.unit])
    if pat.is_date32(arrow):
        return Kind("date", UNIT_STEPS["d"], low=-(2**31), high=2**31 - 1)
    if pat.is_date64(arrow):
        return Kind("date", UNIT_STEPS["ms"])
    for test, kind in _SIMPLE:
        if test(arrow):
            return kind
    return NESTED


_SIMPLE: list[tuple[Any, Kind]] = [
    (pat.is_boolean, BOOL),
    (pat.is_floating, FLOAT),
    (pat.is_string, TEXT),
    (pat.is_large_string, TEXT),
    (pat.is_string_view, TEXT),
    (pat.is_binary, BINARY),
    (pat.is_large_binary, BINARY),
    (pat.is_binary_view, BINARY),
    (pat.is_fixed_size_binary, BINARY),
    (pat.is_null, NULL),
]


def arrow_type(kind: Kind) -> pa.DataType:
    """The Arrow type in which computed values of ``kind`` leave."""
    unit: Any = STEP_UNITS.get(kind.step, "s")
    unit = unit if unit in ("s", "ms", "us", "ns") else "s"
    if kind.family == "timestamp":
        zoned: pa.DataType = pa.timestamp(unit, tz=kind.zone)
        return zoned
    if kind.family == "duration":
        return pa.duration(unit)
    if kind.family == "decimal":
        scale = len(str(kind.step.denominator)) - 1
        return pa.decimal128(38, scale) if scale <= 38 else pa.decimal256(76, min(scale, 76))
    if kind.family == "time":
        return (
            pa.time64("ns" if unit == "ns" else "us") if unit in ("us", "ns") else pa.time32(unit)
        )
    return _ARROW[kind.family]


_ARROW: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "integer": pa.int64(),
    "float": pa.float64(),
    "null": pa.null(),
    "text": pa.large_string(),
    "binary": pa.large_binary(),
    "date": pa.date32(),
}
