"""How much memory a session may take, and what it does when that is not enough."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import Any, Literal

from windjoin.durations import check_length, parse_duration
from windjoin.errors import QueryError, hint

OnFull = Literal["spill", "shed", "error"]
Choose = Literal["throughput", "largest", "random", "productive"]
Adaptation = Literal["lazy", "active", "none"]
CHOICES = ("throughput", "largest", "random", "productive")
ADAPTATIONS = ("lazy", "active", "none")
ON_FULL = ("spill", "shed", "error")
UNITS = {
    **{"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12},
    **{"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40},
}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


def parse_size(size: Any, place: str) -> int:
    """A number of bytes: ``"2GB"``, ``"512MiB"`` or an integer; ``place`` is for messages.

    >>> parse_size("1.5kB", "memory"), parse_size("2 GiB", "memory"), parse_size(7, "memory")
    (1500, 2147483648, 7)
    """
    found = _SIZE.fullmatch(size) if isinstance(size, str) else None
    if isinstance(size, int) and not isinstance(size, bool):
        parsed = size
    elif found is not None and found[2].lower() in UNITS:
        parsed = int(float(found[1]) * UNITS[found[2].lower()])
    else:
        raise QueryError(f'{place}={size!r}: give bytes, as a text such as "2GB" or a number')
    if parsed < 1:
        raise QueryError(f"{place}={size!r} is no memory at all")
    return parsed


def size_text(size: int) -> str:
    """A number of bytes as `parse_size` takes it.

    >>> size_text(2_000_000_000), size_text(1 << 20), size_text(1500)
    ('2GB', '1MiB', '1500B')
    """
    units = sorted(UNITS.items(), key=lambda unit: -unit[1])
    name, unit = next((name, unit) for name, unit in units if size % unit == 0)
    return f"{size // unit}{name[:-1].upper().replace('I', 'i').replace('K', 'k')}B"


@dataclass(frozen=True)
class Memory:
    """A bound on what a session holds in memory, for ``memory=`` of `Query.open`.

    ``limit``: of `Session.state_bytes`, such as "2GB".
    ``spill``: the folder for what does not fit; by default one of its own among temporary files.
    ``share``: how much of the rows goes out whenever the limit is reached; where those of partition
    groups have had next to no results since the last time, all go.
    ``idle``: groups that no row has come to for that long, in the time of the streams, go first.
    ``choose``: which groups go: "throughput", those that had fewest results for their size;
    "largest"; "random"; or, to compare with, "productive", those that had most.  Of a query whose
    streams are not tied by a key the oldest rows go.
    ``groups``: how many there are.
    ``disk_limit``: of the files together.

    With ``hosts=`` each host has an equal part of the limit, and ``adaptation`` says how they help
    each other where streams are tied by a key.  "lazy": a host that is full spills, and whenever
    the least used memory falls below ``theta_d`` times the most used, half of the difference moves,
    the most productive groups first.  "active": besides, where memory is balanced and the results
    per group of hosts differ by more than ``theta_r`` times, the host with fewest spills, as much
    as the windows will hold beyond the limit.  "none": neither.  ``span``: the least time between
    two adaptations, by the ``clock=`` of the session.

    >>> Memory("1GB", share=0.5).limit
    1000000000
    """

    limit: Any
    spill: str | os.PathLike[str] | None = None
    share: float = 0.3
    idle: Any = None
    choose: Choose = "throughput"
    groups: int = 300
    disk_limit: Any = None
    adaptation: Adaptation = "lazy"
    theta_d: float = 0.8
    theta_r: float = 2.0
    span: Any = "45s"

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", parse_size(self.limit, "memory"))
        if self.disk_limit is not None:
            object.__setattr__(self, "disk_limit", parse_size(self.disk_limit, "disk_limit"))
        if self.choose not in CHOICES:
            raise QueryError(f"choose={self.choose!r}{hint(str(self.choose), CHOICES)}")
        if not isinstance(self.share, (int, float)) or not 0 < self.share <= 1:
            raise QueryError(f"share={self.share!r}: give a part of the state, above 0 and up to 1")
        if not isinstance(self.groups, int) or not 1 <= self.groups <= 2**15:
            raise QueryError(f"groups={self.groups!r}: give how many there are, 1 to {2**15}")
        if self.adaptation not in ADAPTATIONS:
            given = str(self.adaptation)
            raise QueryError(f"adaptation={self.adaptation!r}{hint(given, ADAPTATIONS)}")
        if not isinstance(self.theta_d, (int, float)) or not 0 <= self.theta_d <= 1:
            raise QueryError(f"theta_d={self.theta_d!r}: give least over most memory, 0 to 1")
        if not isinstance(self.theta_r, (int, float)) or not self.theta_r >= 1:
            raise QueryError(f"theta_r={self.theta_r!r}: give most over least results, 1 or more")
        parse_duration(self.span, "span")
        if self.idle is not None:
            check_length("idle", self.idle)
        if self.spill is not None and not isinstance(self.spill, (str, os.PathLike)):
            raise QueryError(f"spill={self.spill!r}: give the path of a folder")

    @property
    def span_seconds(self) -> float:
        """Seconds between two adaptations.

        >>> Memory("1GB", span="2s").span_seconds
        2.0
        """
        return parse_duration(self.span).nanoseconds / 1e9


def asked_memory(
    memory: Any,
    spill: Any,
    on_full: Any,
    adaptation: Any = None,
    hosts: Any = None,
    nearest: bool = False,
) -> Memory | None:
    """What ``memory=``, ``spill=``, ``on_full=`` and ``adaptation=`` of `Query.open` ask for."""
    if on_full not in ON_FULL:
        raise QueryError(f"on_full={on_full!r}{hint(str(on_full), ON_FULL)}")
    if memory is None:
        given = {"spill": spill, "adaptation": adaptation}
        options = [f"{name}={value!r}" for name, value in given.items() if value is not None]
        if on_full != "spill":
            options.append(f"on_full={on_full!r}")
        if options:
            option = options[0]
            raise QueryError(f'{option} needs memory=, such as memory="2GB"')
        return None
    if on_full == "shed" and nearest:
        raise QueryError(
            'on_full="shed" is not for nearest=: without some rows others would be the nearest;'
            ' take "spill" or "error"'
        )
    asked = memory if isinstance(memory, Memory) else Memory(memory)
    if isinstance(hosts, int) and hosts > asked.groups:
        raise QueryError(
            f"groups={asked.groups!r} are fewer than the {hosts} hosts that share them; give more"
        )
    if adaptation is not None:
        if hosts is None:
            raise QueryError(f"adaptation={adaptation!r} needs hosts=, the hosts that adapt")
        asked = replace(asked, adaptation=adaptation)
    return asked if spill is None else replace(asked, spill=spill)
