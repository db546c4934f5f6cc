"""What a selected measure costs beside the same join without it: in time, and in bytes of results.

    python -m benchmarks.scores --out benchmarks/results/scores

Pairs of two streams are joined on a measure, and its value is selected beside four plain columns:
by an ordinary run, and by pushes of tables.  Joins with and without the score take turns in one
process on one thread; the least processor time of the rounds counts.  About one pair of a hundred
is a result.  Where one pair of twenty is, a join takes some nanoseconds for each, and where a key
finds them as well: there every score has to be computed for its own sake, and has no bound.

"Of most" is the join of 6.5 million results that once took 17 times as long with its score.  What
a score costs at the least is measured beside it: to read two row numbers of every result and to
write a number.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import windjoin as wj

from benchmarks.generators import item_sets, vectors
from benchmarks.measure import headline, keep, load_now, machine

ROWS, WINDOW = 20_000, 1_000
SELDOM, OFTEN = 100, 20  # one pair of so many is of one group
PUSH = 1_000  # rows
TIME_BOUND, BYTES_BOUND = 1.3, 1.5
Tables = dict[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Case:
    """A measure of two columns, and when a pair is joined for it: seldom, or often."""

    columns: str
    measure: Callable[[Any, Any], Any]
    seldom: float
    often: float
    far: bool = False  # pairs above the threshold are joined, not those below
    most: float | None = None  # the threshold that one pair of six passes


@dataclass(frozen=True, slots=True)
class Line:
    """One measure in one way."""

    measure: str
    way: str
    results: int
    without_ms: float
    time_ratio: float
    bytes_ratio: float
    rows_ratio: float  # of the time, what row numbers alone take
    written_ratio: float  # of it and of writing a number for each result
    bound: bool


def bits(x: Any, y: Any) -> Any:
    """How many bits differ."""
    return wj.hamming(x, y, unit="bits")


CASES = {
    "overlap": Case("sets", wj.overlap, 5, 4, True),
    "jaccard": Case("sets", wj.jaccard, 0.3, 0.25, True),
    "containment": Case("sets", wj.containment, 0.5, 0.4, True),
    "cosine_sets": Case("sets", wj.cosine_sets, 0.45, 0.4, True),
    "inner_product": Case("weights", wj.inner_product, 1.6, 1.1, True, 0.75),
    "cosine of weights": Case("weights", wj.cosine, 0.42, 0.35, True),
    "l1": Case("vectors", wj.l1, 70, 70),
    "l2": Case("vectors", wj.l2, 15, 15),
    "linf": Case("vectors", wj.linf, 5, 5),
    "dot": Case("vectors", wj.dot, 300, 300, True),
    "cosine": Case("vectors", wj.cosine, 0.8, 0.8, True),
    "l1 of bytes": Case("bytes", wj.l1, 1000, 1000),
    "l2 of bytes": Case("bytes", wj.l2, 200, 200),
    "mean_abs_diff": Case("bytes", wj.mean_abs_diff, 15, 15),
    "hamming": Case("hashes", wj.hamming, 6, 6),
    "hamming_bits": Case("hashes", bits, 20, 20),
}


def contents(columns: str, groups: int, random: np.random.Generator) -> Any:
    """One column of each row."""
    if columns == "sets":
        return sets(random)
    if columns == "weights":
        items = sets(random)
        weights = pa.array(random.random(len(items.values)))
        return pa.MapArray.from_arrays(items.offsets, items.values, weights)
    group = random.integers(0, groups, ROWS)
    centres = np.random.default_rng(0)
    if columns == "vectors":
        middle = centres.integers(-5, 6, (groups, 40))
        return vectors((middle[group] + random.normal(0, 1, (ROWS, 40))).astype(np.float32))
    width, change = (64, 20) if columns == "bytes" else (8, 256)
    middle = centres.integers(20, 200, (groups, width))
    noise = random.integers(0, change, (ROWS, width))
    if columns == "hashes":
        noise *= random.random((ROWS, width)) < 0.3
    values = ((middle[group] + noise) % 256).astype(np.uint8)
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), ROWS, [None, pa.py_buffer(values)]
    )


def sets(random: np.random.Generator) -> Any:
    """Sets of ten items, popular ones first."""
    return item_sets(random, ROWS, domain=200, exponent=0.8, mean=10.0, deviation=2.0)


def tables(columns: str, groups: int) -> Tables:
    """All rows of both streams."""
    made = {}
    for number, name in enumerate("ab"):
        random = np.random.default_rng(1 + number)
        made[name] = pa.table(
            {
                "t": np.arange(ROWS),
                "id": random.permutation(ROWS),
                "k": random.integers(0, groups, ROWS),
                "v": contents(columns, groups, random),
            }
        )
    return made


def queries(case: Case, groups: int, *, key: bool, most: bool = False) -> tuple[wj.Query, wj.Query]:
    """The join without the score, and with it."""
    a, b = (wj.stream(name, time="t", window=WINDOW) for name in "ab")
    score = case.measure(a["v"], b["v"])
    limit = case.seldom if groups == SELDOM else case.often
    limit = case.most if most and case.most is not None else limit
    near = score >= limit if case.far else score <= limit
    plain = [a["t"], a["id"], b["t"], b["id"]]
    both = [plain, [*plain, score.alias("score")]]
    without, scored = (
        wj.join(a, b, on=a["k"] == b["k"] if key else near, select=chosen) for chosen in both
    )
    return without, scored


def ran(query: wj.Query, come: Tables) -> tuple[float, int, int]:
    """Seconds, results and their bytes of a run."""
    begun = time.process_time()
    found = query.run(come, threads=1)
    return time.process_time() - begun, found.num_rows, found.nbytes


def pushed(query: wj.Query, come: Tables) -> tuple[float, int, int]:
    """The same of pushes of both streams in turn, whose results are let go one by one."""
    parts = [
        (name, table.slice(start, PUSH))
        for start in range(0, ROWS, PUSH)
        for name, table in come.items()
    ]
    results = size = 0
    with query.open({name: table.schema for name, table in come.items()}) as session:
        begun = time.process_time()
        for name, some in parts:
            found = session.push(name, some)
            results += found.num_rows
            size += found.nbytes
        return time.process_time() - begun, results, size


def parts_alone(query: wj.Query, come: Tables) -> tuple[float, float]:
    """Seconds of a run to row numbers, and of writing a number for each of its results."""
    begun = time.process_time()
    rows = query.indices(come, threads=1)
    found = time.process_time()
    np.add(rows["a"], rows["b"])
    return found - begun, time.process_time() - found


@dataclass(frozen=True, slots=True)
class Way:
    """How pairs are joined, and how many."""

    join: Callable[[wj.Query, Tables], tuple[float, int, int]]
    groups: int
    key: bool = False
    most: bool = False

    @property
    def bound(self) -> bool:
        """Say whether scores may cost no more than the bounds."""
        return self.most or (self.groups == SELDOM and not self.key)

    def suits(self, case: Case, groups: int) -> bool:
        """Say whether a measure is joined so, on rows of so many groups."""
        return self.groups == groups and (not self.most or case.most is not None)


WAYS = {
    "run": Way(ran, SELDOM),
    "push": Way(pushed, SELDOM),
    "run, of many": Way(ran, OFTEN),
    "push, of many": Way(pushed, OFTEN),
    "run, by a key": Way(ran, OFTEN, key=True),
    "push, by a key": Way(pushed, OFTEN, key=True),
    "run, of most": Way(ran, OFTEN, most=True),
    "push, of most": Way(pushed, OFTEN, most=True),
}


def measure(name: str, way: str, come: Tables, rounds: int) -> Line:
    """One measure in one way, the least of some rounds after one to warm up."""
    how = WAYS[way]
    pair = queries(CASES[name], how.groups, key=how.key, most=how.most)
    seconds, counted = [float("inf")] * 2, [(0, 0)] * 2
    alone = [float("inf")] * 2
    for round_ in range(rounds + 1):
        for which, query in enumerate(pair):
            gc.collect()
            taken, results, size = how.join(query, come)
            counted[which] = results, size
            if round_:
                seconds[which] = min(seconds[which], taken)
        alone = [min(pair) for pair in zip(alone, parts_alone(pair[0], come), strict=True)]
    (results, small), (also, large) = counted
    assert results == also > 0, f"{name}: {results} results without the score, {also} with it"
    without = seconds[0]
    return Line(
        measure=name,
        way=way,
        results=results,
        without_ms=without * 1e3,
        time_ratio=seconds[1] / without,
        bytes_ratio=large / small,
        rows_ratio=alone[0] / without,
        written_ratio=1 + alone[1] / without,
        bound=how.bound,
    )


def markdown(before: dict[str, Any], lines: list[Line]) -> str:
    """Write the table."""
    bound = [line for line in lines if line.bound]
    kept = sum(x.time_ratio <= TIME_BOUND and x.bytes_ratio <= BYTES_BOUND for x in bound)
    text = [
        headline(before),
        "",
        f"{kept} of {len(bound)} joins by run and by push stay within {TIME_BOUND} times the time"
        f" and {BYTES_BOUND} times the bytes.",
        "",
        "| measure | way | results | without, ms | ns a result | of it row numbers"
        " | time with it | at the least | bytes with it |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    text += [
        f"| {x.measure} | {x.way} | {x.results:,} | {x.without_ms:,.0f}"
        f" | {x.without_ms * 1e6 / x.results:,.0f} | {x.rows_ratio:.2f} x | {x.time_ratio:.2f} x"
        f" | {x.written_ratio:.2f} x | {x.bytes_ratio:.2f} x |"
        for x in lines
    ]
    return "\n".join([*text, ""])


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scores", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="MEASURE", help=f"of {', '.join(CASES)}")
    parser.add_argument("--ways", nargs="*", default=WAYS, choices=WAYS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    chosen = parser.parse_args()
    before = machine()
    lines = []
    for name in chosen.names or CASES:
        for groups in (SELDOM, OFTEN):
            ways = [way for way in chosen.ways if WAYS[way].suits(CASES[name], groups)]
            come = tables(CASES[name].columns, groups)
            lines += [measure(name, way, come, chosen.rounds) for way in ways]
        before["load_after"] = load_now()
        figures = [asdict(line) for line in lines]
        keep(chosen.out, "scores", before, markdown(before, lines), figures)  # what there is yet
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
