"""Partition groups on hosts of one process: what each holds and yields, what moves and spills."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from windjoin.clustered import ClusterJoin
from windjoin.diffusion.balance import F64, Balance, HostState, Relocate
from windjoin.diffusion.groups import Groups
from windjoin.kernels.spec import I64
from windjoin.memory import Memory
from windjoin.state.generations import Generation

if TYPE_CHECKING:
    from windjoin.state.keeper import Keeper

LOOKS = 9  # at what hosts hold, in the time between two adaptations
STALE = 8  # rows are counted anew when so small a part of them has come
LEAST_SHARE = 0.01  # of a window, that a projection goes by


class GroupHosts:
    """Hosts that have partition groups, each with an equal part of the memory.

    A spilled group stays where it is: its rows in memory do not move while others lie on disk.
    """

    def __init__(
        self, keeper: Keeper, join: ClusterJoin, asked: Memory, clock: Callable[[], float]
    ) -> None:
        self._keeper, self._join, self._clock = keeper, join, clock
        join.key_groups = keeper.residence
        self.balance = Balance(
            asked.adaptation,
            began=clock(),
            theta_d=asked.theta_d,
            theta_r=asked.theta_r,
            span=asked.span_seconds,
            share=asked.share,
        )
        self._next_look = clock()
        self._sizes: I64 = np.zeros(asked.groups, np.int64)  # rows in memory, by group
        self._by_stream: list[int] = []
        self._counted_at: int | None = None  # rows that had come then
        self._results: dict[int, int] = {}  # by host, when last looked at
        self.rates: dict[int, float] = {}
        self._first: list[int | None] = [None] * len(join.windows)  # times
        self.spills: dict[int, int] = {}
        self.forced = 0

    # -- what is where ---------------------------------------------------------------------------

    @property
    def groups(self) -> bool:
        """Whether rows go by groups: a session may have been told to take another strategy."""
        return isinstance(self._join.routing.router, Groups)

    @property
    def _open(self) -> list[int]:
        return self._join.open_hosts

    def owned(self, host: int) -> NDArray[np.bool_]:
        """Which groups a host has."""
        router = self._join.routing.router
        assert isinstance(router, Groups)
        mine: NDArray[np.bool_] = router.table() == host
        return mine

    @property
    def on_disk(self) -> NDArray[np.bool_]:
        """Which groups have rows on disk."""
        found = np.zeros(len(self._sizes), np.bool_)
        for generation in self._keeper.owing.generations:
            found[list(generation.groups)] = True
        return found

    def _count(self) -> None:
        """Rows by group, if they may have become others."""
        come = sum(counts.rows_in for counts in self._join.counts)
        known = self._counted_at
        if known is not None and STALE * (come - known) < int(self._sizes.sum()):
            return
        self.count_anew()
        self._counted_at = come

    def count_anew(self) -> None:
        """Rows in memory by group."""
        residence = self._keeper.residence
        self._sizes[:] = 0
        self._by_stream = []
        for stream, (rows, times) in enumerate(residence.alive()):
            groups = residence.groups_of(stream, rows)
            self._sizes += np.bincount(groups, minlength=len(self._sizes))
            self._by_stream.append(len(rows))
            if self._first[stream] is None and len(times):
                self._first[stream] = int(times.min())
        self._counted_at = None

    def rows_of(self, host: int) -> int:
        """Rows that a host has in memory."""
        self._count()
        return int(self._sizes[self.owned(host)].sum())

    def bytes_of(self, host: int, nbytes: int) -> float:
        """What a host holds, of so many bytes in all: what its rows take.

        By rows, as indexes and pages grow by leaps that say nothing of one host.
        """
        return self.rows_of(host) * nbytes / max(int(self._sizes.sum()), 1)

    def part_used(self, host: int, nbytes: int, limit: int) -> float:
        """What a host holds over its part of the memory."""
        return self.bytes_of(host, nbytes) * max(len(self._open), 1) / limit

    def full(self, nbytes: int, limit: int) -> list[int | None]:
        """Hosts that are to spill, each by itself; None: rows of all."""
        if not self.groups:
            return [None]
        if nbytes * len(self._open) <= limit:
            return []  # none can have more than its part
        return list(self._open)

    # -- what is done about it -------------------------------------------------------------------

    def adapt(self) -> None:
        """Let groups move, or a host spill, if it is time and they should."""
        now = self._clock()
        if now < self._next_look or not self.groups or self.balance.adaptation == "none":
            return
        self._next_look = now + self.balance.span / LOOKS
        keeper = self._keeper
        self.count_anew()
        nbytes = keeper.recount_now()
        hosts = {
            host: HostState(self.bytes_of(host, nbytes), rate)
            for host, rate in self._rates().items()
        }
        beyond = self.projected(nbytes) - keeper.limit
        decision = self.balance.decide(hosts, now=now, beyond=beyond)
        if isinstance(decision, Relocate):
            self._relocate(decision, nbytes)
        elif decision is not None:
            share = decision.nbytes / max(hosts[decision.host].nbytes, 1.0)
            self.forced += keeper.spill(decision.host, min(share, 1.0))

    def _rates(self) -> dict[int, float]:
        """Results per group since the last look, by host."""
        workers, found = self._join.cluster.workers, {}
        for host in self._open:
            done = workers[host].tally.results
            groups = max(int(self.owned(host).sum()), 1)
            found[host] = max(done - self._results.get(host, 0), 0) / groups
            self._results[host] = done
        self.rates = found
        return found

    def _relocate(self, decision: Relocate, nbytes: int) -> None:
        self._keeper.note_results()
        may = self.owned(decision.source) & ~self.on_disk
        each = nbytes / max(int(self._sizes.sum()), 1)
        sizes: F64 = np.where(may, self._sizes * each, 0.0)
        results = self._keeper.counted.results.copy()
        self._join.relocate(decision.source, decision.target, decision.nbytes, sizes, results)

    def projected(self, nbytes: int) -> float:
        """Bytes of the query once windows are full (M_query), by how full they are."""
        keeper = self._keeper
        each = nbytes / max(int(self._sizes.sum()), 1)
        total = each * keeper.owing.rows
        for stream, (first, rows) in enumerate(zip(self._first, self._by_stream, strict=True)):
            window = max(self._join.windows[stream].spec.window, 1)
            newest = self._join.clocks[stream].newest
            passed = 1.0 if first is None else (newest - first) / window
            total += each * rows / min(max(passed, LEAST_SHARE), 1.0)
        return total

    def spilled(self, host: int | None, generation: Generation) -> None:
        """Rows have gone to disk."""
        self.count_anew()
        if host is not None:
            self.spills[host] = self.spills.get(host, 0) + 1

    def explained(self) -> str:
        """When groups move."""
        balance = self.balance
        done = self._join.cluster.relocated
        if balance.adaptation == "none":
            return "groups stay"
        text = (
            f"groups move when the least memory is below {balance.theta_d:g} of the most, every"
            f" {balance.span:g} s at most"
        )
        if balance.adaptation == "active":
            text += f", and hosts spill whose results differ by more than {balance.theta_r:g} times"
        return f"{text}: {done.count} relocations so far, of {done.groups} groups"

    # -- looking ---------------------------------------------------------------------------------

    def metrics(self) -> dict[str, Any]:
        """Bytes, rates and groups of hosts; rows and results of groups."""
        done = self._join.cluster.relocated
        found: dict[str, Any] = {
            "adaptation": self.balance.adaptation,
            "relocations": done.count,
            "relocated_groups": done.groups,
            "relocated_rows": done.rows,
            "relocation_seconds": done.seconds,
            "longest_pause": done.longest,
            "forced_spills": self.forced,
        }
        if not self.groups:
            return found
        self._keeper.residence.recount()
        self.count_anew()
        self._keeper.note_results()
        nbytes, on_disk = self._keeper.recount_now(), self.on_disk
        owner = self._join.routing.router.table()  # type: ignore[attr-defined]
        results = self._keeper.counted.results
        rows_on_disk = np.zeros(len(self._sizes), np.int64)
        for generation in self._keeper.owing.generations:
            for block in (block for of_stream in generation.blocks for block in of_stream):
                rows_on_disk += np.bincount(block.group, minlength=len(rows_on_disk))
        found["hosts"] = {
            host: {
                "bytes": round(self.bytes_of(host, nbytes)),
                "rows": self.rows_of(host),
                "rate": self.rates.get(host, 0.0),
                "groups": int((owner == host).sum()),
                "groups_on_disk": int((on_disk & (owner == host)).sum()),
                "spills": self.spills.get(host, 0),
            }
            for host in self._open
        }
        found["groups"] = [
            {
                "group": int(group),
                "host": int(owner[group]),
                "rows": int(self._sizes[group]),
                "results": float(results[group]),
                "on_disk": bool(on_disk[group]),
                "rows_on_disk": int(rows_on_disk[group]),
            }
            for group in np.flatnonzero((self._sizes > 0) | on_disk)
        ]
        return found
