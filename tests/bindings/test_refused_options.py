"""Options that cannot be are refused where they are given, with the name of the option."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import windjoin as wj
from windjoin import testing

A, B = (wj.stream(name, time="t", window=10) for name in "ab")
QUERY = wj.join(A, B, on=A["k"] == B["k"])
NEAREST = wj.join(A, B, on=A["k"] == B["k"], nearest=1, direction="backward")
ROWS = {"t": [1], "k": [1]}
RATES = {"a": 1.0, "b": 1.0}
Call = Callable[[], Any]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        # of sessions whose schemas nobody knows yet
        (lambda: QUERY.open(lateness=-1), "lateness=-1 is negative; give 0 or more"),
        (lambda: QUERY.open(lateness="-2s"), "lateness='-2s' is negative; give 0 or more"),
        (lambda: QUERY.open(lateness="soon"), "lateness: 'soon' is not a duration"),
        (lambda: QUERY.open(lateness=1.5), "lateness=1.5: give a duration such as"),
        (lambda: QUERY.open(strategy="atr"), "strategy='atr' needs hosts="),
        (lambda: QUERY.open(weights=(1, 0, 0)), r"weights=\(1, 0, 0\) needs hosts="),
        (lambda: QUERY.open(tuning=wj.Tuning()), "tuning=... needs hosts="),
        (lambda: QUERY.open(hosts=2, tuning=5), "tuning=5: give a windjoin.Tuning"),
        (lambda: NEAREST.open(hosts=2), "nearest= is not for hosts="),
        (lambda: QUERY.open(schemas={}), r"every stream needs its table \(or its schema"),
        (lambda: QUERY.open(hosts=2, ordered="x"), "ordered='x': give True or False"),
        (lambda: QUERY.open(rows_only=1), "rows_only=1: give True or False"),
        (lambda: QUERY.open(pin="no"), "pin='no': give True or False"),
        (lambda: QUERY.open(hosts=2).remove_host(0, lost=1), "lost=1: give True or False"),
        (lambda: QUERY.open().close(progress="yes"), r"progress='yes': give True or False, or a f"),
        # of queries and runs
        (lambda: wj.join(A, B, cross="x"), "cross='x': give True or False"),
        (lambda: QUERY.run({"a": ROWS, "b": ROWS}, ordered="x"), "ordered='x': give True or Fal"),
        (lambda: QUERY.indices({"a": ROWS, "b": ROWS}, ordered=0), "ordered=0: give True or Fal"),
        (lambda: run(progress="yes"), r"progress='yes': give True or False, or a function of"),
        # of settings
        (lambda: wj.Memory("1GB", idle="x"), "idle: 'x' is not a duration"),
        (lambda: wj.Memory("1GB", span="x"), "span: 'x' is not a duration"),
        (lambda: wj.Shedding(budget=1, adapt_every="x"), "adapt_every: 'x' is not a duration"),
        (lambda: wj.Tuning(bandwidth="x"), r"Tuning\(bandwidth='x'\): give a number of bytes"),
        (lambda: wj.Tuning(smoothing="x"), r"Tuning\(smoothing='x'\): give 0 or more"),
        (lambda: wj.stream("a", time="t", window="9 rows"), r"window=wj.rows\(...\)"),
        (lambda: A["t"].within("x", before=B["t"]), r"a\[\"t\"\].within: 'x' is not a duration"),
        (lambda: A["t"].within(-3, before=B["t"]), "a length of time is 0 or more; say before="),
        (lambda: A["t"].within("-3s", of=B["t"]), "a length of time is 0 or more; say before="),
        (lambda: A["t"].within(None, of=B["t"]), 'give a duration such as "30s", or a number'),
        (lambda: A["t"].dt.truncate("x"), ".dt.truncate: 'x' is not a duration"),
        # of a run in stretches of time
        (lambda: run(strategy="atr"), "strategy='atr' is not for memory= and output="),
        (lambda: run(tuning=wj.Tuning()), "is not for memory= and output="),
        # of sources
        (lambda: QUERY.iterate({"a": ROWS, "b": []}), r"sources\['a'\] is a dict; give an iter"),
        (lambda: QUERY.iterate({"a": "a.csv", "b": []}), r"for one batch a list of it: \[batch\]"),
        # of plans
        (lambda: wj.plan("q", rates=RATES), "plan got 'q' where a query is expected"),
        (lambda: wj.plan(QUERY, rates=5), "rates=5: give a dictionary with rows per second"),
        (lambda: wj.plan(QUERY, rates=RATES, statistics=5), "statistics is a int; give a dict"),
        (lambda: wj.plan(QUERY, rates=RATES).draw("no/x.svg"), "draw: 'no/x.svg' cannot be wri"),
        # of the kit
        (lambda: testing.expected(QUERY, {"a": ROWS}), "no data for stream 'b'"),
        (lambda: testing.Clock("x"), r"Clock\('x'\): give seconds"),
        (lambda: testing.Clock().advance("x"), "Clock.advance: 'x' is not a duration"),
        (lambda: testing.slow(5), r"slow\(\) needs an open session"),
        (lambda: slow_by("x"), r"slow\(by=\): 'x' is not a duration"),
        (lambda: report("no/x.html"), "report: 'no/x.html' cannot be written"),
        (lambda: sink("x"), "to_parquet: every: 'x' is not a duration"),
    ],
)
def test_what_cannot_be_is_said_at_once(
    call: Call, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(wj.WindjoinError, match=message):
        call()


def run(**options: Any) -> Any:
    return QUERY.run({"a": ROWS, "b": ROWS}, memory="1GB", **options)


def report(path: str) -> Any:
    with QUERY.open() as session:
        return session.report(path)


def sink(every: str) -> Any:
    with QUERY.open() as session:
        return session.to_parquet("out", every=every)


def slow_by(by: str) -> Any:
    schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
    with QUERY.open({"a": schema, "b": schema}, hosts=1) as session:
        return testing.slow(session, by=by)


def test_a_batch_as_a_source_is_refused_but_a_reader_of_batches_is_one() -> None:
    table = pa.table(ROWS)
    with pytest.raises(wj.QueryError, match=r"sources\['b'\] is a Table; give an iterable"):
        QUERY.iterate({"a": [table], "b": table})
    results = QUERY.iterate({"a": table.to_reader(), "b": [table]})
    assert sum(found.num_rows for found in results) == 1


def test_an_option_that_prints_long_is_cut_short() -> None:
    with pytest.raises(wj.QueryError) as refused:
        QUERY.run({"a": ROWS, "b": ROWS}, tuning=wj.Tuning(copies=2))
    assert len(str(refused.value)) < 80
