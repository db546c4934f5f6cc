"""What a windowed join and a session mean, as plain loops.  Imports nothing of the package.

A stream is a list of rows; a row is a dictionary with its event time under ``TIME`` (an int, or
``None`` for a bad row) and its columns by name.  Times are ints in one unit, integers are Python
ints, floats are IEEE doubles, decimals are ``Fraction``; ``None`` is null.

Predicates are descriptions (`Column`, `Literal`, `Apply`).  ``None`` is also the third truth value:
an operand that is null or NaN makes a comparison unknown, and only true is true.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any
from typing import Literal as OneOf

TIME = "ts"

Row = dict[str, Any]
Results = Counter[tuple[int, ...]]  # row numbers, one per stream, in stream order; -1: none


@dataclass(frozen=True, slots=True)
class Column:
    """Column ``name`` of stream number ``stream``."""

    stream: int
    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; ``source`` is how a user writes it where ``repr`` is not."""

    value: Any
    source: str = ""


@dataclass(frozen=True, slots=True)
class Apply:
    """``operation`` on operands; ``function`` is the user's when the operation is ``udf``."""

    operation: str
    operands: tuple[Expression, ...]
    function: Callable[..., Any] | None = None


Expression = Column | Literal | Apply


@dataclass(frozen=True, slots=True)
class Query:
    """A conjunction of predicates over streams with windows; filters see one stream alone."""

    windows: tuple[int, ...]
    predicates: tuple[Expression, ...]
    filters: tuple[Expression | None, ...]
    closed: OneOf["both", "right"] = "both"
    distinct: tuple[tuple[int, int], ...] = ()  # a row does not pair with itself
    keep: tuple[int, ...] = ()  # rows in no result come out once, alone
    exists: tuple[int, ...] = ()  # what comes out is what rows of these fit,
    missing: tuple[int, ...] = ()  # and no rows of these do


