"""What a session that sheds does at every beat: measure, adapt, allot, and tell its pipelines."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from windjoin.kernels.order import Order
from windjoin.kernels.shedding.admission import Admission
from windjoin.kernels.shedding.ages import ranges
from windjoin.kernels.shedding.allotment import Policy, Scope, Share, allot
from windjoin.kernels.shedding.costs import alone_ns, hop_of
from windjoin.kernels.shedding.learned import AgeWindows, Direction
from windjoin.kernels.shedding.rate import HASTE, LATE, SLOTS, PeriodBudget, Rate
from windjoin.kernels.shedding.recall import Recall, Sums
from windjoin.kernels.shedding.watched import KEPT, Watched
from windjoin.kernels.spec import JoinSpec
from windjoin.pyx.live.shedder import Beat, Shedder

MOST_PERIODS = 50  # that are made up for, after a silence
ENOUGH_ROWS = 30.0  # joined fully, to know what one takes
MOST_ROWS = 1024
LOOKED_AT = 4  # rows that tell where their results are while all is done (`Shedder`),
LOOKS_SELDOM = 16  # one of so many that would be joined fully, were work left out
LEAST_SAMPLE = 0.02  # of what `sample` says: something is learned however little is done
MOST_CHUNK = 256  # rows between two looks at the clock
UNKNOWN_CHUNK = 32  # and until it is known what a row takes
CALM = 0.25  # of a slot's part is needed: then the clock is read at
LOOK_OF = 16  # one of so many times,
ALERT_LOOK_OF = 4  # else so often
MEASURED = 256  # pushes of a slot, if there are more,
MEASURED_OF = 64  # or one of so many,
CHARGED = 0.005  # and one may be charged so much of a period for others that it stands for
ALERT = 2.0  # times a slot's part, after which it is looked at again


@dataclass(frozen=True, slots=True)
class Settings:
    """How a session sheds: ``budget`` in units a second, nanoseconds if ``by_time``."""

    budget: float
    by_time: bool
    period: float  # seconds
    boost: float
    sample: float
    policy: Policy | Literal["drop"]
    scope: Scope
    width: int  # ticks of a basic window
    reach: float  # seconds of the longest window
    seed: int


@dataclass(slots=True)
class _Seen:
    """What happened since the last look: units spent, needed for all work, not to be shed."""

    spent: float = 0.0
    need: float = 0.0
    fixed: float = 0.0

    def take(self, other: _Seen) -> None:
        self.spent += other.spent
        self.need += other.need
        self.fixed += other.fixed


class Controller:
    """Decides for all starting streams of a session how much of the work is done, and which."""

    def __init__(
        self, spec: JoinSpec, settings: Settings, beat: Beat, latest: bool = False
    ) -> None:
        """``latest``: of start rows that are later than all that they ask for, as on hosts."""
        self.spec, self.settings, self.beat, self._latest = spec, settings, beat, latest
        self.rate = Rate(settings.boost)
        self.allowance = PeriodBudget(settings.budget * settings.period)
        self.recall = [Recall() for _ in spec.streams]
        self.admission = Admission(len(spec.streams), settings.seed)
        self.watched: list[Watched] = []
        self._known: dict[tuple[int, tuple[int, ...]], Direction] = {}
        self.fraction = 1.0  # in use
        self.everything = True  # is compared, of the rows that are taken
        self.admits = 1.0  # of the rows, from the next push on
        self._admitted = 1.0  # of the rows in the windows
        self.sample = 0.0  # of rows, that are joined fully
        self._level = 0.0  # the fraction of late, slot by slot: whatever is learned needs no haste
        self.adapted = 0
        self.shed_at: float | None = None  # when it began for the first time
        self.load = 0.0  # needed, of what was available, in the last period
        self._begun = self._slot = beat.read()  # of the period and of the slot that are on
        self._of_period, self._of_slot = _Seen(), _Seen()
        self._hurried = False
        self._tuned = 0
        self._error = 1.0  # what was spent, of what had been expected
        self._joined, self._pushes = beat.joining, beat.pushes
        beat.most_charged = int(CHARGED * settings.budget * settings.period)
        self._cpu = self._thread = 0
        beat.on_tick(self.tick)
        self._set_alarm()

    @property
    def slot_s(self) -> float:
        """Seconds between two looks."""
        return self.settings.period / SLOTS

    def windows(self, start: int, target: int) -> AgeWindows:
        """How rows of a stream are divided that rows of another one ask for."""
        streams = self.spec.streams
        ahead = 0 if self._latest else streams[start].window
        return AgeWindows(self.settings.width, ahead, streams[target].window)

    def follow(self, orders: Sequence[Order], shedders: Sequence[Shedder]) -> None:
        """There are other pipelines from now on; what was learned of the same hops is kept."""
        known = self._known
        for watched in self.watched:
            hops = tuple(hop.target for hop in watched.shedder.hops)
            known[watched.start, hops] = watched.direction
        self._look_up()
        self.watched = []
        for order, shedder in zip(orders, shedders, strict=True):
            number, hops = order.start, tuple(step.stream for step in order.steps)
            fresh = Direction(
                [
                    hop_of(step, self.windows(number, step.stream), self.settings.by_time,
                           step is order.steps[-1])
                    for step in order.steps
                ]
            )  # fmt: skip
            old = known.get((number, hops), fresh)
            same = [hop.windows for hop in old.hops] == [hop.windows for hop in fresh.hops]
            watched = Watched(number, shedder, old if same else fresh, alone_ns(order.steps))
            watched.spread = fresh.hops[0].spread
            self.watched.append(watched)
        self._apply(self.fraction)

    # -- the beat --------------------------------------------------------------------------------

    def tick(self) -> None:
        """It is time to look, or more has been spent than was thought."""
        now = self.beat.read()
        self._look_up()
        slots = int((now - self._slot) / self.slot_s + 1e-9)
        if slots > 0:
            self._correct()
            self.allowance.observe(self._of_slot.need, self._of_slot.fixed, slots)
            self._of_period.take(self._of_slot)
            self._of_slot = _Seen()
            self._measure_pushes(slots)
            self._slot += slots * self.slot_s
            stays = math.exp(-slots * self.slot_s / max(self.settings.reach, 1e-9))
            self._admitted = stays * self._admitted + (1 - stays) * self.admission.share
        periods = int((now - self._begun) / self.settings.period + 1e-9)
        if periods > 0:
            self._adapt(periods)
        self._tune()
        self._apply(self._affordable(self._begun + self.settings.period - now))
        self._set_alarm()

    def _measure_pushes(self, slots: int) -> None:
        """As many of the next ones as tell what all take."""
        beat = self.beat
        each = (beat.pushes - self._pushes) // slots // MEASURED
        longest, beat.longest_push = beat.longest_push, 0
        if longest:
            each = min(each, beat.most_charged // longest)
        beat.measured_of = max(1, min(each, MEASURED_OF)) if self.fraction >= 1 else 1
        self._pushes = beat.pushes

    def _tune(self) -> None:
        """Look at one hop more closely, at each beat at another."""
        hops = [hop for watched in self.watched for hop in watched.direction.hops]
        self._tuned = (self._tuned + 1) % max(len(hops), 1)
        for hop in hops[self._tuned : self._tuned + 1]:
            hop.tune()

    def _adapt(self, periods: int) -> None:
        """Algorithm 1, and for what was learned in earlier periods to count less."""
        seen, each = self._of_period, self.allowance.per_period
        self.load = seen.need / periods / each
        available = each - seen.fixed / periods
        for _ in range(min(periods, MOST_PERIODS)):
            self.rate.adapt(available, (seen.need - seen.fixed) / periods)
        self.adapted += periods
        self.allowance.renew(periods)
        self._of_period, self._hurried = _Seen(), False
        self._begun += periods * self.settings.period
        for watched in self.watched:
            watched.direction.fade()

    def _affordable(self, seconds: float) -> float:
        """The fraction for now, if so much time is left of the period."""
        slots = seconds / self.slot_s
        if self.rate.fraction >= 1 and not self._hurried:
            if not self.allowance.overload(slots):
                return 1.0
            self._hurried = True
        lasting = self.allowance.lasting(slots)
        return min(lasting, self.settings.boost * self.rate.fraction, 1.0)

    def _correct(self) -> None:
        """What the last slot has taken, against what was expected of the fraction in use."""
        seen = self._of_slot
        expected = self.fraction * (seen.need - seen.fixed)
        if self.fraction < 1 and expected > 0:
            ratio = (seen.spent - seen.fixed) / expected
            self._error *= min(max(ratio, 0.1), 10.0) ** HASTE
            self._error = min(max(self._error, 0.2), 5.0)

    def _set_alarm(self) -> None:
        allowance, beat = self.allowance, self.beat
        part = allowance.per_period / SLOTS
        beat.spent, beat.next = 0.0, self._slot + self.slot_s
        calm = self.fraction >= 1 and allowance.need < CALM * part
        beat.look_of = LOOK_OF if calm else ALERT_LOOK_OF
        if self.fraction >= 1:
            beat.alarm = max(LATE * allowance.per_period - allowance.spent, part)
        else:
            beat.alarm = ALERT * part if allowance.left > 0 else allowance.per_period

    # -- what has happened -----------------------------------------------------------------------

    def _look_up(self) -> None:
        """Take note of all that happened since this was done last."""
        seen = _Seen()
        for watched in self.watched:
            sums = self._learn(watched)
            self._measure(watched, sums, seen)
            if not self.everything:
                self.recall[watched.start].add(sums, self.sample)
        if self.settings.by_time:
            joined, ours = self._time_joined()
            seen.spent *= ours
            seen.need *= ours
            if self.everything:
                seen.need = joined
                probing = min(seen.spent, 0.9 * joined)
            else:
                probing = min(seen.spent, joined)
                seen.need += joined - probing
            seen.spent, seen.fixed = joined, joined - probing
        if self.settings.policy == "drop":
            # the work of comparing is that of pairs of rows
            done = self.admission.share * (1.0 if self.settings.by_time else self._admitted)
            seen.need, seen.fixed = seen.spent / max(done, 1e-9), 0.0
        self.allowance.spend(seen.spent)
        self._of_slot.take(seen)

    def _learn(self, watched: Watched) -> Sums:
        """What rows that were joined fully found, and where."""
        shedder, hops = watched.shedder, watched.shedder.hops
        sums = Sums(*shedder.sums.tolist())
        shedder.sums[:] = 0
        watched.direction.rows += sums.full
        for number, hop in enumerate(watched.direction.hops):
            hop.found += shedder.found[number]
            hop.proposed += hops[number].proposed
            shedder.found[number][:] = 0
            hops[number].proposed[:] = 0
            if hop.arrived is not None:
                hop.arrived += hops[number + 1].arrived
                hops[number + 1].arrived[:] = 0
        return sums

    def _measure(self, watched: Watched, sums: Sums, seen: _Seen) -> None:
        """What rows of one stream took, and what they would have taken if all had been done."""
        shedder = watched.shedder
        rows, compared = shedder.rows - watched.rows, shedder.compared - watched.compared
        probing, timed = shedder.probing - watched.probing, shedder.timed - watched.timed
        skipped = shedder.skipped - watched.skipped
        watched.rows, watched.compared = shedder.rows, shedder.compared
        watched.probing, watched.timed = shedder.probing, shedder.timed
        watched.skipped = shedder.skipped
        if watched.full > ENOUGH_ROWS:
            watched.full *= KEPT
            watched.full_compared *= KEPT
        if self.settings.by_time:
            watched.weigh_windows(sums)
        everything = self.everything
        watched.full += rows if everything else sums.full
        watched.full_compared += compared if everything else sums.compared
        each = watched.full_compared / watched.full if watched.full else 0.0
        watched.direction.each = each
        if not self.settings.by_time:
            seen.spent += compared
            seen.need += compared if everything else rows * each
        elif everything:
            if timed:
                watched.row_ns = probing / timed
            seen.spent += watched.row_ns * rows
        else:
            narrowed = sums.selective - skipped
            hop = watched.direction.hops[0]
            windows = 1.0 if watched.share is None else float(watched.share.windows[0].mean())
            done = sums.full * (hop.probe + hop.spread) + hop.candidate * compared
            done += narrowed * (hop.probe + hop.spread * windows)
            whole = rows * (hop.probe + hop.spread + hop.candidate * each)
            seen.spent += probing
            seen.need += probing * whole / done if done else 0.0

    def _time_joined(self) -> tuple[float, float]:
        """Nanoseconds in pushes since the last look, without what other programs took of them.

        And which share that is of the time that passed in them.
        """
        joined, cpu, thread = self.beat.pushing, time.thread_time_ns(), threading.get_ident()
        passed = took = joined - self._joined
        if thread == self._thread:
            took = min(took, cpu - self._cpu)
        self._joined, self._cpu, self._thread = joined, cpu, thread
        return float(took), took / passed if passed > 0 else 1.0

    # -- what is to be done ----------------------------------------------------------------------

    def _apply(self, fraction: float) -> None:
        """From now on so much of the work is done, and the worthiest."""
        if fraction >= 1:
            self._admit(1.0)
            self._do_all(1.0)
            return
        if self.shed_at is None:
            self.shed_at = self.beat.read()
            self.beat.to_tell = True
        if self.settings.policy == "drop":
            self._admit(fraction if self.settings.by_time else fraction / self._admitted)
            self._do_all(fraction)
        else:
            self._do_some(fraction)

    def _do_all(self, fraction: float) -> None:
        """All work of the rows that are taken."""
        self.fraction, self.everything, self._level = fraction, True, 0.0
        self.sample = 0.0 if self.settings.policy == "drop" else self.settings.sample
        for watched in self.watched:
            watched.shedder.exact, watched.share = True, None
            watched.shedder.set_shares(self.sample, 1.0)
            self._set_chunk(watched, MOST_ROWS)
            watched.shedder.looks_every = int(LOOKED_AT * LOOKS_SELDOM / max(self.sample, 1e-9))
            watched.shedder.unknown = ENOUGH_ROWS - watched.direction.rows
            watched.shedder.calm = 0

    def _do_some(self, fraction: float) -> None:
        settings = self.settings
        assert settings.policy != "drop", "rows are dropped, or work is"
        self.fraction, self.everything = fraction, False
        self._level += (fraction - self._level) / SLOTS if self._level else fraction
        self._level = min(self._level, self.allowance.steady)
        self.sample = settings.sample * max(self._level, LEAST_SAMPLE)
        rest = max(fraction / self._error - self.sample, 0.0) / (1 - self.sample)
        directions = [watched.direction for watched in self.watched]
        shares = allot(directions, rest, settings.policy, settings.scope)
        for watched, share in zip(self.watched, shares, strict=True):
            self._tell(watched, share)

    def _admit(self, share: float) -> None:
        """So many of the rows are taken from the next push on."""
        if share != self.admits:
            self.admits = share
            self.beat.to_attend = True

    def _tell(self, watched: Watched, share: Share) -> None:
        shedder = watched.shedder
        for hop, windows, worth, limited in zip(
            watched.direction.hops, share.windows, share.worth, shedder.hops, strict=True
        ):
            limited.choose(ranges(hop.windows, windows, worth))
        shedder.exact, shedder.probes, shedder.calm = False, share.asks > 0, 0
        shedder.set_shares(self.sample, share.asks)
        watched.share = share
        self._set_chunk(watched, MOST_CHUNK)

    def _set_chunk(self, watched: Watched, most: int) -> None:
        """Rows between two looks: not so many that they take more than a part of a slot."""
        each = watched.row_ns
        if not self.settings.by_time and watched.full:
            each = watched.full_compared / watched.full
        part = self.allowance.per_period / SLOTS / 4
        rows = int(part / max(self.fraction * each, 1e-9)) if each else UNKNOWN_CHUNK
        watched.shedder.chunk = max(1, min(most, rows))
        watched.shedder.chunk_ns = int(part) if self.settings.by_time and not each else 0

    # -- looking ---------------------------------------------------------------------------------

    def fraction_of(self, number: int) -> float:
        """Of the work of one starting stream."""
        share = next((one.share for one in self.watched if one.start == number), None)
        return 1.0 if share is None else self.sample + (1 - self.sample) * share.fraction
