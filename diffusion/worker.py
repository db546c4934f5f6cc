"""One host of an in-process cluster: an actor that does what `router` says with a real operator.

It has one first-in-first-out inbox and handles one message after the other.  It decides nothing:
where rows are stored, where partial results travel and what is void comes with the messages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from time import perf_counter, thread_time
from typing import Protocol

import numpy as np
from windjoin.diffusion.arrays import I64
from windjoin.diffusion.host_window import (
    LONG_AGO,
    Bools,
    Chosen,
    HostWindow,
    Stretch,
    clamped,
    in_order,
)
from windjoin.diffusion.router import Hop
from windjoin.pyx.base.crew import Countdown, Crew, Orders

ALL_MARKS = -1
Stretches = tuple[I64, I64]  # first and last time of each, in order and apart


class Operator(Protocol):
    """The join on one host; see `windjoin.kernels.hosted.HostJoin`."""

    @property
    def comparisons(self) -> Sequence[int]: ...  # by the stream of the latest row
    @property
    def nbytes(self) -> int: ...
    def store(self, stream: int, rows: I64) -> None: ...
    def hold(self, stream: int, rows: I64) -> None: ...
    def expire(self, stream: int, horizon: int) -> None: ...
    def compact(self) -> None: ...
    def extend(
        self,
        bound: tuple[int, ...],
        targets: tuple[int, ...],
        partials: Sequence[I64],
        voids: Mapping[int, Stretches],
        held: Callable[[int], I64],
    ) -> list[I64]: ...


@dataclass(frozen=True, slots=True)
class StoreMessage:
    """Rows to be held."""

    stream: int
    stretch: Stretch


@dataclass(frozen=True, slots=True)
class ProbeMessage:
    """Partial results to be extended; ``trail`` is the hosts they went through."""

    hops: tuple[Hop, ...]  # of the path; voids in event time
    hop: int
    bound: tuple[int, ...]
    partials: Sequence[I64]
    marks: int
    trail: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Give:
    """Rows to be handed out, by `Ticket.given`; they stay if ``keep``."""

    number: int
    stream: int
    start: int
    stop: int
    chosen: Chosen | None
    keep: bool
    more: bool = False  # another of the stream follows at once: the index can wait for that


@dataclass(frozen=True, slots=True)
class Take:
    """Rows that come from elsewhere: those that are here already only gain the marks."""

    stream: int
    start: int
    stop: int
    marks: int
    stretches: Sequence[Stretch]
    absent: bool  # none of them is here


@dataclass(frozen=True, slots=True)
class PassOn:
    """Rows that have aged out of the slice before this host's."""

    stream: int
    stretches: Sequence[Stretch]


@dataclass(frozen=True, slots=True)
class ExpireMessage:
    """By stream, the time before which nothing is needed any more."""

    horizons: Sequence[int]


class ProtocolStep:
    """A message that says itself what is to be done: a step of a protocol between hosts."""

    def act(self, worker: Worker, ticket: Ticket) -> None:
        """Do it, at the host."""
        raise NotImplementedError

    def abandon(self) -> None:
        """It cannot be done any more: let go of whoever waits for it."""


Message = StoreMessage | ProbeMessage | Give | Take | PassOn | ExpireMessage | ProtocolStep
Failure = tuple[BaseException, int, int | None]  # error, host, stream


@dataclass(slots=True)
class Ticket:
    """One epoch, or one move: what is still to be done for it, and what came of it."""

    start: int = 0  # event times of the epoch
    stop: int = 0
    border: int = 0  # where it starts in the router's time
    number: int = 0  # of the epoch
    left: Countdown = field(default_factory=Countdown)  # messages that were sent for it
    blocks: list[tuple[tuple[int, ...], int, list[I64]]] = field(default_factory=list)
    given: dict[int, list[Stretch]] = field(default_factory=dict)
    failure: Failure | None = None


@dataclass(slots=True)
class Tally:
    """What a host has done so far."""

    rows_in: int = 0  # stored
    partials_in: int = 0
    results: int = 0
    rows_moved: int = 0
    sent: int = 0  # row numbers of partial results and results, to other hosts and out
    busy: float = 0.0  # seconds at work, waiting for a processor included
    cpu: float = 0.0  # seconds of a processor
    joining: float = 0.0  # seconds of the busy ones that its operator joined
    least_wait: float = 0.0  # seconds from sending to taking, at best


