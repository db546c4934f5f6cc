"""Hosts in one process: epochs of rows go where a router says, and results come back as one.

Rows are numbers with times; what they hold is known to the operators alone.  An epoch is what
lies between two borders of the router.  Inboxes are first in, first out, and all rows of an epoch
are put into them before any row travels, so that whoever probes finds what is earlier already
stored.  Epochs follow each other without waiting, except where state has to move.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import cast

import numpy as np
from windjoin.diffusion.arrays import I64
from windjoin.diffusion.balance import F64
from windjoin.diffusion.caller import Caller
from windjoin.diffusion.errors import HostError, RoutingError
from windjoin.diffusion.feedback import feed_back
from windjoin.diffusion.fusion import Fused, Fusion
from windjoin.diffusion.history import History, Latencies
from windjoin.diffusion.host_window import (
    LONG_AGO,
    Bools,
    Chosen,
    HostWindow,
    Stretch,
    clamped,
)
from windjoin.diffusion.load import Host
from windjoin.diffusion.meter import Meter, Reading
from windjoin.diffusion.passing import Passed, Passing
from windjoin.diffusion.pending import Pending
from windjoin.diffusion.relocation import Gate, Relocated, Relocation
from windjoin.diffusion.router import DEFAULT_MARKS, Hop, Move, Part, Router
from windjoin.diffusion.router_clock import RouterClock
from windjoin.diffusion.segments import Segment
from windjoin.diffusion.spending import Spending
from windjoin.diffusion.worked import EPOCHS as STRETCH
from windjoin.diffusion.worked import Worked
from windjoin.diffusion.worker import (
    ExpireMessage,
    Give,
    Operator,
    PassOn,
    ProbeMessage,
    StoreMessage,
    Take,
    Tally,
    Ticket,
    Worker,
)
from windjoin.pyx.base.crew import Crew
from windjoin.pyx.base.pieces import joined, taken

EPOCHS_IN_FLIGHT = 4  # at least, and so many per host: the work of one may be all one host's
EPOCHS_PER_HOST = 2
EPOCHS_PER_REPORT = 16
REPORT_SECONDS = 0.02  # or so much time: hosts that are slow are soon known to be
ROW_NUMBER = 8  # bytes
FOREVER = 2**64  # after every time: no row will come at all
ARRIVAL_BITS = 48  # an arrival is the stream's number and the row's

Groups = Callable[[int, I64], I64]  # partition groups of rows of a stream


@dataclass(frozen=True, slots=True)
class Room:
    """What a cluster is given by whoever knows the rows."""

    operator: Callable[[int], Operator]  # of a host, by its number
    times: Callable[[int, I64], I64]  # of rows of a stream
    groups: Groups | None = None
    row_bytes: int = 8


@dataclass(frozen=True, slots=True)
class Bounds:
    """What hosts may do at a time, and what each of them has; None: what suits, or is measured."""

    in_flight: int | None = None  # epochs
    smoothing: float = 0.0  # seconds between two reports to the router
    bandwidth: float | None = None  # bytes per second
    memory: float | None = None  # bytes


class Cluster:
    """A router, a host per slot, and the results of all of them.

    router: its windows and segment length are those of ``clock``
    """

    def __init__(
        self,
        router: Router,
        clock: RouterClock,
        room: Room,
        *,
        ordered: bool,
        bounds: Bounds | None = None,
    ) -> None:
        self.router, self.clock, self.room = router, clock, room
        self.streams = len(router.windows)
        numbers = [host.number for host in router.book.hosts]
        self.workers: dict[int, Worker] = {}
        self._caller = Caller(self.workers)
        self.fusion = Fusion(numbers, ordered=ordered)
        self.epochs = 0
        self.pending = [Pending() for _ in range(self.streams)]
        self.log = [HostWindow() for _ in range(self.streams)]  # for hosts that are lost
        self._nothing = [np.empty(0, np.int64) for _ in self.pending]  # rows of no result
        self._cut: list[tuple[I64, dict[Part, Stretch]]] = [(n, {}) for n in self._nothing]
        self._flying: deque[Ticket] = deque()
        self._passing = Passing()  # a ring's moves, while epochs are in flight
        self._fetched: list[list[I64]] = []
        self.progress: Callable[[int], object] | None = None  # called with rows routed so far
        self.bounds = bounds or Bounds()
        self.history, self.latencies = History(), Latencies(self.streams)
        self.spending = Spending()
        self.meter = Meter(bandwidth=self.bounds.bandwidth, memory=self.bounds.memory)
        self.results = [0] * self.streams  # by the stream of the row that completed them
        self._compared_before: dict[int, list[int]] = {}  # by operators that are gone, by host
        self._left: list[tuple[int, Tally, list[int]]] = []
        self._routed = [0] * self.streams
        self._reported: tuple[int, list[int]] | None = None  # border, rows routed before it
        self._reported_at = 0.0  # seconds
        self._worked, self._stretch = Worked(), 0  # rows routed before the stretch that is measured
        self.relocation: Relocation | None = None  # under way
        self.relocated = Relocated()
        # by this clock at this border, no epoch ends before that time of all streams
        self._no_epoch: tuple[RouterClock, int, int] = clock, 0, LONG_AGO
        self._crew = Crew()  # its threads end with it
        for number in numbers:
            self._add_worker(number)

    def _add_worker(self, number: int) -> Worker:
        worker = self.workers[number] = Worker(
            number, self.streams, self.room.operator(number), self.room.times, self.workers
        )
        return worker

    def renew_operators(self) -> None:
        """All hosts hold nothing, under a router that knows nothing of what they held."""
        for number, worker in list(self.workers.items()):
            compared = list(worker.operator.comparisons)
            self._compared_before[number] = [
                a + b for a, b in zip(self._before(number), compared, strict=True)
            ]
            worker.empty(self.room.operator(number))

    def _before(self, number: int) -> list[int]:
        return self._compared_before.get(number, [0] * self.streams)

    def begin(self) -> None:
        """Let hosts start to work."""
        for worker in self.workers.values():
            worker.begin(self._crew)

    def comparisons_for(self, stream: int) -> int:
        """Candidates that hosts looked at for rows of a stream, those that left included."""
        return sum(compared[stream] for _, _, compared in self.tallies())

    def tallies(self) -> list[tuple[int, Tally, list[int]]]:
        """What every host did: number, counts, comparisons by stream; those that left first."""
        return self._left + [
            (number, worker.tally, self._compared(number, worker))
            for number, worker in sorted(self.workers.items())
        ]

    def _compared(self, number: int, worker: Worker) -> list[int]:
        now = worker.operator.comparisons
        return [a + b for a, b in zip(self._before(number), now, strict=True)]

    # -- rows in, results out ------------------------------------------------------------------

    @property
    def earliest(self) -> int:
        """No row before this event time is needed to route or complete what is still to come."""
        return self.clock.real_now if self.clock.begun else LONG_AGO

    def add(self, stream: int, times: I64, rows: I64, first: int) -> None:
        """Rows that arrived, in order of time; ``first``: none of their numbers is less."""
        if len(rows):
            self.latencies.pushed(stream, first, perf_counter())
        self.pending[stream].add(times, rows)

    def run(self, watermark: int) -> list[I64]:
        """Route all epochs that no row at or after ``watermark`` belongs to; the results.

        Per stream the row numbers of the members of every result.
        """
        clock, now, until = self._no_epoch
        if watermark < until and clock is self.clock and now == clock.now and not self.relocation:
            return self._results()
        self._begin_stretch()
        try:
            if watermark != FOREVER and self.relocation is None:
                self._caller.begin()
            self._run_epochs(watermark)
        finally:
            self._caller.leave()
        self._end_stretch()
        if watermark == FOREVER:
            self._take_results(self.fusion.close())
        found = self._results()
        self.latencies.left(found, perf_counter())
        return found

    def _run_epochs(self, watermark: int) -> None:
        now, routed, busy = self.clock.now, sum(self._routed), self._busy()
        while self._next_epoch(watermark):
            pass
        if self.clock.now != now or self.relocation is not None:  # else hosts have nothing to do
            self.drain()
            self._caller.learn(sum(self._routed) - routed, self._busy() - busy)

    def _busy(self) -> float:
        return sum(worker.tally.busy for worker in self.workers.values())

    def close(self) -> None:
        """End all threads, whatever they are doing."""
        self._crew.stop()
        self._crew.end()

    def _next_epoch(self, watermark: int) -> bool:
        waiting = [p.earliest for p in self.pending if p.earliest is not None]
        if watermark == LONG_AGO or (watermark == FOREVER and not waiting):
            return False
        until = min([watermark, *waiting])
        if self.clock.begun:
            self.clock.skip_to(until)
        else:
            self.clock.begin(until)
        border = self.clock.now
        if self.clock.real(border) >= watermark:
            return False
        self.router.expire(border)
        stop = self.router.stop(border)
        end = self.clock.real_stop(stop)
        if end > watermark != FOREVER:
            self._no_epoch = self.clock, border, min(end, self.clock.quiet_from)
            return False
        self._epoch(border, stop)
        self.clock.advance(stop)
        return True

    def _epoch(self, border: int, stop: int) -> None:
        if self.epochs % STRETCH == 0:
            self._end_stretch()
            self._begin_stretch()
        self._report(border)
        ticket = Ticket(self.clock.real(border), self.clock.real_stop(stop), border, self.epochs)
        ticket.left.add(1)
        self._move(self.router.advance(border), ticket)
        if self.relocation is not None:
            self.relocation.proceed()
        taken = [pending.take(ticket.stop) for pending in self.pending]
        self._caller.take_on(sum(len(rows) for _, rows in taken))
        self._routed = [n + len(rows) for n, (_, rows) in zip(self._routed, taken, strict=True)]
        segments = [
            Segment(k, border, stop, len(rows), len(rows) * self.room.row_bytes)
            for k, (_, rows) in enumerate(taken)
        ]
        routes = self.router.route(segments)
        self._passing.see(self.router.held if self.router.passes_on else None, self.clock)
        self._flying.append(ticket)
        for (times, rows), route in zip(taken, routes, strict=True):
            if len(rows):
                self.store(route.segment.stream, times, rows, route.placement.parts, ticket)
        for (times, rows), route in zip(taken, routes, strict=True):
            if len(rows):
                self._start(route.segment.stream, times, rows, route.path.hops, ticket)
        ticket.left.finish()
        self.epochs += 1
        if self.progress is not None:
            self.progress(sum(self._routed))
        most = self.bounds.in_flight or max(EPOCHS_IN_FLIGHT, EPOCHS_PER_HOST * len(self.workers))
        if len(self._flying) > most:
            self._land()
            self._expire()

    def store(
        self, stream: int, times: I64, rows: I64, parts: Sequence[Part], ticket: Ticket
    ) -> None:
        self.log[stream].add(Stretch(ticket.start, ticket.stop, DEFAULT_MARKS, times, rows))
        for part in parts:
            stretch, moved = self._divided(stream, self._part(stream, times, rows, part), part)
            if moved is not None:
                self._gate.send(StoreMessage(stream, moved), ticket)
            self.workers[part.host].send(StoreMessage(stream, stretch), ticket)

    def _part(self, stream: int, times: I64, rows: I64, part: Part) -> Stretch:
        """The rows that a part contains, and its borders in event time.

        Where rows are stored they often start from, too: what was found for these rows is kept.
        """
        of_rows, found = self._cut[stream]
        if of_rows is not rows:
            found = {}
            self._cut[stream] = rows, found
        if part not in found:
            start, stop = self.clock.real(part.start), self.clock.real_stop(part.stop)
            stretch = Stretch(start, stop, part.marks, times, rows).between(start, stop)
            if part.groups:
                stretch = stretch.where(self.chosen(stream, part.groups)(stretch.rows))
            found[part] = stretch
        return found[part]

    def chosen(self, stream: int, groups: Sequence[int]) -> Chosen:
        """Which rows are of some partition groups."""
        of_rows = self.room.groups
        if of_rows is None:
            raise RoutingError(
                f"strategy {self.router.name!r} routes by partition groups; give them"
            )
        member = np.zeros(max(groups) + 2, np.bool_)
        member[list(groups)] = True
        last = len(member) - 1
        return lambda rows: member[np.minimum(of_rows(stream, rows), last)]

    def _start(
        self, stream: int, times: I64, rows: I64, path: Sequence[Hop], ticket: Ticket
    ) -> None:
        hops = tuple(self._passing.limited(self._in_event_time(hop)) for hop in path)
        first = hops[0]
        for part in first.parts:
            mine, moved = self._divided(stream, self._part(stream, times, rows, part), part)
            if moved is not None:
                probe = ProbeMessage(hops, 0, (stream,), [moved.rows], part.marks, ())
                self._gate.send(probe, ticket)
            if len(mine.rows):
                probe = ProbeMessage(hops, 0, (stream,), [mine.rows], part.marks, ())
                self.workers[part.host].send(probe, ticket)
        if not first.parts:
            probe = ProbeMessage(hops, 0, (stream,), [rows], DEFAULT_MARKS, ())
            for host in first.hosts:
                self.workers[host].send(probe, ticket)

    def _divided(self, stream: int, rows: Stretch, part: Part) -> tuple[Stretch, Stretch | None]:
        """Rows of a part; and apart from them those of groups that are on their way there."""
        relocation = self.relocation
        if relocation is None or part.host != relocation.target or not relocation.moving:
            return rows, None
        rows, moved = relocation.divided(stream, rows)
        return rows, moved if len(moved.rows) else None

    @property
    def _gate(self) -> Gate:
        assert self.relocation is not None
        return self.relocation.gate

    def _in_event_time(self, hop: Hop) -> Hop:
        voids = {
            host: tuple((self.clock.real(a), self.clock.real_stop(b)) for a, b in hop.voids[host])
            for host in hop.hosts
            if host in hop.voids
        }
        return Hop(hop.streams, hop.hosts, voids, hop.parts)

    # -- epochs in flight ----------------------------------------------------------------------

    def drain(self) -> None:
        """Wait until no host has anything to do."""
        if self.relocation is not None:
            self.relocation.finish()
            self.relocated.add(self.relocation)
            self.relocation = None
        while self._flying:
            self._land()
        self._expire()

    def _move(self, moves: Sequence[Move], ticket: Ticket) -> None:
        """Moves of a border: rows of a ring go on at once, for others everything stops."""
        passes_on = self.router.passes_on and self.router.onward
        if not passes_on or any(
            self._passing.keeps(move.target, move.stream, *self.stretch_of(move)) for move in moves
        ):
            self.carry_out(moves)
            return
        for move in moves:
            start, stop = self.stretch_of(move)
            rows = self.log[move.stream].find(start, stop)
            self.workers[move.target].send(PassOn(move.stream, rows), ticket)
            source = cast(int, move.source)
            self._passing.keep(Passed(ticket.number, source, move.stream, start, stop))

    def _release(self) -> None:
        """Let hosts delete what they passed on and no epoch in flight may see."""
        oldest = self._flying[0].number if self._flying else None
        for passed in self._passing.released(oldest):
            give = Give(0, passed.stream, passed.start, passed.stop, None, False)
            self.workers[passed.host].send(give, Ticket())

    def _land(self) -> None:
        """Wait for the oldest epoch and take its results."""
        ticket = self._flying.popleft()
        self.wait(ticket)
        for trail, stream, rows in sorted(ticket.blocks, key=lambda block: (block[1], block[0])):
            self.results[stream] += len(rows[stream])
            if not self.fusion.ordered:  # nothing holds it back
                self._fetched.append(rows)
                continue
            times = self.room.times(stream, rows[stream])
            arrivals = (np.int64(stream) << ARRIVAL_BITS) | rows[stream]
            self.fusion.push(trail[0], rows, times=times, arrivals=arrivals)
        for number in self.workers:
            self.fusion.advance(number, int(clamped([ticket.stop])[0]))
        self._take_results(self.fusion.pop())

    def wait(self, ticket: Ticket) -> None:
        self._caller.work()
        ticket.left.wait()
        if ticket.failure is not None:
            error, host, stream = ticket.failure
            of = "" if stream is None else f" of stream {self.router.profiles[stream].name!r}"
            raise HostError(f"host {host}, segment [{ticket.start}, {ticket.stop}){of}") from error

    def _take_results(self, ready: Fused) -> None:
        if not len(ready):
            return
        columns = [joined(column) for column in zip(*ready.handles, strict=True)]
        lengths = np.array([len(handle[0]) for handle in ready.handles], np.int64)
        at = (np.cumsum(lengths) - lengths)[ready.block] + ready.rows
        self._fetched.append([taken(column, at) for column in columns])

    def _results(self) -> list[I64]:
        if not self._fetched:
            return list(self._nothing)
        parts, self._fetched = self._fetched, []
        return [joined(column) for column in zip(*parts, strict=True)]

    def _expire(self) -> None:
        """Let hosts drop what neither an epoch in flight nor one to come can reach."""
        if not self.clock.begun:
            return
        self._release()
        since = self._flying[0].start if self._flying else self.clock.real_now
        windows = [(w << self.clock.shift) for w in self.router.windows]
        horizons = clamped(since - window for window in windows).tolist()
        ticket = Ticket()
        for worker in self.workers.values():
            worker.send(ExpireMessage(horizons), ticket)
        for log, horizon in zip(self.log, horizons, strict=True):
            log.expire(horizon)
        if not self._flying:
            self.wait(ticket)

    # -- load ----------------------------------------------------------------------------------

    def _report(self, border: int) -> None:
        """Tell the router what came, and what hosts were measured to do for it."""
        now = perf_counter()
        if self._reported is None:
            self._reported, self._reported_at = (border, list(self._routed)), now
            self.meter.begin(now)
        since, routed = self._reported
        passed = now - self._reported_at
        soon = passed < REPORT_SECONDS and self.epochs % EPOCHS_PER_REPORT
        if border == since or soon or passed < self.bounds.smoothing:
            return
        if len(self.workers) > len(self.router.book.open_hosts):
            self.drain()
            self.leave()
        readings = {n: self._reading(self.workers[n]) for n in self.router.book.open_hosts}
        come = [new - old for new, old in zip(self._routed, routed, strict=True)]
        feed_back(
            self.router, self.meter, readings, come, ticks=border - since, now=now,
            throughput=self._worked.rate(),
            since=self._flying[0].border if self._flying else border,
        )  # fmt: skip
        if self.router.passes_on:
            self._tell_costs()
        self._reported, self._reported_at = (border, list(self._routed)), now
        stored = {number: worker.tally.rows_in for number, worker in self.workers.items()}
        done = sum(self.results)
        self.history.add(self.router, self.clock.shift, stored, done, self.latencies)

    def _tell_costs(self) -> None:
        """Tell a ring what rows cost, so that it is as long as pays."""
        tallies = {number: worker.tally for number, worker in self.workers.items()}
        spent = self.spending.measure(tallies, sum(self._routed), self.epochs)
        if spent is not None:
            self.router.learn_costs(spent)

    def begin_reports(self) -> None:
        """What came before is not reported to the router that there is now."""
        self._reported = None

    def _begin_stretch(self) -> None:
        self._worked.begin(self._processor_seconds(), aside=self._caller.cpu)
        self._stretch = sum(self._routed)

    def _end_stretch(self) -> None:
        rows = sum(self._routed) - self._stretch
        self._worked.end(self._processor_seconds(), aside=self._caller.cpu, rows=rows)

    def _processor_seconds(self) -> dict[int, float]:
        return {number: worker.tally.cpu for number, worker in self.workers.items()}

    def _reading(self, worker: Worker) -> Reading:
        tally, held = worker.tally, sum(map(len, worker.host_windows))
        return Reading(
            worker.busy(),
            tally.rows_in + tally.partials_in,
            tally.sent * ROW_NUMBER,
            held * self.room.row_bytes,
        )

    # -- moves of state, hosts that come and go ------------------------------------------------

    def add_host(self, host: Host) -> None:
        """A host joins."""
        self.drain()
        moves = self.router.add_host(host)
        self._add_worker(host.number).begin(self._crew)
        self.fusion.add_host(host.number, self.fusion.watermark)
        self.carry_out(moves)

    def remove_host(self, number: int, *, lost: bool) -> None:
        """A host leaves: planned, or lost with all it holds."""
        self.drain()
        moves = self.router.remove_host(number, lost=lost)
        if lost:
            self.end_worker(number)
        self.carry_out(moves)

    def leave(self) -> None:
        """Let go of hosts that were removed as planned and hold nothing any more."""
        open_hosts = self.router.book.open_hosts
        for number in [n for n in self.workers if n not in open_hosts]:
            if self.router.drained(number):
                self.end_worker(number)

    def end_worker(self, number: int) -> None:
        worker = self.workers.pop(number)
        worker.leave()
        self._left.append((number, worker.tally, self._compared(number, worker)))
        self._compared_before.pop(number, None)
        self.fusion.remove_host(number)
        self.meter.forget(number)

    def relocate(self, source: int, target: int, nbytes: float, sizes: F64, results: F64) -> None:
        """Let groups change hosts while all others go on; see `windjoin.diffusion.relocation`.

        sizes, results: of all groups; a size of 0 is one that stays
        """
        self.drain()
        self.relocation = Relocation(self, source, target, nbytes, sizes, results)

    def renumber(self, numbers: Callable[[int, I64], tuple[Bools, I64]]) -> None:
        """Rows have other numbers, or are gone: which there still are, and their numbers."""
        self.drain()
        for worker in self.workers.values():
            worker.renumber(numbers)
        for stream, (log, pending) in enumerate(zip(self.log, self.pending, strict=True)):
            log.renumber(partial(numbers, stream))
            pending.renumber(partial(numbers, stream))

    def carry_out(self, moves: Sequence[Move]) -> None:
        """All sources are read before anything reaches a target; nothing else is going on."""
        if not moves:
            return
        self.drain()
        ticket = Ticket()
        given = self._gather(moves, ticket)
        ticket = Ticket()
        for target, take in self._takes(moves, given):
            self.workers[target].send(take, ticket)
        self.wait(ticket)

    def _takes(
        self, moves: Sequence[Move], given: Sequence[list[Stretch]]
    ) -> Iterator[tuple[int, Take]]:
        """What comes to whom; groups of a stream from several hosts at once, into one index."""
        together: dict[tuple[int, int], list[int]] = {}
        for number, move in enumerate(moves):
            start, stop = self.stretch_of(move)
            if move.groups:
                together.setdefault((move.target, move.stream), []).append(number)
            else:
                take = Take(move.stream, start, stop, move.marks, given[number], absent=False)
                yield move.target, take
        for (target, stream), numbers in together.items():
            edges = [self.stretch_of(moves[number]) for number in numbers]
            start, stop = min(a for a, _ in edges), max(b for _, b in edges)
            rows = [stretch for number in numbers for stretch in given[number]]
            yield target, Take(stream, start, stop, moves[numbers[0]].marks, rows, absent=True)

    def _gather(self, moves: Sequence[Move], ticket: Ticket) -> list[list[Stretch]]:
        last = {(m.source, m.stream): number for number, m in enumerate(moves) if not m.keep}
        for number, move in enumerate(moves):
            start, stop = self.stretch_of(move)
            chosen = self.chosen(move.stream, move.groups) if move.groups else None
            if move.source is None:
                ticket.given[number] = self.log[move.stream].find(start, stop, chosen)
            else:
                more = not move.keep and number < last[move.source, move.stream]
                give = Give(number, move.stream, start, stop, chosen, move.keep, more)
                self.workers[move.source].send(give, ticket)
        self.wait(ticket)
        return [ticket.given[number] for number in range(len(moves))]

    def stretch_of(self, move: Move) -> tuple[int, int]:
        """The event times of a move."""
        return self.clock.real(move.start), self.clock.real_stop(move.stop)
