"""A query divided over sites: fragments that are queries of their own, and exact together.

A fragment sends partial results: the columns that are still needed, the time of every member, and
their newest time.  What reads them takes them for a stream whose window is the longest of its
members', and asks that no other member comes later than each of these lets it: so the fragments
together find what the query finds, wherever it is cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from windjoin.errors import QueryError
from windjoin.fragment_query import Input, Leaf, fragment_query
from windjoin.query import Query
from windjoin.sizes import bandwidth_of


@dataclass(frozen=True, slots=True)
class Site:
    """A place where a part of a query can run.

    ``load``: how busy it is, 0 to 1.  ``bandwidth``: "80Mbit", "1Gbit" or bytes per second.
    ``streams``: names of those that are there.

    >>> import windjoin as wj
    >>> wj.Site(load=0.3, bandwidth="80Mbit", streams=["calls"]).bandwidth
    10000000.0
    """

    load: float = 0.0
    bandwidth: Any = "1Gbit"
    streams: Sequence[str] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bandwidth", bandwidth_of(self.bandwidth))
        if isinstance(self.load, bool) or not isinstance(self.load, (int, float)):
            raise QueryError(f"Site(load={self.load!r}): give how busy it is, 0 to 1")
        if isinstance(self.streams, str):
            raise QueryError(f"Site(streams={self.streams!r}): give a list of names")
        object.__setattr__(self, "streams", tuple(self.streams))


@dataclass(frozen=True, slots=True)
class Edge:
    """What goes into or out of a fragment, per second."""

    name: str
    rows: float
    bytes: float


@dataclass(frozen=True)
class Fragment:
    """A part of a query that runs at one site; ``name`` is that of the stream it sends.

    ``reads`` and ``sends`` say how much; the last fragment sends the results.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window="10s") for name in "ab")
    >>> q = wj.join(a, b, on=a["k"] == b["k"])
    >>> found = wj.plan(q, rates={"a": 100, "b": 10}, sites={"x": wj.Site(streams=["a", "b"])})
    >>> [(one.site, one.query is q) for one in found.fragments]
    [('x', True)]
    """

    name: str
    site: str | None
    inputs: tuple[Input, ...]
    reads: tuple[Edge, ...]
    sends: Edge
    whole: Query
    last: bool
    schemas: Mapping[str, pa.Schema]
    assumed: bool

    @property
    def query(self) -> Query:
        """The fragment as a query over the streams and partial results that it reads.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window="10s") for name in ("a", "b"))
        >>> query = wj.join(a, b, on=a["k"] == b["k"], select=[a["k"]])
        >>> sites = {"x": wj.Site(streams=["a"]), "y": wj.Site(streams=["b"])}
        >>> last = wj.plan(query, rates={"a": 100, "b": 10}, sites=sites).fragments[-1]
        >>> len(last.query.streams), last.query.closed
        (2, 'both')
        """
        if self.assumed and self.whole.select is None and not self.last_of_all:
            raise QueryError(
                f"fragment {self.name!r}: which columns there are is not known; give"
                " statistics= (tables or samples) to plan, or select= to join"
            )
        return fragment_query(self.whole, self.inputs, self.schemas, self.last)

    @property
    def last_of_all(self) -> bool:
        """Whether it is the whole query.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window="10s") for name in ("a", "b"))
        >>> query = wj.join(a, b, on=a["k"] == b["k"], select=[a["k"]])
        >>> sites = {"x": wj.Site(streams=["a"]), "y": wj.Site(streams=["b"])}
        >>> last = wj.plan(query, rates={"a": 100, "b": 10}, sites=sites).fragments[-1]
        >>> last.last_of_all
        True
        """
        return self.last and all(isinstance(one, Leaf) for one in self.inputs)

    def query_file(self, paths: Mapping[str, str], output: str) -> str:
        """The fragment as a query file; ``paths`` of what it reads, ``output`` of what it sends.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window="10s") for name in ("a", "b"))
        >>> query = wj.join(a, b, on=a["k"] == b["k"], select=[a["k"]])
        >>> sites = {"x": wj.Site(streams=["a"]), "y": wj.Site(streams=["b"])}
        >>> last = wj.plan(query, rates={"a": 100, "b": 10}, sites=sites).fragments[-1]
        >>> paths = {name: f"{name}.parquet" for name in last.query.names}
        >>> print(last.query_file(paths, "found.parquet").splitlines()[0])
        on = ["a[\\"k\\"] == b[\\"k\\"]"]
        """
        from windjoin.query_text import query_text

        return query_text(self.query, paths, output)
