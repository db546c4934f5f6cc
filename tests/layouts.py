"""The same values in every layout that Arrow has for them; imports nothing of the package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

Values = list[Any]
Build = Callable[[Values], Any]  # plain values to an array of the type they have


class Tagged(pa.ExtensionType):
    """An extension type over any storage."""

    def __init__(self, storage: Any = None) -> None:
        super().__init__(pa.int64() if storage is None else storage, "windjoin.tests.tagged")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: Any, serialized: bytes) -> Tagged:
        return cls(storage)


def tagged(array: Any) -> Any:
    return pa.ExtensionArray.from_storage(Tagged(array.type), array)


def coded(values: Values, build: Build, index: Any = None, nulls_inside: bool = False) -> Any:
    """A dictionary array; its nulls beside the dictionary, or inside it."""
    words = list(dict.fromkeys(value for value in values if value is not None))
    numbers = [None if value is None else words.index(value) for value in values]
    if nulls_inside:
        numbers = [len(words) if number is None else number for number in numbers]
        words.append(None)
    return pa.DictionaryArray.from_arrays(pa.array(numbers, index or pa.int8()), build(words))


def in_runs(array: Any) -> Any:
    """Every value as a run of its own."""
    ends = pa.array(range(1, len(array) + 1), pa.int32())
    runs = pa.run_end_encoded(pa.int32(), array.type)
    return pa.RunEndEncodedArray.from_arrays(ends, array, runs)


LAYOUTS: dict[str, Callable[[Values, Build], Any]] = {
    "plain": lambda values, build: build(values),
    "dictionary": coded,
    "dictionary of uint64": lambda values, build: coded(values, build, pa.uint64()),
    "nulls in dictionary": lambda values, build: coded(values, build, nulls_inside=True),
    "runs": lambda values, build: in_runs(build(values)),
    "runs of dictionary": lambda values, build: in_runs(coded(values, build)),
    "extension": lambda values, build: tagged(build(values)),
    "extension of dictionary": lambda values, build: tagged(coded(values, build)),
}


def _offsets(rows: list[Values | None], kind: Any) -> tuple[Any, Any]:
    lengths = [len(row or ()) for row in rows]
    return pa.array(np.cumsum([0, *lengths]), kind), pa.array(lengths, kind)


def _views(rows: list[Values | None], items: Any, kind: Any, make: Any) -> Any:
    offsets, lengths = _offsets(rows, kind)
    return make.from_arrays(offsets[:-1], lengths, items, mask=_missing(rows))


def _missing(rows: list[Values | None]) -> Any:
    return pa.array([row is None for row in rows], pa.bool_())


def _listed(rows: list[Values | None], items: Any, kind: Any, make: Any) -> Any:
    return make.from_arrays(_offsets(rows, kind)[0], items, mask=_missing(rows))


def _flat(rows: list[Values | None], width: int | None = None) -> Values:
    empty = [None] * (width or 0)
    return [item for row in rows for item in (empty if row is None else row[:width])]


def _lists_in_dictionary(rows: list[Values | None], inner: Build) -> Any:
    lists: Any = []
    for row in rows:
        if row is not None and row not in lists:
            lists.append(row)
    numbers = [None if row is None else lists.index(row) for row in rows]
    return pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int8()), _plain(lists, inner))


def _plain(rows: list[Values | None], inner: Build) -> Any:
    return _listed(rows, inner(_flat(rows)), pa.int32(), pa.ListArray)


def _pairs(rows: list[Values | None], inner: Build) -> list[Any]:
    items = inner([row[0] if row else None for row in rows])
    lengths = pa.array([None if row is None else len(row) for row in rows], pa.int64())
    return [items, lengths]


def _union(rows: list[Values | None], inner: Build, dense: bool) -> Any:
    codes = pa.array([0 if row else 1 for row in rows], pa.int8())
    if dense:
        places = pa.array(range(len(rows)), pa.int32())
        return pa.UnionArray.from_dense(codes, places, _pairs(rows, inner), ["x", "y"])
    return pa.UnionArray.from_sparse(codes, _pairs(rows, inner), ["x", "y"])


def _mapped(rows: list[Values | None], inner: Build) -> Any:
    keys = pa.array([f"{n}" for row in rows for n in range(len(row or ()))], pa.string())
    offsets = _offsets(rows, pa.int32())[0].to_pylist()
    shown = [None if row is None else o for o, row in zip(offsets, [*rows, []], strict=True)]
    return pa.MapArray.from_arrays(pa.array(shown, pa.int32()), keys, inner(_flat(rows)))


LISTS: dict[str, Callable[[list[Values | None], Build], Any]] = {
    "list": _plain,
    "large list": lambda rows, inner: _listed(
        rows, inner(_flat(rows)), pa.int64(), pa.LargeListArray
    ),
    "fixed list": lambda rows, inner: pa.FixedSizeListArray.from_arrays(
        inner(_flat(rows, 2)), 2, mask=_missing(rows)
    ),
    "list view": lambda rows, inner: _views(rows, inner(_flat(rows)), pa.int32(), pa.ListViewArray),
    "large list view": lambda rows, inner: _views(
        rows, inner(_flat(rows)), pa.int64(), pa.LargeListViewArray
    ),
    "dictionary of lists": _lists_in_dictionary,
    "runs of lists": lambda rows, inner: in_runs(_plain(rows, inner)),
}
OTHERS: dict[str, Callable[[list[Values | None], Build], Any]] = {
    "struct": lambda rows, inner: pa.StructArray.from_arrays(
        _pairs(rows, inner), ["x", "y"], mask=_missing(rows)
    ),
    "map": _mapped,
    "list of lists": lambda rows, inner: pa.ListArray.from_arrays(
        pa.array(range(len(rows) + 1), pa.int32()), _plain(rows, inner)
    ),
    "sparse union": lambda rows, inner: _union(rows, inner, dense=False),
    "dense union": lambda rows, inner: _union(rows, inner, dense=True),
}


def arranged(values: Values, build: Build) -> Iterator[tuple[str, Any]]:
    """The values in one chunk, and in slices of several, empty ones too."""

    def chunks(parts: list[Values]) -> Any:
        arrays = [build(part) for part in parts]
        return pa.chunked_array(arrays, arrays[0].type)

    yield "one chunk", chunks([values])
    third = len(values) // 3
    parts = [[None], [None, *values[:third]], [], [*values[third:], values[0]]]
    yield "chunks", chunks(parts).slice(2, len(values))
