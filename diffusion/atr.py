"""Aligned tuple routing: one stream is master, every other stream follows its segments.

Gu, Yu, Wang 2007, "Adaptive Load Diffusion for Multiway Windowed Stream Joins", section 3.

The work is cut into **tasks**.  A task is a box: one host and, per stream, a time range.  The boxes
are chosen so that every combination inside the windows lies in exactly one of them:

* master M, segment ``[t, u)``: M in ``[t, u)``, stream i in ``[t - W_i, u + W_M)``;
* a switch from M to N at ``ts`` adds one task for what neither regime owns: M in
  ``[ts, ts + W_N)``, N in ``[ts - W_N, ts)``, stream i in ``[ts - W_i, ts + W_N)``; it is best
  kept by the host of the last old segment, which holds most of those rows anyway.  From then on
  **floors** hold for all tasks to come: M and N at or after ``ts``.

With many switches the owner of a combination is found by walking the regimes in order: it leaves a
regime iff its M and its N row are at or after the switch.  The floors are the memory of that walk.
All tasks of one regime share a mark, tasks of a switch have one of their own; a combination belongs
to a box exactly when all its rows at that host share the mark.

Tasks are assigned as far ahead as the windows reach, so no row waits for a decision and a switch,
which takes effect where the plan ends, never concerns a row that was already routed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from windjoin.diffusion.adaptive import AdaptiveRouter
from windjoin.diffusion.errors import RoutingError
from windjoin.diffusion.load import Host, Weights
from windjoin.diffusion.router import Description, Hop, Move, Part, Path, Placement
from windjoin.diffusion.segment_length import HillClimber
from windjoin.diffusion.segments import NEVER, Segment, StreamProfile
from windjoin.pyx.routing.tasks import TaskTable

MARK_BITS = 62  # marks fit a signed 64-bit word
MOST_ROWS = float(1 << 32)  # that one task counts for, however long its windows are
KEEP_MASTER = 0.9  # a new master must promise at least a tenth less overhead


class Task(NamedTuple):
    """A box of combinations that one host completes; ``low <= t < high`` per stream."""

    host: int
    mark: int  # number of its bit
    low: tuple[int, ...]
    high: tuple[int, ...]


Wanted = tuple[tuple[Part, ...], tuple[int, ...], int]  # parts, their hosts, time in all of them


class ATR(AdaptiveRouter):
    """One hop; masters are stored once, followers where a window may need them.

    >>> from windjoin.diffusion.registry import make
    >>> streams = [StreamProfile("a", window=10, rate=5.0), StreamProfile("b", window=20, rate=1.0)]
    >>> router = make("atr", streams, 2, segment_length=100)
    >>> router.master, router.overhead(0), router.overhead(1)
    (0, 0.3, 1.5)
    >>> router.place(Segment(0, 0, 100)).parts
    (Part(host=0, start=0, stop=100, marks=1, groups=()),)
    >>> for part in router.place(Segment(1, 0, 100)).parts: print(part.host, part.start, part.stop)
    0 0 100
    1 80 100
    """

    name: ClassVar[str] = "atr"

    def __init__(
        self,
        profiles: Sequence[StreamProfile],
        hosts: Sequence[Host],
        *,
        segment_length: int,
        weights: Weights | None = None,
        master: int | None = None,
        order: str = "master",
        adapt: bool = True,
    ) -> None:
        super().__init__(
            profiles, hosts, segment_length=segment_length, weights=weights, adapt=adapt
        )
        if order not in ("master", "selectivity"):
            raise RoutingError(f"order is {order!r}; it must be 'master' or 'selectivity'")
        self.order = order
        self.master = self.best_master() if master is None else self._checked(master)
        self._table = TaskTable(len(self.profiles), Part)
        self.mark = 0
        self.floors = [NEVER] * len(self.profiles)
        self._begin = NEVER  # no row is older: the first border
        self.planned = NEVER  # the tasks of the masters' rows before this time are assigned
        self._cuts: list[int] = []  # ends of the masters' segments that are still to come
        self._placed = [NEVER] * len(self.profiles)  # rows of the stream before this are placed
        self._mark_free_from = {0: NEVER}  # bit -> when no row with it can be reached any more
        self._routed: dict[Segment, tuple[Placement, tuple[int, ...]]] = {}  # of this border
        self._order_of: dict[tuple[int, int], tuple[int, ...]] = {}  # by stream and master
        self._slow: set[int] = set()  # hosts whose later tasks are for others to take

    # -- the choice of master and of segment length --------------------------------------------

    def overhead(self, master: int) -> float:
        """Extra rows per time unit with that master: Gu, Yu, Wang 2007, eq. 2."""
        extra = sum(
            (self.windows[i] + self.windows[master]) * self.profiles[i].rate
            for i in self._others(master)
        )
        return extra / self.segment_length

    def best_master(self) -> int:
        """The stream with the least overhead."""
        return min(range(len(self.profiles)), key=lambda stream: (self.overhead(stream), stream))

    def switch_master(self, stream: int) -> bool:
        """Make a stream master where the plan ends.  False if too many regimes still drain."""
        if self._checked(stream) == self.master:
            return True
        if self.planned == NEVER:
            self.master = stream
            return True
        marks = self._free_marks(2)
        if marks is None:
            return False
        self._plan_switch(stream, marks[0])
        self.floors[self.master] = self.floors[stream] = self.planned
        self.master, self.mark = stream, marks[1]
        self._mark_free_from[self.mark] = self.planned + 2 * self.max_window
        self.counters.switches += 1
        return True

    def learn(self, shares: Sequence[Sequence[float]]) -> None:
        """Orders of probing may go by the selectivities."""
        super().learn(shares)
        self._order_of.clear()

    def _planned_until(self) -> int:
        return max(self.border, self.planned)

    def _follow(self, rates: Sequence[float] | None) -> None:
        """The stream with the least overhead becomes master."""
        self._order_of.clear()
        best = self.best_master()
        if self.overhead(best) < KEEP_MASTER * self.overhead(self.master):
            self.switch_master(best)

    # -- routing -------------------------------------------------------------------------------

    def advance(self, border: int) -> tuple[Move, ...]:
        """Tasks stay where they are until they end, unless a host has become slow."""
        super().advance(border)
        self._routed.clear()
        slow, self._slow = self._slow.intersection(self.book.open_hosts), set()
        if not slow or len(slow) == len(self.book.open_hosts):
            return ()
        return self._rehome(lambda task: task.host in slow and self._unbegun(task, border))

    def _unbegun(self, task: Task, border: int) -> bool:
        """No master's row of it has come: none stays where it was, to be met there once more."""
        return task.mark == self.mark and task.low[self.master] >= border

    def retreat(self, slow: Sequence[int]) -> None:
        """Tasks of theirs that have not begun go to others at the next border, with their rows.

        Without that a host that has become slow would get rows for as long as windows reach ahead.
        """
        if self.adapt:
            self._slow.update(slow)

    def stop(self, border: int) -> int:
        """The end of the master's segment that contains ``border``."""
        self._plan(border, border + 1)
        return next(cut for cut in self._cuts if cut > border)

    def place(self, segment: Segment) -> Placement:
        """To the host of every task whose box the segment meets."""
        return (self._routed.get(segment) or self._place_new(segment))[0]

    def path(self, segment: Segment) -> Path:
        """One hop: wherever the row is stored, over all other streams, in the order asked for.

        A follower's row visits many hosts.  Of the master each holds its own segments only, of the
        other followers all hold the same: probing those first would do the same work at every host.
        """
        placement, hosts = self._routed.get(segment) or self._place_new(segment)
        way = segment.stream, self.master
        order = self._order_of.get(way)
        if order is None:
            others = self._others(segment.stream)
            order = tuple(sorted(others, key=lambda other: self._rank(segment.stream, other)))
            self._order_of[way] = order
        return Path((Hop(order, hosts, {}, placement.parts),))

    def _rank(self, stream: int, other: int) -> tuple[float, int]:
        """By what others are probed: the master first, or (as published) by expected matches."""
        if self.order == "master":
            return float(other != self.master), other
        selectivity = self.profiles[stream].selectivity_with(other)
        return selectivity * self.profiles[other].rows_in_window, other

    def _place_new(self, segment: Segment) -> tuple[Placement, tuple[int, ...]]:
        """The placement and its hosts, for the first time."""
        self._check_segment(segment)
        stream, start, stop = segment.stream, segment.start, segment.stop
        self._plan(start, stop + self.windows[stream])
        if start < self._begin:
            raise RoutingError(
                f"segment [{start}, {stop}) of stream {self.profiles[stream].name!r} starts "
                f"before the first border, {self._begin}"
            )
        parts, hosts, covered = self._parts(stream, start, stop)
        routed = self._routed[segment] = Placement(parts), hosts
        self._placed[stream] = max(self._placed[stream], stop)
        self._count(segment, covered)
        self.counters.visits += len(hosts)
        return routed

    def expire(self, watermark: int) -> None:
        """Forget tasks that no row to come belongs to."""
        super().expire(watermark)
        self._table.expire(watermark)
        self._cuts = [cut for cut in self._cuts if cut > watermark]

    def remove_host(self, number: int, *, lost: bool) -> tuple[Move, ...]:
        """Planned: the tasks it has are its last.  Lost: others take them over from the log."""
        super().remove_host(number, lost=lost)
        return self._rehome(lambda task: task.host == number) if lost else ()

    def _rehome(self, which: Callable[[Task], bool]) -> tuple[Move, ...]:
        """Give tasks to the least loaded hosts, which get what they have missed from the log."""
        moves: list[Move] = []
        for position, task in enumerate(self.tasks):
            if not which(task):
                continue
            rehomed = task._replace(host=self._assign(task.low, task.high))
            if rehomed.host != task.host:
                self._table.rehome(position, rehomed.host)
                moves += self._refill(rehomed)
        self._routed.clear()
        self.counters.moves += len(moves)
        return tuple(moves)

    def describe(self) -> Description:
        """Tasks, marks in use and equation 2."""
        tasks = self.tasks
        return Description(
            self.name,
            self.exact,
            tuple(host.number for host in self.book.hosts),
            entries=len(tasks),
            state_bytes=len(tasks) * 8 * (2 + 2 * len(self.profiles)),
            counters=self.counters,
            expected_overhead=self.overhead(self.master),
            details={
                "master": self.profiles[self.master].name,
                "segment_length": self.segment_length,
                "marks_in_use": len({task.mark for task in tasks}),
                "planned": self.planned,
            },
        )

    # -- plain data ----------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Regime, floors, tasks and marks."""
        return super().state() | {
            "master": self.master,
            "mark": self.mark,
            "floors": list(self.floors),
            "begin": self._begin,
            "planned": self.planned,
            "cuts": list(self._cuts),
            "placed": list(self._placed),
            "marks": sorted([mark, free] for mark, free in self._mark_free_from.items()),
            "climber": self._climber.state(),
            "slow": sorted(self._slow),
            "tasks": self._table.dump(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """The way back from `state`."""
        super().restore(state)
        self.master, self.mark = state["master"], state["mark"]
        self.floors, self.planned = list(state["floors"]), state["planned"]
        self._begin = state["begin"]
        self._cuts, self._placed = list(state["cuts"]), list(state["placed"])
        self._mark_free_from = dict(state["marks"])
        self._climber = HillClimber.from_state(state["climber"])
        self._slow = set(state["slow"])
        self.tasks = [
            Task(host, mark, tuple(low), tuple(high)) for host, mark, low, high in state["tasks"]
        ]
        self._routed.clear()

    # -- planning ------------------------------------------------------------------------------

    @property
    def tasks(self) -> list[Task]:
        """All tasks that have not ended, in the order they were assigned."""
        return [Task(h, mark, tuple(low), tuple(high)) for h, mark, low, high in self._table.dump()]

    @tasks.setter
    def tasks(self, tasks: Sequence[Task]) -> None:
        self._table.clear()
        for task in tasks:
            self._table.add(*task)

    def _plan(self, start: int, until: int) -> None:
        """Assign the master's segments that start before ``until``."""
        if self.planned == NEVER:
            self.planned = self._begin = start
        while self.planned < until:
            stop = self.planned + self.segment_length
            self._add_segment(self.planned, stop)
            self._cuts.append(stop)
            self.planned = stop

    def _add_segment(self, start: int, stop: int) -> None:
        low = [max(f, start - w) for f, w in zip(self.floors, self.windows, strict=True)]
        high = [stop + self.windows[self.master]] * len(low)
        low[self.master], high[self.master] = start, stop
        self._add_task(self._assign(low, high), self.mark, low, high)

    def _plan_switch(self, new: int, mark: int) -> None:
        """The task for rows of the old master after the switch with rows of the new one before."""
        at, reach = self.planned, self.windows[new]
        low = [max(f, at - w) for f, w in zip(self.floors, self.windows, strict=True)]
        high = [at + reach] * len(low)
        low[self.master] = at
        high[new] = at
        if all(first < last for first, last in zip(low, high, strict=True)):
            self._add_task(self._switch_host(low, high), mark, low, high)

    def _switch_host(self, low: Sequence[int], high: Sequence[int]) -> int:
        """The host of the last old segment, unless it is leaving."""
        tasks = self.tasks
        last = tasks[-1].host if tasks else None
        return last if last in self.book.open_hosts else self._assign(low, high)

    def _add_task(self, host: int, mark: int, low: Sequence[int], high: Sequence[int]) -> None:
        self._table.add(host, mark, low, high)
        free_from = max(high) + self.max_window
        self._mark_free_from[mark] = max(self._mark_free_from.get(mark, NEVER), free_from)

    def _assign(self, low: Sequence[int], high: Sequence[int]) -> int:
        """The host that is least loaded once it has the work of a box gets it."""
        rows = n_bytes = 0
        for profile, first, last in zip(self.profiles, low, high, strict=True):
            expected = int(min(profile.rate * (last - first), MOST_ROWS))
            rows += expected
            n_bytes += expected * profile.row_bytes
        host = self.book.least_with(rows=rows + 1, bytes=n_bytes)
        self.book.assign([host], rows=rows + 1, bytes=n_bytes, due=max(high))
        return host

    def _refill(self, task: Task) -> list[Move]:
        """What the new host of a task has missed."""
        return [
            Move(stream, low, min(high, placed), None, task.host, 1 << task.mark)
            for stream, (low, high, placed) in enumerate(
                zip(task.low, task.high, self._placed, strict=True)
            )
            if low < min(high, placed)
        ]

    def _free_marks(self, count: int) -> list[int] | None:
        """Bits that no reachable row carries; None if there are too few."""
        live = {self.mark} | {
            mark for mark, free_from in self._mark_free_from.items() if free_from > self.watermark
        }
        free = [mark for mark in range(MARK_BITS) if mark not in live]
        return free[:count] if len(free) >= count else None

    def _checked(self, stream: int) -> int:
        if not 0 <= stream < len(self.profiles):
            raise RoutingError(f"master {stream}; streams are 0 .. {len(self.profiles) - 1}")
        return stream

    # -- placements ----------------------------------------------------------------------------

    def _parts(self, stream: int, start: int, stop: int) -> Wanted:
        return self._table.parts(stream, start, stop)

    def _holds_work(self, number: int) -> bool:
        return self._table.ends_after(number, self.watermark)
