"""Small work of hosts that the calling thread does itself, as waking theirs would cost more."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windjoin.diffusion.worker import Message, Ticket, Worker

SMALL_SECONDS = 0.002  # of all hosts, for an epoch


class Caller:
    """Messages to hosts wait here for the caller, who handles them in the order they were sent.

    It begins when no host has anything to do, so every host still gets its messages in order.
    """

    def __init__(self, workers: Mapping[int, Worker]) -> None:
        self._workers = workers
        self._todo: deque[tuple[Worker, Message, Ticket]] = deque()
        self._row_seconds = float("inf")  # as measured last
        self.cpu = 0.0  # seconds of a processor that hosts took in the calling thread

    def begin(self) -> None:
        """From here on messages come here; nobody has any."""
        if self._row_seconds < SMALL_SECONDS:
            for worker in self._workers.values():
                worker.aside = self._todo

    def take_on(self, rows: int) -> None:
        """An epoch of so many rows follows: the hosts' own threads take it if it is not small."""
        if rows * self._row_seconds > SMALL_SECONDS:
            self.end()

    def work(self) -> None:
        """Do all that waits, and what comes of it."""
        while self._todo:
            worker, message, ticket = self._todo.popleft()
            before = worker.tally.cpu
            worker.do(message, ticket)
            self.cpu += worker.tally.cpu - before

    def end(self) -> None:
        """From here on the hosts' own threads do what they get."""
        self.work()
        self.leave()

    def leave(self) -> None:
        """The same, whatever waits."""
        self._todo.clear()
        for worker in self._workers.values():
            worker.aside = None

    def learn(self, rows: int, seconds: float) -> None:
        """Hosts worked so long on so many rows, whoever's threads did."""
        if rows:
            self._row_seconds = max(seconds, 0.0) / rows
