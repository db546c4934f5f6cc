"""Which strategy for these streams on so many hosts, by the overhead formulas, and why.

For every strategy: how much work a row makes on all hosts together (probing, results, copies
received, partial results sent), and how many hosts can share it at a time.  Their quotient says
which share of the input the cluster keeps up with; the greatest share wins, the least work decides
between equals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import exp, log

from windjoin.diffusion.scenario import Costs, Scenario
from windjoin.diffusion.segments import StreamProfile, check_profiles
from windjoin.pyx.base.figures import figure

SEGMENTS = (2, 4, 8, 16)  # per window: what segment lengths are tried
COPIES = (2, 4)
EQUALS = 0.02  # shares of the input that differ by less are equal
INSTANT = 1e-9  # seconds: the shortest run
ROUTED_BALANCE = 0.85  # mean load at which the busiest of several routed hosts is full: measured
HEADROOM = 2.0  # times the rates: what fewer hosts must keep up with to be enough
KNOWN = ("single", "groups", "atr", "ctr", "psp")


@dataclass(frozen=True, slots=True)
class LoadStatistics:
    """What is known of a query: profiles in milliseconds, and what elementary steps cost."""

    profiles: tuple[StreamProfile, ...]
    costs: Costs = field(default_factory=Costs)
    patience_s: float = 60.0  # how long a run lasts, and so until when results count
    keyed: bool = False  # all rows of a result are equal in one key: partition groups are possible
    hot_key: float = 0.0  # share of the rows that have the most frequent value of that key
    scanned: bool = True  # a probe costs by the share of the window that is at the host

    @classmethod
    def of(cls, scenario: Scenario) -> LoadStatistics:
        """What a scenario says of its streams at the start."""
        count = range(len(scenario.streams))
        profiles = tuple(
            StreamProfile(
                spec.name,
                round(spec.window_s * 1000),
                spec.rate / 1000.0,
                tuple(scenario.selectivity_of(at, k) for k in count),
                spec.row_bytes,
            )
            for at, spec in enumerate(scenario.streams)
        )
        hot = scenario.hot_key
        return cls(
            profiles,
            scenario.costs,
            keyed=hot is not None,
            hot_key=hot or 0.0,
            scanned=scenario.scanned,
        )


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one strategy would do."""

    strategy: str
    parameters: dict[str, float]
    share: float  # of the input that the cluster keeps up with
    work_ms: float  # per row, on all hosts together
    overhead_ms: float  # of it, what one host alone would not have to do
    parallel: float  # hosts that work at a time
    formula: str  # of the overhead, with its figures


@dataclass(frozen=True, slots=True)
class Choice:
    """The strategy, its parameters, and a sentence for each reason."""

    strategy: str
    parameters: dict[str, float]
    reasons: tuple[str, ...]
    estimates: tuple[Estimate, ...]
    hosts: int  # that are enough: the fastest so many do as well as all


def choose(statistics: LoadStatistics, hosts: int | Sequence[float]) -> Choice:
    """The best strategy on ``hosts``: a number of equal ones, or the speed of each.

    >>> calls = StreamProfile("calls", window=20_000, rate=0.01, selectivity=(1.0, 0.01))
    >>> trades = StreamProfile("trades", window=20_000, rate=0.01, selectivity=(0.01, 1.0))
    >>> choose(LoadStatistics((calls, trades)), hosts=1).strategy
    'single'
    """
    speeds = [1.0] * hosts if isinstance(hosts, int) else [float(speed) for speed in hosts]
    if not speeds or min(speeds) <= 0:
        raise ValueError(f"hosts is {hosts}; it must be at least 1, or speeds that are above 0")
    if statistics.patience_s < 0:
        raise ValueError(f"patience_s is {statistics.patience_s}; it must be >= 0")
    estimates = _estimates(statistics, speeds)
    equals = [e for e in estimates if e.share >= estimates[0].share * (1 - EQUALS)]
    best = min(equals, key=lambda e: (e.work_ms, KNOWN.index(e.strategy)))
    enough = _enough(statistics, speeds, best)
    return Choice(
        best.strategy, best.parameters, _reasons(best, estimates, enough), tuple(estimates), enough
    )


