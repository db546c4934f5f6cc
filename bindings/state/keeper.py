"""Keeps a session within its memory: when rows leave it, and which."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from errno import EDQUOT
from typing import TYPE_CHECKING, Any

import numpy as np
from windjoin.clustered import ClusterJoin
from windjoin.errors import SheddingWarning, StateError, warn
from windjoin.kernels.spec import I64, JoinSpec
from windjoin.memory import Memory
from windjoin.progress import ProgressFunction
from windjoin.pyx.base.output import release
from windjoin.pyx.live.store import Allowance
from windjoin.row_windows import counts_rows
from windjoin.state.choosing import Alive, Counted, Masks, Policy, chosen_groups, oldest
from windjoin.state.generation_files import GenerationFiles, reason_of
from windjoin.state.group_hosts import GroupHosts
from windjoin.state.keeper_report import counted, explained
from windjoin.state.owing import Owing
from windjoin.state.residence import Residence
from windjoin.watermarks import length_ticks

if TYPE_CHECKING:
    from windjoin.session_state import SessionState

ROUNDS = 3  # of spilling, until the rest fits
CHECK_EVERY = 1024  # rows, less often than which nobody looks how much memory is taken
EASY = 1 << 13  # bytes of the limit for each of them
PART_UNSEEN = 32  # of the limit: rows that take no more than that come before somebody looks
MOST_UNSEEN = 8  # times as many as CHECK_EVERY, as rows that come may be wider than those that did
FEWER = 0.75  # of the rows there were, so that it pays to give room back
RAISED = 1.1  # times the rows that fit, as more may if less is held than the limit
PATIENCE = 8  # spills until that is tried again after it was too much
USELESS = 64  # rows since others left, or more, for each result: none in memory need stay,
SPARSE = 1  # nor where so many came, unless some groups have most of the results,
EVIDENCE = 1024  # if as many came
COLD_SHARE = 64  # of the limit: less payload in memory is not worth a file
READ_SHARE = 16  # of the limit: what is mapped of files may take so much


@dataclass(slots=True)
class Spilled:
    """What was done, for metrics."""

    spills: int = 0
    rows: int = 0
    shed: int = 0  # rows that were dropped


class Keeper:
    """The memory of one session; not before its schemas are known."""

    def __init__(
        self, session: SessionState, asked: Memory, on_full: str, allowance: Allowance | None
    ) -> None:
        """``allowance``: of rows that may come in before somebody asks `allows`."""
        assert session._live is not None
        assert session._bound is not None
        live = session._live
        self._session, self._live, self.asked = session, live, asked
        self.spec: JoinSpec = live.spec
        self.limit: int = asked.limit
        self.keeps_keys = session.query.nearest is not None or counts_rows(session.query)
        self.sheds = on_full == "shed"
        bound = session._bound
        idle = asked.idle
        self._idle = (
            None if idle is None else length_ticks("idle", bound.clock, idle, bound.integer_times)
        )
        self.residence = Residence(live, asked.groups)
        self.files = GenerationFiles(live, self.residence, asked, on_full == "spill")
        self.owing = Owing(live, self.residence, self.files, self.limit, self._spec_with)
        self.owing.on_settled = self._settled
        self.owing.on_cool = self._cool
        self.counted = Counted(asked.groups)
        self._random = np.random.default_rng(0)
        self.done = Spilled()
        self.token = uuid.uuid4().hex[:12]  # in names of files that are this session's
        self.hosts: GroupHosts | None = None
        if isinstance(live, ClusterJoin) and self.residence.key is not None:
            self.hosts = GroupHosts(self, live, asked, session._options.clock)
        self.most_rows: dict[int | None, int] = {}  # that fit, by host, once that is known
        self._learned_at: dict[int | None, int] = {}  # spills that there had been then
        self._least_often: int = min(max(self.limit // EASY, 1), CHECK_EVERY)  # rows
        self._often: int = self._least_often
        self._bytes: int = 0
        self._since = self._rows_seen = 0
        self._allowance = allowance if allowance is not None else Allowance()
        self._allowance.rows = 0
        self._allowance.follow(live.clocks)
        self._mapped = self.limit // READ_SHARE
        self._rows_then = 2**62  # rows when room was last given back
        self._results_then = 0  # results when rows last left
        self._cleared = False  # whether all rows left then, as they had next to no results

    def _spec_with(self, arrivals: Any) -> JoinSpec:
        session = self._session
        assert session._bound is not None
        payloads = session._payloads
        return session._bound.spec_with(
            lambda stream, names, rows: payloads[stream].take(names, arrivals(stream, rows))
        )

    # -- numbers of rows -----------------------------------------------------------------------

    def arrivals(self, stream: int, rows: I64) -> I64:
        """Arrival numbers of rows, by their numbers in the window."""
        return self.residence.arrivals(stream, rows)

    def results(self, found: list[Any]) -> list[Any]:
        """Results by arrival numbers; scores stay."""
        if self.residence.epoch:
            count = len(self.spec.streams)
            rows = [self.arrivals(k, members) for k, members in enumerate(found[:count])]
            found = [*rows, *found[count:]]
        return found

    def first_needed(self, stream: int, head: int) -> int:
        """The first row whose columns somebody may ask for."""
        first = self.residence.numbering[stream].first(head)
        return min(first, self.owing.first[stream])

    def _settled(self) -> None:
        for number, window in enumerate(self._live.windows):
            first = self.first_needed(number, window.head)
            self.residence.numbering[number].expire(first)

    # -- before rows come ----------------------------------------------------------------------

    def check(self) -> None:
        """Before anything of a push is taken: tell of a disk that was full, once."""
        self.files.tell()
        spills = (self.files.folder is not None or self.sheds) and not self.keeps_keys
        if not spills and 2 * self._bytes > self.limit and self._since >= self._often:
            self._measure()
        if spills or self._bytes <= self.limit:
            return
        if self._measure() > self.limit and self._recount() > self.limit:
            raise StateError(
                f"this session holds {self._bytes:,} bytes, and its limit is {self.limit:,}:"
                " nothing of the push was taken; advance the streams so that rows can go, or give"
                ' more memory=, or on_full="spill" where keys can be spilled'
            )

    def _recount(self) -> int:
        """The same with no more room than the rows that are left need."""
        rows = self.residence.rows
        if rows < FEWER * self._rows_then:
            self._live.begin_anew()
            release()
        self._rows_then = rows
        return self._measure()

    def recount_now(self) -> int:
        """Bytes in memory; that somebody asks does not put off the next look."""
        since = self._since
        found = self._measure()
        self._since = since
        return found

    def _measure(self) -> int:
        self._bytes, self._since = self._session.state_bytes, 0
        self._rows_seen = self.residence.rows
        if self._rows_seen:
            fit = self.limit // PART_UNSEEN * self._rows_seen // max(self._bytes, 1)
            self._often = max(self._least_often, min(fit, MOST_UNSEEN * CHECK_EVERY))
        return self._bytes

    def allows(self, coming: int) -> bool:
        """Whether some rows may come as if there were no bound.

        The limit is far and nothing is on disk, or all rows have left and nothing is to be given.
        """
        if self.hosts is not None or not (self._cleared if self.residence.epoch else self._far()):
            return False
        if coming > self._allowance.rows or self._allowance.over:
            self._measure()
            self._allowance.rows = self._soon(coming)
            self._allowance.until = self.owing.due_after
            self._since = 0 if self._allowance.rows else self._often  # it may be too much
        if coming <= self._allowance.rows:
            return True
        self._allowance.rows = 0  # these rows are not taken off it
        return False

    def _far(self) -> bool:
        """Whether the limit is far."""
        return 2 * self._bytes <= self.limit

    def came(self, rows: int) -> None:
        """So many came though nobody has counted them."""
        self._allowance.rows = max(self._allowance.rows - rows, 0)

    def _soon(self, coming: int) -> int:
        """Rows until somebody should look again; 0: that is to be done with every push.

        coming: now, together; their columns are kept before anybody looks, whatever this says
        """
        if self.residence.epoch:
            if self.owing.due or not self.residence.plain or self._bytes > self.limit:
                return 0
            fit = max(self.most_rows.get(None, 0) - self.residence.rows, 0) // 2
            return min(fit, self.limit // READ_SHARE // self._payload_width())
        if not self._far():
            return 0
        if not self._rows_seen:
            return coming if 4 * EASY * coming <= self.limit else int(self._often)
        each = self._bytes // max(self._rows_seen, 1) + 1
        spare = self.limit - 2 * self._bytes  # also when all that is held doubles at once
        return int(max(self._often, spare // (4 * each)))

    def _payload_width(self) -> int:
        """Bytes of columns of a row, at least one."""
        payloads, windows = self._session._payloads, self._live.windows
        held = sum(payload.nbytes + payload.bytes_on_disk for payload in payloads)
        rows = sum(w.tail - self.first_needed(k, w.head) for k, w in enumerate(windows))
        return held // max(rows, 1) + 1

    def make_room(self, coming: int) -> None:
        """Let rows go to disk until what is left fits, and some that are about to come."""
        self.residence.recount()
        if self.hosts is not None and not self.keeps_keys:
            self.hosts.adapt()
        self._since += coming
        if self._since < self._often:
            return
        self._measure()
        self._since = coming
        if self.files.folder is not None:
            self.files.wait = max(self.files.wait - 1, 0)
            self._chill()
        elif not self.sheds:
            return
        if self.keeps_keys:
            return
        for _ in range(ROUNDS):
            relieved = [self._relieve(host) for host in self._full()]
            if not any(relieved):
                return

    def _full(self) -> list[int | None]:
        """Hosts that are to spill, each by itself; None: rows of all."""
        if self.hosts is None or self.sheds:
            return [None]
        return self.hosts.full(self._bytes, self.limit)

    def _relieve(self, host: int | None) -> bool:
        """Let rows of a host go if they do not fit, None: of all; whether any went."""
        rows = self.rows_of(host)
        most = self.most_rows.get(host)
        over = most is not None and rows > most
        if self.files.wait or not rows:
            return False
        part = self._part_used(host)
        if over and part <= 1 and self.done.spills >= self._learned_at.get(host, 0) + PATIENCE:
            # indexes grow by leaps, so a limit that was learned at one is not the last word
            self.most_rows[host] = int(RAISED * rows) + 1
            return False
        if part <= 1 and not over:
            return False
        if not over:
            self.most_rows[host] = max(int(0.95 * rows), 1)
        if part > 1:
            self._learned_at[host] = self.done.spills
        return self._shed() if self.sheds else self.spill(host, self.asked.share)

    def rows_of(self, host: int | None) -> int:
        """Rows in memory, of a host or all."""
        if host is None or self.hosts is None:
            return self.residence.rows
        return self.hosts.rows_of(host)

    def _part_used(self, host: int | None) -> float:
        """Of the memory that a host may take."""
        if host is None or self.hosts is None:
            return self._bytes / self.limit
        return self.hosts.part_used(host, self._bytes, self.limit)

    def _chill(self) -> None:
        """Cold payload first: that delays no result."""
        payloads = self._session._payloads
        if sum(p.mapped_bytes for p in payloads) > self._mapped:
            self._cool()
        hot = sum(payload.nbytes for payload in payloads)
        if self.files.wait or hot < self.limit // COLD_SHARE:
            return
        if self._bytes <= self.limit and not self.owing:  # room is for rows with their keys first
            return
        room = self.files.room(self.bytes_on_disk)
        try:
            for payload in payloads:
                payload.chill(self.files.new_file, None if room is None else room // len(payloads))
        except OSError as error:
            self.files.fail(self.files.full if error.errno == EDQUOT else reason_of(error))
        self._measure()

    def spill(self, host: int | None, share: float) -> bool:
        """Let a share of the rows of a host go, None: of all; whether any went."""
        residence = self.residence
        residence.recount()
        useless = self.hosts is None and self._useless()
        going, kept = self._choose(host, 1.0 if useless else share)
        if not any(map(len, going)):
            return False
        generation = self.files.spilled(going, residence.epoch, self.bytes_on_disk)
        if generation is None:
            return False
        self.owing.add(generation)
        residence.next_epoch()
        moved = residence.keep(kept, in_place=self._bytes <= self.limit)
        for window in self._live.windows:  # rows before it may come, of no use but to those on disk
            window.extent.horizon = min(window.extent.horizon, window.extent.hold)
        self._allowance.rows = 0
        if moved:
            release()
        self._measure()
        self._results_then, self._cleared = self._live.results, not any(map(len, kept))
        self.done.spills += 1
        self.done.rows += generation.rows
        if self.hosts is not None:
            self.hosts.spilled(host, generation)
        return True

    def _useless(self) -> bool:
        """Whether rows of groups that came since the last time had next to no results, or few and
        no groups more than others.
        """
        found, came = self._live.results - self._results_then, self.residence.came
        if self.residence.key is None or came < max(EVIDENCE, SPARSE * found):
            return False
        return came >= USELESS * found or not self.counted.concentrated(
            lambda noted: self.residence.groups_of(0, noted), self.head(0)
        )

    def _shed(self) -> bool:
        """Drop the oldest rows; whether there were any."""
        self.residence.recount()
        going, kept = self._choose(None, self.asked.share)
        rows = sum(map(len, going))
        if not rows:
            return False
        if not self.done.shed:
            warn(
                f"this session holds more than its limit of {self.limit:,} bytes, and"
                ' on_full="shed": the oldest rows are dropped, and results that they would have'
                " been part of are missing; metrics count them as rows_shed. This is said once",
                SheddingWarning,
            )
        self.residence.epoch += 1  # rows have other numbers
        self.residence.keep(kept, in_place=False)
        self._allowance.rows = 0
        release()
        self._measure()
        self.done.shed += rows
        return True

    def _choose(self, host: int | None, share: float) -> tuple[list[I64], list[I64]]:
        """Numbers of rows of every stream that go, and of those that stay."""
        alive, residence = self.residence.alive(), self.residence
        if self._live.joined_before is None:
            goes = self._going(alive, host, share)
            kept = [rows[~mask] for (rows, _), mask in zip(alive, goes, strict=True)]
            return [rows[mask] for (rows, _), mask in zip(alive, goes, strict=True)], kept
        joined = [residence.joined(times) for _, times in alive]
        some = [(rows[of], times[of]) for (rows, times), of in zip(alive, joined, strict=True)]
        goes = self._going(some, host, share)
        kept = []
        for (rows, _), of, mask in zip(alive, joined, goes, strict=True):
            stays = np.ones(len(rows), np.bool_)
            stays[np.flatnonzero(of)[mask]] = False
            kept.append(rows[stays])
        return [rows[mask] for (rows, _), mask in zip(some, goes, strict=True)], kept

    def _going(self, some: Alive, host: int | None, share: float) -> Masks:
        """Which of some rows go."""
        residence = self.residence
        if share >= 1 and host is None:
            self.note_results()
            return [np.ones(len(rows), np.bool_) for rows, _ in some]
        policy = Policy("oldest" if self.sheds else self.asked.choose, share, self._idle)
        if residence.key is None or self.sheds:
            return oldest(some, policy, self._random)
        groups = [residence.groups_of(k, rows) for k, (rows, _) in enumerate(some)]
        self.note_results()
        if self.hosts is not None and host is not None:
            policy = replace(policy, may=self.hosts.owned(host))
        return chosen_groups(some, groups, policy, self.counted, self._random)

    def note_results(self) -> None:
        """Results since the last time, by group."""
        rows, each = self.counted.taken(self._live.windows[0].head)
        self.counted.add(self.residence.groups_of(0, rows), each)

    # -- results that are owed -------------------------------------------------------------------

    def after_push(self, rows: int) -> Iterator[list[Any]]:
        """Owed results that are to leave now."""
        self.residence.recount()
        self._allowance.rows = 0  # a clean-up that begins here may be left
        return self.owing.after_push(rows)

    def clean_up(self, report: ProgressFunction | None = None) -> Iterator[list[Any]]:
        """All results that are owed now."""
        self._allowance.rows = 0  # if it is left, pushes go on with it
        return self.owing.all(report)

    def went_on(self) -> None:
        """Rows came and results were found elsewhere: what is learned begins anew."""
        self._results_then = self._live.results
        self.residence.went_on()

    def finish_jobs(self) -> Iterator[list[Any]]:
        """The rest of what clean-ups under way give."""
        self._allowance.rows = 0  # somebody has to give it out with the next push
        return self.owing.rest()

    @property
    def bytes_on_disk(self) -> int:
        """Of all files together."""
        return self.owing.nbytes + sum(p.bytes_on_disk for p in self._session._payloads)

    def _cool(self) -> None:
        """What was read of payload for results need not stay in memory."""
        for payload in self._session._payloads:
            payload.cool()

    def close(self) -> None:
        """Let go of all files."""
        self.owing.close()
        self.files.close()

    # -- looking ---------------------------------------------------------------------------------

    def count(self, found: list[Any]) -> None:
        """Note which rows have results, once that may matter soon."""
        if self.residence.key is None or self.files.folder is None or not len(found[0]):
            return
        if self.residence.epoch or self.hosts is not None or 2 * self._bytes > self.limit:
            self.counted.note(found[0])

    def head(self, stream: int) -> int:
        """The number of the first row of a window."""
        return self._live.windows[stream].head

    def explained(self) -> dict[str, Any]:
        """What becomes of rows that do not fit, and what did: plain data."""
        return explained(self)

    def metrics(self) -> dict[str, Any]:
        """Bytes in memory and on disk, and what was done."""
        found = counted(self, self._live.results, self._session._payloads)
        return found if self.hosts is None else found | self.hosts.metrics()
