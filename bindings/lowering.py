"""From conditions to the kernels' predicates: which operands, which keys, which predicate.

The rules (``docs/queries.md`` has them as a table): equality becomes keys, inequality and
differences become int64 or float64 operands, a user function gets plain columns, a condition on one
stream becomes a filter of that stream, anything else is evaluated as it stands on candidate pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

import pyarrow as pa
from windjoin.bands import Band, band_of
from windjoin.checking import Typed, check, check_condition, column_type
from windjoin.compared import ComparedValue, compared, of_several
from windjoin.conjunctions import atoms
from windjoin.exact import at_least, at_most
from windjoin.expressions import MIRRORED, Comparison, Constant, Expression, Unary
from windjoin.function_nodes import PairFunction, Udf
from windjoin.kernels import spec
from windjoin.measures import has_kernel, operands
from windjoin.operands import Recipe, Rule, bounded, form_of, itself, word_count
from windjoin.pairs import measured_type
from windjoin.varlen import VarlenRecipe


@dataclass(slots=True)
class StreamPlan:
    """What is made from the rows of one stream."""

    columns: list[Recipe] = field(default_factory=list)
    keys: list[Recipe] = field(default_factory=list)
    filters: list[Typed] = field(default_factory=list)
    owned: int = 0  # of these, the first: what ``where`` says, apart from what conditions come to
    spaces: list[int] = field(default_factory=list)
    varlen: list[VarlenRecipe] = field(default_factory=list)
    scored: list[VarlenRecipe] = field(default_factory=list)  # wide columns that only scores read
    wide_spaces: list[int] = field(default_factory=list)

    def dtypes(self) -> tuple[spec.Dtype, ...]:
        """The dtypes of the operand columns."""
        return tuple("float64" if r.form == "float64" else "int64" for r in self.columns)

    def key_forms(self) -> tuple[Literal["int64", "bytes"], ...]:
        """The layouts of the keys."""
        return tuple(_layout(recipe) for recipe in self.keys)

    def wide_specs(self) -> tuple[spec.VarlenSpec, ...]:
        """What the wide columns hold."""
        return tuple(
            spec.VarlenSpec(
                recipe.form, "int64" if recipe.item is None else _layout(recipe.item), space
            )
            for recipe, space in zip(self.all_varlen, self.wide_spaces, strict=True)
        )

    @property
    def all_varlen(self) -> list[VarlenRecipe]:
        """Wide columns as the kernels number them."""
        return [*self.varlen, *self.scored]

    def without_scores(self) -> StreamPlan:
        """What is made for the conditions alone."""
        return replace(self, scored=[], wide_spaces=self.wide_spaces[: len(self.varlen)])


class Lowering:
    """Lowers the conditions of one query; ``predicates`` and ``plans`` are the result.

    ``opaque`` holds, by position among the predicates, what `spec.Opaque` evaluates; ``scores``
    the measures that are selected.
    """

    def __init__(self, names: tuple[str, ...], schemas: Mapping[str, pa.Schema]) -> None:
        self._names = names
        self._schemas = schemas
        self._space: dict[tuple[int, int], tuple[int, int]] = {}  # union-find over (stream, key)
        self.plans = [StreamPlan() for _ in names]
        self.predicates: list[spec.Predicate] = []
        self.scores: list[spec.Score] = []
        self.opaque: dict[int, Typed] = {}

    def filter(self, stream: int, condition: Expression) -> None:
        """Keep only the rows of a stream for which ``condition`` is true."""
        self.plans[stream].filters.append(check_condition(condition, self._schemas))

    def where(self, stream: int, condition: Expression) -> None:
        """The same as its ``where``, before any condition is added: others are no rows of it."""
        self.filter(stream, condition)
        self.plans[stream].owned += 1

    def add(self, condition: Expression) -> None:
        """Lower one condition of the conjunction."""
        check_condition(condition, self._schemas)
        text = repr(condition)
        for atom in atoms(condition):
            self._atom(check(atom, self._schemas), text)

    def score(self, node: PairFunction) -> int:
        """The number of the score that is ``node``; asked for once all conditions are in."""
        left, right, measure = self._ends(node, self._shown_varlen)
        new = spec.Score(left, right, measure, self._certain(left, right, measure))
        if new not in self.scores:
            self.scores.append(new)
        return self.scores.index(new)

    def finish(self) -> None:
        """Number the key spaces, once all conditions and scores are in."""
        roots: dict[tuple[int, int], int] = {}
        for stream, plan in enumerate(self.plans):
            for number in range(len(plan.keys)):
                root = self._root((stream, number))
                plan.spaces.append(roots.setdefault(root, len(roots)))
            for number, recipe in enumerate(plan.all_varlen):
                root = self._root((stream, -1 - number))
                space = roots.setdefault(root, len(roots)) if recipe.item else -1
                plan.wide_spaces.append(space)
        for position, predicate in enumerate(self.predicates):
            if isinstance(predicate, (spec.Equal, spec.NotEqual)):
                left, right = (self._placed(key) for key in (predicate.left, predicate.right))
                self.predicates[position] = replace(predicate, left=left, right=right)

    # -- one condition --------------------------------------------------------------------

    def _atom(self, typed: Typed, text: str) -> None:
        streams = self._streams(typed)
        if len(streams) == 1:
            self.plans[streams[0]].filters.append(typed)
            return
        for part in typed.parts:
            if part.kind.family == "null" and len(part.streams) == 1:
                never = Unary("~", Unary("is_null", part.node))
                self.filter(self._streams(part)[0], never)
        known = not any(part.kind.family == "null" for part in typed.parts)
        if known and measured(typed):
            done = self._similarity(typed, text)
        elif known and any(map(of_several, typed.parts)):
            done = isinstance(typed.node, Comparison) and self._compared(typed, text)
        elif known and isinstance(typed.node, Comparison):
            band = band_of(typed)
            done = self._band(band, text) if band else self._comparison(typed, text)
        else:
            done = known and isinstance(typed.node, Udf) and self._function(typed, text)
        if not done:
            self.opaque[len(self.predicates)] = typed
            self.predicates.append(spec.Opaque(streams, _no_data, text))

    def _streams(self, typed: Typed) -> tuple[int, ...]:
        return tuple(sorted(self._names.index(name) for name in typed.streams))

    def _function(self, typed: Typed, text: str, its: ComparedValue | None = None) -> bool:
        recipes = [
            Recipe(part, "float64" if part.kind.family == "float" else "int64")
            for part in typed.parts
        ]
        operator = right = None
        if its is not None:
            operator, right = its.operator, its.constant
            recipes += [] if its.recipe is None else [its.recipe]
        if any(len(recipe.typed.streams) != 1 for recipe in recipes):
            return False
        if len(recipes) > spec.MOST_OPERANDS:
            return False
        operands = tuple(map(self._operand, recipes))
        dtypes = tuple(self.plans[o.stream].dtypes()[o.column] for o in operands)
        function = cast(Udf, typed.node).function
        self.predicates.append(spec.Function(function, operands, dtypes, text, operator, right))
        return True

    def _compared(self, typed: Typed, text: str) -> bool:
        """What a function of several streams returns, compared with a number or a column."""
        found = compared(typed)
        return found is not None and self._function(found.value, text, found)

    def _comparison(self, typed: Typed, text: str) -> bool:
        left, right = typed.parts
        if len(left.streams) != 1 or len(right.streams) != 1:
            return False
        operator = cast(Comparison, typed.node).operator
        if operator == "==":
            return self._equal(left, right, text)
        if operator == "!=":
            return self._not_equal(left, right, text)
        return self._ordered(operator, left, right, text)

    def _similarity(self, typed: Typed, text: str) -> bool:
        measure, threshold = typed.parts
        operator: Any = cast(Comparison, typed.node).operator
        if isinstance(threshold.node, PairFunction):
            measure, threshold, operator = threshold, measure, MIRRORED[operator]
        operator, limit = _limit_of(operator, threshold)
        left, right, name = self._ends(cast(PairFunction, measure.node), self._varlen)
        self.predicates.append(spec.Similarity(left, right, name, operator, limit, text))
        return True

    def _ends(
        self, node: PairFunction, place: Callable[[VarlenRecipe], spec.Varlen]
    ) -> tuple[spec.Varlen, spec.Varlen, str]:
        """Both columns of a measure, and the kernels' name for it."""
        types = (
            measured_type(part, lambda column: column_type(column, self._schemas))
            for part in node.parts
        )
        made = operands(node, *types)
        left, right = place(made.left), place(made.right)
        if made.left.item is not None:
            ends = (left.stream, -1 - left.column), (right.stream, -1 - right.column)
            self._space[self._root(ends[1])] = self._root(ends[0])
        return left, right, made.measure

    def _varlen(self, recipe: VarlenRecipe) -> spec.Varlen:
        stream = self._names.index(recipe.node.streams[0])
        return spec.Varlen(stream, _position(self.plans[stream].varlen, recipe))

    def _shown_varlen(self, recipe: VarlenRecipe) -> spec.Varlen:
        """A column that conditions read as well, or one of those behind them."""
        stream = self._names.index(recipe.node.streams[0])
        plan = self.plans[stream]
        if any(known.key == recipe.key for known in plan.varlen):
            return self._varlen(recipe)
        return spec.Varlen(stream, len(plan.varlen) + _position(plan.scored, recipe))

    def _certain(self, left: spec.Varlen, right: spec.Varlen, measure: str) -> bool:
        """Whether a measure has a value for every result."""
        if measure == "overlap":  # of any two sets
            return all(end.column < len(self.plans[end.stream].varlen) for end in (left, right))
        return any(
            (p.left, p.right, p.measure) == (left, right, measure)
            for p in self.predicates
            if isinstance(p, spec.Similarity)
        )

    # -- equality -------------------------------------------------------------------------

    def _equal(self, left: Typed, right: Typed, text: str) -> bool:
        pair = _same_form(left, right) or _common_form(left, right)
        self.predicates.append(spec.Equal(*self._keys(*pair), text))
        return True

    def _not_equal(self, left: Typed, right: Typed, text: str) -> bool:
        pair = _same_form(left, right)
        if pair is None:
            return False
        self.predicates.append(spec.NotEqual(*self._keys(*pair), text))
        return True

    def _keys(self, left: Recipe, right: Recipe) -> tuple[spec.Key, spec.Key]:
        first, second = self._key(left), self._key(right)
        self._space[self._root((second.stream, second.key))] = self._root((first.stream, first.key))
        return first, second

    def _key(self, recipe: Recipe) -> spec.Key:
        stream = self._names.index(recipe.typed.streams[0])
        return spec.Key(stream, _position(self.plans[stream].keys, recipe), -1)

    def _root(self, member: tuple[int, int]) -> tuple[int, int]:
        while member in self._space and self._space[member] != member:
            member = self._space[member]
        return member

    def _placed(self, key: spec.Key) -> spec.Key:
        return replace(key, space=self.plans[key.stream].spaces[key.key])

    # -- order and differences --------------------------------------------------------------

    def _operand(self, recipe: Recipe) -> spec.Operand:
        stream = self._names.index(recipe.typed.streams[0])
        return spec.Operand(stream, _position(self.plans[stream].columns, recipe))

    def _ordered(self, operator: str, left: Typed, right: Typed, text: str) -> bool:
        forms = form_of(left.kind), form_of(right.kind)
        if "bytes" in forms or ("words" in forms and "float64" not in forms):
            return False
        if forms[0] == forms[1] and left.kind.step == right.kind.step:
            pair = itself(left), itself(right)
        elif _is_target(left, right):
            pair = itself(left), bounded(right, left, cast(Rule, operator))
            operator = f"{operator[0]}="
        else:
            pair = bounded(left, right, cast(Rule, MIRRORED[operator])), itself(right)
            operator = f"{operator[0]}="
        first, second = (self._operand(recipe) for recipe in pair)
        dtype: spec.Dtype = "float64" if pair[0].form == "float64" else "int64"
        self.predicates.append(
            spec.Compare(first, cast(spec.Operator, operator), second, dtype, text)
        )
        return True

    def _band(self, band: Band, text: str) -> bool:
        if band.recipes is None:
            return False
        left, right = (self._operand(recipe) for recipe in band.recipes)
        dtype: spec.Dtype = "float64" if band.recipes[0].form == "float64" else "int64"
        new = spec.Between(left, right, band.low, band.high, dtype, text)
        for position, known in enumerate(self.predicates):
            if isinstance(known, spec.Between) and known.dtype == dtype:
                merged = _merged(known, new)
                if merged is not None:
                    self.predicates[position] = merged
                    return True
        self.predicates.append(new)
        return True


