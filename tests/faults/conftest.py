"""The allocator that all walks share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.allocator import build


@pytest.fixture(scope="session")
def allocator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shared object, compiled once."""
    return build(tmp_path_factory.mktemp("allocator"))
