from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from windjoin.pyx.base.column import ColumnView
from windjoin.pyx.base.output import Output, Runner
from windjoin.pyx.live.limited import Limited

def draws(seed: int, stream: int, first: int, n: int, share: float) -> NDArray[np.bool_]: ...

@final
class Beat:
    next: float
    spent: float
    alarm: float
    by_time: bool
    to_tell: bool
    to_attend: bool
    begun_at: int
    joining: int
    look_of: int
    measured_of: int
    most_charged: int
    longest_push: int
    pushes: int
    def __init__(
        self,
        kind: str,  # "wall", "event" or "called"
        clock: Any,
        tick_s: float,
        longest: int,
        by_time: bool,
    ) -> None: ...
    def on_tick(self, call: Callable[[], None]) -> None: ...
    def read(self) -> float: ...
    def begin(self) -> None: ...
    def end(self) -> None: ...
    @property
    def pushing(self) -> int: ...

@final
class Shedder(Runner):
    hops: list[Limited]
    exact: bool
    probes: bool
    chunk: int
    chunk_ns: int
    calm: int
    looks_every: int
    unknown: float
    found: list[NDArray[np.float64]]
    sums: NDArray[np.float64]  # (11,)
    value: Any  # row numbers by stream -> worth of each result; None: 1
    rows: int
    full: int
    full_ns: int
    skipped: int
    probing: int
    timed: int
    def __init__(
        self,
        inner: Runner,
        beat: Beat,
        number: int,
        time: ColumnView,
        hops: list[Limited],
        seed: int,
    ) -> None: ...
    def set_shares(self, full: float, probe: float) -> None: ...
    @property
    def compared(self) -> int: ...
    def join(self, rows: NDArray[np.int64], out: Output) -> None: ...
