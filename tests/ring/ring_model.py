"""What a ring must do, written from the definition of a result alone, and a way to run one.

Content-free: every combination inside the windows is a result.  The runner interleaves arrivals,
deliveries and changes of the ring at random, and checks the protocol's laws after every step.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import dataclass, field

from windjoin.diffusion.ring import Ring
from windjoin.diffusion.ring_host import RingPlan
from windjoin.diffusion.ring_messages import Moved, Partial
from windjoin.diffusion.ring_relocation import even_bounds, retiring_bounds, smoothing_bounds
from windjoin.diffusion.ring_state import RingRows

Row = tuple[int, int]  # (time, stream); its number is its place in the total order


@dataclass
class Case:
    rows: list[Row]  # in total order (time, stream, arrival)
    windows: tuple[int, ...]
    orders: dict[int, tuple[int, ...]]
    closed: str
    hosts: int
    in_flight: int
    block: int  # rows per block
    seed: int  # of the interleaving
    changes: bool = False
    names: list[int] = field(default_factory=list)


def inside(time: int, latest: int, window: int, closed: str) -> bool:
    age = latest - time
    return age <= window if closed == "both" else age < window or age == 0


def brute_force(case: Case) -> Counter[tuple[int, ...]]:
    """Every combination inside the windows, as row numbers by stream."""
    numbers: list[list[int]] = [[] for _ in case.windows]
    for number, (_, stream) in enumerate(case.rows):
        numbers[stream].append(number)
    found: Counter[tuple[int, ...]] = Counter()
    for combination in itertools.product(*numbers):
        latest = max(case.rows[number][0] for number in combination)
        if all(
            inside(case.rows[number][0], latest, case.windows[stream], case.closed)
            for stream, number in enumerate(combination)
        ):
            found[combination] += 1
    return found


class Joiner:
    """An operator that matches everything it is shown, and says when it is shown too much."""

    def __init__(self, case: Case) -> None:
        self.case = case

    def __call__(self, host: int, partial: Partial, stream: int, rows: RingRows) -> object | None:
        payload = partial.payload
        tuples = [(int(r),) for r in payload.row] if isinstance(payload, RingRows) else payload
        longer = [
            (*combination, int(row))
            for combination in tuples
            for row in rows.row
            if self.fits(combination[0], int(row), stream)
        ]
        return longer or None

    def fits(self, latest: int, row: int, stream: int) -> bool:
        case = self.case
        fits = row < latest and inside(
            case.rows[row][0], case.rows[latest][0], case.windows[stream], case.closed
        )
        assert fits or case.block > 1, f"row {latest} was shown row {row} of stream {stream}"
        return fits


def run(case: Case) -> Counter[tuple[int, ...]]:
    """Run the case to its end; return what was completed, as row numbers by stream."""
    chance = random.Random(case.seed)
    plan = RingPlan(case.windows, case.orders, case.closed)
    ring = Ring(range(case.hosts), plan, Joiner(case), in_flight=case.in_flight)
    results: list[Partial] = []
    blocks = [
        range(at, min(at + case.block, len(case.rows)))
        for at in range(0, len(case.rows), case.block)
    ]
    while blocks or ring.ready() or ring.waiting:
        ready = ring.ready()
        if blocks and (not ready or chance.random() < 0.3):
            results += ring.push(as_rows(case, blocks.pop(0)))
        elif ready:
            results += ring.deliver(chance.choice(ready))
        if case.changes and chance.random() < 0.1:
            results += change(ring, chance, len(case.rows))
        check_laws(ring)
    check_rest(ring, case)
    return completed(results)


def as_rows(case: Case, numbers: range) -> dict[int, RingRows]:
    block = {}
    for stream in range(len(case.windows)):
        mine = [number for number in numbers if case.rows[number][1] == stream]
        block[stream] = RingRows.of([case.rows[number][0] for number in mine], mine)
    return block


def completed(results: list[Partial]) -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    for result in results:
        for combination in result.payload:  # type: ignore[attr-defined]
            by_stream = sorted(zip(result.bound, combination, strict=True))
            found[tuple(number for _, number in by_stream)] += 1
    return found


def change(ring: Ring, chance: random.Random, expected_rows: int) -> list[Partial]:
    """One random adaptation of the ring."""
    expiry = ring.plan.expiry
    fresh = max(ring.order) + 1
    kind = chance.choice(["even", "smooth", "odd", "tail", "retire", "remove", "join", "swap"])
    results: list[Partial] = []
    if kind in ("remove", "join", "swap"):
        results = ring.drain()
    if kind == "even":
        ring.set_bounds(even_bounds(ring.order, expiry))
    elif kind == "smooth":
        guess = [chance.uniform(1, expected_rows) for _ in expiry]
        ring.set_bounds(smoothing_bounds(ring.order, expiry, guess))
    elif kind == "odd":
        shuffled = chance.sample(ring.order, len(ring.order))
        ring.set_bounds(even_bounds(shuffled, expiry))
    elif kind == "tail":
        ring.add_tail(fresh, even_bounds([*ring.order, fresh], expiry))
    elif kind == "retire" and len(ring.order) > 1:
        ring.set_bounds(retiring_bounds(ring.order, [chance.choice(ring.order)], expiry))
    elif kind == "remove" and len(ring.order) > 1:
        ring.remove(chance.choice(ring.order))
    elif kind == "join":
        ring.relocate(joining=[fresh, fresh + 1])
    elif kind == "swap":
        ring.relocate(joining=[fresh], leaving=[chance.choice(ring.order)])
    return results


def check_laws(ring: Ring) -> None:
    """No row is held twice; a finished cycle has left nothing behind; few blocks travel."""
    held: Counter[tuple[int, int]] = Counter()
    for host in ring.hosts.values():
        for stream, part in enumerate(host.slices):
            held.update((stream, int(row)) for row in part.own.row)
        assert host.in_flight.keys() <= ring.under_way, "END came before the cycle's end"
    for link in ring.links.values():
        for message in link:
            if isinstance(message, Moved):
                held.update((message.stream, int(row)) for row in message.rows.row)
            elif hasattr(message, "cycle"):
                assert message.cycle in ring.under_way, "END came before the cycle's end"
    assert all(count == 1 for count in held.values()), f"held twice: {held.most_common(3)}"
    assert len(ring.under_way) <= ring.in_flight


def check_rest(ring: Ring, case: Case) -> None:
    """At rest the ring holds exactly the rows a next row could still meet."""
    assert ring.state_rows() == ring.stored_rows(), "rows stay though nothing is in flight"
    if not case.rows:
        return
    last_block = len(case.rows) - 1 - (len(case.rows) - 1) % case.block
    now = case.rows[last_block][0]
    expected = sorted(
        number
        for number, (time, stream) in enumerate(case.rows)
        if now - time < ring.plan.expiry[stream]
    )
    held = sorted(
        int(row) for host in ring.hosts.values() for part in host.slices for row in part.own.row
    )
    assert held == expected
