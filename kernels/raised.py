"""Functions of the user's that raised: whether that matters, and of which rows.

A pair for which a function raises goes on as if it had passed.  What counts is whether it ends up
in a result: then every other condition let it pass too, in whatever order they were asked, and the
join ends with an error.  So a function need not care for pairs that nobody asks for, and whether a
join fails depends neither on its plan nor on how it is run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from windjoin.kernels.functions import PASSED, masked
from windjoin.kernels.side import Side
from windjoin.kernels.spec import I64, Call, Function, JoinSpec, Opaque, Operand, Predicate

# values of an operand for row numbers of its stream
Values = Callable[[Operand, I64], NDArray[Any]]


class FunctionRaised(Exception):
    """A function raised for rows that are a result by all other conditions."""

    def __init__(self, call: Call, rows: Mapping[str, int]) -> None:
        super().__init__(f"{call.text} raised for rows {dict(rows)}")
        self.call = call
        self.rows = dict(rows)  # by name of the stream


def raised_among(spec: JoinSpec, values: Values, rows: Mapping[int, I64]) -> I64:
    """For every result, row numbers by stream, which predicate's function raises; -1: none.

    One that now says no has raised when it was asked first, and says something else each time.
    """
    found = np.full(len(rows[0]), -1)
    for number, predicate in enumerate(spec.predicates):
        if predicate.calls:
            raised = _states(predicate, values, rows) != PASSED
            found[raised & (found < 0)] = number
    return found


def call_of(predicate: Predicate, values: Values, rows: Mapping[int, I64], result: int) -> Call:
    """The call of a predicate's function that raises for a result."""
    one = {stream: numbers[result : result + 1] for stream, numbers in rows.items()}
    if isinstance(predicate, Opaque):
        return predicate.call({s: one[s] for s in predicate.streams})
    assert isinstance(predicate, Function), predicate
    called = predicate.operands[: predicate.arguments]
    arguments = tuple(values(o, one[o.stream])[0].item() for o in called)
    return Call(predicate.function, arguments, predicate.text)


@dataclass(frozen=True, slots=True)
class Look:
    """What a pipeline calls with results once a function has raised (`Pipeline.on_raised`).

    numbers: the users' row numbers of each stream; None: they are those of the sides
    """

    spec: JoinSpec
    sides: Sequence[Side]
    numbers: Sequence[I64 | None]

    def __call__(self, rows: Mapping[int, I64]) -> None:
        culprits = raised_among(self.spec, self._values, rows)
        result = int(np.argmax(culprits >= 0))
        if culprits[result] < 0:
            return
        predicate = self.spec.predicates[culprits[result]]
        call = call_of(predicate, self._values, rows, result)
        members = {}
        for stream in sorted(predicate.streams_read):
            row, numbers = int(rows[stream][result]), self.numbers[stream]
            members[self.spec.streams[stream].name] = row if numbers is None else int(numbers[row])
        raise FunctionRaised(call, members)

    def _values(self, operand: Operand, rows: I64) -> NDArray[Any]:
        return self.sides[operand.stream].values(operand.column, rows)


def _states(predicate: Predicate, values: Values, rows: Mapping[int, I64]) -> NDArray[np.uint8]:
    """Per result 0, PASSED, or 2 where it raised."""
    if isinstance(predicate, Opaque):
        mask = predicate.evaluate({s: rows[s] for s in predicate.streams})
        return np.ascontiguousarray(mask).view(np.uint8)
    assert isinstance(predicate, Function), predicate
    return masked(predicate, [values(o, rows[o.stream]) for o in predicate.operands])
