"""Which site runs which part of a query: Liu, Plale 2006, section 3 and algorithm 1.

A plan is a tree of joins over streams.  It is walked in post-order; at each join a fragment is cut
off and given to the site with the *greatest* score (the paper's text says once that it is the
least; its algorithm takes the greatest)

    score = (1 - d) * W_d + (b / max_b) * W_b          (equation 1)

where ``d`` is the load of the site and ``b`` the bandwidth that it has left once the streams that
are not there have come over the shortest path.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from windjoin.diffusion.errors import RoutingError

Link = tuple[str, str]


@dataclass(frozen=True, slots=True)
class SiteState:
    """A place that can run a fragment: its load (0 to 1), bandwidth, and the streams it has."""

    name: str
    load: float
    bandwidth: float  # bytes per second
    streams: frozenset[str]


@dataclass(frozen=True, slots=True)
class Flowing:
    """What goes into a fragment: a stream, or the results of the fragment of that number."""

    name: str
    bandwidth: float  # bytes per second
    fragment: int = -1  # -1: a stream


@dataclass(frozen=True, slots=True)
class Cut:
    """A join of a plan: its inputs, and what leaves it."""

    inputs: tuple[Flowing, ...]
    output: float  # bytes per second


@dataclass(frozen=True, slots=True)
class Assignment:
    """The site of a fragment, and why: the score of every site that can have it."""

    site: str
    scores: dict[str, float]


class Network:
    """Distances between sites over links of given lengths; without any, all are one link apart."""

    def __init__(self, sites: Sequence[SiteState], links: Mapping[Link, float] | None) -> None:
        self.sites = {site.name: site for site in sites}
        self._near: dict[str, dict[str, float]] = {name: {} for name in self.sites}
        pairs = links or {(a, b): 1.0 for a in self.sites for b in self.sites if a < b}
        for (one, other), length in pairs.items():
            for end in (one, other):
                if end not in self.sites:
                    known = ", ".join(map(repr, self.sites))
                    raise RoutingError(f"links name the site {end!r}; there are {known}")
            if not length > 0:
                raise RoutingError(
                    f"the link between {one!r} and {other!r} is {length} long;"
                    " a length must be above 0"
                )
            self._near[one][other] = self._near[other][one] = float(length)
        self._far = {name: self._distances(name) for name in self.sites}

    def distance(self, one: str, other: str) -> float:
        """The length of the shortest path; infinity if there is none."""
        return self._far[one].get(other, float("inf"))

    def nearest(self, to: str, having: Sequence[str]) -> tuple[str, float]:
        """Of some sites the one that is nearest, and how far that is."""
        return min(((name, self.distance(name, to)) for name in having), key=lambda one: one[1])

    def _distances(self, start: str) -> dict[str, float]:
        found: dict[str, float] = {}
        open_ends = [(0.0, start)]
        while open_ends:
            length, name = heapq.heappop(open_ends)
            if name in found:
                continue
            found[name] = length
            for other, more in self._near[name].items():
                heapq.heappush(open_ends, (length + more, other))
        return found


def assign(
    cuts: Sequence[Cut],
    sites: Sequence[SiteState],
    links: Mapping[Link, float] | None = None,
    weights: tuple[float, float] = (0.5, 0.5),
) -> list[Assignment]:
    """A site for every join of a plan, in post-order: algorithm 1.

    Joins may share a site; neighbours that do are one fragment (`merged`).
    """
    _check(cuts, sites, weights)
    network = Network(sites, links)
    taken: list[Assignment] = []
    spent = dict.fromkeys(network.sites, 0.0)
    for cut in cuts:
        scores = {
            site.name: score
            for site in sites
            if (score := _score(cut, site, network, taken, spent, weights)) is not None
        }
        if not scores:
            raise RoutingError(
                f"no site can be reached by all of {', '.join(f.name for f in cut.inputs)};"
                " add a link"
            )
        # of equals the one that has most of its inputs, then the first one named
        order = {name: -number for number, name in enumerate(network.sites)}
        site = max(
            scores,
            key=lambda name: (scores[name], -_moved(cut, name, network, taken), order[name]),
        )
        spent[site] += _moved(cut, site, network, taken)
        taken.append(Assignment(site, scores))
    return taken


def _score(
    cut: Cut,
    site: SiteState,
    network: Network,
    taken: Sequence[Assignment],
    spent: Mapping[str, float],
    weights: tuple[float, float],
) -> float | None:
    """Equation 1; None if an input cannot come here."""
    moved = _moved(cut, site.name, network, taken)
    if moved == float("inf"):
        return None
    most = max(one.bandwidth for one in network.sites.values())
    left = max(site.bandwidth - spent[site.name] - moved, 0.0)
    return (1 - site.load) * weights[0] + (left / most if most else 0.0) * weights[1]


def _moved(cut: Cut, site: str, network: Network, taken: Sequence[Assignment]) -> float:
    """Bytes per second, times links crossed, that a join at ``site`` draws there."""
    total = 0.0
    for flowing in cut.inputs:
        _, distance = network.nearest(site, _places(flowing, network, taken))
        if distance:  # what is here costs nothing, however much it is
            total += flowing.bandwidth * distance
    return total


def _places(flowing: Flowing, network: Network, taken: Sequence[Assignment]) -> list[str]:
    """Where an input can be had."""
    if flowing.fragment >= 0:
        return [taken[flowing.fragment].site]
    return [site.name for site in network.sites.values() if flowing.name in site.streams]


def merged(cuts: Sequence[Cut], placed: Sequence[Assignment]) -> list[list[int]]:
    """Numbers of the joins that are one fragment: neighbours at one site, in post-order."""
    group = list(range(len(cuts)))
    for number, cut in enumerate(cuts):
        for flowing in cut.inputs:
            below = flowing.fragment
            if below >= 0 and placed[below].site == placed[number].site:
                old = group[below]
                group = [group[number] if g == old else g for g in group]
    return [[n for n in range(len(cuts)) if group[n] == one] for one in sorted(set(group))]


def total_score(
    cuts: Sequence[Cut], names: Sequence[str], network: Network, weights: tuple[float, float]
) -> float:
    """The sum of the scores of an assignment; minus infinity if an input cannot come."""
    taken: list[Assignment] = []
    spent = dict.fromkeys(network.sites, 0.0)
    total = 0.0
    for cut, name in zip(cuts, names, strict=True):
        score = _score(cut, network.sites[name], network, taken, spent, weights)
        if score is None:
            return -float("inf")
        spent[name] += _moved(cut, name, network, taken)
        taken.append(Assignment(name, {}))
        total += score
    return total


def _check(cuts: Sequence[Cut], sites: Sequence[SiteState], weights: tuple[float, float]) -> None:
    if not sites:
        raise RoutingError("there are no sites to choose from")
    for site in sites:
        if not 0 <= site.load <= 1:
            raise RoutingError(f"load of site {site.name!r} is {site.load}; it must be in 0..1")
        if not site.bandwidth >= 0:
            raise RoutingError(
                f"bandwidth of site {site.name!r} is {site.bandwidth}; it must be >= 0"
            )
    if len(weights) != 2 or min(weights) < 0 or abs(sum(weights) - 1) > 1e-9:
        raise RoutingError(
            f"weights={weights}: give two of 0 or more, of load and of bandwidth, that sum to 1"
        )
    for flowing in _inputs(cuts):
        if flowing.fragment < 0 and not any(flowing.name in site.streams for site in sites):
            raise RoutingError(
                f"stream {flowing.name!r} is at no site; name it in the streams of one"
            )


def _inputs(cuts: Sequence[Cut]) -> Iterator[Flowing]:
    for cut in cuts:
        yield from cut.inputs
