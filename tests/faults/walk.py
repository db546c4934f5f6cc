"""Let allocations of a join fail, one after the other; print what came of it.

    python -m tests.faults.walk sites|all|PLACES KIND/WAY ...

Started with the allocator of this folder in place.  The process runs the join once, so that all is
loaded and compiled, and forks a child that lets one call after the other fail, alone or with all
that follow, and looks after each what it left behind.  A child that the join ends is as good a
witness as one that lives; the next goes on after it.

A call's site is the stack of compiled functions that led to it.  Calls of one site are told of want
of memory by the same code, so of each site the first, second, fourth, eighth ... and last call fail
("sites"): whether there is little to give back or much, whether something grows for the first time
or again.  "all" lets every call fail, a number about so many of those of "sites".
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.faults.allocator import Allocator, Place
from tests.faults.joins import KINDS, Way, heard, ways_of

SECONDS = 60  # of one child
THREADS_END = 10.0
MOST_AGAIN = 5
NOTHING = {"calls": [], "failed": 1, "told": ""}


def outcome(way: Way, expected: Any, place: Place | None, all_after: bool) -> dict[str, Any]:
    """What a call failing led to, in this process."""
    allocator = Allocator()
    swallowed: list[str] = []
    told = ""
    with heard(swallowed):
        allocator.arm(place, all_after=all_after)
        try:
            way.run()
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
        calls, failed = allocator.disarm(), allocator.failed
        right = way.found == expected
        wrong = []
        if told:
            try:
                if way.goes_on() and way.found != expected:
                    wrong.append("went on with wrong rows")
            except Exception as error:
                wrong.append(f"then {type(error).__name__}: {error}")
            if not told.startswith("MemoryError: no memory for"):
                wrong.append(f"raised {told}")
        elif not right:
            wrong.append("gave wrong rows")
        way.let_go()
        wrong += left_behind(allocator)
        way.run()  # the next query
        if way.found != expected:
            wrong.append("the next query gave wrong rows")
        way.let_go()
    wrong += [f"swallowed {one}" for one in swallowed]
    calls = calls if place is None else []
    return {"calls": calls, "failed": failed, "told": told, "wrong": wrong}


def left_behind(allocator: Allocator) -> list[str]:
    """Threads and memory that nobody will give back."""
    until = time.monotonic() + THREADS_END
    wrong = []
    if threads := [one.name for one in threading.enumerate() if one.name.startswith("windjoin")]:
        while threading.active_count() > 1 and time.monotonic() < until:
            time.sleep(0.01)
        late = "" if threading.active_count() == 1 else ", and stay"
        wrong.append(f"left threads {threads}{late}")
    gc.collect()
    if allocator.held:
        wrong.append(f"left {allocator.held} blocks")
    return wrong


Try = tuple[Place | None, bool]  # the call that fails, and whether all after it do, too


def in_a_child(way: Way, expected: Any, tries: list[Try]) -> Iterator[dict[str, Any]]:
    """What came of some tries in a process of their own, until one of them went wrong."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        with os.fdopen(write, "w") as pipe:
            for place, all_after in tries:
                signal.alarm(SECONDS)
                try:
                    found = outcome(way, expected, place, all_after)
                except BaseException as error:
                    found = {**NOTHING, "wrong": [f"failed with {error!r}"]}
                print(json.dumps(found), file=pipe, flush=True)
                if found["wrong"] or not found["failed"]:
                    break
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        yield from map(json.loads, pipe)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        yield {**NOTHING, "wrong": [f"died of {signal.Signals(os.WTERMSIG(status)).name}"]}
    elif os.WEXITSTATUS(status):  # a sanitizer ends a process so
        yield {**NOTHING, "wrong": [f"ended with {os.WEXITSTATUS(status)}"]}


def outcomes(way: Way, expected: Any, tries: list[Try]) -> Iterator[dict[str, Any]]:
    """What came of each; what threads do is not always the same, so one that never came to its
    call is tried again by a new process."""
    at = again = 0
    while at < len(tries):
        for found in in_a_child(way, expected, tries[at:]):
            if found["failed"] or again == MOST_AGAIN:
                yield found
                at, again = at + 1, 0
            else:
                again += 1


def chosen(calls: list[Place], which: str) -> list[Place]:
    """The calls that are to fail."""
    if which == "all":
        return calls
    of_site = Counter(place.site for place in calls)
    places = [one for one in calls if one.nth.bit_count() == 1 or one.nth == of_site[one.site]]
    return places if which == "sites" else places[:: max(len(places) // int(which), 1)]


def walk(kind: str, name: str, which: str) -> dict[str, Any]:
    """What went wrong in a join, by the call that failed."""
    way = ways_of(kind)[name](KINDS[kind]())
    way.run()
    expected = way.found
    assert expected, "a join without results says nothing"
    way.let_go()
    gc.collect()
    gc.freeze()  # children look for what they leave, not through all that there is
    (whole,) = in_a_child(way, expected, [(None, False)])
    assert not whole["wrong"], whole
    calls = [Place(*call) for call in whole["calls"]]
    places = chosen(calls, which)
    tries: list[Try] = [(place, all_after) for place in places for all_after in (False, True)]
    wrong: dict[str, list[str]] = {}
    told: set[str] = set()
    reached: set[Place] = set()
    for (place, all_after), found in zip(tries, outcomes(way, expected, tries), strict=True):
        words = "and all after it" if all_after else "alone"
        if found["wrong"]:
            wrong[f"call {1 + calls.index(place)} {words}"] = found["wrong"]
        if found["failed"]:
            reached.add(place)
        told |= {found["told"]} - {""}
    sites = len({place.site for place in calls})
    return {
        "results": len(expected) // 8,
        "calls": len(calls),
        "sites": sites,
        "places": len(reached),
        "not reached": len(places) - len(reached),
        "told": sorted(told),
        "wrong": wrong,
    }


def main(which: str, *pairs: str) -> None:
    """Walk through each kind in its way, a line for each."""
    for pair in pairs:
        found = {"pair": pair, **walk(*pair.split("/"), which)}
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
