"""Codes of keys: equal values of one key space get equal dense int32 codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from windjoin.kernels.side import Table
from windjoin.kernels.spec import I64, BytesColumn, JoinSpec
from windjoin.pyx.encoding.integers import close_together, encode_integers
from windjoin.pyx.encoding.keys import KeySpace, encode_dense
from windjoin.pyx.encoding.string_keys import BytesSpace
from windjoin.pyx.encoding.texts import encode_texts

KeyColumns = Sequence[Sequence[I64 | BytesColumn]]


def new_space(kind: str) -> KeySpace:
    """An empty dictionary for keys of a kind of `StreamSpec.keys`."""
    return BytesSpace() if kind == "bytes" else KeySpace()


def encode_tables(spec: JoinSpec, tables: Sequence[Table], keys: KeyColumns) -> set[int]:
    """Set ``codes`` and ``code_counts`` of all tables of a batch; ``keys``: per stream, per key.

    Returns the key spaces that need no dictionary, as their integers lie close together.
    """
    spaces: dict[int, list[tuple[int, int]]] = {}
    for s, stream in enumerate(spec.streams):
        tables[s].codes = [np.empty(0, np.int32)] * len(stream.keys)
        tables[s].code_counts = [0] * len(stream.keys)
        for k, space in enumerate(stream.spaces):
            spaces.setdefault(space, []).append((s, k))
    close = set()
    for space, places in spaces.items():
        columns = [keys[s][k] for s, k in places]
        kind = spec.streams[places[0][0]].keys[places[0][1]]
        bounds = None if kind == "bytes" else all_close(columns)
        if bounds is not None:
            close.add(space)
        codes, count = _encode(columns, kind, bounds)
        for (s, k), column_codes in zip(places, codes, strict=True):
            tables[s].codes[k] = column_codes
            tables[s].code_counts[k] = count
    return close


def _encode(columns: list[Any], kind: str, bounds: tuple[int, int] | None) -> tuple[list[Any], int]:
    if kind == "bytes":
        return encode_texts(columns)
    if bounds is not None:  # no dictionary needed
        low, count = bounds
        return [encode_dense(column, low) for column in columns], count
    return encode_integers(columns)


def all_close(columns: list[Any]) -> tuple[int, int] | None:
    """The least key and how many lie up to the greatest, if they are not many more than rows."""
    return close_together(columns, 4 * sum(len(column) for column in columns) + 1024)
