"""What the tasks of a continuous join close over: small, picklable, the same in every epoch."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from windjoin.arrow.plan import Plan
from windjoin.binding import BoundQuery
from windjoin.epochs.requested import Requested
from windjoin.epochs.routing import Units
from windjoin.epochs.storage import Folder
from windjoin.epochs.stores import folder_at
from windjoin.expressions import Expression
from windjoin.function_nodes import Udf
from windjoin.query import Query
from windjoin.shedding import Shedding

NEED = 4  # bytes that a byte of rows in the log takes while it is joined
BATCH_ROWS = "rows of batch DataFrames"  # a part of what may not change
MOST_FILES = 96  # that a window may be spread over before they are merged


@dataclass(frozen=True, slots=True)
class Job:
    """A continuous join."""

    plan: Plan  # the query and what travels; its hosts are the slots asked for
    units: Units
    lateness: int  # ticks
    root: str  # of the log
    chosen_segment: bool = False  # the user has said how long segments are
    idle: tuple[float | None, ...] = ()  # seconds, by stream
    rejected: str | None = None  # a folder for rows that are not joined
    whole: tuple[Any, ...] = ()  # schemas of the frames, for rejected rows
    static: Any = None  # rows of streams that do not grow (`windjoin.epochs.static`)
    shed: Shedding | None = None  # how each slot sheds load
    warm_bytes: int | None = (
        None  # that sessions of one worker may hold, if said; 0: there are none
    )
    memory: int | None = None  # bytes that a slot may hold beside the rows of an epoch
    asked: Requested | None = None  # beside, or instead of, the results of an inner join

    @property
    def part_bytes(self) -> int:
        """Of the rows of one stream in the log that a slot takes up at a time, if not all."""
        assert self.memory is not None
        return max(1, self.memory // (NEED * self.streams))

    @property
    def slots(self) -> int:
        """That were asked for."""
        return self.plan.hosts

    @property
    def stages(self) -> int:
        """Exchanges of an epoch."""
        return self.streams - 1 if self.units.once else 1

    @property
    def log(self) -> Folder:
        """Where the log lies."""
        return folder_at(self.root)

    @property
    def told_apart(self) -> str:
        """A part of names of files: those of another query must not be taken for this one's."""
        return self.root.partition("?")[0].rpartition("/")[2][:13]

    @property
    def windows(self) -> tuple[int, ...]:
        """Ticks, by stream."""
        return tuple(stream.window for stream in self.plan.bound.spec.streams)

    @property
    def streams(self) -> int:
        """How many."""
        return len(self.plan.query.names)

    @property
    def query(self) -> Query:
        """As the user gave it."""
        return self.plan.query if self.asked is None else self.asked.query

    @property
    def result(self) -> BoundQuery:
        """What says how results look."""
        return self.plan.bound if self.asked is None else self.asked.bound

    @property
    def retention(self) -> tuple[int, ...]:
        """For how long rows may be asked for, by stream: as long as they may be in results."""
        if self.plan.query.direction is None:
            return self.windows
        first, second = self.windows  # a row waits for its partners, and is one for those before
        return first, min(2**63 - 1, first + second)

    @property
    def together(self) -> bool:
        """Whether rows stay until all streams have come past them."""
        return self.plan.query.nearest is not None

    def schemas(self) -> dict[str, str]:
        """Of the rows in the log, by stream."""
        return {n: schema_text(self.plan.schema(s)) for s, n in enumerate(self.plan.query.names)}

    def described(self) -> dict[str, str]:
        """What may not change from one start to the next, part by part."""
        query = self.query
        schemas = self.plan.schemas if self.asked is None else self.asked.schemas
        parts = {f"stream {s.name!r}": repr(s) for s in query.streams}
        parts |= {f"columns of {name!r}": _columns(schemas[name]) for name in query.names}
        parts["streams"] = ", ".join(query.names)
        parts["on"] = ", ".join(f"{one!r}{_code(one)}" for one in query.on)
        chosen = query.select
        parts["select"] = "all" if chosen is None else ", ".join(map(repr, chosen))
        parts["closed"] = query.closed
        parts["exclude_self"] = repr(query.exclude_self)
        if self.static is not None:
            parts[BATCH_ROWS] = f"{self.static.rows} rows, {self.static.folder}"
        if self.asked is not None:
            names = query.names
            told = {"keep": query.sides.keep, "exists": query.sides.exists}
            for option, streams in {**told, "missing": query.sides.missing}.items():
                parts[option] = ", ".join(names[s] for s in streams) or "none"
            parts["nearest"] = f"{query.nearest} {query.direction or ''}".strip()
        return parts


def schema_text(schema: pa.Schema) -> str:
    """A schema as JSON has it."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)


def _code(expression: Expression) -> str:
    """Tells functions of one name apart by what they do."""
    functions = list(_functions(expression))
    if not functions:
        return ""
    codes = [getattr(getattr(f, "py_func", f), "__code__", None) for f in functions]
    told = [(c.co_code, repr(c.co_consts), c.co_names) for c in codes if c is not None]
    return f" [{hashlib.sha256(repr(told).encode()).hexdigest()[:12]}]"


def _functions(expression: Expression) -> Sequence[Any]:
    own = [expression.function] if isinstance(expression, Udf) else []
    return [*own, *(f for part in expression.parts for f in _functions(part))]
