"""Streams, expressions and queries as they are built: text, identity, refusals."""

from __future__ import annotations

import operator
import pickle
import subprocess
import sys
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import windjoin as wj
from hypothesis import assume, given
from hypothesis import strategies as st
from windjoin.conjunctions import conjuncts
from windjoin.durations import Duration
from windjoin.errors import QueryError
from windjoin.expressions import Column, Expression
from windjoin.function_nodes import PairFunction

a, b, c = (wj.stream(name, time="t", window="5s") for name in "abc")

leaves = st.sampled_from([a["x"], a["y"], b["x"], b["a b"], c['q"']]) | st.sampled_from(
    [0, 1, -1, 2.5, True, "text", "it's", 'a "b"', b"bytes"]
)


def compound(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    two = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv]
    two += [operator.mod, operator.and_, operator.or_, operator.lt, operator.ge, operator.eq]
    two += [operator.ne]
    nodes = st.builds(lambda f, x, y: f(x, y), st.sampled_from(two), inner.filter(is_node), inner)
    turned = st.builds(_apply, st.sampled_from(two), inner, inner.filter(is_node))
    unary = [operator.neg, operator.abs, operator.invert, lambda x: x.is_null()]
    one = st.builds(lambda f, x: f(x), st.sampled_from(unary), inner.filter(is_node))
    closed = st.sampled_from(["both", "left", "right", "neither"])
    between = st.builds(
        lambda x, y, z, w: x.between(y, z, closed=w), inner.filter(is_node), inner, inner, closed
    )
    named = st.builds(lambda x: x.alias("n m"), inner.filter(is_node))
    return nodes | turned | one | between | named


def _apply(operation: Any, x: Any, y: Any) -> Any:
    """``x <operation> y``, but % of text on the left is Python's formatting."""
    assume(not (operation is operator.mod and isinstance(x, (str, bytes))))
    return operation(x, y)


def is_node(value: object) -> bool:
    return isinstance(value, Expression)


expressions = st.recursive(leaves, compound, max_leaves=12).filter(is_node)


@given(expressions)
def test_text_of_an_expression_is_its_source(expression: Expression) -> None:
    again = eval(repr(expression), {"a": a, "b": b, "c": c})
    assert again.same(expression)
    assert hash(again) == hash(expression)
    assert repr(again) == repr(expression)


@given(expressions, expressions)
def test_same_is_equality_of_the_source(x: Expression, y: Expression) -> None:
    assert x.same(y) == (repr(x) == repr(y))


@given(expressions)
def test_expressions_are_pickled(expression: Expression) -> None:
    assert pickle.loads(pickle.dumps(expression)).same(expression)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ((a["x"] + 1) * 2 - b["y"] / 3, '(a["x"] + 1) * 2 - b["y"] / 3'),
        (1 - (a["x"] - b["y"]), '1 - (a["x"] - b["y"])'),
        (-(a["x"] + 1) % 3 // 2, '-(a["x"] + 1) % 3 // 2'),
        (abs(a["x"]) >= 5, 'abs(a["x"]) >= 5'),
        (
            ~(a["x"] == 1) | (b["y"] > 2) & (c["z"] < 3),
            '~(a["x"] == 1) | (b["y"] > 2) & (c["z"] < 3)',
        ),
        ((a["x"] < 1) == (b["x"] < 1), '(a["x"] < 1) == (b["x"] < 1)'),
        (a["t"] - b["t"] <= Duration(5 * 10**9), 'a["t"] - b["t"] <= "5s"'),
        (a["x"] == np.int64(5), 'a["x"] == 5'),
        (np.float64(2.5) * a["x"] == 1, '2.5 * a["x"] == 1'),
        (a["x"] == Decimal("1.5"), "a[\"x\"] == Decimal('1.5')"),
        (a["t"] > date(2024, 1, 2), 'a["t"] > datetime.date(2024, 1, 2)'),
        (2 / a["x"] + 3 // a["x"] + 4 % a["x"] + 0, '2 / a["x"] + 3 // a["x"] + 4 % a["x"] + 0'),
        (True & (a["x"] == 1) | False, 'True & (a["x"] == 1) | False'),
        (wj.udf(max, a["x"], b["y"]), 'udf(max, a["x"], b["y"])'),
        (PairFunction("l2", a["v"], b["v"]) <= 3, 'l2(a["v"], b["v"]) <= 3'),
        ((a["x"] + 1).alias("n"), '(a["x"] + 1).alias("n")'),
    ],
)
def test_text_reads_like_the_source(expression: Expression, text: str) -> None:
    assert repr(expression) == text


def test_reflected_logic() -> None:
    assert repr(False | (a["x"] == 1)) == 'False | (a["x"] == 1)'