def _estimates(statistics: LoadStatistics, speeds: Sequence[float]) -> list[Estimate]:
    """What every strategy that is possible would do, the greatest share first."""
    model = _Model(statistics, speeds)
    possible = [model.single(), model.atr(), model.ctr(), model.psp()]
    if statistics.keyed:
        possible.append(model.groups())
    return sorted(possible, key=lambda e: -e.share)


def _enough(statistics: LoadStatistics, speeds: Sequence[float], best: Estimate) -> int:
    """The least number of the fastest hosts that keep up, at a higher rate; all if none do."""
    if best.strategy == "single":
        return 1
    busier = tuple(replace(p, rate=HEADROOM * p.rate) for p in statistics.profiles)
    asked = replace(statistics, profiles=busier)
    fastest = sorted(speeds, reverse=True)

    def share(hosts: int) -> float:
        found = _estimates(asked, fastest[:hosts])
        return next(e.share for e in found if e.strategy == best.strategy)

    wanted = 1 - EQUALS
    if share(len(fastest)) < wanted:
        return len(fastest)
    low, high = 1, len(fastest)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if share(middle) >= wanted else (middle + 1, high)
    return high


def _reasons(best: Estimate, estimates: Sequence[Estimate], enough: int) -> tuple[str, ...]:
    def line(e: Estimate) -> str:
        return (
            f"{e.strategy} keeps up with {e.share:.0%} of the input: {e.work_ms:.1f} ms of work "
            f"per row, {e.overhead_ms:.1f} of them overhead, at the speed of {e.parallel:.1f} hosts"
            f"; {e.formula}"
        )

    number = f"{enough} host{'s' * (enough > 1)} would do as well"
    return (f"{line(best)}; {number}", *(line(e) for e in estimates if e is not best))


