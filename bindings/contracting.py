"""Which joins of a divided query cannot be cut apart, so that its fragments stay exact.

Rows that are told apart by their numbers (``exclude_self=``) have to be in one place: numbers do
not travel.  What is said of whole results (``how=``, ``keep=``, ``nearest=``) needs all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from windjoin.diffusion.sites import Cut, Flowing
from windjoin.query import Query

Members = frozenset[int]


def kept_together(query: Query) -> Iterator[Members]:
    """Sets of streams that one fragment reads itself."""
    if not query.sides.plain or query.nearest is not None:
        yield frozenset(range(len(query.streams)))
    yield from map(frozenset, query.exclude_self)


def contracted(
    cuts: Sequence[Cut], members: Sequence[Members], together: Iterator[Members]
) -> tuple[list[Cut], list[Members]]:
    """Joins in post-order, where those that read streams of one set, and all between, are one."""
    group = list(range(len(cuts)))
    for streams in together:
        top = next(number for number, one in enumerate(members) if streams <= one)
        inside = {
            group[number] for number in range(top + 1)
            if members[number] & streams and members[number] <= members[top]
        }  # fmt: skip
        group = [group[top] if one in inside else one for one in group]
    # the last join of a group is above the others: what it sends is what the group sends
    tops = [number for number in range(len(cuts)) if number == _top(group, number)]
    place = {top: at for at, top in enumerate(tops)}

    def outer(top: int) -> Iterator[Flowing]:
        for number, cut in enumerate(cuts):
            if group[number] == group[top]:
                for flowing in cut.inputs:
                    if flowing.fragment < 0:
                        yield flowing
                    elif group[flowing.fragment] != group[top]:
                        below = place[_top(group, flowing.fragment)]
                        yield Flowing(f"join {below + 1}", flowing.bandwidth, below)

    found = [Cut(tuple(outer(top)), cuts[top].output) for top in tops]
    return found, [members[top] for top in tops]


def _top(group: Sequence[int], number: int) -> int:
    return max(other for other, one in enumerate(group) if one == group[number])
