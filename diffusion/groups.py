"""Partition groups: rows go by the hash of their join key.  For equality only; nothing is copied.

There are many more groups than hosts; group number g of all streams is one unit, the only one that
ever moves.  The caller computes the group of a row; the router says which host has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from windjoin.diffusion.errors import RoutingError
from windjoin.diffusion.load import Host, Usage, Weights
from windjoin.diffusion.meter import READINGS
from windjoin.diffusion.router import (
    DEFAULT_MARKS,
    Description,
    Hop,
    Move,
    Part,
    Path,
    Placement,
    Router,
)
from windjoin.diffusion.segments import NEVER, Segment, StreamProfile
from windjoin.diffusion.shares import Shares


class Groups(Router):
    """One host per partition group.

    >>> streams = [StreamProfile("a", window=10), StreamProfile("b", window=20)]
    >>> router = Groups(streams, [Host(0), Host(1)], segment_length=5, group_count=6)
    >>> router.table().tolist()
    [0, 1, 0, 1, 0, 1]
    >>> [(move.source, move.target, move.groups) for move in router.move_groups([0], 1)]
    []
    >>> [part.groups for part in router.place(Segment(0, 0, 5)).parts]
    [(2, 4), (0, 1, 3, 5)]
    """

    name: ClassVar[str] = "groups"
    needs_groups: ClassVar[bool] = True

    def __init__(
        self,
        profiles: Sequence[StreamProfile],
        hosts: Sequence[Host],
        *,
        segment_length: int,
        weights: Weights | None = None,
        group_count: int = 512,
        adapt: bool = True,
    ) -> None:
        super().__init__(profiles, hosts, segment_length=segment_length, weights=weights)
        if group_count < len(hosts):
            raise RoutingError(
                f"group_count is {group_count}; it must be at least the {len(hosts)} hosts"
            )
        numbers = self.book.open_hosts
        self.owner = [numbers[group % len(numbers)] for group in range(group_count)]
        self._placed = NEVER
        self.adapt = adapt
        self.shares = Shares({host.number: host.cpu for host in hosts})
        self._uneven = False  # groups are to be handed over at the next border
        self._settling = 0  # reports that still tell of the time before they were
        self._shares: dict[int, tuple[int, ...]] = {}  # derived from owner; empty: not yet
        self._parts_of: tuple[int, int, tuple[Part, ...]] = (0, 0, ())  # those asked for last

    # -- who has what --------------------------------------------------------------------------

    def table(self) -> NDArray[np.int32]:
        """Host number by group: what a splitter needs."""
        return np.asarray(self.owner, dtype=np.int32)

    def groups_of(self, host: int) -> tuple[int, ...]:
        """The groups of a host, ascending."""
        return tuple(group for group, owner in enumerate(self.owner) if owner == host)

    def move_groups(self, groups: Iterable[int], target: int) -> tuple[Move, ...]:
        """Give groups to a host, from the next border on."""
        chosen = sorted(set(groups))
        if chosen and not 0 <= chosen[0] <= chosen[-1] < len(self.owner):
            raise RoutingError(f"groups are 0 .. {len(self.owner) - 1}, got {chosen}")
        if target not in self.book.open_hosts:
            raise RoutingError(f"host {target} takes no work; {self.book.open_hosts} do")
        moves: list[Move] = []
        for source in sorted({self.owner[group] for group in chosen} - {target}):
            mine = tuple(group for group in chosen if self.owner[group] == source)
            moves += self._hand_over(mine, source, target)
        return tuple(moves)

    # -- following the loads -------------------------------------------------------------------

    def _measured(
        self,
        loads: Mapping[int, Usage],
        rates: Sequence[float] | None,
        throughput: float | None,
    ) -> None:
        """With ``adapt``, groups follow the loads at the next border.

        Loads count again once all that they are made of is from after the groups were handed over:
        before that they would ask for the same step a second time.
        """
        if not self.adapt or self._uneven:
            return
        self._settling = max(self._settling - 1, 0)
        if self._settling:
            return
        measured = {n: self.book.reported(n) for n in loads if n in self.book.open_hosts}
        self._uneven = self.shares.follow(measured, now=self.seconds)

    def advance(self, border: int) -> tuple[Move, ...]:
        """Hand groups from hosts that have more than their share to those that have less."""
        moves = super().advance(border)
        if not self._uneven:
            return moves
        self._uneven, self._settling = False, 1 if self.shares.looking else READINGS
        wanted = self._wanted()
        held = {number: list(self.groups_of(number)) for number in wanted}
        spare = [g for n, mine in held.items() for g in _spread(mine, len(mine) - wanted[n])]
        for number, mine in held.items():
            lacking = max(wanted[number] - len(mine), 0)
            moves += self.move_groups(spare[:lacking], number)
            del spare[:lacking]
        return moves

    def _wanted(self) -> dict[int, int]:
        """How many groups each host should have; together all of those that open hosts have."""
        hosts = self.book.open_hosts
        count = sum(owner in hosts for owner in self.owner)
        total = sum(self.shares.weight(number) for number in hosts)
        wanted, reached, given = {}, 0.0, 0
        for number in hosts:
            reached += self.shares.weight(number)
            stop = round(count * reached / total)
            wanted[number], given = stop - given, stop
        return wanted

    # -- routing -------------------------------------------------------------------------------

    def place(self, segment: Segment) -> Placement:
        """One part per host, with the groups it has."""
        self._check_segment(segment)
        self._placed = max(self._placed, segment.stop)
        self.counters.segments += 1
        self.counters.rows += segment.rows
        self.counters.copies += segment.rows
        self.counters.bytes_stored += segment.bytes
        return Placement(self._parts(segment))

    def path(self, segment: Segment) -> Path:
        """One hop, at the host of the row's group."""
        parts = self._parts(segment)
        self.counters.visits += 1
        return Path((Hop(self._others(segment.stream), tuple(self._shares), {}, parts),))

    def add_host(self, host: Host) -> tuple[Move, ...]:
        """The new host gets its share of the groups, from those that have most."""
        super().add_host(host)
        self.shares.add(host.number, host.cpu)
        share = len(self.owner) // len(self.book.open_hosts)
        given: list[int] = []
        held = {number: list(self.groups_of(number)) for number in self.book.open_hosts}
        for _ in range(share):
            richest = max(held, key=lambda number: (len(held[number]), -number))
            if len(held[richest]) <= len(given) + 1:
                break
            given.append(held[richest].pop())
        return self.move_groups(given, host.number)

    def remove_host(self, number: int, *, lost: bool) -> tuple[Move, ...]:
        """Its groups go to those that have fewest, from the host itself or from the log."""
        mine = self.groups_of(number)
        super().remove_host(number, lost=lost)
        self.shares.remove(number)
        held = {other: len(self.groups_of(other)) for other in self.book.open_hosts}
        given: dict[int, list[int]] = {}
        for group in mine:
            poorest = min(held, key=lambda other: (held[other], other))
            held[poorest] += 1
            given.setdefault(poorest, []).append(group)
        source = None if lost else number
        moves: list[Move] = []
        for target, groups in sorted(given.items()):
            moves += self._hand_over(tuple(groups), source, target)
        return tuple(moves)

    def describe(self) -> Description:
        """Nothing is copied: no overhead."""
        counts = {number: len(self.groups_of(number)) for number in self.book.open_hosts}
        return Description(
            self.name,
            self.exact,
            tuple(host.number for host in self.book.hosts),
            entries=len(self.owner),
            state_bytes=4 * len(self.owner),
            counters=self.counters,
            expected_overhead=0.0,
            details={"groups_per_host": counts},
        )

    # -- plain data ----------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Who has which group."""
        return super().state() | {
            "owner": list(self.owner),
            "placed": self._placed,
            "shares": self.shares.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """The way back from `state`."""
        super().restore(state)
        self.owner, self._placed = list(state["owner"]), state["placed"]
        self.shares.restore(state["shares"], now=self.seconds)
        self._shares = {}

    # -- helpers -------------------------------------------------------------------------------

    def _parts(self, segment: Segment) -> tuple[Part, ...]:
        start, stop = segment.start, segment.stop
        if self._shares and self._parts_of[:2] == (start, stop):
            return self._parts_of[2]
        if not self._shares:
            held: dict[int, list[int]] = {}
            for group, host in enumerate(self.owner):
                held.setdefault(host, []).append(group)
            self._shares = {host: tuple(held[host]) for host in sorted(held)}
        same = repeat(start), repeat(stop), repeat(DEFAULT_MARKS)
        parts = tuple(map(Part, self._shares, *same, self._shares.values()))
        self._parts_of = start, stop, parts
        return parts

    def _hand_over(self, groups: tuple[int, ...], source: int | None, target: int) -> list[Move]:
        self._shares = {}
        for group in groups:
            self.owner[group] = target
        moves = self._hand_windows(source, target, self._placed, groups)
        self.counters.switches += bool(moves)
        return moves

    def _holds_work(self, number: int) -> bool:
        return number in self.owner


def _spread(groups: Sequence[int], count: int) -> list[int]:
    """So many of them, evenly: which groups have rows is not known here."""
    return [groups[len(groups) * at // count] for at in range(count)]
