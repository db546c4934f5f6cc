"""Every way in which a similarity query can be run, and what each one found."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import windjoin as wj

from tests.similarity_oracle import Row

Pairs = list[tuple[int, int]]


def table(rows: list[Row], arrow: pa.DataType, split: int = 0) -> pa.Table:
    """Rows as a table, the first ``split`` of them in a chunk of their own."""
    columns = {"t": pa.array([t for t, _ in rows], pa.int64())}
    columns["v"] = pa.array([value for _, value in rows], arrow)
    whole = pa.table(columns)
    return pa.concat_tables([whole[:split], whole[split:]]) if split else whole


def streams(windows: tuple[int, int]) -> tuple[Any, Any]:
    """Streams a and b."""
    a, b = (wj.stream(n, time="t", window=w) for n, w in zip("ab", windows, strict=True))
    return a, b


def batch(query: Any, a: pa.Table, b: pa.Table, threads: int = 1) -> Pairs:
    """Row numbers by `Query.indices`."""
    found = query.indices({"a": a, "b": b}, threads=threads)
    return sorted(zip(found["a"].tolist(), found["b"].tolist(), strict=True))


def pushes(query: Any, a: pa.Table, b: pa.Table, size: int) -> Pairs:
    """Row numbers by a session, in pushes of ``size`` rows in order of time over both streams."""
    found: Pairs = []
    numbers: dict[str, Any] = {"a": [], "b": []}
    order = sorted(
        (rows["t"][i].as_py(), name, i)
        for name, rows in (("a", a), ("b", b))
        for i in range(rows.num_rows)
    )
    with query.open(schemas={"a": a.schema, "b": b.schema}, rows_only=True) as session:
        while order:
            name = order[0][1]
            taken = []
            while order and order[0][1] == name and len(taken) < size:
                taken.append(order.pop(0)[2])
            rows = (a if name == "a" else b).take(taken)
            numbers[name] += taken
            out = session.push(name, rows)
            members = (np.asarray(numbers[s], np.int64)[out[s]].tolist() for s in "ab")
            found += zip(*members, strict=True)
    return sorted(found)


def all_paths(query: Any, a: pa.Table, b: pa.Table) -> dict[str, Pairs]:
    """What batch runs and sessions find."""
    return {
        "batch": batch(query, a, b),
        "threads": batch(query, a, b, threads=2),
        "push 1": pushes(query, a, b, 1),
        "push 5": pushes(query, a, b, 5),
    }


def on_every_instruction_set(script: str) -> None:
    """What a script prints, numbers of results first, is the same on each, and no number is 0."""
    answers = {}
    for isa in ("plain", "avx2", "avx512"):
        environment = {**os.environ, "WINDJOIN_ISA": isa}
        ran = subprocess.run(
            [sys.executable, "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        answers[isa] = ran.stdout
    assert answers["plain"] == answers["avx2"] == answers["avx512"]
    assert "[0, " not in answers["plain"]
