"""A cluster in virtual time: real routers, a model of hosts, and the figures that come out.

The routers are the ones a real cluster uses; they are asked at every border and get load reports.
What hosts do between two borders runs in the compiled event loop.  Deterministic for a seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
from windjoin.diffusion import simulator_core as core
from windjoin.diffusion.adaptive import AdaptiveRouter
from windjoin.diffusion.arrays import I64
from windjoin.diffusion.arrivals import arrivals_of, rate_at, visits_per_batch
from windjoin.diffusion.choose import LoadStatistics
from windjoin.diffusion.feedback import feed_back
from windjoin.diffusion.flows import FlowMaker
from windjoin.diffusion.group_flows import group_flows
from windjoin.diffusion.holdings import Holdings
from windjoin.diffusion.load import Host
from windjoin.diffusion.meter import Meter, Reading
from windjoin.diffusion.psp import PSP, ring_segment
from windjoin.diffusion.registry import strategy as strategy_named
from windjoin.diffusion.ring_flows import NO_RING, RingFlows
from windjoin.diffusion.ring_slices import Spent
from windjoin.diffusion.router import Move, Route, Router
from windjoin.diffusion.scenario import Change, Scenario
from windjoin.diffusion.segments import Segment
from windjoin.diffusion.simulator_core import F64

REPORT_MS = int(core.SECOND)  # between two reports to the router


@dataclass(frozen=True)
class Outcome:
    """What a simulation showed.  Series have one value per sample period."""

    strategy: str
    seconds: float
    results: float
    throughput: float  # results per second
    offered: float  # rows per second that came in
    processed: float  # rows per second that were processed, whether or not they found partners
    shed: float  # share of what came to hosts that they left out
    latency_mean_ms: float
    latency_p95_ms: float
    response_mean_ms: float  # of a job: waiting and service at one host
    state_rows: float  # all hosts together, mean over time
    state_rows_peak: float  # of the fullest host at any time
    replicated_rows: float  # copies beyond the first, mean over time
    bytes_moved: float
    received_rows: float
    load_mean: float
    load_peak: float  # of the busiest host, over the whole time
    imbalance: float  # busiest host against the mean host
    backlog_ms: float  # what the busiest host still had to do at the end
    worked_until_s: float  # when the last host had done all that came to it by the end
    moved_state_rows: float
    routing_bytes: float  # of the router's own state at the end
    route_us: float  # real time to place a segment and find its path, median over borders
    series: dict[str, list[float]] = field(default_factory=dict)
    host_load: list[float] = field(default_factory=list)


def simulate(scenario: Scenario, strategy: str) -> Outcome:
    """Run one strategy through a scenario.

    >>> from windjoin.diffusion.scenario import StreamSpec
    >>> two = (StreamSpec("a", 5, 10), StreamSpec("b", 5, 10))
    >>> simulate(Scenario(two, seconds=60, matches=1.0), "single").load_mean > 0
    True
    """
    return Simulation(scenario, strategy).run()


class Simulation:
    """One strategy in one scenario, from the first arrival to the last."""

    def __init__(self, scenario: Scenario, strategy: str) -> None:
        self.scenario = scenario
        self.strategy = strategy
        specs = [spec for spec in scenario.hosts for _ in range(spec.count)]
        joining = sum(change.add_hosts for change in scenario.changes)
        self.specs = specs + [specs[-1]] * joining
        self.present = len(specs)
        self.windows = [round(spec.window_s * 1000) for spec in scenario.streams]
        arrivals = arrivals_of(scenario, visits_per_batch(scenario, strategy, len(self.specs)))
        self.holdings = Holdings(arrivals, self.windows, len(self.specs))
        self.flows = FlowMaker(scenario, self.holdings, keyed=strategy == "groups")
        self.router = self._make_router()
        self.groups = group_flows(scenario, self.router, self.holdings)
        self.is_ring = isinstance(self.router, PSP)
        self.plant = core.Plant(
            np.array([spec.cpu for spec in self.specs]),
            np.array([spec.network for spec in self.specs]),
            np.array([125.0 * (spec.bandwidth_mbps or np.inf) for spec in self.specs]),
            1000.0 * (np.inf if scenario.queue_s is None else scenario.queue_s),
            1000.0 * scenario.warm_up_s,
            scenario.costs.send_ms,
            scenario.costs.receive_ms,
            scenario.costs.link_ms,
            scenario.sample_s * 1000.0,
            arrivals.time,
            np.zeros(arrivals.time.size, np.int64),
            arrivals.rows,
            np.array([float(spec.row_bytes) for spec in scenario.streams]),
        )
        self.streams = arrivals.stream
        self.machine = self._machine(1024)
        self.entries = np.zeros((1024, core.ENTRY_COLUMNS))
        self.used = 0
        self.ring = RingFlows(scenario.costs, self.flows.match)
        self.flow_table = np.zeros((0, 3), np.int64)
        self.in_flight = scenario.in_flight or 2 * len(self.specs)
        self.room = self.in_flight + 64
        self.meter = Meter(memory=self.specs[0].memory_mb * 1e6)
        self.meter.begin(0.0)
        self.reported_at, self.done = 0, 0.0
        self.costed = np.zeros(3)
        self.samples: dict[str, list[float]] = {"state": [], "peak": [], "replicated": []}
        self.moved_state = 0.0
        self.route_seconds: list[float] = []  # per segment, of each border

    def run(self) -> Outcome:
        """Border by border to the end."""
        end, border = round(self.scenario.seconds * 1000), 0
        pending = sorted(self.scenario.changes, key=lambda change: change.at_s)
        while border < end:
            while pending and pending[0].at_s * 1000 <= border:
                self._change(pending.pop(0), border)
            self._advance(border)
            stop = min(self.router.stop(border), end)
            ring = self._route(border, stop)
            for now in [*range(self.reported_at + REPORT_MS, stop, REPORT_MS), stop]:
                self._run_until(float(now), ring)
                self._report(now)
            self.router.expire(stop)
            self.holdings.expire(border)
            self._sample(stop)
            border = stop
        return self._outcome()

    # -- set up

    def _make_router(self) -> Router:
        scenario = self.scenario
        profiles = LoadStatistics.of(scenario).profiles
        hosts = [self._host(number) for number in range(self.present)]
        options: dict[str, Any] = {}
        if self.strategy.startswith("ctr"):
            options["copies"] = scenario.copies
        length = round(scenario.segment_s * 1000)
        if self.strategy == "psp":
            length = min(length, ring_segment(max(self.windows), self.present))
            options["relocation"] = scenario.relocation
            options["ring_length"] = scenario.ring_length
            options["objective"] = scenario.objective
            options["slices"] = "rows" if scenario.smoothing else "age"
        if self.strategy.startswith("atr"):
            options["order"] = scenario.order
        if self.strategy in ("atr", "ctr", "psp", "groups"):
            options["adapt"] = scenario.adapt
        build = PSP if self.strategy == PSP.name else strategy_named(self.strategy)
        router = build(profiles, hosts, segment_length=length, **options)
        if isinstance(router, AdaptiveRouter):
            router.fixed_length = not scenario.adapt_length
        return router

    def _host(self, number: int) -> Host:
        """A host's capacity in rows per millisecond, as one host would process them alone."""
        spec, costs = self.specs[number], self.scenario.costs
        per_row = costs.receive_ms / spec.network + self._probe_ms_per_row() / spec.cpu
        memory = spec.memory_mb * 1e6
        rate = 1.0 / max(per_row, 1e-9)
        return Host(number, cpu=rate, memory=memory, network=rate * 1000.0)

    def _probe_ms_per_row(self) -> float:
        """Mean work to complete one row's combinations, in the order of the streams."""
        scenario, total = self.scenario, 0.0
        rates = sum(spec.rate for spec in scenario.streams)
        for at, spec in enumerate(scenario.streams):
            elements = 1.0
            for k, other in enumerate(scenario.streams):
                if k != at:
                    rows = other.rate * other.window_s
                    costs = scenario.costs
                    work = costs.probe_ms + costs.call_ms + costs.compare_ms * rows
                    total += spec.rate / rates * elements * work
                    elements *= scenario.selectivity_of(at, k) * rows
        return total

    def _machine(self, slots: int) -> core.Machine:
        hosts = len(self.specs)
        bins = int(np.ceil(self.scenario.seconds / self.scenario.sample_s))
        counters = np.zeros(core.COUNTERS, np.int64)
        counters[core.C_FREE] = slots
        return core.Machine(
            jobs=np.zeros((slots, core.JOB_COLUMNS)),
            free=np.arange(slots)[::-1].copy(),
            event_time=np.zeros(slots),
            event_slot=np.zeros(slots, np.int64),
            counters=counters,
            free_at=np.zeros(hosts),
            link_free_at=np.zeros(hosts),
            taken=np.zeros((hosts, int(np.ceil(self.scenario.seconds)) + 1)),
            sent=np.zeros(hosts),
            busy=np.zeros((hosts, bins)),
            throughput=np.zeros(bins),
            delay=np.zeros(bins),
            in_system=np.zeros(bins),
            latency=np.zeros(core.LATENCY_BINS),
            figures=np.zeros(core.FIGURES),
        )

    # -- one border

    def _route(self, border: int, stop: int) -> core.RingTable:
        """Ask the router; hand the event loop the flows (or the ring) of these segments."""
        segments = []
        for stream, spec in enumerate(self.scenario.streams):
            rows = round(self.holdings.rows_in(stream, border, stop))
            segments.append(Segment(stream, border, stop, rows, rows * spec.row_bytes))
        routes, took = timed_routes(self.router, segments)
        self.route_seconds.append(took / len(segments))
        for route in routes:
            self.holdings.store(route.segment.stream, route.placement)
        if self.is_ring:
            first = self._add_ring_flows((border + stop) / 2, routes)
            self._assign_flows(border, stop, first)
            return self.ring.table(self.in_flight)
        first, hosts = len(self.flow_table), routes[0].placement.hosts
        table: list[tuple[int, int, int]] = []
        if self.groups is not None:
            routes = [one for route in routes for one in self.groups.apart(route)]
        for route in routes:
            entries, visits = self.flows.entries(route, self.used)
            table.append((self.used, self.used + visits, route.segment.stream))
            self._append(entries)
            self.room = max(self.room, len(entries) + 2)
        self.flow_table = np.concatenate([self.flow_table, np.array(table, np.int64)])
        self._assign_flows(border, stop, first, hosts)
        return NO_RING

    def _append(self, rows: F64) -> None:
        while self.used + len(rows) > len(self.entries):
            self.entries = np.concatenate([self.entries, np.zeros_like(self.entries)])
        self.entries[self.used : self.used + len(rows)] = rows
        self.used += len(rows)

    def _assign_flows(self, border: int, stop: int, first: int, hosts: Sequence[int] = ()) -> None:
        """A batch takes the flow of its stream, with groups that of its stream and its host."""
        low, high = np.searchsorted(self.plant.batch_time, [border, stop])
        flow = self.streams[low:high]
        if self.groups is not None:
            flow = flow * len(hosts) + self.groups.pick(hosts, high - low)
        self.plant.batch_flow[low:high] = first + flow

    def _add_ring_flows(self, now: float, routes: Sequence[Route]) -> int:
        """What the rows of these segments meet in each slice; return the first flow's number."""
        order = np.array(getattr(self.router, "order"), np.int64)  # noqa: B009
        held = [self._slice_rows(k, now, order) for k in range(len(self.windows))]
        probed = [[hop.streams[0] for hop in route.path.hops] for route in routes]
        filled = [self.holdings.filled(k, now) for k in range(len(self.windows))]
        return self.ring.add(order, held, probed, filled)

    def _slice_rows(self, stream: int, now: float, order: I64) -> F64:
        return self.holdings.per_host(stream, now - self.windows[stream], now)[order]

    def _run_until(self, until: float, ring: core.RingTable) -> None:
        flows = self.flow_table if len(self.flow_table) else np.zeros((1, 3), np.int64)
        while not core.run(self.machine, self.plant, self.entries, flows, ring, until, self.room):
            self._grow()

    def _grow(self) -> None:
        """Twice as many slots for jobs."""
        old, slots = self.machine, len(self.machine.free)
        bigger = replace_arrays(old, max(slots, self.room))
        added = len(bigger.free) - slots
        free = old.counters[core.C_FREE]
        bigger.free[free : free + added] = np.arange(slots, slots + added)
        bigger.counters[core.C_FREE] += added
        self.machine = bigger

    def _advance(self, border: int) -> None:
        moves = self.router.advance(border)
        if isinstance(self.router, PSP):  # rows that age ride with the blocks: see `ring_job`
            for stream, held in enumerate(self.router.held):
                self.holdings.hold(stream, held)
        elif self.groups is not None:
            self.groups.settle(border)
        else:
            self._charge(moves, border)

    def _charge(self, moves: tuple[Move, ...], now: int) -> None:
        """Carry out moves of state: the hosts work for them."""
        for move in moves:
            rows = self.groups.rows_of(move) if self.groups else self.holdings.move(move)
            self.moved_state += rows
            costs = self.scenario.costs
            if move.source is not None:
                self._work(move.source, now, rows * costs.send_ms)
            self._work(move.target, now, rows * costs.receive_ms)

    def _work(self, host: int, now: float, milliseconds: float) -> None:
        core.serve(
            self.machine, self.plant, host, now, milliseconds / float(self.plant.network[host])
        )

    def _change(self, change: Change, border: int) -> None:
        for number in change.remove_hosts:
            self._charge(self.router.remove_host(number, lost=False), border)
        for _ in range(change.add_hosts):
            host = self._host(self.present)
            self.present += 1
            self._charge(self.router.add_host(host), border)

    def _report(self, border: int) -> None:
        """Tell the router what was measured, as a cluster does."""
        since = self.reported_at
        if border - since < REPORT_MS:
            return
        book, machine = self.router.book, self.machine
        backlog = np.maximum(machine.free_at - border, 0.0)
        beyond = np.maximum(machine.free_at - 1000.0 * self.scenario.seconds, 0.0)  # in no bin
        given = machine.busy.sum(axis=1) + beyond
        # whoever divides what comes asks how much that was: what waits goes nowhere else
        divides = self.is_ring or self.groups is not None
        busy, waiting = (given, 0.0 * backlog) if divides else (given - backlog, backlog)
        taken = machine.taken[:, : border // REPORT_MS].sum(axis=1)
        held = self.holdings.state(border) * float(self.plant.row_bytes.mean())
        readings = {
            n: Reading(
                busy[n] / 1000.0,
                int(taken[n]),
                int(machine.sent[n]),
                int(held[n]),
                waiting[n] / 1000.0,
            )
            for n in book.open_hosts
        }
        streams = range(len(self.windows))
        come = [round(self.holdings.rows_in(k, since, border)) for k in streams]
        done = machine.figures[core.F_EVER] - self.done
        seconds = (border - since) / 1000.0
        feed_back(
            self.router, self.meter, readings, come, ticks=border - since, now=border / 1000.0,
            throughput=float(done / seconds), rates=self._rates(border),
        )  # fmt: skip
        if self.is_ring and self.scenario.ring_length is None:
            self._tell_costs(float(done))
        self.reported_at, self.done = border, machine.figures[core.F_EVER]

    def _rates(self, now: int) -> list[float]:
        """Rows per ms: chance would make them seem to change."""
        at = np.array([now / 1000.0])
        streams = range(len(self.windows))
        return [float(rate_at(self.scenario, k, at)[0]) / 1000.0 for k in streams]

    def _tell_costs(self, rows: float) -> None:
        """Tell a ring what rows cost that it is done with, so that it is as long as pays.

        Rows that came are not it: those that wait would make all seem cheap, and the ring shorter.
        """
        now = np.append(
            self.machine.figures[[core.F_JOINING, core.F_ASIDE]], self.machine.taken.sum()
        )
        joining, aside, taken = now - self.costed
        self.costed = now
        if rows and taken:
            link = self.scenario.costs.link_ms / 1000.0
            spent = Spent(joining / rows / 1000.0, aside / taken / 1000.0, link, 1.0)
            self.router.learn_costs(spent)

    def _sample(self, now: int) -> None:
        state = self.holdings.state(now)
        self.samples["state"].append(float(state.sum()))
        self.samples["peak"].append(float(state.max()))
        self.samples["replicated"].append(float(state.sum()) - self.holdings.distinct(now))

    # -- the end

    def _outcome(self) -> Outcome:
        m, seconds = self.machine, self.scenario.seconds
        counted = seconds - self.scenario.warm_up_s
        results, jobs = m.figures[core.F_RESULTS], m.figures[core.F_JOBS]
        load = m.busy / self.plant.width
        host_load = m.busy.sum(axis=1)[: self.present] / (seconds * 1000.0)
        mean = load[: self.present].mean(axis=0)
        peak = load[: self.present].max(axis=0)
        return Outcome(
            strategy=self.strategy,
            seconds=seconds,
            results=float(results),
            throughput=float(results / counted),
            offered=float(self.plant.batch_rows.sum() / seconds),
            processed=float(m.figures[core.F_DONE_ROWS] / counted),
            shed=float(m.figures[core.F_SHED] / max(m.figures[core.F_SHED] + m.taken.sum(), 1.0)),
            latency_mean_ms=float(m.figures[core.F_LATENCY] / results) if results else 0.0,
            latency_p95_ms=percentile(m.latency, 0.95),
            response_mean_ms=float(m.figures[core.F_SOJOURN] / jobs) if jobs else 0.0,
            state_rows=float(np.mean(self.samples["state"])),
            state_rows_peak=float(np.max(self.samples["peak"])),
            replicated_rows=float(np.mean(self.samples["replicated"])),
            bytes_moved=float(m.figures[core.F_BYTES]),
            received_rows=float(m.figures[core.F_RECEIVED]),
            load_mean=float(host_load.mean()),
            load_peak=float(host_load.max()),
            imbalance=float(host_load.max() / host_load.mean()) if host_load.any() else 1.0,
            backlog_ms=float(max((m.free_at - seconds * 1000.0).max(), 0.0)),
            worked_until_s=float(m.free_at.max() / 1000.0),
            moved_state_rows=self.moved_state,
            routing_bytes=float(self.router.describe().state_bytes),
            route_us=1e6 * float(np.median(self.route_seconds)),
            series={
                "throughput": (m.throughput / self.scenario.sample_s).tolist(),
                "latency_ms": (m.delay / np.maximum(m.throughput, 1e-12)).tolist(),
                "jobs_in_system": (m.in_system / self.plant.width).tolist(),
                "load_mean": mean.tolist(),
                "load_peak": peak.tolist(),
                "state_rows": self.samples["state"],
                "replicated_rows": self.samples["replicated"],
                "state_rows_fullest": self.samples["peak"],
            },
            host_load=host_load.tolist(),
        )


def timed_routes(router: Router, segments: list[Segment]) -> tuple[list[Any], float]:
    """Route, and how many seconds of real time that took."""
    start = perf_counter()
    routes = router.route(segments)
    return list(routes), perf_counter() - start


def replace_arrays(machine: core.Machine, more: int) -> core.Machine:
    """The same machine with room for more jobs."""
    return machine._replace(
        jobs=np.concatenate([machine.jobs, np.zeros((more, core.JOB_COLUMNS))]),
        free=np.concatenate([machine.free, np.zeros(more, np.int64)]),
        event_time=np.concatenate([machine.event_time, np.zeros(more)]),
        event_slot=np.concatenate([machine.event_slot, np.zeros(more, np.int64)]),
    )


def percentile(histogram: F64, share: float) -> float:
    """The latency below which that share of the results lies, from the logarithmic histogram."""
    total = histogram.sum()
    if not total:
        return 0.0
    at = int(np.searchsorted(np.cumsum(histogram), share * total))
    return float(core.MIN_LATENCY_MS * 10 ** ((at + 1) / core.BINS_PER_DECADE))


def with_hosts(scenario: Scenario, hosts: int) -> Scenario:
    """The same scenario on so many hosts like its first."""
    return replace(scenario, hosts=(replace(scenario.hosts[0], count=hosts),))
