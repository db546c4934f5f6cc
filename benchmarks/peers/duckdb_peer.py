"""DuckDB: the SQL a user would write first, and the SQL an expert would write by hand.

"naive" states the windows and the predicate.  "bucket" adds a time bucket of twice the window as
an equality key, with two replicas of one side; "cell" does so for time and value.  A row's bucket
is always one of the two buckets of any partner, so every result is found exactly once.
Row numbers go into a temporary table.
"""

from __future__ import annotations

from functools import partial

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.generators import I64
from benchmarks.peers import Job, Jobs, letters
from benchmarks.workloads import Workload


def within(left: str, right: str) -> str:
    """Say that two streams lie in one window of each other."""
    return f"{left}.ts BETWEEN {right}.ts - $window AND {right}.ts + $window"


def bucketed(stream: str) -> str:
    """One replica: the bucket the row lies in."""
    return f"(SELECT *, ts // (2 * $window) AS bucket FROM {stream})"


def twice(stream: str) -> str:
    """Two replicas: the two buckets that partners of the row can lie in."""
    # UNION ALL and whole numbers: unnest and floor() made W1 1.6 times slower
    last = "(ts + $window) // (2 * $window)"
    return (
        f"(SELECT *, {last} AS bucket FROM {stream}"
        f" UNION ALL SELECT *, {last} - 1 AS bucket FROM {stream})"
    )


# the value cells are a little wider than twice the reach: rounding cannot lose a partner
CELL = "(2.002 * $reach)"


def celled(stream: str) -> str:
    """One replica by time and value."""
    return f"(SELECT *, floor(x / {CELL})::BIGINT AS cell FROM {bucketed(stream)})"


def celled_twice(stream: str) -> str:
    """Four replicas by time and value."""
    last = f"floor((x + 1.001 * $reach) / {CELL})::BIGINT"
    rows = twice(stream)
    return (
        f"(SELECT *, {last} AS cell FROM {rows} UNION ALL SELECT *, {last} - 1 AS cell FROM {rows})"
    )


PAIR_A_B = within("a", "b")
TRIPLE = f"{within('a', 'b')} AND {within('a', 'c')} AND {within('b', 'c')}"
REACH_A_B = "a.x BETWEEN b.x - $reach AND b.x + $reach"
ROWS2, ROWS3 = "SELECT a.i AS a, b.i AS b", "SELECT a.i AS a, b.i AS b, c.i AS c"
OVERLAP = "a.lo <= b.hi AND b.lo <= a.hi"
PLANE = f"a.x < b.x AND b.y < c.y AND abs(a.x - c.x) <= $reach AND {TRIPLE}"