def test_equality_builds_a_condition_and_keys_tell_apart() -> None:
    assert repr(a["x"] == a["x"]) == 'a["x"] == a["x"]'
    assert repr(a["x"] != a["x"]) == 'a["x"] != a["x"]'
    assert len({a["x"].key, Column("a", "x").key, a["y"].key}) == 2
    assert not (a["x"] == 1).same(a["x"] == True)  # noqa: E712
    assert not (a["x"] == 1).same(a["x"] == 1.0)


@pytest.mark.parametrize(
    "use",
    [
        lambda: bool(a["x"] == 1),
        lambda: (a["x"] == 1) and (a["y"] == 1),
        lambda: (a["x"] == 1) or (a["y"] == 1),
        lambda: not a["x"],
        lambda: 0 < a["x"] < 1,
        lambda: a["x"] in [b["y"]],
        lambda: 1 if a["x"] > 1 else 0,
    ],
)
def test_truth_of_an_expression_is_refused(use: Any) -> None:
    with pytest.raises(TypeError, match=r"put the conditions in a list, or write & for and"):
        use()


def test_expressions_are_not_iterable() -> None:
    with pytest.raises(TypeError, match="is an expression and cannot be iterated over"):
        list(a["x"])


def test_streams_and_columns_of_an_expression() -> None:
    expression = (a["x"] + b["y"] < 1) & a["x"].between(b["z"], c["w"])
    assert expression.streams == ("a", "b", "c")
    assert [repr(column) for column in expression.columns()] == [
        'a["x"]', 'b["y"]', 'a["x"]', 'b["z"]', 'c["w"]'
    ]  # fmt: skip
    assert len(conjuncts(expression)) == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: a["x"] == None, r"None compares false with everything; use \.is_null"),  # noqa: E711
        (lambda: a["x"] == float("nan"), r"NaN compares false with everything; use \.is_null"),
        (lambda: a["x"].between(0, np.float32("nan")), "NaN compares false"),
        (lambda: a["x"] < Decimal("NaN"), "NaN compares false"),
        (lambda: a["x"] < np.datetime64("NaT", "s"), "NaT compares false"),
        (lambda: a["x"] == [1], r"\[1\] \(list\) cannot stand in an expression"),
        (lambda: a["x"] + b, r"\(Stream\) cannot stand in an expression"),
        (lambda: a["x"].between(0, 1, closed="all"), "closed is one of both, left, right, neither"),  # type: ignore[arg-type]
        (lambda: a["x"].alias(""), "the name must be a text that is not empty"),
        (lambda: a[0], r'a\[0\]: a column is named by text, as in a\["person"\]'),
        (lambda: wj.udf(3, a["x"]), r"udf\(3, ...\): the first argument must be a function"),  # type: ignore[arg-type]
        (lambda: wj.udf(max), "udf needs the columns its function is called with"),
        (lambda: wj.udf(max, a["x"], 3), "udf argument 3 is not a column expression"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_stand_in_an_expression_is_refused(make: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        make()


# -- streams ----------------------------------------------------------------------------------


def test_text_of_a_stream_is_its_source() -> None:
    s = wj.stream("s", time="t", window=5, unit="min", where=lambda s: (s["x"] > 1) & (s["y"] < 2))
    assert repr(s) == (
        "stream('s', time='t', window='5m', unit='m', where=(s[\"x\"] > 1) & (s[\"y\"] < 2))"
    )
    assert [repr(condition) for condition in s.conditions] == ['s["x"] > 1', 's["y"] < 2']
    bare = wj.stream("s", time="t", window=5)
    assert repr(bare) == "stream('s', time='t', window=5)"
    assert bare.conditions == []
    again = wj.stream("s", time="t", window=timedelta(minutes=5), where=bare["x"] > 1)
    assert again.window == Duration(300 * 10**9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": ""}, "stream.'': the name must be a text that is not empty|stream\\(''\\)"),
        ({"name": 5}, r"stream\(5\): the name must be a text"),
        ({"time": ""}, "stream 's': time='' must be the name of the time column"),
        ({"window": "soon"}, "stream 's': window: 'soon' is not a duration"),
        ({"window": 1.5}, r"stream 's': window: 1.5 \(float\) is not a duration"),
        ({"window": True}, r"window: True \(bool\) is not a duration"),
        ({"window": "-5s"}, "stream 's': window='-5s' is negative"),
        ({"window": -5}, "stream 's': window=-5 is negative"),
        ({"unit": "fortnight"}, "unit='fortnight' is not one of w, d, h, m, s, ms, us, ns"),
        ({"unit": 5}, "unit=5 is not one of"),
        ({"where": 5}, "where=5 is not a condition on its columns"),
        ({"where": lambda s: True}, "where=True is not a condition"),
        ({"where": a["x"] > 1}, "must use columns of this stream only, not of 'a'"),
        ({"where": lambda s: s["x"] > a["x"]}, "such a condition belongs in on="),
    ],
)
def test_bad_streams_are_refused(arguments: Any, message: str) -> None:
    full = {"name": "s", "time": "t", "window": "5s"} | arguments
    with pytest.raises(QueryError, match=message):
        wj.stream(full.pop("name"), **full)


# -- queries ----------------------------------------------------------------------------------


def test_conditions_joined_by_and_are_a_list() -> None:
    listed = wj.join(a, b, on=[a["x"] == b["x"], a["y"] < b["y"]])
    joined = wj.join(a, b, on=(a["x"] == b["x"]) & (a["y"] < b["y"]))
    assert [e.key for e in listed.on] == [e.key for e in joined.on]
    assert listed.names == ("a", "b")
    assert wj.join(a, b, cross=True).on == ()


def test_queries_are_pickled() -> None:
    query = wj.join(a, b, on=a["x"] == b["x"], select=a["x"], exclude_self=[a, b])
    again = pickle.loads(pickle.dumps(query))
    assert repr(again) == repr(query)
    assert again.exclude_self == ((0, 1),)


@pytest.mark.parametrize(
    ("given", "pairs"),
    [
        (False, ()),
        (True, ((0, 1), (0, 2), (1, 2))),
        (["a", "c"], ((0, 2),)),
        ((c, a), ((0, 2),)),
        ([("a", "b"), [b, c]], ((0, 1), (1, 2))),
        ([], ()),
    ],
)
def test_exclude_self_names_streams_of_one_table(given: Any, pairs: Any) -> None:
    on = [a["x"] == b["x"], b["x"] == c["x"]]
    assert wj.join(a, b, c, on=on, exclude_self=given).exclude_self == pairs


EQUAL = a["x"] == b["x"]
MANY = [wj.stream(f"s{i}", time="t", window=1) for i in range(17)]


@pytest.mark.parametrize(
    ("streams", "arguments", "message"),
    [
        ((a,), {}, "join takes 2 to 16 streams, got 1"),
        (MANY, {}, "join takes 2 to 16 streams, got 17"),
        ((a, EQUAL), {}, r"join got .* \(Comparison\) where a stream is expected"),
        ((a, a), {"on": EQUAL}, "2 streams are called 'a'; give every stream a name of its own"),
        ((a, b), {"on": True}, r"on= got True \(bool\) where a condition is expected"),
        ((a, b), {"on": [EQUAL, "x"]}, r"on= got 'x' \(str\) where a condition is expected"),
        ((a, b), {"on": a["x"] == c["x"]}, "uses stream 'c', which is not joined here; there are"),
        ((a, b), {"on": a["x"] - b["x"]}, "is not a condition; compare it with something"),
        ((a, b), {"on": PairFunction("l2", a["x"], b["x"])}, "is a measure; compare it with a thr"),
        (
            (a, b),
            {"on": [EQUAL, a["x"] > 5]},
            r"uses columns of 'a' alone; .* belongs in its where=",
        ),
        ((a, b), {"on": [EQUAL, wj.udf(abs, b["x"])]}, "uses columns of 'b' alone"),
        ((a, b), {"on": [EQUAL, a["flag"]]}, "uses columns of 'a' alone"),
        ((a, b), {}, "no condition connects 'a' with 'b': that is a cross product"),
        ((a, b, c), {"on": EQUAL}, "no condition connects 'a' and 'b' with 'c'"),
        ((a, b), {"on": EQUAL, "closed": "left"}, "closed='left': a window is closed=\"both\" or"),
        ((a, b), {"on": EQUAL, "select": []}, r"select=\[\] leaves no column"),
        ((a, b), {"on": EQUAL, "select": ["x"]}, r"select got 'x' \(str\) where a column"),
        ((a, b), {"on": EQUAL, "select": [c["x"]]}, "select: .* uses stream 'c', which is not"),
        ((a, b), {"on": EQUAL, "select": [a["x"] + b["x"]]}, r'write \(...\).alias\("name"\)'),
        ((a, b), {"on": EQUAL, "select": [a["x"], b["y"].alias("a_x")]}, "are both called 'a_x'"),
        ((a, b), {"on": EQUAL, "exclude_self": ["a"]}, "names fewer than two streams"),
        (
            (a, b),
            {"on": EQUAL, "exclude_self": ["a", "bb"]},
            "'bb' is not a stream of this join; d",
        ),
        ((a, b), {"on": EQUAL, "exclude_self": [(a, 5)]}, "5 is not a stream of this join"),
    ],
)
def test_bad_queries_are_refused(streams: Any, arguments: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        wj.join(*streams, **arguments)


def test_datetime_constants_are_kept_as_they_are() -> None:
    moment = datetime(2024, 1, 2, 3, 4, 5)
    assert (a["t"] > moment).parts[1].key[-1] == moment


def test_import_is_light() -> None:
    code = (
        "import sys, windjoin; heavy = {'numba', 'pyspark', 'pandas', 'pyarrow.compute',"
        " 'pyarrow.parquet', 'matplotlib'} & set(sys.modules); sys.exit(f'{heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
