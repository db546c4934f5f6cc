"""Rows of live windows as whoever keeps them elsewhere takes them: with values instead of codes.

What a window holds of a row is what the bindings once made of it: its time, operands, keys and wide
columns.  `export` gives those back, and `Intake.load` takes them without joining anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from windjoin.kernels.records import ABSENT
from windjoin.kernels.spec import I64, ArrayColumn, BytesColumn, Rows, SetColumn, WideSpec
from windjoin.kernels.window import LONG_AGO, Window
from windjoin.pyx.encoding.keys import BytesSpace, KeySpace
from windjoin.pyx.encoding.records import contents, weighted_contents

Spaces = Mapping[int, KeySpace]
VALUES = {"float32": np.float32, "float64": np.float64, "uint8": np.uint8}


class Exporter:
    """Gives rows of one window; what it needs of key spaces it looks up once."""

    def __init__(self, window: Window, spaces: Spaces) -> None:
        self._window, self._spaces = window, spaces
        self._keys: dict[int, I64] = {}
        self._hashes: dict[int, I64] = {}

    def rows(self, numbers: I64) -> Rows:
        """Rows by arrival number; those that match nothing have no values that count."""
        stored = self._window.stored(numbers)
        spec = self._window.spec
        usable = (stored.time != LONG_AGO) & (numbers >= self._window.head)
        keys = [
            self._values(space, np.where(usable, codes, -1).astype(np.int32))
            for codes, space in zip(stored.codes, spec.spaces, strict=True)
        ]
        wides = [
            self._wide(wide, records.start, np.where(usable, records.length, 0).astype(np.int32))
            for wide, records in zip(spec.wides, stored.wides, strict=True)
        ]
        every = bool(usable.all())
        return Rows(stored.time, stored.columns, keys, wides, None if every else usable)

    def times(self, numbers: I64) -> I64:
        """Times of rows."""
        return self._window.times(numbers)

    def hashes(self, key: int, numbers: I64) -> I64:
        """Of a key of rows, integers that are equal where the keys are."""
        codes = self._window.stored_codes(key, numbers)
        space = self._window.spec.spaces[key]
        if space not in self._hashes:
            keys = self._spaces[space].keys()
            self._hashes[space] = keys if len(keys) else np.zeros(1, np.int64)
        found: I64 = self._hashes[space][codes]
        return found

    def _values(self, number: int, codes: Any) -> I64 | BytesColumn:
        space = self._spaces[number]
        if isinstance(space, BytesSpace):
            return BytesColumn(*space.take(codes))
        if number not in self._keys:
            keys = space.keys()
            self._keys[number] = keys if len(keys) else np.zeros(1, np.int64)
        found: I64 = self._keys[number][codes]  # -1: the last one, which does not count
        return found

    def _wide(self, wide: WideSpec, start: I64, length: Any) -> SetColumn | ArrayColumn:
        absent = length == ABSENT
        some = absent if bool(absent.any()) else None
        if wide.form in VALUES:
            return ArrayColumn(*contents(start, length, VALUES[wide.form]), some)
        if wide.form == "weighted":
            offsets, codes, weights = weighted_contents(start, length)
            return SetColumn(offsets, self._values(wide.space, codes), None, weights, some)
        offsets, codes = contents(start, length, np.int32)
        return SetColumn(offsets, self._values(wide.space, codes), None, None, some)
