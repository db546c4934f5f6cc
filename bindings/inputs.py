"""Whatever a user hands in as a table, as a `pyarrow.Table`.

Tables that speak Arrow's C stream interface (polars, pandas, DuckDB, ...) are taken over without
copying; files are read by what their suffix says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.datasets import is_dataset, is_lazy, scan_of
from windjoin.errors import InputError, WindjoinError
from windjoin.layout import gatherable
from windjoin.row_dicts import are_rows, is_row, rows_as_table, values_as_column


def as_table(source: Any, stream: str, schema: pa.Schema | None = None) -> pa.Table:
    """``source`` as a table; ``stream`` is for messages, ``schema`` says what rows are, if known.

    Takes pyarrow tables, batches, lists of batches and readers; anything with
    ``__arrow_c_stream__``; dictionaries of columns (a matrix of NumPy holds a vector in each row);
    a row as a dictionary of scalars, and lists of them; paths, patterns and URIs of Parquet, Arrow,
    Feather, CSV and JSON-lines files or folders; datasets of pyarrow, lazy frames of polars.  A
    named pandas index becomes a column; string views (polars) become large strings.

    >>> as_table({"t": [1, 2], "k": ["x", "y"]}, "calls").num_rows
    2
    >>> as_table([{"t": 1, "k": "x"}, {"t": 2}], "calls").to_pylist()
    [{'t': 1, 'k': 'x'}, {'t': 2, 'k': None}]
    >>> as_table([], "calls", pa.schema([("t", pa.int64())])).num_rows
    0
    """
    try:
        table = _converted(source, stream, schema)
    except WindjoinError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        shown = repr(str(source)) if isinstance(source, (str, Path)) else type(source).__name__
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(
            f"stream {stream!r}: {shown} cannot be read as a table: {reason}"
        ) from error
    return gatherable(table)


def _converted(source: Any, stream: str, schema: pa.Schema | None) -> pa.Table:
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if isinstance(source, pa.RecordBatchReader):
        return source.read_all()
    if isinstance(source, (str, Path)) or is_lazy(source) or is_dataset(source):
        return _read(source, stream)
    if isinstance(source, Mapping) and is_row(source):
        return rows_as_table([source], stream, schema)
    if are_rows(source):
        return rows_as_table(source, stream, schema)
    if isinstance(source, (list, Mapping)) and not source:
        if schema is None:
            raise InputError(
                f"stream {stream!r}: {source!r} has no columns, and nothing has said yet which"
                " there are; give empty columns, a table, or schemas= where a session is opened"
            )
        return schema.empty_table()
    if isinstance(source, Mapping):
        columns = {name: _column(values, name, stream, schema) for name, values in source.items()}
        return pa.table(_equally_long(columns, stream))
    if isinstance(source, list) and source and isinstance(source[0], pa.RecordBatch):
        return pa.Table.from_batches(source)
    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "index"):
        return _from_pandas(source)
    if hasattr(source, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(source).read_all()
    if hasattr(source, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(source)])
    raise InputError(f"stream {stream!r}: {type(source).__name__} is not a table{_TABLES}")


def _column(values: Any, name: str, stream: str, schema: pa.Schema | None) -> Any:
    """A matrix is a column of vectors, one in each row; so is a stack of images.

    A list has the type that the stream is known to have, if all of it fits: of ``[None]`` alone
    nobody could tell.
    """
    if isinstance(values, list) and schema is not None and name in schema.names:
        try:
            return values_as_column(stream, name, values, schema)
        except InputError:
            return values  # whose own type is refused by name, where it does not fit
    if not isinstance(values, np.ndarray) or values.ndim < 2 or 0 in values.shape[1:]:
        return values
    width = math.prod(values.shape[1:])
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), width)


def _equally_long(columns: dict[str, Any], stream: str) -> dict[str, Any]:
    lengths = {name: len(values) for name, values in columns.items() if hasattr(values, "__len__")}
    if len(set(lengths.values())) > 1:
        first, *others = lengths
        other = next(name for name in others if lengths[name] != lengths[first])
        raise InputError(
            f"stream {stream!r}: column {first!r} has {lengths[first]} rows but column {other!r}"
            f" has {lengths[other]}; give all columns of a table the same number of rows"
        )
    return columns


_TABLES = (
    "; give a pyarrow, polars or pandas table, a DuckDB relation, a dictionary of columns, rows as"
    " dictionaries, or the path of a file"
)


def _from_pandas(frame: Any) -> pa.Table:
    named = any(name is not None for name in frame.index.names)
    return pa.Table.from_pandas(frame, preserve_index=named).replace_schema_metadata(None)


def _read(source: Any, stream: str) -> pa.Table:
    scan = scan_of(source, stream)
    if scan is None:
        with pa.memory_map(str(source)) as file:  # a stream of Arrow
            return pa.ipc.open_stream(file).read_all()
    batches = list(scan.batches(scan.schema.names))
    return pa.concat_tables(batches) if batches else scan.schema.empty_table()
