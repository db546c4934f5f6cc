"""Columns of the rows in a live window, kept as they came and gathered by arrival number."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from windjoin.chunks import Chunks
from windjoin.kernels.spec import I64
from windjoin.output import ResultColumns, plain_column
from windjoin.pyx.arrow.payload import Gatherer, Pages

NARROW = 8  # columns more than asked for that do not matter
# kind, bytes of a value or item, items of a vector, whether they are a child, bytes of an offset
Layout = tuple[str, int, int, bool, int]


class Payload:
    """Rows [head, tail) of one stream, of the columns somebody asks for.

    Columns lie in pages, but for those of types that Arrow alone can gather: of these the batches
    are kept.
    """

    def __init__(self, schema: pa.Schema, columns: list[str]) -> None:
        self.schema = schema
        self.columns = columns
        layouts = {name: layout_of(schema.field(name).type) for name in columns}
        self._paged = [name for name in columns if layouts[name] is not None]
        self.pages = Pages(
            [layout for layout in layouts.values() if layout is not None],
            [schema.get_field_index(name) for name in self._paged],
        )
        self._chunks = Chunks(schema, [name for name in columns if layouts[name] is None])
        self._gatherers: dict[tuple[str, ...], Gatherer] = {}

    @property
    def names(self) -> list[str]:
        """The columns that are kept."""
        return [*self._paged, *self._chunks.columns]

    @property
    def only_pages(self) -> bool:
        """Whether no column lies in chunks."""
        return not self._chunks.columns

    @property
    def nbytes(self) -> int:
        """Bytes held for the rows."""
        return self.pages.nbytes + self._chunks.nbytes

    @property
    def bytes_on_disk(self) -> int:
        """Bytes of the rows that are not in memory."""
        return self.pages.file_bytes + self._chunks.bytes_on_disk

    @property
    def mapped_bytes(self) -> int:
        """Those of them that take memory once they are read."""
        return self.pages.mapped_bytes + self._chunks.bytes_on_disk

    def chill(self, file: Callable[[], Path], room: int | None = None) -> None:
        """Let rows lie in files, but for the last ones, until they are asked for.

        Wide values alone at first, and from then on as they come: all else with a later call.
        ``room``: bytes that there are for more, until the next call.
        """

        def opened() -> int:
            path = file()
            try:
                return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            finally:
                path.unlink(missing_ok=True)  # it goes with its descriptor

        self.pages.chill(opened, room)
        self._chunks.chill(file)

    def cool(self) -> None:
        """What was read of files need not stay in memory."""
        self.pages.cool()

    def begin(self, row: int) -> None:
        """The first row will have this arrival number; before any has come."""
        self.pages.begin(row)
        self._chunks.tail = row

    def append(self, table: pa.Table) -> None:
        """Keep the rows of a table."""
        self._chunks.append(table)
        if not self._paged:
            return
        few = table.num_columns <= 4 * len(self._paged) + NARROW  # the others would take time
        if few and table.schema.equals(self.schema):
            self.pages.append(table, False)
        else:
            self.pages.append(table.select(self._paged), True)

    def lend(self, table: pa.Table) -> None:
        """Keep the rows of a table; what lies in pages is copied when somebody asks for it.

        Not where several threads may ask.
        """
        self._chunks.append(table)
        if self._paged:
            self.pages.lend(table.select(self._paged))

    def expire(self, head: int) -> None:
        """Rows before ``head`` are not asked for any more."""
        self.pages.expire(head)
        self._chunks.expire(head)

    def place(self, name: str) -> int | None:
        """The number of a column in the pages; None if it lies in chunks."""
        return self._paged.index(name) if name in self._paged else None

    def take(self, names: list[str], rows: I64) -> list[Any]:
        """One array for each name, at arrival numbers ``rows``."""
        paged = tuple(name for name in names if name in self._paged)
        taken = dict(zip(paged, self._take_paged(paged, rows), strict=True)) if paged else {}
        others = [name for name in names if name not in taken]
        if others:
            taken |= zip(others, self._chunks.take(others, rows), strict=True)
        return [taken[name] for name in names]

    def _take_paged(self, names: tuple[str, ...], rows: I64) -> list[Any]:
        if names not in self._gatherers:
            schema = pa.schema([self.schema.field(name) for name in names])
            self._gatherers[names] = gatherer(
                [(0, self.pages, self._paged.index(name)) for name in names], schema
            )
        batches = self._gatherers[names].gather([np.ascontiguousarray(rows)])
        if len(batches) == 1:
            columns: list[Any] = batches[0].columns
            return columns
        return pa.Table.from_batches(batches).columns


def layout_of(arrow: pa.DataType) -> Layout | None:
    """How values of a type lie in a page; None: Arrow alone can gather them.

    >>> layout_of(pa.int32()), layout_of(pa.string()), layout_of(pa.struct([]))
    (('fixed', 4, 0, False, 0), ('variable', 1, 0, False, 4), None)
    """
    kind: Any = arrow
    while isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pat.is_boolean(kind):
        return "bits", 0, 0, False, 0
    if pat.is_string(kind) or pat.is_binary(kind):
        return "variable", 1, 0, False, 4
    if pat.is_large_string(kind) or pat.is_large_binary(kind):
        return "variable", 1, 0, False, 8
    if pat.is_list(kind) or pat.is_large_list(kind):
        width = _width(kind.value_type)
        return ("variable", width, 0, True, 4 if pat.is_list(kind) else 8) if width else None
    if pat.is_fixed_size_list(kind):
        width = _width(kind.value_type) * kind.list_size
        return ("fixed", width, kind.list_size, True, 0) if width else None
    width = _width(kind)
    return ("fixed", width, 0, False, 0) if width else None


def _width(arrow: Any) -> int:
    """Bytes of a value that is nothing but so many bytes; else 0."""
    simple = pat.is_primitive(arrow) or pat.is_decimal(arrow) or pat.is_fixed_size_binary(arrow)
    return arrow.bit_width // 8 if simple and not pat.is_boolean(arrow) else 0


def gatherer(
    columns: Sequence[tuple[int, Pages | None, int]], schema: pa.Schema, lacking: bool = False
) -> Gatherer:
    """Gathers columns of pages, and values that are there, into record batches of ``schema``.

    lacking: a row may be missing, as number -1
    """
    return Gatherer(columns, lambda at: pa.RecordBatch._import_from_c(at, schema), lacking)


def gatherer_of_all(
    output: ResultColumns, names: Sequence[str], payloads: Sequence[Payload], lacking: bool
) -> Gatherer | None:
    """Gathers whole results from pages; None if a column is computed or lies in chunks.

    What it takes is row numbers of every stream, and scores behind them.
    """
    columns: list[tuple[int, Pages | None, int]] = []
    for item in output.columns:
        score = output.score_of(item)
        if score is not None:
            columns.append((len(names) + score, None, int(pat.is_integer(item.field.type))))
            continue
        column = plain_column(item)
        if column is None:
            return None
        stream = list(names).index(column.stream)
        place = payloads[stream].place(column.name)
        if place is None:
            return None
        columns.append((stream, payloads[stream].pages, place))
    return gatherer(columns, output.schema, lacking)
