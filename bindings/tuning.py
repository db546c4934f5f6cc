"""What an operator may set of how hosts share a join; without it, all follows measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import isfinite
from typing import Any

from windjoin.diffusion.load import Weights
from windjoin.errors import QueryError, hint

# which options a router takes, by strategy
COPIES = ("copies", "warm_up_copies", "crowded")
TAKEN = {
    "atr": ("master", "order"),
    "atr-fixed": ("master", "order"),
    "ctr": COPIES,
    "ctr-random": ("copies", "warm_up_copies"),
    "psp": ("relocation", "ring_length", "objective", "slices"),
    "groups": ("group_count",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """How hosts share a join; ``tuning=`` of `Query.run` and `Query.open`, with ``hosts=``.

    ``weights``: of processor, memory and network in a host's load; they sum to 1.
    ``adapt``: whether shares, master, segment length and slices follow what is measured.
    ``copies``, ``warm_up_copies``, ``crowded``: of ctr.  On how many hosts a segment is, in the
    first window on how many, and times the mean load above which a host is not given more.
    ``master``: of atr.  The stream that is master from the start, and stays it without ``adapt``.
    ``order``: of atr.  In which order a host is said to probe: "master" first, or by "selectivity".
    ``relocation``: of psp.  "aggressive" moves state at once, "passive" lets it drift.
    ``ring_length``: of psp.  How many hosts the ring has; what its cost model says if not given.
    ``objective``: of psp.  What its length is best for, "latency" (in sessions) or "rate".
    ``slices``: of psp.  Even by "rows", made so again eight times per window, or by "age" alone.
    ``group_count``: of groups.  How many units keys are dealt into.
    ``in_flight``: how many segments hosts may be at work on at a time.
    ``smoothing``: seconds between two changes of shares, at least.
    ``bandwidth``: bytes per second of each host; the most that any was seen to send if not given.
    ``memory``: bytes of each host; an even share of the machine's if not given.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> rows = {"t": [1, 2], "k": [5, 6]}
    >>> q = wj.join(a, b, on=a["k"] == b["k"])
    >>> q.run({"a": rows, "b": rows}, hosts=3, strategy="ctr", tuning=wj.Tuning(copies=3)).num_rows
    2
    """

    weights: tuple[float, float, float] = (1.0, 0.0, 0.0)
    adapt: bool = True
    copies: int | None = None
    warm_up_copies: int | None = None
    crowded: float | None = None
    master: str | None = None
    order: str | None = None
    relocation: str | None = None
    ring_length: int | None = None
    objective: str | None = None
    slices: str | None = None
    group_count: int | None = None
    in_flight: int | None = None
    smoothing: float = 0.0
    bandwidth: float | None = None
    memory: float | None = None

    def __post_init__(self) -> None:
        self.load_weights()
        for name in ("copies", "warm_up_copies", "group_count", "in_flight", "ring_length"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise QueryError(f"Tuning({name}={value!r}): give a whole number, 1 or more")
        for name, least in (("crowded", 1.0), ("smoothing", 0.0)):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and value >= least):
                raise QueryError(f"Tuning({name}={value!r}): give {least:g} or more")
        for name in ("bandwidth", "memory"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and value > 0):
                raise QueryError(f"Tuning({name}={value!r}): give a number of bytes above 0")
        self._choice("order", ("master", "selectivity"))
        self._choice("relocation", ("aggressive", "passive"))
        self._choice("objective", ("latency", "rate"))
        self._choice("slices", ("rows", "age"))

    def _choice(self, name: str, known: Sequence[str]) -> None:
        value = getattr(self, name)
        if value is not None and value not in known:
            told = hint(str(value), list(known)) or f"; give {' or '.join(map(repr, known))}"
            raise QueryError(f"Tuning({name}={value!r}) is not known{told}")

    def load_weights(self) -> Weights:
        """The weights of equation 1.

        >>> Tuning().load_weights()
        Weights(...)
        """
        weights = checked_weights(self.weights)
        return Weights(*weights)

    def options(self, strategy: str, names: Sequence[str]) -> dict[str, Any]:
        """What the router of a strategy is given; names of the streams."""
        taken = TAKEN.get(strategy, ())
        given = {
            name: getattr(self, name)
            for name in {option for options in TAKEN.values() for option in options}
            if getattr(self, name) is not None
        }
        if wrong := sorted(set(given) - set(taken)):
            may = f"takes {', '.join(taken)}" if taken else "takes none of them"
            raise QueryError(
                f"Tuning({wrong[0]}=...) is not for strategy {strategy!r}, which {may}"
            )
        if "master" in given:
            if given["master"] not in names:
                raise QueryError(
                    f"Tuning(master={self.master!r}) is not a stream of this query"
                    f"{hint(str(self.master), list(names))}"
                )
            given["master"] = list(names).index(given["master"])
        return given


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def checked_weights(weights: Any) -> tuple[float, float, float]:
    """Three weights that sum to 1; `QueryError` if they are anything else."""
    try:
        cpu, memory, network = map(float, weights)
    except (TypeError, ValueError):
        raise QueryError(
            f"weights={weights!r}: give three numbers, (cpu, memory, network)"
        ) from None
    values = (cpu, memory, network)
    if not all(isfinite(value) and value >= 0 for value in values) or abs(sum(values) - 1) > 1e-9:
        raise QueryError(
            f"weights={weights!r}: give three numbers of 0 or more that sum to 1,"
            " for processor, memory and network"
        )
    return values


def as_tuning(tuning: Any, weights: Any) -> Tuning:
    """What ``tuning=`` and ``weights=`` say together."""
    if tuning is not None and not isinstance(tuning, Tuning):
        raise QueryError(f"tuning={tuning!r}: give a windjoin.Tuning")
    told = tuning or Tuning()
    if weights is None:
        return told
    values = {field.name: getattr(told, field.name) for field in fields(told)}
    return Tuning(**{**values, "weights": checked_weights(weights)})
