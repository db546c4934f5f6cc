"""Values as the kernels take them: int64 or float64 columns, and keys.

A `Recipe` says what to compute from the rows of one stream and how to encode it.  Where two
operands of one predicate count in different domains (seconds and nanoseconds, int64 and uint64,
integers and doubles), one of them is the target and the other becomes, row by row, the integer
bound that decides the comparison exactly; a row for which it can never hold is unusable.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from windjoin import exact
from windjoin.checking import Typed
from windjoin.columns import Values
from windjoin.errors import DataError
from windjoin.evaluate import both, counted_in, doubles, fractions
from windjoin.kernels.spec import BytesColumn
from windjoin.kinds import INT64_MAX, INT64_MIN, STEP_UNITS, UINT64_MAX, Kind

Bools = NDArray[np.bool_]
Form = Literal["int64", "flipped", "float64", "bits", "words", "bytes"]
Rule = Literal["fits", "exact", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """How one operand or key of a stream is made.

    ``form``: ``int64``; ``flipped`` (uint64 with the sign bit turned over, which keeps the order);
    ``float64``; ``bits`` (doubles as keys); ``words`` (wide decimals as keys); ``bytes``.
    ``rule``: how a value of another domain gets there: it must fit (else a `DataError`), it must be
    exactly representable (else the row is unusable), or it becomes the bound for
    ``target <rule> value``.
    """

    typed: Typed
    form: Form
    step: Fraction = Fraction(1)
    rule: Rule = "fits"
    words: int = 0

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for recipes that make the same array."""
        return (self.typed.node.key, self.form, self.step, self.rule, self.words)


def form_of(kind: Kind) -> Literal["int64", "flipped", "float64", "bytes", "words"]:
    """The form in which values of ``kind`` are themselves."""
    if kind.family == "float":
        return "float64"
    if kind.family in ("text", "binary"):
        return "bytes"
    if kind.fits_int64:
        return "int64"
    return "flipped" if kind.fits_uint64 else "words"


def itself(typed: Typed) -> Recipe:
    """The values as they are."""
    return Recipe(typed, form_of(typed.kind), typed.kind.step)


def bounded(typed: Typed, target: Typed, rule: Rule) -> Recipe:
    """``typed`` in the domain of ``target``, for ``target <rule> typed``."""
    return Recipe(typed, form_of(target.kind), target.kind.step, rule)


def same_domain(left: Typed, right: Typed) -> tuple[Recipe, Recipe]:
    """Keys of two operands of one family in a domain that has every value of both."""
    forms = form_of(left.kind), form_of(right.kind)
    if forms[0] == "float64":
        return Recipe(left, "bits"), Recipe(right, "bits")
    if forms[0] == forms[1] != "words" and left.kind.step == right.kind.step:
        return Recipe(left, forms[0], left.kind.step), Recipe(right, forms[1], right.kind.step)
    step = min(left.kind.step, right.kind.step)
    kinds = left.kind.counted_in(step), right.kind.counted_in(step)
    count = max(word_count(kind.low, kind.high) for kind in kinds)
    return Recipe(left, "words", step, words=count), Recipe(right, "words", step, words=count)


def encode(
    recipe: Recipe, values: Values, live: Bools | None, first_row: int
) -> tuple[Any, Bools | None]:
    """The array (or `BytesColumn`) of a recipe, and which rows are usable (None: all).

    ``live``: the rows that matter; only they can be in error.
    """
    if recipe.form == "bytes":
        return _bytes(values.data), values.valid
    if recipe.form == "words":
        return words(counted_in(recipe.step, values), recipe.words), values.valid
    if recipe.form in ("float64", "bits"):
        valid = values.valid
        if recipe.rule == "fits":
            data = doubles(values)
        else:
            data, possible = exact.double_limits(recipe.rule, *fractions(values))
            valid = both(valid, possible)
        # adding 0.0 turns -0.0 into 0.0, so that equal doubles have equal bits
        return (data if recipe.form == "float64" else (data + 0.0).view(np.int64)), valid
    checked = _Checked(recipe, values.valid, live, first_row)
    return _integers(recipe, values, checked)


