"""Tables that are read in parts: files, folders, URIs, datasets, lazy frames, relations.

Of Parquet and Arrow files the parts are row groups and record batches, with what statistics say of
them; of everything else rows come one batch after the other.
"""

from __future__ import annotations

import glob
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from windjoin.errors import InputError
from windjoin.layout import gatherable

FORMATS = {
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc",
    ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json",
}  # fmt: skip
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
BATCH_ROWS = 1 << 16
Ends = dict[str, tuple[Any, Any]]  # least and greatest value of columns, as Arrow arrays of one


class FilePart:
    """Some rows of a table that can be read on their own."""

    def __init__(self, fragment: Any, schema: pa.Schema, group: int | None, rows: int) -> None:
        self._fragment, self._schema, self._group = fragment, schema, group
        self.rows = rows

    def read(self, columns: Sequence[str]) -> pa.Table:
        """The rows, with these columns."""
        scanner = self._fragment.scanner(schema=self._schema, columns=list(columns))
        table: pa.Table = scanner.to_table()
        return gatherable(table)

    def ends(self, columns: Sequence[str]) -> Ends:
        """What statistics say of columns, where they say something."""
        found: Ends = {}
        if self._group is None:
            return found
        metadata = self._fragment.metadata.row_group(self._group)
        places = {metadata.column(k).path_in_schema: k for k in range(metadata.num_columns)}
        for name in columns:
            if name in places:
                ends = _ends(metadata.column(places[name]), self._schema.field(name).type)
                if ends is not None:
                    found[name] = ends
        return found


def _ends(column: Any, kind: pa.DataType) -> tuple[Any, Any] | None:
    """Least and greatest value of a column of a row group; of nanoseconds by their numbers."""
    statistics = column.statistics
    if statistics is None or not statistics.has_min_max or pa.types.is_nested(kind):
        return None
    if column.physical_type == "INT96":
        return None
    ends = statistics.min, statistics.max
    if pa.types.is_timestamp(kind):
        told = statistics.logical_type.to_json()
        units = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
        unit = next((short for name, short in units.items() if name in told), None)
        if unit is None:
            return None
        made = pa.array([statistics.min_raw, statistics.max_raw], pa.int64())
        ends_in = made.cast(pa.timestamp(unit, kind.tz))
    else:
        try:
            made = pa.array(list(ends))
            ends_in = made.cast(kind)
        except (pa.ArrowException, TypeError, ValueError):
            return None
    return ends_in.slice(0, 1), ends_in.slice(1, 1)


class Scan(ABC):
    """A table that can be read in parts, or one batch after the other."""

    schema: pa.Schema  # in types that rows can be gathered from
    rows: int | None = None  # None: nobody knows

    def parts(self) -> list[FilePart] | None:
        """What can be read on its own, in any order; None: nothing can."""
        return None

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows in the order in which they lie."""


class DatasetScan(Scan):
    """A dataset of Arrow."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self.schema = gatherable(dataset.schema.empty_table()).schema
        self._parts: list[FilePart] | None = None
        if dataset_format(dataset) == "parquet":
            self._parts = [
                FilePart(one, dataset.schema, one.row_groups[0].id, one.row_groups[0].num_rows)
                for fragment in dataset.get_fragments()
                for one in fragment.split_by_row_group()
            ]
            self.rows = sum(part.rows for part in self._parts)

    def parts(self) -> list[FilePart] | None:
        return self._parts

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        options: Any = {"batch_readahead": 4, "fragment_readahead": 1, "batch_size": BATCH_ROWS}
        for batch in self.dataset.to_batches(columns=list(columns), **options):
            if batch.num_rows:
                yield gatherable(pa.Table.from_batches([batch]))


