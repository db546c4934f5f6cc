"""In which order hosts stand in a ring when some join or leave."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction


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
