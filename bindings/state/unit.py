"""The unit of state: columns of stretches of rows, in one file or message, with checksums.

What a session spills, saves or ships lies in units of this one format, version 1 or 2::

    0    magic     8 bytes   b"WJSTATE\\n"
    8    version   uint32    little endian, as all numbers here
    12   zeros     up to byte 64
    64   sections            each an Arrow IPC stream that begins at a multiple of 64
         footer    JSON      UTF-8, see below
         checksum  uint64    XXH64 (seed 0) of the footer
         length    uint64    bytes of the footer
         magic     8 bytes   the same again: without it the file is truncated

The footer is an object with ``kind`` (what the unit is: ``"rows"``, ``"snapshot"``, ...), ``about``
(whatever whoever wrote it wants to know again) and ``sections``, a list of objects with ``name``,
``offset``, ``length`` and ``checksum`` (XXH64 of these bytes).  Nothing in a unit is an address,
and Arrow reads a section where it lies: a unit is mapped, not loaded.

A unit of rows has a section for each stream, named by the stream's number.  Its columns are

    ``time``                  int64, in the query's finest unit; -2^63: the row matches nothing
    ``operand.<k>``           int64 or float64, numbers that conditions compare
    ``key.<k>``               int64 or large_binary, keys that conditions compare for equality
    ``wide.<k>``              large_list of numbers or of large_binary: vectors and sets
    ``wide.<k>.weights``      large_list of double: beside the items of a weighted set
    ``wide.<k>.absent``       bool: the row joins without a value
    ``column.<name>``         a column of the user's, as it came, that results or conditions read

in the order in which the rows arrived.  ``bindings/state/rows.py`` makes and reads these.  In
version 2 ``time`` and keys may be missing: metadata ``windjoin.same`` of the section's schema, a
JSON object, names the column that has the same 64 bits.
"""

from __future__ import annotations

import errno
import io
import json
import mmap
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.errors import StateError
from windjoin.pyx.base import checksum as sums

MAGIC = b"WJSTATE\n"
VERSIONS = (1, 2)  # that are read
FIRST = 64  # where sections may begin
SMALL = 1 << 16  # bytes that wait for more before they are written
HEAD = struct.Struct("<8sI")
TAIL = struct.Struct("<QQ8s")


def checksum(data: Any) -> int:
    """XXH64 of a buffer or of bytes.

    >>> hex(checksum(b"abc"))
    '0x44bc2cf5ad770999'
    """
    return sums.checksum(np.frombuffer(data, np.uint8)) if len(data) else sums.checksum(b"")


@dataclass(frozen=True, slots=True)
class Section:
    """Where an Arrow stream lies in a unit."""

    name: str
    offset: int
    length: int
    checksum: int


class _Sink:
    """A file, or memory, that knows how far it is and sums what a section writes.

    It is what Arrow takes for a file: buffers come as they lie, and are written from there.
    """

    closed = False

    def __init__(self, path: Path | None) -> None:
        self._file: Any = (
            io.BytesIO() if path is None else io.BufferedWriter(io.FileIO(path, "wb"), SMALL)
        )
        self._at = 0
        self.sum = sums.Checksum()

    def write(self, data: Any) -> None:
        self._at += len(data)
        self.sum.add(np.frombuffer(data, np.uint8))
        self._file.write(data)

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        """Nothing has to be there before the end."""

    def close(self, sync: bool = False) -> Any:
        """The end, on disk if ``sync``; what lies in memory."""
        if isinstance(self._file, io.BytesIO):
            return pa.py_buffer(self._file.getvalue())
        try:
            self._file.flush()
            if sync:
                os.fsync(self._file.fileno())
        finally:
            self._file.close()
        return None

    def drop(self) -> None:
        """The end, whatever could not be written."""
        with suppress(OSError):
            self._file.close()