class LazyScan(Scan):
    """A lazy frame of polars."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        empty = frame.head(0).collect()
        self.schema = gatherable(pa.RecordBatchReader.from_stream(empty).read_all()).schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        chosen = self.frame.select(list(columns))
        for part in chosen.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True):
            yield gatherable(pa.RecordBatchReader.from_stream(part).read_all())


class RelationScan(Scan):
    """A relation of DuckDB."""

    def __init__(self, relation: Any) -> None:
        self.relation = relation
        empty = relation.limit(0).to_arrow_table()
        self.schema = gatherable(empty).schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
        for batch in self.relation.project(quoted).to_arrow_reader(BATCH_ROWS):
            if batch.num_rows:
                yield gatherable(pa.Table.from_batches([batch]))


def dataset_format(dataset: Any) -> str:
    """``"parquet"``, ...; of what is not in files nothing."""
    made = getattr(dataset, "format", None)
    return "" if made is None else str(made.default_extname)


def is_lazy(given: Any) -> bool:
    """Whether it is a lazy frame of polars."""
    return type(given).__module__.startswith("polars.") and type(given).__name__ == "LazyFrame"


def is_dataset(given: Any) -> bool:
    """Whether it is a dataset of pyarrow."""
    return type(given).__module__.startswith("pyarrow._dataset") and hasattr(given, "get_fragments")


def is_relation(given: Any) -> bool:
    """Whether it is a relation of DuckDB."""
    return type(given).__name__ == "DuckDBPyRelation"


def is_uri(given: Any) -> bool:
    """Whether a text says in which file system it is to be looked up."""
    return isinstance(given, str) and ("://" in given or given.startswith("file:"))


def scan_of(given: Any, stream: str) -> Scan | None:
    """What reads it in parts; None: it is a table as it is, or has to be read whole."""
    if is_dataset(given):
        return DatasetScan(given)
    if is_lazy(given):
        return LazyScan(given)
    if is_relation(given):
        return RelationScan(given)
    if not isinstance(given, (str, Path)):
        return None
    try:
        return _of_path(str(given), stream)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(
            f"stream {stream!r}: {str(given)!r} cannot be read as a table: {reason}"
        ) from error


def _of_path(path: str, stream: str) -> Scan | None:
    import pyarrow.dataset

    ds: Any = pyarrow.dataset

    if is_uri(path):
        from pyarrow import fs

        system, inner = fs.FileSystem.from_uri(path)
        return DatasetScan(_dataset(path, inner, _kind_in(system, inner, stream, path), system))
    names: Any = path
    if glob.has_magic(path) and not Path(path).exists():
        names = sorted(glob.glob(path, recursive=True))
        if not names:
            raise InputError(f"stream {stream!r}: no file matches {path!r}")
        kind = _known(names[0], stream)
        return None if kind is None else DatasetScan(ds.dataset(names, format=kind))
    if not Path(path).exists():
        raise InputError(f"stream {stream!r}: there is no file {path!r}")
    if Path(path).is_dir():
        kind = _kind_in(_local(), path, stream, path)
        return DatasetScan(_dataset(path, path, kind, None))
    kind = _known(path, stream)
    if kind is None or (kind == "ipc" and not _is_ipc_file(path)):
        return None  # a stream of Arrow
    return DatasetScan(ds.dataset(path, format=kind))


def _local() -> Any:
    from pyarrow import fs

    return fs.LocalFileSystem()


def _dataset(given: str, inner: str, kind: str, system: Any) -> Any:
    import pyarrow.dataset

    ds: Any = pyarrow.dataset

    if system is None:
        return ds.dataset(given, format=kind, partitioning="hive")
    return ds.dataset(inner, format=kind, partitioning="hive", filesystem=system)


def _kind_in(system: Any, path: str, stream: str, shown: str) -> str:
    """The format of a file or of the files in a folder, by the first that has a known suffix."""
    from pyarrow import fs

    info = system.get_file_info(path)
    if info.type == fs.FileType.NotFound:
        raise InputError(f"stream {stream!r}: there is no file {shown!r}")
    if info.type == fs.FileType.File:
        known = _known(path, stream)
        assert known is not None
        return known
    inside = system.get_file_info(fs.FileSelector(path, recursive=True))
    for one in sorted(inside, key=lambda one: one.path):
        suffix = _suffix(one.path)
        if one.type == fs.FileType.File and suffix in FORMATS:
            return FORMATS[suffix]
    raise InputError(
        f"stream {stream!r}: there is no Parquet file in {shown!r}, and no other that is known"
    )


def _suffix(path: str) -> str:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _known(path: str, stream: str) -> str | None:
    suffix = _suffix(path)
    if suffix == ".arrows":
        return None
    if suffix not in FORMATS:
        raise InputError(
            f"stream {stream!r}: {path!r} has no suffix that says what it holds;"
            f" known are {', '.join([*FORMATS, '.arrows'])}"
        )
    return FORMATS[suffix]


def _is_ipc_file(path: str) -> bool:
    """Whether it is an Arrow file rather than a stream: the first bytes tell, not the suffix."""
    with open(path, "rb") as file:
        return file.read(6) == b"ARROW1"
