"""Bounded memory, spilling, clean-up, relocation and snapshots: ratios within one process.

``python -m benchmarks.state`` prints a table; ``--rows`` sets how many rows there are.  Everything
goes through public calls; CPU time is of the process.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import windjoin as wj
from windjoin.state.residence import groups_of_hashes

PUSH, GROUPS = 1024, 300
TURNS = 4


def three_way(
    rows: int, payload: int = 0, window: int | None = None
) -> tuple[Any, dict[str, pa.Table]]:
    """Three streams with one key, a window of all rows or of some, results about as many as rows
    in it.
    """
    keys = rows if window is None else window
    named = [wj.stream(name, time="t", window=window or 10 * rows) for name in "abc"]
    query = wj.join(*named, on=[x["k"] == y["k"] for x, y in pairwise(named)])
    tables = {}
    for seed, name in enumerate("abc"):
        random = np.random.default_rng(seed)
        columns: dict[str, Any] = {"t": np.arange(rows), "k": random.integers(0, keys, rows)}
        if payload:
            columns["p"] = pa.array([random.bytes(payload)] * rows, pa.binary(payload))
        tables[name] = pa.table(columns)
    return query, tables


def pushed(session: Any, tables: dict[str, pa.Table]) -> tuple[int, float, int]:
    """Results of all rows, CPU seconds, and the most bytes of state, now and then looked at."""
    gc.collect()
    began, found, most = time.process_time(), 0, 0
    for start in range(0, tables["a"].num_rows, PUSH):
        for name, table in tables.items():
            found += session.push(name, table.slice(start, PUSH)).num_rows
        if start % (16 * PUSH) == 0:
            most = max(most, session.state_bytes)
    found += session.close().num_rows
    return found, time.process_time() - began, most


def rss() -> int:
    """Bytes that are this process's own, without mapped files."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    return 0


def opened(query: Any, tables: dict[str, pa.Table], **options: Any) -> Any:
    return query.open({name: table.schema for name, table in tables.items()}, **options)


def bounded(rows: int) -> dict[str, Any]:
    """``memory=`` that is never reached; state of 8 times the limit; payload of 20 times."""
    query, tables = three_way(rows)
    runs = [
        [pushed(opened(query, tables, **options), tables) for options in ({}, {"memory": "64GB"})]
        for _ in range(4)  # in turn, as the machine is not always as quick
    ]
    whole, never = (min((run[k] for run in runs), key=lambda found: found[1]) for k in (0, 1))
    session = opened(query, tables)
    for name, table in tables.items():
        session.push(name, table)
    state = session.state_bytes
    session.abandon()
    limit = state // 8
    spilling = opened(query, tables, memory=limit)
    spilled = pushed(spilling, tables)
    assert spilled[0] == whole[0] == never[0]
    return {
        "CPU with memory= never reached over without": never[1] / whole[1],
        "throughput with state 8x the limit over in memory": whole[1] / spilled[1],
        "spills": spilling.metrics["memory"]["spills"],
        "clean-up share of results": spilling.metrics["memory"]["results_cleaned_up"] / whole[0],
        "clean-up results per second over the batch join's": cleaned(three_way(rows), spilling),
        "most bytes of state then over the limit": spilled[2] / limit,
    }


