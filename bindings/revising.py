"""What a join on hosts makes of rows it has seen: another strategy, other orders or windows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windjoin.diffusion.load import Host
from windjoin.diffusion.reroute import reroute
from windjoin.kernels.order import best_order
from windjoin.kernels.pairwise import pair_shares
from windjoin.kernels.replanning import FIRST_LOOK, LEAST_ROWS, better_orders, next_look, seen
from windjoin.kernels.spec import JoinSpec, StreamSpec
from windjoin.kernels.statistics import Statistics
from windjoin.strategies import Hosts, Routing, routing

if TYPE_CHECKING:
    from windjoin.clustered import ClusterJoin


@dataclass(slots=True)
class OperatorPlan:
    """What the operators of hosts are made for; hosts that join later get the present one."""

    spec: JoinSpec
    statistics: Statistics


class Reviser:
    """Looks at what the windows hold, ever more rarely, and lets the cluster go another way."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._look_at = FIRST_LOOK
        self.revised = 0

    def check(self, join: ClusterJoin) -> None:
        """Take what was measured into account, if it is time to."""
        rows = sum(counts.rows_in for counts in join.counts)
        if rows < self._look_at:
            return
        self._look_at = next_look(rows)
        statistics = seen(join.spec, join.windows)
        if min(statistics.rows) < LEAST_ROWS or not self._hosts.tuning.adapt:
            return
        plan = join.plan
        starts = range(len(join.spec.streams))
        used = [best_order(plan.spec, plan.statistics, start) for start in starts]
        found = self._routing(join, plan.spec, statistics)
        other = found.router.name != join.routing.router.name
        if other or better_orders(plan.spec, statistics, used) is not None:
            self._take(join, found, OperatorPlan(plan.spec, statistics))
            self.revised += 1
        else:
            join.routing.router.learn(pair_shares(plan.spec, statistics))

    def resize(self, join: ClusterJoin, stream: int, window: int) -> None:
        """A window has another length from the border on that was reached."""
        spec = resized(join.spec, stream, window)
        join.spec = spec
        for side, one in zip(join.windows, spec.streams, strict=True):
            side.spec = one
        join.resized()
        plan = OperatorPlan(resized(join.plan.spec, stream, window), join.plan.statistics)
        self._take(join, self._routing(join, plan.spec, plan.statistics), plan)

    def _routing(self, join: ClusterJoin, spec: JoinSpec, statistics: Statistics) -> Routing:
        book = join.routing.router.book
        present = [Host(n, cpu=book.require(n).cpu) for n in book.open_hosts]
        fastest = max(host.cpu for host in present)
        even = [replace(host, cpu=host.cpu / fastest) for host in present]
        return routing(spec, statistics, replace(self._hosts, count=len(even)), present=even)

    def _take(self, join: ClusterJoin, found: Routing, plan: OperatorPlan) -> None:
        join.plan.spec, join.plan.statistics = plan.spec, plan.statistics
        join.routing = found
        reroute(join.cluster, found.router, found.clock)


def resized(spec: JoinSpec, stream: int, window: int) -> JoinSpec:
    """The same with a window of another length."""
    streams: list[StreamSpec] = list(spec.streams)
    streams[stream] = replace(streams[stream], window=window)
    return replace(spec, streams=tuple(streams))
