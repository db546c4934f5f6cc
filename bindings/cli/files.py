"""Results to a file, in the format that its suffix names."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from windjoin.errors import InputError
from windjoin.result_files import JsonLines, write_batches


def check_output(path: Path) -> None:
    """Refuse, before the work begins, a path that results cannot be written to."""
    if str(path) == "-":
        return
    if path.suffix.lower() not in _WRITERS:
        raise InputError(
            f"output {str(path)!r} has no suffix that says how to write it;"
            f" known are {', '.join(_WRITERS)}"
        )
    if path.is_dir():
        raise InputError(f"output {str(path)!r} is a folder; give a file in it")
    if not path.parent.is_dir():
        raise InputError(f"output {str(path)!r}: there is no folder {str(path.parent)!r}")


def write_table(table: pa.Table, path: Path) -> None:
    """Write the whole file, or leave what was there before; ``-`` is CSV to standard output."""
    check_output(path)
    if str(path) == "-":
        write_batches(iter(table.to_batches()), table.schema, path)
        return
    draft = None
    try:
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
        _WRITERS[path.suffix.lower()](table, draft)
        os.chmod(draft, 0o666 & ~_umask())
        os.replace(draft, path)
    except (OSError, pa.ArrowException) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"output {str(path)!r} cannot be written: {reason}") from error
    finally:
        if draft is not None and os.path.exists(draft):
            os.unlink(draft)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _write_parquet(table: pa.Table, path: str) -> None:
    from pyarrow import parquet

    parquet.write_table(table, path)


def _write_arrow(table: pa.Table, path: str) -> None:
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _write_csv(table: pa.Table, path: str) -> None:
    from pyarrow import csv

    csv.write_csv(table, path)


def _write_json(table: pa.Table, path: str) -> None:
    with open(path, "wb") as file:
        writer = JsonLines(file, table.schema)
        for batch in table.to_batches():
            writer.write_batch(batch)


_WRITERS: dict[str, Callable[[pa.Table, str], Any]] = {
    ".parquet": _write_parquet,
    ".pq": _write_parquet,
    ".arrow": _write_arrow,
    ".feather": _write_arrow,
    ".ipc": _write_arrow,
    ".csv": _write_csv,
    ".json": _write_json,
    ".jsonl": _write_json,
    ".ndjson": _write_json,
}
