"""Routers with one rule taken out.  The tests of the invariant must see each of them fail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from windjoin.diffusion.atr import ATR, Task, Wanted
from windjoin.diffusion.baselines import Single
from windjoin.diffusion.ctr import CTR
from windjoin.diffusion.groups import Groups
from windjoin.diffusion.psp import PSP
from windjoin.diffusion.router import Move, Part, Path, Placement, Router
from windjoin.diffusion.segments import NEVER, Segment
from windjoin.pyx.routing.routes import RouteTable

# -- aligned routing ------------------------------------------------------------------------------


class NoLaterFollowers(ATR):
    """Followers newer than the master's segment stay away."""

    def _add_segment(self, start: int, stop: int) -> None:
        super()._add_segment(start, stop)
        *others, last = self.tasks
        self.tasks = [*others, last._replace(high=(stop,) * len(self.windows))]


class NoOlderFollowers(ATR):
    """Followers older than the master's segment stay away."""

    def _add_segment(self, start: int, stop: int) -> None:
        super()._add_segment(start, stop)
        *others, last = self.tasks
        self.tasks = [*others, last._replace(low=tuple(max(start, first) for first in last.low))]


class NoFloors(ATR):
    """A new regime also takes what belongs to the old one."""

    def switch_master(self, stream: int) -> bool:
        done = super().switch_master(stream)
        self.floors = [NEVER] * len(self.windows)
        return done


class OnlyTheLastFloor(ATR):
    """The second switch forgets the first."""

    def switch_master(self, stream: int) -> bool:
        before = self.master
        done = super().switch_master(stream)
        for k in range(len(self.floors)):
            if k not in (before, stream):
                self.floors[k] = NEVER
        return done


class NoSwitchTask(ATR):
    """Nobody owns old rows of the new master with new rows of the old one."""

    def _plan_switch(self, new: int, mark: int) -> None:
        pass


class SwitchSharesTheOldMark(ATR):
    """The host of the switch cannot tell its rows from those of the last old segment."""

    def _free_marks(self, count: int) -> list[int] | None:
        marks = super()._free_marks(count)
        return marks and [self.mark, marks[1]]


class NewRegimeKeepsTheOldMark(ATR):
    """Rows before and after the switch join everywhere."""

    def _free_marks(self, count: int) -> list[int] | None:
        marks = super()._free_marks(count)
        return marks and [marks[0], self.mark]


class MarksReusedTooEarly(ATR):
    """A mark is taken again while rows with it can still be reached."""

    def _free_marks(self, count: int) -> list[int] | None:
        return [mark for mark in range(3) if mark != self.mark]


class LostTasksStartEmpty(ATR):
    """The host that takes over a task does not get what was sent before."""

    def _refill(self, task: Task) -> list[Move]:
        return []


class LostTasksAreForgotten(ATR):
    """Nobody takes over the tasks of a lost host."""

    def remove_host(self, number: int, *, lost: bool) -> tuple[Move, ...]:
        Router.remove_host(self, number, lost=lost)
        self.tasks = [task for task in self.tasks if not (lost and task.host == number)]
        return ()


class BegunTasksAreGivenAway(ATR):
    """A slow host's tasks go to others with rows of the master that the host holds as well."""

    def _unbegun(self, task: Task, border: int) -> bool:
        return True


class PlansTooLate(ATR):
    """Hosts are not chosen ahead of the windows."""

    def _plan(self, start: int, until: int) -> None:
        super()._plan(start, min(until, start + 1))


class TasksExpireWithTheirMaster(ATR):
    """A task is forgotten when its master's rows are all there."""

    def expire(self, watermark: int) -> None:
        super().expire(watermark)
        self.tasks = [task for task in self.tasks if min(task.high) > watermark]


class AtrLeavesTooEarly(ATR):
    """A leaving host is switched off while it has tasks."""

    def _holds_work(self, number: int) -> bool:
        return False


class RowsSentOncePerTask(ATR):
    """A row goes to a host as often as tasks there ask for it."""

    def _parts(self, stream: int, start: int, stop: int) -> Wanted:
        parts = tuple(
            Part(t.host, max(t.low[stream], start), min(t.high[stream], stop), 1 << t.mark)
            for t in self.tasks
            if max(t.low[stream], start) < min(t.high[stream], stop)
        )
        return parts, Placement(parts).hosts, sum(part.stop - part.start for part in parts)


# -- coordinated routing --------------------------------------------------------------------------


class _CTRWithTable(CTR):
    table_type: type[RouteTable]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._swap()

    def restore(self, state: Any) -> None:
        super().restore(state)
        self._swap()

    def _swap(self) -> None:
        table = self.table_type(self.windows, self.book.size, self.table.random)
        for stream, segments in enumerate(self.table.dump()):
            for start, stop, hosts in segments:
                table.add(stream, start, stop, hosts)  # type: ignore[arg-type]
        self.table = table
        self._set_orders()
        self._weigh()


class _NoVoids(RouteTable):
    def path(self, stream: int, start: int, stop: int) -> Any:
        return [(k, hosts, {}) for k, hosts, _ in super().path(stream, start, stop)]


class _OnePass(RouteTable):
    def path(self, stream: int, start: int, stop: int) -> Any:
        return super().path(stream, start, start)