EQUAL = {
    "naive": f"{ROWS2} FROM a JOIN b ON a.k = b.k AND {PAIR_A_B}",
    "bucket": f"{ROWS2} FROM {bucketed('a')} a JOIN {twice('b')} b"
    f" ON a.k = b.k AND a.bucket = b.bucket AND {PAIR_A_B}",
}
BITS = {
    "bits": f"{ROWS2} FROM {bucketed('a')} a JOIN {twice('b')} b"
    f" ON a.bucket = b.bucket AND bit_count(a.w0 & b.w0) + bit_count(a.w1 & b.w1) >= $limit"
    f" AND {PAIR_A_B}",
}
SQL: dict[str, dict[str, str]] = {
    **dict.fromkeys(("W1", "W1_sparse", "W1_text", "W1s"), EQUAL),
    **dict.fromkeys(("keys_once", "key_one", "keys_hot", "times_equal"), EQUAL),
    "W1_payload": {name: sql.replace(ROWS2, "SELECT a.*, b.*") for name, sql in EQUAL.items()},
    "W2": {
        "naive": f"{ROWS2} FROM a JOIN b ON {REACH_A_B} AND {PAIR_A_B}",
        "cell": f"{ROWS2} FROM {celled('a')} a JOIN {celled_twice('b')} b"
        f" ON a.cell = b.cell AND a.bucket = b.bucket"
        f" AND abs(a.x - b.x) <= $reach AND {PAIR_A_B}",
    },
    **dict.fromkeys(("W3", "W3_slice"), BITS),
    "W4": {
        "bucket": f"{ROWS3} FROM {bucketed('a')} a JOIN {twice('b')} b"
        f" ON a.bucket = b.bucket AND {PAIR_A_B} AND array_distance(a.v, b.v) <= sqrt($limit)"
        f" JOIN {twice('c')} c ON a.bucket = c.bucket AND {within('a', 'c')}"
        f" AND {within('b', 'c')} AND array_distance(a.v, c.v) <= sqrt($limit)"
        f" AND array_distance(b.v, c.v) <= sqrt($limit)",
    },
    "W5": {
        "naive": f"{ROWS3} FROM a JOIN b ON a.k = b.k AND {PAIR_A_B}"
        f" JOIN c ON a.k = c.k AND {within('a', 'c')} AND {within('b', 'c')}",
        "bucket": f"{ROWS3} FROM {bucketed('a')} a JOIN {twice('b')} b"
        f" ON a.k = b.k AND a.bucket = b.bucket AND {PAIR_A_B} JOIN {twice('c')} c"
        f" ON a.k = c.k AND a.bucket = c.bucket AND {within('a', 'c')} AND {within('b', 'c')}",
    },
    "W6": {
        "lists": f"{ROWS2} FROM {bucketed('a')} a JOIN {twice('b')} b ON a.bucket = b.bucket"
        f" AND {PAIR_A_B} AND list_sum(list_transform(list_zip(a.v, b.v), lambda p:"
        f" abs(p[1]::INTEGER - p[2]::INTEGER))) <= $limit",
    },
    "W7": {
        "naive": f"{ROWS3} FROM a JOIN b ON a.x < b.x AND {PAIR_A_B}"
        f" JOIN c ON {PLANE.removeprefix('a.x < b.x AND ')}",
        "cell": f"WITH ac AS MATERIALIZED (SELECT a.i, a.ts, a.x, a.bucket, c.i AS ci,"
        f" c.ts AS cts, c.y AS cy FROM {celled('a')} a JOIN {celled_twice('c')} c"
        f" ON a.cell = c.cell AND a.bucket = c.bucket AND abs(a.x - c.x) <= $reach"
        f" AND {within('a', 'c')}) SELECT ac.i AS a, b.i AS b, ac.ci AS c FROM ac"
        f" JOIN {twice('b')} b ON ac.bucket = b.bucket AND ac.x < b.x AND b.y < ac.cy"
        f" AND {within('ac', 'b')} AND b.ts BETWEEN ac.cts - $window AND ac.cts + $window",
    },
    "intervals": {"iejoin": f"{ROWS2} FROM a JOIN b ON {OVERLAP}"},  # the window is no condition
    "intervals_window": {
        "iejoin": f"{ROWS2} FROM a JOIN b ON {OVERLAP} AND {PAIR_A_B}",
    },
}


def prepare(sql: str, workload: Workload, tables: list[pa.Table], threads: int) -> Job:
    """Load the tables into an in-memory database."""
    connection = duckdb.connect(":memory:", config={"threads": threads})
    connection.execute("SET preserve_insertion_order = false")
    for name, rows in zip(letters(workload.streams), tables, strict=True):
        if workload.kind == "overlap":
            rows = words(rows)
        connection.register("arrow_rows", rows)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow_rows")
        connection.unregister("arrow_rows")
    for name, value in {
        "window": str(workload.window),
        "reach": f"{workload.limit!r}::DOUBLE",
        "limit": repr(workload.limit),
    }.items():
        sql = sql.replace(f"${name}", value)

    def run() -> None:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE found AS {sql}")

    def members(_: None) -> list[I64]:
        columns = ("i", "i_1") if workload.name == "W1_payload" else letters(workload.streams)
        chosen = ", ".join(columns)
        found = connection.execute(f"SELECT {chosen} FROM found").fetchnumpy()
        connection.execute("DROP TABLE found")
        return [np.asarray(found[column]) for column in columns]

    return Job(run, members)


def words(rows: pa.Table) -> pa.Table:
    """Replace the sets of items 1 .. 128 by two words of 64 bits."""
    sets = rows["s"].combine_chunks()
    items = sets.values.to_numpy() - 1
    owner = np.repeat(np.arange(len(sets)), np.diff(sets.offsets.to_numpy()))
    table = rows.drop_columns(["s"])
    for word in range(2):
        bits = np.zeros(len(sets), dtype=np.uint64)
        mine = items // 64 == word
        np.bitwise_or.at(bits, owner[mine], np.uint64(1) << (items[mine] % 64).astype(np.uint64))
        table = table.append_column(f"w{word}", pa.array(bits.view(np.int64)))
    return table


JOBS: Jobs = {
    workload: {variant: partial(prepare, sql) for variant, sql in variants.items()}
    for workload, variants in SQL.items()
}
