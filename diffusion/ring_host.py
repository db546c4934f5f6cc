"""One host of a ring as a state machine: a message in, messages and results out.

Per block the order of work is the whole protocol: insert what the previous host passed on, purge
what has aged out and send it on *before* the probe, fix the spans the block may see, send the probe
on, probe, send partial results on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from windjoin.diffusion.ring_messages import (
    Bounds,
    End,
    Message,
    Moved,
    Partial,
    RingProbe,
    SetBounds,
)
from windjoin.diffusion.ring_state import RingRows, Slice, Span


class Operator(Protocol):
    """The join itself: extends partial results by the rows of one stream's slice."""

    def __call__(self, host: int, partial: Partial, stream: int, rows: RingRows) -> object | None:
        """Return the longer partial results (or results), or ``None`` when there are none."""
        ...


@dataclass(frozen=True, slots=True)
class RingPlan:
    """What every host of the ring knows from the start.

    >>> RingPlan(windows=(10, 20), orders={0: (1,), 1: (0,)}).expiry
    (11, 21)
    """

    windows: tuple[int, ...]  # of each stream, in the unit of the times
    orders: Mapping[int, tuple[int, ...]]  # stream of the new row -> the other streams, in order
    closed: str = "both"

    def __post_init__(self) -> None:
        if self.closed not in ("both", "right"):
            raise ValueError(f"closed is {self.closed!r}; it must be 'both' or 'right'")
        if len(self.windows) < 2:
            raise ValueError(f"a ring joins at least 2 streams, got {len(self.windows)}")
        streams = set(range(len(self.windows)))
        for stream in sorted(streams):
            order = self.orders.get(stream, ())
            if {stream, *order} != streams or len(order) != len(streams) - 1:
                raise ValueError(
                    f"the probing order of stream {stream} is {order}; it must name every "
                    f"other stream of 0..{len(streams) - 1} once"
                )

    @property
    def expiry(self) -> tuple[int, ...]:
        """The least age at which a row of each stream can meet no newer row any more."""
        if self.closed == "both":
            return tuple(window + 1 for window in self.windows)
        return tuple(max(window, 1) for window in self.windows)


@dataclass(slots=True)
class Sent:
    """What a host sends on and what it gives out, each in order."""

    messages: list[Message] = field(default_factory=list)
    results: list[Partial] = field(default_factory=list)
    finished: list[int] = field(default_factory=list)  # cycles that ended at this host, the head


@dataclass(slots=True)
class RingHost:
    """State of one host: a slice per stream, bounds, and one set of spans per block in flight."""

    number: int
    plan: RingPlan
    operator: Operator
    next_host: int
    is_head: bool = False
    is_tail: bool = False
    bounds: Bounds = field(default_factory=Bounds)
    slices: list[Slice] = field(default_factory=list)
    in_flight: dict[int, tuple[Span, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.slices = self.slices or [Slice() for _ in self.plan.windows]

    def receive(self, message: Message) -> Sent:
        """Take one message from the link before this host."""
        sent = Sent()
        match message:
            case Moved():
                self.slices[message.stream].append(message.rows)
            case RingProbe():
                self._probe(message, sent)
            case Partial():
                self._circulate(message, sent)
            case End():
                self._end(message, sent)
            case SetBounds():
                self.bounds = message.of_host.get(self.number, Bounds())
                if not self.is_tail:
                    sent.messages.append(message)
        return sent

    def admit(self, cycle: int, blocks: Mapping[int, RingRows]) -> Sent:
        """Head only: start the trip of a block, given as its rows by stream."""
        sent = Sent()
        for stream, rows in sorted(blocks.items()):
            self.slices[stream].append(rows)
        seeds = tuple(
            Partial(cycle, self.number, (stream,), rows) for stream, rows in sorted(blocks.items())
        )
        first = min(int(rows.time[0]) for rows in blocks.values())
        self._probe(RingProbe(cycle, first, seeds), sent)
        self._mark(End(cycle, 2), sent)
        return sent

    def _probe(self, probe: RingProbe, sent: Sent) -> None:
        self._purge(probe.time, sent)
        self.in_flight[probe.cycle] = tuple(Span(s.start, s.end) for s in self.slices)
        if not self.is_tail:
            sent.messages.append(probe)
        for seed in probe.seeds:
            self._extend(seed, sent)

    def _purge(self, now: int, sent: Sent) -> None:
        for stream, part in enumerate(self.slices):
            expired = now - self.plan.expiry[stream]
            part.purge(older_than=expired)
            if not self.is_tail:
                age = self.bounds.age.get(stream)
                limit = expired if age is None else max(expired, now - age)
                rows = part.purge(older_than=limit, at_most=self.bounds.count.get(stream))
                if rows.size:
                    sent.messages.append(Moved(stream, rows))
        self._release()

    def _circulate(self, partial: Partial, sent: Sent) -> None:
        """Send a partial result on unless it would come back to its maker, then extend it here."""
        if self.next_host != partial.maker:
            sent.messages.append(partial)
        self._extend(partial, sent)

    def _extend(self, partial: Partial, sent: Sent) -> None:
        spans = self.in_flight.get(partial.cycle)
        if spans is None:  # this host joined the ring after the block had passed: it holds nothing
            return
        target = self.plan.orders[partial.bound[0]][len(partial.bound) - 1]
        rows = self.slices[target].view(spans[target])
        payload = self.operator(self.number, partial, target, rows) if rows.size else None
        if payload is None:
            return
        longer = Partial(partial.cycle, self.number, (*partial.bound, target), payload)
        if len(longer.bound) == len(self.plan.windows):
            sent.results.append(longer)
        else:
            self._circulate(longer, sent)

    def _end(self, end: End, sent: Sent) -> None:
        """Pass a mark on; at the head, a mark that came back releases the next one."""
        if not self.is_head:
            self._mark(end, sent)
        elif end.depth < len(self.plan.windows):
            self._mark(End(end.cycle, end.depth + 1), sent)
        else:
            self._forget(end.cycle)
            sent.finished.append(end.cycle)

    def _mark(self, end: End, sent: Sent) -> None:
        """Send a mark on.  The last mark of a block passes: no part of it will come here again."""
        sent.messages.append(end)
        if end.depth == len(self.plan.windows) and not self.is_head:
            self._forget(end.cycle)

    def _forget(self, cycle: int) -> None:
        self.in_flight.pop(cycle, None)
        self._release()

    def _release(self) -> None:
        """Delete what was passed on as soon as no block in flight may see it."""
        for stream, part in enumerate(self.slices):
            needed = (spans[stream].start for spans in self.in_flight.values())
            part.release(min(needed, default=part.start))