OPERATIONS: dict[str, Callable[..., Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda left, right: _ieee_quotient(float(left), float(right)),
    "//": lambda left, right: left // right if right else None,  # integers; by zero is null
    "%": lambda left, right: left % right if right else None,
    "neg": operator.neg,
    "abs": abs,
    # between, by the ends that belong to it
    "both": lambda value, low, high: low <= value <= high,
    "left": lambda value, low, high: low <= value < high,
    "right": lambda value, low, high: low < value <= high,
    "neither": lambda value, low, high: low < value < high,
}


def evaluate(expression: Expression, rows: Sequence[Row]) -> Any:
    """The value of an expression for one row of each stream; ``None`` is null or unknown."""
    match expression:
        case Column(stream, name):
            return _null_if_nan(rows[stream][name])
        case Literal(value):
            return _null_if_nan(value)
        case Apply("&" | "|" | "~"):
            return _logic(expression.operation, [evaluate(e, rows) for e in expression.operands])
    values = [evaluate(operand, rows) for operand in expression.operands]
    if expression.operation == "is_null":
        return values[0] is None
    if any(value is None for value in values):
        return None
    function = expression.function or OPERATIONS[expression.operation]
    return _null_if_nan(function(*values))


def _ieee_quotient(left: float, right: float) -> float:
    if right:
        return left / right
    return math.nan if left == 0 else math.copysign(math.inf, left) * math.copysign(1.0, right)


def _null_if_nan(value: Any) -> Any:
    return None if value != value else value


def _logic(operation: str, values: list[Any]) -> bool | None:
    """Three-valued and, or, not: unknown where the known operands leave it open."""
    if operation == "~":
        return None if values[0] is None else not values[0]
    decisive = operation == "|"
    if any(value is decisive for value in values):
        return decisive
    return None if any(value is None for value in values) else not decisive


def streams_of(expression: Expression) -> set[int]:
    """The streams an expression reads."""
    match expression:
        case Column(stream):
            return {stream}
        case Literal():
            return set()
    return set().union(*(streams_of(operand) for operand in expression.operands))


def inside_windows(query: Query, times: Sequence[int]) -> bool:
    """Whether every time is within its stream's window of the newest one."""
    newest = max(times)
    for time, window in zip(times, query.windows, strict=False):
        age = newest - time
        if query.closed == "both" and age > window:
            return False
        if query.closed == "right" and time < newest and age >= window:
            return False
    return True


def takes_part(query: Query, stream: int, row: Row) -> bool:
    """Whether a row has a time and passes its stream's own filter."""
    condition = query.filters[stream]
    if row[TIME] is None:
        return False
    return condition is None or evaluate(condition, {stream: row}) is True  # type: ignore[arg-type]


def join_by_definition(query: Query, streams: Sequence[list[Row]]) -> Results:
    """Every combination of rows, each asked whether it is a result: the definition itself."""
    results: Results = Counter()
    for numbers in product(*(range(len(rows)) for rows in streams)):
        rows = [stream[number] for stream, number in zip(streams, numbers, strict=True)]
        if (
            all(takes_part(query, stream, row) for stream, row in enumerate(rows))
            and inside_windows(query, [row[TIME] for row in rows])
            and all(evaluate(predicate, rows) is True for predicate in query.predicates)
            and all(numbers[left] != numbers[right] for left, right in query.distinct)
        ):
            results[numbers] += 1
    return results


def join(query: Query, streams: Sequence[list[Row]]) -> Results:
    """The same set stream by stream: a prefix that breaks a rule is not extended.

    Sound because the newest time of a combination only grows with it, and because a predicate is
    asked exactly once, when the last of its streams is bound.
    """
    due: list[list[Expression]] = [[] for _ in streams]
    for predicate in query.predicates:
        due[max(streams_of(predicate))].append(predicate)
    partial: list[tuple[tuple[int, ...], list[Row]]] = [((), [])]
    for stream, rows in enumerate(streams):
        usable = [(n, row) for n, row in enumerate(rows) if takes_part(query, stream, row)]
        pairs = [pair for pair in query.distinct if max(pair) == stream]
        longer = []
        for numbers, members in partial:
            for number, row in usable:
                candidate = (*numbers, number)
                combination = [*members, row]
                if (
                    inside_windows(query, [member[TIME] for member in combination])
                    and all(evaluate(predicate, combination) is True for predicate in due[stream])
                    and all(candidate[left] != candidate[right] for left, right in pairs)
                ):
                    longer.append((candidate, combination))
        partial = longer
    return Counter(numbers for numbers, _ in partial)


def given(query: Query) -> list[int]:
    """The streams whose rows come out."""
    asked = {*query.exists, *query.missing}
    return [stream for stream in range(len(query.windows)) if stream not in asked]


def of_streams(query: Query, streams: Sequence[list[Row]], chosen: Sequence[int]) -> Results:
    """The join of some of the streams alone, by all that is said of these."""
    place = {stream: number for number, stream in enumerate(chosen)}
    part = Query(
        tuple(query.windows[s] for s in chosen),
        tuple(moved(p, place) for p in query.predicates if streams_of(p) <= set(chosen)),
        tuple(f and moved(f, place) for f in (query.filters[s] for s in chosen)),
        query.closed,
        tuple((place[a], place[b]) for a, b in query.distinct if {a, b} <= set(chosen)),
    )
    return join(part, [streams[s] for s in chosen])


def moved(expression: Expression, place: dict[int, int]) -> Expression:
    """The expression where streams have other numbers."""
    match expression:
        case Column(stream, name):
            return Column(place[stream], name)
        case Apply(operation, operands, function):
            return Apply(operation, tuple(moved(o, place) for o in operands), function)
    return expression


def outcome(query: Query, streams: Sequence[list[Row]]) -> Results:
    """What comes out of a join: results, and rows and combinations without partners."""
    shown = given(query)
    found = set(of_streams(query, streams, shown))
    for asked, wanted in ((query.exists, True), (query.missing, False)):
        if asked:
            of = sorted([*shown, *asked])
            fitting = {
                tuple(row for s, row in zip(of, numbers, strict=True) if s in shown)
                for numbers in of_streams(query, streams, of)
            }
            found = {numbers for numbers in found if (numbers in fitting) == wanted}
    for stream in query.keep:
        for row in range(len(streams[stream])):
            alone = takes_part(query, stream, streams[stream][row])
            if alone and all(numbers[stream] != row for numbers in found if -1 not in numbers):
                found.add(tuple(row if s == stream else -1 for s in shown))
    return Counter(found)


def ordered(results: Results, streams: Sequence[list[Row]]) -> list[tuple[int, ...]]:
    """Results by their own time, then by members in stream order: each by time, then by number."""

    def key(numbers: tuple[int, ...]) -> tuple[int, list[tuple[int, int]]]:
        times = [rows[number][TIME] for rows, number in zip(streams, numbers, strict=True)]
        return max(times), list(zip(times, numbers, strict=True))

    return sorted(results.elements(), key=key)


@dataclass(frozen=True, slots=True)
class Push:
    """Rows of one stream arriving together."""

    stream: int
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Advance:
    """The promise that no row of ``stream`` before ``time`` will come."""

    stream: int
    time: int


Event = Push | Advance


@dataclass(slots=True)
class Outcome:
    """What a session owes its caller; rows are numbered per stream as they arrive."""

    results: list[Results]  # one per event
    rejected: list[list[tuple[int, OneOf["null time", "late"]]]]  # one list per stream
    accepted: list[list[int]]
    arrived: list[list[Row]] = field(default_factory=list)  # rejected ones without a time
    brought_by: list[list[int]] = field(default_factory=list)  # the event, by stream and row
    marks: list[list[int | None]] = field(default_factory=list)  # watermarks after each event


def replay(query: Query, events: Sequence[Event], lateness: int) -> Outcome:
    """A session from its definition.

    A row is late when its time is before its stream's watermark as the rows before it left it.
    A result leaves with the push that brings the last of its members to arrive.
    """
    count = len(query.windows)
    arrived: list[list[Row]] = [[] for _ in range(count)]
    brought_by: list[list[int]] = [[] for _ in range(count)]
    watermark: list[int | None] = [None] * count
    outcome = Outcome(
        [Counter() for _ in events], [[] for _ in range(count)], [[] for _ in range(count)]
    )
    for number, event in enumerate(events):
        stream = event.stream
        if isinstance(event, Advance):
            watermark[stream] = _later(watermark[stream], event.time)
            outcome.marks.append(list(watermark))
            continue
        for row in event.rows:
            time = row[TIME]
            row_number = len(arrived[stream])
            brought_by[stream].append(number)
            reason = _reason_to_reject(time, watermark[stream])
            arrived[stream].append({**row, TIME: None} if reason else row)
            if reason:
                outcome.rejected[stream].append((row_number, reason))
            else:
                outcome.accepted[stream].append(row_number)
                watermark[stream] = _later(watermark[stream], time - lateness)
        outcome.marks.append(list(watermark))
    outcome.arrived, outcome.brought_by = arrived, brought_by
    for numbers, times in join(query, arrived).items():
        last = max(brought_by[stream][row] for stream, row in enumerate(numbers))
        outcome.results[last][numbers] += times
    return outcome


def departures(query: Query, events: Sequence[Event], lateness: int) -> dict[tuple[int, ...], int]:
    """What comes out of a join, and after which event; ``len(events)``: when it is closed.

    A result comes with the last of its members, or, where only some members come out, as soon as
    there are others that fit.  What is without a partner comes when no watermark lets one come.
    """
    replayed = replay(query, events, lateness)
    shown, brought = given(query), replayed.brought_by
    leaves = {}
    for numbers in outcome(query, replayed.arrived):
        member = {s: row for s, row in zip(shown, numbers, strict=True) if row >= 0}
        come = max(brought[s][row] for s, row in member.items())
        if query.exists:
            of = sorted([*shown, *query.exists])
            come = min(
                max(brought[s][row] for s, row in zip(of, full, strict=True))
                for full in of_streams(query, replayed.arrived, of)
                if all(full[of.index(s)] == row for s, row in member.items())
            )
        waits = query.missing or [s for s in range(len(brought)) if s not in member]
        if query.missing or len(member) < len(shown):
            times = {s: replayed.arrived[s][row][TIME] for s, row in member.items()}
            while come < len(events) and any(
                mark is None or all(_may_meet(query, s, t, mark) for s, t in times.items())
                for mark in (replayed.marks[come][other] for other in waits)
            ):
                come += 1
        leaves[numbers] = come
    return leaves


def _may_meet(query: Query, stream: int, time: int, mark: int) -> bool:
    """Whether a row may be in a result with one that comes at a watermark."""
    age, window = mark - time, query.windows[stream]
    return age <= 0 or age < window or (age == window and query.closed == "both")


def _reason_to_reject(time: int | None, watermark: int | None) -> OneOf["null time", "late"] | None:
    if time is None:
        return "null time"
    return "late" if watermark is not None and time < watermark else None


def _later(one: int | None, other: int) -> int:
    return other if one is None else max(one, other)


def nearest_in_time(
    query: Query, streams: Sequence[list[Row]], direction: str, most: int
) -> list[tuple[int, int]]:
    """Of every row of the first stream the pairs with so many rows nearest in time.

    Of those equally far the earlier; of those of one time the last to arrive if they are not later
    than the row, else the first.
    """
    found = []
    for i, row in enumerate(streams[0]):
        partners = []
        for left, j in join(query, streams):
            ahead = streams[1][j][TIME] - row[TIME] if left == i else 0
            if left == i and ahead <= 0 and direction != "forward":
                partners.append((-ahead, 0, -j, j))
            elif left == i and ahead >= 0 and direction != "backward":
                partners.append((ahead, 1, j, j))
        found += [(i, j) for *_, j in sorted(partners)[:most]]
    return found


def within_last_rows(
    query: Query, streams: Sequence[list[Row]], counts: Sequence[int | None]
) -> Results:
    """Results where some windows are the last rows of a stream, not a length of time.

    Those windows are to be long in ``query``.  A row is in its window as long as fewer than so many
    rows of its stream come after it and not after the latest row of the result; rows that filters
    exclude do not count.
    """

    def place(stream: int, row: int) -> tuple[int, int, int]:
        return (streams[stream][row][TIME], stream, row)

    def held(numbers: tuple[int, ...]) -> bool:
        latest = max(place(s, row) for s, row in enumerate(numbers))
        for s, count in enumerate(counts):
            later = sum(
                place(s, numbers[s]) < place(s, row) <= latest
                for row in range(len(streams[s]))
                if takes_part(query, s, streams[s][row])
            )
            if count is not None and later >= count:
                return False
        return True

    found = join(query, streams)
    return Counter({numbers: times for numbers, times in found.items() if held(numbers)})
