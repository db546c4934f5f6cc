"""Random queries over random data, small enough for the oracle and dense enough to have results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from tests.cases import Case, SessionCase, Step, StreamCase
from tests.functions import between_the_others, even_sum, gap, larger, product_at_least_one
from tests.oracle import TIME, Apply, Column, Expression, Literal, Query, Row, evaluate
from tests.values import (
    ARITHMETIC,
    FAMILIES,
    INTEGERS,
    KINDS,
    NANOSECONDS,
    ORDERED_FAMILIES,
    Kind,
    family,
)

MOST_ROWS = {2: 30, 3: 14, 4: 9, 5: 6}  # per stream: the oracle's work grows with the product
VARIETY = {2: (1, 2, 3, 9), 3: (1, 2, 2, 3), 4: (1, 1, 2), 5: (1, 1, 2)}  # values per column
SPANS = (3, 10, 40)  # ticks from the first time to the last: ties, many or few
HUGE = 2**62
TICK = 500_000_000  # nanoseconds: the grid of all timestamps finer than a second
ORDERS = ("<", "<=", ">", ">=")
OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}

Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(slots=True)
class Draft:
    """Columns of the streams of a case, created as its predicates ask for them."""

    draw: Draw
    columns: list[dict[str, Kind]]
    nullable: list[set[str]] = field(default_factory=list)

    def column(self, stream: int, kinds: list[Kind]) -> Column:
        """A column of ``stream`` of one of ``kinds``: sometimes an old one."""
        columns = self.columns[stream]
        old = [name for name, kind in columns.items() if kind in kinds]
        if old and self.draw(st.booleans()):
            return Column(stream, self.draw(st.sampled_from(old)))
        name = f"c{len(columns)}"
        columns[name] = self.draw(st.sampled_from(kinds))
        if self.draw(st.integers(0, 2)) == 2:
            self.nullable[stream].add(name)
        return Column(stream, name)

    def pair(self, left: int, right: int, families: list[str]) -> tuple[Column, Column]:
        """Two columns that can be compared with each other."""
        kinds = family(self.draw(st.sampled_from(families)))
        return self.column(left, kinds), self.column(right, kinds)

    def number(self, stream: int) -> Column:
        return self.column(stream, ARITHMETIC)

    def bound(self) -> Literal:
        return Literal(self.draw(st.sampled_from([1, 0, 2, 0.5, 1.5, -1])))


def equality(draft: Draft, left: int, right: int) -> Expression:
    return Apply("==", draft.pair(left, right, FAMILIES))


def composite_equality(draft: Draft, left: int, right: int) -> Expression:
    return Apply("&", (equality(draft, left, right), equality(draft, left, right)))


def inequality(draft: Draft, left: int, right: int) -> Expression:
    return Apply("!=", draft.pair(left, right, FAMILIES))


def order(draft: Draft, left: int, right: int) -> Expression:
    operation = draft.draw(st.sampled_from(ORDERS))
    return Apply(operation, draft.pair(left, right, ORDERED_FAMILIES))


def time_order(draft: Draft, left: int, right: int) -> Expression:
    operation = draft.draw(st.sampled_from(ORDERS))
    return Apply(operation, (Column(left, TIME), Column(right, TIME)))


def shifted_order(draft: Draft, left: int, right: int) -> Expression:
    shift = draft.draw(st.sampled_from(["+", "-", "*"]))
    moved = Apply(shift, (draft.number(left), draft.bound()))
    return Apply(draft.draw(st.sampled_from(ORDERS)), (moved, draft.number(right)))


def quotient(draft: Draft, left: int, right: int) -> Expression:
    """A division across two streams: doubles, or integers rounded down, by zero included."""
    operation = draft.draw(st.sampled_from(["/", "//", "%"]))
    kinds = ARITHMETIC if operation == "/" else INTEGERS
    divided = Apply(operation, (draft.column(left, kinds), draft.column(right, kinds)))
    return Apply(draft.draw(st.sampled_from([*ORDERS, "=="])), (divided, draft.bound()))


def _difference(draft: Draft, left: int, right: int) -> Apply:
    return Apply("-", (draft.number(left), draft.number(right)))


def band(draft: Draft, left: int, right: int) -> Expression:
    distance = Apply("abs", (_difference(draft, left, right),))
    return Apply(draft.draw(st.sampled_from(["<=", "<"])), (distance, draft.bound()))


def between(draft: Draft, left: int, right: int) -> Expression:
    low = draft.draw(st.sampled_from([0, -1, -0.5, 1, -5]))
    high = draft.draw(st.sampled_from([0, 1, 0.5, 2, 5]))
    closed = draft.draw(st.sampled_from(["both", "left", "right", "neither"]))
    return Apply(closed, (_difference(draft, left, right), Literal(low), Literal(high)))


def several_ranges(draft: Draft, left: int, right: int) -> Expression:
    """Conditions that only together leave little: intervals that overlap, boxes that meet."""
    one, other = (draft.draw(st.sampled_from([order, shifted_order, between])) for _ in range(2))
    return Apply("&", (one(draft, left, right), other(draft, left, right)))


def udf_of_floats(draft: Draft, left: int, right: int) -> Expression:
    floats = [KINDS["float64"]]
    columns = draft.column(left, floats), draft.column(right, floats)
    return Apply("udf", columns, product_at_least_one)


def udf_of_integers(draft: Draft, left: int, right: int) -> Expression:
    integers = [KINDS["int64"]]
    columns = draft.column(left, integers), draft.column(right, integers)
    return Apply("udf", columns, even_sum)


def value_of_udf(draft: Draft, left: int, right: int) -> Expression:
    """What a function returns, compared with a number or a column."""
    kind, function = draft.draw(st.sampled_from([("float64", gap), ("int64", larger)]))
    columns = draft.column(left, [KINDS[kind]]), draft.column(right, [KINDS[kind]])
    stream = draft.draw(st.sampled_from([left, right]))
    limit = draft.draw(st.sampled_from([draft.bound(), draft.number(stream)]))
    operation = draft.draw(st.sampled_from(list(OPPOSITE)))
    return Apply(operation, (Apply("udf", columns, function), limit))


def alternative(draft: Draft, left: int, right: int) -> Expression:
    one, other = (draft.draw(st.sampled_from(SIMPLE)) for _ in range(2))
    return Apply("|", (one(draft, left, right), other(draft, left, right)))


def exception(draft: Draft, left: int, right: int) -> Expression:
    """A pair's predicate, or a condition on one of its streams alone."""
    one = draft.draw(st.sampled_from(SIMPLE))(draft, left, right)
    return Apply("|", (one, condition(draft, draft.draw(st.sampled_from([left, right])))))


