"""Let the n-th allocation of a join fail, n = 1, 2, 3 ... until it succeeds; print what came of it.

    python -m tests.faults.walk PLACES KIND/WAY ...

Started with the allocator of this folder in place.  The process runs the join once, so that all is
loaded and compiled, and forks a child for every n, or for about PLACES of them: in it the call
fails, alone or with all that follow.  A child that the join ends is as good a witness as one that
lives.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
import time
from typing import Any

from tests.faults.allocator import EVER, Allocator
from tests.faults.joins import KINDS, Way, heard, ways_of

SECONDS = 60  # of one child
THREADS_END = 10.0


def outcome(way: Way, expected: Any, n: int, last: int) -> dict[str, Any]:
    """What the n-th call failing led to, in this process."""
    allocator = Allocator()
    swallowed: list[str] = []
    told = ""
    with heard(swallowed):
        allocator.arm(n, last)
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
    wrong += [f"swallowed {one}" for one in swallowed]
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


def in_a_child(way: Way, expected: Any, n: int, last: int) -> dict[str, Any]:
    """The same in a process of its own, whatever becomes of that."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(SECONDS)
        try:
            found = outcome(way, expected, n, last)
        except BaseException as error:
            found = {"calls": 0, "failed": 1, "told": "", "wrong": [f"failed with {error!r}"]}
        os.write(write, json.dumps(found).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return {"calls": 0, "failed": 1, "told": "", "wrong": [f"died of {name}"]}
    found = json.loads(text)
    return dict(found)


def walk(kind: str, name: str, most: int) -> dict[str, Any]:
    """All allocations of a join, or about so many; what went wrong, by which call failed."""
    way = ways_of(kind)[name](KINDS[kind]())
    way.run()
    expected = way.found
    assert expected, "a join without results says nothing"
    way.let_go()
    gc.collect()
    gc.freeze()  # children look for what they leave, not through all that there is
    wrong: dict[str, list[str]] = {}
    told: set[str] = set()
    n, places = 1, 0
    calls = in_a_child(way, expected, EVER, EVER)["calls"]
    step = max(calls // most, 1) if most else 1
    while True:
        once = in_a_child(way, expected, n, n)
        ever = in_a_child(way, expected, n, EVER)
        for found, which in ((once, "alone"), (ever, "and all after it")):
            if found["wrong"]:
                wrong[f"call {n} {which}"] = found["wrong"]
            if found["told"]:
                told.add(found["told"])
        if not once["failed"] and not ever["failed"]:
            break
        places += 1
        n += step
    return {"results": len(expected), "places": places, "told": sorted(told), "wrong": wrong}


def main(places: str, *pairs: str) -> None:
    """Walk through each kind in its way."""
    json.dump([walk(*pair.split("/"), int(places)) for pair in pairs], sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
