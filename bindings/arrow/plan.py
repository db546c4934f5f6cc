"""The plan of a distributed join: small, picklable, and all that `pack` and `probe` close over."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal

import pyarrow as pa
from windjoin.arrow.routes import AnyRoute, ExchangeRoute
from windjoin.binding import BoundQuery
from windjoin.errors import QueryError, SchemaError, quoted
from windjoin.layout import plain_type
from windjoin.query import Query
from windjoin.row_windows import refuse_row_windows

Strategy = Literal["single", "atr", "groups", "ctr", "psp"]
ROW = "windjoin_row"  # identity of a row, where several streams are one table
KEPT_BOUND = 16
ALIGNED = 8  # bytes


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes that bound memory and messages.

    >>> Limits(block_rows=1000).block_rows
    1000
    """

    gather_rows: int = 1 << 16  # rows that are routed together
    gather_bytes: int = 16 << 20
    payload_bytes: int = 256 << 10  # of one segment
    piece_bytes: int = 4 << 10  # of a segment in one row of the exchange
    message_bytes: int = 8 << 20  # of one batch of segments or of results
    block_rows: int = 1 << 18  # rows that are joined together
    block_bytes: int = 64 << 20
    results: int = 1 << 20  # row numbers of so many results are held at a time

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if value < 1:
                raise QueryError(f"Limits: {limit.name}={value!r}; give 1 or more")
        if self.piece_bytes % ALIGNED:
            raise QueryError(
                f"Limits: piece_bytes={self.piece_bytes!r}; give a multiple of {ALIGNED}, so that"
                " numbers lie where processors want them"
            )


DEFAULT = Limits()


@dataclass(frozen=True, slots=True)
class Plan:
    """Which rows go where, and what is done there.

    ``routes[s]`` says where the rows of stream number s go.  All streams meet in one exchange,
    unless ``order`` is given: then rows of ``order[0]`` travel to those of ``order[1]``, which stay
    in one place each, what they make travels on to those of ``order[2]``, and so on.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> q = wj.join(a, b, on=a["k"] == b["k"])
    >>> import pyarrow as pa
    >>> from windjoin.arrow import place
    >>> schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
    >>> plan, expected = place(q, {"a": schema, "b": schema}, hosts=1, strategy="single")
    >>> plan.stages, plan.strategy
    (1, 'single')
    """

    query: Query
    schemas: Mapping[str, pa.Schema]  # only columns that travel
    hosts: int
    strategy: Strategy
    routes: tuple[AnyRoute, ...]
    master: int = 0  # in one exchange: the stream whose rows are not copied
    order: tuple[int, ...] = ()
    limits: Limits = Limits()
    identity: str = field(default_factory=lambda: uuid.uuid4().hex)
    called: bool = False  # a function, for partial results: what it raised travels with them

    @property
    def stages(self) -> int:
        """The number of exchanges.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> import pyarrow as pa
        >>> from windjoin.arrow import place
        >>> schema = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("note", pa.string())])
        >>> schemas = {"a": schema, "b": schema}
        >>> q = wj.join(a, b, on=a["k"] == b["k"], select=[a["k"]])
        >>> plan, expected = place(q, schemas, hosts=1, strategy="single")
        >>> plan.stages
        1
        """
        return max(1, len(self.order) - 1)

    @property
    def inputs(self) -> tuple[tuple[int, ...], ...]:
        """For every exchange the streams that are packed for it.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> import pyarrow as pa
        >>> from windjoin.arrow import place
        >>> schema = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("note", pa.string())])
        >>> schemas = {"a": schema, "b": schema}
        >>> q = wj.join(a, b, on=a["k"] == b["k"], select=[a["k"]])
        >>> plan, expected = place(q, schemas, hosts=1, strategy="single")
        >>> plan.inputs
        ((0, 1),)
        """
        if not self.order:
            return (tuple(range(len(self.routes))),)
        return (self.order[:2], *((stream,) for stream in self.order[2:]))

    @property
    def numbered(self) -> frozenset[int]:
        """Streams whose rows carry an identity, so that no row pairs with itself.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> import pyarrow as pa
        >>> from windjoin.arrow import place
        >>> schema = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("note", pa.string())])
        >>> schemas = {"a": schema, "b": schema}
        >>> q = wj.join(a, b, on=a["k"] == b["k"], select=[a["k"]])
        >>> plan, expected = place(q, schemas, hosts=1, strategy="single")
        >>> plan.numbered
        frozenset()
        """
        return frozenset(s for pair in self.query.exclude_self for s in pair)

    def schema(self, stream: int) -> pa.Schema:
        """What travels of a stream.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> import pyarrow as pa
        >>> from windjoin.arrow import place
        >>> schema = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("note", pa.string())])
        >>> schemas = {"a": schema, "b": schema}
        >>> q = wj.join(a, b, on=a["k"] == b["k"], select=[a["k"]])
        >>> plan, expected = place(q, schemas, hosts=1, strategy="single")
        >>> plan.schema(0).names
        ['t', 'k']
        """
        known = self.schemas[self.query.names[stream]]
        return known.append(pa.field(ROW, pa.int64())) if stream in self.numbered else known

    @property
    def bound(self) -> BoundQuery:
        """The query bound to what travels; kept from one call to the next in a process.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> import pyarrow as pa
        >>> from windjoin.arrow import place
        >>> schema = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("note", pa.string())])
        >>> schemas = {"a": schema, "b": schema}
        >>> q = wj.join(a, b, on=a["k"] == b["k"], select=[a["k"]])
        >>> plan, expected = place(q, schemas, hosts=1, strategy="single")
        >>> plan.bound.schema.names
        ['a_k']
        """
        known = _bound.get(self.identity)
        if known is None:
            known = _bound[self.identity] = self.query.bind(self.schemas)
            while len(_bound) > KEPT_BOUND:
                _bound.popitem(last=False)
        return known

    def after(self, members: tuple[int, ...]) -> Plan:
        """What is left to do with partial results over ``members``.

        Conditions on them alone are decided, and columns that only those read stay behind.
        """
        names = {self.query.names[stream] for stream in members}
        left = [c for c in self.query.on if not set(c.streams) <= names]
        decided = [c for c in self.query.on if set(c.streams) <= names]
        kept = dict(self.schemas)
        for stream in members:
            described = self.query.streams[stream]
            read = {c.name for one in left for c in one.columns() if c.stream == described.name}
            read |= {described.time, *self.bound.selected[stream]}
            own = self.schemas[described.name]
            kept[described.name] = pa.schema([field for field in own if field.name in read])
        streams = [replace(s, where=None) if s.name in names else s for s in self.query.streams]
        query = replace(self.query, on=tuple(left), streams=tuple(streams))
        identity = "-".join(map(str, [self.identity, *members]))
        called = self.called or any(one.calls for one in decided)
        return replace(self, query=query, schemas=kept, identity=identity, called=called)


