"""Polars: `join_where`, keyed join and filter, and buckets by hand on the streaming engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import polars as pl
import pyarrow as pa

from benchmarks.generators import I64
from benchmarks.peers import Job, Jobs, letters
from benchmarks.workloads import Workload

Frames = list[pl.LazyFrame]  # columns are <stream>_<column>
Plan = Callable[[Workload, Frames], pl.LazyFrame]


def within(window: int, left: str, right: str) -> pl.Expr:
    """Say that two streams lie in one window of each other."""
    ahead = pl.col(f"{left}_ts") - pl.col(f"{right}_ts")
    return (ahead <= window) & (ahead >= -window)


def windows(window: int, left: str, right: str) -> list[pl.Expr]:
    """Give the same as two inequalities between columns, as `join_where` wants them."""
    return [
        pl.col(f"{left}_ts") >= pl.col(f"{right}_ts") - window,
        pl.col(f"{left}_ts") <= pl.col(f"{right}_ts") + window,
    ]


def bucketed(rows: pl.LazyFrame, name: str, window: int) -> pl.LazyFrame:
    """One replica: the bucket of twice the window that the row lies in."""
    return rows.with_columns((pl.col(f"{name}_ts") // (2 * window)).alias("bucket"))


def twice(rows: pl.LazyFrame, name: str, window: int) -> pl.LazyFrame:
    """Two replicas: the two buckets that partners of the row can lie in."""
    first = (pl.col(f"{name}_ts") - window) // (2 * window)
    return pl.concat([rows.with_columns((first + n).alias("bucket")) for n in (0, 1)])


def celled(rows: pl.LazyFrame, name: str, reach: float) -> pl.LazyFrame:
    """One replica by value; cells a little wider than twice the reach."""
    return rows.with_columns((pl.col(f"{name}_x") / (2.002 * reach)).floor().alias("cell"))


def celled_twice(rows: pl.LazyFrame, name: str, reach: float) -> pl.LazyFrame:
    """Two replicas by value."""
    first = ((pl.col(f"{name}_x") - 1.001 * reach) / (2.002 * reach)).floor()
    return pl.concat([rows.with_columns((first + n).alias("cell")) for n in (0.0, 1.0)])


def equal_where(w: Workload, f: Frames) -> pl.LazyFrame:
    """`join_where` with the key and the window."""
    return f[0].join_where(f[1], pl.col("a_k") == pl.col("b_k"), *windows(w.window, "a", "b"))


def equal_filter(w: Workload, f: Frames) -> pl.LazyFrame:
    """Join on the key, filter by the window."""
    pairs = f[0].join(f[1], left_on="a_k", right_on="b_k").filter(within(w.window, "a", "b"))
    if w.streams == 2:
        return pairs
    both = within(w.window, "a", "c") & within(w.window, "b", "c")
    return pairs.join(f[2], left_on="a_k", right_on="c_k").filter(both)


def equal_bucket(w: Workload, f: Frames) -> pl.LazyFrame:
    """Join on key and time bucket, filter by the window."""
    a, b = bucketed(f[0], "a", w.window), twice(f[1], "b", w.window)
    pairs = a.join(b, left_on=["a_k", "bucket"], right_on=["b_k", "bucket"])
    pairs = pairs.filter(within(w.window, "a", "b"))
    if w.streams == 2:
        return pairs
    c = twice(f[2], "c", w.window)
    triples = pairs.join(c, left_on=["a_k", "bucket"], right_on=["c_k", "bucket"])
    return triples.filter(within(w.window, "a", "c") & within(w.window, "b", "c"))


def band_where(w: Workload, f: Frames) -> pl.LazyFrame:
    """`join_where` with four inequalities."""
    reach = [pl.col("a_x") >= pl.col("b_x") - w.limit, pl.col("a_x") <= pl.col("b_x") + w.limit]
    return f[0].join_where(f[1], *windows(w.window, "a", "b"), *reach)


def band_cell(w: Workload, f: Frames) -> pl.LazyFrame:
    """Join on cells of time and value, filter."""
    a = celled(bucketed(f[0], "a", w.window), "a", w.limit)
    b = celled_twice(twice(f[1], "b", w.window), "b", w.limit)
    near = (pl.col("a_x") - pl.col("b_x")).abs() <= w.limit
    return a.join(b, on=["bucket", "cell"]).filter(near & within(w.window, "a", "b"))


def plane_cell(w: Workload, f: Frames) -> pl.LazyFrame:
    """Join a and c on cells first, then b on time buckets."""
    a = celled(bucketed(f[0], "a", w.window), "a", w.limit)
    c = celled_twice(twice(f[2], "c", w.window), "c", w.limit)
    near = (pl.col("a_x") - pl.col("c_x")).abs() <= w.limit
    pairs = a.join(c, on=["bucket", "cell"]).filter(near & within(w.window, "a", "c"))
    order = (pl.col("a_x") < pl.col("b_x")) & (pl.col("b_y") < pl.col("c_y"))
    both = within(w.window, "a", "b") & within(w.window, "b", "c")
    return pairs.join(twice(f[1], "b", w.window), on="bucket").filter(order & both)


def intervals_where(w: Workload, f: Frames) -> pl.LazyFrame:
    """`join_where` with the two inequalities of an overlap, and the window where it matters."""
    overlap = [pl.col("a_lo") <= pl.col("b_hi"), pl.col("b_lo") <= pl.col("a_hi")]
    bounds = windows(w.window, "a", "b") if w.name == "intervals_window" else []
    return f[0].join_where(f[1], *overlap, *bounds)


def sets_prefix(w: Workload, f: Frames) -> pl.LazyFrame:
    """Candidates share a rare item: of n items the n - k + 1 rarest; then count the overlap.

    Items are numbered by popularity, so the rarest are the last ones of a sorted set.
    """
    a, b = bucketed(f[0], "a", w.window), twice(f[1], "b", w.window)

    def rare(rows: pl.LazyFrame, name: str) -> pl.LazyFrame:
        spare = pl.col(f"{name}_s").list.len().cast(pl.Int64) - int(w.limit) + 1
        items = pl.col(f"{name}_s").list.tail(spare.clip(0)).alias("item")
        return rows.with_columns(items).explode("item").drop_nulls("item")

    pairs = rare(a, "a").join(rare(b, "b"), on=["item", "bucket"])
    pairs = pairs.filter(within(w.window, "a", "b")).select("a_i", "b_i").unique()
    sets = [rows.select(f"{n}_i", f"{n}_s") for n, rows in zip("ab", f, strict=False)]
    verified = pairs.join(sets[0], on="a_i").join(sets[1], on="b_i")
    common = pl.col("a_s").list.set_intersection("b_s").list.len()
    return verified.filter(common >= int(w.limit))


def prepare(plan: Plan, workload: Workload, tables: list[pa.Table], threads: int) -> Job:
    """Load the tables into Polars' own chunks; its threads are set before it is imported."""
    if pl.thread_pool_size() != threads:
        raise RuntimeError(f"polars runs {pl.thread_pool_size()} threads, asked for {threads}")
    names = letters(workload.streams)
    frames = []
    for name, rows in zip(names, tables, strict=True):
        frame = pl.DataFrame(pl.from_arrow(rows)).rename(lambda c, name=name: f"{name}_{c}")
        frames.append(frame.rechunk().lazy())
    lazy = plan(workload, frames)
    if workload.name != "W1_payload":
        lazy = lazy.select(f"{name}_i" for name in names)

    def members(found: pl.DataFrame) -> list[I64]:
        return [found[f"{name}_i"].to_numpy() for name in names]

    return Job(lambda: lazy.collect(engine="streaming"), members)


EQUAL: dict[str, Plan] = {"filter": equal_filter, "bucket": equal_bucket}
BUCKET: dict[str, Plan] = {"bucket": equal_bucket}
PLANS: dict[str, dict[str, Plan]] = {
    "W1": {"where": equal_where, **EQUAL},
    "W1s": {"where": equal_where, **EQUAL},
    **dict.fromkeys(("W1_sparse", "W1_text", "W1_payload"), BUCKET),
    **dict.fromkeys(("keys_once", "key_one", "keys_hot", "times_equal"), BUCKET),
    "W2": {"where": band_where, "cell": band_cell},
    "W3L": {"prefix": sets_prefix},
    "W5": EQUAL,
    "W7": {"cell": plane_cell},
    "intervals": {"where": intervals_where},
    "intervals_window": {"where": intervals_where},
}
JOBS: Jobs = {
    workload: {variant: partial(prepare, plan) for variant, plan in variants.items()}
    for workload, variants in PLANS.items()
}
