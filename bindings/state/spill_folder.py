"""A folder for what does not fit into memory: one session's at a time, and empty after it."""

from __future__ import annotations

import fcntl
import os
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

from windjoin.errors import StateError

LOCK = "windjoin.lock"
PATTERN = "windjoin-*.spill"
OWN = "windjoin-own-"  # before names of folders that are made here


class SpillFolder:
    """Files of one session; they go when it ends, or when another one begins after a crash.

    path: None: a folder of its own, in the folder ``within`` or among temporary files
    """

    def __init__(self, path: Any, within: Any = None) -> None:
        self._own = path is None
        try:
            if path is None:
                self.path, self._lock = _made_in(within)
            else:
                self.path = Path(path)
                self.path.mkdir(parents=True, exist_ok=True)
                self._lock = _opened(self.path)
        except OSError as error:
            given = path if path is not None else within
            raise StateError(f"spill={str(given)!r} cannot be used: {error}") from error
        if not self._own and not _taken(self._lock):
            os.close(self._lock)
            raise StateError(
                f"spill={str(path)!r} is in use by another session; give every session a folder of"
                " its own"
            )
        sweep(self.path)  # what a session left that could not end
        sweep_own(self.path)
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


def _opened(folder: Path) -> int:
    return os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)


def _taken(lock: int) -> bool:
    """Whether the lock is now held here."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _made_in(within: Any) -> tuple[Path, int]:
    """A folder that nobody else has, and its lock."""
    parent = Path(tempfile.gettempdir() if within is None else within)
    parent.mkdir(parents=True, exist_ok=True)
    sweep_own(parent)
    while True:
        path = Path(tempfile.mkdtemp(prefix=OWN, dir=parent))
        lock = _opened(path)
        # else another session took it for one that is left, before the lock was held
        if _taken(lock) and path.exists():
            return path, lock
        os.close(lock)


def sweep_own(parent: Path) -> None:
    """Remove folders that were made here by sessions that were killed."""
    for left in parent.glob(OWN + "*"):
        with suppress(OSError):  # another session takes it away as well, or it is another user's
            _remove_if_left(left)


def _remove_if_left(folder: Path) -> None:
    lock = os.open(folder / LOCK, os.O_RDWR)
    try:
        if _taken(lock):
            _remove(folder)
    finally:
        os.close(lock)


def _let_go(folder: Path, lock: int, own: bool) -> None:
    if not own:
        with suppress(OSError):
            sweep(folder)
    with suppress(OSError):
        os.close(lock)
    if own:
        with suppress(OSError):
            _remove(folder)


def _remove(folder: Path) -> None:
    """File by file: an interrupt in `shutil.rmtree` closes a descriptor twice."""
    for path in folder.iterdir():
        path.unlink(missing_ok=True)
    folder.rmdir()