class _Model:
    """The overhead formulas for one query and one cluster."""

    def __init__(self, statistics: LoadStatistics, speeds: Sequence[float]) -> None:
        self.profiles = check_profiles(statistics.profiles)
        self.costs = statistics.costs
        self.patience_s = statistics.patience_s
        self.hot_key, self.scanned = statistics.hot_key, statistics.scanned
        self.speeds = speeds
        self.rate = sum(profile.rate for profile in self.profiles)  # rows per ms
        self.share = [p.rate / self.rate if self.rate else 0.0 for p in self.profiles]
        streams = range(len(self.profiles))
        self.order = [
            sorted((k for k in streams if k != i), key=lambda k, i=i: (self._matches(i, k), k))  # type: ignore[misc]
            for i in streams
        ]
        self.elements = [self._elements(i) for i in streams]  # that probe, per row and hop
        self.base = sum(self.share[i] * self._base(i) for i in streams)

    def single(self) -> Estimate:
        """Everything on the fastest host: nothing travels."""
        return self._estimate("single", {}, self.costs.receive_ms, max(self.speeds), "L_C alone")

    def groups(self) -> Estimate:
        """A row goes to the host of its key and to no other; skew is what keeps hosts waiting.

        Of a window that is scanned it meets the part at that host, and all its partners in it.
        """
        even = (1.0 - self.hot_key) / len(self.speeds)
        shares = [even + self.hot_key, *[even] * (len(self.speeds) - 1)]
        results = sum(self.share[i] * self._sent(i) for i in range(len(self.profiles)))
        kept = total = 0.0
        for share, speed in zip(shares, self.speeds, strict=True):
            probing = (self.base - results) * (share if self.scanned else 1.0)
            work = probing + results + self.costs.receive_ms
            total += share * work
            needed = share * work * self.rate
            kept += share * (min(1.0, speed / needed) if needed else 1.0)
        parallel = min(sum(self.speeds), 1.0 / max(shares))
        formula = (
            f"1 / (hot + (1 - hot) / N) = {figure(1.0 / max(shares))} hosts at most,"
            f" hot = {figure(self.hot_key)}"
        )
        return Estimate("groups", {}, min(kept, 1.0), total, 0.0, parallel, formula)

    def atr(self) -> Estimate:
        """A row of another stream goes to ``1 + (W_i + W_M) / T`` hosts: Gu, Yu, Wang 2007, eq. 2.

        A master's segment is one host's work.  Where the input needs k hosts, the work that comes
        for it in ``T + W_M`` takes that host ``k T``: long segments replicate less and answer
        later, and a run may be over before all hosts have been given one.
        """
        options = []
        for seconds in lengths(self.profiles):
            for master in range(len(self.profiles)):
                copies = sum(
                    self.share[i] * self._copies(i, master, seconds)
                    for i in range(len(self.profiles))
                )
                span = seconds + self.profiles[master].window / 1000.0
                parallel = self._balanced(len(self.speeds))
                work = copies * self.costs.receive_ms + (copies - 1) * self.costs.call_ms
                needed = min((self.base + work) * self.rate, len(self.speeds))  # hosts at work
                parameters = {"segment_s": seconds}
                formula = (
                    f"equation 2: a row is at {figure(copies)} hosts, T = {self._part(seconds)},"
                    f" master {self.profiles[master].name}"
                )
                taken = max(needed * seconds, span)
                done = _within(self.patience_s, taken) / _within(self.patience_s, span)
                options.append(
                    self._estimate("atr", parameters, work, parallel, formula, done=done)
                )
        return _best(options)

    def ctr(self) -> Estimate:
        """Gu, Yu, Wang 2007, eq. 3, with ``|V| = 1 + ln(1 + m)`` hosts for m correlated segments.

        What is probed lies at as many places as there are segments in the windows, copies included,
        and hosts that none of them came to have nothing to do.  In overload what waits at one hop
        waits again at the next, behind newer rows: see `_through`.
        """
        options = []
        for seconds in lengths(self.profiles):
            for copies in COPIES:
                work = visited = 0.0
                for i in range(len(self.profiles)):
                    hop = max(self._cover(i, seconds), min(copies, len(self.speeds)))
                    sent = sum(self.elements[i][1:]) * (hop - 1) * self.costs.send_ms
                    received = sum(self.elements[i]) * hop * self.costs.receive_ms
                    called = sum(self.elements[i]) * (hop - 1) * self.costs.call_ms
                    work += self.share[i] * (sent + received + called)
                    visited += self.share[i] * hop
                places = sum(p.window / (1000.0 * seconds) + 1 for p in self.profiles)
                places *= min(copies, len(self.speeds)) / len(self.speeds)  # at each host
                parallel = self._balanced(len(self.speeds) * (1 - exp(-places)))
                parameters = {"segment_s": seconds, "copies": float(copies)}
                hops = len(self.profiles) - 1
                formula = (
                    f"equation 3: |V| = {figure(visited)} hosts at each of {hops} hops,"
                    f" T = {self._part(seconds)}, {copies} copies"
                )
                needed = (self.base + work) * self.rate / parallel
                done = _through(needed, hops) * max(needed, 1.0)
                options.append(
                    self._estimate("ctr", parameters, work, parallel, formula, done=done)
                )
        return _best(options)

    def psp(self) -> Estimate:
        """The ring: rows, as probe and as state, and partial results visit every host."""
        hosts = len(self.speeds)
        step = self.costs.send_ms + self.costs.receive_ms
        passed = sum(
            self.share[i] * (2 + sum(self.elements[i][1:])) for i in range(len(self.profiles))
        )
        called = sum(self.share[i] * sum(self.elements[i]) for i in range(len(self.profiles)))
        work = passed * (hosts - 1) * step + self.costs.receive_ms
        work += called * (hosts - 1) * self.costs.call_ms
        formula = f"L_PSP = L_C + T_s N E, N = {hosts}, E = {figure(passed)}"
        # slices are as long as hosts are fast, but every host passes on as much as the slowest one;
        # and what one host drops is lost for all those after it
        parallel, passing = self._parallel(hosts), passed * step
        if passing:
            parallel = min(parallel, min(self.speeds) * work / passing)
        needed = (self.base + work) * self.rate / parallel
        done = min(1.0, 1 / needed) ** (hosts - 1) if needed else 1.0
        return self._estimate("psp", {}, work, parallel, formula, done=done)

    # -- parts of the formulas

    def _estimate(
        self,
        strategy: str,
        parameters: dict[str, float],
        overhead: float,
        parallel: float,
        formula: str,
        *,
        done: float = 1.0,
    ) -> Estimate:
        """``done``: the share of what hosts could take that comes out in time."""
        work = self.base + overhead
        needed = work * self.rate
        share = min(1.0, parallel / needed) * done if needed else 1.0
        extra = overhead - self.costs.receive_ms
        return Estimate(strategy, parameters, share, work, extra, parallel, formula)

    def _parallel(self, hosts: float) -> float:
        """Speed of that many hosts of the cluster."""
        count = len(self.speeds)
        return sum(self.speeds) * min(hosts, count) / count

    def _balanced(self, hosts: float) -> float:
        """The same where segments are dealt out: the busiest host is full before the others."""
        return self._parallel(hosts) * (ROUTED_BALANCE if len(self.speeds) > 1 else 1.0)

    def _matches(self, stream: int, other: int) -> float:
        return self.profiles[stream].selectivity_with(other) * self.profiles[other].rows_in_window

    def _elements(self, stream: int) -> list[float]:
        counts = [1.0]
        for k in self.order[stream]:
            counts.append(counts[-1] * self._matches(stream, k))
        return counts[:-1]

    def _base(self, stream: int) -> float:
        """Probing and sending results for one row, wherever it is done."""
        total = 0.0
        for count, k in zip(self.elements[stream], self.order[stream], strict=True):
            rows = self.profiles[k].rows_in_window
            probing = self.costs.probe_ms + self.costs.call_ms + self.costs.compare_ms * rows
            total += count * probing
        return total + self._sent(stream)

    def _sent(self, stream: int) -> float:
        """Sending the results of one row."""
        results = self.elements[stream][-1] * self._matches(stream, self.order[stream][-1])
        return results * self.costs.send_ms

    def _copies(self, stream: int, master: int, seconds: float) -> float:
        if stream == master:
            return 1.0
        reach = self.profiles[stream].window + self.profiles[master].window
        return min(float(len(self.speeds)), 1 + reach / (1000.0 * seconds))

    def _cover(self, stream: int, seconds: float) -> float:
        segments = sum(self.profiles[k].window / (1000.0 * seconds) + 1 for k in self.order[stream])
        return min(float(len(self.speeds)), 1 + log(1 + segments))

    def _part(self, seconds: float) -> str:
        longest = max(profile.window for profile in self.profiles) / 1000.0
        return f"{figure(seconds / max(longest, 1e-9))} of the longest window"


