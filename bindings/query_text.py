"""A query as text: of the query file that `windjoin run` takes, and of the call that makes it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from windjoin.errors import QueryError
from windjoin.query import Query


def query_text(query: Query, paths: Mapping[str, str], output: str | None = None) -> str:
    """The TOML of a query over files; ``paths`` of its streams, ``output`` of its results.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window="5s") for name in "ab")
    >>> print(query_text(wj.join(a, b, on=a["k"] == b["k"]), {"a": "a.parquet", "b": "b.csv"}))
    on = ["a[\\"k\\"] == b[\\"k\\"]"]
    closed = "both"
    <BLANKLINE>
    [streams.a]
    path = "a.parquet"
    time = "t"
    window = "5s"
    <BLANKLINE>
    [streams.b]
    path = "b.csv"
    time = "t"
    window = "5s"
    """
    for name in query.names:
        if name not in paths:
            raise QueryError(f"there is no path for stream {name!r}")
    calling = [e for e in (*query.on, *(query.select or ())) if e.calls]
    if calling:
        raise QueryError(f"`{calling[0]!r}` is code, which a query file cannot have")
    return "\n".join(_lines(query, paths, output))


def query_code(query: Query) -> str:
    """The call of `windjoin.join` that makes a query.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    >>> print(query_code(wj.join(a, b, cross=True, closed="right", exclude_self=True)))
    join(
        stream('a', time='t', window=5),
        stream('b', time='t', window=5),
        closed='right',
        cross=True,
        exclude_self=[['a', 'b']],
    )
    """
    options = [f"{name}={value}" for name, value in _options(query)]
    lines = [*map(repr, query.streams), *options]
    return "join(\n" + "".join(f"    {line},\n" for line in lines) + ")"


def _options(query: Query) -> Iterator[tuple[str, str]]:
    """What `windjoin.join` is told beside the streams, where it is not what it takes unsaid."""
    if query.on:
        yield "on", repr(list(query.on))
    if query.select is not None:
        yield "select", repr(list(query.select))
    if query.closed != "both":
        yield "closed", repr(query.closed)
    if query.direction is None and not _tied(query):
        yield "cross", "True"
    if query.exclude_self:
        yield (
            "exclude_self",
            repr([[query.names[a], query.names[b]] for a, b in query.exclude_self]),
        )
    for name in ("nearest", "direction"):
        if (value := getattr(query, name)) is not None:
            yield name, repr(value)
    if query.sides.how != "inner":
        yield "how", repr(query.sides.how)
        return
    for name in ("keep", "exists", "missing"):
        if chosen := getattr(query.sides, name):
            yield name, repr([query.names[stream] for stream in chosen])


def _tied(query: Query) -> bool:
    """Whether conditions connect all streams."""
    tied = {query.names[0]}
    for _ in query.names:
        tied |= {name for one in query.on if tied & set(one.streams) for name in one.streams}
    return len(tied) == len(query.names)


def _lines(query: Query, paths: Mapping[str, str], output: str | None) -> Iterator[str]:
    yield f"on = {json.dumps([repr(condition) for condition in query.on])}"
    if query.select is not None:
        yield f"select = {json.dumps([repr(one) for one in query.select])}"
    yield f"closed = {json.dumps(query.closed)}"
    if query.nearest is not None:
        yield f"nearest = {query.nearest}"
    if query.direction is not None:
        yield f"direction = {json.dumps(query.direction)}"
    if query.direction is None and not _tied(query):
        yield "cross = true"
    if query.exclude_self:
        pairs = [[query.names[a], query.names[b]] for a, b in query.exclude_self]
        yield f"exclude_self = {json.dumps(pairs)}"
    if query.sides.how != "inner":
        yield f"how = {json.dumps(query.sides.how)}"
    else:
        for option in ("keep", "exists", "missing"):
            if chosen := getattr(query.sides, option):
                yield f"{option} = {json.dumps([query.names[stream] for stream in chosen])}"
    if output is not None:
        yield f"output = {json.dumps(output)}"
    for stream in query.streams:
        yield ""
        plain = stream.name.isascii() and stream.name.isidentifier()
        yield f"[streams.{stream.name if plain else json.dumps(stream.name)}]"
        yield f"path = {json.dumps(paths[stream.name])}"
        yield f"time = {json.dumps(stream.time)}"
        window = stream.window if isinstance(stream.window, int) else json.dumps(str(stream.window))
        yield f"window = {window}"
        if stream.unit is not None:
            yield f"unit = {json.dumps(stream.unit)}"
        if stream.where is not None:
            yield f"where = {json.dumps(repr(stream.where))}"
