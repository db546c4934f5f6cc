"""Changes of owners: more slots or fewer, and units moved from busy slots to idle ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from windjoin.epochs.routing import EARLIEST, GROUPS, Owners, Routes
from windjoin.kernels.spec import F64


def fewer_or_more(routes: Routes, slots: int, newest: Sequence[int | None]) -> Owners:
    """The owners among another number of slots; as few units as possible change theirs."""
    units, owners = routes.units, routes.owners
    if units.kind == "single":
        return owners if owners.slots <= slots else Owners.in_turn(slots)
    if units.kind == "groups":
        table = owners.of(np.arange(GROUPS)).astype(np.int64)
        return owners_of(even(table.tolist(), np.ones(GROUPS), slots))
    known = [time for time in newest if time is not None]
    after = owners.only(slots) if owners.slots > slots else owners
    if not known:
        return Owners.in_turn(slots)
    return after.from_unit(units.between(min(known), max(known))[1] + 1, range(slots))


def owners_of(table: Sequence[int]) -> Owners:
    """One slot for each group."""
    return Owners(((EARLIEST, tuple(int(slot) for slot in table)),))


def even(table: Sequence[int], weights: F64, slots: int) -> list[int]:
    """Groups spread evenly over slots: the heaviest slot gives to the lightest while that helps.

    >>> even([0, 0, 0, 0], np.ones(4), 2)
    [1, 1, 0, 0]
    """
    owners = [int(one) for one in table]
    load = np.zeros(slots)
    homeless = []
    for group, owner in enumerate(owners):
        if owner < slots:
            load[owner] += weights[group]
        else:
            homeless.append(group)
    for group in homeless:
        owners[group] = int(load.argmin())
        load[owners[group]] += weights[group]
    for group in np.argsort(-weights, kind="stable").tolist():
        source, target = owners[group], int(load.argmin())
        if load[source] - load[target] > weights[group] and source == int(load.argmax()):
            owners[group] = target
            load[source] -= weights[group]
            load[target] += weights[group]
    return owners