def negation(draft: Draft, left: int, right: int) -> Expression:
    inner = draft.draw(st.sampled_from([*SIMPLE, alternative, composite_equality]))
    return Apply("~", (inner(draft, left, right),))


SIMPLE = [equality, inequality, order, time_order, shifted_order, band, between]
PAIR = [*SIMPLE, equality, equality, band, composite_equality, alternative, exception, negation]
PAIR += [udf_of_floats, udf_of_integers, value_of_udf, quotient, several_ranges]


def sum_of_two(draft: Draft, one: int, two: int, three: int) -> Expression:
    """Arithmetic over three streams: ``a + b < c`` and its like."""
    inner = Apply(draft.draw(st.sampled_from("+-*")), (draft.number(one), draft.number(two)))
    operation = draft.draw(st.sampled_from([*ORDERS, "==", "!="]))
    return Apply(operation, (inner, draft.number(three)))


def alternative_of_pairs(draft: Draft, one: int, two: int, three: int) -> Expression:
    kind = draft.draw(st.sampled_from(SIMPLE))
    return Apply("|", (kind(draft, one, two), equality(draft, two, three)))


def udf_of_three(draft: Draft, one: int, two: int, three: int) -> Expression:
    floats = [KINDS["float64"]]
    columns = tuple(draft.column(stream, floats) for stream in (one, two, three))
    return Apply("udf", columns, between_the_others)


TRIPLE = [sum_of_two, alternative_of_pairs, udf_of_three]


def condition(draft: Draft, stream: int) -> Expression:
    """A condition on one stream alone, true more often than not."""
    number = draft.number(stream)
    bounds = Apply("both", (number, Literal(-1), Literal(2)))
    choice = draft.draw(st.integers(0, 3))
    if choice == 0:
        return bounds
    if choice == 3:
        return Apply("|", (Apply("is_null", (number,)), bounds))
    if choice == 1:
        return Apply("~", (Apply("==", (number, draft.bound())),))
    return Apply("|", (bounds, Apply("!=", (draft.column(stream, family("text")), Literal("a")))))


