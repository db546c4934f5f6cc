"""Results that rows of an epoch complete: those with at least one member among them.

With streams in a fixed order, each result is found once, from its first member that is new: members
of streams before that one are of earlier epochs, members of streams after it of any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from windjoin.arrow.blocks import Block, BlockCounts, Found
from windjoin.arrow.local_join import JoinContext
from windjoin.arrow.plan import Limits
from windjoin.kernels.batch import Run
from windjoin.kernels.sorting import Sorted, in_time_order

FIRST = 1 << 16  # new rows that are joined at once, as long as it is not known what they yield
GROWTH = 8


@dataclass
class _Side:
    """A stream's rows, prepared when they are first needed."""

    joined: JoinContext
    number: int
    table: pa.Table
    known: list[Sorted] = field(default_factory=list)

    @property
    def ordered(self) -> Sorted:
        if not self.known:
            self.known.append(in_time_order(self.joined.prepare(self.number, self.table).rows))
        return self.known[0]


def completed(
    joined: JoinContext, old: Sequence[pa.Table], new: Sequence[pa.Table], limits: Limits,
    counts: BlockCounts,
) -> Iterator[Found]:  # fmt: skip
    """Results of the new rows of all streams, with each other and with old ones."""
    earlier = [_Side(joined, n, table) for n, table in enumerate(old)]
    fresh = [_Side(joined, n, table) for n, table in enumerate(new)]
    every = [
        one if not b.num_rows else two if not a.num_rows else _Side(joined, n, _joined(a, b))
        for n, (one, two, a, b) in enumerate(zip(earlier, fresh, old, new, strict=True))
    ]
    slice_ = FIRST
    for stream in range(len(new)):
        sides = [*earlier[:stream], fresh[stream], *every[stream + 1 :]]
        if not all(side.table.num_rows for side in sides):
            continue
        ordered = [side.ordered for side in sides]
        block = Block(joined, [side.table for side in sides], ordered, stream)
        first, last = 0, len(ordered[stream].time)
        before: Run | None = None  # whose plan serves for the next rows
        while first < last:
            end = min(last, first + slice_)
            found, run = block.join(first, end, counts, before)
            before = run if run is not None and run.as_expected else None
            results = len(found.rows[0])
            counts.results += results
            wanted = (end - first) * limits.results // max(1, results)
            slice_ = max(1, min(wanted, GROWTH * slice_))
            first = end
            if results:
                yield found


def _joined(one: pa.Table, other: pa.Table) -> pa.Table:
    return pa.concat_tables([one, other])
