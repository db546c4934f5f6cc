"""What the compiled way of pushed tables is made of, stream by stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from windjoin.kernels.intake import Intake
from windjoin.kernels.live import LiveJoin
from windjoin.kernels.spec import Bools
from windjoin.payload import Payload
from windjoin.plain import FEW, MANY, wide_of
from windjoin.pyx.arrow.payload import Gatherer, Pages
from windjoin.pyx.arrow.reader import Reader
from windjoin.pyx.live.ingest import Ingest
from windjoin.pyx.live.store import Allowance, Counts, Extent, Watermark
from windjoin.pyx.live.store_step import StoreStep
from windjoin.pyx.live.unmatched import Unmatched
from windjoin.stream_rows import StreamRows


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What becomes of results, the same for all streams of a session."""

    names: tuple[str, ...] | None  # of streams, where results are arrival numbers
    gatherer: Gatherer | None  # None: columns are computed, or lie in chunks
    empty: pa.Table
    tabled: Callable[[list[pa.RecordBatch], int], Any]  # of push number ...
    results: Callable[[list[Any], int], Any]  # of row numbers and scores, the same
    expire: Callable[[], None]  # the payload of rows that have gone
    allowance: Allowance | None  # of rows that may come in before somebody looks at memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingesting:
    """All that an `Ingest` is told."""

    joiners: list[StoreStep]
    number: int
    clock: Watermark
    counts: Counts
    extents: list[Extent]
    schema: pa.Schema
    types: tuple[type, type]  # of tables and batches
    reader: Reader
    n_columns: int
    n_keys: int
    n_texts: int  # keys that may be texts
    most_columns: int
    varlen_rows: Callable[[list[Any], Bools | None], list[Any]]
    own: Pages | None  # None: nothing is kept, or `append` keeps it
    pages: list[Pages]
    append: Callable[[Any], None] | None
    gatherer: Gatherer | None
    names: tuple[str, ...] | None
    empty: pa.Table
    tabled: Callable[[list[pa.RecordBatch], int], Any]
    results: Callable[[list[Any], int], Any]
    expire: Callable[[], None] | None  # None: by pages
    told: Callable[[Any, Any, int], None] | None
    reject: Callable[[Any, Any, Any], None]
    allowance: Allowance | None
    tracked: Unmatched | None  # which rows are in no result, where these come out
    alone: Callable[[int, Any], None] | None  # takes those that can be in none
    settle: Callable[[], None] | None  # at the end of a step
    all_count: bool  # whether rows count for others that can be in no result


def ingest(
    live: Intake,
    number: int,
    rows: StreamRows,
    payloads: Sequence[Payload],
    ending: Ending,
    told: Callable[[Any, Any, int], None] | None,
    reject: Callable[[Any, Any, Any], None],
) -> Ingest:
    """The compiled way of stream number ``number``."""
    direct = rows.direct
    own, paged = payloads[number], all(payload.only_pages for payload in payloads)
    kept, outer = len(own.names), live.outer
    n_columns, n_keys = rows.counted
    keys, varlen = direct[1 + n_columns :][:n_keys], direct[1 + n_columns + n_keys :]

    def varlen_rows(columns: list[Any], usable: Bools | None) -> list[Any]:
        pairs = zip(varlen, columns, strict=True)
        return live.encode_varlen(number, [wide_of(one, column) for one, column in pairs], usable)

    return Ingest(
        Ingesting(
            joiners=live.joiners,
            number=number,
            clock=live.clocks[number],
            counts=live.counts[number],
            extents=[window.extent for window in live.windows],
            schema=rows.schema,
            types=(pa.Table, pa.RecordBatch),
            reader=rows.reader,
            n_columns=n_columns,
            n_keys=n_keys,
            n_texts=sum(one is None or one.form == "texts" for one in keys),
            most_columns=MANY * max(len(direct), kept) + FEW,
            varlen_rows=varlen_rows,
            own=own.pages if kept and own.only_pages else None,
            pages=[payload.pages for payload in payloads],
            append=None if own.only_pages else _of_tables(own.append),
            gatherer=ending.gatherer,
            names=ending.names,
            empty=ending.empty,
            tabled=ending.tabled,
            results=ending.results,
            expire=None if paged and live.spec.nearest is None else ending.expire,
            told=told,
            reject=_of_tables(reject),
            allowance=ending.allowance,
            tracked=None if outer is None else outer.tracked(number),
            alone=None if outer is None else outer.give,
            settle=live.settle if outer is not None and isinstance(live, LiveJoin) else None,
            all_count=live.counts_all(number),
        )
    )


def _of_tables(take: Callable[..., None]) -> Callable[..., None]:
    """The same function for batches too."""

    def taken(rows: Any, *more: Any) -> None:
        take(rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows]), *more)

    return taken
