"""Functions that raised for results of a block of rows.

Rows have no numbers that mean anything to the user here; an error names their times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from windjoin.arrow.local_join import JoinContext
from windjoin.errors import FunctionError
from windjoin.functions import function_error
from windjoin.kernels.raised import call_of, raised_among
from windjoin.kernels.spec import I64, JoinSpec, Operand, Rows
from windjoin.output import Fetch


@dataclass(frozen=True, slots=True)
class Results:
    """Results of slices of the inputs' tables."""

    joined: JoinContext
    spec: JoinSpec
    slices: list[Rows]
    found: list[I64]  # rows of the slices, by input
    rows: list[I64]  # the same in the tables
    fetch: Fetch  # from the tables

    def errors(self, raised_here: bool) -> Iterator[tuple[int, FunctionError]]:
        """Results, and what a function raised for them: elsewhere, and here if any has."""
        before = self.joined.raised_before(self.fetch, self.rows)
        if before is not None and before.null_count < len(before):
            for result, text in enumerate(before.to_pylist()):
                if text is not None:
                    yield result, FunctionError(text)
        if raised_here:
            culprits = raised_among(self.spec, self._values, dict(enumerate(self.found)))
            for result in np.flatnonzero(culprits >= 0).tolist():
                yield result, self._error(result, int(culprits[result]))

    def _values(self, operand: Operand, rows: I64) -> Any:
        return self.slices[operand.stream].columns[operand.column][rows]

    def _error(self, result: int, number: int) -> FunctionError:
        members = dict(enumerate(self.found))
        call = call_of(self.spec.predicates[number], self._values, members, result)
        fetch = self.joined.members_fetch(self.fetch)
        rows = self.joined.members_rows([numbers[result : result + 1] for numbers in self.rows])
        places = []
        for stream in self.joined.called_with(number):
            described = self.joined.query.query.streams[stream]
            time = fetch(stream, [described.time], rows[stream])[0][0]
            places.append(f"stream {described.name!r}, row of {described.time} {time}")
        return function_error(call, ", with ".join(places))
