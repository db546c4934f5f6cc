"""Processes that are killed while they join, save and spill: ``python -m tests.faults.killing``.

Every child is a process of its own, forked from one that has imported all there is; SIGKILL comes
at a random moment of it.  The next one goes on from the snapshot; what an earlier one had written
after that snapshot is written again, so the reader keeps it once: by the number of its push, or, of
sessions with rows on disk, from the place in the results that was saved with the position.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import windjoin as wj

ROWS, PUSH, SAVE_EVERY = 120, 6, 2
KILLS_OF_ONE = 5  # join; then it may come to its end


def query() -> Any:
    """Three streams that are tied by a key."""
    named = [wj.stream(n, time="t", window=w) for n, w in zip("abc", (40, 30, 20), strict=True)]
    on = [x["k"] == y["k"] for x, y in pairwise(named)]
    return wj.join(*named, on=on, select=[s["n"].alias(s.name) for s in named])


def tables(seed: int) -> dict[str, pa.Table]:
    """Rows of all streams."""
    made = {}
    for name in "abc":
        at = np.random.default_rng([seed, ord(name)])
        time_, key = np.sort(at.integers(0, 200, ROWS)), at.integers(0, 12, ROWS)
        made[name] = pa.table({"t": time_, "k": key, "n": np.arange(ROWS)})
    return made


def child(folder: Path, seed: int, spills: bool) -> None:
    """Go on from the snapshot, to the end."""
    rows, asked = tables(seed), query()
    if (folder / "snap" / "snapshot.wj").exists():
        session = wj.restore(asked, folder / "snap")
        position = session.position
    else:
        known = {n: t.schema for n, t in rows.items()}
        memory = {"memory": 1, "spill": folder / "disk"} if spills else {}
        session = asked.open(known, **memory)
        position = {"row": 0, "written": 0}
    with open(folder / "results", "ab") as out:
        if spills:
            out.truncate(position["written"])
        for number, start in enumerate(range(position["row"], ROWS, PUSH)):
            for name, table in rows.items():
                write(out, session.sequence + 1, session.push(name, table.slice(start, PUSH)))
            if number % SAVE_EVERY == SAVE_EVERY - 1:
                at = {"row": start + PUSH, "written": out.seek(0, os.SEEK_END)}
                session.save(folder / "snap", position=at)
        write(out, session.sequence + 1, session.close())
    (folder / "done").touch()


def write(out: Any, push: int, results: pa.Table) -> None:
    """A line for each push, in one piece."""
    found = [list(row.values()) for row in results.to_pylist()]
    out.write((json.dumps([push, found]) + "\n").encode())
    out.flush()


def read(folder: Path, spills: bool) -> Counter[tuple[int, ...]]:
    """Results, those of one push once: the last line of it, as earlier ones may be torn."""
    by_push: dict[Any, Any] = {}
    for place, line in enumerate((folder / "results").read_bytes().split(b"\n")):
        try:
            push, found = json.loads(line)
        except ValueError:
            continue  # torn
        by_push[place if spills else push] = found
    return Counter(tuple(row) for found in by_push.values() for row in found)


def killed_once(folder: Path, seed: int, spills: bool, delay: float | None) -> bool:
    """Fork a child and kill it after a while, None: never; whether it was killed, not done."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            child(folder, seed, spills)
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    if delay is not None:
        time.sleep(delay)
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "a child failed"
    return os.WIFSIGNALED(status)


def run(kills: int, seed: int) -> dict[str, int]:
    """Kill so many; what was lost and doubled in all."""
    moment, found = random.Random(seed), Counter[str]()
    longest = 0.15
    while found["kills"] < kills:
        spills = bool(found["runs"] % 2)
        found["runs"] += 1
        with tempfile.TemporaryDirectory() as name:
            folder, seed = Path(name), seed + 1
            most = min(kills, found["kills"] + KILLS_OF_ONE)
            while found["kills"] < most and not (folder / "done").exists():
                done = killed_once(folder, seed, spills, moment.uniform(0, longest))
                found["kills"] += done
                found["kills while rows are spilled"] += done and spills
            while not (folder / "done").exists():  # whatever is left, in peace
                killed_once(folder, seed, spills, None)
            got = read(folder, spills)
            rows = query().indices(tables(seed))
            wanted = Counter(zip(*(c.tolist() for c in rows.values()), strict=True))
            found["lost"] += (wanted - got).total()
            found["doubled"] += (got - wanted).total()
            found["results"] += wanted.total()
    return dict(found)


if __name__ == "__main__":
    kills, first = (*map(int, sys.argv[1:]), 1)[:2]
    sys.stdout.write(json.dumps(run(kills, first)) + "\n")
