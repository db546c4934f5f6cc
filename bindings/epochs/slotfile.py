"""The file of one slot and epoch: rows as Arrow lays them out, and a footer about them.

Sections lie at multiples of 64 bytes, so that they are usable as they are mapped.  The footer is
JSON; its length and a mark end the file, so a file that was cut off is known as such.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from windjoin.epochs.storage import Bytes, Folder
from windjoin.errors import LogError

VERSION = 1
MARK = b"windjoin"
ALIGNED = 64
TAIL = 8 + len(MARK)
NEW, MERGED = "new", "merged"
ALONE = "alone"


@dataclass(frozen=True, slots=True)
class SlotSection:
    """Rows of one stream, in order of time."""

    kind: str  # NEW: of this epoch; MERGED: of earlier ones; ALONE: rows that can meet none
    stream: int
    offset: int
    length: int
    rows: int
    low: int  # earliest time
    high: int  # latest

    @property
    def apart(self) -> bool:
        """Whether its rows are in no window."""
        return self.kind not in (NEW, MERGED)


@dataclass(frozen=True, slots=True)
class Footer:
    """What a slot's file holds, and what was counted."""

    slot: int
    sections: tuple[SlotSection, ...]
    counts: tuple[dict[str, Any], ...] = ()  # slot 0: of all rows of the epoch, by stream
    version: int = VERSION

    def told(self) -> dict[str, Any]:
        """As JSON has it."""
        told = {name: getattr(self, name) for name in self.__slots__}
        names = SlotSection.__slots__
        told["sections"] = [{name: getattr(one, name) for name in names} for one in self.sections]
        return told

    @property
    def bytes(self) -> int:
        """Of the rows of this epoch."""
        return sum(one.length for one in self.sections if one.kind == NEW)


@dataclass
class SlotWriter:
    """Makes the file of a slot."""

    slot: int
    parts: list[Bytes] = field(default_factory=list)
    sections: list[SlotSection] = field(default_factory=list)
    size: int = 0

    def add(self, kind: str, stream: int, rows: pa.RecordBatch, low: int, high: int) -> None:
        """Rows of a stream, in order of time."""
        payload = rows.serialize()
        self._pad()
        self.sections.append(
            SlotSection(kind, stream, self.size, payload.size, rows.num_rows, low, high)
        )
        self.parts.append(payload)
        self.size += payload.size

    def _pad(self) -> None:
        gap = -self.size % ALIGNED
        if gap:
            self.parts.append(bytes(gap))
            self.size += gap

    def finish(self, counts: Sequence[dict[str, Any]]) -> list[Bytes]:
        """The whole file."""
        footer = Footer(self.slot, tuple(self.sections), tuple(counts))
        text = json.dumps(footer.told()).encode()
        return [*self.parts, text, len(text).to_bytes(8, "little"), MARK]


@dataclass(frozen=True, slots=True)
class SlotFile:
    """A slot's file, mapped."""

    data: pa.Buffer
    footer: Footer

    def rows(self, section: SlotSection, schema: pa.Schema) -> pa.RecordBatch:
        """The rows of a section, as they lie in the file."""
        return pa.ipc.read_record_batch(self.data.slice(section.offset, section.length), schema)


def read_slot(folder: Folder, name: str) -> SlotFile:
    """Open the file of a slot."""
    data = folder.map(name)
    return SlotFile(data, _footer(folder, name, data))


def read_footer(folder: Folder, name: str) -> Footer:
    """What a slot's file tells of itself, without its rows."""
    data = folder.ending(name)
    length = _length(data)
    if length is not None and length > data.size - TAIL:
        data = folder.ending(name, length + TAIL)
    return _footer(folder, name, data)


def _length(data: pa.Buffer) -> int | None:
    """Of the footer; None if the end is not that of a whole file."""
    if data.size < TAIL or data[-len(MARK) :].to_pybytes() != MARK:
        return None
    return int.from_bytes(data[-TAIL : -len(MARK)].to_pybytes(), "little")


def _footer(folder: Folder, name: str, data: pa.Buffer) -> Footer:
    length = _length(data)
    if length is None or length > data.size - TAIL:
        raise LogError(
            f"{folder.path(name)} is cut off: {data.size} bytes, and no footer at their end;"
            " restore it from a copy of the log, or begin anew with an empty checkpoint"
        )
    told = json.loads(data[-TAIL - length : -TAIL].to_pybytes())
    if told["version"] > VERSION:
        raise LogError(
            f"{folder.path(name)} has format {told['version']}, and this windjoin reads formats up"
            f" to {VERSION}; go on with the newer windjoin that wrote it"
        )
    sections = tuple(SlotSection(**one) for one in told["sections"])
    return Footer(told["slot"], sections, tuple(told["counts"]))
