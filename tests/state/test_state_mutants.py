"""Clean-up and relocation with one rule taken out give other results: the tests would see it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import windjoin as wj
from windjoin.diffusion.relocation import (
    EndOfMovedGroups,
    Gate,
    ReceiveGroups,
    Relocation,
    SendGroups,
)
from windjoin.state.cleaning import Cleaning
from windjoin.state.generations import RESIDENT
from windjoin.state.owing import Owing

from tests.oracle import Results
from tests.state.test_memory_hosts import ticking
from tests.state.test_spilling import equality, expected, pushed, rows

# -- clean-up --------------------------------------------------------------------------------------


def own_results_again(patch: pytest.MonkeyPatch) -> None:
    """What a generation produced by itself is produced once more."""
    right: Any = Cleaning._owed

    def wrong(self: Any, found: Any, times: Any, arrivals: Any, left: Any) -> Any:
        return right(self, found, times, arrivals, [np.full_like(of, -1) for of in left])

    patch.setattr(Cleaning, "_owed", wrong)


def no_resident_part(patch: pytest.MonkeyPatch) -> None:
    """Generations are folded, but not with what is in memory."""
    patch.setattr(Owing, "_resident", lambda self, low, high: None)


def no_cross_terms_of_three(patch: pytest.MonkeyPatch) -> None:
    """Results with members of three generations are left out."""
    right: Any = Cleaning._owed

    def wrong(self: Any, found: Any, times: Any, arrivals: Any, left: Any) -> Any:
        owed = right(self, found, times, arrivals, left)
        of = np.sort([left[k][at][owed] for k, at in enumerate(found)], axis=0)
        return owed[(np.diff(of, axis=0) == 0).any(axis=0)]

    patch.setattr(Cleaning, "_owed", wrong)


def no_cross_terms_of_old(patch: pytest.MonkeyPatch) -> None:
    """Loads in which no row is in memory are taken for ones that owe nothing."""
    right: Any = Cleaning._may_owe

    def wrong(self: Any, parts: Any) -> bool:
        resident = any(one.block.left == RESIDENT for part in parts for one in part)
        return resident and bool(right(self, parts))

    patch.setattr(Cleaning, "_may_owe", wrong)


def all_that_was_cleaned_up_again(patch: pytest.MonkeyPatch) -> None:
    """A second clean-up does not know what the first has given."""
    right: Any = Owing._begin

    def wrong(self: Any, high: int, after: int) -> None:
        self.cleaned_epoch = -1
        right(self, high, after)

    patch.setattr(Owing, "_begin", wrong)


CLEANING = [
    own_results_again,
    no_resident_part,
    no_cross_terms_of_three,
    no_cross_terms_of_old,
    all_that_was_cleaned_up_again,
]


def spilled(folder: Path) -> tuple[Results, Results]:
    """Results of a session that spills every few rows, and those there are."""
    query = equality(3)
    tables = {n: rows(200, seed, most=150) for seed, n in enumerate(query.names)}
    known = {n: t.schema for n, t in tables.items()}
    asked = wj.Memory(1, share=0.05)  # so that many results are found before rows leave
    session = query.open(known, memory=asked, spill=folder, lateness=3)
    return pushed(query, tables, session, clean_every=70), expected(query, tables)


def test_nothing_is_taken_out(tmp_path: Path) -> None:
    found, wanted = spilled(tmp_path / "spilled")
    assert found == wanted
    found, wanted = relocated(tmp_path / "relocated")
    assert found == wanted


@pytest.mark.parametrize("mutant", CLEANING)
def test_a_mutant_of_clean_up_is_caught(
    mutant: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    found, wanted = spilled(tmp_path)
    assert found != wanted


# -- relocation ------------------------------------------------------------------------------------


def slow_sender(patch: pytest.MonkeyPatch) -> None:
    """Rows for moved groups come before these are sent, for sure."""
    right, goes_on = SendGroups.act, Relocation.proceed

    def late(self: Any, worker: Any, ticket: Any) -> None:
        time.sleep(0.01)
        right(self, worker, ticket)

    def soon(self: Any) -> None:
        self.cluster.wait(self._ticket)  # for the groups, which rows may not be
        goes_on(self)

    patch.setattr(SendGroups, "act", late)
    patch.setattr(Relocation, "proceed", soon)


def no_gate(patch: pytest.MonkeyPatch) -> None:
    """Rows of moved groups go to the receiver while what the sender held is on its way there."""

    def wrong(self: Any, message: Any, ticket: Any) -> None:
        self._target.send(message, ticket)

    patch.setattr(Gate, "send", wrong)
    slow_sender(patch)


def one_stream_stays(patch: pytest.MonkeyPatch) -> None:
    """A group leaves the rows of its first stream behind."""
    right = ReceiveGroups.act

    def wrong(self: Any, worker: Any, ticket: Any) -> None:
        right(ReceiveGroups(self.relocation, self.takes[1:]), worker, ticket)

    patch.setattr(ReceiveGroups, "act", wrong)


def gate_stays_shut(patch: pytest.MonkeyPatch) -> None:
    """What was kept is let go of when the gate opens."""
    right = Gate.open

    def wrong(self: Any) -> None:
        for _, ticket in self._kept:
            ticket.left.finish()
        self._kept = []
        right(self)

    patch.setattr(Gate, "open", wrong)
    slow_sender(patch)


def relocated(folder: Path) -> tuple[Results, Results]:
    """Results of hosts whose groups move again and again, and those there are."""
    query = equality(3)
    tables = {n: rows(3000, seed, keys=120, most=300) for seed, n in enumerate(query.names)}
    known = {n: t.schema for n, t in tables.items()}
    asked = wj.Memory("1GB", groups=64, span="1s", theta_d=1.0)
    session = query.open(
        known, memory=asked, spill=folder, hosts=3, segment=7, rows_only=True, clock=ticking()
    )
    return pushed(query, tables, session, size=400), expected(query, tables)


@pytest.mark.parametrize("mutant", [no_gate, one_stream_stays, gate_stays_shut])
def test_a_mutant_of_relocation_is_caught(
    mutant: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    found, wanted = relocated(tmp_path)
    assert found != wanted


def test_groups_are_not_sent_before_the_last_of_their_rows_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EndOfMovedGroups, "act", lambda self, worker, ticket: None)
    with pytest.raises(wj.ClusterError, match="sends groups of which rows are on their way"):
        relocated(tmp_path)
