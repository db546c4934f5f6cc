"""What is simulated: streams, hosts, costs and changes, read from TOML or built in Python.

Unknown keys and values out of range are refused with one line that says where.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from windjoin.diffusion.registry import STRATEGIES


class ScenarioError(ValueError):
    """A scenario says something that cannot be: the text names the key and what would be right."""


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """One stream: Poisson arrivals; with ``burst`` 1 all rows come in a quarter of the time.

    ``alternate``: instead the rate goes to and fro between (1 + alternate) / 2 and
    (1 - alternate) / 2 of ``rate``, as bursts were published.
    """

    name: str
    rate: float  # rows per second
    window_s: float
    burst: float = 0.0
    row_bytes: int = 100
    alternate: float | None = None


@dataclass(frozen=True, slots=True)
class HostSpec:
    """``count`` hosts that are alike; 1 is the speed of the reference host.

    ``network``: how fast it sends and receives, which is work; ``bandwidth_mbps``: what its link
    carries, which is waiting.
    """

    count: int = 1
    cpu: float = 1.0
    network: float = 1.0
    bandwidth_mbps: float | None = None
    memory_mb: float = 1024.0


@dataclass(frozen=True, slots=True)
class Costs:
    """Work in milliseconds on the reference host.

    ``probe_ms`` is for matching one row with the whole window of one stream; a host that holds a
    share of that window takes that share of it.  ``compare_ms`` is per row compared, ``call_ms`` is
    for asking a host that holds any row of the window, however many.
    """

    send_ms: float = 1.0
    receive_ms: float = 1.0
    probe_ms: float = 10.0
    compare_ms: float = 0.0
    call_ms: float = 0.0
    link_ms: float = 1.0


@dataclass(frozen=True, slots=True)
class Change:
    """At a time: a stream's rate becomes another, or hosts join or leave."""

    at_s: float
    stream: str | None = None
    rate: float | None = None
    add_hosts: int = 0
    remove_hosts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything a simulation needs; with the same seed it gives the same figures.

    >>> s = Scenario(streams=(StreamSpec("a", 5, 10), StreamSpec("b", 5, 10)), matches=0.5)
    >>> s.selectivity_of(0, 1)
    0.01
    """

    streams: tuple[StreamSpec, ...]
    hosts: tuple[HostSpec, ...] = (HostSpec(4),)
    strategies: tuple[str, ...] = ("single", "random", "atr", "ctr", "psp")
    seconds: float = 300.0
    seed: int = 1
    segment_s: float = 5.0
    selectivity: float | None = None  # share of the pairs of two streams that match
    matches: float | None = None  # or: matches of a row in a whole window, at the first rates
    costs: Costs = field(default_factory=Costs)
    changes: tuple[Change, ...] = ()
    in_flight: int = 0  # ring: blocks under way; 0: two per host, which keeps all of them busy
    relocation: str = "aggressive"  # ring
    ring_length: int | None = None  # ring: None: as long as its cost model asks for
    objective: str = "rate"  # ring: what its length is best for, or "latency"
    adapt: bool = True  # whether anything follows what is measured
    adapt_length: bool = True  # atr, ctr: whether segments follow the throughput
    order: str = "master"  # atr: what is probed first; as published: by "selectivity"
    smoothing: bool = True  # ring: slices even by rows, not only by age
    copies: int = 2  # ctr
    hot_key: float | None = None  # groups: share of rows with the most frequent key; None: no key
    scanned: bool = True  # a probe costs by the rows of the window at the host, not by its partners
    queue_s: float | None = None  # work a host lets wait before it sheds; None: without limit
    warm_up_s: float = 0.0  # before which nothing counts
    sample_s: float = 5.0
    rows_per_batch: int = 0  # 0: as few as the number of events allows
    events: int = 2_500_000  # about how many jobs a simulation may take
    name: str = "scenario"

    def __post_init__(self) -> None:
        _check(self)

    @property
    def host_count(self) -> int:
        """Hosts at the start."""
        return sum(spec.count for spec in self.hosts)

    def selectivity_of(self, stream: int, other: int) -> float:
        """Share of the pairs of rows of two streams that match."""
        if self.selectivity is not None:
            return self.selectivity
        held = [spec.rate * spec.window_s for spec in self.streams]
        mean = (held[stream] + held[other]) / 2
        return min(1.0, (self.matches if self.matches is not None else 1.0) / max(mean, 1e-12))


def load_scenario(path: str | Path) -> Scenario:
    """Read a scenario from a TOML file."""
    try:
        data = tomllib.loads(Path(path).read_text("utf-8"))
    except FileNotFoundError:
        raise ScenarioError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ScenarioError(f"{path}: {error}") from None
    try:
        return scenario_from(data, name=Path(path).stem)
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from None


def scenario_from(data: Mapping[str, Any], *, name: str = "scenario") -> Scenario:
    """A scenario from the tables of a TOML file.

    >>> scenario_from({"streams": [{"name": "a", "rate": 1, "window": 5}]})
    Traceback (most recent call last):
    ...
    windjoin.diffusion.scenario.ScenarioError: streams[0] has no key 'window'; \
