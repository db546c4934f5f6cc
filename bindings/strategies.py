"""From a query and what was measured of its data to a router for hosts in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from windjoin.diffusion.adaptive import AdaptiveRouter
from windjoin.diffusion.choose import KNOWN, Estimate, LoadStatistics, choose
from windjoin.diffusion.load import MAX_HOSTS, Host
from windjoin.diffusion.psp import ring_segment
from windjoin.diffusion.registry import STRATEGIES, make
from windjoin.diffusion.router import Router
from windjoin.diffusion.router_clock import LONGEST_WINDOW, RouterClock
from windjoin.diffusion.scenario import Costs
from windjoin.diffusion.segments import StreamProfile
from windjoin.errors import QueryError, hint
from windjoin.kernels import statistics as kernel_statistics
from windjoin.kernels.order import best_order
from windjoin.kernels.pairwise import common_key, pair_shares
from windjoin.kernels.spec import JoinSpec
from windjoin.kinds import INT64_MAX
from windjoin.memory import Memory
from windjoin.tuning import Tuning

MOST_SEGMENTS = 4096  # in a window
LEAST_EPOCHS, MOST_EPOCHS = 8, 512  # of a batch; the least for each host
EPOCHS_SHARE = 0.25  # of the work of a batch may go into epochs
EPOCH = 150_000.0  # nanoseconds that one costs each host
NANOSECOND = 1e-6  # in milliseconds
INSERT, SEND = 120.0, 20.0  # nanoseconds for a row that a host stores, or sends on
OVERLOAD = 4.0  # a batch offers its rows faster than any cluster takes them
LONGEST_MS = 100_000.0  # what the longest window counts as: only rate times window matters
PATIENT = 1e12
GROUPS_PER_HOST = 32
ALIKE = 0.2  # shares of the input that differ by less: then the strategy that exchanges least
UNTUNED = Tuning()
RING_SEGMENTS = 4  # in a slice of the ring, at least


@dataclass(frozen=True, slots=True)
class Hosts:
    """How a query is spread over hosts, as the user asked for it; ``segment`` in ticks."""

    count: int
    strategy: str = "auto"
    segment: int | None = None
    tuning: Tuning = UNTUNED


@dataclass(frozen=True, slots=True)
class Routing:
    """A router with its clock, and why it was taken."""

    router: Router
    clock: RouterClock
    reasons: tuple[str, ...]
    key: tuple[int, ...] | None  # partition groups are taken from this key of every stream
    group_count: int


def check_hosts(hosts: Any, strategy: Any) -> int:
    """The number of hosts; `QueryError` if it is none or nobody knows the strategy."""
    if not isinstance(hosts, int) or isinstance(hosts, bool) or not 1 <= hosts <= MAX_HOSTS:
        raise QueryError(f"hosts={hosts!r}: give a number of hosts, 1 to {MAX_HOSTS}, or None")
    if strategy != "auto" and strategy not in STRATEGIES:
        known = ["auto", *STRATEGIES]
        raise QueryError(f"strategy={strategy!r} is not known{hint(str(strategy), known)}")
    return hosts


def with_groups(hosts: Hosts, spec: JoinSpec, memory: Memory, *, asked: Any = None) -> Hosts:
    """Hosts whose memory is bounded: of partition groups, where all streams are tied by a key.

    asked: how hosts are to adapt, if that was said
    """
    keyed = common_key(spec) is not None
    if hosts.strategy == "auto" and keyed:
        hosts = replace(hosts, strategy="groups")
    if hosts.strategy != "groups":
        if asked not in (None, "none"):
            why = "no equality ties all streams of this query together"
            if keyed:
                why = f"strategy={hosts.strategy!r} deals rows out by time"
            raise QueryError(
                f"adaptation={asked!r} moves and spills partition groups of a key that all streams"
                f" share, but {why}; leave it out"
            )
        return hosts
    # what moves is decided by memory
    tuning = replace(hosts.tuning, group_count=memory.groups, adapt=False)
    return replace(hosts, tuning=tuning)


def routing(
    spec: JoinSpec,
    statistics: kernel_statistics.Statistics,
    hosts: Hosts,
    span: int | None = None,
    present: Sequence[Host] | None = None,
) -> Routing:
    """The router for a query; ``span`` is how much event time a batch goes over.

    present: the hosts, if they are not ``hosts.count`` equal ones
    """
    most = INT64_MAX if span is None else max(span, 1)  # nothing is further apart
    clock = RouterClock([min(stream.window, most) for stream in spec.streams])
    key = common_key(spec)
    profiles = _profiles(spec, statistics, clock)
    longest = max(clock.windows)
    least = 1 if span is None else (span >> clock.shift) // _epochs_worth(spec, statistics, hosts)
    strategy, options, length = hosts.strategy, dict[str, Any](), 0
    reasons: tuple[str, ...] = (f"strategy={hosts.strategy!r} was asked for",)
    if strategy == "auto":
        asked, unit = _as_measured(spec, statistics, profiles, key is not None)
        ring = RING_SEGMENTS * least * hosts.count <= longest
        best, reasons = _chosen(asked, unit, hosts.count, ring=ring)
        strategy = best.strategy
        length = int(best.parameters.get("segment_s", 0.0) * 1000.0 / LONGEST_MS * longest)
        if "copies" in best.parameters:
            options["copies"] = int(best.parameters["copies"])
    if strategy == "psp":
        options |= {"centred": True, "objective": "latency" if span is None else "rate"}
    count = hosts.tuning.group_count or GROUPS_PER_HOST * hosts.count
    if strategy == "groups":
        options["group_count"] = count
        if key is None:
            raise QueryError(
                "strategy='groups' sends rows to hosts by a key, but no equality ties all streams"
                ' of this query together; take another strategy, or "auto"'
            )
    length = max(length or _segment(strategy, longest, hosts.count), least)
    if hosts.segment is not None:
        length = _asked_segment(hosts.segment, clock)
    length = min(length, 4 << LONGEST_WINDOW)
    if strategy in ("atr", "ctr", "psp", "groups"):
        options["adapt"] = hosts.tuning.adapt
    options |= hosts.tuning.options(strategy, [stream.name for stream in spec.streams])
    options["weights"] = hosts.tuning.load_weights()
    there = hosts.count if present is None else present
    router = make(strategy, profiles, there, segment_length=length, **options)
    if isinstance(router, AdaptiveRouter):
        router.fixed_length = hosts.segment is not None
    return Routing(router, clock, reasons, key, count)


def _epochs_worth(spec: JoinSpec, statistics: kernel_statistics.Statistics, hosts: Hosts) -> int:
    """How many epochs a batch is cut into, so that they cost little against the join itself."""
    affordable = EPOCHS_SHARE * best_order(spec, statistics).cost / (EPOCH * hosts.count)
    return max(LEAST_EPOCHS * hosts.count, min(MOST_EPOCHS, int(affordable)))


def _chosen(
    asked: LoadStatistics, unit: float, hosts: int, *, ring: bool
) -> tuple[Estimate, tuple[str, ...]]:
    """The best strategy and why; a ``ring`` only where segments are short against its slices."""
    every = choose(asked, hosts)
    possible = [e for e in every.estimates if ring or e.strategy != "psp"]
    most = possible[0].share
    best = min(
        (e for e in possible if e.share >= (1 - ALIKE) * most),
        key=lambda e: KNOWN.index(e.strategy),
    )
    ranked = [best, *(e for e in possible if e is not best)]
    reasons = [
        f"{e.strategy} makes about {e.work_ms / unit:,.0f} ns of work per row,"
        f" {e.overhead_ms / unit:,.0f} of them overhead, at the speed of {e.parallel:.1f} hosts;"
        f" {e.formula}"
        for e in ranked
    ]
    if not ring:
        reasons.append("psp would need shorter segments than pay here")
    return best, tuple(reasons)


def _profiles(
    spec: JoinSpec, statistics: kernel_statistics.Statistics, clock: RouterClock
) -> list[StreamProfile]:
    shares = pair_shares(spec, statistics)
    return [
        StreamProfile(
            stream.name,
            clock.windows[number],
            statistics.rates[number] * 2.0**clock.shift,
            tuple(shares[number]),
        )
        for number, stream in enumerate(spec.streams)
    ]


def _asked_segment(ticks: int, clock: RouterClock) -> int:
    length = max(ticks >> clock.shift, 1)
    if length * MOST_SEGMENTS < max(clock.windows):
        raise QueryError(
            f"segment: {ticks} ticks are too short for a window of"
            f" {max(clock.windows) << clock.shift}; it may hold {MOST_SEGMENTS} segments"
        )
    return length


def _segment(strategy: str, longest: int, hosts: int) -> int:
    """Short enough that work spreads over the hosts, long enough that little is done twice.

    In a ring a segment is stored at the head, where it must be short against a slice.
    """
    if strategy == "psp":
        return ring_segment(longest, hosts)
    parts = {"ctr": 8, "ctr-random": 8, "atr": 2, "atr-fixed": 2, "single": 1}
    return max(longest // parts.get(strategy, 4), 1)


def _as_measured(
    spec: JoinSpec,
    statistics: kernel_statistics.Statistics,
    profiles: Sequence[StreamProfile],
    keyed: bool,
) -> tuple[LoadStatistics, float]:
    """What `choose` wants to know, in units that keep every window long, and its nanosecond."""
    order = best_order(spec, statistics)
    rows = max(statistics.rows[order.start], 1)
    hops = max(len(spec.streams) - 1, 1)
    probe = max(order.cost / rows / hops, SEND)
    longest = max(max(profile.window for profile in profiles), 1)
    stretch = LONGEST_MS / longest  # milliseconds per tick of the router
    rate = sum(profile.rate for profile in profiles) / stretch
    # as if the work of one host took OVERLOAD times the time there is
    unit = OVERLOAD / max(rate * (probe * hops + INSERT) * NANOSECOND, 1e-12) * NANOSECOND
    asked = LoadStatistics(
        tuple(
            replace(profile, window=round(profile.window * stretch), rate=profile.rate / stretch)
            for profile in profiles
        ),
        Costs(SEND * unit, INSERT * unit, probe * unit, 0.0, 0.0),
        PATIENT,
        keyed,
        scanned=False,
    )
    return asked, unit
