"""What a session that sheds has seen of the rows of one starting stream."""

from __future__ import annotations

from windjoin.kernels.shedding.allotment import Share
from windjoin.kernels.shedding.learned import Direction
from windjoin.kernels.shedding.recall import Sums
from windjoin.pyx.live.shedder import Shedder

KEPT = 0.7  # weight of what a row took in the slots before


class Watched:
    """What was seen of one stream's rows when they were looked at last."""

    def __init__(self, start: int, shedder: Shedder, direction: Direction, alone: float) -> None:
        """``alone``: what a row on its own takes, whatever it asks; inf: it tells nothing."""
        self.start, self.shedder, self.direction = start, shedder, direction
        self.rows = self.compared = self.probing = self.timed = self.skipped = self.full_ns = 0
        self.spread = direction.hops[0].spread
        self.alone = alone
        self.alone_ns = 0.0  # of a row that is joined fully on its own, but for its candidates
        self.full, self.full_compared = 0.0, 0.0  # lately
        self.row_ns = 0.0  # of joining a row, where all is joined
        self.share: Share | None = None

    def weigh_windows(self, sums: Sums) -> None:
        """How much of what asking takes goes by how many windows are asked.

        An index may look at many rows to give few, and plans can be far off.  What a row that is
        joined on its own takes beyond what is said of its candidates is that, unless it is little.
        """
        taken, self.full_ns = self.shedder.full_ns - self.full_ns, self.shedder.full_ns
        hop = self.direction.hops[0]
        if sums.full:
            each = max(taken - hop.candidate * sums.compared, 1.0) / sums.full
            old = self.alone_ns or each
            # other programs make some seem long
            self.alone_ns = KEPT * old + (1 - KEPT) * min(each, 2 * old)
            hop.spread = max(self.spread, self.alone_ns - self.alone)