class _LastHostForgotten(RouteTable):
    def path(self, stream: int, start: int, stop: int) -> Any:
        return [
            (k, h[:-1] if len(h) > 1 else h, v) for k, h, v in super().path(stream, start, stop)
        ]


class _HalfAWindow(RouteTable):
    def __init__(self, windows: Sequence[int], hosts: int, random: int = 0) -> None:
        super().__init__([window // 2 for window in windows], hosts, random)


class _LostHostStays(RouteTable):
    def drop_host(self, host: int) -> list[tuple[int, int, int]]:
        return []


class VoidsIgnored(_CTRWithTable):
    """All hosts of a hop compute a segment that several hold."""

    table_type = _NoVoids


class OnePass(_CTRWithTable):
    """Segments that start together do not see each other."""

    table_type = _OnePass


class HopWithoutItsLastHost(_CTRWithTable):
    """A cover that leaves something uncovered."""

    table_type = _LastHostForgotten


class CorrelatedByHalfAWindow(_CTRWithTable):
    """Segments in the older half of the window are not looked at."""

    table_type = _HalfAWindow


class LostHostStaysInTheTable(_CTRWithTable):
    """Paths go on leading to a host that is gone."""

    table_type = _LostHostStays


class LastCopiesNotRestored(CTR):
    """A segment whose only host is lost is given a host, but no rows."""

    def remove_host(self, number: int, *, lost: bool) -> tuple[Move, ...]:
        super().remove_host(number, lost=lost)
        return ()


class EntriesExpireTooEarly(CTR):
    """Entries go when their segment ends, not when no window reaches them."""

    def expire(self, watermark: int) -> None:
        super().expire(watermark)
        self.table.expire(watermark + self.max_window)


class StoredOnlyOnce(CTR):
    """The table says several hosts, the rows go to the first."""

    def place(self, segment: Segment) -> Placement:
        return Placement(super().place(segment).parts[:1])


class CtrLeavesTooEarly(CTR):
    """A leaving host is switched off while it holds segments."""

    def _holds_work(self, number: int) -> bool:
        return False


# -- groups and single ----------------------------------------------------------------------------


class GroupsMoveWithoutState(Groups):
    """The owner changes, its rows stay behind."""

    def _hand_over(self, groups: tuple[int, ...], source: int | None, target: int) -> list[Move]:
        super()._hand_over(groups, source, target)
        return []


class GroupsLeaveTheOldestRow(Groups):
    """Off by one at the far end of the window."""

    def _hand_over(self, groups: tuple[int, ...], source: int | None, target: int) -> list[Move]:
        moves: Iterable[Move] = super()._hand_over(groups, source, target)
        return [move._replace(start=self._placed - self.windows[move.stream] + 1) for move in moves]


class HomeMovesWithoutState(Single):
    """The new home starts empty."""

    def remove_host(self, number: int, *, lost: bool) -> tuple[Move, ...]:
        super().remove_host(number, lost=lost)
        return ()


# -- the ring -------------------------------------------------------------------------------------


class TailIsNotAsked(PSP):
    """Rows visit all hosts but the last of the ring."""

    def _path(self, stream: int, hosts: tuple[int, ...]) -> Path:
        rest = tuple(host for host in hosts if host != self.order[-1]) or hosts
        return super()._path(stream, rest)


class RingLeavesRowsBehind(PSP):
    """A host leaves, its slices stay with it."""

    def remove_host(self, number: int, *, lost: bool) -> tuple[Move, ...]:
        moves = super().remove_host(number, lost=lost)
        return tuple(move for move in moves if move.source not in (number, None))


class LostSlicesAreAskedFor(PSP):
    """What a lost host held is asked of it, not of the log."""

    def remove_host(self, number: int, *, lost: bool) -> tuple[Move, ...]:
        moves = super().remove_host(number, lost=lost)
        return tuple(m._replace(source=number) if m.source is None else m for m in moves)


class RowsForgottenEarly(PSP):
    """Ranges are forgotten while rows to come still reach them."""

    def expire(self, watermark: int) -> None:
        super().expire(watermark + self.max_window)


MUTANTS: dict[str, list[type[Router]]] = {
    "atr": [
        NoLaterFollowers,
        NoOlderFollowers,
        NoFloors,
        OnlyTheLastFloor,
        NoSwitchTask,
        SwitchSharesTheOldMark,
        NewRegimeKeepsTheOldMark,
        MarksReusedTooEarly,
        LostTasksStartEmpty,
        LostTasksAreForgotten,
        BegunTasksAreGivenAway,
        PlansTooLate,
        TasksExpireWithTheirMaster,
        AtrLeavesTooEarly,
        RowsSentOncePerTask,
    ],
    "ctr": [
        VoidsIgnored,
        OnePass,
        HopWithoutItsLastHost,
        CorrelatedByHalfAWindow,
        LostHostStaysInTheTable,
        LastCopiesNotRestored,
        EntriesExpireTooEarly,
        StoredOnlyOnce,
        CtrLeavesTooEarly,
    ],
    "psp": [TailIsNotAsked, RingLeavesRowsBehind, LostSlicesAreAskedFor, RowsForgottenEarly],
    "groups": [GroupsMoveWithoutState, GroupsLeaveTheOldestRow],
    "single": [HomeMovesWithoutState],
}
