"""The strategies by name, for threads, the simulator and Spark alike.

A new one is one file and one line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, cast

from windjoin.diffusion.errors import RoutingError
from windjoin.diffusion.load import Host
from windjoin.diffusion.router import Router
from windjoin.diffusion.segments import StreamProfile

STRATEGIES = {
    "atr": "windjoin.diffusion.atr:ATR",
    "atr-fixed": "windjoin.diffusion.baselines:FixedATR",
    "ctr": "windjoin.diffusion.ctr:CTR",
    "ctr-random": "windjoin.diffusion.baselines:RandomCoverCTR",
    "groups": "windjoin.diffusion.groups:Groups",
    "psp": "windjoin.diffusion.psp:PSP",
    "random": "windjoin.diffusion.baselines:Random",
    "single": "windjoin.diffusion.baselines:Single",
}
# those that rows can be shipped by, on Spark and in epochs, and where they bring rows together
SHIPPED = {
    "atr": "segments of time; rows near a border are copied",
    "ctr": "every row in one place, correlated segments together; partial results travel",
    "psp": "every row in one place, a window's slices on all hosts; partial results travel",
    "groups": "equal keys on one host",
    "single": "all rows on one host",
}


def strategy(name: str) -> Callable[..., Router]:
    """The router class of that name.

    >>> strategy("hash")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    windjoin.diffusion.errors.RoutingError: there is no strategy 'hash'; there are atr, ...
    """
    if name not in STRATEGIES:
        raise RoutingError(f"there is no strategy {name!r}; there are {', '.join(STRATEGIES)}")
    module, _, attribute = STRATEGIES[name].partition(":")
    return cast(Callable[..., Router], getattr(import_module(module), attribute))


def make(
    name: str,
    profiles: Sequence[StreamProfile],
    hosts: Sequence[Host] | int,
    *,
    segment_length: int,
    **options: Any,
) -> Router:
    """A router by name; ``hosts`` may be a number of equal hosts.

    >>> streams = [StreamProfile("a", window=10), StreamProfile("b", window=20)]
    >>> make("atr", streams, 4, segment_length=5).name
    'atr'
    """
    if isinstance(hosts, int):
        hosts = [Host(number) for number in range(hosts)]
    return strategy(name)(profiles, hosts, segment_length=segment_length, **options)


def restored(profiles: Sequence[StreamProfile], state: Mapping[str, Any], **options: Any) -> Router:
    """The router that ``state()`` described, built with the same profiles and options."""
    hosts = [Host(*values) for values in state["book"]["hosts"]]
    router = make(
        state["strategy"], profiles, hosts, segment_length=state["segment_length"], **options
    )
    router.restore(state)
    return router
