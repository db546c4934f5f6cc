"""Keeps a session within its memory: what goes to disk when, and what comes of it later."""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from windjoin.errors import StateError
from windjoin.kernels.live import LiveJoin
from windjoin.kernels.pairwise import common_key
from windjoin.kernels.spec import I64, JoinSpec
from windjoin.kernels.window import LONG_AGO
from windjoin.kinds import INT64_MAX
from windjoin.memory import Memory
from windjoin.progress import Report
from windjoin.pyx.base.output import release
from windjoin.state.choosing import Choice, Counted, chosen_groups, oldest
from windjoin.state.cleaning import Cleaning, Owed, Stretch, within
from windjoin.state.generations import (
    RESIDENT,
    Generation,
    Slice,
    read_generation,
    write_generation,
)
from windjoin.state.numbering import Numbering
from windjoin.state.spill_folder import SpillFolder
from windjoin.state.unit import Unit, UnitWriter, is_full
from windjoin.watermarks import length_ticks

if TYPE_CHECKING:
    from windjoin.session import Session

LOAD_SHARE = 8  # of the limit, at most, for rows that are cleaned up at a time
ROW_BYTES = 64  # that a row takes while it is cleaned up, and more for its columns
ROUNDS = 3  # of spilling, until the rest fits
CHECK_EVERY = 1024  # rows, less often than which nobody looks how much memory is taken
EASY_ROWS = 8192  # of a push; more are joined in stretches
EASY = 1 << 13  # bytes of the limit for each of them
PACE = 8  # rows that are cleaned up for each row that comes
FEWER = 0.75  # of the rows there were, so that it pays to give room back
COLD_SHARE = 16  # of the limit: less payload in memory is not worth a file
WAIT = 64  # pushes until spilling is tried again on a disk that was full


@dataclass(slots=True)
class Spilled:
    """What was done, for metrics."""

    spills: int = 0
    rows: int = 0
    cleaned: int = 0  # results
    seconds: float = 0.0  # of clean-up
    failures: int = 0
    by_stream: list[int] = field(default_factory=list)


