"""Rows of live windows as whoever keeps them elsewhere takes them: with values instead of codes.

What a window holds of a row is what the bindings once made of it: its time, operands, keys and wide
columns.  `export` gives those back, and `Intake.load` takes them without joining anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from windjoin.kernels.side import Codes
from windjoin.kernels.spec import I64, ArrayColumn, BytesColumn, Rows, SetColumn, VarlenSpec
from windjoin.kernels.varlen import ABSENT
from windjoin.kernels.window import LONG_AGO, Window
from windjoin.pyx.encoding.keys import KeySpace
from windjoin.pyx.encoding.string_keys import BytesSpace
from windjoin.pyx.encoding.varlen import contents, weighted_contents

Spaces = Mapping[int, KeySpace]
VALUES = {"float32": np.float32, "float64": np.float64, "uint8": np.uint8}


def _of_usable(codes: Codes, usable: NDArray[np.bool_]) -> Codes:
    """Codes, -1 where rows are not usable."""
    return codes if bool(usable.all()) else np.where(usable, codes, -1).astype(np.int32)


class Exporter:
    """Gives rows of one window; what it needs of key spaces it looks up once.

    keys: where that is kept, by space; for several exporters, as long as no code changes
    """

    def __init__(self, window: Window, spaces: Spaces, keys: dict[int, I64] | None = None) -> None:
        self._window, self._spaces = window, spaces
        self._keys: dict[int, I64] = {} if keys is None else keys

    def rows(self, numbers: I64, known: Mapping[int, I64] | None = None) -> Rows:
        """Rows by arrival number; those that match nothing have no values that count.

        known: values of these keys, where somebody has them: spaces find them by looking at all
        """
        known = known or {}
        stored = self._window.stored(numbers)
        spec = self._window.spec
        usable = (stored.time != LONG_AGO) & (numbers >= self._window.head)
        keys = [
            known[k] if k in known else self._values(space, _of_usable(codes, usable))
            for k, (codes, space) in enumerate(zip(stored.codes, spec.spaces, strict=True))
        ]
        varlen = [
            self._varlen(
                wide, varlen_rows.start, np.where(usable, varlen_rows.length, 0).astype(np.int32)
            )
            for wide, varlen_rows in zip(spec.varlen, stored.varlen, strict=True)
        ]
        every = bool(usable.all())
        return Rows(stored.time, stored.columns, keys, varlen, None if every else usable)

    def times(self, numbers: I64) -> I64:
        """Times of rows."""
        return self._window.times(numbers)

    def codes(self, key: int, numbers: I64) -> Codes:
        """Codes of a key of rows."""
        return self._window.stored_codes(key, numbers)

    def hashes(self, key: int) -> I64:
        """By code of a key, integers that are equal where the keys are."""
        return self._by_code(self._window.spec.spaces[key])

    def _by_code(self, number: int) -> I64:
        if number not in self._keys:
            keys = self._spaces[number].keys()
            self._keys[number] = keys if len(keys) else np.zeros(1, np.int64)
        return self._keys[number]

    def _values(self, number: int, codes: Any) -> I64 | BytesColumn:
        space = self._spaces[number]
        if isinstance(space, BytesSpace):
            return BytesColumn(*space.take(codes))
        found: I64 = self._by_code(number)[codes]  # -1: the last one, which does not count
        return found

    def _varlen(self, wide: VarlenSpec, start: I64, length: Any) -> SetColumn | ArrayColumn:
        absent = length == ABSENT
        some = absent if bool(absent.any()) else None
        if wide.form in VALUES:
            return ArrayColumn(*contents(start, length, VALUES[wide.form]), some)
        if wide.form == "weighted":
            offsets, codes, weights = weighted_contents(start, length)
            return SetColumn(offsets, self._values(wide.space, codes), None, weights, some)
        offsets, codes = contents(start, length, np.int32)
        return SetColumn(offsets, self._values(wide.space, codes), None, None, some)
