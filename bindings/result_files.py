"""Results to files as they come: Parquet, Arrow, CSV, JSON lines, or standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from windjoin.errors import InputError


class Writer(Protocol):
    """What takes one batch after the other."""

    def write_batch(self, batch: pa.RecordBatch) -> None: ...
    def close(self) -> None: ...


def write_batches(batches: Iterator[pa.RecordBatch], schema: pa.Schema, output: Any) -> int:
    """Results to a file as they come, whole or not at all; how many.  ``"-"``: CSV to stdout."""
    if str(output) == "-":
        return _written(batches, _csv(sys.stdout.buffer, schema))
    path = Path(output)
    make = WRITERS.get(path.suffix.lower())
    if make is None:
        raise InputError(
            f"output {str(path)!r}: results are written as they come to a file whose suffix says"
            f" how: {', '.join(WRITERS)}; or to standard output, -"
        )
    draft = path.with_name(f".{path.name}.part")
    try:
        with open(draft, "wb") as file:
            rows = _written(batches, make(file, schema))
        draft.replace(path)
    except (OSError, pa.ArrowException) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"output {str(path)!r} cannot be written: {reason}") from error
    finally:
        draft.unlink(missing_ok=True)
    return rows


def _written(batches: Iterator[pa.RecordBatch], writer: Writer) -> int:
    rows = 0
    with closing(writer):
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def _parquet(file: Any, schema: pa.Schema) -> Writer:
    from pyarrow import parquet

    writer: Writer = parquet.ParquetWriter(file, schema)
    return writer


def _arrow(file: Any, schema: pa.Schema) -> Writer:
    writer: Writer = pa.ipc.new_file(file, schema)
    return writer


def _csv(file: Any, schema: pa.Schema) -> Writer:
    from pyarrow import csv

    writer: Writer = csv.CSVWriter(file, schema)
    return writer


class JsonLines:
    """A line for each row, an object with its columns."""

    def __init__(self, file: Any, schema: pa.Schema) -> None:
        self._file = file
        self._names = [json.dumps(name) for name in schema.names]

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write rows."""
        pieces: list[Any] = []
        for number, (name, column) in enumerate(zip(self._names, batch.columns, strict=True)):
            pieces += [("{" if number == 0 else ", ") + name + ": ", json_texts(column)]
        lines = pc.binary_join_element_wise(*pieces, "}\n", "")
        self._file.write(_text_of(lines))

    def close(self) -> None:
        """All has been written."""


def _text_of(lines: Any) -> bytes:
    """All texts of an array one after the other."""
    ends: Any = pa.array([0, len(lines)], pa.int32())
    whole: Any = pc.binary_join(pa.ListArray.from_arrays(ends, lines), "")
    return bytes(whole[0].as_buffer())


def json_texts(column: Any) -> Any:
    """Values as JSON, column by column.

    >>> json_texts(pa.array(['a"b', None])).to_pylist()
    ['"a\\\\"b"', 'null']
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return json_texts(column.dictionary_decode())
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        texts = pc.cast(column, pa.string())
    elif pa.types.is_floating(kind):
        finite = pc.is_finite(pc.cast(column, pa.float64()))
        texts = pc.if_else(finite, pc.cast(column, pa.string()), None)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts = _quoted(column)
    elif pa.types.is_temporal(kind):
        texts = pc.binary_join_element_wise('"', pc.cast(column, pa.string()), '"', "")
    else:
        values = (None if value is None else json.dumps(value, default=str)
                  for value in column.to_pylist())  # fmt: skip
        texts = pa.array(values, pa.string())
    return pc.fill_null(pc.cast(texts, pa.string()), "null")


def _quoted(column: Any) -> Any:
    """Texts in quotes; what JSON wants escaped is."""
    texts = pc.replace_substring(column, "\\", "\\\\")
    texts = pc.replace_substring(texts, '"', '\\"')
    if pc.any(pc.match_substring_regex(texts, r"[\x00-\x1f]")).as_py():
        for code in range(32):
            texts = pc.replace_substring(texts, chr(code), json.dumps(chr(code))[1:-1])
    return pc.binary_join_element_wise('"', pc.cast(texts, pa.string()), '"', "")


WRITERS: dict[str, Callable[[Any, pa.Schema], Writer]] = {
    ".parquet": _parquet,
    ".pq": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
    ".ipc": _arrow,
    ".csv": _csv,
    ".json": JsonLines,
    ".jsonl": JsonLines,
    ".ndjson": JsonLines,
}
