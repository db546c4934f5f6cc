"""Rows of Parquet files, read by the tasks that use them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from pyarrow import parquet
from windjoin.arrow.plan import ROW

BATCH_ROWS, BATCH_BYTES = 1 << 16, 16 << 20
BUFFER = 1 << 20  # of a column, instead of all its pages
SHARE_BYTES = 64 << 20  # in a file, of one task
MOST_FILES = 4096
OTHER_CALENDARS = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_File: Any = parquet.ParquetFile


@dataclass(frozen=True, slots=True)
class ParquetPart:
    """Some row groups of a file."""

    path: str
    groups: tuple[int, ...]


Share = tuple[ParquetPart, ...]  # of one task


@dataclass(frozen=True, slots=True)
class Files:
    """Parquet files by their footers: what columns they have, and where their rows are."""

    paths: tuple[str, ...]
    schemas: tuple[pa.Schema, ...]
    bytes: tuple[tuple[int, ...], ...]  # of every row group of every file, as it is in memory
    rows: int
    stored: int  # bytes that the files take

    def hold(self, schema: pa.Schema) -> bool:
        """Whether all files have these columns, with the same values in the same types."""
        wanted = [field for field in schema if field.name != ROW]
        return all(
            own.names.count(field.name) == 1
            and "." not in field.name
            and same_values(own.field(field.name).type, field.type)
            for own in set(self.schemas)
            for field in wanted
        )

    @property
    def total(self) -> int:
        """Bytes that all columns of all rows take in memory."""
        return sum(map(sum, self.bytes))

    def shares(self, tasks: int) -> tuple[Share, ...]:
        """All row groups, in order, for at least so many tasks if there are as many groups."""
        most = min(SHARE_BYTES, self.total / max(1, tasks))
        found: list[list[ParquetPart]] = [[]]
        filled = 0
        for path, sizes in zip(self.paths, self.bytes, strict=True):
            for group, size in enumerate(sizes):
                if found[-1] and filled + size / 2 > most:
                    found.append([])
                    filled = 0
                found[-1].append(ParquetPart(path, (group,)))
                filled += size
        return tuple(tuple(share) for share in found)


def footers(paths: Sequence[str]) -> Files | None:
    """What the files hold; None where that would have to be interpreted, or cannot be read here.

    >>> footers(["/nowhere/to/be/found.parquet"])
    """
    schemas, sizes, kept, rows, stored = [], [], [], 0, 0
    if len(paths) > MOST_FILES:
        return None
    for path in sorted(paths):
        try:
            size = Path(path).stat().st_size
            if not size:
                continue  # Spark passes over these as well
            file = opened(path)
        except (OSError, pa.ArrowException):
            return None
        with file:
            described = file.metadata
            if any(key in (described.metadata or {}) for key in OTHER_CALENDARS):
                return None
            kept.append(path)
            rows += described.num_rows
            stored += size
            schemas.append(_schema(file))
            groups = range(described.num_row_groups)
            sizes.append(tuple(described.row_group(n).total_byte_size for n in groups))
    return Files(tuple(kept), tuple(schemas), tuple(sizes), rows, stored)


def opened(path: str) -> Any:
    """A file; times of the old kind, which Spark writes, in microseconds like those of the new."""
    return _File(path, buffer_size=BUFFER, pre_buffer=False, coerce_int96_timestamp_unit="us")


def _schema(file: Any) -> pa.Schema:
    """The columns of a file; times of the old kind are in UTC, which no file says."""
    schema: Any = file.schema_arrow.remove_metadata()
    for number in range(len(file.schema)):
        stored = file.schema.column(number)
        if stored.physical_type == "INT96" and stored.path in schema.names:
            place = schema.names.index(stored.path)
            schema = schema.set(place, pa.field(stored.path, pa.timestamp("us", "UTC")))
    found: pa.Schema = schema
    return found


def same_values(given: Any, wanted: Any) -> bool:
    """Whether a cast between the two types only renames them.

    >>> same_values(pa.large_string(), pa.string()), same_values(pa.int32(), pa.int64())
    (True, False)
    """
    return bool(_plain(given) == _plain(wanted))


def _plain(arrow: Any) -> Any:
    """The type without what changes no value: sizes of offsets, zones, names, nullability."""
    if pat.is_timestamp(arrow) and arrow.tz is not None:
        return pa.timestamp(arrow.unit, "UTC")
    if pat.is_large_string(arrow):
        return pa.string()
    if pat.is_large_binary(arrow):
        return pa.binary()
    if pat.is_map(arrow):
        return pa.map_(_plain(arrow.key_type), _plain(arrow.item_type))
    if pat.is_list(arrow) or pat.is_large_list(arrow) or pat.is_fixed_size_list(arrow):
        return pa.list_(_plain(arrow.value_type))
    if pat.is_struct(arrow):
        return pa.struct([(field.name, _plain(field.type)) for field in arrow])
    return arrow


def batch_rows(file: Any, groups: Sequence[int], names: Sequence[str]) -> int:
    """As many rows at a time as memory should hold of these columns."""
    rows = size = 0
    for group in map(file.metadata.row_group, groups):
        rows += group.num_rows
        columns = map(group.column, range(group.num_columns))
        size += sum(
            column.total_uncompressed_size
            for column in columns
            if column.path_in_schema.split(".")[0] in names
        )
    return max(1, min(BATCH_ROWS, BATCH_BYTES * rows // max(1, size)))


def read(share: Share, names: Sequence[str], first: int) -> Iterator[pa.RecordBatch]:
    """The columns ``names`` of a share; row numbers from ``first`` are their identity."""
    stored = [name for name in names if name != ROW]
    for part in share:
        with opened(part.path) as file:
            size, groups = batch_rows(file, part.groups, stored), list(part.groups)
            for batch in file.iter_batches(
                size, row_groups=groups, columns=stored, use_threads=False
            ):
                columns = {name: batch.column(name) for name in stored}
                if ROW in names:
                    columns[ROW] = pa.array(np.arange(first, first + batch.num_rows))
                first += batch.num_rows
                yield pa.RecordBatch.from_arrays(
                    [columns[name] for name in names], names=list(names)
                )
