"""Threads that end together: with their work, an error, an interrupt, or whoever had them."""

from __future__ import annotations

import gc
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from queue import SimpleQueue

import pytest
from windjoin.kernels.threads import in_threads
from windjoin.pyx.base.crew import Countdown, Crew, surely

# An interrupt that meets a finalizer of Python's own is told and forgotten by Python.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def ringing() -> Iterator[Callable[[float], object]]:
    """A timer that raises KeyboardInterrupt in the main thread every so many seconds."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def alive() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("windjoin")]


def test_what_was_made_stands_in_the_order_of_the_items() -> None:
    for threads in (1, 2, 5):
        assert in_threads(threads, pow, [(n, 2) for n in range(7)]) == [n * n for n in range(7)]
    assert in_threads(2, pow, []) == []
    assert not alive()


def test_the_first_error_ends_all() -> None:
    done = []

    def work(number: int) -> None:
        if number == 1:
            raise ZeroDivisionError("of the second")
        time.sleep(0.05)
        done.append(number)

    with pytest.raises(ZeroDivisionError, match=r"^of the second$"):
        in_threads(2, work, [(number,) for number in range(100)])
    assert len(done) <= 1
    assert not alive()


def test_interrupts_one_after_the_other_leave_no_thread(
    ringing: Callable[[float], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    # one that comes while Python runs a weakref's callback is not raised; to tell of it takes so
    # long that the next comes in between
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    for number in range(1, 100):
        with pytest.raises(KeyboardInterrupt):
            ring_while(partial(in_threads, 3, time.sleep, [(0.03,)] * 9), ringing, number / 5e3)
        assert not alive()


def ring_while(
    call: Callable[[], object], ringing: Callable[[float], object], seconds: float
) -> None:
    """One interrupt after the other, at the latest as soon as the call is over."""
    try:
        ringing(seconds)
        call()
        while True:
            pass
    finally:
        while True:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0)
                break
            except KeyboardInterrupt:
                continue


def test_a_thread_that_cannot_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match=r"^can't start new thread$"):
        in_threads(2, pow, [(1, 2), (3, 4)])
    assert not alive()


def test_threads_that_wait_are_woken_to_end() -> None:
    inboxes: list[SimpleQueue[None]] = [SimpleQueue() for _ in range(3)]
    crew = Crew()
    for number, inbox in enumerate(inboxes):
        crew.start(f"windjoin-{number}", inbox.get, partial(inbox.put, None))
    assert sorted(alive()) == ["windjoin-0", "windjoin-1", "windjoin-2"]
    assert not crew.orders.stopped
    crew.stop()
    crew.end()
    crew.end()
    assert not alive()


def test_threads_end_when_nobody_has_their_crew() -> None:
    inbox: SimpleQueue[None] = SimpleQueue()
    crew = Crew()
    crew.start("windjoin-0", inbox.get, partial(inbox.put, None))
    del crew
    gc.collect()
    deadline = time.monotonic() + 10
    while alive() and time.monotonic() < deadline:
        time.sleep(0.001)
    assert not alive()


def test_a_countdown_is_waited_for_until_nothing_is_left(
    ringing: Callable[[float], object],
) -> None:
    left = Countdown()
    left.wait()
    left.add(2)
    left.finish()
    threading.Timer(0.02, left.finish).start()
    left.wait()
    left.add(1)
    with pytest.raises(KeyboardInterrupt):
        ring_while(left.wait, ringing, 0.01)


def test_what_is_done_surely_is_done_to_its_end() -> None:
    calls = []

    def call() -> None:
        calls.append(1)
        if len(calls) < 3:
            raise KeyboardInterrupt(len(calls))

    with pytest.raises(KeyboardInterrupt, match=r"^2$"):
        surely(call)
    assert len(calls) == 3
    surely(call)
    with pytest.raises(ZeroDivisionError):
        surely(partial(divmod, 1, 0))
