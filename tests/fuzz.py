"""Join random streams of hundreds of rows and compare with the NumPy oracle, until time is up.

    python -m tests.fuzz --seconds 600 --seed 1
    python -m tests.fuzz --cases 100 --seed 1 --folder found

Every query is run as a batch and as a session.  A failing case is saved with its data as Parquet
and a program that replays it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests import api, fast_oracle
from tests.cases import Case, SessionCase, Step, StreamCase
from tests.compare import assert_same_results
from tests.oracle import TIME, Results
from tests.strategies import HUGE, TICK, cases
from tests.values import Kind

ROWS = {2: 600, 3: 250, 4: 120, 5: 70}
BATCH = 25  # queries drawn from one seed
REPLAY = """\
# From the root of the repository: PYTHONPATH=. python {folder}/replay.py
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.compare import assert_same_results

{source}
here = Path(__file__).parent


def read(name):
    schema = pa.ipc.read_schema(pa.py_buffer((here / (name + ".schema")).read_bytes()))
    return pq.read_table(here / (name + ".parquet")).cast(schema)


names = {names}
tables = {{name: read(name) for name in names}}
expected = pq.read_table(here / "expected.parquet").to_pydict()
indices = query.indices(tables)
assert_same_results(
    zip(*(indices[name].tolist() for name in names)), Counter(zip(*(expected[n] for n in names)))
)
"""


def enlarge(case: Case, random: np.random.Generator) -> Case:
    """The case's query over many rows: skewed values, bursts, a span of many windows."""
    most = ROWS[len(case.streams)]
    span = int(random.choice([10, 100, 1000]))
    skew = random.uniform(1.1, 3.0)
    streams = []
    for stream in case.streams:
        size = int(random.integers(0, most + 1)) if random.random() < 0.3 else most
        columns = {
            name: _times(kind, size, span, random)
            if name == TIME
            else _values(kind, size, skew, random)
            for name, kind in stream.kinds.items()
        }
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        streams.append(replace(stream, stored=rows))
    return Case(tuple(streams), case.query)


