"""pandas: merge on the key and filter by the window; the same with time buckets as a second key."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.generators import I64
from benchmarks.peers import Job, Jobs, letters
from benchmarks.workloads import Workload

Plan = Callable[[Workload, list[pd.DataFrame]], pd.DataFrame]  # columns are <stream>_<column>


def within(pairs: pd.DataFrame, window: int, left: str, right: str) -> pd.DataFrame:
    """Keep the pairs that lie in one window of each other."""
    ahead = pairs[f"{left}_ts"].to_numpy() - pairs[f"{right}_ts"].to_numpy()
    return pairs[np.abs(ahead) <= window]


def twice(rows: pd.DataFrame, name: str, window: int) -> pd.DataFrame:
    """Two replicas: the two buckets of twice the window that partners can lie in."""
    first = (rows[f"{name}_ts"] - window) // (2 * window)
    return pd.concat([rows.assign(bucket=first), rows.assign(bucket=first + 1)])


def merge(w: Workload, f: list[pd.DataFrame]) -> pd.DataFrame:
    """Merge on the key, then filter."""
    pairs = within(f[0].merge(f[1], left_on="a_k", right_on="b_k"), w.window, "a", "b")
    if w.streams == 2:
        return pairs
    triples = pairs.merge(f[2], left_on="a_k", right_on="c_k")
    return within(within(triples, w.window, "a", "c"), w.window, "b", "c")


def bucket(w: Workload, f: list[pd.DataFrame]) -> pd.DataFrame:
    """Merge on key and time bucket, then filter."""
    found = f[0].assign(bucket=f[0]["a_ts"] // (2 * w.window))
    names = letters(w.streams)
    for n in range(1, w.streams):
        keys = [f"{names[n]}_k", "bucket"]
        other = twice(f[n], names[n], w.window)
        found = found.merge(other, left_on=["a_k", "bucket"], right_on=keys)
        for earlier in names[:n]:
            found = within(found, w.window, earlier, names[n])
    return found


def prepare(plan: Plan, workload: Workload, tables: list[pa.Table], threads: int) -> Job:
    """Load the tables into frames; pandas has one thread whatever is asked."""
    names = letters(workload.streams)
    frames = [t.to_pandas().add_prefix(f"{name}_") for name, t in zip(names, tables, strict=True)]

    def members(found: pd.DataFrame) -> list[I64]:
        return [found[f"{name}_i"].to_numpy() for name in names]

    return Job(lambda: plan(workload, frames), members)


BOTH: dict[str, Plan] = {"merge": merge, "bucket": bucket}
BUCKET: dict[str, Plan] = {"bucket": bucket}
PLANS: dict[str, dict[str, Plan]] = {
    "W1": BOTH,
    "W1s": BOTH,
    "W5": BOTH,
    **dict.fromkeys(("W1_sparse", "W1_text", "W1_payload"), BUCKET),
    **dict.fromkeys(("keys_once", "keys_hot", "times_equal"), BUCKET),
}
JOBS: Jobs = {
    workload: {variant: partial(prepare, plan) for variant, plan in variants.items()}
    for workload, variants in PLANS.items()
}