class Keeper:
    """The memory of one session; not before its schemas are known."""

    def __init__(self, session: Session, asked: Memory, on_full: str) -> None:
        assert session._live is not None
        assert session._bound is not None
        live = session._live
        self._session, self._live, self._asked, self._on_full = session, live, asked, on_full
        self.spec: JoinSpec = live.spec
        self.limit: int = asked.limit
        self._key = common_key(live.spec)
        self.keeps_keys = session.query.nearest is not None or not isinstance(live, LiveJoin)
        self._idle: int | None = None
        if asked.idle is not None:
            bound = session._bound
            self._idle = length_ticks("idle", bound.clock, asked.idle, bound.integer_times)
        self.numbering = [Numbering() for _ in live.windows]
        self.epoch = 0
        self.clean_until = LONG_AGO  # results of an earlier time are not owed any more
        self.cleaned_epoch = -1  # nor those of rows that all came up to then
        self.generations: list[Generation] = []
        self._folder: SpillFolder | None = None
        self._jobs: deque[Cleaning] = deque()
        self._until: deque[tuple[int, int]] = deque()  # what is clean after each of them
        self._credit = 0
        self.most_rows: int | None = None  # that fit, once that is known
        self._wait = 0
        self._trouble: StateError | None = None
        self._counted = Counted(asked.groups)
        self._random = np.random.default_rng(0)
        self.done = Spilled()
        self._keys: dict[int, I64] = {}  # by space and code, while no code changes
        self._by_code: I64 | None = None  # groups
        self.token = uuid.uuid4().hex[:12]  # in names of files that are this session's
        self._often: int = min(max(self.limit // EASY, 1), CHECK_EVERY)  # rows
        self._bytes: int = 0
        self._since = self._rows_seen = self._look_at = 0
        self._mapped = self.limit // COLD_SHARE
        self._rows_then = 2**62  # rows when room was last given back
        if on_full == "spill":
            self._folder = SpillFolder(asked.spill)

    # -- numbers of rows -----------------------------------------------------------------------

    def arrivals(self, stream: int, rows: I64) -> I64:
        """Arrival numbers of rows, by their numbers in the window."""
        return self.numbering[stream].arrivals(rows)

    def results(self, found: list[Any]) -> list[Any]:
        """Results by arrival numbers; scores stay."""
        if self.epoch:
            count = len(self.spec.streams)
            rows = [self.arrivals(k, members) for k, members in enumerate(found[:count])]
            found = [*rows, *found[count:]]
        return found

    def first_needed(self, stream: int, head: int) -> int:
        """The first row whose columns somebody may ask for."""
        first = [g.first[stream] for g in self.generations]
        rows = [row for row in first if row is not None]
        return min([self.numbering[stream].first(head), *rows])

    # -- before rows come ----------------------------------------------------------------------

    def check(self) -> None:
        """Before anything of a push is taken: tell of a disk that was full, once."""
        if self._trouble is not None:
            trouble, self._trouble = self._trouble, None
            raise trouble
        spills = self._folder is not None and not self.keeps_keys
        if spills or self._bytes <= self.limit:
            return
        if self._look() > self.limit and self._look_anew() > self.limit:
            raise StateError(
                f"this session holds {self._bytes:,} bytes, and its limit is {self.limit:,}:"
                " nothing of the push was taken; advance the streams so that rows can go, or give"
                ' more memory=, or on_full="spill" where keys can be spilled'
            )

    def look(self) -> None:
        """Now and then: rows may come the fast path as long as there is room."""
        come = sum(counts.rows_in for counts in self._live.counts)
        if come < self._look_at:
            return
        if 2 * self._look() > self.limit:
            self.close_entrances()
        self._look_at = come + self._soon()

    def _look_anew(self) -> int:
        """The same with no more room than the rows that are left need."""
        rows = sum(map(len, self._live.windows))
        if rows < FEWER * self._rows_then:
            self._live.begin_anew()
            release()
        self._rows_then = rows
        return self._look()

    def _look(self) -> int:
        self._bytes, self._since = self._session.state_bytes, 0
        self._rows_seen = sum(map(len, self._live.windows))
        return self._bytes

    def is_easy(self, coming: int) -> bool:
        """Whether some rows may come as if there were no bound: nothing is on disk, or near it."""
        if self.epoch or coming > EASY_ROWS or self._since + coming >= self._soon():
            return False
        self._since += coming
        return True

    def _soon(self) -> int:
        """Rows until somebody should look again."""
        if 2 * self._bytes > self.limit or not self._bytes:
            return int(self._often)
        each = self._bytes // max(self._rows_seen, 1) + 1
        return int(max(self._often, (self.limit - self._bytes) // (4 * each)))

    def make_room(self, coming: int) -> None:
        """Let rows go to disk until what is left fits, and some that are about to come."""
        self._since += coming
        if self._since < self._often:
            return
        self._look()
        if self._folder is None:
            return
        self._wait = max(self._wait - 1, 0)
        self._chill(self._folder)
        if self.keeps_keys:
            return
        for _ in range(ROUNDS):
            rows = sum(map(len, self._live.windows))
            over = self.most_rows is not None and rows > self.most_rows
            if self._wait or not rows or (not over and self._look() <= self.limit):
                return
            if self.most_rows is None or not over:
                self.most_rows = max(int(0.95 * rows), 1)
            self._spill(rows)

    def _chill(self, folder: SpillFolder) -> None:
        """Cold payload first: that delays no result."""
        payloads = self._session._payloads
        if sum(p.bytes_on_disk for p in payloads) > self._mapped:
            for payload in payloads:
                payload.cool()
        hot = sum(payload.nbytes for payload in payloads)
        if self._wait or self._bytes <= self.limit or hot < self.limit // COLD_SHARE:
            return
        try:
            for payload in payloads:
                payload.chill(folder.file)
        except OSError as error:
            self._fail(_reason(error))
        self._look()

    def _spill(self, rows: int) -> None:
        self._look_up_anew()
        choice = self._choose(rows)
        if not any(len(going) for going in choice.going):
            return
        generation = self._written(choice)
        if generation is None:
            return
        if not self.generations and not self._jobs:  # nothing was owed until now
            self.clean_until = self._least_mark()
        for numbering, window, kept in zip(
            self.numbering, self._live.windows, choice.kept, strict=True
        ):
            numbering.next_epoch(window.tail)
            numbering.keep(kept, window.tail)
        assert isinstance(self._live, LiveJoin)
        self._live.retain(choice.kept)
        self.epoch += 1
        self.generations.append(generation)
        self.hold()
        for window in self._live.windows:  # rows before it may come, of no use but to those on disk
            window.extent.horizon = min(window.extent.horizon, window.extent.hold)
        self.close_entrances()
        self._look_up_anew()
        release()
        self.done.spills += 1
        self.done.rows += generation.rows

    def _choose(self, rows: int) -> Choice:
        alive = []
        for window in self._live.windows:
            numbers = np.arange(window.head, window.tail)
            times = window.times(numbers)
            there = (times != LONG_AGO) & (times >= window.extent.horizon)
            alive.append((numbers[there], times[there]))
        if self._key is None:
            return oldest(alive, self._asked, self._random)
        groups = [self.groups_of(k, numbers) for k, (numbers, _) in enumerate(alive)]
        rows_of_results, each = self._counted.taken(self._live.windows[0].head)
        self._counted.add(self.groups_of(0, rows_of_results), each)
        return chosen_groups(alive, groups, self._asked, self._idle, self._counted, self._random)

    def groups_of(self, stream: int, rows: I64) -> I64:
        """Partition groups of rows, by their numbers in the window."""
        if self._key is None:
            return np.zeros(len(rows), np.int64)
        exporter, key = self._live.exporter(stream, self._keys), self._key[stream]
        if self._by_code is None:
            hashes = exporter.hashes(key).view(np.uint64)
            mixed = (hashes ^ (hashes >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
            groups = (mixed >> np.uint64(33)) % np.uint64(self._asked.groups)
            self._by_code = groups.astype(np.int64)
        found: I64 = self._by_code[exporter.codes(key, rows)]
        return found

    def _look_up_anew(self) -> None:
        """Codes of keys may have changed."""
        self._keys, self._by_code = {}, None

    # -- files ---------------------------------------------------------------------------------

    def _written(self, choice: Choice) -> Generation | None:
        """Rows on disk; None if there is no room for them there."""
        assert self._folder is not None
        used = sum(generation.unit.nbytes for generation in self.generations)
        if self._asked.disk_limit is not None and used >= self._asked.disk_limit:
            self._fail(f"its files have reached disk_limit={self._asked.disk_limit:,} bytes")
            return None
        return self._write(choice.going, self.epoch)

    def _write(self, going: list[I64], left: int) -> Generation | None:
        assert self._folder is not None
        chosen = [
            (rows, self.arrivals(k, rows), self.groups_of(k, rows)) for k, rows in enumerate(going)
        ]
        exporters = [self._live.exporter(k, self._keys) for k in range(len(going))]
        path = self._folder.file()
        try:
            writer = UnitWriter(path, "generation", {"left": left})
        except OSError as error:
            path.unlink(missing_ok=True)
            self._fail(_reason(error))
            return None
        try:
            write_generation(writer, self.spec.streams, exporters, chosen)
            writer.close()
        except OSError as error:
            writer.abandon()
            self._fail(_reason(error))
            return None
        except BaseException:
            writer.abandon()
            raise
        return read_generation(Unit.map(path, verify=False), left, self.spec.streams)

    def _fail(self, why: str) -> None:
        self._wait = WAIT
        self.done.failures += 1
        self._trouble = StateError(
            f"nothing can be spilled to {str(self._folder and self._folder.path)!r}: {why}; the"
            " session goes on in memory, beyond its limit. Nothing of this push was taken: push it"
            " again"
        )

    # -- clean-up ------------------------------------------------------------------------------

    def _least_mark(self) -> int:
        return min(clock.watermark for clock in self._live.clocks)

    def hold(self) -> None:
        """Rows that owed results may have stay, in memory or on disk."""
        for window, spec in zip(self._live.windows, self.spec.streams, strict=True):
            hold = INT64_MAX
            if self.generations or self._jobs:
                hold = max(self.clean_until - spec.window, LONG_AGO)
            window.extent.hold = hold

    def _drop_generations(self) -> None:
        """Files go whose rows can be part of no result any more."""
        if self._jobs:
            return
        over = self.clean_until == INT64_MAX  # all streams have ended
        kept = [g for g in self.generations if g.reach >= self.clean_until and not over]
        for generation in self.generations:
            if generation not in kept:
                self._unlink(generation)
        self.generations = kept
        self.hold()
        for number, window in enumerate(self._live.windows):
            self.numbering[number].expire(self.first_needed(number, window.head))

    def _unlink(self, generation: Generation) -> None:
        name = generation.unit.path
        if name is not None:
            name.unlink(missing_ok=True)

    def _begin(self, high: int, after: int) -> None:
        """Begin a clean-up of results before ``high``; INT64_MAX: of all that rows owe by now."""
        low = self.clean_until
        self._look_up_anew()
        resident = self._resident(low, high)
        self._look_up_anew()
        everything = [*self.generations, *([] if resident is None else [resident])]
        parts = []
        for number, spec in enumerate(self.spec.streams):
            whole = [Slice(block, 0, len(block)) for g in everything for block in g.blocks[number]]
            parts.append(within(whole, max(low - spec.window, LONG_AGO), high))
        for generation in everything:
            generation.unit.verify()
        stretch = Stretch(low, high, self.cleaned_epoch)
        self._jobs.append(Cleaning(self._spec_with, parts, self._epoch_of, stretch, self._budget()))
        until = low if high == INT64_MAX and after >= 0 else high
        self._until.append((until, max(after, self.cleaned_epoch)))
        if resident is not None:
            self._unlink(resident)  # it stays where it is mapped

    def _resident(self, low: int, high: int) -> Generation | None:
        """Rows that are in memory, on disk for the time being."""
        spilled: set[int] = set()
        for generation in self.generations:
            spilled |= generation.groups
        going = []
        for number, window in enumerate(self._live.windows):
            rows = np.arange(window.head, window.tail)
            times = window.times(rows)
            earliest = max(low - self.spec.streams[number].window, LONG_AGO + 1)
            there = (times >= max(earliest, window.extent.horizon)) & (times <= high)
            rows = rows[there]
            if self._key is not None:
                wanted = np.zeros(self._asked.groups, np.bool_)
                wanted[list(spilled)] = True
                rows = rows[wanted[self.groups_of(number, rows)]]
            going.append(rows)
        if not any(map(len, going)):
            return None
        written = self._write(going, RESIDENT)
        return self._in_memory(going) if written is None else written

    def _in_memory(self, going: list[I64]) -> Generation:
        """The same where the disk has no room."""
        chosen = [
            (rows, self.arrivals(k, rows), self.groups_of(k, rows)) for k, rows in enumerate(going)
        ]
        exporters = [self._live.exporter(k, self._keys) for k in range(len(going))]
        writer = UnitWriter(None, "generation", {"left": RESIDENT})
        write_generation(writer, self.spec.streams, exporters, chosen)
        return read_generation(Unit.of(writer.close()), RESIDENT, self.spec.streams)

    def _epoch_of(self, stream: int, arrivals: I64) -> I64:
        return self.numbering[stream].epochs(arrivals)

    def _spec_with(self, arrivals: Any) -> JoinSpec:
        session = self._session
        assert session._bound is not None
        payloads = session._payloads
        return session._bound.spec_with(
            lambda stream, names, rows: payloads[stream].take(names, arrivals(stream, rows))
        )

    def _budget(self) -> int:
        widths = max(
            ROW_BYTES + 16 * (len(s.columns) + len(s.keys) + 8 * len(s.varlen))
            for s in self.spec.streams
        )
        return int(self.limit // LOAD_SHARE // widths)

    def after_push(self, rows: int) -> Iterator[list[Any]]:
        """Owed results that are to leave now, as much work as the rows that came are worth."""
        if not self.generations and not self._jobs:
            return
        mark, longest = self._least_mark(), max(s.window for s in self.spec.streams)
        behind = mark - self.clean_until
        if not self._jobs and mark > LONG_AGO and (behind > longest or mark == INT64_MAX):
            self._begin(mark, -1)
        self._credit += PACE * max(rows, 1)
        while self._jobs and (self._credit > 0 or behind > 3 * longest):
            yield from self._step()
        if not self._jobs:
            self._credit = 0

    def _step(self) -> Iterator[list[Any]]:
        """One load of the first clean-up."""
        began = time.perf_counter()
        owed: Owed | None = next(self._jobs[0], None)
        self.done.seconds += time.perf_counter() - began
        if owed is None:
            self._jobs.popleft()
            self.clean_until, self.cleaned_epoch = self._until.popleft()
            self._drop_generations()
            return
        self._credit -= owed.rows
        if len(owed.found[0]):
            self.done.cleaned += len(owed.found[0])
            yield owed.found

    def clean_up(self, report: Report | None = None) -> Iterator[list[Any]]:
        """All results that are owed now."""
        while self._jobs:
            yield from self._step()
        if not self.generations:
            return
        epoch = self.epoch
        for numbering, window in zip(self.numbering, self._live.windows, strict=True):
            numbering.next_epoch(window.tail)
        self.epoch += 1
        self._begin(INT64_MAX, epoch)
        while self._jobs:
            job = self._jobs[0]
            yield from self._step()
            if report is not None:
                report(min(job.joined, job.rows), job.rows)

    def close(self) -> None:
        """Let go of all files."""
        self._jobs.clear()
        self.generations = []
        if self._folder is not None:
            self._folder.close()

    # -- looking -------------------------------------------------------------------------------

    def count(self, found: list[Any]) -> None:
        """Note which rows have results, once that may matter soon."""
        if self._key is None or self._folder is None or not len(found[0]):
            return
        if self.epoch or 2 * self._bytes > self.limit:
            self._counted.note(found[0])

    @property
    def has_spilled(self) -> bool:
        """Whether rows have left memory that others may still meet."""
        return bool(self.generations or self._jobs)

    def close_entrances(self) -> None:
        """Rows come the general path from now on: the fast one gives numbers in the windows."""
        self._session._stream_inputs.clear()

    def head(self, stream: int) -> int:
        """The number of the first row of a window."""
        return self._live.windows[stream].head

    def new_file(self) -> Path:
        """A name for one more file."""
        assert self._folder is not None
        return self._folder.file()

    def finish_jobs(self) -> Iterator[list[Any]]:
        """The rest of what clean-ups under way give."""
        while self._jobs:
            yield from self._step()

    def numbers(self, stream: int, arrivals: I64) -> I64:
        """Numbers in the window of rows; of those that are not there one before its head."""
        window = self._live.windows[stream]
        return self.numbering[stream].numbers(arrivals, window.head)

    def metrics(self) -> dict[str, Any]:
        """Bytes in memory and on disk, and what was done."""
        files = self.generations
        resident = sum(map(len, self._live.windows))
        spilled = sum(generation.rows for generation in files)
        share = spilled / max(resident + spilled, 1)
        owed = self._live.results * share / max(1 - share, 0.01) if files else 0.0
        return {
            "limit": self.limit,
            "bytes_in_memory": self._look(),
            "bytes_on_disk": sum(g.unit.nbytes for g in files)
            + sum(p.bytes_on_disk for p in self._session._payloads),
            "generations": len(files),
            "rows_on_disk": spilled,
            "spills": self.done.spills,
            "spill_failures": self.done.failures,
            "results_owed": round(max(owed - self.done.cleaned, 0.0)),
            "results_cleaned_up": self.done.cleaned,
            "clean_up_seconds": self.done.seconds,
        }


def _reason(error: OSError) -> str:
    return "the disk is full" if is_full(error) else str(error)
