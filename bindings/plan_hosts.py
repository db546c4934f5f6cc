"""Plans for several hosts: for each number of them what `choose` says of every strategy."""

from __future__ import annotations

from collections.abc import Iterator

from windjoin.diffusion.choose import Estimate, LoadStatistics, choose
from windjoin.diffusion.scenario import Costs
from windjoin.diffusion.segments import StreamProfile
from windjoin.kernels.pairwise import common_key, pair_shares
from windjoin.plan_model import NANOSECOND, Alternative, Model, Spread
from windjoin.strategies import INSERT, SEND

MILLISECOND = 1e-3


def spreads(model: Model, alone: Alternative, most: int) -> Iterator[Spread]:
    """Ways to share the work of a plan among 2, 4, 8 ... hosts, up to ``most`` of them."""
    known = _known(model, alone)
    rate = sum(model.rates.values())
    counts = {min(2**power, most) for power in range(1, most.bit_length() + 1)} - {0, 1}
    for count in sorted(counts):
        for one in choose(known, count).estimates:
            if one.strategy == "single":
                continue
            overhead = one.overhead_ms * MILLISECOND * rate
            yield Spread(
                count, one.strategy, one.parameters.get("segment_s"), overhead, one.parallel,
                _waits(model, one), _why(one),
            )  # fmt: skip


def _known(model: Model, alone: Alternative) -> LoadStatistics:
    """What `choose` wants to know, in milliseconds of this machine."""
    shares = pair_shares(model.spec, model.statistics)
    per_ms = model.ticks * MILLISECOND
    profiles = tuple(
        StreamProfile(
            name,
            max(round(stream.window / per_ms), 1),
            model.joined_rate(number) * MILLISECOND,
            tuple(shares[number]),
        )
        for number, (name, stream) in enumerate(zip(model.names, model.spec.streams, strict=True))
    )
    hops = [hop for way in alone.hops.values() for hop in way]
    asked = sum(hop.asked for hop in hops)
    probe = sum(hop.cost for hop in hops) / asked / MILLISECOND if asked else 0.0
    insert, send = (cost * NANOSECOND / MILLISECOND for cost in (INSERT, SEND))
    costs = Costs(send, insert, max(probe, send), 0.0, 0.0)
    return LoadStatistics(profiles, costs, keyed=common_key(model.spec) is not None, scanned=False)


def _waits(model: Model, one: Estimate) -> int:
    """How often a row waits for a host: at every hop, where each is on a host of its own."""
    return len(model.names) - 1 if one.strategy == "ctr" else 1


def _why(one: Estimate) -> str:
    return (
        f"{one.overhead_ms * 1e6:.0f} ns a row more than one host takes,"
        f" at the speed of {one.parallel:.1f} hosts"
    )
