"""Codes of byte strings: equal exactly where the strings are."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from windjoin.kernels.spec import BytesColumn
from windjoin.pyx.encoding.string_keys import BytesSpace
from windjoin.pyx.encoding.texts import encode_texts


def column(values: list[bytes]) -> BytesColumn:
    offsets = np.cumsum([0, *map(len, values)], dtype=np.int64)
    return BytesColumn(offsets, np.frombuffer(b"".join(values), np.uint8))


def check(*columns: list[bytes]) -> None:
    codes, count = encode_texts([column(values) for values in columns])
    first: dict[bytes, int] = {}
    expected = [[first.setdefault(value, len(first)) for value in values] for values in columns]
    assert [code.tolist() for code in codes] == expected
    assert count == len(first)
    check_live(*columns)


def check_live(*columns: list[bytes]) -> None:
    """The same of a space that keeps strings, and gives them back; every third row is no key."""
    space, first = BytesSpace(), dict[bytes, int]()
    for values in columns:
        usable = np.arange(len(values)) % 3 != 2
        kept = [value for value, use in zip(values, usable, strict=True) if use]
        expected = [first.setdefault(value, len(first)) for value in kept]
        codes = space.encode(column(values), usable)
        assert codes[usable].tolist() == expected
        assert (codes[~usable] == -1).all()
        offsets, data = space.take(codes[usable])
        assert [data[i:j].tobytes() for i, j in pairwise(offsets)] == kept
    assert space.used == len(first)


# few letters and all lengths up to five words: strings that differ in one place only
texts = st.lists(st.lists(st.sampled_from(b"\x00a"), max_size=40).map(bytes), max_size=60)


@given(texts, texts)
def test_codes_are_equal_where_strings_are(left: list[bytes], right: list[bytes]):
    check(left, right)


def test_strings_that_differ_in_one_byte_or_in_length_have_codes_of_their_own():
    for length in (*range(26), 31, 32, 33, 64, 100):
        plain = bytes(length)
        changed = [plain[:at] + b"x" + plain[at + 1 :] for at in range(length)]
        longer = [bytes(length + 1), b"x" * length, b"x" * (length + 1)]
        check([plain, *changed, *longer], [*reversed(changed), plain])


def test_many_strings():
    names = [b"user-%07d" % (number * 7919 % 50_000) for number in range(120_000)]
    check(names[:70_000], names[70_000:])
    long = [b"a name of more than two words, %07d, and so on" % (n % 3_000) for n in range(9_000)]
    check(long, long[::-1])


def test_no_strings():
    check([], [])
    check([b""], [], [b"", b"a", b""])
