"""The manifest of an epoch: all that its tasks read, where they send rows, and what is late.

Any task that needs it first decides it, from what the epoch before reported, and writes it; files
are written once, so all others read what that one decided.  An epoch that is done again by another
run of the query (after a crash, say) has a manifest of its own, as the number of slots may differ;
what is late is the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from windjoin.epochs.routing import Owners, Routes
from windjoin.epochs.storage import Folder

VERSION = 1
NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class Entry:
    """An epoch whose rows are in the window."""

    epoch: int
    run: str
    slots: int
    routes: int  # its place in the manifest's list
    low: tuple[int | None, ...]  # by stream, earliest and latest time; None: no rows
    high: tuple[int | None, ...]
    bytes: int = 0
    rows: int = 0
    since: int = -1  # the first epoch whose rows are in its files; -1: its own alone
    until: int | None = None  # it is asked for marks of partners up to then; None: it has none
    marks: bool = False  # there are files of marks

    def told(self) -> list[Any]:
        """As JSON has it."""
        return [getattr(self, name) for name in self.__slots__]

    @property
    def folder(self) -> str:
        """Where its files lie; those of streams that do not grow beside the query's log."""
        return f"../{self.run}" if self.epoch < 0 else epoch_folder(self.epoch, self.run)

    @property
    def first(self) -> int:
        """The first epoch it stands for."""
        return self.epoch if self.since < 0 else self.since


@dataclass(frozen=True)
class Manifest:
    """What an epoch reads and how it sends rows."""

    epoch: int
    run: str
    parent: str | None  # the run whose epoch before is built upon
    slots: int
    routes: int  # of this epoch, in the list
    every: tuple[Routes, ...]  # all routes that entries and this epoch have
    watermarks: tuple[int | None, ...]  # rows before are late
    newest: tuple[int | None, ...]  # of all epochs before
    window: tuple[Entry, ...]  # oldest first
    query: dict[str, str]
    windows: tuple[int, ...]
    merge: tuple[int, int] | None = None  # epochs that this one's files will stand for
    seen: tuple[float, ...] = ()  # when each stream was last heard of
    decided: float = 0.0
    loads: tuple[dict[str, Any], ...] = ()  # of the slots in the epoch before
    totals: dict[str, Any] = field(default_factory=dict)  # of all epochs before
    state: Any = None  # of the router
    schemas: dict[str, str] = field(default_factory=dict)  # of the rows in the files, by stream
    before: tuple[int | None, ...] = ()  # the watermarks of the epoch before
    leaving: tuple[Entry, ...] = ()  # what was in the window then and is not any more
    marks: bool = False  # slots write down which rows have partners
    together: bool = False  # rows stay until all streams have passed them
    job: str = ""  # which join it is: a streaming query may have several
    version: int = VERSION

    @property
    def folder(self) -> str:
        """Where the files of this epoch lie."""
        return epoch_folder(self.epoch, self.run)

    @property
    def own(self) -> Routes:
        """How rows of this epoch are sent."""
        return self.every[self.routes]

    @property
    def stages(self) -> int:
        """Exchanges of this epoch."""
        return len(self.windows) - 1 if self.own.units.once else 1

    def of(self, entry: Entry) -> Routes:
        """How rows of an entry were sent."""
        return self.every[entry.routes]

    def horizon(self, stream: int) -> int | None:
        """Rows of a stream before that time meet no row to come; None: all may."""
        every = enumerate(self.watermarks)
        others = [mark for s, mark in every if s != stream or self.together]
        if any(mark is None for mark in others):
            return None
        return max(
            -(2**63), min(mark for mark in others if mark is not None) - self.windows[stream]
        )

    def as_bytes(self) -> bytes:
        """The file."""
        told = {name: getattr(self, name) for name in self.__dataclass_fields__}
        told["every"] = [routes.told() for routes in self.every]
        for name in ("window", "leaving"):
            told[name] = [entry.told() for entry in told[name]]
        return json.dumps(told).encode()

    @classmethod
    def heard(cls, told: dict[str, Any]) -> Manifest:
        """From JSON."""
        windows = tuple(told["windows"])
        told["windows"] = windows
        told["every"] = tuple(Routes.heard(one, windows) for one in told["every"])
        for name in ("window", "leaving"):
            told[name] = tuple(_entry(values) for values in told.get(name, ()))
        for name in ("watermarks", "newest", "seen", "loads", "before"):
            told[name] = tuple(told.get(name, ()))
        if told["merge"] is not None:
            told["merge"] = tuple(told["merge"])
        return cls(**told)


def _entry(values: Sequence[Any]) -> Entry:
    epoch, run, slots, routes, low, high, *rest = values
    return Entry(epoch, run, slots, routes, tuple(low), tuple(high), *rest)


def epoch_folder(epoch: int, run: str) -> str:
    """Where the files of an epoch lie, in the log."""
    return f"{epoch:010d}/{run}"


def read_manifest(log: Folder, epoch: int, run: str) -> Manifest | None:
    """What was decided; None if nothing was."""
    told = log.read_json(f"{epoch_folder(epoch, run)}/{NAME}")
    if told is None:
        return None
    if told["version"] > VERSION:
        from windjoin.errors import LogError

        raise LogError(
            f"the log in {log.path()} has format {told['version']}, and this windjoin reads formats"
            f" up to {VERSION}; go on with the newer windjoin that wrote it"
        )
    return Manifest.heard(told)


def with_routes(every: Sequence[Routes], window: Sequence[Entry], own: Routes) -> Any:
    """The routes that are in use, the entries with their places in that list, and the own place."""
    from dataclasses import replace

    kept: list[Routes] = []

    def place(routes: Routes) -> int:
        if routes not in kept:
            kept.append(routes)
        return kept.index(routes)

    entries = tuple(
        replace(e, routes=place(every[e.routes].of_files(e.low, e.high))) for e in window
    )
    number = place(own)
    return tuple(kept), entries, number


__all__ = ["Entry", "Manifest", "Owners", "epoch_folder", "read_manifest", "with_routes"]
