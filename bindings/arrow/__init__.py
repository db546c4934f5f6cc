"""The join as functions of record batches, for one's own ``mapInArrow`` or exchange.

`pack` turns rows into routed segments, `probe` turns the segments of a host into results; both are
generators that close over one small picklable `Plan` and know nothing of who calls them.  `joiner`
does all at once where partitions already hold what belongs together.  ``docs/spark.md`` has an
example of each.
"""

from windjoin.arrow.joining import joiner
from windjoin.arrow.packing import pack
from windjoin.arrow.placement import place
from windjoin.arrow.plan import Limits, Plan
from windjoin.arrow.probing import probe
from windjoin.arrow.segments import SEGMENTS

__all__ = ["SEGMENTS", "Limits", "Plan", "joiner", "pack", "place", "probe"]
