"""What a query says of two streams at a time: for whoever spreads rows over hosts."""

from __future__ import annotations

from itertools import combinations

from windjoin.kernels.order import KeyClasses
from windjoin.kernels.spec import Equal, JoinSpec, Key
from windjoin.kernels.statistics import Statistics


def pair_shares(spec: JoinSpec, statistics: Statistics) -> list[list[float]]:
    """By stream and stream: the share of their pairs that every predicate on the two lets pass.

    An equality that only follows from others counts like the one of them that keeps least.
    """
    count = len(spec.streams)
    shares = [[1.0] * count for _ in range(count)]
    classes = key_classes(spec)
    for a, b in combinations(range(count), 2):
        for predicate in spec.predicates:
            if predicate.streams_read == {a, b}:
                shares[a][b] *= statistics.share(predicate)
        if not any(isinstance(p, Equal) and p.streams_read == {a, b} for p in spec.predicates):
            for keys in classes:
                if {a, b} <= {key.stream for key in keys}:
                    shares[a][b] *= min(
                        statistics.share(p)
                        for p in spec.predicates
                        if isinstance(p, Equal) and p.left in keys
                    )
        shares[b][a] = shares[a][b]
    return shares


def key_classes(spec: JoinSpec) -> list[frozenset[Key]]:
    """Keys that are equal in every result, together; those that are named first come first."""
    closure = KeyClasses()
    for predicate in spec.predicates:
        if isinstance(predicate, Equal):
            closure.unite(predicate.left, predicate.right)
    named = (closure.members(p.left) for p in spec.predicates if isinstance(p, Equal))
    return list(dict.fromkeys(named))


def common_key(spec: JoinSpec) -> tuple[int, ...] | None:
    """For every stream the number of a key that is equal in all rows of a result, if there is."""
    for keys in key_classes(spec):
        of_stream = {key.stream: key.key for key in sorted(keys, key=lambda k: (k.stream, -k.key))}
        if len(of_stream) == len(spec.streams):
            return tuple(of_stream[stream] for stream in range(len(spec.streams)))
    return None
