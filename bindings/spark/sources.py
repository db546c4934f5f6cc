"""Where the rows of a frame come from: Spark's own operators, or straight from Parquet files.

A frame that is nothing but Parquet files on a file system of this machine is read by the tasks
themselves: Spark would make rows of columns, and columns of rows again, for more than all other
steps of a join take together.  Whatever Spark would have to interpret is left to Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyspark.sql import functions as F
from windjoin.arrow.parquet import Files, Share, footers, read
from windjoin.arrow.plan import ROW

DATASOURCES = "org.apache.spark.sql.execution.datasources."
PARQUET = f"{DATASOURCES}parquet.ParquetFileFormat"
LISTED = f"{DATASOURCES}InMemoryFileIndex"
RELATION = f"{DATASOURCES}LogicalRelation"
IN_FILES = f"{DATASOURCES}HadoopFsRelation"
CATALYST = "org.apache.spark.sql.catalyst."
PROJECT = f"{CATALYST}plans.logical.Project"
COLUMN = f"{CATALYST}expressions.AttributeReference"
PLAIN_OPTIONS = {"path", "paths"}
RIGHT = {
    "spark.windjoin.readFiles": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96TimestampConversion": "false",
}


class Read(Protocol):
    """How a task gets at the rows of its partition."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows, under the names of their columns."""


@dataclass(frozen=True, slots=True)
class Handed:
    """Rows that Spark hands over, in columns with numbers for names."""

    names: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays(batch.columns, names=list(self.names))


@dataclass(frozen=True, slots=True)
class Fetched:
    """Rows of files: Spark hands over nothing but the numbers of shares."""

    names: tuple[str, ...]
    shares: tuple[Share, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers: list[int] = batch.column(0).to_pylist()  # type: ignore[assignment]
            for number in numbers:
                if number < len(self.shares):
                    yield from read(self.shares[number], self.names, number << 33)

    def all(self) -> Iterator[pa.RecordBatch]:
        """The rows of all shares, read here and now."""
        for number, share in enumerate(self.shares):
            yield from read(share, self.names, number << 33)


class FrameSource:
    """One frame as the tasks of a join see it."""

    def __init__(self, frame: Any, tasks: int, direct: bool) -> None:
        self.frame, self.tasks, self.direct = frame, tasks, direct

    @cached_property
    def files(self) -> Files | None:
        """The files that the frame is, if it is nothing else and tasks may read them."""
        paths = files_of(self.frame) if self.direct else None
        return None if paths is None else footers(paths)

    @property
    def rows(self) -> int:
        """Of the files."""
        return 0 if self.files is None else self.files.rows

    def holds(self, schema: pa.Schema) -> bool:
        """Whether tasks can read these columns from the files."""
        return self.files is not None and self.files.hold(schema)

    def take(self, schema: pa.Schema) -> tuple[Any, Read]:
        """A frame for `mapInArrow`, and how its tasks get rows with the columns of ``schema``."""
        read = self.fetched(schema)
        if read is None:
            return self.handed(schema)
        return numbers(self.frame.sparkSession, len(read.shares)), read

    def fetched(self, schema: pa.Schema) -> Fetched | None:
        """The columns of ``schema`` from files; None where Spark has to hand them over."""
        if self.files is None or not self.holds(schema):
            return None
        shares = self.files.shares(self.tasks)
        return Fetched(tuple(schema.names), shares if shares[0] else ())

    def handed(self, schema: pa.Schema, steady: Sequence[str] | None = None) -> tuple[Any, Handed]:
        """A frame with the columns of ``schema``, and what names them.

        With ``steady``, rows have the same numbers whenever the frame is computed; rows that are
        equal in these columns may be taken for each other.
        """
        names = tuple(schema.names)
        chosen = [F.monotonically_increasing_id() if n == ROW else column(n) for n in names]
        # numbers for names: `mapInArrow` refuses names with dots
        numbered = [one.alias(f"c{number}") for number, one in enumerate(chosen)]
        frame = self.frame if steady is None else self._steady(steady)
        return frame.select(numbered), Handed(names)

    def _steady(self, names: Sequence[str]) -> Any:
        """The rows in places that their contents alone decide.

        A frame may give its rows in another order, or cut into other partitions, each time it is
        computed; a number of a row then means another row.  Equal rows may change places.
        """
        kinds = {field.name: field.dataType for field in self.frame.schema}
        keys = [comparable(column(name), kinds[name]) for name in names]
        spread = self.frame.repartition(self.tasks, F.xxhash64(*keys))
        return spread.sortWithinPartitions(*keys)


def numbers(spark: Any, count: int) -> Any:
    """A number for each of ``count`` tasks."""
    return spark.range(0, count, 1, max(1, count))


def comparable(value: Any, kind: Any) -> Any:
    """A column, as something that can be sorted and hashed."""
    return F.to_json(F.struct(value)) if "map<" in kind.simpleString() else value


def column(name: str) -> Any:
    """A column by its name as it is, dots and backticks included."""
    return F.col("`" + name.replace("`", "``") + "`")


def sources(frames: Sequence[Any], tasks: int) -> list[FrameSource]:
    """A source for each frame; one for all streams that are the same frame."""
    first = frames[0]
    direct = getattr(first, "_jdf", None) is not None and files_are_read(first.sparkSession)
    known = {id(frame): FrameSource(frame, tasks, direct) for frame in frames}
    return [known[id(frame)] for frame in frames]


def parquet_paths(frame: Any) -> list[str] | None:
    """The local Parquet files that a frame is, whole and unchanged; None if it is more or less.

    And None where Spark's settings or Spark Connect have it read them.
    """
    if getattr(frame, "_jdf", None) is None or not files_are_read(frame.sparkSession):
        return None
    return files_of(frame)


def files_are_read(spark: Any) -> bool:
    """Whether nothing is set that Spark would have to heed in reading files."""
    wanted = {key: spark.conf.get(key, right) for key, right in RIGHT.items()}
    return all(wanted[key].upper() == right.upper() for key, right in RIGHT.items())


def files_of(frame: Any) -> list[str] | None:
    """`parquet_paths` where files are read."""
    node = frame._jdf.queryExecution().optimizedPlan()
    while chooses_columns(node):
        node = node.child()
    relation = node.relation() if kind_of(node) == RELATION else None
    if relation is None or kind_of(relation) != IN_FILES:
        return None
    location = relation.location()
    options = {str(key).lower() for key in relation.options().keys().mkString("\n").split("\n")}
    if (
        kind_of(relation.fileFormat()) != PARQUET
        or kind_of(location) != LISTED
        or not relation.partitionSchema().isEmpty()
        or not options - {""} <= PLAIN_OPTIONS
    ):
        return None
    return local_paths(location.inputFiles())


def chooses_columns(node: Any) -> bool:
    """Whether an operator only leaves columns out, or puts them in another order."""
    if kind_of(node) != PROJECT:
        return False
    chosen = node.projectList()
    return all(kind_of(chosen.apply(at)) == COLUMN for at in range(chosen.size()))


def local_paths(addresses: Iterable[str]) -> list[str] | None:
    """Paths of ``file:`` addresses, without what Spark does not read; None if there are others."""
    parts = [urlsplit(str(address)) for address in addresses]
    if any(part.scheme != "file" for part in parts):
        return None
    paths = [unquote(part.path) for part in parts]
    return [path for path in paths if not PurePath(path).name.startswith(("_", "."))]


def kind_of(node: Any) -> str:
    """The class of an object in the JVM."""
    return str(node.getClass().getName())
