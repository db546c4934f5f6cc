"""Whatever is done to a session in whatever order, its results are those of its rows, each once."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from itertools import pairwise, product
from typing import Any

import pyarrow as pa
import windjoin as wj
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.compare import assert_same_results
from tests.effort import examples
from tests.oracle import Results

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("n", pa.int64())])
MOST = 40  # rows of a stream
LATENESS = 4


def query(kind: str, windows: list[int], same: bool) -> Any:
    """A join of as many streams as there are windows."""
    named = [wj.stream(n, time="t", window=w) for n, w in zip("abc", windows, strict=False)]
    pairs = list(pairwise(named))
    if kind == "keys":
        on = [x["k"] == y["k"] for x, y in pairs]
    elif kind == "band":
        on = [abs(x["k"] - y["k"]) <= 1 for x, y in pairs]
    else:  # keys, but no common one
        on = [x["k"] == y["n"] for x, y in pairs]
    return wj.join(*named, on=on, exclude_self=same)


def fits(kind: str, left: dict[str, int], right: dict[str, int]) -> bool:
    if kind == "keys":
        return left["k"] == right["k"]
    if kind == "band":
        return abs(left["k"] - right["k"]) <= 1
    return left["k"] == right["n"]


class Session(RuleBasedStateMachine):
    """Rows come; some leave memory, come back, go with a snapshot to another session."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.found: Results = Counter()
        self.cleaning: Any = None
        self.restored = 0

    @initialize(
        kind=st.sampled_from(["keys", "band", "mixed"]),
        windows=st.lists(st.integers(0, 30), min_size=2, max_size=3),
        same=st.booleans(),
        bounded=st.booleans(),
        hosts=st.sampled_from([None, None, 1, 2, 3]),
        strategy=st.sampled_from(["auto", "auto", "atr", "ctr", "psp"]),
        adaptation=st.sampled_from(["lazy", "active", "none"]),
        share=st.sampled_from([0.1, 0.3, 1.0]),
        choose=st.sampled_from(["throughput", "largest", "random"]),
        groups=st.sampled_from([1, 2, 300]),
    )
    def begin(
        self,
        kind: str,
        windows: list[int],
        same: bool,
        bounded: bool,
        hosts: int | None,
        strategy: str,
        **knobs: Any,
    ) -> None:
        self.kind, self.windows, self.same = kind, windows, same
        hosts = None if hosts is None or hosts > knobs["groups"] else hosts
        self.hosts, self.seconds = hosts, 0.0
        self.query = query(kind, windows, same)
        self.rows: list[list[dict[str, int]]] = [[] for _ in windows]
        self.marks = [-(10**9)] * len(windows)
        disk = f"{self.folder}/disk"
        self.memory = wj.Memory(1, spill=disk, span="3s", **knobs) if bounded else None
        known = dict.fromkeys(self.query.names, SCHEMA)
        shared = {} if hosts is None else {"hosts": hosts, "strategy": strategy}
        self.session = self.query.open(
            known, lateness=LATENESS, memory=self.memory, clock=self.clock, **shared
        )

    def clock(self) -> float:
        """A second later whenever somebody looks."""
        self.seconds += 1.0
        return self.seconds

    def take(self, results: pa.Table) -> None:
        if results.num_rows:
            columns = (results.column(f"{n}_n").to_pylist() for n in self.query.names)
            self.found.update(zip(*columns, strict=True))

    @rule(stream=st.integers(0, 2), steps=st.lists(st.tuples(st.integers(-4, 6), st.integers(0, 3)),
                                                   min_size=1, max_size=6))  # fmt: skip
    def push(self, stream: int, steps: list[tuple[int, int]]) -> None:
        stream %= len(self.windows)
        rows = self.rows[stream]
        if len(rows) + len(steps) > MOST:
            return
        newest = max((row["t"] for row in rows), default=0)
        new = []
        for step, key in steps:
            time = max(newest + step, self.marks[stream], newest - LATENESS)
            newest = max(newest, time)
            new.append({"t": time, "k": key, "n": len(rows) + len(new)})
        rows += new
        self.take(self.session.push(self.query.names[stream], pa.Table.from_pylist(new, SCHEMA)))

    @rule(stream=st.integers(0, 2), ahead=st.integers(-2, 12))
    def advance(self, stream: int, ahead: int) -> None:
        stream %= len(self.windows)
        newest = max((row["t"] for row in self.rows[stream]), default=0)
        self.marks[stream] = max(self.marks[stream], newest + ahead)
        self.session.advance(self.query.names[stream], newest + ahead)

    @rule(whole=st.booleans())
    def clean_up(self, whole: bool) -> None:
        for results in self.session.clean_up():
            self.take(results)
            if not whole:
                break

    @rule(again=st.booleans())
    def save(self, again: bool) -> None:
        self.session.save(f"{self.folder}/snap", position=self.restored)
        if not again:
            return
        self.session.abandon()
        self.restored += 1
        self.session = wj.restore(self.query, f"{self.folder}/snap", clock=self.clock)

    @precondition(lambda self: self.hosts is not None)
    @rule(lost=st.booleans(), which=st.integers(0, 5))
    def change_hosts(self, lost: bool, which: int) -> None:
        there = self.session.hosts
        if which < 3 or len(there) == 1:
            self.session.add_host()
        else:
            self.session.remove_host(there[which % len(there)], lost=lost)

    @precondition(lambda self: self.memory is not None)
    @rule()
    def look(self) -> None:
        memory = self.session.metrics["memory"]
        assert memory["generations"] == len(self.session._memory.owing.generations)
        assert min(v for v in memory.values() if isinstance(v, (int, float))) >= 0
        hosts = memory.get("hosts", {})
        assert not hosts or sum(host["rows"] for host in hosts.values()) >= 0

    def teardown(self) -> None:
        if hasattr(self, "session"):
            self.take(self.session.close())
            assert_same_results(self.found.elements(), self.expected())
        shutil.rmtree(self.folder)

    def expected(self) -> Results:
        """The definition, row by row."""
        results: Results = Counter()
        for members in product(*self.rows):
            latest = max(row["t"] for row in members)
            inside = all(
                latest - row["t"] <= window
                for row, window in zip(members, self.windows, strict=True)
            )
            pairs = pairwise(members)
            apart = not self.same or len({row["n"] for row in members}) == len(members)
            if inside and apart and all(fits(self.kind, x, y) for x, y in pairs):
                results[tuple(row["n"] for row in members)] += 1
        return results


TestSession = Session.TestCase
TestSession.settings = settings(max_examples=examples(15), stateful_step_count=25, deadline=None)
