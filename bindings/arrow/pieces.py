"""Messages cut into pieces, one to a row of the exchange, and put together where they arrive.

Spark counts rows, not bytes, when it gathers what Python gets at a time.  Two thousand rows of a
few kilobytes fit in memory that the JVM and Python use again and again; two thousand messages of
256 KB would be half a gigabyte of fresh memory, and take several times as long.  Pieces that come
one after the other lie in one stretch of memory, so putting a message together copies nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from windjoin.errors import DataError
from windjoin.kernels.spec import I64


class Pieces(NamedTuple):
    """Messages as rows of an exchange."""

    message: I64  # of each piece
    piece: I64  # its place in the message
    pieces: I64  # that the message has
    bytes: Any  # the column


def cut(messages: Sequence[pa.Buffer], size: int) -> Pieces:
    """Pieces of at most ``size`` bytes; every message is copied once.

    >>> cut([pa.py_buffer(b"abcde"), pa.py_buffer(b"f")], 2).bytes.to_pylist()
    [b'ab', b'cd', b'e', b'f']
    """
    ends = np.cumsum([message.size for message in messages])
    if ends[-1] >= 2**31:
        raise DataError(
            f"a message of {ends[-1]} bytes is more than the 2 GiB that Spark moves at a time;"
            " rows this large cannot be sent, select fewer or smaller columns"
        )
    starts = np.concatenate([[0], ends[:-1]])
    counts = np.maximum(1, -(-(ends - starts) // size))
    message = np.repeat(np.arange(len(messages)), counts)
    piece = np.arange(len(message)) - np.repeat(np.cumsum(counts) - counts, counts)
    offsets = np.append(starts[message] + piece * size, ends[-1]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets.data), pa.py_buffer(b"".join(messages))]
    column = pa.Array.from_buffers(pa.binary(), len(message), buffers)
    return Pieces(message, piece, counts[message], column)


class Head(NamedTuple):
    """What the first piece says about its message."""

    host: int
    stream: int
    start: int
    form: bytes


class MessageAssembler:
    """Puts messages together, those that end in a later batch as well."""

    def __init__(self) -> None:
        self._begun: dict[tuple[int, int], _Begun] = {}  # by stream and number

    def messages(self, batch: pa.RecordBatch) -> Iterator[tuple[Head, pa.Buffer]]:
        """The messages that are complete with this batch."""
        if not len(batch):
            return
        stream, sequence, piece, pieces = (
            batch.column(name).to_numpy() for name in ("stream", "sequence", "piece", "pieces")
        )
        offsets, data = _bytes(batch.column("payload"))
        follows = (np.diff(sequence) == 1) & (np.diff(piece) == 1) & (np.diff(stream) == 0)
        borders = np.flatnonzero(~follows) + 1
        for first, end in zip([0, *borders], [*borders, len(batch)], strict=True):
            own = data.slice(int(offsets[first]), int(offsets[end] - offsets[first]))
            if end - first == pieces[first]:
                yield _head(batch, first), own
                continue
            message = int(stream[first]), int(sequence[first] - piece[first])
            begun = self._begun.setdefault(message, _Begun(int(pieces[first])))
            if piece[first] == 0:
                begun.head = _head(batch, first)
            begun.parts[int(piece[first])] = own
            begun.missing -= end - first
            if begun.head is not None and not begun.missing:
                yield begun.head, self._begun.pop(message).whole()

    def finish(self) -> None:
        """Nothing may be left."""
        if self._begun:
            raise DataError(
                f"{len(self._begun)} messages reached this host in part only; every row of the"
                " exchange whose column 'host' is this one has to come here"
            )


@dataclass
class _Begun:
    """A message of which some pieces are here."""

    missing: int
    head: Head | None = None
    parts: dict[int, pa.Buffer] = field(default_factory=dict)  # by the first piece of each

    def whole(self) -> pa.Buffer:
        return pa.py_buffer(b"".join(self.parts[piece] for piece in sorted(self.parts)))


def _head(batch: pa.RecordBatch, row: int) -> Head:
    return Head(*(batch.column(name)[row].as_py() for name in Head._fields))


def _bytes(payload: Any) -> tuple[I64, pa.Buffer]:
    """Where each piece starts and ends, and the bytes of all."""
    large = payload.cast(pa.large_binary())
    _, offsets, data = large.buffers()
    ends = np.frombuffer(offsets, np.int64)[large.offset : large.offset + len(large) + 1]
    return ends, data or pa.py_buffer(b"")