class Worker:
    """A host: its rows by stream, its operator, its thread, which is one of a crew."""

    def __init__(
        self,
        number: int,
        streams: int,
        operator: Operator,
        times: Callable[[int, I64], I64],
        peers: Mapping[int, Worker],
    ) -> None:
        self.number = number
        self.operator = operator
        self.host_windows = [HostWindow() for _ in range(streams)]
        self.tally = Tally()
        self._times = times
        self._peers = peers
        self._inbox: SimpleQueue[tuple[Message, Ticket, float] | None] = SimpleQueue()
        self._failure: Failure | None = None  # the first: what is held may be half of what it was
        self._began: float | None = None  # to handle the message at hand
        self.ended: tuple[int, ...] = ()  # groups of which no more rows will come
        self.aside: deque[tuple[Worker, Message, Ticket]] | None = None  # in place of the inbox

    def begin(self, crew: Crew) -> None:
        """Start to work, until the crew stops."""
        work = partial(self._work, crew.orders)
        crew.start(f"windjoin-host-{self.number}", work, partial(self._inbox.put, None))

    def send(self, message: Message, ticket: Ticket) -> None:
        """Put a message into the inbox."""
        ticket.left.add(1)
        self.put(message, ticket)

    def put(self, message: Message, ticket: Ticket) -> None:
        """The same for a message that the ticket waits for already."""
        if self.aside is not None:
            self.aside.append((self, message, ticket))
        else:
            self._inbox.put((message, ticket, perf_counter()))

    def renumber(self, numbers: Callable[[int, I64], tuple[Bools, I64]]) -> None:
        """Rows have other numbers, or are gone; nothing is in the inbox, and indexes are made anew.

        numbers: of a stream and rows which there still are, and their numbers
        """
        for stream, host_window in enumerate(self.host_windows):
            host_window.renumber(partial(numbers, stream))

    def renew(self) -> None:
        """Hold the same rows in new indexes; nothing is in the inbox."""
        for stream, host_window in enumerate(self.host_windows):
            self.operator.hold(stream, host_window.rows())

    def empty(self, operator: Operator) -> None:
        """Hold nothing, with another operator; nothing is in the inbox."""
        over = getattr(self.operator, "over", None)  # what was put around it stays
        self.operator = operator if over is None else over(operator)
        self.host_windows = [HostWindow() for _ in self.host_windows]

    def leave(self) -> None:
        """Let the thread end once the inbox is empty."""
        self._inbox.put(None)

    def busy(self) -> float:
        """Seconds at work so far, those with the message at hand included."""
        began = self._began
        return self.tally.busy + (0.0 if began is None else perf_counter() - began)

    def _work(self, orders: Orders) -> None:
        while (item := self._inbox.get()) is not None and not orders.stopped:
            message, ticket, sent = item
            waited = perf_counter() - sent
            self.tally.least_wait = min(waited, self.tally.least_wait or waited)
            self.do(message, ticket)

    def do(self, message: Message, ticket: Ticket) -> None:
        """Handle a message, whosever thread this is, and say so to who waits for the ticket."""
        self._began, used = perf_counter(), thread_time()
        try:
            if self._failure is None and ticket.failure is None:
                self.handle(message, ticket)
        except BaseException as error:
            self._failure = error, self.number, _stream_of(message)
        finally:
            if self._failure is not None and isinstance(message, ProtocolStep):
                message.abandon()
            began, self._began = self._began, None
            self.tally.cpu += thread_time() - used
            self.tally.busy += perf_counter() - began
            ticket.failure = ticket.failure or self._failure
            ticket.left.finish()

    def handle(self, message: Message, ticket: Ticket) -> None:
        """Do what a message says."""
        match message:
            case ProtocolStep():
                message.act(self, ticket)
            case StoreMessage():
                self.tally.rows_in += len(message.stretch.rows)
                self._store(message.stream, message.stretch)
            case ProbeMessage():
                self._probe(message, ticket)
            case Give():
                self._give(message, ticket)
            case Take():
                self._take(message)
            case PassOn():
                for stretch in message.stretches:
                    self._store(message.stream, stretch)
            case ExpireMessage():
                self._expire(message.horizons)

    # -- rows ----------------------------------------------------------------------------------

    def _store(self, stream: int, *stretches: Stretch) -> None:
        fit = [self.host_windows[stream].add(stretch) for stretch in stretches]
        if all(fit):
            self.operator.store(stream, in_order(stretches))
        else:
            self.operator.hold(stream, self.host_windows[stream].rows())

    def _give(self, give: Give, ticket: Ticket) -> None:
        host_window = self.host_windows[give.stream]
        if give.keep:
            ticket.given[give.number] = host_window.find(give.start, give.stop, give.chosen)
            return
        found = host_window.take_out(give.start, give.stop, give.chosen)
        ticket.given[give.number] = found
        self.tally.rows_moved += sum(len(stretch.rows) for stretch in found)
        if give.more:
            return
        if host_window.scattered:
            host_window.gone = LONG_AGO
            self.operator.hold(give.stream, host_window.rows())
        else:
            self.operator.expire(give.stream, int(clamped([host_window.gone])[0]))

    def _take(self, take: Take) -> None:
        host_window = self.host_windows[take.stream]
        missing = [(take.start, take.stop)]
        if not take.absent:
            missing = host_window.mark(take.start, take.stop, take.marks)
        found = [s.between(*part, take.marks) for part in missing for s in take.stretches]
        fresh = [stretch for stretch in found if len(stretch.rows)]
        if fresh:
            self._store(take.stream, *fresh)

    def _expire(self, horizons: Sequence[int]) -> None:
        for stream, (host_window, horizon) in enumerate(
            zip(self.host_windows, horizons, strict=True)
        ):
            host_window.expire(horizon)
            self.operator.expire(stream, horizon)

    # -- partial results -----------------------------------------------------------------------

    def _probe(self, probe: ProbeMessage, ticket: Ticket) -> None:
        hop = probe.hops[probe.hop]
        self.tally.partials_in += len(probe.partials[0])
        targets = hop.streams
        voids = {stream: self._avoided(stream, hop) for stream in targets}
        began = perf_counter()
        found = self.operator.extend(
            probe.bound, targets, probe.partials, voids, lambda s: self.host_windows[s].rows()
        )
        self.tally.joining += perf_counter() - began
        bound = (*probe.bound, *targets)
        for marks, rows in self._marked(targets, found, probe.marks, len(probe.bound)):
            self._send_on(probe, ticket, bound, marks, rows)

    def _avoided(self, stream: int, hop: Hop) -> Stretches:
        """What is void here, and what was given away but may still be in an index."""
        voids = sorted(hop.voids.get(self.number, ()))
        gone = self.host_windows[stream].gone
        if gone > LONG_AGO:
            voids = [(LONG_AGO, gone), *((max(a, gone), b) for a, b in voids if b > gone)]
        return clamped(start for start, _ in voids), clamped(stop - 1 for _, stop in voids)

    def _marked(
        self, targets: tuple[int, ...], found: list[I64], marks: int, bound: int
    ) -> list[tuple[int, list[I64]]]:
        """The longer partial results, those of the same marks together, those without left out."""
        if not len(found[0]):
            return []
        mixed: list[I64] = []  # marks of rows, by target whose rows differ in them
        for target, rows in zip(targets, found[bound:], strict=True):
            theirs = self.host_windows[target].marks()
            if theirs is None:
                mixed.append(self.host_windows[target].marks_at(self._times(target, rows)))
            else:
                marks &= theirs
        if not mixed:
            return [(marks, found)] if marks else []
        common = np.bitwise_and.reduce(mixed) & marks
        return [
            (int(kept), [rows[common == kept] for rows in found])
            for kept in np.unique(common)
            if kept
        ]

    def _send_on(
        self,
        probe: ProbeMessage,
        ticket: Ticket,
        bound: tuple[int, ...],
        marks: int,
        rows: list[I64],
    ) -> None:
        trail = (*probe.trail, self.number)
        if probe.hop + 1 == len(probe.hops):
            self.tally.results += len(rows[0])
            self.tally.sent += len(bound) * len(rows[0])
            in_order = [rows[bound.index(stream)] for stream in range(len(bound))]
            ticket.blocks.append(((*trail, marks), bound[0], in_order))
            return
        onward = ProbeMessage(probe.hops, probe.hop + 1, bound, rows, marks, trail)
        hosts = probe.hops[onward.hop].hosts
        self.tally.sent += len(bound) * len(rows[0]) * len(hosts)
        for host in hosts:
            self._peers[host].send(onward, ticket)


def _stream_of(message: Message) -> int | None:
    if isinstance(message, (ExpireMessage, ProtocolStep)):
        return None
    return message.bound[0] if isinstance(message, ProbeMessage) else message.stream
