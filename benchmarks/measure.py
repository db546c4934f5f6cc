"""What one call costs, and on what machine."""

from __future__ import annotations

import gc
import importlib.metadata
import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

PACKAGES = ("windjoin", "numpy", "pyarrow", "numba", "duckdb", "polars", "pandas", "faiss-cpu")


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one call."""

    wall: float  # seconds
    cpu: float  # seconds, all threads of the process
    peak: int | None  # bytes above what was resident before; None where Linux is not


def measured(run: Callable[[], Any]) -> tuple[Any, Cost]:
    """Call and give the answer with its cost."""
    gc.collect()
    before = psutil.Process().memory_info().rss
    reset_peak()
    cpu, wall = time.process_time(), time.perf_counter()
    answer = run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    highest = peak_resident()
    return answer, Cost(wall, cpu, None if highest is None else max(highest - before, 0))


def best_of(repeat: int, run: Callable[[], Any]) -> tuple[Any, float]:
    """Warm up once, then give the last answer and the least wall time."""
    run()
    answer, least = None, float("inf")
    for _ in range(repeat):
        answer = None  # the old answer's memory goes back before the next call
        answer, cost = measured(run)
        least = min(least, cost.wall)
    return answer, least


def reset_peak() -> None:
    """Start the kernel's record of the greatest resident size anew."""
    if platform.system() == "Linux":
        Path("/proc/self/clear_refs").write_text("5")


def peak_resident() -> int | None:
    """Give the greatest resident size since `reset_peak`."""
    if platform.system() != "Linux":
        return None
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status has no line VmHWM")


def machine() -> dict[str, Any]:
    """Describe where and with what the figures were taken."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "load": load_now(),
        "isa": os.environ.get("WINDJOIN_ISA", "chosen at run time"),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
    }


def headline(about: dict[str, Any]) -> str:
    """Say in a line what `machine` found, with the load at the end added as ``load_after``."""
    return (
        f"{about['cpu']}, {about['cores']} cores, {about['system']}, {about['time']},"
        f" load before and after {about['load']}, {about['load_after']}."
    )


def keep(folder: Path, name: str, about: dict[str, Any], table: str, figures: Any) -> None:
    """Write a table and its figures, and show the table."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(table)
    everything = {"machine": about, name: figures}
    (folder / f"{name}.json").write_text(json.dumps(everything, indent=1) + "\n")
    print(table)


def load_now() -> float:
    """Give the load, for ``load_after``."""
    return round(os.getloadavg()[0], 2)


def cpu_model() -> str:
    """Give the processor's name."""
    if platform.system() == "Linux":
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def version(package: str) -> str:
    """Give an installed package's version."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
