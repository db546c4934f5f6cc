"""What travels on the links of a ring.  Every link is first in, first out.

Rows travel as *blocks*: a block is a few rows of any streams that follow each other in the total
order ``(time, stream, arrival)``.  A block of one row is the published protocol; a larger one sends
fewer messages, and the operator then also compares order and window inside the block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from windjoin.diffusion.ring_state import RingRows


@dataclass(frozen=True, slots=True)
class Partial:
    """Partial results that one host made of one block; the block's own rows are depth 1."""

    cycle: int  # number of the block's trip round the ring
    maker: int  # host that made them: they are dropped before they reach it again
    bound: tuple[int, ...]  # their schema: the streams bound so far, in probing order
    payload: object  # whatever the operator returned; the ring does not look inside


@dataclass(frozen=True, slots=True)
class RingProbe:
    """A block on its trip: it makes every host purge, fix what the block may see, and probe."""

    cycle: int
    time: int  # the block's first time: nothing it can still meet is purged as expired
    seeds: tuple[Partial, ...]  # the block's rows as partial results of depth 1, one per stream


@dataclass(frozen=True, slots=True)
class Moved:
    """Rows that have aged out of a host's slice, on their way into the next one."""

    stream: int
    rows: RingRows


@dataclass(frozen=True, slots=True)
class End:
    """Behind this mark comes no more partial result of ``depth`` bound streams of that cycle."""

    cycle: int
    depth: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """How old and how many a host's rows may be; the tail of the ring has no bounds.

    ``age[s]``: rows of stream s that old are passed on; ``count[s]``: no more rows than that stay
    (smoothing).  A missing stream has no bound.

    >>> Bounds(age={0: 10}).age.get(0), Bounds(age={0: 10}).count.get(0)
    (10, None)
    """

    age: Mapping[int, int] = field(default_factory=dict)
    count: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetBounds:
    """New bounds for every host, in force at each host from where the message passes it."""

    of_host: Mapping[int, Bounds]


Message: TypeAlias = RingProbe | Partial | Moved | End | SetBounds