@st.composite
def edges(draw: Draw, count: int) -> list[tuple[int, int]]:
    """The edges of a connected graph: chain, star, cycle, clique, or a tree with extras."""
    chain = [(i, i + 1) for i in range(count - 1)]
    star = [(0, i) for i in range(1, count)]
    clique = [(i, j) for j in range(count) for i in range(j)]
    shapes = [chain, star, [*chain, (0, count - 1)], clique]
    shape: list[tuple[int, int]] | None = draw(st.sampled_from([*shapes, None]))
    if shape is None:
        tree = [(draw(st.integers(0, i - 1)), i) for i in range(1, count)]
        shape = tree + draw(st.lists(st.sampled_from(clique), max_size=2))
    flips = draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
    return [edge[::-1] if flip else edge for edge, flip in zip(shape, flips, strict=True)]


@dataclass(frozen=True, slots=True)
class Clock:
    """How the streams of a case tell time."""

    kinds: list[Kind]  # of the streams' time columns
    steps: list[int]  # stored units per tick
    unit: str | None = None  # "ms" for integer times with durations as windows

    def window(self, draw: Draw, span: int) -> tuple[int, str]:
        """A window or a lateness: its meaning to the oracle, and as a user writes it."""
        ticks = draw(st.sampled_from([span, span // 2, HUGE, 1 + span // 4, 2 * span, span, 0]))
        if ticks == HUGE and (self.unit or self.kinds[0].family != "number"):
            days = 100_000
            return days * 86_400 * (10**3 if self.unit else 10**9), f"'{days}d'"
        if self.kinds[0].family == "number":
            return ticks, repr(f"{ticks}{self.unit}") if self.unit else str(ticks)
        text = repr(f"{500 * ticks}ms")
        delta = f"datetime.timedelta(milliseconds={500 * ticks})"
        return ticks * TICK, draw(st.sampled_from([text, delta]))


@st.composite
def clocks(draw: Draw, count: int) -> Clock:
    if draw(st.booleans()):
        names = st.sampled_from(["int64", "int64", "int32", "uint64"])
        kinds = [KINDS[draw(names)] for _ in range(count)]
        return Clock(kinds, [1] * count, draw(st.sampled_from([None, None, "ms"])))
    prefix = draw(st.sampled_from(["timestamp", "zoned"]))
    units = [draw(st.sampled_from(list(NANOSECONDS))) for _ in range(count)]
    steps = [max(TICK // NANOSECONDS[unit], 1) for unit in units]
    return Clock([KINDS[f"{prefix}_{unit}"] for unit in units], steps)


@st.composite
def stored_rows(
    draw: Draw,
    columns: dict[str, Kind],
    nullable: set[str],
    tick: st.SearchStrategy[int],
    count: int,
) -> list[dict[str, Any]]:
    """Rows of one stream: few or many, in time order or not, of few values."""
    sizes = st.integers(0, MOST_ROWS[count])
    size = max(draw(sizes), draw(sizes))  # empty now and then, and free to shrink
    drawn = [st.none() | tick | tick | tick if TIME in nullable else tick]
    for name, kind in list(columns.items())[1:]:
        domain = kind.domain[: draw(st.sampled_from(VARIETY[count]))]
        drawn.append(st.sampled_from([*domain * 3, None] if name in nullable else domain))
    rows = draw(st.lists(st.tuples(*drawn), min_size=size, max_size=size))
    if draw(st.booleans()):
        rows.sort(key=lambda row: row[0] or 0)
    return [dict(zip(columns, row, strict=True)) for row in rows]


@st.composite
def cases(draw: Draw, least: int = 2, most: int = 5) -> Case:
    """A query over ``least`` to ``most`` streams with its data."""
    count = draw(st.integers(least, most))
    clock = draw(clocks(count))
    draft = Draft(draw, [{TIME: kind} for kind in clock.kinds], [set() for _ in range(count)])
    predicates = [draw(st.sampled_from(PAIR))(draft, *edge) for edge in draw(edges(count))]
    if count > 2 and draw(st.booleans()):
        three = draw(st.permutations(range(count)))[:3]
        predicates.append(draw(st.sampled_from(TRIPLE))(draft, *three))
    filters = [
        condition(draft, stream) if draw(st.integers(0, 3)) == 3 else None
        for stream in range(count)
    ]
    for nullable in draft.nullable:
        if draw(st.integers(0, 3)) == 3:
            nullable.add(TIME)
    span = draw(st.sampled_from(SPANS))
    windows = [clock.window(draw, span) for _ in range(count)]
    streams = tuple(_stream(draft, clock, span, n, windows[n][1]) for n in range(count))
    if draw(st.integers(0, 3)):
        predicates = steered(predicates, [stream.rows() for stream in streams])
    query = Query(
        tuple(meaning for meaning, _ in windows),
        tuple(predicates),
        tuple(filters),
        draw(st.sampled_from(["both", "right"])),
    )
    return Case(streams, query)


@st.composite
def outers(draw: Draw, most: int = 4) -> Case:
    """A case in which rows without partners come out, or only what has some."""
    case = draw(cases(most=most))
    asked = draw(sides(range(len(case.streams))))
    return replace(case, query=replace(case.query, **asked))


@st.composite
def sides(draw: Draw, streams: range) -> dict[str, tuple[int, ...]]:
    """Which streams are kept, or only asked about."""
    some = st.lists(st.sampled_from(streams), min_size=1, unique=True).map(sorted).map(tuple)
    if draw(st.booleans()):
        return {"keep": draw(some)}
    asked = draw(some.filter(lambda chosen: len(chosen) < len(streams)))
    return {draw(st.sampled_from(["exists", "missing"])): asked}


@st.composite
def outer_sessions(draw: Draw, most: int = 3) -> SessionCase:
    """A session of such a case."""
    drawn = draw(sessions(most=most))
    asked = draw(sides(range(len(drawn.case.streams))))
    return replace(drawn, case=replace(drawn.case, query=replace(drawn.case.query, **asked)))


def steered(predicates: list[Expression], streams: list[list[Row]]) -> list[Expression]:
    """The predicates, turned round where needed so that one combination of rows meets them all.

    Without this, conjunctions over many streams have almost no results.
    """
    timed = [[row for row in rows if row[TIME] is not None] for rows in streams]
    if not all(timed):
        return predicates
    middle = timed[0][0][TIME]
    target = [min(rows, key=lambda row: abs(row[TIME] - middle)) for rows in timed]
    return [
        predicate if evaluate(predicate, target) is not False else opposite(predicate)
        for predicate in predicates
    ]


def opposite(predicate: Expression) -> Expression:
    """The predicate that is true where this one is false."""
    assert isinstance(predicate, Apply)
    if predicate.operation in OPPOSITE:
        return Apply(OPPOSITE[predicate.operation], predicate.operands)
    return Apply("~", (predicate,))


def _stream(draft: Draft, clock: Clock, span: int, number: int, window: str) -> StreamCase:
    columns, nullable = draft.columns[number], draft.nullable[number]
    tick = st.integers(0, span).map(lambda ticks: ticks * clock.steps[number])
    rows = draft.draw(stored_rows(columns, nullable, tick, len(draft.columns)))
    options = {"window": window}
    if clock.unit:
        options["unit"] = repr(clock.unit)
    return StreamCase(f"s{number}", options, columns, rows)


@st.composite
def sessions(draw: Draw, least: int = 2, most: int = 4) -> SessionCase:
    """A case whose rows arrive in drawn pushes, with some promises in between."""
    case = draw(cases(least, most))
    left = {number: len(stream.stored) for number, stream in enumerate(case.streams)}
    steps: list[Step] = []
    while any(left.values()):
        stream = draw(st.sampled_from([number for number, rows in left.items() if rows]))
        start = len(case.streams[stream].stored) - left[stream]
        size = draw(st.integers(0, min(left[stream], draw(st.sampled_from([1, 3, 30])))))
        left[stream] -= size
        steps.append(Step(stream, start, start + size))
        if draw(st.integers(0, 5)) == 5:
            steps.append(_promise(draw, case))
    unit = "ms" if "unit" in case.streams[0].options else None
    clock = Clock([stream.kinds[TIME] for stream in case.streams], [], unit)
    lateness, source = clock.window(draw, draw(st.sampled_from(SPANS)))
    return SessionCase(case, lateness, source, tuple(steps))


def _promise(draw: Draw, case: Case) -> Step:
    stream = draw(st.integers(0, len(case.streams) - 1))
    kind = case.streams[stream].kinds[TIME]
    step = 1 if kind.family == "number" else max(TICK // kind.scale, 1)
    return Step(stream, time=draw(st.integers(0, 12)) * step)