def _times(kind: Kind, size: int, span: int, random: np.random.Generator) -> list[Any]:
    ticks = random.integers(0, span, size)
    if random.random() < 0.5:  # bursts: times gather round a few moments
        centres = random.integers(0, span, 5)
        ticks = np.clip(centres[random.integers(0, 5, size)] + ticks % 4, 0, span)
    if random.random() < 0.7:
        ticks = np.sort(ticks)
    step = 1 if kind.family == "number" else max(TICK // kind.scale, 1)
    return _with_nulls((ticks * step).tolist(), random)


def _values(kind: Kind, size: int, skew: float, random: np.random.Generator) -> list[Any]:
    ranks = np.minimum(random.zipf(skew, size) - 1, 40)
    if pa.types.is_integer(kind.type):
        return _with_nulls(ranks.tolist(), random)
    if pa.types.is_floating(kind.type) and random.random() < 0.7:
        return _with_nulls((random.integers(-40, 40, size) / 4).tolist(), random)
    if pa.types.is_string(kind.type) and random.random() < 0.7:
        return _with_nulls([f"key {rank}" for rank in ranks], random)
    return _with_nulls([kind.domain[rank % len(kind.domain)] for rank in ranks], random)


def _with_nulls(values: list[Any], random: np.random.Generator) -> list[Any]:
    if random.random() < 0.7:
        return values
    nulls = random.random(len(values)) < 0.1
    return [None if null else value for value, null in zip(values, nulls, strict=True)]


def expected_rows(case: Case) -> list[tuple[int, ...]]:
    """All results by the NumPy oracle."""
    streams = [fast_oracle.vectors(stream.rows(), list(stream.kinds)) for stream in case.streams]
    return [tuple(row) for row in fast_oracle.join(case.query, streams).tolist()]


def solvable(case: Case, random: np.random.Generator) -> tuple[Case, Results]:
    """The case enlarged, with its results; halved as long as it has too many of them."""
    large = enlarge(case, random)
    while True:
        try:
            return large, Counter(expected_rows(large))
        except fast_oracle.TooLarge:
            large = Case(tuple(_half(stream) for stream in large.streams), large.query)


def _half(stream: StreamCase) -> StreamCase:
    return replace(stream, stored=stream.stored[: len(stream.stored) // 2])


def arrival(case: Case, random: np.random.Generator) -> SessionCase:
    """The rows of a case in pushes of one stream or another, with room for any disorder."""
    left = [len(stream.stored) for stream in case.streams]
    steps = []
    while any(left):
        stream = int(random.choice([number for number, rows in enumerate(left) if rows]))
        size = min(left[stream], int(random.choice([1, 10, 100, 1000])))
        start = len(case.streams[stream].stored) - left[stream]
        steps.append(Step(stream, start, start + size))
        left[stream] -= size
    first = case.streams[0]
    plain = first.kinds[TIME].family == "number" and "unit" not in first.options
    return SessionCase(case, HUGE, str(HUGE) if plain else "'100000d'", tuple(steps))


def check(case: Case, expected: Results, random: np.random.Generator) -> None:
    """Batch, with and without threads, and session give the expected results."""
    query = api.build(case)
    for threads in (1, 3):
        indices = query.indices(case.tables(), threads=threads)
        assert_same_results(api.index_rows(case, indices), expected, f"threads={threads}")
    session = arrival(case, random)
    results, _, rest = api.run_session(session, api.open_session(session))
    assert_same_results(sum(results, rest).elements(), expected, "session")


def save(case: Case, expected: Results, folder: Path) -> None:
    """Write the inputs and the expected rows as Parquet, and a program that replays the case."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in case.tables().items():
        pq.write_table(table, folder / f"{name}.parquet")
        (folder / f"{name}.schema").write_bytes(table.schema.serialize().to_pybytes())
    rows = sorted(expected.elements())
    columns = [[row[number] for row in rows] for number in range(len(case.names))]
    arrays = [pa.array(column, pa.int64()) for column in columns]
    pq.write_table(pa.table(arrays, names=case.names), folder / "expected.parquet")
    program = REPLAY.format(folder=folder, source=case.source(), names=case.names)
    (folder / "replay.py").write_text(program)


def drawn_cases(first_seed: int) -> Iterator[Case]:
    """Small random cases without end, the same for the same seed."""
    for number in count(first_seed):
        yield from _batch_of_cases(number)


def _batch_of_cases(number: int) -> list[Case]:
    drawn: list[Case] = []

    @seed(number)
    @settings(
        max_examples=BATCH,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        derandomize=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def draw(case: Case) -> None:
        drawn.append(case)

    draw()
    return drawn


def fuzz(first_seed: int, seconds: float, most: int | None, folder: Path) -> tuple[int, int, int]:
    """Run cases until time or their number is up; return cases, their results, and failures."""
    end = time.monotonic() + seconds
    done = results = failures = 0
    for number, small in enumerate(drawn_cases(first_seed)):
        if time.monotonic() > end or done == most:
            break
        random = np.random.default_rng([first_seed, number])
        case, expected = solvable(small, random)
        try:
            check(case, expected, random)
        except Exception as problem:
            failures += 1
            place = folder / f"seed{first_seed}-case{number}"
            save(case, expected, place)
            sys.stderr.write(f"{place}/replay.py: {type(problem).__name__}: {problem}\n")
        done += 1
        results += expected.total()
    return done, results, failures


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 if any case failed."""
    parser = argparse.ArgumentParser(prog="tests.fuzz", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--cases", type=int, default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=Path("fuzz-failures"))
    options = parser.parse_args(arguments)
    done, results, failures = fuzz(options.seed, options.seconds, options.cases, options.folder)
    sys.stdout.write(f"{done} cases, {results} results, {failures} failures\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
