"""Comparisons between all types that compare, and values where rounding or wrapping would show."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.api import build, index_rows
from tests.cases import Case, tiny
from tests.compare import assert_same_results
from tests.oracle import TIME, Apply, Column, Expression, Literal, join
from tests.values import FAMILIES, INF, KINDS, NAN, Kind, family

INT, FLOAT = KINDS["int64"], KINDS["float64"]
OPERATIONS = ("==", "!=", "<", "<=", ">", ">=")
MORE_KINDS = [
    Kind("float16", pa.float16(), "number", KINDS["float64"].domain),
    Kind("decimal256", pa.decimal256(5, 2), "number", KINDS["decimal128"].domain),
    Kind("integer_category", pa.dictionary(pa.int8(), pa.int64()), "number", (1, 0, 2)),
    Kind("large_category", pa.dictionary(pa.int64(), pa.large_string()), "text", ("a", "", "z")),
    Kind("zoned_berlin", pa.timestamp("us", "Europe/Berlin"), "zoned", (0, 10**6), 1000),
    Kind("string_view", pa.string_view(), "text", ("a", "", "longer than twelve bytes")),
    Kind("binary_view", pa.binary_view(), "binary", (b"a", b"", b"longer than twelve bytes")),
]
PAIRS = [
    pytest.param(left, right, id=f"{left.name}-{right.name}")
    for name in FAMILIES
    for left, right in itertools.product(
        [*family(name), *(kind for kind in MORE_KINDS if kind.family == name)], repeat=2
    )
]


def pair(on: Expression, left: tuple[Kind, list[Any]], right: tuple[Kind, list[Any]]) -> Case:
    """Two streams whose rows all have one time, so that every pair is compared."""
    columns = [{TIME: (INT, [0] * len(values)), "x": (k, values)} for k, values in (left, right)]
    return tiny([on], *columns)


def check(case: Case) -> None:
    """The engine agrees with the oracle."""
    got = index_rows(case, build(case).indices(case.tables()))
    assert_same_results(got, join(case.query, case.rows()), repr(case))


def comparison(operation: str) -> Expression:
    return Apply(operation, (Column(0, "x"), Column(1, "x")))


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_types_of_a_family_compare_by_value(left: Kind, right: Kind):
    for operation in OPERATIONS:
        sides = [(kind, [*kind.domain, None, kind.domain[0]]) for kind in (left, right)]
        check(pair(comparison(operation), *sides))


BORDERS = sorted(
    {
        sign * (2**power + step)
        for power in (0, 31, 53, 63, 64)
        for step in (-1024, -513, -1, 0, 1, 1025)
        for sign in (1, -1)
    }
)
SIGNED = [value for value in BORDERS if -(2**63) <= value < 2**63]
UNSIGNED = [value for value in BORDERS if 0 <= value < 2**64]
DOUBLES = sorted({float(value) for value in BORDERS} | {0.5, -0.0, 1e300, -1e300, INF, -INF})
DOUBLES += [math.nextafter(2.0**63, 0), math.nextafter(2.0**64, 0), 2.0**53 + 2, 5e-324, NAN]
SINGLES = sorted({float(2**power) for power in (0, 24, 31, 53, 63, 64)} | {0.5, INF, -(2.0**63)})
DECIMALS = [Decimal(value) for value in BORDERS] + [Decimal("0.5"), Decimal("9007199254740992.5")]
WIDE = {
    "int64": (INT, SIGNED),
    "uint64": (KINDS["uint64"], UNSIGNED),
    "float64": (FLOAT, DOUBLES),
    "float32": (KINDS["float32"], SINGLES),
    "decimal128": (Kind("decimal128", pa.decimal128(38, 3), "number", ()), DECIMALS),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("right", WIDE)
@pytest.mark.parametrize("left", WIDE)
def test_numbers_compare_exactly_at_the_ends_of_their_types(left, right, operation):
    check(pair(comparison(operation), WIDE[left], WIDE[right]))


def difference() -> Apply:
    return Apply("-", (Column(0, "x"), Column(1, "x")))


@pytest.mark.parametrize("width", [0, 1, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 2**64])
@pytest.mark.parametrize(("left", "right"), list(itertools.product(["int64", "uint64"], repeat=2)))
def test_bands_of_integers_do_not_wrap(left, right, width):
    check(
        pair(Apply("<=", (Apply("abs", (difference(),)), Literal(width))), WIDE[left], WIDE[right])
    )


@pytest.mark.parametrize("closed", ["both", "left", "right", "neither"])
@pytest.mark.parametrize(
    ("low", "high"), [(-1, 1), (-(2**63), 2**63 - 1), (2**63, 2**64), (1, 0), (-0.5, 0.5)]
)
def test_between_of_integers_does_not_wrap(low, high, closed):
    check(
        pair(
            Apply(closed, (difference(), Literal(low), Literal(high))), WIDE["int64"], WIDE["int64"]
        )
    )


@pytest.mark.parametrize("width", [0.0, 0.1, 0.3, 5e-324, 1e308, INF])
def test_bands_of_doubles_round_as_ieee_does(width):
    tenths = [n / 10 for n in range(-4, 5)] + [
        0.1 + 0.2,
        0.15,
        1e308,
        -1e308,
        INF,
        -INF,
        NAN,
        5e-324,
    ]
    for operation in ("<=", "<"):
        band = Apply(operation, (Apply("abs", (difference(),)), Literal(width)))
        check(pair(band, (FLOAT, tenths), (FLOAT, tenths)))
    for closed in ("both", "left", "right", "neither"):
        check(
            pair(
                Apply(closed, (difference(), Literal(-width), Literal(width))),
                (FLOAT, tenths),
                (FLOAT, tenths),
            )
        )


@pytest.mark.parametrize("operation", ["+", "-", "*"])
def test_arithmetic_of_integers_does_not_wrap(operation):
    values = [-(2**63), -(2**62), -3, -1, 0, 1, 2, 2**62, 2**63 - 1]
    sides = (INT, values), (INT, values)
    for order in ("<", ">=", "=="):
        moved = Apply(operation, (Column(0, "x"), Column(1, "x")))
        check(pair(Apply(order, (moved, Column(1, "x"))), *sides))


@pytest.mark.parametrize("kind", ["float64", "float32", "int64", "uint64", "decimal128", "string"])
def test_composite_keys_meet_only_when_every_part_does(kind):
    key, values = KINDS[kind], list(KINDS[kind].domain)
    rows = list(itertools.product([*values, None], [0, 1, None]))
    columns = {
        TIME: (INT, [0] * len(rows)),
        "x": (key, [row[0] for row in rows]),
        "y": (INT, [row[1] for row in rows]),
    }
    both = [Apply("==", (Column(0, name), Column(1, name))) for name in "xy"]
    check(tiny(both, columns, columns))


TIMES = [-(2**63), -(2**63) + 1, -1, 0, 1, 2**62, 2**63 - 2, 2**63 - 1]


@pytest.mark.parametrize("closed", ["both", "right"])
@pytest.mark.parametrize(
    "windows",
    list(itertools.product([0, 1, 2**62, 2**63 - 1], repeat=2)),
    ids=lambda windows: "-".join(map(str, windows)),
)
def test_times_at_the_ends_of_int64_do_not_wrap(windows, closed):
    columns = {TIME: (INT, TIMES), "k": (INT, [0] * len(TIMES))}
    equal = Apply("==", (Column(0, "k"), Column(1, "k")))
    check(tiny([equal], columns, columns, windows=windows, closed=closed))


@pytest.mark.parametrize("closed", ["both", "right"])
def test_times_at_the_ends_of_int64_do_not_wrap_over_three_streams(closed):
    columns = {TIME: (INT, TIMES), "k": (INT, [0] * len(TIMES))}
    equal = [Apply("==", (Column(i, "k"), Column(i + 1, "k"))) for i in range(2)]
    windows = [2**63 - 1, 1, 2**62]
    check(tiny(equal, columns, columns, columns, windows=windows, closed=closed))


TIME_NAMES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize(("left", "right"), list(itertools.product(TIME_NAMES, ["int64", "uint8"])))
def test_times_are_any_integers(left, right):
    equal = Apply("==", (Column(0, "k"), Column(1, "k")))
    columns = [
        {TIME: (KINDS[name], [0, 3, 5, 127]), "k": (INT, [0, 0, 1, 1])} for name in (left, right)
    ]
    check(tiny([equal], *columns, windows=[2, 3]))


UNITS = ("s", "ms", "us", "ns")


@pytest.mark.parametrize("prefix", ["timestamp", "zoned"])
@pytest.mark.parametrize(("left", "right"), list(itertools.product(UNITS, repeat=2)))
@pytest.mark.parametrize("closed", ["both", "right"])
def test_times_of_different_units_meet_in_one(left, right, prefix, closed):
    columns = []
    for unit in (left, right):
        kind = KINDS[f"{prefix}_{unit}"]
        second = 10**9 // kind.scale
        times = [0, 1 * second, 2 * second, 3 * second, 3 * second + (unit != "s")]
        columns.append({TIME: (kind, times), "k": (INT, [0] * 5)})
    equal = Apply("==", (Column(0, "k"), Column(1, "k")))
    case = tiny(
        [equal], *columns, windows=[10**9, 2 * 10**9], options={"window": "'1s'"}, closed=closed
    )
    case.streams[1].options["window"] = "'2s'"
    check(case)


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_times_beyond_what_nanoseconds_hold_are_exact(unit):
    kind = KINDS[f"timestamp_{unit}"]
    far = 250_000 * 365 * 86_400 * (10**9 // kind.scale)  # a quarter of a million years
    columns = {TIME: (kind, [-far, 0, far, far + 1]), "k": (INT, [0] * 4)}
    equal = Apply("==", (Column(0, "k"), Column(1, "k")))
    windows = [kind.scale, 0]
    case = tiny([equal], columns, columns, windows=windows)
    for stream, width in zip(case.streams, (1, 0), strict=True):
        stream.options["window"] = repr(f"{width}{unit}")
    check(case)


@pytest.mark.parametrize("unit", UNITS)
def test_integer_times_with_a_unit_take_durations(unit):
    columns = {TIME: (INT, [0, 5, 6, 12]), "k": (INT, [0] * 4)}
    equal = Apply("==", (Column(0, "k"), Column(1, "k")))
    options = {"unit": repr(unit), "window": repr(f"6{unit}")}
    check(tiny([equal], columns, columns, windows=[6, 6], options=options))


def test_integer_times_of_different_units_meet_in_one():
    equal = Apply("==", (Column(0, "k"), Column(1, "k")))
    units = [("s", 10**9, [0, 1, 2, 3]), ("ms", 10**6, [0, 999, 1000, 1001, 3000])]
    columns = [
        {TIME: (Kind(unit, pa.int64(), "number", (), scale), times), "k": (INT, [0] * len(times))}
        for unit, scale, times in units
    ]
    case = tiny([equal], *columns, windows=[10**9, 0])
    for stream, (unit, _, _), window in zip(case.streams, units, ("1s", "0s"), strict=True):
        stream.options.update(unit=repr(unit), window=repr(window))
    check(case)


def test_time_differences_compare_with_durations():
    stamp, fine = KINDS["timestamp_ms"], KINDS["timestamp_ns"]
    band = Literal(1_500_000_000, "datetime.timedelta(milliseconds=1500)")
    on = Apply("<=", (Apply("abs", (difference(),)), band))
    milliseconds = [0, 1500, 1501, 3000]
    nanoseconds = [0, 1_500_000_000, 1_500_000_001, -1]
    check(pair(on, (stamp, milliseconds), (fine, nanoseconds)))


def test_dates_compare_with_timestamps_at_midnight():
    date, stamp, day = KINDS["date32"], KINDS["timestamp_us"], 86_400 * 10**6
    for operation in OPERATIONS:
        on = comparison(operation)
        check(pair(on, (date, [-1, 0, 1, None]), (stamp, [-day, -1, 0, 1, day, None])))


def test_dictionaries_of_both_sides_need_not_agree():
    category = KINDS["category"]
    check(pair(comparison("=="), (category, ["b", "a", None, "c"]), (category, ["z", "a", "b"])))
    check(pair(comparison("<"), (category, ["b", "a", None, "c"]), (category, ["z", "a", "b"])))