def _no_data(rows: Mapping[int, spec.I64]) -> spec.Bools:
    raise RuntimeError("this predicate has no data yet; take the spec from BoundQuery.spec_with")


def measured(typed: Typed) -> bool:
    """Whether a condition compares a measure that the kernels know with a number."""
    nodes = [part.node for part in typed.parts]
    return isinstance(typed.node, Comparison) and any(
        isinstance(node, PairFunction) and isinstance(other, Constant) and has_kernel(node)
        for node, other in (nodes, nodes[::-1])
    )


def _limit_of(operator: Any, threshold: Typed) -> tuple[Any, float]:
    """The operator and the double that decide ``measure <operator> threshold`` for all doubles."""
    if threshold.kind.family == "float":
        return operator, float(threshold.value)
    value = threshold.value * threshold.kind.step
    low, high = at_most(value), at_least(value)
    if low == high:
        return operator, low
    if operator in ("<", "<="):
        return "<=", low
    if operator in (">", ">="):
        return ">=", high
    return ("<" if operator == "==" else ">="), -math.inf  # no double equals it


def _layout(recipe: Recipe) -> Literal["int64", "bytes"]:
    return "bytes" if recipe.form in ("bytes", "words") else "int64"


def _position(recipes: list[Any], recipe: Recipe | VarlenRecipe) -> int:
    """Where a recipe stands in a list; appended if it is new."""
    for position, known in enumerate(recipes):
        if known.key == recipe.key:
            return position
    recipes.append(recipe)
    return len(recipes) - 1