class UnitWriter:
    """Writes a unit to a file, or without a path to memory; `close` it, or `abandon` it.

    >>> writer = UnitWriter(None, "rows", {"rows": 2})
    >>> with writer.section("0", pa.schema([("time", pa.int64())])) as section:
    ...     section.write_table(pa.table({"time": [3, 5]}))
    >>> unit = Unit.of(writer.close())
    >>> unit.kind, unit.about, unit.table("0").column("time").to_pylist()
    ('rows', {'rows': 2}, [3, 5])
    """

    def __init__(
        self, path: Path | None, kind: str, about: Mapping[str, Any], version: int = 1
    ) -> None:
        self.path = path
        self.about = dict(about)
        self._kind = kind
        self._sink = _Sink(path)
        self._sections: list[Section] = []
        self._sink.write(HEAD.pack(MAGIC, version))
        self._pad(FIRST)

    def _pad(self, to: int) -> None:
        self._sink.write(bytes(-self._sink.tell() % to))

    @contextmanager
    def section(self, name: str, schema: pa.Schema) -> Iterator[Any]:
        """A writer of record batches, for one section."""
        offset = self._sink.tell()
        self._sink.sum = sums.Checksum()
        taken_for_a_file: Any = self._sink
        with pa.ipc.new_stream(pa.PythonFile(taken_for_a_file, "w"), schema) as stream:
            yield stream
        length = self._sink.tell() - offset
        self._sections.append(Section(name, offset, length, self._sink.sum.value))
        self._pad(FIRST)

    def close(self, sync: bool = False) -> Any:
        """Finish the unit, on disk if ``sync``; the buffer, if it was written to memory."""
        self._sink.write(self._footer())
        return self._sink.close(sync)

    def _footer(self) -> bytes:
        sections = [asdict(one) for one in self._sections]
        data = {"kind": self._kind, "about": self.about, "sections": sections}
        text = json.dumps(data).encode()
        return text + TAIL.pack(checksum(text), len(text), MAGIC)

    def abandon(self) -> None:
        """Leave no file."""
        self._sink.drop()
        if self.path is not None:
            self.path.unlink(missing_ok=True)


class Unit:
    """A unit that was written: mapped, and of what its checksums say."""

    def __init__(self, name: str, buffer: Any, *, verify: bool = True) -> None:
        self.name = name
        self.path: Path | None = None
        self._mapped: mmap.mmap | None = None
        self._buffer = buffer
        footer = self._footer()
        self.kind: str = footer["kind"]
        self.about: dict[str, Any] = footer["about"]
        self.sections = {one["name"]: Section(**one) for one in footer["sections"]}
        if verify:
            self.verify()

    @classmethod
    def of(cls, buffer: Any) -> Unit:
        """A unit that came as a message."""
        return cls("a message", buffer)

    @classmethod
    def map(cls, path: Path, *, verify: bool = True) -> Unit:
        """A unit in a file, which stays where it is."""
        try:
            with open(path, "rb") as file:
                empty = os.fstat(file.fileno()).st_size == 0
                mapped = None if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            unit = cls(repr(str(path)), pa.py_buffer(mapped or b""), verify=verify)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise StateError(f"state file {str(path)!r} cannot be read: {reason}") from error
        unit.path, unit._mapped = path, mapped
        return unit

    def cool(self) -> None:
        """What was read of the file need not stay in memory; it is read again when asked for."""
        if self._mapped is not None:
            self._mapped.madvise(mmap.MADV_DONTNEED)

    def verify(self) -> None:
        """`StateError` unless all sections are as they were written."""
        for section in self.sections.values():
            self._verify(section)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole unit."""
        return int(self._buffer.size)

    def _footer(self) -> Any:
        data, size = self._buffer, self._buffer.size
        if size < FIRST or bytes(data[: len(MAGIC)]) != MAGIC:
            raise StateError(f"state file {self.name} is not one: it does not begin as they do")
        version = HEAD.unpack(bytes(data[: HEAD.size]))[1]
        if version not in VERSIONS:
            raise StateError(
                f"state file {self.name} is of format version {version}; this windjoin reads"
                f" versions {' and '.join(map(str, VERSIONS))}"
            )
        total, length, magic = TAIL.unpack(bytes(data[size - TAIL.size :]))
        first = size - TAIL.size - length
        if magic != MAGIC or first < FIRST:
            raise StateError(f"state file {self.name} is truncated: {size} bytes are left of it")
        text = bytes(data[first : size - TAIL.size])
        if checksum(text) != total:
            raise StateError(f"state file {self.name} is corrupt: the checksum of its footer")
        return json.loads(text)

    def _verify(self, section: Section) -> None:
        bytes_of = self._buffer[section.offset : section.offset + section.length]
        if bytes_of.size != section.length or checksum(bytes_of) != section.checksum:
            raise StateError(
                f"state file {self.name} is corrupt: the checksum of section {section.name!r}"
                f" (bytes {section.offset} to {section.offset + section.length})"
            )

    def table(self, name: str) -> pa.Table:
        """The rows of a section, where they lie."""
        section = self.sections[name]
        data = self._buffer[section.offset : section.offset + section.length]
        return pa.ipc.open_stream(data).read_all()


def sync_file(path: Path) -> None:
    """Have a file, or what a folder lists, on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_full(error: BaseException) -> bool:
    """Whether a disk has no room left, or a quota has none."""
    codes = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    # Arrow's own errors have the code in their text alone
    told = any(f"[Errno {code}]" in str(error) for code in codes)
    return isinstance(error, OSError) and (error.errno in codes or told)
