"""Instructions per row of named kernels, counted by callgrind: figures that no load can disturb.

    python -m benchmarks.callgrind                 # count and compare with the recorded figures
    python -m benchmarks.callgrind --record        # count and record
    python -m benchmarks.callgrind --kernels equality,band

A kernel runs CALLS[0] times in one process and CALLS[1] times in another; the difference of
the two counts is what the further calls cost, and imports, data and first-call work cancel out.
Valgrind has no AVX-512, so the AVX2 path is counted.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import windjoin as wj
from numpy.typing import NDArray

from benchmarks.pushes import endless
from benchmarks.queries import join
from benchmarks.shapes import Kind

RECORD = Path(__file__).parent / "results" / "instructions.json"
BOUND = 1.25  # compilers differ; an algorithm gone wrong costs far more
CALLS = (1, 3)


@dataclass(frozen=True, slots=True)
class Kernel:
    """Something to be counted: ``prepare(rows)`` gives the call and the rows it takes in."""

    prepare: Callable[[int], tuple[Callable[[], object], int]]
    rows: int  # per stream


def _pair(rows: int, column: str, window: int, kind: Kind) -> tuple[Callable[[], object], int]:
    random = np.random.default_rng(7)

    def values() -> NDArray[Any]:
        return random.integers(0, rows // 200, rows) if column == "k" else random.random(rows)

    times = np.arange(rows, dtype=np.int64) * 500
    tables = {name: {"ts": times, column: values()} for name in "ab"}
    query = join(kind, 2, window, 0.001)
    return lambda: query.indices(tables, threads=1), 2 * rows


def equality(rows: int) -> tuple[Callable[[], object], int]:
    """W1 in small: about two results per row."""
    return _pair(rows, "k", rows * 500 // 200, "equality")


def band(rows: int) -> tuple[Callable[[], object], int]:
    """W2 in small: a band of a thousandth, windows of 1,000 rows a side."""
    return _pair(rows, "x", 500_000, "band")


def pushes(rows: int, batch: int = 64) -> tuple[Callable[[], object], int]:
    """W1 continuously, so many rows per push; a new session per call."""
    batches = list(islice(endless(batch, max(rows // 200, 1)), 2 * rows // batch))
    query = join("equality", 2, 500_000)

    def run() -> int:
        with query.open(rows_only=True) as session:
            return sum(len(session.push(name, columns)["a"]) for name, columns in batches)

    return run, batch * len(batches)


def more_pushes(rows: int, batch: int, **options: Any) -> tuple[Callable[[], object], int]:
    """The same, each call with the next rows of a session that was opened before."""
    count = 2 * rows // batch
    all_pushes = endless(batch, 250)
    following = iter([list(islice(all_pushes, count)) for _ in range(max(CALLS))])
    session = join("equality", 2, 500_000).open(rows_only=True, **options)

    def run() -> int:
        return sum(len(session.push(name, columns)["a"]) for name, columns in next(following))

    return run, batch * count


# one beat is all there is: under callgrind a second is short, and beats would come too often
CALM = wj.Shedding(budget=50.0, adapt_every="1h")
KERNELS = {
    "equality": Kernel(equality, 100_000),
    "band": Kernel(band, 40_000),
    "pushes": Kernel(pushes, 50_000),
}
# beside these, to be compared with each other: what ``shed=`` costs while nothing is shed
BESIDE = {
    f"pushes_{batch}{name}": Kernel(partial(more_pushes, batch=batch, **options), 100_000)
    for batch in (64, 1024)
    for name, options in {"": {}, "_shed": {"shed": CALM}}.items()
}
EVERY = KERNELS | BESIDE


def counted(name: str, calls: int) -> int:
    """Run a kernel ``calls`` times under callgrind and give all instructions of the process."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise RuntimeError("valgrind is needed to count instructions; install it and try again")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        command = [valgrind, "--tool=callgrind", f"--callgrind-out-file={out}", "--quiet"]
        command += [sys.executable, "-m", "benchmarks.callgrind", "--inside", name, str(calls)]
        variables = {
            "PYTHONHASHSEED": "0", "WINDJOIN_ISA": "avx2", "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1", "ARROW_USER_SIMD_LEVEL": "AVX2",
            "ARROW_DEFAULT_MEMORY_POOL": "system",
        }  # fmt: skip
        finished = subprocess.run(
            command, env={**os.environ, **variables}, capture_output=True, text=True, check=False
        )
        if finished.returncode:
            raise RuntimeError(f"kernel {name!r} failed under callgrind:\n{finished.stderr}")
        return total(out.read_text())


def total(profile: str) -> int:
    """Read the instructions of a whole process from a callgrind profile.

    >>> total("events: Ir\\nfn=(1) main\\n1 5\\ntotals: 1234\\n")
    1234
    """
    found = re.search(r"^totals: (\d+)", profile, re.MULTILINE)
    if found is None:
        raise ValueError("the profile has no line 'totals:'; was the program stopped?")
    return int(found.group(1))


def per_row(name: str) -> float:
    """Count a kernel's instructions per input row."""
    kernel = EVERY[name]
    with ThreadPoolExecutor(len(CALLS)) as pool:
        few, many = pool.map(lambda calls: counted(name, calls), CALLS)
    return (many - few) / (CALLS[1] - CALLS[0]) / kernel.prepare(kernel.rows)[1]


def recorded() -> dict[str, float]:
    """Read the instructions per row that a kernel may be compared with."""
    found: dict[str, float] = json.loads(RECORD.read_text())["instructions_per_row"]
    return found


def record(found: dict[str, float]) -> None:
    """Keep figures, those of other kernels as they were."""
    kept = recorded() if RECORD.exists() else {}
    kept.update({name: round(figure, 1) for name, figure in found.items()})
    everything = {"isa": "avx2", "bound": BOUND, "instructions_per_row": kept}
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.write_text(json.dumps(everything, indent=1) + "\n")


def inside(name: str, calls: int) -> None:
    """Be the process that is counted."""
    call, _ = EVERY[name].prepare(EVERY[name].rows)
    gc.collect()
    gc.disable()  # a collection costs as much as a call, and falls on one or another by chance
    for _ in range(calls):
        call()


def main() -> int:
    """Count kernels; fail when one needs more than the bound over its recorded figure."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.callgrind", description=main.__doc__
    )
    parser.add_argument("--kernels", default=",".join(KERNELS))
    parser.add_argument("--record", action="store_true", help="keep the figures as the new record")
    parser.add_argument("--inside", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.inside:
        inside(chosen.inside[0], int(chosen.inside[1]))
        return 0
    names = chosen.kernels.split(",")
    if unknown := [name for name in names if name not in EVERY]:
        parser.error(f"unknown kernels {unknown}; there are {', '.join(EVERY)}")
    known = recorded() if RECORD.exists() else {}
    found, worse = {}, 0
    for name in names:
        found[name] = per_row(name)
        before = known.get(name)
        beyond = before is not None and found[name] > before * BOUND
        worse += beyond
        print(f"{name}: {found[name]:.1f} instructions per row, recorded {before}", flush=True)
    if chosen.record:
        record(found)
        return 0
    return worse


if __name__ == "__main__":
    raise SystemExit(main())
