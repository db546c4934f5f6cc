"""A folder for what does not fit into memory: one session's at a time, and empty after it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

from windjoin.errors import StateError

LOCK = "windjoin.lock"
PATTERN = "windjoin-*.spill"


class SpillFolder:
    """Files of one session; they go when it ends, or when another one begins after a crash.

    path: None: a folder of its own among temporary files
    """

    def __init__(self, path: Any) -> None:
        self._own = path is None
        try:
            self.path = Path(tempfile.mkdtemp(prefix="windjoin-") if path is None else path)
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StateError(f"spill={str(path)!r} cannot be used: {error}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise StateError(
                f"spill={str(path)!r} is in use by another session; give every session a folder of"
                " its own"
            ) from None
        sweep(self.path)  # what a session left that could not end
        self._made = 0
        self.close = weakref.finalize(self, _let_go, self.path, self._lock, self._own)

    def file(self) -> Path:
        """A name for one more file."""
        self._made += 1
        return self.path / f"windjoin-{self._made:08d}.spill"


def sweep(folder: Path) -> None:
    """Remove all files of sessions."""
    for path in folder.glob(PATTERN):
        path.unlink(missing_ok=True)


def _let_go(folder: Path, lock: int, own: bool) -> None:
    with suppress(OSError):
        sweep(folder)
    with suppress(OSError):
        os.close(lock)
    if own:
        shutil.rmtree(folder, ignore_errors=True)
