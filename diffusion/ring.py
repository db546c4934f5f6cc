"""PSP, the pipelined state-slicing ring: hosts, the links between them, and rows in flight.

Wang, Rundensteiner, "Scalable Stream Join Processing with Expensive Predicates: Workload
Distribution and Adaptation by Time-Slicing".

This file wires the state machines of ``ring_host`` to first-in-first-out links and bounds how many
blocks are under way.  Who delivers a message when is the caller's business: threads, sockets, a
simulator, or a test that tries every interleaving.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from windjoin.diffusion.ring_host import Operator, RingHost, RingPlan, Sent
from windjoin.diffusion.ring_messages import Bounds, Message, Partial, SetBounds
from windjoin.diffusion.ring_relocation import even_bounds, ring_order_after
from windjoin.diffusion.ring_state import NO_ROWS, RingRows


class Ring:
    """Hosts in a circle; the first is the head, where rows enter, the last is the tail.

    >>> from windjoin.diffusion.ring_host import RingPlan
    >>> def pairs(host, partial, stream, rows):  # every row in reach matches
    ...     return [(int(partial.payload.row[0]), int(r)) for r in rows.row]
    >>> ring = Ring([0, 1], RingPlan(windows=(9, 9), orders={0: (1,), 1: (0,)}), pairs)
    >>> results = []
    >>> for number, (stream, time) in enumerate([(0, 1), (1, 3), (0, 8)]):
    ...     results += ring.push({stream: RingRows.of([time], [number])})
    >>> [result.payload for result in results + ring.drain()]
    [[(1, 0)], [(2, 1)]]
    """

    def __init__(
        self,
        hosts: Sequence[int],
        plan: RingPlan,
        operator: Operator,
        *,
        in_flight: int = 8,
        bounds: Mapping[int, Bounds] | None = None,
    ) -> None:
        if not hosts or len(set(hosts)) != len(hosts):
            raise ValueError(f"a ring needs distinct hosts, at least one; got {list(hosts)}")
        if in_flight < 1:
            raise ValueError(f"in_flight is {in_flight}; at least 1 block must be able to travel")
        self.plan = plan
        self.operator = operator
        self.in_flight = in_flight
        self.order = list(hosts)
        self.waiting: deque[dict[int, RingRows]] = deque()
        self.under_way: set[int] = set()
        self.links: dict[int, deque[Message]] = {host: deque() for host in hosts}  # into the host
        self.hosts = {host: RingHost(host, plan, operator, host) for host in hosts}
        self._next_cycle = 0
        self._newest = np.iinfo(np.int64).min
        self._wire()
        start = bounds if bounds is not None else even_bounds(self.order, plan.expiry)
        for host in hosts:
            self.hosts[host].bounds = start.get(host, Bounds())

    # -- rows in, results out

    def push(self, block: Mapping[int, RingRows]) -> list[Partial]:
        """Queue a block (rows by stream) and let it enter as soon as the bound allows."""
        rows = {stream: part for stream, part in block.items() if part.size}
        if not rows:
            return []
        first = min(int(part.time[0]) for part in rows.values())
        if first < self._newest:
            raise ValueError(
                f"a block starts at time {first} after time {self._newest} had entered; "
                "blocks must follow each other in time"
            )
        self._newest = max(int(part.time[-1]) for part in rows.values())
        self.waiting.append(rows)
        return self.admit()

    def admit(self) -> list[Partial]:
        """Let waiting blocks enter while fewer than ``in_flight`` are under way."""
        results: list[Partial] = []
        while self.waiting and len(self.under_way) < self.in_flight:
            cycle, self._next_cycle = self._next_cycle, self._next_cycle + 1
            self.under_way.add(cycle)
            head = self.order[0]
            results += self._take(head, self.hosts[head].admit(cycle, self.waiting.popleft()))
        return results

    def ready(self) -> list[int]:
        """Hosts that have a message to take."""
        return [host for host in self.order if self.links[host]]

    def deliver(self, host: int) -> list[Partial]:
        """Let one host take the oldest message of its link; return the results it made."""
        results = self._take(host, self.hosts[host].receive(self.links[host].popleft()))
        return results + self.admit()

    def drain(self) -> list[Partial]:
        """Deliver until nothing is under way; return the results."""
        results = self.admit()
        while ready := self.ready():
            for host in ready:
                results += self.deliver(host)
        return results

    def _take(self, host: int, sent: Sent) -> list[Partial]:
        self.links[self.hosts[host].next_host].extend(sent.messages)
        self.under_way.difference_update(sent.finished)
        return sent.results

    # -- adaptation

    def set_bounds(self, of_host: Mapping[int, Bounds]) -> None:
        """Passive relocation or smoothing: new bounds; state drifts into place as rows age."""
        head = self.order[0]
        self._take(head, self.hosts[head].receive(SetBounds(of_host)))

    def add_tail(self, host: int, of_host: Mapping[int, Bounds]) -> None:
        """Passive relocation: a new host behind the tail, at any time, and bounds that fill it."""
        if host in self.hosts:
            raise ValueError(f"host {host} is in the ring already: {self.order}")
        self.hosts[host] = RingHost(host, self.plan, self.operator, self.order[0])
        self.links[host] = deque()
        self.order.append(host)
        self._wire()
        self.set_bounds(of_host)

    def remove(self, host: int) -> int:
        """Take a host out while nothing is under way; return how many rows its neighbour got."""
        self._must_be_quiet(f"remove host {host}")
        if self.order == [host]:
            raise ValueError(f"host {host} is the only one; a ring needs at least one host")
        at = self.order.index(host)
        leaving = self.hosts.pop(host)
        del self.order[at], self.links[host]
        heir = self.hosts[self.order[min(at, len(self.order) - 1)]]
        moved = 0
        for mine, theirs in zip(leaving.slices, heir.slices, strict=True):
            moved += mine.size
            older, newer = (theirs, mine) if at < len(self.order) else (mine, theirs)
            theirs.replace(joined([older.own, newer.own]))
        self._wire()
        return moved

    def relocate(self, joining: Iterable[int] = (), leaving: Iterable[int] = ()) -> int:
        """Aggressive relocation: pause, move rows to even slices over the new hosts, resume.

        The caller drains first.  Returns how many rows changed their host.
        """
        self._must_be_quiet("relocate")
        old = list(self.order)
        windows = [
            joined([self.hosts[host].slices[stream].own for host in reversed(old)])
            for stream in range(len(self.plan.windows))
        ]
        before = {host: [part.own.row for part in self.hosts[host].slices] for host in old}
        self.order = ring_order_after(old, joining, leaving)
        self.hosts = {host: self._host(host) for host in self.order}
        self.links = {host: deque() for host in self.order}
        self._wire()
        bounds = even_bounds(self.order, self.plan.expiry)
        moved = 0
        for stream, rows in enumerate(windows):
            for host, rest in self._cut(rows, [bounds[h].age.get(stream) for h in self.order]):
                had = before[host][stream] if host in before else NO_ROWS.row
                moved += int(np.setdiff1d(rest.row, had, assume_unique=True).size)
                self.hosts[host].slices[stream].replace(rest)
        for host in self.order:
            self.hosts[host].bounds = bounds[host]
        return moved

    def _cut(self, rows: RingRows, ages: Sequence[int | None]) -> Iterable[tuple[int, RingRows]]:
        """Cut a whole window at the slice borders: the head's rows are the newest."""
        stop = rows.size
        for host, age in zip(self.order, ages, strict=True):
            first = 0
            if age is not None:
                first = int(np.searchsorted(rows.time, self._newest - age, side="right"))
            yield host, rows.cut(min(first, stop), stop)
            stop = min(first, stop)

    def _host(self, host: int) -> RingHost:
        return self.hosts.get(host) or RingHost(host, self.plan, self.operator, host)

    def _wire(self) -> None:
        for at, host in enumerate(self.order):
            machine = self.hosts[host]
            machine.next_host = self.order[(at + 1) % len(self.order)]
            machine.is_head = at == 0
            machine.is_tail = at == len(self.order) - 1

    def _must_be_quiet(self, what: str) -> None:
        if self.under_way or self.ready():
            raise RuntimeError(
                f"cannot {what} while {len(self.under_way)} blocks are under way; drain first"
            )

    # -- figures

    def state_rows(self) -> dict[int, int]:
        """How many rows of all streams are each host's own."""
        return {host: sum(s.size for s in self.hosts[host].slices) for host in self.order}

    def stored_rows(self) -> dict[int, int]:
        """The same with rows that stay only for blocks in flight."""
        return {host: sum(s.stored for s in self.hosts[host].slices) for host in self.order}


def joined(parts: Sequence[RingRows]) -> RingRows:
    """Rows of one stream that follow each other, as one.

    >>> joined([RingRows.of([1], [0]), RingRows.of([2], [1])]).row.tolist()
    [0, 1]
    """
    return RingRows(
        np.concatenate([part.time for part in parts]), np.concatenate([part.row for part in parts])
    )
