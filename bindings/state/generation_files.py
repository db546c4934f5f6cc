"""Files of rows that left memory: written if the disk has room, told of if it has none."""

from __future__ import annotations

from pathlib import Path

from windjoin.errors import StateError
from windjoin.kernels.intake import Intake
from windjoin.kernels.spec import I64
from windjoin.memory import Memory
from windjoin.state.generations import RESIDENT, Generation, read_generation, write_generation
from windjoin.state.residence import Residence
from windjoin.state.spill_folder import SpillFolder
from windjoin.state.unit import Unit, UnitWriter, is_full

WAIT = 64  # pushes until spilling is tried again on a disk that was full


class GenerationFiles:
    """Of one session, in a folder of its own; ``folder`` None: nothing is ever written."""

    def __init__(self, live: Intake, residence: Residence, asked: Memory, spills: bool) -> None:
        self._live, self._residence, self._asked = live, residence, asked
        self.folder = SpillFolder(asked.spill) if spills else None
        self.failures = 0
        self.wait = 0  # pushes
        self._trouble: StateError | None = None

    def new_file(self) -> Path:
        """A name for one more file."""
        assert self.folder is not None
        return self.folder.file()

    def spilled(self, going: list[I64], left: int, used: int) -> Generation | None:
        """Rows on disk, beside ``used`` bytes; None if there is no room for them there."""
        if self.room(used) == 0:
            self.fail(self.full)
            return None
        return self.written(going, left)

    def room(self, used: int) -> int | None:
        """Bytes that files may still grow, which take ``used``; None: without limit."""
        limit = self._asked.disk_limit
        return None if limit is None else max(limit - used, 0)

    @property
    def full(self) -> str:
        """Why nothing is written where `room` is not enough."""
        return f"its files have reached disk_limit={self._asked.disk_limit:,} bytes"

    def written(self, going: list[I64], left: int) -> Generation | None:
        """The same whatever the limit of the disk."""
        path = self.new_file()
        try:
            writer = UnitWriter(path, "generation", {"left": left})
        except OSError as error:
            path.unlink(missing_ok=True)
            self.fail(reason_of(error))
            return None
        try:
            self._write(writer, going)
            writer.close()
        except OSError as error:
            writer.abandon()
            self.fail(reason_of(error))
            return None
        except BaseException:
            writer.abandon()
            raise
        return read_generation(Unit.map(path, verify=False), left, self._live.spec.streams)

    def for_now(self, going: list[I64]) -> Generation:
        """Rows that stay in memory as a generation: on disk, or in memory if that has no room."""
        found = None if self.folder is None else self.written(going, RESIDENT)
        if found is not None:
            return found
        writer = UnitWriter(None, "generation", {"left": RESIDENT})
        self._write(writer, going)
        return read_generation(Unit.of(writer.close()), RESIDENT, self._live.spec.streams)

    def _write(self, writer: UnitWriter, going: list[I64]) -> None:
        residence = self._residence
        chosen = [
            (rows, residence.arrivals(k, rows), residence.groups_of(k, rows))
            for k, rows in enumerate(going)
        ]
        write_generation(writer, self._live.spec.streams, residence.exporters(), chosen)

    def fail(self, why: str) -> None:
        """Nothing can be written for a while; the next push is told."""
        self.wait = WAIT
        self.failures += 1
        self._trouble = StateError(
            f"nothing can be spilled to {str(self.folder and self.folder.path)!r}: {why}; the"
            " session goes on in memory, beyond its limit. Nothing of this push was taken: push it"
            " again"
        )

    def tell(self) -> None:
        """Raise what went wrong, once."""
        if self._trouble is not None:
            trouble, self._trouble = self._trouble, None
            raise trouble

    def close(self) -> None:
        """Remove all files."""
        if self.folder is not None:
            self.folder.close()


def unlink(generation: Generation) -> None:
    """The file of a generation goes; what is mapped of it stays."""
    name = generation.unit.path
    if name is not None:
        name.unlink(missing_ok=True)


def reason_of(error: OSError) -> str:
    """Why a file cannot be written."""
    return "the disk is full" if is_full(error) else str(error)
