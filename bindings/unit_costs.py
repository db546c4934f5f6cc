"""What elementary steps of the engine cost on this machine, for plans: nanoseconds of CPU.

The figures here are of one machine; ``windjoin doctor --calibrate`` measures those of yours and
keeps them beside the compiled functions.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from windjoin.errors import DataError


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """Nanoseconds, and factors on what the kernels themselves expect of an index.

    >>> UnitCosts().index("hash lists", live=True) > 0
    True
    """

    push: float = 14_000.0  # a call with a table, whatever is in it
    row: float = 12.0  # a pushed row: its time, number and place
    column: float = 2.0  # each column of it that is kept
    result: float = 4.0
    gathered: float = 3.0  # each column of a result
    batch_row: float = 4.0  # a row of a whole table
    live: dict[str, float] = field(default_factory=dict)  # factors by the name of an index
    batch: dict[str, float] = field(default_factory=dict)

    def index(self, name: str, live: bool) -> float:
        """The factor on what probing an index is expected to cost."""
        return (self.live if live else self.batch).get(name, 1.0)

    def keep(self) -> Path:
        """Write these figures where plans look for them."""
        path = costs_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(asdict(self), indent=1) + "\n")
        os.replace(part, path)
        _read.cache_clear()
        return path


def costs_file() -> Path:
    """Where measured costs are kept: ``$WINDJOIN_COSTS``, or a file of the user's cache."""
    named = os.environ.get("WINDJOIN_COSTS")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "windjoin" / "costs.json"


def unit_costs() -> UnitCosts:
    """The costs measured on this machine, or those that are shipped."""
    path = costs_file()
    return _read(path, path.stat().st_mtime_ns) if path.exists() else UnitCosts()


@cache
def _read(path: Path, changed: int) -> UnitCosts:
    try:
        data: dict[str, Any] = json.loads(path.read_text())
        return replace(UnitCosts(), **data)
    except (ValueError, TypeError) as error:
        raise DataError(
            f"{path} is no file of costs ({error}); remove it, or measure anew with"
            " `windjoin doctor --calibrate`"
        ) from error