@dataclass(frozen=True, slots=True)
class _Checked:
    """Refuses values that do not fit, at rows that matter."""

    recipe: Recipe
    valid: Bools | None
    live: Bools | None
    first_row: int

    def within(self, data: Any, low: int, high: int, dtype: Any) -> Any:
        """``data`` as ``dtype``; values outside ``low..high`` are errors, or 0 where unused."""
        if data.dtype == dtype:
            return data
        outside = np.asarray((data < low) | (data > high), np.bool_)
        if outside.any():
            self._refuse(data, outside, "uint64" if high > INT64_MAX else "int64")
            data = np.where(outside, 0, data)
        return data.astype(dtype)

    def _refuse(self, data: Any, outside: Bools, fits: str) -> None:
        for mask in (self.valid, self.live):
            if mask is not None:
                outside = outside & mask
        rows = np.flatnonzero(outside)
        if len(rows):
            node = self.recipe.typed.node
            unit = _unit(self.recipe)
            raise DataError(
                f"stream {node.streams[0]!r}, `{node!r}`, row {self.first_row + int(rows[0])}:"
                f" value {data[rows[0]]}{unit} does not fit {fits};"
                " exclude such rows with where=, or compare a smaller quantity"
            )


def _unit(recipe: Recipe) -> str:
    """What mantissas of a recipe count, for messages: `` ns``, `` times 1/100`` or nothing."""
    if recipe.typed.kind.family in ("integer", "bool"):
        return ""
    times = recipe.typed.kind.family != "decimal"
    return f" {STEP_UNITS[recipe.step]}" if times else f" times {recipe.step}"


def _integers(recipe: Recipe, values: Values, checked: _Checked) -> tuple[Any, Bools | None]:
    unsigned = recipe.form == "flipped"
    if values.kind.family == "float":
        return _converted(recipe, values.data, values.valid, unsigned, 1)
    if values.kind.family == "bool":
        return values.data.astype(np.int64), values.valid
    if recipe.rule == "fits":
        data = counted_in(recipe.step, values)
        if unsigned:
            return exact.flipped(checked.within(data, 0, UINT64_MAX, np.uint64)), values.valid
        return checked.within(data, INT64_MIN, INT64_MAX, np.int64), values.valid
    if values.kind.fits_uint64:
        own = checked.within(values.data, 0, UINT64_MAX, np.uint64)
    else:
        own = checked.within(values.data, INT64_MIN, INT64_MAX, np.int64)
    ratio = int(recipe.step / values.kind.step)
    return _converted(recipe, own, values.valid, unsigned, ratio)


def _converted(
    recipe: Recipe, data: Any, valid: Bools | None, unsigned: bool, ratio: int
) -> tuple[Any, Bools]:
    if recipe.rule == "exact":
        encoded, possible = exact.whole(data, unsigned, ratio)
    else:
        _, encoded, possible = exact.limits(recipe.rule, data, unsigned, ratio)
    return encoded, possible if valid is None else possible & valid


def _bytes(array: Any) -> BytesColumn:
    offsets, data = array.buffers()[1:]
    if len(array) == 0:
        return BytesColumn(np.zeros(1, np.int64), np.zeros(0, np.uint8))
    return BytesColumn(
        np.frombuffer(offsets, np.int64, len(array) + 1, array.offset * 8),
        np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8),
    )


def word_count(low: int, high: int) -> int:
    """64-bit words that hold every integer of ``low..high`` in two's complement."""
    return max(low.bit_length(), high.bit_length()) // 64 + 1


def words(data: Any, count: int) -> BytesColumn:
    """Integers as fixed-width two's complement, which is equal exactly where they are."""
    table = np.empty((len(data), count), np.uint64)
    wide = data if data.dtype == np.int64 else data.astype(object)
    for word in range(count):
        if wide.dtype == np.int64:
            table[:, word] = (wide if word == 0 else wide >> 63).view(np.uint64)
        else:
            table[:, word] = ((wide >> (64 * word)) & UINT64_MAX).astype(np.uint64)
    offsets = np.arange(len(data) + 1, dtype=np.int64) * (8 * count)
    return BytesColumn(offsets, table.reshape(-1).view(np.uint8))
