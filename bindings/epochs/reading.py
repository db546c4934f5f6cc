"""What a log holds, for whoever wants to look."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from windjoin.epochs.deciding import not_written, report_of, totals_of
from windjoin.epochs.manifest import NAME, Manifest, read_manifest
from windjoin.epochs.slotfile import SlotFile, read_slot
from windjoin.epochs.storage import Folder, local_path
from windjoin.epochs.stores import below, folder_at, shown
from windjoin.errors import LogError, hint

_FIELDS: list[Any] = [
    ("epoch", pa.int64()), ("run", pa.string()), ("slot", pa.int32()), ("stream", pa.string()),
    ("kind", pa.string()), ("rows", pa.int64()), ("earliest", pa.int64()), ("latest", pa.int64()),
    ("bytes", pa.int64()),
]  # fmt: skip
SECTIONS = pa.schema(_FIELDS)


@dataclass(frozen=True, slots=True)
class Log:
    """The log of one streaming query as its last epoch left it."""

    folder: Folder
    last: Manifest

    def files(self) -> Iterator[tuple[int, str, int, SlotFile]]:
        """Epoch, run, slot and file of all that the last epoch's window reads, and its own."""
        for entry in self.last.window:
            for slot in range(entry.slots):
                file = read_slot(self.folder, f"{entry.folder}/{slot}")
                yield entry.epoch, entry.run, slot, file
        last = self.last
        for slot in range(last.slots):
            if self.folder.has(f"{last.folder}/{slot}"):  # it may be at work still
                file = read_slot(self.folder, f"{last.folder}/{slot}")
                yield last.epoch, last.run, slot, file

    @property
    def names(self) -> list[str]:
        """Of the streams."""
        return list(self.last.schemas)

    @property
    def totals(self) -> dict[str, Any]:
        """Counts of all epochs that are done, by stream."""
        if not_written(self.folder, self.last):
            return self.last.totals
        return totals_of(self.names, self.last.totals, report_of(self.folder, self.last))

    def sections(self) -> pa.Table:
        """One row for the rows of each stream in each file."""
        found: list[dict[str, Any]] = [
            {
                "epoch": epoch, "run": run, "slot": slot, "stream": self.names[one.stream],
                "kind": one.kind, "rows": one.rows, "earliest": one.low, "latest": one.high,
                "bytes": one.length,
            }
            for epoch, run, slot, file in self.files()
            for one in file.footer.sections
        ]  # fmt: skip
        return pa.Table.from_pylist(found, SECTIONS)

    def rows(self, stream: str) -> pa.Table:
        """All rows of a stream that are held, copies of rows in several slots among them."""
        if stream not in self.names:
            raise LogError(
                f"stream {stream!r} is not in the log in {self.folder.path()}"
                f"{hint(str(stream), self.names)}"
            )
        schema = schema_from(self.last.schemas[stream])
        whole = pa.schema([("epoch", pa.int64()), ("slot", pa.int32()), *schema])
        parts = []
        for epoch, _, slot, file in self.files():
            for one in file.footer.sections:
                if self.names[one.stream] == stream:
                    where: list[Any] = [
                        pa.array([epoch] * one.rows, pa.int64()),
                        pa.array([slot] * one.rows, pa.int32()),
                    ]
                    columns = [*where, *file.rows(one, schema).columns]
                    parts.append(pa.RecordBatch.from_arrays(columns, schema=whole))
        return pa.Table.from_batches(parts, whole)


def open_log(path: str) -> Log:
    """The log in a folder: that of a query, of several, or a checkpoint that has one."""
    root = local_path(path)
    for folder in _below(folder_at(root), 3):
        found = last_manifest(folder)
        if found is not None:
            return Log(folder, found)
    raise LogError(
        f"there is no log in {shown(root)}; give the folder that log= named, or the checkpoint of"
        " windjoin.spark.start"
    )


def _below(folder: Folder, depth: int) -> Iterator[Folder]:
    yield folder
    if depth:
        for name in folder.names():
            if not name.isdigit():
                yield from _below(folder_at(below(folder.root, name)), depth - 1)


def last_manifest(folder: Folder) -> Manifest | None:
    """What was decided last in the log of a query; None if nothing was."""
    for epoch in sorted((int(name) for name in folder.names() if name.isdigit()), reverse=True):
        for run in folder.names(f"{epoch:010d}"):
            if folder.has(f"{epoch:010d}/{run}/{NAME}"):
                return read_manifest(folder, epoch, run)
    return None


def schema_from(text: str) -> pa.Schema:
    """The schema again."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