def _is_target(left: Typed, right: Typed) -> bool:
    """Whether ``right`` becomes a bound in the domain of ``left``, and not the other way round.

    Integers are the domain for doubles, doubles for decimals, the coarser unit for the finer one.
    """
    ranks = [_RANKS.get(part.kind.family, 0) for part in (left, right)]
    if "float" in (left.kind.family, right.kind.family):
        return ranks[0] <= ranks[1]
    return left.kind.step >= right.kind.step


_RANKS = {"integer": 0, "float": 1, "decimal": 2}


def _as_key(recipe: Recipe) -> Recipe:
    """Doubles are compared by their bits."""
    return replace(recipe, form="bits") if recipe.form == "float64" else recipe


def _same_form(left: Typed, right: Typed) -> tuple[Recipe, Recipe] | None:
    """Keys that keep every value of both sides, or None if they count in different domains."""
    forms = form_of(left.kind), form_of(right.kind)
    if "words" in forms and "float64" not in forms:
        step = min(left.kind.step, right.kind.step)
        kinds = left.kind.counted_in(step), right.kind.counted_in(step)
        count = max(word_count(kind.low, kind.high) for kind in kinds)
        return Recipe(left, "words", step, words=count), Recipe(right, "words", step, words=count)
    if forms[0] == forms[1] and left.kind.step == right.kind.step:
        return _as_key(itself(left)), _as_key(itself(right))
    return None


def _common_form(left: Typed, right: Typed) -> tuple[Recipe, Recipe]:
    """Keys in the coarser domain; values of the other side that it lacks are unusable."""
    if _is_target(left, right):
        return _as_key(itself(left)), _as_key(bounded(right, left, "exact"))
    return _as_key(bounded(left, right, "exact")), _as_key(itself(right))


def _merged(known: spec.Between, new: spec.Between) -> spec.Between | None:
    """Both bands as one if they bound the same difference."""
    low, high = new.low, new.high
    if (known.left, known.right) == (new.right, new.left):
        low, high = -high, -low
    elif (known.left, known.right) != (new.left, new.right):
        return None
    text = known.text if known.text == new.text else f"{known.text} & {new.text}"
    return replace(known, low=max(known.low, low), high=min(known.high, high), text=text)
