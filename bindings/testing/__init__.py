"""To test joins of your own: what a query has to give, ways to run it, a clock, and slow hosts.

``windjoin.testing.strategies`` has Hypothesis strategies; it needs Hypothesis, and is only loaded
when it is imported.
"""

from windjoin.testing.checking import check
from windjoin.testing.clock import Clock
from windjoin.testing.comparing import assert_same_results
from windjoin.testing.definition import expected
from windjoin.testing.playing import Step, play
from windjoin.testing.slowing import Slowness, slow

__all__ = [
    "Clock",
    "Slowness",
    "Step",
    "assert_same_results",
    "check",
    "expected",
    "play",
    "slow",
]
