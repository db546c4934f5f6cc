"""What notebooks show is HTML with what it should say; what `dir` shows is what is public."""

from __future__ import annotations

import copy
import json
import pickle
import xml.etree.ElementTree as ET

import pytest
import windjoin as wj

A, B = (wj.stream(name, time="t", window="5s", unit="s") for name in "ab")
QUERY = wj.join(A, B, on=[A["k"] == B["k"], A["x"] < B["x"]])
TABLES = {
    "a": {"t": [1, 2], "k": [5, 6], "x": [1.0, 2.0]},
    "b": {"t": [2, 3], "k": [5, 6], "x": [2.0, 1.0]},
}


def html(shown: object) -> str:
    return shown._repr_html_()  # type: ignore[attr-defined,no-any-return]


def parsed(html: str) -> ET.Element:
    return ET.fromstring(f"<html>{html}</html>")


def test_queries_are_tables_of_streams() -> None:
    page = parsed(QUERY._repr_html_())
    assert [cell.text for cell in page.iter("th")] == ["stream", "time", "window", "where"]
    assert [code.text for code in page.iter("code")] == ['a["k"] == b["k"]', 'a["x"] < b["x"]']


def test_what_explain_says_is_text_and_a_picture() -> None:
    QUERY.run(TABLES)
    said = QUERY.explain()
    assert isinstance(said, str)
    page = parsed(said._repr_html_())
    (pre,) = page.iter("pre")
    assert pre.text == str(said)
    texts = [one.text for one in page.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] in ("a", "b")
    assert "1" in texts  # results that were measured
    before = wj.join(A, B, on=A["k"] == B["k"]).explain()
    assert list(parsed(before._repr_html_()).iter("{http://www.w3.org/2000/svg}svg")) == []


def test_sessions_show_counters_and_do_not_pickle() -> None:
    with QUERY.open() as session:
        for name, table in TABLES.items():
            session.push(name, table)
        page = parsed(session._repr_html_())
        cells = [cell.text for cell in page.iter("td")]
        assert "a" in cells
        assert "rows_in" in [cell.text for cell in page.iter("th")]
        assert len(list(parsed(session.explain()._repr_html_()).iter())) > 10
        for use in (pickle.dumps, copy.copy):
            with pytest.raises(TypeError, match=r"does not pickle: .* save it with session.save"):
                use(session)
    assert pickle.loads(pickle.dumps(QUERY.on[0])).same(QUERY.on[0])


def test_counters_are_a_dictionary_that_prints_and_shows() -> None:
    query = wj.join(A, B, on=A["k"] == B["k"])
    assert set(query.metrics["streams"]) == {"a", "b"}
    assert query.metrics["results"] == query.metrics["threads"] == 0
    query.run(TABLES)
    lines = str(query.metrics).splitlines()
    assert lines[0] == "rows_in 4, results 2, rejected 0, comparisons 2, threads 1"
    assert lines[1:] == [f"  {name}: rows_in 2, joinable 2, rejected 0" for name in "ab"]
    assert json.loads(json.dumps(query.metrics)) == query.metrics
    cells = [cell.text for cell in parsed(html(query.metrics)).iter("td")]
    assert cells == ["4", "2", "0", "2", "1", "a", "2", "2", "0", "b", "2", "2", "0"]
    with query.open() as session:
        session.push("a", TABLES["a"])
        assert repr(session) == "<Session of a, b: open, 2 rows in, 0 results>"
        assert "<th>lag</th>" in html(session.metrics)
        assert "idle no" in str(session.metrics)
    assert repr(session) == "<Session of a, b: ended, 2 rows in, 0 results>"


def test_the_text_of_a_query_makes_it_again() -> None:
    c = wj.stream("c", time="t", window=5, where=lambda c: c["x"] > 0)
    d = wj.stream("d", time="t", window="5s", unit="s", idle="2s")
    for query in (
        QUERY,
        wj.join(A, B, on=A["k"] == B["k"], nearest=2, direction="nearest", how="left"),
        wj.join(A, B, c, on=[A["k"] == B["k"], A["k"] == c["k"]], missing=[c], closed="right"),
        wj.join(A, c, cross=True, exclude_self=True, select=(A["x"] + c["x"]).alias("sum")),
        wj.join(A, d, on=A["k"] == d["k"], keep=[A, d]),
    ):
        names = {**vars(wj), **{stream.name: stream for stream in query.streams}}
        again = eval(repr(query), names)
        assert repr(again) == repr(query)
        assert [again.closed, again.exclude_self, again.nearest, again.direction, again.sides] == [
            query.closed, query.exclude_self, query.nearest, query.direction, query.sides
        ]  # fmt: skip


def test_plans_are_tables_of_hops() -> None:
    page = parsed(wj.plan(QUERY, rates={"a": 10, "b": 10})._repr_html_())
    assert [cell.text for cell in page.iter("td")][:2] == ["a", "b"]


def test_dir_shows_what_is_public() -> None:
    assert dir(wj) == sorted([*wj.__all__, "__version__"])
    assert wj.Session.__name__ == "Session"
    with pytest.raises(AttributeError, match="module 'windjoin' has no attribute 'sessions'"):
        _ = wj.sessions
