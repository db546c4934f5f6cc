"""Engines in processes of their own, asked in turn, stopped when they take too much."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import psutil

from benchmarks.workloads import WORKLOADS

THREAD_VARIABLES = (
    "POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)  # fmt: skip
LONG = 20.0  # seconds: a first run that took longer is not repeated


@dataclass(frozen=True, slots=True)
class Limits:
    """What one engine may take."""

    memory: int  # bytes resident
    seconds: float  # per run, and for loading


@dataclass(slots=True)
class Measurement:
    """One engine's figures on one workload."""

    workload: str
    engine: str
    variant: str
    threads: int
    walls: list[float] = field(default_factory=list)
    cpus: list[float] = field(default_factory=list)
    peak: int | None = None
    results: int | None = None
    checksum: int | None = None
    note: str = ""  # why there is no time

    @property
    def counts(self) -> bool:
        """Say whether the time counts: there is one, and the answers were right."""
        return bool(self.walls) and not self.note

    @property
    def label(self) -> str:
        """Give the engine with its variant."""
        return f"{self.engine} {self.variant}"

    def as_dict(self) -> dict[str, Any]:
        """Give all figures with the least times."""
        least = {
            "wall": min(self.walls) if self.counts else None,
            "cpu": min(self.cpus) if self.counts else None,
        }
        return {**asdict(self), **least}


class Contestant:
    """A worker process with the measurement it is filling."""

    def __init__(self, measurement: Measurement, limits: Limits) -> None:
        self.measurement = measurement
        self._limits = limits
        m = measurement
        threads = {name: str(m.threads) for name in THREAD_VARIABLES}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker",
             m.workload, m.engine, m.variant, str(m.threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **threads, "PYTHONHASHSEED": "0"},
        )  # fmt: skip
        self._receive()

    @property
    def running(self) -> bool:
        """Say whether more runs can be asked for."""
        return not self.measurement.note

    def run(self, *, keep: bool) -> None:
        """Ask for one run; the figures of a warm-up are kept only when it took long."""
        if not self.running:
            return
        assert self._process.stdin is not None
        self._process.stdin.write("run\n")
        self._process.stdin.flush()
        reply = self._receive()
        if reply is None:
            return
        m = self.measurement
        if m.results is None:
            m.peak = reply["peak"]  # of the first run: later ones reuse what it kept
        m.results, m.checksum = reply["results"], reply["checksum"]
        expected = WORKLOADS[m.workload]
        if (m.results, m.checksum) != (expected.results, expected.checksum):
            m.note = f"wrong: {m.results:,} results instead of {expected.results:,}"
            if m.results == expected.results:
                m.note = "wrong: the count agrees, the checksum does not"
            return
        if keep or reply["wall"] > LONG:
            m.walls.append(reply["wall"])
            m.cpus.append(reply["cpu"])

    def close(self) -> None:
        """End the worker."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()

    def _receive(self) -> dict[str, Any] | None:
        """Wait for a reply; leave a note and give None when there will be none."""
        assert self._process.stdout is not None
        start = time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not selector.select(timeout=0.02):
                if time.monotonic() - start > self._limits.seconds:
                    return self._give_up(f"stopped after {self._limits.seconds:.0f} s")
                if self._resident() > self._limits.memory:
                    return self._give_up(f"stopped at {self._limits.memory / 1e9:.0f} GB")
        line = self._process.stdout.readline()
        if not line:
            return self._give_up(f"ended with exit status {self._process.wait()}")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            return self._give_up(reply["error"])
        return reply

    def _resident(self) -> int:
        try:
            return int(psutil.Process(self._process.pid).memory_info().rss)
        except psutil.NoSuchProcess:
            return 0  # its output is at the end too, and says so

    def _give_up(self, why: str) -> dict[str, Any] | None:
        self.measurement.note = why
        self._process.kill()
        return None


def contest(
    measurements: list[Measurement], limits: Limits, repeat: int, step: Callable[[str], None]
) -> None:
    """Run all engines in turn, round by round, so that a busy moment hits every one of them."""
    contestants: list[Contestant] = []
    try:
        for m in measurements:
            step(f"{m.workload}: {m.label}, {m.threads} thread(s), loading")
            contestants.append(Contestant(m, limits))
        for turn in range(repeat + 1):
            for c in contestants:
                m = c.measurement
                step(f"{m.workload}: {m.label}, {m.threads} thread(s), run {turn} of {repeat}")
                slow = bool(m.walls) and m.walls[0] > LONG
                if not slow:
                    c.run(keep=turn > 0)
    finally:
        for c in contestants:
            c.close()
