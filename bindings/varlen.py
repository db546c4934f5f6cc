"""Rows that are sets, weighted sets, vectors or byte arrays: from Arrow to the kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from numpy.typing import NDArray
from windjoin.columns import load, together
from windjoin.errors import DataError
from windjoin.evaluate import doubles
from windjoin.expressions import Column, Expression
from windjoin.function_nodes import Parallel
from windjoin.kernels.spec import I64, ArrayColumn, SetColumn, WideForm
from windjoin.kinds import value_type
from windjoin.layout import laid_out, plain_type
from windjoin.operands import Recipe, encode

Bools = NDArray[np.bool_]
Fetch = Callable[[Column], Any]


@dataclass(frozen=True, slots=True, eq=False)
class VarlenRecipe:
    """How a wide column of a stream is made; ``item``: how its items become keys."""

    node: Expression
    form: WideForm
    item: Recipe | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for recipes that make the same column."""
        return (self.node.key, self.form, None if self.item is None else self.item.key)


@dataclass(slots=True)
class _Lists:
    """Lists of one or two children of one length: row i has children[offsets[i]:offsets[i + 1]]."""

    offsets: I64
    children: list[Any]
    valid: Bools | None


def varlen_column(
    recipe: VarlenRecipe, fetch: Fetch, first_row: int = 0
) -> tuple[SetColumn | ArrayColumn, Bools | None]:
    """The column of a recipe, and which rows are usable (None: all)."""
    lists = _read(recipe.node, fetch, first_row)
    if recipe.form == "uint8":
        values = lists.children[0]
        bad = None
        if (
            not isinstance(values, np.ndarray)
            and pat.is_uint8(values.type)
            and not values.null_count
        ):
            values = values.to_numpy(zero_copy_only=True)
        elif not isinstance(values, np.ndarray):
            loaded = load(values)
            values = loaded.data.astype(np.uint8)
            bad = None if loaded.valid is None else ~loaded.valid
        return ArrayColumn(lists.offsets, values), _without(lists, bad)
    if recipe.form in ("set", "weighted"):
        return _sets(recipe, lists)
    if not pat.is_float32(lists.children[0].type) or lists.children[0].null_count:
        loaded = load(lists.children[0])
        numbers = doubles(loaded).astype(recipe.form, copy=False)
        bad = None if loaded.valid is None else ~loaded.valid
    else:
        numbers = lists.children[0].to_numpy(zero_copy_only=True)
        bad = numbers != numbers
        numbers = numbers.astype(recipe.form, copy=False)
    return ArrayColumn(lists.offsets, numbers), _without(lists, bad)


def _sets(recipe: VarlenRecipe, lists: _Lists) -> tuple[SetColumn, Bools | None]:
    assert recipe.item is not None, "sets have items"
    items, valid = encode(recipe.item, load(lists.children[0]), None, 0)
    if recipe.form == "set":
        return SetColumn(lists.offsets, items, valid), lists.valid
    loaded = load(lists.children[1])
    weights = np.ascontiguousarray(doubles(loaded), np.float64)
    bad = None if loaded.valid is None else ~loaded.valid
    if bad is not None and valid is not None:
        bad = bad & valid  # the weight of an item that is null does not matter
    return SetColumn(lists.offsets, items, valid, weights), _without(lists, bad)


def _without(lists: _Lists, bad: Bools | None) -> Bools | None:
    """Rows that are valid and have no bad component."""
    if bad is None or not bad.any():
        return lists.valid
    before = np.zeros(len(bad) + 1, np.int64)
    np.cumsum(bad, out=before[1:])
    good: Bools = before[lists.offsets[1:]] == before[lists.offsets[:-1]]
    return good if lists.valid is None else good & lists.valid


def _read(node: Expression, fetch: Fetch, first_row: int) -> _Lists:
    if isinstance(node, Parallel):
        return _parallel(node, _lists(fetch(node.items)), _lists(fetch(node.weights)), first_row)
    assert isinstance(node, Column), "a measure takes plain columns"
    return _lists(fetch(node))


def _parallel(node: Parallel, items: _Lists, weights: _Lists, first_row: int) -> _Lists:
    """Two list columns as one; a row is valid if both are."""
    valid = items.valid
    if weights.valid is not None:
        valid = weights.valid if valid is None else valid & weights.valid
    lengths, others = np.diff(items.offsets), np.diff(weights.offsets)
    apart = lengths != others
    if valid is not None:
        apart &= valid
    if apart.any():
        row = int(np.flatnonzero(apart)[0])
        raise DataError(
            f"stream {node.items.stream!r}, row {first_row + row}: `{node.items!r}` has"
            f" {lengths[row]} items but `{node.weights!r}` has {others[row]} weights;"
            " every item needs one weight"
        )
    if valid is not None:
        lengths = np.where(valid, lengths, 0)
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    children = []
    for one in (items, weights):
        at = np.repeat(one.offsets[:-1] - offsets[:-1], lengths) + np.arange(offsets[-1])
        children.append(one.children[0].take(pa.array(at)))
    return _Lists(offsets, children, valid)


def _lists(column: Any) -> _Lists:
    """Without what lies before the first row and after the last one, as in a slice of a table."""
    lists = _whole(column)
    first, last = int(lists.offsets[0]), int(lists.offsets[-1])
    if first == 0 and all(len(child) == last for child in lists.children):
        return lists
    children = [
        child[first:last] if isinstance(child, np.ndarray) else child.slice(first, last - first)
        for child in lists.children
    ]
    return _Lists(lists.offsets - first, children, lists.valid)


def _whole(column: Any) -> _Lists:
    array = _plain(column)
    arrow, n = array.type, len(array)
    valid = None if array.null_count == 0 else np.asarray(array.is_valid())
    if pat.is_fixed_size_binary(arrow):
        data = np.frombuffer(array.buffers()[1], np.uint8)
        return _Lists((np.arange(n + 1) + array.offset) * arrow.byte_width, [data], valid)
    if pat.is_large_binary(arrow):
        offsets, data = array.buffers()[1:]
        bytes_ = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        where = (
            np.frombuffer(offsets, np.int64, n + 1, array.offset * 8)
            if n
            else np.zeros(1, np.int64)
        )
        return _Lists(where, [bytes_], valid)
    if pat.is_fixed_size_list(arrow):
        where = (np.arange(n + 1) + array.offset) * arrow.list_size
        return _Lists(where, _children(array.values), valid)
    if pat.is_list_view(arrow) or pat.is_large_list_view(arrow):
        return _Lists(*_of_views(array), valid)
    where = array.offsets.to_numpy().astype(np.int64)
    if pat.is_map(arrow):
        return _Lists(where, [array.keys, array.items], valid)
    return _Lists(where, _children(array.values), valid)


def _of_views(array: Any) -> tuple[I64, list[Any]]:
    """Offsets and children of list views, one row after the other: Arrow's cast mixes rows up."""
    lengths = array.value_lengths().fill_null(0).to_numpy()
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets, _children(array.flatten())


def _children(values: Any) -> list[Any]:
    """What stands in lists, as one array or one for each of two fields."""
    return values.flatten() if pat.is_struct(values.type) else [values]


def _plain(column: Any) -> Any:
    """One array of a layout that `_lists` reads."""
    arrow = value_type(column.type)
    if pat.is_binary(arrow) or pat.is_binary_view(arrow):
        arrow = pa.large_binary()
    return together(laid_out(column, plain_type(arrow)))
