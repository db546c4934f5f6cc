"""Divide a query into fragments and give each to a site: algorithm 1 over its best tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from windjoin.contracting import contracted, kept_together
from windjoin.diffusion.errors import RoutingError
from windjoin.diffusion.sites import Cut, Flowing, SiteState, assign, merged
from windjoin.errors import QueryError, hint
from windjoin.fragment_query import Input, Leaf, Partial, fragment_query
from windjoin.fragments import Edge, Fragment, Site
from windjoin.plan_model import Alternative, Model
from windjoin.plan_trees import best_tree, combined_rate, needed_schema
from windjoin.query import Query
from windjoin.sizes import row_bytes

Tree = Any  # the number of a stream, or a pair of trees


def whole(query: Query, model: Model, best: Alternative, assumed: bool) -> tuple[Fragment, ...]:
    """The query as one fragment, at no site in particular."""
    inputs = tuple(Leaf(number) for number in range(len(query.streams)))
    reads = tuple(_edge(model, name, frozenset((n,))) for n, name in enumerate(query.names))
    sends = Edge("results", best.output_rate, best.output_rate * row_bytes(model.bound.schema))
    one = Fragment("results", None, inputs, reads, sends, query, True, model.bound.schemas, assumed)
    return (one,)


def divided(
    query: Query,
    model: Model,
    best: Alternative,
    sites: Mapping[str, Site],
    links: Mapping[tuple[str, str], float] | None,
    weights: tuple[float, float],
    assumed: bool,
) -> tuple[Fragment, ...]:
    """The query in as few fragments as its joins have sites: algorithm 1 over its best tree."""
    states = _states(query, sites)
    _, tree = best_tree(model)
    cuts, members = contracted(*_cuts(query, model, tree), kept_together(query))
    try:
        placed = assign(cuts, states, links, weights)
    except RoutingError as error:
        raise QueryError(f"sites: {error}") from error
    groups = merged(cuts, placed)
    of_cut = {number: at for at, group in enumerate(groups) for number in group}
    fragments = []
    for at, group in enumerate(groups):
        last = at == len(groups) - 1
        inputs = tuple(_inputs(cuts, members, group, of_cut))
        reads = tuple(_edge(model, one.name(query), one.members) for one in inputs)
        sends = _edge(model, "results" if last else f"part{at + 1}", members[group[-1]])
        fragments.append(
            Fragment(
                sends.name, placed[group[-1]].site, inputs, reads, sends, query, last,
                model.bound.schemas, assumed,
            )
        )  # fmt: skip
    return tuple(fragments)


def run_fragments(fragments: Sequence[Fragment], tables: Mapping[str, Any]) -> pa.Table:
    """All fragments one after the other in this process, each on what others sent."""
    from windjoin.inputs import as_table

    query = fragments[-1].whole
    for name in tables:
        if name not in query.names:
            raise QueryError(f"{name!r} is not a stream of this query{hint(name, query.names)}")
    have: dict[str, Any] = {name: as_table(table, name) for name, table in tables.items()}
    schemas = query.bind({name: table.schema for name, table in have.items()}).schemas
    found = pa.table({})
    for one in fragments:
        part = fragment_query(query, one.inputs, schemas, one.last)
        found = part.run({name: have[name] for name in part.names})
        have[one.name] = found
    return found


def _states(query: Query, sites: Mapping[str, Site]) -> list[SiteState]:
    states = []
    for name, site in sites.items():
        if not isinstance(site, Site):
            raise QueryError(f"sites: {name!r} is {site!r}; give a windjoin.Site")
        for stream in site.streams:
            if stream not in query.names:
                raise QueryError(
                    f"sites: site {name!r} names {stream!r}, which is no stream of the query"
                    + hint(stream, query.names)
                )
        states.append(SiteState(name, site.load, site.bandwidth, frozenset(site.streams)))
    return states


def _cuts(query: Query, model: Model, tree: Tree) -> tuple[list[Cut], list[frozenset[int]]]:
    """The joins of a tree in post-order, and the streams that each has put together."""
    cuts: list[Cut] = []
    members: list[frozenset[int]] = []

    def walk(node: Tree) -> tuple[Flowing, frozenset[int]]:
        if isinstance(node, int):
            edge = _edge(model, query.names[node], frozenset((node,)))
            return Flowing(edge.name, edge.bytes), frozenset((node,))
        ends = [walk(half) for half in node]
        together = ends[0][1] | ends[1][1]
        sent = _edge(model, "", together).bytes
        cuts.append(Cut(tuple(flowing for flowing, _ in ends), sent))
        members.append(together)
        return Flowing(f"join {len(cuts)}", sent, len(cuts) - 1), together

    walk(tree)
    return cuts, members


def _inputs(
    cuts: Sequence[Cut],
    members: Sequence[frozenset[int]],
    group: Sequence[int],
    of_cut: Mapping[int, int],
) -> Iterator[Input]:
    """What comes into the joins of one fragment from outside, in the order of the query."""
    found: list[Input] = []
    for number in group:
        for flowing in cuts[number].inputs:
            below = flowing.fragment
            if below >= 0 and below not in group:
                found.append(Partial(f"part{of_cut[below] + 1}", members[below]))
        below_all = [members[f.fragment] for f in cuts[number].inputs if f.fragment >= 0]
        direct = members[number].difference(*below_all) if below_all else members[number]
        found += [Leaf(stream) for stream in direct]
    yield from sorted(found, key=lambda one: min(one.members))


def _edge(model: Model, name: str, members: frozenset[int]) -> Edge:
    rows = combined_rate(model, members)
    names = model.bound.query.names
    size = sum(row_bytes(needed_schema(model, names[stream])) for stream in members)
    return Edge(name, rows, rows * size)
