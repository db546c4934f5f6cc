"""Interrupts at random moments: what is done to a session is done whole, or refused, or ends it.

An interrupt is a timer that raises KeyboardInterrupt in the main thread, as Ctrl-C does.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from numpy.typing import NDArray

WINDOW, ROWS, PUSHES = 40, 3000, 6
BROKEN_OFF = "this session ended when a push into it was broken off"
MOST_LOST = 0.01  # of interrupts: those that meet the caller before he has what came back


# Ctrl-C that meets a finalizer of Numba's or Python's own is told and forgotten by Python.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def _timer() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@cache
def tables() -> dict[str, dict[str, NDArray[Any]]]:
    rng = np.random.default_rng(7)
    return {
        name: {
            "t": np.sort(rng.integers(0, 2000, ROWS)),
            "k": rng.integers(0, 60, ROWS),
            "n": np.arange(ROWS),
        }
        for name in "ab"
    }


@cache
def expected(query: wj.Query) -> NDArray[np.int64]:
    """Every pair of equal keys whose times are at most a window apart, as one number each.

    Of joins that ask for more than that: what nobody interrupts gives.
    """
    if query not in (EQUAL, FUNCTION, CALCULATED):
        return pairs(query.run(tables()))
    a, b = tables()["a"], tables()["b"]
    near = np.abs(a["t"][:, None] - b["t"]) <= WINDOW
    return numbered(*np.nonzero(near & (a["k"][:, None] == b["k"])))


def pairs(results: Any) -> NDArray[np.int64]:
    """The same of a session's or a run's results."""
    if isinstance(results, dict):
        return numbered(results["a"], results["b"])
    return numbered(*(results.column(f"{name}_n").fill_null(-1).to_numpy() for name in "ab"))


def numbered(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.sort((a + 1) * (ROWS + 1) + b + 1)


A, B = (wj.stream(name, time="t", window=WINDOW) for name in "ab")
EQUAL = wj.join(A, B, on=A["k"] == B["k"])
FUNCTION = wj.join(A, B, on=wj.udf(lambda x, y: x == y, A["k"], B["k"]))
CALCULATED = wj.join(A, B, on=(A["k"] == B["k"]) | (A["k"] > B["k"] + 1000))
KEPT = wj.join(A, B, on=A["k"] == B["k"], how="left")
AS_OF = wj.join(A, B, on=A["k"] == B["k"], nearest=1, direction="backward")
LAST = [wj.stream(name, time="t", window=wj.rows(50)) for name in "ab"]
LAST_ROWS = wj.join(*LAST, on=LAST[0]["k"] == LAST[1]["k"])
SCHEMA = pa.schema([(name, pa.int64()) for name in "tkn"])
KNOWN: dict[str, Any] = {"schemas": {"a": SCHEMA, "b": SCHEMA}}
LATE = {"lateness": 10**6}
NEVER_SHED = wj.Shedding(comparisons_per_s=1e15, clock="event")

Rows = dict[str, NDArray[Any]]


def as_table(rows: Rows) -> pa.Table:
    return pa.table(rows)


def as_they_are(rows: Rows) -> Rows:
    return rows


def backwards(rows: Rows) -> Rows:
    return {name: values[::-1].copy() for name, values in rows.items()}


SESSIONS: dict[str, tuple[wj.Query, dict[str, Any], Callable[[Rows], Any]]] = {
    "arrays": (EQUAL, {"rows_only": True, **KNOWN}, as_they_are),
    "tables": (EQUAL, {"rows_only": True, **KNOWN}, as_table),
    "payload": (EQUAL, KNOWN, as_table),
    "learned": (EQUAL, {}, as_they_are),
    "out of order": (EQUAL, KNOWN | LATE, backwards),
    "function": (FUNCTION, {"rows_only": True, **KNOWN}, as_they_are),
    "calculated": (CALCULATED, KNOWN, as_table),
    "together": (EQUAL, KNOWN, as_table),
    "kept": (KEPT, KNOWN, as_table),
    "as of": (AS_OF, KNOWN, as_table),
    "windows of rows": (LAST_ROWS, {"rows_only": True, **KNOWN}, as_table),
    "within memory": (EQUAL, {"memory": "1GB", **KNOWN}, as_table),
    "spilled": (EQUAL, {"memory": "1MB", "lateness": 10**6, **KNOWN}, as_table),
    "shedding": (EQUAL, {"shed": NEVER_SHED, **KNOWN}, as_table),
    "hosts": (EQUAL, {"hosts": 2, **KNOWN}, as_table),
    "ordered hosts": (EQUAL, {"hosts": 3, "ordered": True, "rows_only": True, **KNOWN}, as_table),
}


def threads_left() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("windjoin")]


SLOW = {"spilled"}  # among files

Step = tuple[Callable[[], Any], int]  # and how many rows it pushes


def steps(session: wj.Session, kind: str) -> list[Step]:
    """Pushes of all rows in turn, with promises in between, and the end."""
    shape = SESSIONS[kind][2]
    borders = np.linspace(0, ROWS, PUSHES + 1).astype(int)
    todo: list[Step] = []
    for first, last in pairwise(borders):
        rows = {
            name: shape({column: values[first:last] for column, values in columns.items()})
            for name, columns in tables().items()
        }
        if kind == "together":
            todo.append((partial(session.push_many, rows), 2 * (last - first)))
        else:
            todo += [(partial(session.push, *one), last - first) for one in rows.items()]
        todo.append((partial(session.advance, "a", int(tables()["a"]["t"][last - 1])), 0))
    return [*todo, (partial(session.finish, "b"), 0), (session.close, 0)]


def length(kind: str) -> float:
    """Seconds from the first push into such a session to its end."""
    query, options, _ = SESSIONS[kind]
    taken = []
    for _ in range(3):
        todo = steps(query.open(**options), kind)
        begun = time.perf_counter()
        found = [step() for step, _ in todo]
        taken.append(time.perf_counter() - begun)
        assert np.array_equal(together(found), expected(query))
    return min(taken)


def together(found: list[Any]) -> NDArray[np.int64]:
    parts = [pairs(one) for one in found if one is not None and len(one)]
    return np.sort(np.concatenate([np.empty(0, np.int64), *parts]))


def interrupted(kind: str, seconds: float) -> str:
    """What became of a session that was interrupted so many seconds after its first push."""
    query, options, _ = SESSIONS[kind]
    session = query.open(**options)
    todo = steps(session, kind)
    done: dict[int, Any] = {}
    at = 0
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        for at, (step, _) in enumerate(todo):
            done[at] = step()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        pass
    if len(done) == len(todo):
        assert np.array_equal(together(list(done.values())), expected(query))
        return "whole"
    try:
        session.advance("a", 0)
    except wj.SessionError as error:
        if str(error).startswith(BROKEN_OFF):
            assert session.state_bytes == 0
            assert not threads_left()
            return "ended"
        return "lost"  # closed, and then the interrupt met the caller before he had the results
    if session.metrics["rows_in"] != sum(rows for _, rows in todo[: len(done)]):
        for step, _ in todo[len(done) + 1 :]:
            step()
        assert session.metrics["results"] == len(expected(query))
        return "lost"  # taken; the same
    found = [*done.values(), *(step() for step, _ in todo[len(done) :])]
    assert np.array_equal(together(found), expected(query))
    return "refused"


def check(kind: str, interrupts: int) -> None:
    chance, span = random.Random(kind), length(kind)
    outcomes = Counter(interrupted(kind, chance.uniform(1e-6, span)) for _ in range(interrupts))
    assert not threads_left()
    assert outcomes["ended"] > 0
    assert outcomes["lost"] <= 1 + MOST_LOST * interrupts, outcomes


@pytest.mark.parametrize("kind", sorted(set(SESSIONS) - SLOW))
def test_what_is_done_to_a_session_is_whole_refused_or_its_end(kind: str) -> None:
    check(kind, 30)


@pytest.mark.faults
@pytest.mark.parametrize("kind", SESSIONS)
def test_no_moment_of_a_thousand_leaves_a_session_in_between(kind: str) -> None:
    check(kind, 1000)


def interrupted_iteration(seconds: float) -> str:
    """What became of an iteration that was interrupted so many seconds after its begin."""
    batches = {
        name: pa.table(rows).to_batches(max_chunksize=500) for name, rows in tables().items()
    }
    results, found = EQUAL.iterate(batches), []
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        for one in results:
            found.append(one)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        pass
    try:
        results.advance("a", 0)
    except wj.SessionError:
        assert not list(results)
    found += results
    assert np.isin(together(found), expected(EQUAL)).all()
    if results.metrics["rows_in"] < 2 * ROWS:
        return "ended"
    return "whole" if np.array_equal(together(found), expected(EQUAL)) else "ended"


@pytest.mark.parametrize("interrupts", [50, pytest.param(1000, marks=pytest.mark.faults)])
def test_an_iteration_goes_on_whole_or_not_at_all(interrupts: int) -> None:
    chance = random.Random(0)
    for _ in range(2):  # the first one loads what there is to load
        begun = time.perf_counter()
        assert interrupted_iteration(10) == "whole"
    span = time.perf_counter() - begun
    outcomes = Counter(interrupted_iteration(chance.uniform(1e-6, span)) for _ in range(interrupts))
    assert outcomes["ended"] > 0


RUNS: dict[str, tuple[wj.Query, dict[str, Any]]] = {
    "one thread": (EQUAL, {"threads": 1}),
    "two threads": (EQUAL, {"threads": 2}),
    "function": (FUNCTION, {"threads": 2}),
    "calculated": (CALCULATED, {"threads": 2}),
    "hosts": (EQUAL, {"hosts": 2}),
    "ordered hosts": (EQUAL, {"hosts": 3, "strategy": "ctr", "ordered": True}),
}


def seconds_of(kind: str) -> float:
    query, options = RUNS[kind]
    taken = []
    for _ in range(3):
        begun = time.perf_counter()
        found = query.run(tables(), **options)
        taken.append(time.perf_counter() - begun)
        assert np.array_equal(pairs(found), expected(query))
    return min(taken)


def interrupted_run(kind: str, seconds: float) -> str:
    """What became of a run that was interrupted so many seconds after its begin."""
    query, options = RUNS[kind]
    found = None
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        found = query.run(tables(), **options)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        pass
    assert not threads_left()
    if found is None:
        return "ended"
    assert np.array_equal(pairs(found), expected(query))
    return "whole"


def check_runs(kind: str, interrupts: int) -> None:
    query, options = RUNS[kind]
    chance, span = random.Random(kind), seconds_of(kind)
    outcomes = Counter(interrupted_run(kind, chance.uniform(1e-6, span)) for _ in range(interrupts))
    assert outcomes["ended"] > 0
    assert np.array_equal(pairs(query.run(tables(), **options)), expected(query))


@pytest.mark.parametrize("kind", RUNS)
def test_a_run_that_is_interrupted_leaves_nothing(kind: str) -> None:
    check_runs(kind, 50)


@pytest.mark.faults
@pytest.mark.parametrize("kind", RUNS)
def test_no_moment_of_a_thousand_leaves_anything_of_a_run(kind: str) -> None:
    check_runs(kind, 1000)
