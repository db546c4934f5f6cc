"""A folder that holds a session: units of rows that are written once, and a manifest over them.

``snapshot.wj`` is the manifest, a unit of kind "snapshot"; beside it lie units of kind "rows", each
with a stretch of rows of every stream, ``rows-<number>.wj``.  A save writes new units and has them
on disk, then a new manifest, which takes the place of the old one by its name: whoever looks finds
the one or the other, whole.  Units that no manifest names any more go last.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from windjoin.errors import StateError
from windjoin.state.unit import Unit, UnitWriter, is_full, sync_file

MANIFEST = "snapshot.wj"
NEW = MANIFEST + ".new"
PATTERN = "rows-*.wj"
AGAIN = 2  # a unit with fewer rows than so many times those that are new is written again with them


@dataclass(frozen=True, slots=True)
class UnitFile:
    """A unit of rows: its file, and for every stream the first row and that behind the last."""

    file: str
    first: tuple[int, ...]
    stop: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Rows of all streams."""
        return sum(self.stop) - sum(self.first)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> UnitFile:
        """What ``asdict`` made of one."""
        return cls(data["file"], tuple(data["first"]), tuple(data["stop"]))


@dataclass(frozen=True, slots=True)
class Written:
    """What a session remembers of its last save."""

    folder: str
    token: str  # of the manifest: another session may have written over it
    units: tuple[UnitFile, ...]


class SnapshotFolder:
    """The folder of one snapshot."""

    def __init__(self, path: Any) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise StateError(f"{path!r} ({type(path).__name__}) is not the path of a folder")
        self.path = Path(path)

    def manifest(self, *, verify: bool = True) -> Unit:
        """The manifest, if there is one of this format."""
        file = self.path / MANIFEST
        if not file.exists():
            raise StateError(f"there is no snapshot in {str(self.path)!r}: no file {MANIFEST!r}")
        unit = Unit.map(file, verify=verify)
        if unit.kind != "snapshot":
            raise StateError(f"state file {unit.name} is not a snapshot but {unit.kind!r}")
        return unit

    def units(self, manifest: Unit) -> list[tuple[UnitFile, Unit]]:
        """The units of rows that a manifest names, in order."""
        found = []
        for data in manifest.about["units"]:
            stretch = UnitFile.of(data)
            found.append((stretch, Unit.map(self.path / stretch.file)))
        return found

    def reusable(self, last: Written | None) -> tuple[UnitFile, ...]:
        """Units of the last save that are still there, as they were."""
        if last is None or last.folder != str(self.path.resolve()):
            return ()
        try:
            token = self.manifest(verify=False).about["token"]
        except StateError:
            return ()
        return last.units if token == last.token else ()

    def next_file(self) -> str:
        """A name for one more unit of rows."""
        numbers = [int(path.stem.partition("-")[2]) for path in self.path.glob(PATTERN)]
        return f"rows-{max(numbers, default=0) + 1:06d}.wj"

    def make(self) -> None:
        """The folder itself."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StateError(f"no folder {str(self.path)!r} can be made: {error}") from error

    def writer(
        self, file: str, kind: str, about: Mapping[str, Any], version: int = 1
    ) -> UnitWriter:
        """What writes a file of the folder."""
        try:
            return UnitWriter(self.path / file, kind, about, version)
        except OSError as error:
            raise unwritable(self.path / file, error) from error

    def put_in_place(self) -> None:
        """The new manifest is the manifest, from one instant to the next."""
        os.replace(self.path / NEW, self.path / MANIFEST)
        sync_file(self.path)

    def sweep(self, kept: Sequence[UnitFile]) -> None:
        """Remove units of rows that the manifest does not name."""
        names = {one.file for one in kept}
        for path in self.path.glob(PATTERN):
            if path.name not in names:
                path.unlink(missing_ok=True)


def still_needed(
    units: Sequence[UnitFile], first: Sequence[int], stop: Sequence[int]
) -> list[UnitFile]:
    """Of units in order those to be kept: the rows behind the last of them are to be written.

    first, stop: the rows there are now.  Units are merged as they grow, so there are few of them.
    """
    kept = [one for one in units if any(e > f for e, f in zip(one.stop, first, strict=True))]
    while kept:
        begin = [max(a, b) for a, b in zip(kept[-1].stop, first, strict=True)]
        new = sum(stop) - sum(begin)
        if kept[-1].rows >= AGAIN * new:
            break
        kept.pop()
    return kept


def as_data(units: Sequence[UnitFile]) -> list[dict[str, Any]]:
    """Units as a manifest has them."""
    return [asdict(one) for one in units]


def unwritable(path: Path, error: BaseException) -> StateError:
    """The error for a file that cannot be written."""
    why = "the disk is full" if is_full(error) else str(error)
    return StateError(f"state file {str(path)!r} cannot be written: {why}")
