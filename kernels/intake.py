"""What joins of live streams have in common: windows, clocks, keys, rows made ready for a step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from windjoin.kernels.keys import new_space
from windjoin.kernels.order import Order
from windjoin.kernels.outer import Outer
from windjoin.kernels.renewal import Renewal
from windjoin.kernels.scores import Scores
from windjoin.kernels.side import Codes
from windjoin.kernels.spec import I64, ArrayColumn, Bools, JoinSpec, Rows, SetColumn
from windjoin.kernels.stored import Exporter
from windjoin.kernels.varlen import VarlenRows, live_varlen_rows
from windjoin.kernels.window import LONG_AGO, Window
from windjoin.pyx.base.output import release
from windjoin.pyx.encoding.keys import KeySpace
from windjoin.pyx.live.silence import Silence
from windjoin.pyx.live.store import Counts, Store, Watermark
from windjoin.pyx.probing.pipeline import Pipeline

MAINTAIN_EVERY = 1024  # rows, or promises
COMPACT_AT = 1024  # keys; below, nothing is worth sweeping
# seconds after which each stream is silent, and what tells the seconds
Silencing = tuple[Sequence[float], Callable[[], float]]


@dataclass(slots=True)
class LateSplit:
    """What the clock of a stream says of rows before they are taken."""

    newest: int  # time of the stream after them
    ordered: bool  # times never decrease
    late: Bools | None  # mask over the rows
    watermark: int  # that the first late row met

    def but_late(self, rows: Bools | None) -> Bools | None:
        """Those of some rows (None: of all) that are not late; None: all rows."""
        if self.late is None:
            return rows
        return ~self.late if rows is None else rows & ~self.late


class Intake(ABC):
    """State of all streams of a live join; a subclass says what is done with their rows.

    Results are given as one array of arrival numbers for each stream, and behind them one array for
    each of ``spec.scores``: when a result leaves, its rows may be forgotten.
    """

    outer: Outer | None = None  # where rows come out that are in no result
    replanned = 0  # how often orders or indexes have been chosen anew

    @property
    @abstractmethod
    def results(self) -> int:
        """Results so far."""

    def __init__(self, spec: JoinSpec, lateness: int = 0, silence: Silencing | None = None) -> None:
        self.spec = spec
        numbered = {s for pair in spec.distinct for s in pair}
        self.windows = [Window(stream, s in numbered) for s, stream in enumerate(spec.streams)]
        self.clocks = [Watermark(lateness) for _ in spec.streams]
        self.silence = None if silence is None else Silence(self.clocks, *silence)
        self.counts = [Counts() for _ in spec.streams]
        self._stores: list[Store] = []
        self._spaces: dict[int, KeySpace] = {}
        for stream in spec.streams:
            for kind, space in zip(stream.keys, stream.spaces, strict=True):
                self._spaces.setdefault(space, new_space(kind))
            for wide in stream.varlen:
                if wide.space >= 0:
                    self._spaces.setdefault(wide.space, new_space(wide.items))
        self._compact_at = COMPACT_AT
        self._renewal = self._new_renewal()
        self._to_give_back = False
        self.on_maintain: Callable[[], None] | None = None
        self._since_maintained, self._patience = 0, MAINTAIN_EVERY
        self._scores = Scores.of_sides(spec, self.windows)
        self.joiners: list[Any] = []  # a `StoreStep` for each stream, if compiled code takes rows

    def listen(self, outer: Outer) -> None:
        """Let somebody look at results before their rows are forgotten; before any is found."""
        self.outer = outer

    def reached(self, streams: Sequence[int]) -> int:
        """No result to come has a row of all of these and is older than this."""
        return min((self.clocks[s].watermark for s in streams), default=2**63 - 1)

    @abstractmethod
    def push(self, stream: int, rows: Rows, late_split: LateSplit) -> list[Any]:
        """Join newly arrived rows with all that is here, then keep them.

        Per stream, arrival numbers of the members of every result that is complete now.
        """

    @abstractmethod
    def advance(self, stream: int, time: int) -> None:
        """Nothing of a stream before ``time`` will come any more."""

    @abstractmethod
    def catch_up(self) -> list[Any]:
        """Results that a promise has made complete."""

    @abstractmethod
    def flush(self) -> list[Any]:
        """All results that are still to come, now that no row will."""

    @abstractmethod
    def first_needed(self, stream: int) -> int:
        """The first row of a stream that results to come may have."""

    @abstractmethod
    def done_by(self, stream: int) -> tuple[int, int]:
        """Results that rows of a stream completed, and candidates looked at for that."""

    @property
    def comparisons(self) -> int:
        """Candidates that were looked at, of all streams together."""
        return sum(self.done_by(stream)[1] for stream in range(len(self.windows)))

    def plans(self) -> list[tuple[Order, Pipeline]]:
        """For rows of each stream, in which order they probe the others, if that is settled."""
        return []

    def structures(self, order: Order) -> list[set[str]]:
        """What the indexes of an order are, one per step; of hosts each has its own."""
        return [set() for _ in order.steps]

    def in_blocks(self, stream: int) -> bool:
        """Whether many rows of a stream take each step together."""
        return False

    def report(self) -> dict[str, Any] | None:
        """What hosts did, where there are several."""
        return None

    def hosts(self) -> list[dict[str, Any]] | None:
        """What each host did and holds, where there are several."""
        return None

    def resized(self) -> None:
        """The specs of the windows were changed."""
        self._renewal = self._new_renewal()

    @abstractmethod
    def begin(self) -> None:
        """Start what runs beside the caller."""

    @abstractmethod
    def close(self) -> None:
        """End what runs beside the caller."""

    @property
    def nbytes(self) -> int:
        """Bytes allocated for windows, indexes and keys."""
        return sum(window.nbytes for window in self.windows) + sum(
            space.nbytes for space in self._spaces.values()
        )

    @property
    def close_spaces(self) -> set[int]:
        """The key spaces whose codes are found in an array, as their keys lie close together."""
        return {number for number, space in self._spaces.items() if space.close_together}

    def new_stores(self) -> list[Store]:
        """The compiled sides of all windows with the indexes that they have now."""
        return [
            Store(window, counts, self._spaces)
            for window, counts in zip(self.windows, self.counts, strict=True)
        ]

    def split_late(self, stream: int, time: I64, bad: Bools | None = None) -> LateSplit:
        """Which of some rows would be late; nothing is taken yet.

        bad: rows that have no time; they get an arrival number and nothing else.
        """
        return LateSplit(
            *self.clocks[stream].split_late(time, None if bad is None else bad.view(np.uint8))
        )

    def usable(self, stream: int, rows: Rows, late_split: LateSplit) -> Bools | None:
        """Rows that can be part of a result, None: all; the others are counted."""
        counts, usable = self.counts[stream], late_split.but_late(rows.usable)
        if late_split.late is not None:
            counts.late += int(late_split.late.sum())
        if usable is not None:
            counts.unusable += len(usable) - int(usable.sum())
        return usable

    def store(
        self, stream: int, rows: Rows, usable: Bools | None, arrivals: I64 | None = None
    ) -> tuple[I64, I64]:
        """Keep rows in the window, as arrivals of these numbers if they have others than there.

        Their times, which reach nothing where rows are not usable, and their numbers there.
        """
        window = self.windows[stream]
        codes, varlen_rows = self.encode(stream, rows, usable)
        numbers = np.arange(window.tail, window.tail + len(rows))
        time = rows.time if usable is None else np.where(usable, rows.time, LONG_AGO)
        columns: list[Any] = [np.ascontiguousarray(column) for column in rows.columns]
        known = numbers if arrivals is None else arrivals
        time = np.ascontiguousarray(time)
        self._stores[stream].append(time, columns, codes, varlen_rows, known)
        return time, numbers

    def encode(
        self, stream: int, rows: Rows, usable: Bools | None
    ) -> tuple[list[Codes], list[tuple[I64, Codes, VarlenRows]]]:
        """Codes of all keys, and (starts, lengths, content) of all wide columns."""
        spec = self.spec.streams[stream]
        codes = [
            self._spaces[space].encode(key, usable)
            for key, space in zip(rows.keys, spec.spaces, strict=True)
        ]
        return codes, self.encode_varlen(stream, rows.varlen, usable)

    def counts_all(self, stream: int) -> bool:
        """Whether rows count for others that can be in no result."""
        return False

    def encode_varlen(
        self, stream: int, columns: Sequence[SetColumn | ArrayColumn], usable: Bools | None
    ) -> list[tuple[I64, Codes, VarlenRows]]:
        """(starts, lengths, content) of all wide columns."""
        spec = self.spec.streams[stream]
        varlen_rows = live_varlen_rows(spec.varlen, columns, self._spaces, usable)
        return [(one.start, one.length, one) for one in varlen_rows]

    def begin_at(self, stream: int, row: int) -> None:
        """The first row of a stream will have this arrival number; before any has come."""
        extent = self.windows[stream].extent
        extent.head = extent.tail = row

    def keys_known(self) -> dict[int, tuple[int, int | None]]:
        """How many keys each space has and where those that lie close together begin, if they do:
        what `reserve_keys` takes of another."""
        return {number: (one.used, one.close_from) for number, one in self._spaces.items()}

    def reserve_keys(self, known: Mapping[int, tuple[int, int | None]]) -> None:
        """Room for keys that are about to come; before any has."""
        for number, (keys, close_from) in known.items():
            self._spaces[number].reserve(keys, close_from)

    def exporter(self, stream: int, keys: dict[int, I64] | None = None) -> Exporter:
        """What gives rows of a stream by arrival number; see there for ``keys``."""
        return Exporter(self.windows[stream], self._spaces, keys)

    @abstractmethod
    def load(self, stream: int, rows: Rows, arrivals: I64 | None = None) -> None:
        """Keep rows that have been joined with all that is here, in any order of time.

        arrivals: their arrival numbers, where these are not their numbers in the window
        """

    @abstractmethod
    def loaded(self, given_before: int) -> list[Any]:
        """All rows have been loaded, and the clocks have been set; results that are complete now.

        given_before: results of an earlier time have left already, where these wait for others
        """

    @property
    def joined_before(self) -> int | None:
        """The time before which all rows were joined; None: rows are as soon as they come."""
        return None

    def retain(self, rows: Sequence[I64]) -> None:
        """Keep only some rows of every stream, by number: they become the last ones there are."""
        raise NotImplementedError

    def forget(self, rows: Sequence[I64]) -> bool:
        """The same as `retain` where rows go with all others of their keys: those that stay keep
        their numbers, and what has gone matches nothing.  False: not done, as indexes cannot."""
        return False

    def clear(self) -> bool:
        """The same as `retain` of no rows where what is held keeps its room, as many will come.
        False: not done, as indexes cannot."""
        return False

    @property
    def given_before(self) -> int:
        """What another is to be told by `loaded` that goes on from here."""
        return LONG_AGO

    @abstractmethod
    def resume(self, results: int, done: list[tuple[int, int]]) -> None:
        """Go on counting where another left off; ``done``: by stream, as `done_by` has it."""

    @property
    def pairs(self) -> list[Any]:
        """Columns of the pairs that wait for better partners, if any can."""
        return []

    def resume_pairs(self, columns: list[Any]) -> None:
        """Let pairs wait that waited elsewhere."""
        assert not columns, "no pairs can wait here"

    def _none(self) -> list[I64]:
        """Arrival numbers of no result."""
        return [np.empty(0, np.int64) for _ in self.windows]

    def _scored(self, found: list[I64]) -> list[Any]:
        """Results with their scores; their rows are still here."""
        return [*found, *self._scores.of(found)] if self._scores else found

    def _maintain_sometimes(self, rows: int) -> None:
        """Take care now and then: ``rows`` came, or half as many went."""
        self._since_maintained += rows
        if self._since_maintained >= self._patience:
            self._maintain()

    def _maintain(self) -> int:
        """What is not done with every row; after how many rows to do it again, 0: as ever."""
        self.keep_small()
        sooner = self._renew_if_due()
        self._since_maintained, self._patience = 0, sooner or MAINTAIN_EVERY
        if self.on_maintain is not None:
            self.on_maintain()
        return sooner

    def _renew_if_due(self) -> int:
        """Begin anew if rows have become few; after how many rows to look again, 0: as ever."""
        if self._to_give_back:  # what the last beginning left is free by now
            release()
            self._to_give_back = False
        rows = sum(map(len, self.windows))
        come = sum(counts.rows_in for counts in self.counts)
        if self._renewal.due(rows, come, [clock.watermark for clock in self.clocks]):
            self._renew()
            self._compact_at = max(COMPACT_AT, 2 * self._keys_held())
            self._to_give_back = True
            return 1
        return self._renewal.patience(rows)

    def _new_renewal(self) -> Renewal:
        """One that has seen no rows: those that were here have left on purpose."""
        return Renewal(max(stream.window for stream in self.spec.streams))

    def begin_anew(self) -> None:
        """Give back what was for more rows than there are."""
        self._renew()

    @abstractmethod
    def _renew(self) -> None:
        """New indexes, codes and blocks for the rows that there are."""

    def _renumber(self, classes: Mapping[int, int]) -> None:
        """Give out the first codes again, where no index has rows by the old ones.

        classes: of spaces whose codes keep their remainder by that
        """
        codes = {
            number: self._spaces[number].renumber(live, classes.get(number, 1))
            for number, live in self._codes_alive().items()
        }
        for window in self.windows:
            window.renumber(codes)
            window.settle()

    def keep_small(self) -> None:
        """Give back room of rings, and sweep keys when they have doubled."""
        for window in self.windows:
            window.shrink()
        if self._keys_held() > self._compact_at:
            self._sweep()
            self._compact_at = max(COMPACT_AT, 2 * self._keys_held())

    def _keys_held(self) -> int:
        held = sum(space.used for space in self._spaces.values())
        for window in self.windows:
            held += sum(index.n_keys for index in window.indexes.values())
        return held

    def _sweep(self) -> None:
        for window in self.windows:
            window.compact()
        for number, live in self._codes_alive().items():
            self._spaces[number].compact(live)

    def _codes_alive(self) -> dict[int, NDArray[np.uint8]]:
        """One byte for each code of each space: whether rows of the windows have it."""
        live = {number: np.zeros(space.n_codes, np.uint8) for number, space in self._spaces.items()}
        for window in self.windows:
            for key, space in enumerate(window.spec.spaces):
                codes = window.codes_alive(key)
                live[space][codes[codes >= 0]] = 1
            for number, wide in enumerate(window.spec.varlen):
                if wide.space >= 0:
                    window.mark_items(number, live[wide.space])
        return live
