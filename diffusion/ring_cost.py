"""What a ring costs and how long it should be, from rates, windows and selectivities alone.

Symbols of the published model: ``T_i`` insert, ``T_p`` purge, ``T_j`` compare two rows, ``T_s``
send a row or partial result on, ``T_n`` network transit of a link; N hosts, M streams; stream k
holds ``lambda_k W_k`` rows of which a share ``S_k`` matches one probing element.

The published ``L_C`` multiplies ``T_j`` by the *outputs* of every probing.  Its own ``L_PSP`` only
follows if they are *comparisons*, ``lambda_k W_k`` per element that probes stream k, so this is
what is used here; with ``S = 1`` the two agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt

UNBOUNDED = 1 << 16  # hosts, where nothing makes a longer ring worse


@dataclass(frozen=True, slots=True)
class RingCosts:
    """Times of the elementary steps, in milliseconds."""

    insert: float = 0.01
    purge: float = 0.01
    compare: float = 0.1
    send: float = 1.0
    network: float = 1.0


@dataclass(frozen=True, slots=True)
class Probed:
    """A stream as a row of another stream finds it."""

    rate: float  # rows per second
    window: float  # seconds
    selectivity: float  # share of the pairs that match

    @property
    def rows(self) -> float:
        """Rows in the window."""
        return self.rate * self.window

    @property
    def matches(self) -> float:
        """Outputs per element that probes it."""
        return self.rows * self.selectivity


def probing_order(streams: Sequence[Probed]) -> list[int]:
    """Smallest expected output first.

    >>> probing_order([Probed(5, 10, 0.1), Probed(5, 10, 0.01)])
    [1, 0]
    """
    return sorted(range(len(streams)), key=lambda k: (streams[k].matches, k))


def elements(streams: Sequence[Probed]) -> list[float]:
    """How many elements probe each stream, per new row, in the order given; the first is the row.

    >>> elements([Probed(5, 10, 0.1), Probed(5, 10, 0.01)])
    [1.0, 5.0]
    """
    counts = [1.0]
    for stream in streams[:-1]:
        counts.append(counts[-1] * stream.matches)
    return counts


def central_latency(costs: RingCosts, streams: Sequence[Probed]) -> float:
    """``L_C``: work of one host that does everything for one row, in ms.

    >>> central_latency(RingCosts(0, 0, 0.1), [Probed(5, 10, 0.1), Probed(5, 10, 0.01)])
    30.0
    """
    compared = sum(
        count * stream.rows for count, stream in zip(elements(streams), streams, strict=True)
    )
    return costs.insert + costs.purge + costs.compare * compared


def ring_work(costs: RingCosts, streams: Sequence[Probed], hosts: int) -> float:
    """``L_PSP``: work of all hosts for one row; sending every element round is the overhead.

    For equal streams this is ``L_C (1 + T_s N / (lambda W T_j))``.
    """
    passed = hosts if hosts > 1 else 0
    return central_latency(costs, streams) + costs.send * passed * sum(elements(streams))


def output_rate(costs: RingCosts, streams: Sequence[Probed], hosts: int) -> float:
    """Results per second at saturation, ``O_S / (1/N + T_s / (lambda W T_j))``."""
    results = elements(streams)[-1] * streams[-1].matches
    return 1000.0 * results * hosts / ring_work(costs, streams, hosts)


def ring_latency(costs: RingCosts, streams: Sequence[Probed], hosts: int) -> float:
    """Time from a row's arrival to the end of its cycle in an idle ring, in ms."""
    work = ring_work(costs, streams, hosts) / hosts
    circle = (len(streams) + 1) * hosts * costs.network
    return (hosts - 1) / 2 * costs.network + max(work, circle)


def best_length_for_latency(costs: RingCosts, streams: Sequence[Probed]) -> int:
    """``min(N1, N2)``: where links begin to outweigh the work that another host takes away.

    >>> best_length_for_latency(RingCosts(compare=1.0), [Probed(50, 20, 0.01)])
    22
    """
    sent = costs.send * sum(elements(streams))
    circle = (len(streams) + 1) * costs.network
    return _balance(central_latency(costs, streams), sent, circle, costs.network)


def _balance(central: float, sent: float, circle: float, network: float) -> int:
    """``min(N1, N2)`` with ``central / N1 + sent = circle N1``, ``(N2 - 1) / 2 = central / N2``."""
    if not network:
        return UNBOUNDED
    n1 = (sent + sqrt(sent * sent + 4 * circle * central)) / (2 * circle)
    n2 = (1 + sqrt(1 + 8 * central / network)) / 2
    return max(1, int(min(n1, n2)))


def best_length_for_rate(
    costs: RingCosts, streams: Sequence[Probed], *, efficiency: float = 0.5
) -> int:
    """The longest ring whose hosts still spend that share of their time on comparing.

    The output rate grows with every host, ever more slowly, towards ``lambda W T_j / T_s`` times
    that of one host; a length without a price has no best value.

    >>> best_length_for_rate(RingCosts(0, 0, 0.1), [Probed(50, 20, 0.01)])
    100
    """
    if not 0 < efficiency < 1:
        raise ValueError(f"efficiency is {efficiency}; it must be between 0 and 1")
    sent = costs.send * sum(elements(streams))
    central = central_latency(costs, streams)
    return max(1, int(central / sent * (1 / efficiency - 1) + 1e-9)) if sent else UNBOUNDED


def ring_lengths(
    costs: RingCosts, streams: Sequence[Probed], hosts: int, *, objective: str = "latency"
) -> dict[int, int]:
    """Ring length for every stream's state where streams are not alike.

    In probing order, each with the elements that reach it, so that a small window is not cut into
    more slices than pay; no stream is cut into more than there are hosts.

    >>> ring_lengths(RingCosts(), [Probed(1, 2, 0.5), Probed(50, 20, 0.01)], 30)
    {0: 1, 1: 7}
    """
    if objective not in ("latency", "rate"):
        raise ValueError(f"objective is {objective!r}; it must be 'latency' or 'rate'")
    order = probing_order(streams)
    lengths = {}
    for k, count in zip(order, elements([streams[k] for k in order]), strict=True):
        if objective == "rate":
            best = best_length_for_rate(costs, [streams[k]])
        else:
            work = count * costs.compare * streams[k].rows
            best = _balance(work, count * costs.send, 2 * costs.network, costs.network)
        lengths[k] = min(hosts, best)
    return dict(sorted(lengths.items()))


def least_bandwidth(
    costs: RingCosts, streams: Sequence[Probed], hosts: int, row_bytes: int
) -> float:
    """Bytes per second a link needs so that hosts never wait for it.

    >>> least_bandwidth(RingCosts(compare=0.1), [Probed(50, 20, 0.01)], 10, 100)
    10000.0
    """
    slice_work = costs.compare * min(stream.rows for stream in streams) / hosts
    return 1000.0 * row_bytes / slice_work if slice_work else inf
