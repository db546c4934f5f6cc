"""What rows on disk still owe: when it is joined, how much at a time, and when files go."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from windjoin.kernels.intake import Intake
from windjoin.kernels.spec import JoinSpec
from windjoin.kernels.window import LONG_AGO
from windjoin.kinds import INT64_MAX
from windjoin.progress import ProgressFunction
from windjoin.state.cleaning import Cleaning, Fetching, Owed, TimeRange, within
from windjoin.state.generation_files import GenerationFiles, unlink
from windjoin.state.generations import Generation, Slice
from windjoin.state.residence import Residence

LOAD_SHARE = 8  # of the limit, at most, for rows that are cleaned up at a time
ROW_BYTES = 64  # that a row takes while it is cleaned up, and more for its columns
PACE = 8  # rows that are cleaned up for each row that comes


class Owing:
    """The generations of one session, and its clean-ups under way, the oldest first."""

    def __init__(
        self,
        live: Intake,
        residence: Residence,
        files: GenerationFiles,
        limit: int,
        spec_with: Fetching,
    ) -> None:
        self._live, self._residence, self._files = live, residence, files
        self._limit, self._spec_with = limit, spec_with
        self.spec: JoinSpec = live.spec
        self.generations: list[Generation] = []
        self.first = [INT64_MAX] * len(live.windows)  # by stream, the least arrival number
        self.clean_until = LONG_AGO  # results of an earlier time are not owed any more
        self.cleaned_epoch = -1  # nor those of rows that all came up to then
        self._jobs: deque[Cleaning] = deque()
        self._until: deque[tuple[int, int]] = deque()  # what is clean after each of them
        self._credit = 0
        self._read = 0  # bytes of files since they were last given back
        self.cleaned = 0  # results
        self.seconds = 0.0
        self.on_settled: Callable[[], None] = lambda: None  # a clean-up has ended
        self.on_cool: Callable[[], None] = lambda: None  # files that were read for results, too

    def __bool__(self) -> bool:
        return bool(self.generations or self._jobs)

    @property
    def nbytes(self) -> int:
        """Bytes of the files."""
        return sum(generation.unit.nbytes for generation in self.generations)

    @property
    def rows(self) -> int:
        """Rows in them."""
        return sum(generation.rows for generation in self.generations)

    def add(self, generation: Generation) -> None:
        """Rows have left memory."""
        if not self:  # nothing was owed until now
            self.clean_until = self._residence.mark
        generation.unit.cool()
        self.generations.append(generation)
        self.hold()

    def hold(self) -> None:
        """Rows that owed results may have stay, in memory or on disk."""
        for number in range(len(self.first)):
            rows = [generation.first[number] for generation in self.generations]
            self.first[number] = min((row for row in rows if row is not None), default=INT64_MAX)
        for number, (window, spec) in enumerate(
            zip(self._live.windows, self.spec.streams, strict=True)
        ):
            hold = INT64_MAX
            if self:
                hold = max(self.clean_until - spec.window, LONG_AGO)
            window.extent.hold, window.extent.owed = hold, self.first[number]

    def _drop(self) -> None:
        """Files go whose rows can be part of no result any more."""
        if not self._jobs:
            over = self.clean_until == INT64_MAX  # all streams have ended
            kept = [g for g in self.generations if g.needed_until >= self.clean_until and not over]
            for generation in self.generations:
                if generation not in kept:
                    unlink(generation)
            self.generations = kept
            self.hold()
            longest = max(spec.window for spec in self.spec.streams)
            self._residence.expire(self.clean_until - longest)
        self.on_settled()

    # -- one clean-up ----------------------------------------------------------------------------

    def _begin(self, high: int, after: int) -> None:
        """Begin a clean-up of results before ``high``; INT64_MAX: of all that rows owe by now."""
        low = self.clean_until
        self._residence.recount()
        resident = self._resident(low, high)
        self._residence.recount()
        everything = [*self.generations, *([] if resident is None else [resident])]
        parts = []
        for number, spec in enumerate(self.spec.streams):
            whole = [Slice(block, 0, len(block)) for g in everything for block in g.blocks[number]]
            parts.append(within(whole, max(low - spec.window, LONG_AGO), high))
        for generation in everything:
            generation.unit.verify()
            generation.unit.cool()
        stretch = TimeRange(low, high, self.cleaned_epoch)
        self._jobs.append(
            Cleaning(self._spec_with, parts, self._residence.epochs, stretch, self._budget())
        )
        until = low if high == INT64_MAX and after >= 0 else high
        self._until.append((until, max(after, self.cleaned_epoch)))
        if resident is not None:
            unlink(resident)  # it stays where it is mapped

    def _resident(self, low: int, high: int) -> Generation | None:
        """Rows that are in memory, on disk for the time being."""
        residence = self._residence
        wanted = np.zeros(residence.group_count, np.bool_)
        for generation in self.generations:
            wanted[list(generation.groups)] = True
        going = []
        for number, window in enumerate(self._live.windows):
            rows = np.arange(window.head, window.tail)
            times = window.times(rows)
            earliest = max(low - self.spec.streams[number].window, LONG_AGO + 1)
            there = (times >= max(earliest, window.extent.horizon)) & (times <= high)
            rows = rows[there & residence.joined(times)]
            if residence.key is not None:
                rows = rows[wanted[residence.groups_of(number, rows)]]
            going.append(rows)
        return self._files.for_now(going) if any(map(len, going)) else None

    def _budget(self) -> int:
        widths = max(
            ROW_BYTES + 16 * (len(s.columns) + len(s.keys) + 8 * len(s.varlen))
            for s in self.spec.streams
        )
        return int(self._limit // LOAD_SHARE // widths)

    def _step(self) -> Iterator[list[Any]]:
        """One load of the first clean-up."""
        began = time.perf_counter()
        owed: Owed | None = next(self._jobs[0], None)
        self._read += 0 if owed is None else owed.rows * ROW_BYTES
        if owed is None or self._read > self._limit:  # to map again what is near takes time
            self._read = 0
            for generation in self.generations:
                generation.unit.cool()
            self.on_cool()
        self.seconds += time.perf_counter() - began
        if owed is None:
            self._jobs.popleft()
            self.clean_until, self.cleaned_epoch = self._until.popleft()
            self._drop()
            return
        self._credit -= owed.rows
        if len(owed.found[0]):
            self.cleaned += len(owed.found[0])
            yield owed.found

    # -- when ------------------------------------------------------------------------------------

    @property
    def due(self) -> bool:
        """Whether pushes have something to clean up."""
        if not self:
            return False
        mark, longest = self._residence.mark, max(s.window for s in self.spec.streams)
        behind = mark - self.clean_until > longest or mark == INT64_MAX
        return bool(self._jobs) or (mark > LONG_AGO and behind)

    @property
    def due_after(self) -> int:
        """Once all streams have passed this time, pushes have something to clean up."""
        if not self:
            return INT64_MAX
        return min(self.clean_until + max(s.window for s in self.spec.streams), INT64_MAX)

    def after_push(self, rows: int) -> Iterator[list[Any]]:
        """Owed results that are to leave now, as much work as the rows that came are worth."""
        if not self:
            return
        mark, longest = self._residence.mark, max(s.window for s in self.spec.streams)
        behind = mark - self.clean_until
        if self.due and not self._jobs:
            self._begin(mark, -1)
        self._credit += PACE * max(rows, 1)
        while self._jobs and (self._credit > 0 or behind > 3 * longest):
            yield from self._step()
        if not self._jobs:
            self._credit = 0

    def rest(self) -> Iterator[list[Any]]:
        """What clean-ups under way still give."""
        while self._jobs:
            yield from self._step()

    def all(self, report: ProgressFunction | None = None) -> Iterator[list[Any]]:
        """All results that are owed now."""
        yield from self.rest()
        if not self.generations:
            return
        epoch = self._residence.epoch
        self._residence.next_epoch()
        self._begin(INT64_MAX, epoch)
        while self._jobs:
            job = self._jobs[0]
            yield from self._step()
            if report is not None:  # loads that owe nothing are not joined
                report(min(job.joined, job.rows) if self._jobs else job.rows, job.rows)

    def close(self) -> None:
        """Nothing is owed any more."""
        self._jobs.clear()
        self.generations = []
        self.hold()
