"""Partition groups in the simulator: of a segment every host gets the rows of its groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from windjoin.diffusion.arrays import I64
from windjoin.diffusion.groups import Groups
from windjoin.diffusion.holdings import Holdings
from windjoin.diffusion.router import Move, Placement, Route, Router
from windjoin.diffusion.scenario import Scenario
from windjoin.diffusion.simulator_core import F64


class GroupFlows:
    """Which share of the rows every host has, and by chance which batch comes to which."""

    def __init__(self, scenario: Scenario, router: Groups, holdings: Holdings) -> None:
        self.router = router
        self.holdings = holdings
        self.of_group = group_shares(scenario.hot_key or 0.0, len(router.owner))
        self._random = np.random.default_rng([scenario.seed, len(scenario.streams)])

    def settle(self, border: int) -> None:
        """Before a border: every host holds its share of what the windows reach."""
        shares = np.bincount(
            self.router.table(), weights=self.of_group, minlength=self.holdings.hosts
        )
        self.holdings.share = shares.astype(np.float64)
        for stream, window in enumerate(self.holdings.windows):
            held = [(int(h), border - window - 1, border) for h in np.flatnonzero(shares)]
            self.holdings.hold(stream, held)

    def apart(self, route: Route) -> list[Route]:
        """A route for each host of the route, with its part alone."""
        (hop,) = route.path.hops
        return [
            Route(
                route.segment,
                Placement((part,)),
                route.path._replace(hops=(hop._replace(hosts=(part.host,), parts=(part,)),)),
            )
            for part in hop.parts
        ]

    def pick(self, hosts: Sequence[int], batches: int) -> I64:
        """By chance, the position among ``hosts`` of the one that each batch goes to."""
        shares = self.holdings.share[list(hosts)]
        return self._random.choice(len(hosts), batches, p=shares / shares.sum()).astype(np.int64)

    def rows_of(self, move: Move) -> float:
        """How many rows a move of groups concerns."""
        rows = self.holdings.rows_in(move.stream, move.start, move.stop)
        return rows * float(self.of_group[list(move.groups)].sum())


def group_flows(scenario: Scenario, router: Router, holdings: Holdings) -> GroupFlows | None:
    """Those of a router of groups; None for any other."""
    return GroupFlows(scenario, router, holdings) if isinstance(router, Groups) else None


def group_shares(hot_key: float, groups: int) -> F64:
    """Share of the rows in each group: one has the most frequent key, the others are even.

    >>> group_shares(0.5, 4).tolist()
    [0.625, 0.125, 0.125, 0.125]
    """
    shares = np.full(groups, (1.0 - hot_key) / groups)
    shares[0] += hot_key
    return shares
