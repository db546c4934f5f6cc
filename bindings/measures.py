"""What the measures mean: the columns they take, their values, how the kernels compare them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from windjoin.checking import Typed
from windjoin.columns import Values
from windjoin.errors import SchemaError
from windjoin.expressions import Expression
from windjoin.function_nodes import PairFunction
from windjoin.kernels.scores import NO_COUNT
from windjoin.kernels.similarity import measure_columns
from windjoin.kernels.spec import WideForm
from windjoin.kinds import FLOAT, Kind, kind_of, value_type
from windjoin.operands import Recipe, same_domain
from windjoin.pairs import definition, measured_type, register
from windjoin.varlen import Fetch, VarlenRecipe, varlen_column

SETS = ("overlap", "jaccard", "containment", "cosine_sets")
WEIGHTED = ("inner_product", "cosine")
VECTORS = ("l2", "l1", "linf", "dot", "cosine")
BYTES = ("mean_abs_diff", "hamming", "hamming_bits")
NAMES = frozenset((*SETS, *WEIGHTED, *VECTORS, *BYTES))
EITHER = ("l2", "l1")  # of vectors, and of bytes
COUNTS = ("overlap", "hamming", "hamming_bits")
COUNT = Kind("integer", low=0, high=2**62)


@dataclass(frozen=True, slots=True)
class Operands:
    """How the two columns of a measure are made, and the kernels' name for it."""

    measure: str
    left: VarlenRecipe
    right: VarlenRecipe


class _Definition:
    """One measure; see `windjoin.pairs.PairDefinition`."""

    def check(
        self, node: PairFunction, left: pa.DataType | None, right: pa.DataType | None
    ) -> Kind:
        operands(node, left, right)
        return COUNT if node.name in COUNTS else FLOAT

    def evaluate(self, node: PairFunction, fetch: Fetch) -> Values:
        types = (measured_type(part, lambda column: fetch(column).type) for part in node.parts)
        made = operands(node, *types)
        sides = [varlen_column(recipe, fetch) for recipe in (made.left, made.right)]
        values = measure_columns(made.measure, sides[0][0], sides[1][0])
        valid = values == values
        for _, usable in sides:
            if usable is not None:
                valid &= usable
        if node.name in COUNTS:
            return Values(COUNT, np.where(valid, values, 0).astype(np.int64), valid)
        return Values(FLOAT, values, valid)


def score_values(scores: Any, certain: bool) -> Values:
    """Scores of the kernels as values; ``certain``: none of them is missing."""
    counts = scores.dtype == np.int64
    kind = COUNT if counts else FLOAT
    least = 0 if certain or not len(scores) else scores.min()  # NaN is less than all
    if least == least and (not counts or least != NO_COUNT):
        return Values(kind, scores)
    valid = scores != NO_COUNT if counts else scores == scores
    return Values(kind, np.where(valid, scores, 0) if counts else scores, valid)


def has_kernel(node: PairFunction) -> bool:
    """Whether the kernels know a measure themselves."""
    return isinstance(definition(node), _Definition)


def operands(node: PairFunction, left: Any, right: Any) -> Operands:
    """How a measure of columns of two types is computed; `SchemaError` where it cannot be."""
    name = node.name
    shapes = _Shape(node.left, left), _Shape(node.right, right)
    if name in WEIGHTED and all(shape.weighted for shape in shapes):
        measure = "cosine_weights" if name == "cosine" else name
        return Operands(measure, *_items(node, shapes, "weighted"))
    if name in SETS and all(shape.items is not None for shape in shapes):
        return Operands(name, *_items(node, shapes, "set"))
    if name in (*BYTES, *EITHER) and all(shape.bytes for shape in shapes):
        recipes = [VarlenRecipe(part, "uint8") for part in node.parts]
        return Operands(f"bytes_{name}" if name in EITHER else name, *recipes)
    if name in VECTORS and all(shape.numbers is not None for shape in shapes):
        form: WideForm = "float32" if all(s.fits_float32 for s in shapes) else "float64"
        return Operands(name, *(VarlenRecipe(part, form) for part in node.parts))
    raise SchemaError(
        f"`{node!r}` takes {_WANTED[name]}; `{node.left!r}` is {left}, `{node.right!r}` is {right}"
    )


_WANTED = dict.fromkeys(SETS, "lists of items (integers, text, ...)")
_WANTED |= dict.fromkeys(VECTORS, "lists of numbers")
_WANTED |= dict.fromkeys(BYTES, "binary columns or lists of uint8")
_WANTED |= dict.fromkeys(EITHER, "lists of numbers, or two binary columns")
_WEIGHTS = "maps from items to numbers, lists of (item, weight) structs, or pairs of list columns"
_WANTED |= {"inner_product": _WEIGHTS, "cosine": f"lists of numbers, or {_WEIGHTS}"}


class _Shape:
    """What a column can stand for, judged by its type."""

    def __init__(self, node: Expression, arrow: Any) -> None:
        self.node = node
        self.items: Any = None  # type of the items of a set, plain or weighted
        self.numbers: Any = None  # type of the components of a vector
        self.weighted = False
        arrow = value_type(arrow)
        self.bytes = pat.is_fixed_size_binary(arrow) or pat.is_binary(arrow)
        self.bytes |= pat.is_large_binary(arrow) or pat.is_binary_view(arrow)
        if pat.is_map(arrow):
            self._weighted(arrow.key_type, arrow.item_type)
        elif _is_list(arrow):
            self._list(value_type(arrow.value_type), arrow.value_type)

    def _list(self, inner: Any, written: Any) -> None:
        if pat.is_struct(inner):
            if inner.num_fields == 2:
                self._weighted(inner.field(0).type, inner.field(1).type)
            return
        family = kind_of(inner).family
        if family not in ("nested", "null"):
            self.items = written
        if family in ("integer", "float"):
            self.numbers = inner
        self.bytes = pat.is_uint8(inner)

    def _weighted(self, items: Any, weights: Any) -> None:
        known = kind_of(items).family not in ("nested", "null")
        if known and kind_of(weights).family in ("integer", "float", "decimal"):
            self.weighted, self.items = True, items

    @property
    def fits_float32(self) -> bool:
        """Whether every component is exactly a float32."""
        if pat.is_floating(self.numbers):
            return not pat.is_float64(self.numbers)
        return bool(self.numbers.bit_width <= 16)


def _is_list(arrow: Any) -> bool:
    tests = (
        pat.is_list, pat.is_large_list, pat.is_fixed_size_list, pat.is_list_view,
        pat.is_large_list_view,
    )  # fmt: skip
    return any(test(arrow) for test in tests)


def _items(
    node: PairFunction, shapes: tuple[_Shape, _Shape], form: WideForm
) -> tuple[VarlenRecipe, VarlenRecipe]:
    typed = [Typed(shape.node, kind_of(shape.items)) for shape in shapes]
    left, right = (one.kind for one in typed)
    zoned = (left.zone is None) != (right.zone is None)
    if left.family != right.family or zoned:
        raise SchemaError(
            f"`{node!r}`: items of `{node.left!r}` are {shapes[0].items}, of `{node.right!r}`"
            f" {shapes[1].items}; cast them to one type"
        )
    recipes: tuple[Recipe, Recipe] = same_domain(*typed)
    first, second = (
        VarlenRecipe(shape.node, form, recipe)
        for shape, recipe in zip(shapes, recipes, strict=True)
    )
    return first, second


for _name in NAMES:
    register(_name, _Definition())
