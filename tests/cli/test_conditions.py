"""Conditions as text, in query files: they mean what they mean in a program, or are refused."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
import windjoin as wj
from pyarrow import parquet
from windjoin.cli.conditions import parse_expression
from windjoin.cli.queryfile import read_query_file

from tests.command import TWO_STREAMS, query_file, windjoin

CONDITIONS = [
    'a["x"] < b["y"]',
    'abs(a["x"] - b["y"]) <= 5',
    '(a["x"] - b["y"]).between(-20, -1.5, closed="left")',
    '(a["k"] == b["k"]) | (a["x"] + b["y"] > 2 * 3 + 1)',
    '~(a["k"] != b["k"]) & (b["y"] // 7 % 2 - a["x"] < +1)',
    'a["x"] / b["y"] <= Decimal("0.15")',
    'a["k"].is_null() | (b["k"] != "u") & (a["k"] != b["k"])',
    '(a["x"] * 1000).between(b["y"], b["y"] * -(-100))',
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_mean_what_they_mean_in_a_program(folder: Path, condition: str) -> None:
    described = read_query_file(query_file(folder, f"on = '''{condition}'''\n" + TWO_STREAMS))
    a, b = (wj.stream(name, time="t", window=10) for name in "ab")
    written = eval(condition, {"a": a, "b": b, "Decimal": Decimal})
    query = wj.join(a, b, on=written)
    assert repr(described.query.on) == repr(query.on)
    expected = query.run(described.sources)
    assert described.query.run(described.sources).equals(expected)


def test_times_are_constants_too() -> None:
    streams = {name: wj.stream(name, time="t", window=10) for name in "ab"}
    text = (
        '(a["when"] >= datetime.datetime(2026, 1, 5, tzinfo=UTC)) & (b["day"] == date(2026, 1, 5))'
        ' & (a["when"] - b["when"] < timedelta(seconds=5) + timedelta(minutes=1))'
        ' & (b["at"] != time(9, 30)) & (a["ok"] == True) & (b["raw"] != b"x")'
    )
    assert repr(parse_expression(text, streams)) == (
        '(a["when"] >= datetime.datetime(2026, 1, 5, 0, 0, tzinfo=datetime.timezone.utc))'
        ' & (b["day"] == datetime.date(2026, 1, 5))'
        ' & (a["when"] - b["when"] < datetime.timedelta(seconds=65))'
        ' & (b["at"] != datetime.time(9, 30)) & (a["ok"] == True) & (b["raw"] != b\'x\')'
    )


MEASURES = [
    'overlap(a["s"], b["s"]) >= 2',
    'windjoin.jaccard(a["s"], b["s"]) >= 0.5',
    '~((overlap(a["s"], b["s"]) >= 2) | (a["t"] < b["t"]))',
    'hamming(a["h"], b["h"], unit="bits") <= 3',
    'hamming(a["h"], b["h"], "bits") <= 3',
    'inner_product((a["s"], a["w"]), b["m"]) > 0.5',
    'cosine((a["s"], a["w"]), (b["s"], b["w"])) > 0.5',
]


@pytest.mark.parametrize("text", MEASURES)
def test_measures_mean_what_they_mean_in_a_program(text: str) -> None:
    streams = {name: wj.stream(name, time="t", window=10) for name in "ab"}
    written = eval(text, {"windjoin": wj, **vars(wj), **streams})
    assert repr(parse_expression(text, streams)) == repr(written)


def test_a_measure_is_known_by_the_name_that_is_shown() -> None:
    a, b = (wj.stream(name, time="t", window=10) for name in "ab")
    shown = repr(wj.hamming(a["h"], b["h"], unit="bits") <= 3)
    assert repr(parse_expression(shown, {"a": a, "b": b})) == shown


def test_measures_are_known_to_a_process_that_reads_nothing_but_a_query_file(folder: Path) -> None:
    rows = pa.table({"t": [1, 2], "s": [["u", "v"], ["w"]]})
    for name in "ab":
        parquet.write_table(rows, folder / f"{name}.parquet")
    on = """on = '~((overlap(a["s"], b["s"]) < 2) | (a["t"] < b["t"]))'\nnearest = 1\n"""
    one = on.replace("nearest = 1", "select = [\"a['t']\"]")
    files = TWO_STREAMS.replace(".csv", ".parquet")
    done = windjoin("run", query_file(folder, one + files), "--output", folder / "out.csv")
    assert done.returncode == 0, done.stderr
    assert (folder / "out.csv").read_text() == '"a_t"\n1\n'


def test_nearest_is_a_key_of_a_query_file(folder: Path) -> None:
    on = """on = 'l1(a["v"], b["v"]) <= 5'\n"""
    query = read_query_file(query_file(folder, f"nearest = 3\n{on}{TWO_STREAMS}")).query
    assert query.nearest == 3
    with pytest.raises(wj.QueryError, match="nearest = 'one': expected a whole number"):
        read_query_file(query_file(folder, f"nearest = 'one'\n{on}{TWO_STREAMS}"))


REFUSED = [
    ("a[", "is not an expression: '[' was never closed"),
    ("1 < a['k'] < 2", "is a chain of comparisons; write two, or .between(low, high)"),
    ("a['k'] == b['k'] and a['x'] < 1", "uses and, or, not or in; write &, |, ~ with each side"),
    ("not a['k']", "uses and, or, not or in; write &, |, ~ with each side in parentheses"),
    ("a['k'] in b['k']", "uses and, or, not or in; write &, |, ~ with each side in parentheses"),
    ("a[0] == b['k']", '`a[0]` does not name a column; write for example calls["person"]'),
    ("c['k'] == b['k']", "'c' is not a stream of this query; there are 'a' and 'b'"),
    ("a['k']['l'] == 1", "`a['k']` has no columns; only streams do"),
    ("a['k'] ** 2 == b['k']", "`a['k'] ** 2` cannot stand in a condition"),
    ("a.name == b['k']", "`a.name` cannot stand in a condition"),
    ("(a['k'], a['x'])", "`(a['k'], a['x'])` cannot stand in a condition"),
    ("overlap((a['k'], a['x']), b['k']) > 1", 'overlap got (a["k"], a["x"]) (tuple) where a col'),
    ("cosine((a['k'], b['x']), b['k']) > 1", 'and weights `b["x"]` must be of one stream'),
    ("[a['k']]", "`[a['k']]` cannot stand in a condition"),
    ("a['k'] == None", "`None` cannot stand in a condition"),
    ("abs(*a['k']) == 1", "`*a['k']` cannot stand in a condition"),
    ("abs(**a['k']) == 1", "`abs(**a['k'])` cannot stand in a condition"),
    ("'x' * 10 ** 9 == a['k']", "`10 ** 9` cannot stand in a condition"),
    ("a['k'] == 'x' * 1000000000", "'x' is not a number to calculate with"),
    ("a['k'] == 1 // 0", "integer division or modulo by zero"),
    ("a['k'] == Decimal('one')", "not a number"),
    ("a['k'] == date(2026, 13, 1)", "month must be in 1..12"),
    (
        "open('/etc/passwd')",
        "'open' is not one of abs, coalesce, Decimal, date",
    ),
    ("__import__('os').system('x')", "`__import__('os').system` is not one of abs, coalesce"),
    ("a['k'].__class__", "`a['k'].__class__` cannot stand in a condition"),
    ("a['k'].columns() == 1", "`a['k'].columns` is not one of abs, coalesce, Decimal"),
    ("a.is_null()", "`a` is no column: it has no .is_null"),
    ("udf(lambda x: x, a['k'])", "udf is for programs: text is never executed"),
    ("a['k'].alias(5)", ".alias(5): the name must be a text that is not empty"),
    ("1 + 1", "is not an expression over columns of streams"),
    ("a", "is not an expression over columns of streams"),
    ("(" * 500 + "a" + ")" * 500, "is not an expression: too many nested parentheses"),
    ("-" * 5000 + "a['k']", "is nested too deeply"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=range(len(REFUSED)))
def test_conditions_refuse(text: str, message: str) -> None:
    streams = {name: wj.stream(name, time="t", window=10) for name in "ab"}
    with pytest.raises(wj.QueryError, match=re.escape(message)):
        parse_expression(text, streams)
