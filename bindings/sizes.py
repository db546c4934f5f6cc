"""How many bytes rows have and links carry, as people write it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as pat
from windjoin.errors import QueryError

Link = tuple[str, str]  # the sites at its ends

UNKNOWN = 16.0  # bytes that a value of no fixed width is taken for
_BANDWIDTH = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kKMGT]?)(bit|bps|B|Bps)(?:/s)?\s*")
_THOUSANDS = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def bandwidth_of(value: Any) -> float:
    """Bytes per second: a number, or a text such as "80Mbit", "1Gbit" or "10MB".

    >>> bandwidth_of("80Mbit"), bandwidth_of("10MB/s"), bandwidth_of(5)
    (10000000.0, 10000000.0, 5.0)
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
        return float(value)
    match = _BANDWIDTH.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise QueryError(
            f'bandwidth={value!r}: give bytes per second, or a text such as "80Mbit" or "10MB"'
        )
    number, thousands, unit = match.groups()
    return float(number) * _THOUSANDS[thousands] / (8 if unit in ("bit", "bps") else 1)


def lengths_of(links: Mapping[Link, Any] | None) -> dict[Link, float] | None:
    """Lengths of links between sites: numbers as they are; of bandwidths, how much slower each
    link is than the fastest one.

    >>> lengths_of({("east", "west"): "10Mbit", ("east", "north"): "80Mbit"})
    {('east', 'west'): 8.0, ('east', 'north'): 1.0}
    """
    if not links:
        return None
    texts = [isinstance(value, str) for value in links.values()]
    if all(texts):
        speeds = {link: bandwidth_of(value) for link, value in links.items()}
        slow = [link for link, speed in speeds.items() if not speed]
        if slow:
            raise QueryError(f"links: nothing goes over the link {slow[0]!r}; leave it out")
        return {link: max(speeds.values()) / speed for link, speed in speeds.items()}
    for link, value in links.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise QueryError(
                f"links: {link!r} is {value!r}; give the length of every link, a number above 0, or"
                ' the bandwidth of every link, a text such as "80Mbit"'
            )
    return {link: float(value) for link, value in links.items()}


def row_bytes(schema: pa.Schema) -> float:
    """Bytes that a row has in Arrow's layout; values of no fixed width are taken for 16."""
    return sum(_bytes(field.type) for field in schema)


def _bytes(kind: Any) -> float:
    if pat.is_fixed_size_list(kind):
        return float(kind.list_size) * _bytes(kind.value_type)
    if pat.is_struct(kind):
        return sum(_bytes(one.type) for one in kind)
    try:
        return float(kind.bit_width) / 8
    except ValueError:
        return UNKNOWN
