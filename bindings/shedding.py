"""How a session sheds load: what an operator says of it, checked when it is said."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

from windjoin.durations import is_duration, parse_duration
from windjoin.errors import QueryError
from windjoin.expressions import Expression

if TYPE_CHECKING:
    from windjoin.binding import BoundQuery
    from windjoin.kernels.shedding.control import Settings

ShedPolicy = Literal["selective", "partial", "drop"]
POLICIES = ("selective", "partial", "drop")
SCOPES: dict[Any, Literal["all", "each", "whole"]] = {True: "all", False: "each", "whole": "whole"}


@dataclass(frozen=True, kw_only=True)
class Shedding:
    """How a session sheds load when rows come faster than they can be joined.

    Rows are kept, and work is left out: a new row is compared with the part of the windows where
    results are.  While there is no overload nothing is shed, and results are exact.

    ``budget``: CPU seconds for joining per second of the clock, on average over ``adapt_every``;
    or ``comparisons_per_s``: so many candidates a second, which is the same on every machine.
    ``basic_window``: the length of the parts into which windows are divided; by default a 50th of
    the longest one.
    ``adapt_every``: after how long the fraction of the work that is done is adapted; it grows by
    ``boost`` at most.
    ``sample``: which share of the rows that could be joined fully is, to learn from.
    ``policy``: "selective" compares with what is worth most, "partial" with the newest part of
    windows, "drop" drops rows at random on their way in; the last two are to compare with.
    ``directions``: whether the worth of windows is compared over all streams and hops; else the
    same fraction is done of all of them.  "whole" gives all to the better stream first.
    ``utility``: a column or expression of one stream that says what a result with its row is worth.
    ``clock``: "wall", "event" (the times of the rows), or a function that gives seconds.
    ``seed``: of the draws.

    >>> import windjoin as wj
    >>> calls, trades = (wj.stream(name, time="t", window=100) for name in ("calls", "trades"))
    >>> q = wj.join(calls, trades, on=calls["x"] < trades["x"])
    >>> shed = wj.Shedding(comparisons_per_s=1000, clock="event")
    >>> with q.open(shed=shed) as s:
    ...     _ = s.push("calls", {"t": [1, 2], "x": [5, 6]})
    ...     found = s.push("trades", {"t": [3], "x": [9]})
    >>> found.num_rows, s.metrics["shedding"]["recall"]
    (2, 1.0)
    """

    budget: float | None = None
    comparisons_per_s: float | None = None
    basic_window: Any = None
    adapt_every: Any = "5s"
    boost: float = 1.2
    sample: float = 0.1
    policy: ShedPolicy = "selective"
    directions: bool | Literal["whole"] = True
    utility: Expression | None = None
    clock: Literal["wall", "event"] | Callable[[], float] = "wall"
    seed: int = 0

    def __post_init__(self) -> None:
        if (self.budget is None) == (self.comparisons_per_s is None):
            given = "neither is" if self.budget is None else "both are"
            raise QueryError(
                "Shedding needs budget= (CPU seconds per second) or comparisons_per_s=,"
                f" one of them; {given} given"
            )
        for name in ("budget", "comparisons_per_s"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and value > 0):
                raise QueryError(
                    f"{name}={value!r}: give a number above 0; to join nothing, open no session"
                )
        if not (_is_number(self.boost) and self.boost > 1):
            raise QueryError(
                f"boost={self.boost!r}: the factor by which more is done after an overload is"
                " above 1, such as 1.2"
            )
        if not (_is_number(self.sample) and 0 < self.sample <= 0.5):
            raise QueryError(
                f"sample={self.sample!r}: the share of rows to learn from is above 0 and at most"
                " 0.5, such as 0.1"
            )
        if self.policy not in POLICIES:
            raise QueryError(
                f'policy={self.policy!r}: load is shed by "selective", "partial" or "drop"'
            )
        if isinstance(self.directions, int) != isinstance(self.directions, bool) or (
            self.directions not in SCOPES
        ):
            raise QueryError(f'directions={self.directions!r}: give True, False or "whole"')
        if self.clock not in ("wall", "event") and not callable(self.clock):
            raise QueryError(
                f'clock={self.clock!r}: give "wall", "event", or a function that returns seconds'
            )
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise QueryError(f"seed={self.seed!r}: give an integer")
        if self.utility is not None and not isinstance(self.utility, Expression):
            raise QueryError(
                f"utility={self.utility!r}: give a column or an expression of one stream, such as"
                ' calls["priority"]'
            )
        if self.utility is not None and len(self.utility.streams) != 1:
            raise QueryError(
                f"utility=`{self.utility!r}` uses columns of {len(self.utility.streams)} streams;"
                " give an expression of one"
            )
        self.period  # noqa: B018 - it is checked

    @property
    def period(self) -> float:
        """``adapt_every`` in seconds of the clock.

        >>> Shedding(budget=0.5, adapt_every="1m").period
        60.0
        """
        every = self.adapt_every
        if isinstance(every, str) or is_duration(every):
            seconds = parse_duration(every, "adapt_every").nanoseconds / 1e9
        elif _is_number(every):
            seconds = float(every)
        else:
            seconds = 0.0
        if seconds <= 0:
            raise QueryError(
                f'adapt_every={every!r}: give a duration above 0, such as "5s", or seconds'
            )
        return seconds

    def seconds(self) -> float:
        """What a clock of the caller's shows.

        >>> Shedding(budget=0.5, clock=lambda: 5).seconds()
        5
        """
        assert callable(self.clock), "another clock is read elsewhere"
        shown = self.clock()
        if not _is_number(shown):
            raise QueryError(f"clock= gave {shown!r}: it has to give seconds, a number")
        return shown

    def settings(self, bound: BoundQuery) -> Settings:
        """What the kernels are told, for a query that is bound to schemas."""
        from windjoin.kernels.shedding.control import Settings
        from windjoin.kernels.shedding.learned import MOST_WINDOWS, WINDOWS
        from windjoin.watermarks import length_ticks

        longest = max(stream.window for stream in bound.spec.streams)
        if self.basic_window is None:
            width = max(-(-longest // WINDOWS), 1)
        else:
            width = length_ticks(
                "basic_window", bound.clock, self.basic_window, bound.integer_times
            )  # fmt: skip
            if width == 0:
                raise QueryError(
                    f"basic_window={self.basic_window!r} is shorter than the unit of the times"
                )
            if 2 * longest // width > MOST_WINDOWS:
                raise QueryError(
                    f"basic_window={self.basic_window!r} makes {longest // width:,} basic windows"
                    f" of the longest window; {MOST_WINDOWS // 2:,} are the most there can be"
                )
        if self.budget is not None:
            units = float(self.budget) * 1e9
        else:
            units = float(self.comparisons_per_s or 0)
        return Settings(
            budget=units,
            by_time=self.budget is not None,
            period=self.period,
            boost=float(self.boost),
            sample=float(self.sample),
            policy=self.policy,
            scope=SCOPES[self.directions],
            width=width,
            reach=longest * (1.0 if bound.clock.step is None else float(bound.clock.step)),
            seed=self.seed,
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
