"""Ctrl-C is heard while keys are encoded, and a key space that it met goes on as if nothing was."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from windjoin.kernels.spec import BytesColumn
from windjoin.pyx.encoding.keys import KeySpace, encode_pairs
from windjoin.pyx.encoding.string_keys import BytesSpace

KEYS = 1_000_000  # some tenths of a second


@pytest.fixture(autouse=True)
def _timer() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def integers(n: int) -> tuple[KeySpace, Callable[[], Any]]:
    space, keys = KeySpace(), np.random.default_rng(0).permutation(n) * 2**33
    return space, lambda: space.encode(keys)


def usable_integers(n: int) -> tuple[KeySpace, Callable[[], Any]]:
    space, keys = KeySpace(), np.random.default_rng(0).permutation(n) * 2**33
    return space, lambda: space.encode(keys, np.ones(n, np.bool_))


def pairs(n: int) -> tuple[KeySpace, Callable[[], Any]]:
    space, first = KeySpace(), np.random.default_rng(0).permutation(n).astype(np.int32)
    return space, lambda: encode_pairs(space, first, first[::-1].copy())


def texts(n: int) -> tuple[KeySpace, Callable[[], Any]]:
    space, data = BytesSpace(), np.random.default_rng(0).permutation(n).view(np.uint8)
    return space, lambda: space.encode(BytesColumn(np.arange(n + 1) * 8, data))


@pytest.mark.parametrize("make", [integers, usable_integers, pairs, texts])
def test_an_interrupt_is_heard_amid_many_keys(make: Any) -> None:
    space, encode = make(KEYS)
    heard, moment = 0, 0.04  # late ones meet a table that grows
    while heard < 2:
        try:
            signal.setitimer(signal.ITIMER_REAL, moment)
            encode()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            assert space.used == space.n_codes
            heard += space.used < KEYS
        if space.used == KEYS:  # it was done before
            space, encode = make(KEYS)
        moment /= 2
    assert (np.bincount(encode(), minlength=KEYS) == 1).all()
    assert space.used == space.n_codes == KEYS
