"""Sums of bytes that come in parts are those of the whole, and those that others compute."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from windjoin.pyx.base.checksum import Checksum, checksum


@given(parts=st.lists(st.binary(max_size=100), max_size=8))
def test_parts_sum_up_to_the_whole(parts: list[bytes]) -> None:
    summed = Checksum()
    for part in parts:
        summed.add(part)
    assert summed.value == checksum(b"".join(parts))


def test_sums_are_those_of_the_specification() -> None:
    assert checksum(b"") == 0xEF46DB3751D8E999
    assert checksum(b"abc") == 0x44BC2CF5AD770999
    assert checksum(b"Nobody inspects the spammish repetition") == 0xFBCEA83C8A378BF1
