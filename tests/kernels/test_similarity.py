"""Every measure on every path against plain Python, at thresholds that values take exactly."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import similarity_oracle as oracle
from tests.effort import examples
from tests.similarity_paths import all_paths, batch, streams, table

SIGNS = ("<", "<=", ">", ">=", "==", "!=")
small = st.integers(0, 9)
items = st.lists(st.none() | small, max_size=6)
real = st.sampled_from([0.0, 1.0, -1.0, 0.5, 3.25, 1e-3, 7.1, -0.0])
wide = real | st.sampled_from([float("inf"), 1e30, -1e200, 1e-300, float("nan")]) | st.none()
pair = st.tuples(small, real)
pairs = st.lists(pair, max_size=5)
DAY = datetime.date(2024, 2, 27)
lists_of = {
    "sets": [
        (items, pa.list_(pa.int64())),
        (items, pa.large_list(pa.int32())),
        (st.lists(st.integers(0, 2**64 - 1), max_size=3), pa.list_(pa.uint64())),
        (st.lists(st.sampled_from("abcxyz"), max_size=5), pa.list_(pa.string())),
        (st.lists(small, min_size=3, max_size=3), pa.list_(pa.int16(), 3)),
        (
            st.lists(st.sampled_from("abc"), max_size=5),
            pa.list_(pa.dictionary(pa.int8(), pa.string())),
        ),
        (st.lists(st.none() | st.booleans(), max_size=3), pa.list_(pa.bool_())),
        (
            st.lists(st.dates(DAY, DAY + datetime.timedelta(4)), max_size=3),
            pa.large_list(pa.date32()),
        ),
    ],
    "weighted": [
        (pairs, pa.map_(pa.int64(), pa.float64())),
        (pairs, pa.list_(pa.struct([("i", pa.int32()), ("w", pa.float64())]))),
        (st.lists(pair, min_size=1, max_size=1), pa.map_(pa.int64(), pa.float64())),
        (
            st.lists(pair, min_size=2, max_size=2),
            pa.list_(pa.struct([("i", pa.int32()), ("w", pa.float64())]), 2),
        ),
    ],
    "vectors": [
        (st.lists(wide, min_size=3, max_size=3), pa.list_(pa.float64(), 3)),
        (st.lists(wide, max_size=2), pa.list_(pa.float64())),
        (st.lists(real, min_size=0, max_size=40), pa.list_(pa.float64())),
        (st.lists(st.integers(-9, 9), min_size=2, max_size=2), pa.list_(pa.int8(), 2)),
        (st.lists(st.integers(-9, 9).map(float), max_size=3), pa.large_list(pa.float32())),
    ],
    "bytes": [
        (st.binary(min_size=4, max_size=4), pa.binary(4)),
        (st.binary(max_size=2), pa.binary()),
        (st.lists(st.integers(0, 255), min_size=3, max_size=3), pa.list_(pa.uint8(), 3)),
    ],
}
NAMES = {
    "sets": list(oracle.SETS), "weighted": list(oracle.WEIGHTED),
    "vectors": list(oracle.VECTORS), "bytes": list(oracle.BYTES),
}  # fmt: skip
CASES = [
    pytest.param(family, name, *kind, id=f"{family}-{name}-{number}")
    for family, kinds in lists_of.items()
    for name in NAMES[family]
    for number, kind in enumerate(kinds)
]


def measure(name: str, left: Any, right: Any) -> Any:
    """The public function of a measure."""
    if name == "hamming_bits":
        return wj.hamming(left, right, unit="bits")
    return getattr(wj, name)(left, right)


@pytest.mark.parametrize(("family", "name", "values", "arrow"), CASES)
@settings(max_examples=examples(12))
@given(data=st.data())
def test_measures_equal_the_oracle_on_every_path(
    family: str, name: str, values: Any, arrow: pa.DataType, data: Any
) -> None:
    rows = st.lists(st.tuples(st.integers(0, 12), st.none() | values), max_size=8)
    left, right = data.draw(rows), data.draw(rows)
    found = [oracle.measure(family, name, a, b) for _, a in left for _, b in right]
    taken = [value for value in found if value is not None and abs(value) < 2**53]
    limit = data.draw(st.sampled_from([0.0, 1.0, 0.5, *taken]))  # the closed edge
    sign = data.draw(st.sampled_from(SIGNS))
    windows = data.draw(st.tuples(st.integers(0, 12), st.integers(0, 12)))
    a, b = streams(windows)
    query = wj.join(a, b, on=wj_condition(measure(name, a["v"], b["v"]), sign, limit))
    expected = oracle.join(left, right, windows, oracle.condition(family, name, sign, limit))
    tables = [table(rows, arrow, split) for rows, split in ((left, 1), (right, 0))]
    for path, pairs_found in all_paths(query, *tables).items():
        assert pairs_found == expected, path


THRESHOLDS = [math.inf, -math.inf, 1e300, 2**53 + 1, 2**63, -(2**70), 10**400, 5e-324]
THRESHOLDS += [Decimal("0.1"), Decimal("1.5"), Decimal(10) ** 30, Decimal("1E-400")]
WIDELY = {
    "sets": (st.lists(st.integers(0, 3), max_size=3), pa.list_(pa.int64())),
    "vectors": (
        st.lists(
            st.sampled_from([1e300, -1e300, 1e16, 2.0, 0.1, math.inf]), min_size=2, max_size=2
        ),
        pa.list_(pa.float64()),
    ),
    "bytes": (st.binary(max_size=2), pa.binary()),
}


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("family", WIDELY)
@given(data=st.data())
def test_thresholds_are_numbers_of_any_size(family: str, sign: str, data: Any) -> None:
    """What no double is, and what no sum reaches, is compared as it is written."""
    values, arrow = WIDELY[family]
    name = data.draw(st.sampled_from(NAMES[family]))
    limit = data.draw(st.sampled_from(THRESHOLDS))
    left, right = (data.draw(st.lists(st.tuples(st.just(0), values), max_size=6)) for _ in "ab")
    a, b = streams((1, 1))
    condition = wj_condition(measure(name, a["v"], b["v"]), sign, limit)
    holds = oracle.condition(family, name, sign, limit)  # Python compares numbers exactly
    expected = oracle.join(left, right, (1, 1), holds)
    tables = [table(rows, arrow) for rows in (left, right)]
    for path, found in all_paths(wj.join(a, b, on=condition), *tables).items():
        assert found == expected, path
    nearest = wj.join(a, b, on=condition, nearest=len(left) + len(right) + 1)
    assert batch(nearest, *tables) == expected


def wj_condition(value: Any, sign: str, limit: float) -> Any:
    """The condition a user writes."""
    return oracle.COMPARE[sign](value, limit)


def views(kind: Any, seed: int) -> tuple[pa.Table, pa.Table]:
    """Lists as views of their rows, null ones and slices too, and the same as plain lists."""
    random = np.random.default_rng(seed)
    rows: list[Any] = [random.integers(0, 5, 3).tolist() for _ in range(40)]
    rows[7] = None
    arrays = [pa.array(rows, kind(pa.int64())), pa.array(rows, pa.list_(pa.int64()))]
    half = [pa.chunked_array([one[3:20], one[20:]]) for one in arrays]
    viewed, plain = (pa.table({"t": np.arange(37), "v": one}) for one in half)
    return viewed, plain


@pytest.mark.parametrize("kind", [pa.list_view, pa.large_list_view])
@pytest.mark.parametrize("name", ["l2", "dot", "overlap", "jaccard"])
def test_views_are_lists(name: str, kind: Any) -> None:
    a, b = streams((9, 9))
    condition = measure(name, a["v"], b["v"]) >= 1
    (left, plain_left), (right, plain_right) = views(kind, 1), views(kind, 2)
    query = wj.join(a, b, on=condition)
    found = batch(query, left, right)
    assert len(found) > 20
    assert found == batch(query, plain_left, plain_right)
    assert found == batch(query, left, plain_right)


def coded(lists: pa.Array) -> pa.Table:
    """A table of lists, each row a reference into a dictionary of them; one row is null."""
    codes = pa.array([None, *(k * k % len(lists) for k in range(29))], pa.int16())
    column = pa.DictionaryArray.from_arrays(codes, lists)
    return pa.table({"t": np.arange(27), "v": pa.chunked_array([column[:4], column[7:]])})


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list, pa.list_view])
@pytest.mark.parametrize("name", ["l2", "overlap"])
def test_dictionary_encoded_lists_are_lists(name: str, kind: Any) -> None:
    a, b = streams((9, 9))
    left = coded(pa.array([[1, 2, 3], [], None, [3, 2, 1], [7, 1, 2]], kind(pa.int64())))
    plain = pa.table({"t": left["t"], "v": pa.array(left["v"].to_pylist(), pa.list_(pa.int64()))})
    query = wj.join(a, b, on=measure(name, a["v"], b["v"]) >= 1)
    expected = batch(query, plain, plain)
    assert len(expected) > 20
    for path, found in all_paths(query, left, plain).items():
        assert found == expected, path


@pytest.mark.parametrize("width", [1, 3, 40])
def test_infinity_less_infinity_has_no_value_wherever_it_stands(width: int) -> None:
    a, b = streams((5, 5))
    rows: list[Any] = [(1, [0.0] * width)]
    for at in {0, width // 2, width - 1}:
        rows.append((1, [0.0] * at + [float("inf")] + [9.0] * (width - at - 1)))
    arrow = pa.list_(pa.float64(), width)
    for sign, limit in ((">=", 0.0), ("<=", 5.0), ("!=", 1.0)):
        query = wj.join(a, b, on=wj_condition(wj.linf(a["v"], b["v"]), sign, limit))
        holds = oracle.condition("vectors", "linf", sign, limit)
        expected = oracle.join(rows, rows, (5, 5), holds)
        assert not any(i == j for i, j in expected if i)
        for path, found in all_paths(query, table(rows, arrow), table(rows, arrow)).items():
            assert found == expected, path


TINY = [[1e-300], [2.0], [-3e-162], [1e-160], [0.0]]


@pytest.mark.parametrize("family", ["vectors", "weighted"])
def test_there_is_no_cosine_where_a_norm_is_zero(family: str) -> None:
    """Squares of components may be too small for doubles though the components are not."""
    a, b = streams((5, 5))
    rows: list[Any] = [(1, row) for row in TINY]
    arrow: Any = pa.list_(pa.float64(), 1)
    if family == "weighted":
        rows = [(1, [(7, row[0])]) for row in TINY]
        arrow = pa.map_(pa.int64(), pa.float64())
    for sign, limit in ((">", 0.5), (">=", 1.0), ("<", 0.0), ("!=", 0.5)):
        query = wj.join(a, b, on=wj_condition(wj.cosine(a["v"], b["v"]), sign, limit))
        holds = oracle.condition(family, "cosine", sign, limit)
        expected = oracle.join(rows, rows, (5, 5), holds)
        assert expected
        assert not any({0, 4} & {i, j} for i, j in expected)
        for path, found in all_paths(query, table(rows, arrow), table(rows, arrow)).items():
            assert found == expected, path


@given(pairs, pairs)
def test_two_parallel_lists_are_a_weighted_set(left: Any, right: Any) -> None:
    a, b = streams((5, 5))
    lists = pa.list_(pa.int64()), pa.list_(pa.float64())

    def parallel(row: Any) -> pa.Table:
        columns = ([[i for i, _ in row], None], [[w for _, w in row], [1.0]])
        arrays = [pa.array(c, t) for c, t in zip(columns, lists, strict=True)]
        return pa.table([pa.array([1, 1]), *arrays], ["t", "i", "w"])

    condition = wj.inner_product((a["i"], a["w"]), (b["i"], b["w"])) >= 1.0
    product = oracle.inner_product(left, right)
    assert product is not None
    found = batch(wj.join(a, b, on=condition), parallel(left), parallel(right))
    assert found == ([(0, 0)] if product >= 1.0 else [])


def test_parallel_lists_of_different_lengths_are_named() -> None:
    a, b = streams((5, 5))
    rows = pa.table({"t": [1, 2], "i": [[1], [1, 2]], "w": [[1.0], [2.0]]})
    query = wj.join(a, b, on=wj.cosine((a["i"], a["w"]), (b["i"], b["w"])) >= 0.5)
    with pytest.raises(wj.DataError, match=r"stream 'a', row 1: `a\[\"i\"\]` has 2 items but"):
        query.indices({"a": rows, "b": rows})


def test_measures_can_be_selected_and_compared_with_each_other() -> None:
    a, b = streams((5, 5))
    rows = pa.table({"t": [1, 2], "s": [[1, 2, 2], []], "v": [[0.0, 1.0], [3.0, 5.0]]})
    shown = [
        a["t"],
        b["t"],
        wj.overlap(a["s"], b["s"]).alias("common"),
        wj.jaccard(a["s"], b["s"]).alias("share"),
        (wj.l2(a["v"], b["v"]) * 2).alias("twice"),
    ]
    near = wj.l2(a["v"], b["v"]) <= wj.linf(a["v"], b["v"]) + 2
    found = wj.join(a, b, on=near, select=shown).run({"a": rows, "b": rows}).to_pylist()
    assert found == [
        {"a_t": 1, "b_t": 1, "common": 2, "share": 1.0, "twice": 0.0},
        {"a_t": 1, "b_t": 2, "common": 0, "share": 0.0, "twice": 10.0},
        {"a_t": 2, "b_t": 1, "common": 0, "share": 0.0, "twice": 10.0},
        {"a_t": 2, "b_t": 2, "common": 0, "share": None, "twice": 0.0},
    ]


WRONG = [
    (wj.overlap, pa.int64(), pa.int64(), "takes lists of items"),
    (wj.overlap, pa.list_(pa.int64()), pa.list_(pa.string()), "cast them to one type"),
    (wj.l2, pa.list_(pa.string()), pa.list_(pa.string()), "takes lists of numbers, or two binary"),
    (wj.linf, pa.binary(3), pa.binary(3), "takes lists of numbers;"),
    (wj.mean_abs_diff, pa.list_(pa.int32()), pa.list_(pa.int32()), "binary columns or lists of"),
    (wj.inner_product, pa.list_(pa.int64()), pa.list_(pa.int64()), "maps from items to numbers"),
    (wj.cosine, pa.list_(pa.string()), pa.list_(pa.float64()), "lists of numbers, or maps"),
]


@pytest.mark.parametrize(("function", "left", "right", "text"), WRONG)
def test_measures_refuse_columns_they_do_not_take(
    function: Any, left: pa.DataType, right: pa.DataType, text: str
) -> None:
    a, b = streams((5, 5))
    schemas = [pa.schema([("t", pa.int64()), ("v", arrow)]) for arrow in (left, right)]
    query = wj.join(a, b, on=function(a["v"], b["v"]) >= 1)
    with pytest.raises(wj.SchemaError, match=text):
        query.bind(dict(zip("ab", schemas, strict=True)))


def test_measures_refuse_what_is_not_a_column() -> None:
    a, b = streams((5, 5))
    with pytest.raises(wj.QueryError, match=r"overlap got 3 .int. where a column is expected"):
        wj.overlap(a["v"], 3)  # type: ignore[arg-type]
    with pytest.raises(wj.QueryError, match="must be of one stream"):
        wj.inner_product((a["i"], b["w"]), b["m"])
    with pytest.raises(wj.QueryError, match=r'the unit is "bytes" or "bits"'):
        wj.hamming(a["v"], b["v"], unit="words")  # type: ignore[arg-type]
    schema = pa.schema([("t", pa.int64()), ("i", pa.int64()), ("m", pa.map_("string", "float"))])
    query = wj.join(a, b, on=wj.inner_product((a["i"], a["i"]), b["m"]) > 1)
    with pytest.raises(wj.SchemaError, match="must be two columns of lists"):
        query.bind({"a": schema, "b": schema})
