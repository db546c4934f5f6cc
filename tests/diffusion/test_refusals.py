"""What routers refuse, and in which words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from windjoin.diffusion.atr import ATR
from windjoin.diffusion.ctr import CTR
from windjoin.diffusion.errors import RoutingError
from windjoin.diffusion.fusion import Fusion
from windjoin.diffusion.groups import Groups
from windjoin.diffusion.load import Host, LoadBook, Usage, Weights
from windjoin.diffusion.registry import make, strategy
from windjoin.diffusion.router import Part, Placement
from windjoin.diffusion.segment_length import HillClimber
from windjoin.diffusion.segments import Segment, StreamProfile, check_profiles

from tests.diffusion.reference import ReferenceCluster, Row

STREAMS = (StreamProfile("a", window=10), StreamProfile("b", window=20))


def router(name: str = "ctr", hosts: int = 3, **options: Any) -> Any:
    return make(name, STREAMS, hosts, segment_length=5, **options)


def book() -> LoadBook:
    return LoadBook([Host(0), Host(2)], span=5)


def fusion(watermark: int = 10) -> Fusion:
    fused = Fusion([0], ordered=True)
    fused.advance(0, watermark)
    return fused


def push(rows: int, arrivals: int, host: int = 0) -> Callable[[], object]:
    return lambda: fusion().push(host, "x", times=np.arange(rows), arrivals=np.arange(arrivals))


def expired(name: str) -> Any:
    late = router(name)
    late.expire(100)
    return late


def moved_on(name: str) -> Any:
    later = router(name)
    later.place(Segment(0, 50, 55))
    return later


def two_parts_of_one_row() -> object:
    cluster = ReferenceCluster(router("single"))
    part = Part(0, 0, 5)
    return cluster._store(Row(1, 0, 0), Placement((part, part)))


def restored_from(**changes: Any) -> object:
    return router("atr").restore(router("atr").state() | changes)


REFUSALS: list[tuple[Callable[[], object], str]] = [
    (lambda: check_profiles(STREAMS[:1]), "a join needs at least 2 streams, got 1"),
    (
        lambda: check_profiles([STREAMS[0], StreamProfile("z", 1, rate=-2.0)]),
        "rate of stream 'z' is -2.0; it must be finite and >= 0",
    ),
    (
        lambda: check_profiles([STREAMS[0], StreamProfile("z", -1)]),
        "window of stream 'z' is -1; it must be >= 0",
    ),
    (lambda: Weights(-0.5, 1.0, 0.5), r"load weights \(-0.5, 1.0, 0.5\) must not be negative"),
    (lambda: Weights(0.5, 0.5, 0.5), "sum to 1.5; they must sum to 1"),
    (lambda: LoadBook([Host(0)], span=0), "span is 0; it must be at least 1"),
    (lambda: LoadBook([], span=1), "a router needs at least 1 host, got 0"),
    (lambda: book().add(Host(2)), "host 2 is there already"),
    (lambda: book().add(Host(4096)), r"host number 4096 is outside 0 .. 4095"),
    (lambda: book().add(Host(5, cpu=0)), "host 5 has a capacity that is not positive"),
    (lambda: book().require(1), r"there is no host 1; there are \[0, 2\]"),
    (lambda: book().report({0: Usage(cpu=-1)}, now=0), "host 0 reports a negative usage"),
    (lambda: LoadBook([Host(7)], span=1).close(7), "host 7 is the last one that takes work"),
    (lambda: router(hosts=1).remove_host(0, lost=True), "host 0 is the last one that takes"),
    (lambda: router(hosts=1).remove_host(0, lost=False), "host 0 is the last one that takes"),
    (lambda: strategy("hash"), "there is no strategy 'hash'; there are atr, atr-fixed, ctr"),
    (
        lambda: make("atr", STREAMS, 2, segment_length=0),
        "segment_length is 0; it must be at least 1",
    ),
    (lambda: moved_on("ctr").advance(3) or moved_on("ctr").path(Segment(0, 3, 8)), "starts at 3"),
    (lambda: (r := router(), r.advance(9), r.advance(3)), "border 3 comes after border 9"),
    (lambda: router().report({}, rates=[1.0]), "got 1 rates for 2 streams"),
    (lambda: router().place(Segment(2, 0, 5)), r"segment of stream 2; streams are 0 .. 1"),
    (lambda: router().place(Segment(0, 5, 5)), r"segment \[5, 5\) is empty"),
    (
        lambda: expired("atr").place(Segment(1, 95, 100)),
        r"segment \[95, 100\) of stream 'b' starts before the watermark 100",
    ),
    (lambda: restored_from(version=0), "router state has version 0; this code reads 1"),
    (lambda: restored_from(strategy="ctr"), "router state is of 'ctr', not of 'atr'"),
    (lambda: router("atr", master=2), r"master 2; streams are 0 .. 1"),
    (lambda: router("atr").change_length(0), "segment_length is 0; it must be at least 1"),
    (
        lambda: moved_on("atr").place(Segment(1, 45, 50)),
        r"segment \[45, 50\) of stream 'b' starts before the first border, 50",
    ),
    (lambda: router("ctr").change_length(-1), "segment_length is -1; it must be at least 1"),
    (lambda: router("ctr", copies=0), "copies is 0; it must be at least 1"),
    (lambda: router("ctr", crowded=0.5), "crowded is 0.5; it must be at least 1"),
    (
        lambda: moved_on("ctr").place(Segment(0, 45, 50)),
        "the segment of stream 'a' that starts at 45 comes after one that starts at 50",
    ),
    (
        lambda: router("ctr").path(Segment(0, 0, 5)),
        r"stream 'a' that starts at 0 was not placed, or has expired; call place\(\) first",
    ),
    (lambda: router("ctr-random", seed=0), r"seed is 0; it must be in 1 .. 2\*\*64 - 1"),
    (
        lambda: router("groups", group_count=2),
        "group_count is 2; it must be at least the 3 hosts",
    ),
    (lambda: router("groups").move_groups([512], 0), r"groups are 0 .. 511, got \[512\]"),
    (lambda: router("groups").move_groups([0], 9), r"host 9 takes no work; \[0, 1, 2\] do"),
    (lambda: HillClimber(5, 6, 9), r"segment length 5 is outside 6 .. 9"),
    (two_parts_of_one_row, "is sent to host 0 twice"),
    (lambda: fusion().add_host(0), "host 0 is there already"),
    (
        lambda: fusion().add_host(1, since=4),
        "host 1 joins with watermark 4, behind the fused 10",
    ),
    (push(3, 2), "block of host 0 has 3 times and 2 arrivals"),
    (push(3, 3), r"pushes a result of time 0 \(row 0\) after it said that none before 10"),
    (push(3, 3, host=5), r"there is no host 5; there are \[0\]"),
]


@pytest.mark.parametrize(("ask", "words"), REFUSALS, ids=[words for _, words in REFUSALS])
def test_a_refusal_says_what_is_wrong(ask: Callable[[], object], words: str) -> None:
    with pytest.raises(RoutingError, match=words):
        ask()


def test_compiled_table_refuses_a_segment_it_does_not_have() -> None:
    ctr = router("ctr")
    assert isinstance(ctr, CTR)
    with pytest.raises(KeyError, match="stream 1 has no segment that starts at 7"):
        ctr.table.path(1, 7, 8)


def test_classes_are_what_the_registry_says() -> None:
    assert strategy("atr") is ATR
    assert strategy("groups") is Groups
