"""Partition groups change hosts while all others go on: the eight steps of the memory paper.

1. The manager tells the sender how much is to go (`ChooseGroups`);
2. the sender answers with groups, the most productive first.
3. The splitter is told (`Relocation.proceed`): it puts an `EndOfMovedGroups` into the inbox of the
   sender, behind all that is on its way there, and keeps what comes for these groups in a `Gate`;
4. that is done before the next row is routed.
5. The sender is to send (`SendGroups`): having met the marker, it holds all there is of them;
6. it puts them into the inbox of the receiver (`ReceiveGroups`): numbers of rows, no pages;
7. the receiver takes them in,
8. and opens the gate: what was kept comes first, then what is routed from then on.

Inboxes are first in, first out, so the marker needs no answer from anyone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING

from windjoin.diffusion.balance import F64, most_productive
from windjoin.diffusion.errors import RoutingError
from windjoin.diffusion.groups import Groups
from windjoin.diffusion.host_window import Chosen, Stretch
from windjoin.diffusion.worker import Give, Message, ProtocolStep, Take, Ticket, Worker

if TYPE_CHECKING:
    from windjoin.diffusion.cluster import Cluster


class Gate:
    """Messages for moved groups wait here until their rows have come to the receiver."""

    def __init__(self, target: Worker) -> None:
        self._target, self._lock = target, Lock()
        self._kept: list[tuple[Message, Ticket]] = []
        self.is_open = False

    def send(self, message: Message, ticket: Ticket) -> None:
        """To the receiver, now or once the gate opens."""
        with self._lock:
            if not self.is_open:
                ticket.left.add(1)
                self._kept.append((message, ticket))
                return
        self._target.send(message, ticket)

    def open(self) -> None:
        """What was kept comes before all that is sent from now on."""
        with self._lock:
            for message, ticket in self._kept:
                self._target.put(message, ticket)
            self._kept = []
            self.is_open = True


@dataclass(slots=True)
class Relocated:
    """All relocations of a cluster so far."""

    count: int = 0
    groups: int = 0
    rows: int = 0
    seconds: float = 0.0  # in which moved groups had to wait
    longest: float = 0.0  # of these, of one group

    def add(self, done: Relocation) -> None:
        """One more."""
        if not done.groups:
            return
        self.count += 1
        self.groups += len(done.groups)
        self.rows += done.rows
        self.seconds += done.pause
        self.longest = max(self.longest, done.pause / len(done.groups))


class Relocation:
    """One relocation, from its first step to its last.

    sizes, results: by group, of those that may move; a size of 0 is one that may not
    """

    def __init__(
        self, cluster: Cluster, source: int, target: int, amount: float, sizes: F64, results: F64
    ) -> None:
        self.cluster, self.source, self.target = cluster, source, target
        self.groups: tuple[int, ...] = ()
        self.gate = Gate(cluster.workers[target])
        self.rows = 0
        self.pause = 0.0  # seconds in which rows of the groups had to wait
        self.closed_at = 0.0
        self.answered = False
        self._chosen: list[Chosen] = []
        self._sent = False
        self._ticket = Ticket()
        choose = ChooseGroups(self, amount, sizes, results)
        cluster.workers[source].send(choose, self._ticket)

    @property
    def moving(self) -> bool:
        """Whether rows of the groups go through the gate."""
        return bool(self._chosen)

    def proceed(self) -> None:
        """At a border, before its rows are routed: steps 3 to 5, once the groups are chosen."""
        if self.answered and not self._sent:
            self._deactivate()

    def _deactivate(self) -> None:
        cluster = self.cluster
        cluster.wait(self._ticket)
        router = cluster.router
        if not isinstance(router, Groups) or self.source not in cluster.workers:
            raise RoutingError(f"{router.name!r} has no groups that could be relocated")
        self._sent = True
        moves = router.move_groups(self.groups, self.target)
        if not moves:
            self.gate.open()
            return
        self.closed_at = perf_counter()
        source = cluster.workers[self.source]
        self._chosen = [cluster.chosen(k, self.groups) for k in range(cluster.streams)]
        source.send(EndOfMovedGroups(self), self._ticket)
        gives = [
            Give(n, m.stream, *cluster.stretch_of(m), self._chosen[m.stream], m.keep)
            for n, m in enumerate(moves)
        ]
        source.send(SendGroups(self, gives, [m.marks for m in moves]), self._ticket)

    def divided(self, stream: int, stretch: Stretch) -> tuple[Stretch, Stretch]:
        """Rows for the receiver: those of groups that stay as they are, those of moved groups."""
        moved = self._chosen[stream](stretch.rows)
        return stretch.where(~moved), stretch.where(moved)

    def finish(self) -> None:
        """Take all steps that are left; nothing is routed meanwhile."""
        self.cluster.wait(self._ticket)
        self.proceed()
        self.cluster.wait(self._ticket)


@dataclass(frozen=True, slots=True)
class ChooseGroups(ProtocolStep):
    """Steps 1 and 2, at the sender."""

    relocation: Relocation
    amount: float
    sizes: F64
    results: F64

    def act(self, worker: Worker, ticket: Ticket) -> None:
        """Choose groups."""
        found = most_productive(self.sizes, self.results, self.amount)
        self.relocation.groups = tuple(found.tolist())
        self.relocation.answered = True


@dataclass(frozen=True, slots=True)
class EndOfMovedGroups(ProtocolStep):
    """Step 3, from the splitter to the sender: no more rows of the groups come after it."""

    relocation: Relocation

    def act(self, worker: Worker, ticket: Ticket) -> None:
        """All that was on its way has been joined here."""
        worker.ended = self.relocation.groups


@dataclass(frozen=True, slots=True)
class SendGroups(ProtocolStep):
    """Steps 5 and 6, at the sender."""

    relocation: Relocation
    gives: Sequence[Give]
    marks: Sequence[int]

    def act(self, worker: Worker, ticket: Ticket) -> None:
        """Hand the rows to the receiver."""
        relocation = self.relocation
        if worker.ended != relocation.groups:
            raise RoutingError(f"host {worker.number} sends groups of which rows are on their way")
        worker.ended = ()
        given = Ticket()
        takes = []
        for give, marks in zip(self.gives, self.marks, strict=True):
            worker.handle(give, given)
            stretches = given.given[give.number]
            relocation.rows += sum(len(stretch.rows) for stretch in stretches)
            takes.append(Take(give.stream, give.start, give.stop, marks, stretches, absent=True))
        receiver = relocation.cluster.workers[relocation.target]
        receiver.send(ReceiveGroups(relocation, takes), ticket)

    def abandon(self) -> None:
        """Nothing waits for rows that will not come; the failure is told."""
        self.relocation.gate.open()


@dataclass(frozen=True, slots=True)
class ReceiveGroups(ProtocolStep):
    """Steps 7 and 8, at the receiver."""

    relocation: Relocation
    takes: Sequence[Take]

    def act(self, worker: Worker, ticket: Ticket) -> None:
        """Take the rows in, then what was kept."""
        for take in self.takes:
            worker.handle(take, ticket)
        self.relocation.pause = perf_counter() - self.relocation.closed_at
        self.relocation.gate.open()

    def abandon(self) -> None:
        """The same."""
        self.relocation.gate.open()
