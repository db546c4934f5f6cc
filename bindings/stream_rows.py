"""Rows of one stream as the kernels take them: times, operands, keys, and which rows can join."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from windjoin.checking import Typed, check_bound, column_type
from windjoin.evaluate import both, evaluate, holds, raising_call
from windjoin.expressions import Column
from windjoin.kernels.spec import Bools, BytesColumn, Rows
from windjoin.lowering import StreamPlan
from windjoin.operands import Recipe, encode
from windjoin.plain import Direct, direct_columns, direct_sets, key_of, read_column, wide_of
from windjoin.pyx.arrow.reader import Reader
from windjoin.tested import tests_of
from windjoin.times import TimeColumn
from windjoin.varlen import varlen_column


@dataclass(frozen=True, slots=True)
class Prepared:
    """Rows for the kernels, and which of them have no time (None: none)."""

    rows: Rows
    null_time: Bools | None = None


class StreamRows:
    """Makes the rows of one stream from its tables or batches."""

    def __init__(self, time: TimeColumn, plan: StreamPlan, schema: pa.Schema) -> None:
        self.time = time
        self.filters = list(plan.filters)
        self.owned = plan.owned
        self._columns = list(plan.columns)
        self._keys = list(plan.keys)
        self._varlen = plan.all_varlen
        self._required = len(plan.varlen)  # of them; those behind them only scores read
        name = time.stream
        used = {time.column: None}
        for typed in [*self.filters, *(r.typed for r in (*plan.columns, *plan.keys))]:
            used |= {column.name: None for column in typed.node.columns()}
        for recipe in self._varlen:
            used |= {column.name: None for column in recipe.node.columns()}
        self.schema = schema
        self._bound_to = {name: schema}
        self._types: dict[str, pa.DataType] = {}
        self.require(used)
        self.direct: list[Direct | None] = [
            *direct_columns(time, plan, schema),
            *direct_sets(plan, schema),
        ]
        tests = tests_of(self.filters, schema)
        columns = [None if one is None else read_column(one) for one in self.direct]
        read = [one for one in (*columns, *(column for column, _, _ in tests or [])) if one]
        self._read = [schema.names[number] for number, _, _, _ in read]
        self.reader = Reader(
            columns,
            len(self._varlen),
            tests,
            self.owned,
            self.computed,
            schema.names,
            pa.Table,
        )

    def prepare(self, data: pa.Table | pa.RecordBatch, first_row: int) -> Prepared:
        """Times, operands and keys of the rows of ``data``; ``first_row`` is for messages."""
        other = not self.schema.equals(data.schema)
        lies = True
        if other:
            check_bound(self.time.stream, data.schema, self._types)
            lies = all(data.schema.field(name).type == self._types[name] for name in self._read)
        plain, wide, bad, usable, present = self.reader.read(data, first_row, other, lies)
        keys = 1 + len(self._columns)
        rows = Rows(
            plain[0],
            plain[1:keys],
            [key_of(key) for key in plain[keys:]],
            [wide_of(one, column) for one, column in zip(self._direct_varlen, wide, strict=True)],
            usable,
            present,
        )
        return Prepared(rows, bad)

    @property
    def counted(self) -> tuple[int, int]:
        """How many operands and keys there are."""
        return len(self._columns), len(self._keys)

    @property
    def _direct_varlen(self) -> list[Direct | None]:
        return self.direct[len(self.direct) - len(self._varlen) :]

    def require(self, names: Iterable[str]) -> None:
        """Rows to come must have these columns, too, with the types the query was bound to."""
        for name in names:
            self._types[name] = column_type(Column(self.time.stream, name), self._bound_to)

    def columns_as_they_lie(self) -> dict[str, str]:
        """Of the time and the keys, as they are called in a unit of rows, whose int64 are the
        values of a column, that column.
        """
        keys = self.direct[1 + len(self._columns) :][: len(self._keys)]
        numbered = {f"key.{k}": one for k, one in enumerate(keys)}
        if self.time.ratio == 1:
            numbered["time"] = self.direct[0]
        return {
            name: self.schema.field(one.number).name
            for name, one in numbered.items()
            if one is not None and one.form == "as they lie" and one.dtype == np.int64
        }

    def computed(
        self, timed: Bools | None, data: Any, first_row: int, wanted: list[int]
    ) -> tuple[Bools | None, Bools | None, Bools | None, list[Any]]:
        """What compiled code does not read: all conditions, and columns of these numbers.

        timed: rows with a time, where that is read.  The rows with a time, those that can be part
        of a result, those that ``where`` lets pass (None: all), and the columns.
        """

        def fetch(column: Column) -> Any:
            return data.column(column.name)

        times: Any = None
        if 0 in wanted:
            times, timed = self.time.read(data.column(self.time.column))
        live, present = self._live(timed, fetch, first_row)
        usable, made = live, []
        recipes, plain = (*self._columns, *self._keys), len(self.direct) - len(self._varlen)
        for number in wanted:
            values: Any
            ok: Bools | None = None
            if number == 0:
                values = self.time.ticks(times, live, first_row)
            elif number < plain:
                values, ok = self._encode(recipes[number - 1], fetch, live, first_row)
            else:
                values, ok = varlen_column(self._varlen[number - plain], fetch, first_row)
                if number >= plain + self._required:
                    values.absent = None if ok is None else ~ok
                    ok = None
            usable = both(usable, ok)
            made.append(_plain(values))
        return timed, usable, present, made

    @property
    def as_they_lie(self) -> bool:
        """Whether nothing has to be computed of rows that have no nulls."""
        return None not in self.direct

    def plain_columns(self) -> list[tuple[str, np.dtype[Any]]] | None:
        """Time, operands and keys with their dtypes, if they are int64 or float64 as they lie."""
        plain = self.direct[: len(self.direct) - len(self._varlen)]
        direct = [one for one in plain if one is not None]
        if len(direct) < len(plain) or self.filters:
            return None
        fields = [self.schema.field(one.number) for one in direct]
        if not all(pat.is_int64(field.type) or pat.is_float64(field.type) for field in fields):
            return None
        return [(field.name, one.dtype) for field, one in zip(fields, direct, strict=True)]

    def plain_vectors(self) -> list[tuple[str, np.dtype[Any], int]] | None:
        """Wide columns with dtype and width, if all are vectors of one length as they lie."""
        varlen = [one for one in self._direct_varlen if one is not None and one.form != "lists"]
        if len(varlen) < len(self._varlen):
            return None
        return [(self.schema.field(one.number).name, one.dtype, one.size) for one in varlen]

    def _live(
        self, timed: Bools | None, fetch: Any, first_row: int
    ) -> tuple[Bools | None, Bools | None]:
        """Rows with a time that the conditions let pass, and those that ``where`` lets pass.

        A function may raise for others only.
        """
        live, present, every = timed, timed, []
        for number, condition in enumerate(self.filters, 1):
            kept, raised = holds(condition, fetch)
            if raised is not None:
                kept = kept | raised
                every.append((condition, raised))
            live = kept if live is None else live & kept
            present = live if number <= self.owned else present
        for condition, raised in every:
            self._refuse(condition, raised, live, fetch, first_row)
        return live, present

    def _refuse(
        self, typed: Typed, raised: Bools, live: Bools | None, fetch: Any, first_row: int
    ) -> None:
        """`FunctionError` for the first live row for which a function raised."""
        rows = np.flatnonzero(raised if live is None else raised & live)
        if not len(rows):
            return
        from windjoin.functions import function_error

        row = int(rows[0])
        call = raising_call(typed, lambda column: fetch(column).slice(row, 1))
        raise function_error(call, f"stream {self.time.stream!r}, row {first_row + row}")

    def _encode(
        self, recipe: Recipe, fetch: Any, live: Bools | None, first_row: int
    ) -> tuple[Any, Bools | None]:
        values = evaluate(recipe.typed, fetch)
        if values.raised is not None:
            self._refuse(recipe.typed, values.raised, live, fetch, first_row)
        return encode(recipe, values, live, first_row)


def in_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same rows in a schema that differs from theirs in what it says of nulls, at most."""
    own = table.schema
    if own.equals(schema) or own.names != schema.names or own.types != schema.types:
        return table
    return pa.Table.from_arrays(table.columns, schema=schema)


def _plain(values: Any) -> Any:
    """A column as compiled code takes it: an array, offsets and bytes of texts, or as it is."""
    if isinstance(values, BytesColumn):
        return np.ascontiguousarray(values.offsets), np.ascontiguousarray(values.data)
    return np.ascontiguousarray(values) if isinstance(values, np.ndarray) else values
