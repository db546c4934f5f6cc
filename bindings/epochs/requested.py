"""What ``how=``, ``keep=``, ``exists=``, ``missing=`` and ``nearest=`` ask of a continuous join.

Slots find results of an inner join that carry the identity of rows, and their deadline: the time
after which nothing can meet them any more.  `settling` makes of these what comes out.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
from windjoin.arrow.plan import ROW, Limits, Plan, travelling, without_memory
from windjoin.arrow.routes import ExchangeRoute
from windjoin.binding import BoundQuery
from windjoin.errors import QueryError, SchemaError, quoted
from windjoin.expressions import Alias, Column, Expression
from windjoin.hows import INNER
from windjoin.presence import against, base, part
from windjoin.query import Query

ID = "windjoin_id"  # of a row: its epoch, partition and place
TIME = "windjoin_time"
OWN = frozenset({ROW, ID})  # columns of windjoin beside those of the frames
KEPT, SEMI, ANTI, COMBINED = "kept", "semi", "anti", "combined"
Schemas = Mapping[str, pa.Schema]
SubJoin = tuple[tuple[int, ...], Plan]  # streams, and their join


@dataclass(frozen=True, slots=True)
class Family:
    """What may be without partners: rows of one stream, or combinations of rows of several."""

    streams: tuple[int, ...]
    awaited: tuple[int, ...]  # once these have come past its deadline it gets no partner


@dataclass(frozen=True)
class Requested:
    """What is asked beside, or instead of, the results of an inner join."""

    query: Query  # as the user gave it
    schemas: Schemas  # of what travels, without `ID`
    form: str
    families: tuple[Family, ...]
    numbered: frozenset[int]  # streams whose rows have an `ID`
    parts: tuple[SubJoin, ...] = ()  # of combinations: streams and join

    @cached_property
    def bound(self) -> BoundQuery:
        """The query bound to what travels."""
        return self.query.bind(self.schemas)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "bound"}

    @property
    def alone(self) -> frozenset[int]:
        """Streams whose rows come out at once if their values can match nothing."""
        if self.form not in (KEPT, ANTI):
            return frozenset()
        return frozenset(family.streams[0] for family in self.families)

    @property
    def shown(self) -> int:
        """How many columns of what slots find come out."""
        return 0 if self.form == ANTI else len(self.bound.schema)


def is_asked(query: Query) -> bool:
    """Whether anything but the results of an inner join is."""
    return query.nearest is not None or not query.sides.plain


def requested_by(
    query: Query, schemas: Schemas, limits: Limits
) -> tuple[Query, Schemas, Requested | None]:
    """The inner join that slots carry out, the columns that travel for it, and what is asked."""
    if not is_asked(query):
        own = without_memory(query)
        return own, travelling(own, schemas), None
    _check_names(query, schemas)
    kept = travelling(replace(query, nearest=None, sides=INNER), schemas)
    form, families = _families(query)
    streams = range(len(query.streams))
    numbered = {s for family in families for s in family.streams}
    numbered |= set(streams) if query.nearest is not None else set()
    wide = {
        name: own.append(pa.field(ID, pa.int64())) if number in numbered else own
        for number, (name, own) in enumerate(kept.items())
    }
    asked = Requested(without_memory(query), kept, form, families, frozenset(numbered))
    if form == COMBINED:
        asked = replace(asked, parts=tuple(_parts(query, kept, wide, limits)))
    shown = [] if form == ANTI else _shown(query, kept)
    select = [*shown, *(one for family in families for one in _identity(query, family))]
    inner = replace(query, select=tuple(select), sides=INNER)
    return inner, wide, asked


def _check_names(query: Query, schemas: Schemas) -> None:
    for name in query.names:
        if name in schemas and ID in schemas[name].names:
            raise SchemaError(
                f"stream {name!r}: column {quoted([ID])} is a name that windjoin uses itself;"
                " rename it"
            )


def _families(query: Query) -> tuple[str, tuple[Family, ...]]:
    sides, count = query.sides, len(query.streams)
    everyone = tuple(range(count))
    if sides.plain:
        return KEPT, ()
    if sides.keep:
        awaited = {s: tuple(o for o in everyone if o != s) for s in sides.keep}
        if query.nearest is not None:  # a nearer row of its own stream may take its partner
            awaited = dict.fromkeys(sides.keep, everyone)
        return KEPT, tuple(Family((s,), awaited[s]) for s in sides.keep)
    given = sides.given(count)
    waits_for = everyone if query.nearest is not None else sides.missing
    form = COMBINED if sides.combined(count) else SEMI if sides.exists else ANTI
    return form, (Family(given, waits_for if sides.missing else ()),)


def _shown(query: Query, schemas: Schemas) -> list[Expression]:
    """What comes out, spelled out."""
    if query.select is not None:
        return list(query.select)
    return [Column(name, field.name) for name in query.given for field in schemas[name]]


def _identity(query: Query, family: Family) -> list[Expression]:
    """The identities of a family's rows, then their times."""
    streams = [query.streams[number] for number in family.streams]
    told = "_".join(map(str, family.streams))
    return [
        *(Alias(Column(s.name, ID), f"{ID}_{told}_{n}") for n, s in enumerate(streams)),
        *(Alias(Column(s.name, s.time), f"{TIME}_{told}_{n}") for n, s in enumerate(streams)),
    ]


def _parts(query: Query, kept: Schemas, wide: Schemas, limits: Limits) -> list[SubJoin]:
    """The joins that tell of combinations, and of those that have partners."""
    (family,) = _families(query)[1]
    asked: list[tuple[Sequence[int], list[Expression]]] = [(base(query), _shown(query, kept))]
    if query.sides.missing:
        asked.append((against(query), []))
    found: list[SubJoin] = []
    for streams, shown in asked:
        own = replace(part(query, streams), select=(*shown, *_identity(query, family)))
        schemas = {name: wide[name] for name in own.names}
        routes = tuple(ExchangeRoute.everything_to(0) for _ in own.names)
        identity = uuid.uuid4().hex
        plan = Plan(own, schemas, 1, "single", routes, limits=limits, identity=identity)
        found.append((tuple(streams), plan))
    return found


def check_strategy(asked: Requested | None, strategy: str) -> None:
    """Refuse what slots that share rows in that way cannot decide."""
    if asked is None:
        return
    if asked.query.nearest is not None and strategy in ("atr", "ctr", "psp"):
        raise QueryError(
            f'strategy="{strategy}": nearest= compares all partners of a row, which have to be in'
            ' one slot; use "groups" where a key is equal, "single", or "auto"'
        )
    if asked.form in (SEMI, COMBINED) and strategy in ("ctr", "psp"):
        raise QueryError(
            f'strategy="{strategy}" finds partners of one row in several slots in the same epoch,'
            ' so that none of them knows which comes first; use "atr", "groups" or "auto" with'
            " semi joins, exists= and combinations of missing="
        )
    if asked.form == COMBINED and strategy == "groups":
        raise QueryError(
            'strategy="groups": combinations of several streams that others fit, or do not, are'
            ' told by several joins, which need not share a key; use "atr", "single" or "auto"'
        )
