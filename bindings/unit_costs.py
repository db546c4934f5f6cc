"""What units of the engine's work cost on this machine, for plans: nanoseconds of CPU.

The figures here are of one machine; ``windjoin doctor --calibrate`` measures those of yours and
keeps them beside the compiled functions.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from windjoin.kernels.compiling import cache_folder
from windjoin.processor import processor_name
from windjoin.shipped_costs import BATCH, LIVE

VERSION = 1  # of the units; figures of others say nothing


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """Nanoseconds of each unit of work: of sessions (``live``) and of whole tables (``batch``).

    >>> UnitCosts().nanoseconds({"hash lists: insert": 2.0}, live=True) > 0
    True
    """

    live: Mapping[str, float] = field(default_factory=lambda: LIVE)
    batch: Mapping[str, float] = field(default_factory=lambda: BATCH)

    def nanoseconds(self, work: Mapping[str, float], *, live: bool) -> float:
        """What so many of each unit cost."""
        costs = self.live if live else self.batch
        return sum(count * costs.get(unit, 0.0) for unit, count in work.items())

    def keep(self) -> Path:
        """Write these figures where plans look for them."""
        path = costs_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        data = {
            "version": VERSION,
            "processor": processor_name(),
            "live": dict(self.live),
            "batch": dict(self.batch),
        }
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(data, indent=1) + "\n")
        os.replace(part, path)
        _read.cache_clear()
        return path


def costs_file() -> Path:
    """Where measured costs are kept: in the folder of compiled functions."""
    return cache_folder() / "costs.json"


def unit_costs() -> UnitCosts:
    """The costs measured on this machine, or those that are shipped."""
    costs, why = kept_costs()
    if why:
        warnings.warn(
            f"{costs_file()} is not used, {why}: plans take the costs that are shipped; measure"
            " those of this machine with `windjoin doctor --calibrate`",
            stacklevel=3,
        )
    return costs


def kept_costs() -> tuple[UnitCosts, str]:
    """The costs to plan with, and why those that are kept here, if any, are not used."""
    path = costs_file()
    try:
        changed = path.stat().st_mtime_ns
    except OSError:  # never measured
        return UnitCosts(), ""
    return _read(path, changed)


@cache
def _read(path: Path, changed: int) -> tuple[UnitCosts, str]:
    try:
        data = json.loads(path.read_text())
        why = _unfit(data)
    except (OSError, ValueError) as error:
        why = f"it cannot be read ({error})"
    if why:
        return UnitCosts(), why
    return UnitCosts({**LIVE, **data["live"]}, {**BATCH, **data["batch"]}), ""


def _unfit(data: Any) -> str:
    """Why figures say nothing here; empty if they do."""
    if not isinstance(data, dict) or not all(
        map(_are_costs, (data.get("live"), data.get("batch")))
    ):
        return "it is no file of costs"
    if data.get("version") != VERSION:
        return f"it is of version {data.get('version')!r}, not {VERSION}"
    if data.get("processor") != processor_name():
        return f"it is of another processor ({data.get('processor')})"
    return ""


def _are_costs(costs: Any) -> bool:
    return isinstance(costs, dict) and all(
        isinstance(cost, (int, float)) and 0 <= cost < float("inf") for cost in costs.values()
    )
