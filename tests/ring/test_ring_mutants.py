"""Every rule of the protocol is needed: without it the tests above fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ring_model import Case, brute_force, run
from windjoin.diffusion import ring_host
from windjoin.diffusion.ring_host import RingHost, Sent
from windjoin.diffusion.ring_messages import End, Moved, Partial, RingProbe
from windjoin.diffusion.ring_state import Slice, Span


def fixed_cases() -> list[Case]:
    rows = [(t // 2, t % 3) for t in range(18)]
    orders = {0: (1, 2), 1: (2, 0), 2: (0, 1)}
    return [
        Case(rows, (4, 3, 4), orders, "both", hosts, 4, 1, seed)
        for hosts in (2, 4)
        for seed in range(12)
    ]


def caught() -> bool:
    """Whether some case loses, doubles or breaks a law."""
    for case in fixed_cases():
        try:
            if run(case) != brute_force(case):
                return True
        except (AssertionError, IndexError, ValueError):
            return True
    return False


original_probe = RingHost._probe
original_release = RingHost._release
original_extend = RingHost._extend
original_purge = Slice.purge


def probe_before_moved(self: RingHost, probe: RingProbe, sent: Sent) -> None:
    original_probe(self, probe, sent)
    sent.messages.sort(key=lambda message: isinstance(message, Moved))


def circulate_for_ever_to_the_head(self: RingHost, partial: Partial, sent: Sent) -> None:
    if not self.is_tail:  # as if the head had made everything
        sent.messages.append(partial)
    self._extend(partial, sent)


def delete_at_once(self: RingHost) -> None:
    for part in self.slices:
        part.release(part.start)


def see_the_present(self: RingHost, partial: Partial, sent: Sent) -> None:
    self.in_flight[partial.cycle] = tuple(Span(s.start, s.end) for s in self.slices)
    original_extend(self, partial, sent)


def end_one_mark_early(self: RingHost, end: End, sent: Sent) -> None:
    if not self.is_head:
        self._mark(end, sent)
    elif end.depth < len(self.plan.windows) - 1:
        self._mark(End(end.cycle, end.depth + 1), sent)
    else:
        self._forget(end.cycle)
        sent.finished.append(end.cycle)


def keep_what_is_passed_on(self: Slice, *, older_than: int, at_most: int | None = None) -> object:
    start = self.start
    rows = original_purge(self, older_than=older_than, at_most=at_most)
    self.start = start
    return rows


def never_forget(self: RingHost, cycle: int) -> None:
    return None


def extend_only_once(self: RingHost, partial: Partial, sent: Sent) -> None:
    """A partial result made here is not probed here."""
    if partial.maker != self.number or len(partial.bound) == 1:
        original_extend(self, partial, sent)


MUTANTS: list[tuple[type, str, Callable[..., object]]] = [
    (RingHost, "_probe", probe_before_moved),
    (RingHost, "_circulate", circulate_for_ever_to_the_head),
    (RingHost, "_release", delete_at_once),
    (RingHost, "_extend", see_the_present),
    (RingHost, "_end", end_one_mark_early),
    (Slice, "purge", keep_what_is_passed_on),
    (RingHost, "_forget", never_forget),
    (RingHost, "_extend", extend_only_once),
]


def test_the_protocol_as_it_is_passes() -> None:
    assert not caught()


@pytest.mark.parametrize(("owner", "rule", "mutant"), MUTANTS, ids=[m[2].__name__ for m in MUTANTS])
def test_a_protocol_without_the_rule_is_caught(
    monkeypatch: pytest.MonkeyPatch, owner: type, rule: str, mutant: Callable[..., object]
) -> None:
    monkeypatch.setattr(owner, rule, mutant)
    assert caught()


@pytest.mark.parametrize("shift", [-1, 1])
def test_a_window_border_off_by_one_is_caught(monkeypatch: pytest.MonkeyPatch, shift: int) -> None:
    right = ring_host.RingPlan.expiry.fget
    assert right is not None
    shifted = property(lambda plan: tuple(age + shift for age in right(plan)))
    monkeypatch.setattr(ring_host.RingPlan, "expiry", shifted)
    assert caught()
