"""Messages arrive whole, however their pieces are cut, gathered and ordered on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.arrow.pieces import MessageAssembler, cut

TEXT = b"0123456789abcdefghijklmnopqrstuvwxyz"


def sent(messages: list[bytes], size: int, stream: int = 0) -> pa.RecordBatch:
    """Rows of an exchange; a message's first letter is its form, on its first piece alone."""
    pieces = cut([pa.py_buffer(message) for message in messages], size)
    forms = [messages[m][:1] if n == 0 else b"" for m, n in zip(*pieces[:2], strict=True)]
    columns: dict[str, Any] = {
        "host": np.full(len(forms), 3, np.int32),
        "stream": np.full(len(forms), stream, np.int32),
        "start": pieces.message,
        "sequence": np.arange(7, 7 + len(forms)),
        "piece": pieces.piece.astype(np.int32),
        "pieces": pieces.pieces.astype(np.int32),
        "form": pa.array(forms, pa.binary()),
        "payload": pieces.bytes,
    }
    return pa.record_batch(columns)


def mended(batches: list[pa.RecordBatch]) -> list[tuple[int, bytes]]:
    """Stream and bytes of each message."""
    mender, found = MessageAssembler(), []
    for batch in batches:
        for head, message in mender.messages(batch):
            found.append((head.stream, message.to_pybytes()))
            assert (head.host, head.form) == (3, found[-1][1][:1])
    mender.finish()
    return found


@given(
    lengths=st.lists(st.integers(0, len(TEXT)), min_size=1, max_size=9),
    streams=st.integers(1, 2),
    size=st.integers(1, 40),
    rows=st.integers(1, 12),
    shuffled=st.booleans(),
    large=st.booleans(),
    seed=st.integers(0, 99),
)
def test_messages_arrive_as_they_were(
    lengths: list[int], streams: int, size: int, rows: int, shuffled: bool, large: bool, seed: int
) -> None:
    messages = [bytes([65 + n]) + TEXT[:length] for n, length in enumerate(lengths)]
    own = [sent(messages, size, stream) for stream in range(streams)]
    batch = pa.concat_batches(own)
    assert all(len(piece) <= size for piece in batch.column("payload").to_pylist())
    if large:
        place = batch.schema.get_field_index("payload")
        batch = batch.set_column(place, "payload", batch.column(place).cast(pa.large_binary()))
    if shuffled:
        batch = batch.take(pa.array(np.random.default_rng(seed).permutation(len(batch))))
    gathered = [batch.slice(first, rows) for first in range(0, len(batch), rows)]
    found = mended([batch.slice(0, 0), *gathered])
    wanted = [(stream, message) for stream in range(streams) for message in messages]
    assert (sorted(found) if shuffled else found) == wanted


def test_an_empty_message_arrives() -> None:
    assert [text for _, text in mended([sent([b"", b"a", b""], 8)])] == [b"", b"a", b""]


def test_streams_whose_numbers_are_the_same_do_not_mix() -> None:
    both = pa.concat_batches([sent([b"a0a1"], 2, 0), sent([b"b0b1"], 2, 1)])
    for order in ([1, 0, 3, 2], [0, 2, 1, 3], [3, 1, 2, 0], [0, 3, 1, 2]):
        rows = both.take(pa.array(order))
        for size in (1, 4):
            batches = [rows.slice(at, size) for at in range(0, 4, size)]
            assert sorted(mended(batches)) == [(0, b"a0a1"), (1, b"b0b1")]


def test_pieces_in_order_are_not_copied() -> None:
    batch = sent([TEXT, TEXT], 8)
    payload = batch.column("payload").buffers()[2]
    first, second = (message for _, message in MessageAssembler().messages(batch))
    assert (first.address, second.address) == (payload.address, payload.address + len(TEXT))


def test_a_message_that_is_not_all_there_is_told() -> None:
    batch = sent([TEXT, TEXT], 8)
    with pytest.raises(wj.DataError, match=r"1 messages reached this host in part only; every row"):
        mended([batch.slice(1)])