it may have alternate, burst, name, rate, row_bytes, window_s
    """
    given = {"name": name, **data}
    if "streams" not in given:
        raise ScenarioError("there are no [[streams]]; a join needs at least 2")
    for key, kind in (("streams", StreamSpec), ("hosts", HostSpec), ("changes", Change)):
        if key in given:
            given[key] = _tables(given[key], key, kind)
    if "costs" in given:
        given["costs"] = _make(Costs, given["costs"], "costs")
    if isinstance(given.get("strategies"), str):
        given["strategies"] = [given["strategies"]]
    return _make(Scenario, given, "the scenario")


T = TypeVar("T")


def _tables(value: Any, where: str, kind: type[T]) -> tuple[T, ...]:
    if isinstance(value, int) and kind is HostSpec:
        value = [{"count": value}]
    if not isinstance(value, list):
        raise ScenarioError(f"{where} must be a list of tables, got {type(value).__name__}")
    return tuple(_make(kind, each, f"{where}[{at}]") for at, each in enumerate(value))


_KINDS: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "int": int,
    "float": (int, float),
    "bool": bool,
}


def _make(kind: type[T], given: Any, where: str) -> T:
    if not isinstance(given, Mapping):
        raise ScenarioError(f"{where} must be a table, got {type(given).__name__}")
    known = {f.name: str(f.type) for f in fields(kind)}  # type: ignore[arg-type]
    for key, value in given.items():
        if key not in known:
            may = ", ".join(sorted(known))
            raise ScenarioError(f"{where} has no key {key!r}; it may have {may}")
        wanted = _KINDS.get(known[key].split(" ")[0])
        mixed = isinstance(value, bool) and wanted is not bool
        if wanted is not None and (mixed or not isinstance(value, wanted)):
            raise ScenarioError(f"{where}.{key} is {value!r}; it must be {known[key]}")
    values = {key: tuple(v) if isinstance(v, list) else v for key, v in given.items()}
    try:
        return kind(**values)
    except TypeError as error:
        missing = str(error).split("argument")[-1].lstrip("s: ")
        raise ScenarioError(f"{where} lacks {missing}") from None


def _check(s: Scenario) -> None:
    if len(s.streams) < 2:
        raise ScenarioError(f"a join needs at least 2 streams, got {len(s.streams)}")
    names = [spec.name for spec in s.streams]
    if len(set(names)) != len(names):
        raise ScenarioError(f"streams must have different names, got {', '.join(names)}")
    for at, spec in enumerate(s.streams):
        _positive(f"streams[{at}]", spec, "rate", "window_s", "row_bytes")
        if not 0 <= spec.burst <= 1:
            raise ScenarioError(f"streams[{at}].burst is {spec.burst}; it must be in 0..1")
        if spec.alternate is not None and not 0 <= spec.alternate <= 1:
            raise ScenarioError(f"streams[{at}].alternate is {spec.alternate}; it must be in 0..1")
    for at, host in enumerate(s.hosts):
        _positive(f"hosts[{at}]", host, "count", "cpu", "network", "memory_mb")
        if host.bandwidth_mbps is not None:
            _positive(f"hosts[{at}]", host, "bandwidth_mbps")
    if not s.hosts:
        raise ScenarioError("there are no hosts; at least 1 is needed")
    _positive("the scenario", s, "seconds", "segment_s", "sample_s", "copies", "events")
    if s.in_flight < 0 or s.rows_per_batch < 0:
        raise ScenarioError("in_flight and rows_per_batch must be >= 0; 0 lets windjoin choose")
    for item in fields(s.costs):
        if getattr(s.costs, item.name) < 0:
            raise ScenarioError(f"costs.{item.name} is negative")
    _check_choices(s, names)


def _check_choices(s: Scenario, names: Sequence[str]) -> None:
    if unknown := [name for name in s.strategies if name not in STRATEGIES]:
        there_are = ", ".join(STRATEGIES)
        raise ScenarioError(f"there is no strategy {unknown[0]!r}; there are {there_are}")
    if s.relocation not in ("aggressive", "passive"):
        raise ScenarioError(f"relocation is {s.relocation!r}; it must be 'aggressive' or 'passive'")
    if s.objective not in ("latency", "rate"):
        raise ScenarioError(f"objective is {s.objective!r}; it must be 'latency' or 'rate'")
    if s.ring_length is not None and s.ring_length < 1:
        raise ScenarioError(f"ring_length is {s.ring_length}; it must be > 0")
    if s.queue_s is not None and not s.queue_s > 0:
        raise ScenarioError(f"queue_s is {s.queue_s}; it must be > 0")
    if not 0 <= s.warm_up_s < s.seconds:
        raise ScenarioError(f"warm_up_s is {s.warm_up_s}; it must be 0 or more, less than seconds")
    if s.order not in ("master", "selectivity"):
        raise ScenarioError(f"order is {s.order!r}; it must be 'master' or 'selectivity'")
    if s.selectivity is not None and s.matches is not None:
        raise ScenarioError("give selectivity or matches, not both")
    if s.selectivity is not None and not 0 <= s.selectivity <= 1:
        raise ScenarioError(f"selectivity is {s.selectivity}; it must be in 0..1")
    if s.matches is not None and s.matches < 0:
        raise ScenarioError(f"matches is {s.matches}; it must be >= 0")
    if s.hot_key is not None and not 0 <= s.hot_key <= 1:
        raise ScenarioError(f"hot_key is {s.hot_key}; it must be in 0..1")
    if s.hot_key is None and "groups" in s.strategies:
        raise ScenarioError(
            "strategy 'groups' needs hot_key, the share of the rows with the most frequent key;"
            " 0 where keys are even"
        )
    for at, change in enumerate(s.changes):
        if change.stream is not None and change.stream not in names:
            raise ScenarioError(
                f"changes[{at}].stream is {change.stream!r}; there are {', '.join(names)}"
            )
        if (change.stream is None) != (change.rate is None):
            raise ScenarioError(f"changes[{at}] needs both stream and rate, or neither")
        if change.rate is not None and change.rate < 0:
            raise ScenarioError(f"changes[{at}].rate is {change.rate}; it must be >= 0")


def _positive(where: str, spec: object, *names: str) -> None:
    for name in names:
        if not getattr(spec, name) > 0:
            raise ScenarioError(f"{where}.{name} is {getattr(spec, name)}; it must be > 0")
