"""Costs of units of work from measured runs: least squares that stays at or above 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from windjoin.kernels.spec import F64

ROUNDS = 2000
TRUST = 0.02  # in known costs, against runs


def fitted(
    runs: Sequence[tuple[Mapping[str, float], float]],
    known: Mapping[str, float],
    trust: float = TRUST,
) -> dict[str, float]:
    """Costs of the units of ``runs``, each of what was done and what it took.

    Each run counts by the share by which it is missed.  ``known`` costs are kept to where runs say
    nothing else, as firmly as ``trust`` says; units that no run has keep theirs.

    >>> runs = [({"row": 10, "push": 1}, 70.0), ({"row": 20, "push": 1}, 120.0)]
    >>> found = fitted(runs, {}, trust=0.0)
    >>> {name: round(cost) for name, cost in found.items()}
    {'push': 20, 'row': 5}
    """
    names = sorted({name for work, _ in runs for name, count in work.items() if count})
    shares = np.array([[work.get(n, 0.0) / spent for n in names] for work, spent in runs])
    before = np.array([known.get(name, 0.0) for name in names])
    scale = np.abs(shares).max(axis=0)
    shares = shares / scale
    # every unit is held to its known cost by the share that it has of a run, on average
    hold = np.sqrt(trust) * np.eye(len(names))
    held = np.sqrt(trust) * before * scale
    solved = _above_0(np.vstack([shares, hold]), np.concatenate([np.ones(len(runs)), held]))
    costs = solved / scale
    return {**known, **dict(zip(names, costs.tolist(), strict=True))}


def _above_0(matrix: F64, wanted: F64) -> F64:
    """The least squares solution without a negative part, by coordinate descent."""
    square, right = matrix.T @ matrix, matrix.T @ wanted
    found = np.zeros(len(right))
    for _ in range(ROUNDS):
        most = 0.0
        for at in range(len(found)):
            step = (right[at] - square[at] @ found) / square[at, at]
            new = max(found[at] + step, 0.0)
            most = max(most, abs(new - found[at]))
            found[at] = new
        if most < 1e-12:
            break
    return found
