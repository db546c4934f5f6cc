"""Results that rows of an epoch complete: those with at least one member among them.

With streams in a fixed order, each result is found once, from its first member that is new: members
of streams before that one are of earlier epochs, members of streams after it of any.

Earlier rows come in parts.  A result has each of its members in one part, so each choice of a part
for every stream is joined by itself, and rows of one such choice are in memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

import pyarrow as pa
from windjoin.arrow.blocks import Block, BlockCounts, Found
from windjoin.arrow.local_join import JoinContext
from windjoin.arrow.plan import Limits
from windjoin.epochs.window import Part
from windjoin.kernels.batch import JoinRun
from windjoin.kernels.sorting import Sorted, in_time_order

FIRST = 1 << 16  # new rows that are joined at once, as long as it is not known what they yield
GROWTH = 8


@dataclass
class _Side:
    """Some rows of a stream, read and prepared when they are first needed."""

    joined: JoinContext
    number: int
    part: Part
    passing: bool = False  # they need not stay in memory
    tables: list[pa.Table] = field(default_factory=list)
    known: list[Sorted] = field(default_factory=list)

    @property
    def table(self) -> pa.Table:
        if not self.tables:
            self.tables.append(self.part())
        return self.tables[0]

    @property
    def ordered(self) -> Sorted:
        if not self.known:
            self.known.append(in_time_order(self.joined.prepare(self.number, self.table).rows))
        return self.known[0]

    def forget(self) -> None:
        if self.passing:
            self.tables.clear()
            self.known.clear()


def completed(
    joined: JoinContext, old: Sequence[pa.Table], new: Sequence[pa.Table], limits: Limits,
    counts: BlockCounts,
) -> Iterator[Found]:  # fmt: skip
    """Results of the new rows of all streams, with each other and with old ones."""
    earlier = [[_side(joined, n, table)] for n, table in enumerate(old)]
    fresh = [_side(joined, n, table) for n, table in enumerate(new)]
    every = [
        [one if not b.num_rows else two if not a.num_rows else _side(joined, n, _both(a, b))]
        for n, ((one,), two, a, b) in enumerate(zip(earlier, fresh, old, new, strict=True))
    ]
    for stream, own in enumerate(fresh):
        sides = [*earlier[:stream], [own], *every[stream + 1 :]]
        yield from _joined([one for (one,) in sides], stream, limits, counts)


def completed_in_parts(
    joined: JoinContext, old: Sequence[Sequence[Part]], new: Sequence[pa.Table], limits: Limits,
    counts: BlockCounts,
) -> Iterator[Found]:  # fmt: skip
    """The same; of old rows, which come in parts, no more than one part of each is in memory."""
    earlier = [[_Side(joined, n, part, True) for part in parts] for n, parts in enumerate(old)]
    fresh = [_side(joined, n, table) for n, table in enumerate(new)]
    for stream, own in enumerate(fresh):
        if not own.table.num_rows:
            continue
        later = zip(earlier[stream + 1 :], fresh[stream + 1 :], strict=True)
        choices = [*earlier[:stream], [own], *([*parts, one] for parts, one in later)]
        before: Sequence[_Side] = ()
        for sides in product(*choices):
            for last, one in zip(before, sides, strict=False):
                if last is not one:
                    last.forget()
            yield from _joined(sides, stream, limits, counts)
            before = sides
        for last in before:
            last.forget()


def _side(joined: JoinContext, number: int, table: pa.Table) -> _Side:
    return _Side(joined, number, lambda: table)


def _both(one: pa.Table, other: pa.Table) -> pa.Table:
    return pa.concat_tables([one, other])


def _joined(
    sides: Sequence[_Side], stream: int, limits: Limits, counts: BlockCounts
) -> Iterator[Found]:
    """Results of the rows of one side with those of the others."""
    if not all(side.table.num_rows for side in sides):
        return
    ordered = [side.ordered for side in sides]
    block = Block(sides[stream].joined, [side.table for side in sides], ordered, stream)
    first, last, slice_ = 0, len(ordered[stream].time), FIRST
    before: JoinRun | None = None  # whose plan serves for the next rows
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