def lengths(profiles: Sequence[StreamProfile]) -> list[float]:
    """What segment lengths are tried, in seconds."""
    longest = max(profile.window for profile in profiles) / 1000.0
    return [max(longest / count, 0.1) for count in SEGMENTS]


def _within(run: float, taken: float) -> float:
    """Which share of its work is done in a run, if hosts begin evenly over it and take so long.

    >>> _within(100.0, 10.0), _within(100.0, 1000.0)
    (0.95, 0.05)
    """
    run = max(run, INSTANT)
    if taken <= run:
        return 1 - taken / (2 * run)
    return run / (2 * taken)


def _through(load: float, hops: int) -> float:
    """Which share of the input comes through so many hops at hosts with that load.

    Hosts serve in order of arrival.  In overload what waits grows with time: work that came at time
    ``t`` is done at ``g t``, and makes the next hop's work then.  A host has to do the share ``1 /
    hops`` of the load for rows of each hop, and what is of hop ``h`` came ``g ** (h - 1)`` times as
    early, so ``g = load / hops * sum(g ** -(h - 1))``; what left the last hop by ``t`` came in by
    ``t / g ** hops``.

    >>> [round(_through(load, hops), 3) for load, hops in ((0.5, 3), (2.0, 1), (2.0, 2))]
    [1.0, 0.5, 0.382]
    """
    low, high = 1.0, max(load, 1.0)
    for _ in range(60):
        middle = (low + high) / 2
        asked = load / hops * sum(middle**-h for h in range(hops))
        low, high = (middle, high) if asked > middle else (low, middle)
    return float(low**-hops)


def _best(options: Sequence[Estimate]) -> Estimate:
    """The option that keeps up with most, then the one with least work."""
    top = max(option.share for option in options)
    return min((o for o in options if o.share >= top * (1 - EQUALS)), key=lambda o: o.work_ms)
