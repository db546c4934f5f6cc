"""Kinds of columns: how a value is stored in Arrow, and what it means to the oracle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

NAN, INF = math.nan, math.inf
NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


@dataclass(frozen=True, slots=True)
class Kind:
    """A column type, the family it is comparable in, and a small domain of stored values."""

    name: str
    type: pa.DataType
    family: str
    domain: tuple[Any, ...]
    scale: int = 1  # nanoseconds per stored unit, for all kinds of time

    def meaning(self, stored: Any) -> Any:
        """The stored value as the oracle knows it: exact, with times in nanoseconds."""
        if isinstance(stored, Decimal):
            return Fraction(stored)
        return stored if stored is None or self.scale == 1 else stored * self.scale

    def array(self, stored: list[Any]) -> pa.Array:
        """An Arrow array of stored values; dictionary kinds get the dictionary of these values."""
        return pa.array(stored, type=self.type)


def _integers() -> list[Kind]:
    signed = [Kind(f"int{b}", t, "number", (1, 0, 2, -1, -2)) for b, t in _widths("int").items()]
    unsigned = [Kind(f"uint{b}", t, "number", (1, 0, 2, 3)) for b, t in _widths("uint").items()]
    return signed + unsigned


def _widths(prefix: str) -> dict[int, pa.DataType]:
    return {bits: getattr(pa, f"{prefix}{bits}")() for bits in (8, 16, 32, 64)}


# Domains begin with the values that a family shares: the fewer are drawn, the more rows meet.
_FLOATS = (1.0, 0.0, 2.0, -0.0, 0.5, NAN, INF, -INF, -1.5)
_DECIMALS = tuple(map(Decimal, ("1.0", "0.0", "2.0", "0.5", "-1.5", "-1.0")))
_TEXTS = ("a", "b", "", "aa", "é")
_BYTES = (b"a\x00", b"b\xff", b"a", b"")
_DAY_MS = 86_400_000


def _times() -> list[Kind]:
    """Kinds of dates, times, timestamps and durations, each on a grid all units have."""
    kinds = [
        Kind("date32", pa.date32(), "date", (0, 1, -1, 20_000), 86_400 * 10**9),
        Kind("date64", pa.date64(), "date", (0, _DAY_MS, -_DAY_MS, 20_000 * _DAY_MS), 10**6),
    ]
    for unit, scale in NANOSECONDS.items():
        seconds = tuple(n * (10**9 // scale) for n in (0, 1, 2, -1))
        kinds.append(Kind(f"timestamp_{unit}", pa.timestamp(unit), "timestamp", seconds, scale))
        kinds.append(Kind(f"zoned_{unit}", pa.timestamp(unit, "UTC"), "zoned", seconds, scale))
        kinds.append(Kind(f"duration_{unit}", pa.duration(unit), "duration", seconds, scale))
        of_day = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
        kinds.append(Kind(f"time_{unit}", of_day, "time", seconds[:-1], scale))
    return kinds


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        *_integers(),
        Kind("float32", pa.float32(), "number", _FLOATS),
        Kind("float64", pa.float64(), "number", _FLOATS),
        Kind("decimal128", pa.decimal128(5, 1), "number", _DECIMALS),
        Kind("bool", pa.bool_(), "bool", (False, True)),
        Kind("string", pa.string(), "text", _TEXTS),
        Kind("large_string", pa.large_string(), "text", _TEXTS),
        Kind("category", pa.dictionary(pa.int32(), pa.string()), "text", _TEXTS),
        Kind("binary", pa.binary(), "binary", _BYTES),
        Kind("large_binary", pa.large_binary(), "binary", _BYTES),
        Kind("fixed_binary", pa.binary(2), "binary", (b"a\x00", b"b\xff", b"ab")),
        *_times(),
    )
}

INTEGERS = [kind for kind in KINDS.values() if pa.types.is_integer(kind.type)]
ARITHMETIC = [*INTEGERS, KINDS["float32"], KINDS["float64"]]


def family(name: str) -> list[Kind]:
    """All kinds that compare with each other under this name."""
    return [kind for kind in KINDS.values() if kind.family == name]


FAMILIES = sorted({kind.family for kind in KINDS.values()})
ORDERED_FAMILIES = [name for name in FAMILIES if name != "bool"]