def wide(rows: int) -> dict[str, Any]:
    """Payload of 20 times the limit, rows of 4 kB or 8 kB, keys in memory.

    As many rows as the window holds, none of which goes; and rows in a window that slides, after
    two of its lengths.  In turn with all in memory, which the first run has to fetch from the
    system, and later runs find in the process.
    """
    query, tables = three_way(rows // 24, payload=4096)
    small = max(sum(t.nbytes for t in tables.values()) // 20, 1)
    turns = []
    for _ in range(5):
        memory = pushed(opened(query, tables), tables)
        session = opened(query, tables, memory=small)
        turns.append((memory, pushed(session, tables)))
    spills = session.metrics["memory"]["spills"]
    first, *warm = turns
    one, other = (min((turn[k] for turn in warm), key=lambda found: found[1]) for k in (0, 1))
    assert one[0] == other[0] == first[0][0]
    sliding, come = three_way(4 * (rows // 36), payload=8192, window=rows // 36)
    small = max(sum(t.nbytes for t in come.values()) // 4 // 20, 1)
    runs = [[slid(opened(sliding, come, **o), come) for o in ({}, {"memory": small})]
            for _ in range(4)]  # fmt: skip
    before, after = (min((run[k] for run in runs), key=lambda found: found[1]) for k in (0, 1))
    assert before[0] == after[0]
    return {
        "throughput with payload 20x the limit over in memory": one[1] / other[1],
        "the same, first run of the process": first[0][1] / first[1][1],
        "spills of rows then": spills,
        "the same in a window that slides": before[1] / after[1],
        "spills of rows there": after[2],
    }


def slid(session: Any, tables: dict[str, pa.Table]) -> tuple[int, float, int]:
    """Results and CPU seconds of the second half of the rows; how often rows were spilled."""
    half, found, began = tables["a"].num_rows // 2, 0, 0.0
    for start in range(0, 2 * half, PUSH):
        if start <= half < start + PUSH:
            began, found = time.process_time(), 0
        for name, table in tables.items():
            found += session.push(name, table.slice(start, PUSH)).num_rows
    seconds = time.process_time() - began
    spills = session.metrics["memory"]["spills"] if "memory" in session.metrics else 0
    session.abandon()
    return found, seconds, spills


def cleaned(case: tuple[Any, dict[str, pa.Table]], session: Any) -> float:
    query, tables = case
    began = time.perf_counter()
    results = query.run(tables, threads=1).num_rows
    batch = results / (time.perf_counter() - began)
    done = session.metrics["memory"]
    return done["results_cleaned_up"] / max(done["clean_up_seconds"], 1e-9) / batch


def relocated(rows: int, payload: int = 4096) -> dict[str, Any]:
    """Two hosts; one has nearly all rows, which are wide, and half of the difference moves."""
    a, b = (wj.stream(name, time="t", window=2 * rows) for name in "ab")
    now = [0.0]
    keys = np.arange(100 * GROUPS)
    of_first = keys[groups_of_hashes(keys, GROUPS) % 2 == 0]  # groups go to hosts in turn
    random = np.random.default_rng(1)
    wide = pa.array([random.bytes(payload)] * PUSH, pa.binary(payload))

    def some(first: int, keys: Any) -> pa.Table:
        return pa.table({"t": np.arange(first, first + PUSH), "k": keys, "p": wide})

    session = wj.join(a, b, on=a["k"] == b["k"]).open(
        dict.fromkeys("ab", some(0, keys[:PUSH]).schema), hosts=2, clock=lambda: now[0],
        memory=wj.Memory("100GB", groups=GROUPS), segment=PUSH,
    )  # fmt: skip
    for at in range(0, rows, PUSH):
        session.push("a", some(at, random.choice(of_first, PUSH)))
    session.push("b", some(rows, keys[:PUSH]).slice(0, 1))
    before, bytes_before = rss(), session.state_bytes
    for step in range(1, 4):
        now[0] = 100.0 * step
        session.push("a", some(rows + step * PUSH, random.choice(of_first, PUSH)))
        session.push("b", some(rows + step * PUSH, random.choice(of_first, PUSH)).slice(0, 8))
    session.advance("a", rows + 8 * PUSH)
    session.advance("b", rows + 8 * PUSH)
    grown, done = rss() - before, session.metrics["memory"]
    session.abandon()
    share = done["relocated_rows"] / rows
    return {
        "relocated, GB": bytes_before * share / 1e9,
        "relocated groups": done["relocated_groups"],
        "longest pause of a group, ms": 1e3 * done["longest_pause"],
        "pause in all, ms": 1e3 * done["relocation_seconds"],
        "memory grown meanwhile over what was relocated": grown / (bytes_before * share),
    }


def saved(rows: int) -> dict[str, Any]:
    """Save, in turn with the same bytes written plainly; save after 1 % of change; restore."""
    a, b = (wj.stream(name, time="t", window=10 * rows) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    at = np.arange(rows)
    columns = {"t": at, "k": at * 7919 % rows, "x": at * 0.5, "y": at, "z": at}
    table = pa.table(columns)
    within = Path(tempfile.mkdtemp())
    try:
        session = query.open({"a": table.schema, "b": table.schema})
        session.push("a", table)
        runs, plain = [], []
        for number in range(TURNS):  # each save is whole, in a folder of its own
            folder = within / str(number)
            runs.append(timed(session.save, folder))
            plain.append(plainly_written(within / "plain", max(folder.glob("rows-*"), key=size)))
            if number:
                shutil.rmtree(within / str(number - 1))
        (whole, whole_cpu), plain_best = min(runs), min(plain)
        more = table.slice(0, rows // 100).set_column(0, "t", [at[: rows // 100] + rows])
        session.push("a", more)
        change, change_cpu = timed(session.save, folder)
        sizes = sorted(map(size, folder.glob("rows-*")))
        session.abandon()
        del session
        began, worked = time.perf_counter(), time.process_time()
        again = wj.restore(query, folder)
        first = again.push("b", table.slice(0, 1)).num_rows
        restore, worked = time.perf_counter() - began, time.process_time() - worked
        assert first >= 1
        again.abandon()
    finally:
        shutil.rmtree(within)
    return {
        "rows": rows,
        "save, GB of rows (40 bytes) per second": 40 * rows / whole / 1e9,
        "save, GB of the file per second": sizes[-1] / whole / 1e9,
        "the same bytes written plainly, GB per second": sizes[-1] / plain_best / 1e9,
        "incremental bytes after 1 % over the whole": sizes[0] / sizes[-1],
        "incremental seconds over the whole": change / whole,
        "CPU seconds of the whole save": whole_cpu,
        "incremental CPU seconds over the whole": change_cpu / whole_cpu,
        "the whole save over the same bytes written plainly": whole / plain_best,
        "restore until the first push is answered, s": restore,
        "CPU seconds of that": worked,
    }


def timed(do: Callable[..., Any], *given: Any) -> tuple[float, float]:
    """Seconds that something takes, and of CPU."""
    began, worked = time.perf_counter(), time.process_time()
    do(*given)
    return time.perf_counter() - began, time.process_time() - worked


def size(path: Path) -> int:
    return path.stat().st_size


def plainly_written(path: Path, source: Path) -> float:
    """Seconds in which the bytes of a file, which are in memory, are on disk under another name."""
    data = source.read_bytes()
    began = time.perf_counter()
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    seconds = time.perf_counter() - began
    path.unlink()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000, help="of each stream, bounded")
    parser.add_argument(
        "--moved", type=int, default=600_000, help="rows of 4 kB, half of them move"
    )
    parser.add_argument("--saved", type=int, default=10_000_000, help="of a snapshot")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    found = {"machine": platform.processor() or platform.machine(), "windjoin": wj.__version__,
             "pyarrow": pa.__version__, **bounded(given.rows), **wide(given.rows),
             **relocated(given.moved), **saved(given.saved)}  # fmt: skip
    for name, value in found.items():
        print(f"{name:60} {value if isinstance(value, (str, int)) else f'{value:.3g}'}")
    if given.output is not None:
        given.output.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
