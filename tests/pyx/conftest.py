"""What the tests of compiled modules share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from windjoin.kernels.live import LiveJoin
from windjoin.kernels.storing import StoringJoin


@pytest.fixture
def only_short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Rows that go another way fail."""
    for join in (LiveJoin, StoringJoin):
        monkeypatch.setattr(join, "push", None)
    return
