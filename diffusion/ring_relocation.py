"""Where the slices of a ring begin and end, and how they move when hosts come and go.

Any bounds give the exact result: a row moves on only ahead of the probe that made it move, so every
probe meets every row at exactly one host.  Bounds decide balance alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from windjoin.diffusion.ring_messages import Bounds


def even_bounds(order: Sequence[int], expiry: Sequence[int]) -> dict[int, Bounds]:
    """Slices of equal age: host j of N passes rows on at ``(j + 1) / N`` of each window.

    >>> even_bounds([7, 8], (10, 21))[7].age, even_bounds([7, 8], (10, 21))[8].age
    ({0: 5, 1: 11}, {})
    """
    hosts = len(order)
    return {
        host: Bounds(age=_ages(at + 1, hosts, expiry) if at + 1 < hosts else {})
        for at, host in enumerate(order)
    }


def _ages(part: int, parts: int, expiry: Sequence[int]) -> dict[int, int]:
    return {stream: -(-age * part // parts) for stream, age in enumerate(expiry)}


def weighted_bounds(
    order: Sequence[int], expiry: Sequence[int], weights: Sequence[float]
) -> dict[int, Bounds]:
    """Slices in proportion to what each host can do, for hosts that are not alike.

    >>> weighted_bounds([0, 1], (100,), [3.0, 1.0])[0].age
    {0: 75}
    """
    if len(weights) != len(order) or min(weights) <= 0:
        raise ValueError(f"every host needs a weight above 0, got {list(weights)}")
    shares = [Fraction(weight) for weight in weights]
    total, reached = sum(shares), Fraction(0)
    bounds = {}
    for at, host in enumerate(order):
        reached += shares[at]
        ages = {stream: -int(-age * reached // total) for stream, age in enumerate(expiry)}
        bounds[host] = Bounds(age=ages if at + 1 < len(order) else {})
    return bounds


def smoothing_bounds(
    order: Sequence[int], expiry: Sequence[int], window_rows: Sequence[float], slack: float = 1.1
) -> dict[int, Bounds]:
    """Even slices with a bound on the row count of all but the tail, against bursts.

    ``window_rows`` is what the whole window of each stream is expected to hold; the caller resets
    the bounds from a fresh estimate from time to time.  The tail stays bounded by time alone, so
    the window keeps its meaning.

    >>> smoothing_bounds([0, 1], (10,), [100.0], slack=1.0)[0].count
    {0: 50}
    """
    if slack < 1:
        raise ValueError(f"slack is {slack}; below 1 the slices could not hold the window")
    ages = even_bounds(order, expiry)
    counts = {
        stream: max(1, int(slack * rows / len(order) + 0.999999))
        for stream, rows in enumerate(window_rows)
    }
    return {
        host: Bounds(age=ages[host].age, count=counts if at + 1 < len(order) else {})
        for at, host in enumerate(order)
    }


def retiring_bounds(
    order: Sequence[int], leaving: Iterable[int], expiry: Sequence[int]
) -> dict[int, Bounds]:
    """Bounds under which the slices of leaving hosts run empty: passive relocation.

    A leaving host passes on at the age at which it receives; before a leaving tail the last staying
    host keeps its rows until they expire.

    >>> bounds = retiring_bounds([0, 1, 2], [1], (10,))
    >>> [bounds[host].age for host in (0, 1, 2)]
    [{0: 5}, {0: 5}, {}]
    """
    gone = set(leaving)
    staying = [host for host in order if host not in gone]
    if not staying:
        raise ValueError(f"all hosts {list(order)} would leave; at least one must stay")
    bounds, passed = {}, 0
    for at, host in enumerate(order):
        passed += host not in gone
        bounds[host] = Bounds(
            age=_ages(passed, len(staying), expiry) if at + 1 < len(order) else {}
        )
    return bounds


def relocation_shares(old: int, new: int) -> list[Fraction]:
    """``dS_i = (M/N) i - floor((M/N) i)``: where the new cuts fall inside the old slices.

    >>> [str(share) for share in relocation_shares(2, 3)]
    ['2/3', '1/3']
    """
    return [Fraction(old * i, new) % 1 for i in range(1, new)]


def ring_order_after(
    old: Sequence[int], joining: Iterable[int], leaving: Iterable[int]
) -> list[int]:
    """The order of the ring that leaves most state where it is.

    Of N even slices every one goes to the staying host that holds most of it already; the hosts
    that join take the others, which is where a new slice fills up.

    >>> ring_order_after([0, 1], joining=[2], leaving=[])
    [0, 2, 1]
    """
    gone, fresh = set(leaving), list(joining)
    staying = [host for host in old if host not in gone]
    slices = len(staying) + len(fresh)
    if unknown := gone - set(old):
        raise ValueError(f"hosts {sorted(unknown)} are not in the ring {list(old)}")
    if not slices:
        raise ValueError(f"all hosts {list(old)} would leave; at least one must stay")
    overlaps = sorted(
        (-_overlap(at, k, len(old), slices), k, host)
        for at, host in enumerate(old)
        if host not in gone
        for k in range(slices)
    )
    taken: dict[int, int] = {}
    for _, k, host in overlaps:
        if k not in taken and host not in taken.values():
            taken[k] = host
    return [taken[k] if k in taken else fresh.pop(0) for k in range(slices)]


def _overlap(old_slice: int, new_slice: int, old: int, new: int) -> Fraction:
    """How much of an old slice (of size 1) lies in a new slice (of size ``old / new``)."""
    low = max(Fraction(old_slice), Fraction(new_slice * old, new))
    high = min(Fraction(old_slice + 1), Fraction((new_slice + 1) * old, new))
    return max(high - low, Fraction(0))
