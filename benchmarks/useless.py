"""When rows of memory that have next to no results are to leave all at once: a grid of the rule.

``python -m benchmarks.useless`` runs two streams with one key and state eight times the limit, with
from none to many results a row: spread over all rows, only of rows that come close together, in
bursts, and of a tenth of the rows in a twentieth of the partition groups.  For each value of the
rule it tells CPU time against the same rows all in memory, clean-up counted, and the share of the
results that come late.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import windjoin as wj
import windjoin.state.keeper as keeper
from windjoin.state.residence import groups_of_hashes

PUSH, GROUPS = 512, 300
NEVER = 2**40
# rows for each result from which all leave; and from which they do if no groups are better; the
# least rows: first what is in use
RULES = [(64, 1, 1024), (64, 0.25, 1024), (64, 8, 1024)]
RULES += [(useless, useless, 1024) for useless in (0, 1, 8, 64, NEVER)]
RULES += [(64, 1, 64), (64, 1, 16_384)]
EACH = (0.0, 0.016, 0.12, 1.0, 4.0)  # results a row with an eighth of the rows
NEAR = 200  # rows
KINDS = ("spread", "near", "bursts", "skewed")


def keys(kind: str, each: float, rows: int, seed: int) -> Any:
    """Keys of one of two streams, of which ``each`` times a row finds another in memory."""
    random = np.random.default_rng(seed)
    at = np.arange(rows)
    alone = (2 + seed) * 2**40 + at
    if not each:
        return alone
    if kind == "spread":
        return random.integers(0, max(int(rows / 8 / each), 1), rows)
    if kind == "skewed":  # a tenth of the rows, of a twentieth of the groups, has all of them
        hot = of_few_groups(max(int(rows / 80 / each), 1))
        return np.where(random.random(rows) < 0.1, random.choice(hot, rows), alone)
    many = max(each, 1.0)  # of rows that find any
    some = at // NEAR * 2**20 + random.integers(0, max(int(NEAR / 2 / many), 1), rows)
    if kind == "near":
        return np.where(random.random(rows) < each / many, some, alone)
    period = rows // 16  # a tenth of each has ten times as many
    return np.where(
        (at % period < period / 10) & (random.random(rows) < min(10 * each / many, 1)), some, alone
    )


def of_few_groups(count: int) -> Any:
    """Keys of a twentieth of the partition groups."""
    many = np.arange(40 * count + 10_000)
    return many[groups_of_hashes(many, GROUPS) < GROUPS / 20][:count]


def tables_of(kind: str, each: float, rows: int) -> dict[str, pa.Table]:
    return {
        name: pa.table({"t": np.arange(rows), "k": keys(kind, each, rows, seed)})
        for seed, name in enumerate("ab")
    }


def pushed(session: Any, tables: dict[str, pa.Table]) -> tuple[int, float]:
    """Results, and CPU seconds."""
    began, found = time.process_time(), 0
    for start in range(0, tables["a"].num_rows, PUSH):
        for name, table in tables.items():
            found += session.push(name, table.slice(start, PUSH)).num_rows
    found += session.close().num_rows
    return found, time.process_time() - began


def measured(kind: str, each: float, rows: int, turns: int, rules: int) -> list[dict[str, Any]]:
    a, b = (wj.stream(name, time="t", window=10 * rows) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    tables = tables_of(kind, each, rows)
    known = {name: table.schema for name, table in tables.items()}
    session = query.open(known)
    for name, table in tables.items():
        session.push(name, table)
    limit = session.state_bytes // 8
    session.abandon()
    whole = min(pushed(query.open(known), tables) for _ in range(turns + 1))
    kept = keeper.USELESS, keeper.SPARSE, keeper.EVIDENCE
    lines: dict[tuple[float, ...], dict[str, Any]] = {}
    try:
        for _ in range(turns):
            for rule in RULES[:rules]:
                keeper.USELESS, keeper.SPARSE, keeper.EVIDENCE = rule
                session = query.open(known, memory=limit)
                found, seconds = pushed(session, tables)
                assert found == whole[0]
                done = session.metrics["memory"]
                line = lines.setdefault(rule, {"seconds": seconds})
                line["seconds"] = min(line["seconds"], seconds)
                line |= {"late": done["results_cleaned_up"], "spills": done["spills"]}
    finally:
        keeper.USELESS, keeper.SPARSE, keeper.EVIDENCE = kept
    return [
        {
            "kind": kind, "results a row": round(found / rows / 2, 4),
            "useless": useless, "sparse": sparse, "evidence": evidence, "spills": line["spills"],
            "throughput": round(whole[1] / line["seconds"], 3),
            "late": round(line["late"] / max(found, 1), 3),
        }
        for (useless, sparse, evidence), line in lines.items()
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000, help="of each stream")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--rules", type=int, default=len(RULES), help="the first of them")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    lines = []
    for kind in KINDS:
        for each in EACH if kind == "spread" else EACH[1:]:
            some = measured(kind, each, given.rows, given.turns, given.rules)
            lines += some
            told = [f"{line['throughput']:.2f} ({line['late']:.0%})" for line in some]
            print(f"{kind:8} {some[0]['results a row']:8}", *(f"{one:>13}" for one in told))
    if given.output is not None:
        found = {"machine": platform.processor() or platform.machine(),
                 "windjoin": wj.__version__, "rows": given.rows, "lines": lines}  # fmt: skip
        given.output.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
