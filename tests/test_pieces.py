"""Messages arrive whole, however their pieces are cut, gathered and ordered on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.arrow.pieces import Mender, cut

TEXT = b"0123456789abcdefghijklmnopqrstuvwxyz"


def sent(messages: list[bytes], size: int) -> pa.RecordBatch:
    """The columns of an exchange that tell what belongs together."""
    pieces = cut([pa.py_buffer(message) for message in messages], size)
    columns: dict[str, Any] = {
        "sequence": np.arange(7, 7 + len(pieces.piece)),
        "piece": pieces.piece.astype(np.int32),
        "pieces": pieces.pieces.astype(np.int32),
        "payload": pieces.bytes,
    }
    return pa.record_batch(columns)


def mended(batches: list[pa.RecordBatch]) -> list[bytes]:
    mender, found = Mender(), []
    for batch in batches:
        for row, message in mender.messages(batch):
            assert 0 <= row < len(batch)
            found.append(message.to_pybytes())
    mender.finish()
    return found


@given(
    lengths=st.lists(st.integers(0, len(TEXT)), min_size=1, max_size=9),
    size=st.integers(1, 40),
    rows=st.integers(1, 12),
    shuffled=st.booleans(),
    large=st.booleans(),
    seed=st.integers(0, 99),
)
def test_messages_arrive_as_they_were(
    lengths: list[int], size: int, rows: int, shuffled: bool, large: bool, seed: int
) -> None:
    messages = [bytes([65 + n]) + TEXT[:length] for n, length in enumerate(lengths)]
    batch = sent(messages, size)
    assert all(len(piece) <= size for piece in batch.column("payload").to_pylist())
    if large:
        place = batch.schema.get_field_index("payload")
        batch = batch.set_column(place, "payload", batch.column(place).cast(pa.large_binary()))
    if shuffled:
        batch = batch.take(pa.array(np.random.default_rng(seed).permutation(len(batch))))
    gathered = [batch.slice(first, rows) for first in range(0, len(batch), rows)]
    found = mended([batch.slice(0, 0), *gathered])
    assert (sorted(found) if shuffled else found) == messages


def test_an_empty_message_arrives() -> None:
    assert mended([sent([b"", b"a", b""], 8)]) == [b"", b"a", b""]


def test_pieces_in_order_are_not_copied() -> None:
    batch = sent([TEXT, TEXT], 8)
    payload = batch.column("payload").buffers()[2]
    first, second = (message for _, message in Mender().messages(batch))
    assert (first.address, second.address) == (payload.address, payload.address + len(TEXT))


def test_a_message_that_is_not_all_there_is_told() -> None:
    batch = sent([TEXT, TEXT], 8)
    with pytest.raises(wj.DataError, match=r"1 messages reached this host in part only; every row"):
        mended([batch.slice(1)])