_bound: OrderedDict[str, BoundQuery] = OrderedDict()


def without_memory(query: Query) -> Query:
    """The query without what it remembers of its last run: that need not travel."""
    return replace(query)


def travelling(query: Query, schemas: Mapping[str, pa.Schema]) -> dict[str, pa.Schema]:
    """The columns that the result, the conditions and the clock are made of; others stay behind.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> q = wj.join(a, b, on=a["k"] == b["k"], select=[a["x"], b["y"]])
    >>> schema = pa.schema([(name, pa.int64()) for name in ("t", "k", "x", "y", "z")])
    >>> {name: kept.names for name, kept in travelling(q, {"a": schema, "b": schema}).items()}
    {'a': ['t', 'k', 'x'], 'b': ['t', 'k', 'y']}
    """
    refuse_row_windows(query, "a join of record batches, or on Spark,")
    if query.nearest is not None:
        raise QueryError(
            "nearest= compares all partners of a row, which segments and hosts do not have in one"
            " place: use query.run, windjoin.arrow.joiner, windjoin.spark.stream, or join without"
            " it and rank the result"
        )
    if not query.sides.plain:
        raise QueryError(
            "how=, keep=, exists= and missing= ask whether rows are in a result anywhere, which"
            " hosts that share the rows do not know: use query.run, query.open,"
            " windjoin.arrow.joiner, or join, stream and start of windjoin.spark, or join without"
            " them"
        )
    bound = query.bind(schemas)  # checks names and types
    expressions = [*query.on, *(c for stream in query.streams for c in stream.conditions)]
    conditions = [column for expression in expressions for column in expression.columns()]
    chosen = {}
    for stream, shown in zip(query.streams, bound.selected, strict=True):
        used = {stream.time, *shown, *(c.name for c in conditions if c.stream == stream.name)}
        schema = schemas[stream.name]
        if ROW in used:
            raise SchemaError(
                f"stream {stream.name!r}: column {quoted([ROW])} is a name that windjoin uses"
                " itself; rename it"
            )
        chosen[stream.name] = pa.schema(
            [field.with_type(plain_type(field.type)) for field in schema if field.name in used]
        )
    return chosen


def single(query: Query, schemas: Mapping[str, pa.Schema], limits: Limits = DEFAULT) -> Plan:
    """Everything on one host.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> schema = pa.schema([("t", pa.int64()), ("k", pa.string())])
    >>> single(wj.join(a, b, on=a["k"] == b["k"]), {"a": schema, "b": schema}).hosts
    1
    """
    routes = tuple(ExchangeRoute.everything_to(0) for _ in query.names)
    kept = travelling(query, schemas)
    return Plan(without_memory(query), kept, 1, "single", routes, limits=limits)
