"""Every way to run a query in this process, as one function of the query and its tables.

Tables have int64 times ``ts`` in order and row numbers ``n``; results are tuples of row numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.arrow import Limits, joiner, place

from tests.arrow_exchange import carry_out, histogram

Tables = Mapping[str, pa.Table]
Found = Iterable[tuple[int, ...]]
Mode = Callable[[Any, Tables], Found]
PUSHED = 3  # rows at a time


def numbers(indices: Mapping[str, Any]) -> Iterator[tuple[int, ...]]:
    return zip(*(column.tolist() for column in indices.values()), strict=True)


def of_table(tables: Tables, found: pa.Table) -> Iterator[tuple[int, ...]]:
    return zip(*(found.column(f"{name}_n").to_pylist() for name in tables), strict=True)


def schemas(tables: Tables) -> dict[str, pa.Schema]:
    return {name: table.schema for name, table in tables.items()}


def batch(**options: Any) -> Mode:
    return lambda query, tables: numbers(query.indices(tables, **options))


def session(rows_only: bool, plain: bool, **options: Any) -> Mode:
    """Some rows of each stream in turn; as dictionaries of arrays if ``plain``."""

    def run(query: Any, tables: Tables) -> Found:
        found: list[tuple[int, ...]] = []

        def take(rows: Any) -> None:
            found.extend(numbers(rows) if rows_only else of_table(tables, rows))

        most = max(len(table) for table in tables.values())
        with query.open(schemas(tables), lateness=99, rows_only=rows_only, **options) as opened:
            for start in range(0, most, PUSHED):
                for name, table in tables.items():
                    rows: Any = table.slice(start, PUSHED)
                    if plain and not any(column.null_count for column in rows.columns):
                        rows = {c: rows.column(c).to_numpy() for c in rows.column_names}
                    take(opened.push(name, rows))
            take(opened.close())
        return found

    return run


def exchanged(strategy: Any) -> Mode:
    """The functions of `windjoin.arrow`, host by host."""

    def run(query: Any, tables: Tables) -> Found:
        counts = histogram(query, schemas(tables), tables)
        small = Limits(block_rows=4, results=5)
        plan, _ = place(
            query, schemas(tables), hosts=2, strategy=strategy, histogram=counts, limits=small
        )
        return of_table(tables, carry_out(plan, tables, np.random.default_rng(3)))

    return run


def joined_in_one_go(query: Any, tables: Tables) -> Found:
    """`windjoin.arrow.joiner`: rows of all streams in one table, which says whose they are."""
    join = joiner(query, stream_column="s", schemas=schemas(tables))
    named = [
        table.append_column("s", pa.array([name] * len(table), pa.string()))
        for name, table in tables.items()
    ]
    found = list(join(pa.concat_tables(named).to_batches()))
    return of_table(tables, pa.Table.from_batches(found, query.bind(schemas(tables)).schema))


MODES: dict[str, Mode] = {
    "one thread": batch(threads=1),
    "two threads": batch(threads=2),
    "hosts, atr": batch(hosts=2, strategy="atr"),
    "hosts, ctr": batch(hosts=3, strategy="ctr"),
    "hosts, psp": batch(hosts=2, strategy="psp"),
    "session of tables": session(rows_only=False, plain=False),
    "session of arrays": session(rows_only=True, plain=True),
    "session on hosts": session(rows_only=False, plain=False, hosts=2, strategy="ctr"),
    "exchange, atr": exchanged("atr"),
    "exchange, ctr": exchanged("ctr"),
    "joiner": joined_in_one_go,
}
ARROW = ("exchange, atr", "exchange, ctr", "joiner")  # rows have no numbers there
