"""What rows cost on hosts of this machine, and whether simulations with that tell the truth.

Costs are measured on one host, with windows of three lengths.  Then the same join is simulated on
several hosts, and run on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import pyarrow as pa
from windjoin.diffusion.arrivals import BURST_SLOT_S
from windjoin.diffusion.cluster import REPORT_SECONDS
from windjoin.diffusion.scenario import Change, Costs, HostSpec, Scenario, StreamSpec
from windjoin.diffusion.simulator import REPORT_MS, simulate
from windjoin.diffusion.worked import cores
from windjoin.fitting import fitted
from windjoin.host_trials import HostTrial
from windjoin.query import Query

Tables = dict[str, pa.Table]

WINDOWS = (1, 2, 4)  # parts of the window, of which costs are learned
ROUNDS = 2
OVERLOAD = 1.2  # rows come so many times as fast as hosts would take them without overhead
SLOWLY = REPORT_MS / 1000.0 / REPORT_SECONDS  # so that hosts report as often as real ones


@dataclass(frozen=True, slots=True)
class Learned:
    """Costs of a join on one host, and the share of pairs of rows that match."""

    costs: Costs
    selectivity: float


@dataclass(frozen=True, slots=True)
class Compared:
    """Rows per second, simulated and real."""

    name: str
    strategy: str
    hosts: int
    learned: Learned
    simulated: float
    measured: float  # by the clock
    unhindered: float  # by processor time of the busiest host: as if nothing else ran beside it

    @property
    def ratio(self) -> float:
        """Simulated against measured by the clock."""
        return self.simulated / self.measured

    @property
    def ratio_unhindered(self) -> float:
        """Simulated against measured by processor time."""
        return self.simulated / self.unhindered


def compared(trial: HostTrial, hosts: int) -> Compared:
    """Learn what a join costs, simulate it, run it."""
    learned = learn(trial)
    query, tables = trial.query(trial.window), trial.tables(trial.rows)
    runs = [ran(query, tables, hosts, trial.strategy, trial.segment) for _ in range(ROUNDS)]
    rows = trial.streams * trial.rows
    return Compared(
        trial.name,
        trial.strategy,
        hosts,
        learned,
        simulated_rate(trial, learned, hosts),
        rows / min(run.seconds for run in runs),
        rows / min(run.busiest for run in runs),
    )


def learn(trial: HostTrial) -> Learned:
    """What a row costs, and a comparison, in milliseconds of one host."""
    rows = trial.rows
    tables = trial.tables(rows)
    hops = trial.streams - 1
    runs, found, combinations = [], 0, 0.0
    for part in WINDOWS:
        window = trial.window // part
        query = trial.query(window)
        spent, results = _least(query, tables)
        # every result has a latest row, the others are within the window before it
        within = trial.streams * rows * float(window) ** hops
        found, combinations = found + results, combinations + within
        share = (results / within) ** (1 / hops)
        elements = sum((share * window) ** hop for hop in range(hops))
        every = trial.streams * rows
        runs.append(({"row": every, "comparison": every * elements * window}, 1000.0 * spent))
    cost = fitted(runs, {}, trust=0.0)
    selectivity = (found / combinations) ** (1 / hops)
    costs = Costs(
        send_ms=0.0,
        receive_ms=cost["row"],
        probe_ms=0.0,
        compare_ms=cost["comparison"],
        link_ms=0.0,
    )
    return Learned(costs, selectivity)


def _least(query: Query, tables: Tables) -> tuple[float, int]:
    """Seconds of a processor that a join takes one host, at best, and its results."""
    runs = [ran(query, tables, 1, "single", None) for _ in range(ROUNDS)]
    return min(run.busiest for run in runs), runs[0].results


@dataclass(frozen=True, slots=True)
class Ran:
    """What a session on hosts took."""

    seconds: float  # by the clock
    busiest: float  # seconds of a processor, of the host that worked most
    results: int


def ran(query: Query, tables: Tables, hosts: int, strategy: str, segment: int | None) -> Ran:
    """Push whole tables into a session on hosts."""
    schemas = {name: table.schema for name, table in tables.items()}
    with query.open(
        schemas, hosts=hosts, strategy=strategy, segment=segment, rows_only=True
    ) as session:
        began = perf_counter()
        for name, table in tables.items():
            session.push(name, table)
        session.close()
        seconds = perf_counter() - began
        metrics: Any = session.metrics
        busiest = max(host["cpu_seconds"] for host in metrics["hosts"])
        return Ran(seconds, busiest, metrics["results"])


def simulated_rate(trial: HostTrial, learned: Learned, hosts: int) -> float:
    """Rows per second of a simulated run of the same rows."""
    scenario, slowly = scenario_of(trial, learned, hosts)
    outcome = simulate(scenario, trial.strategy)
    return slowly * outcome.offered * outcome.seconds / outcome.worked_until_s


def scenario_of(trial: HostTrial, learned: Learned, hosts: int) -> tuple[Scenario, float]:
    """A trial as it is simulated, and how many times as slowly.

    Rows come faster than hosts take them, and then no more.  It is slow so that hosts report as
    often as real ones, and takes a whole number of the slots that arrivals are drawn for.  Hosts
    that have to share processors are so much slower.
    """
    one = learned.costs
    speed = min(1.0, cores() / hosts)
    share = learned.selectivity * trial.window
    elements = sum(share**hop for hop in range(trial.streams - 1))
    work = one.receive_ms + one.compare_ms * elements * trial.window
    taken = 1000.0 * hosts * speed / work / trial.streams  # of each stream in a second
    ends = trial.rows / (OVERLOAD * taken)
    slots = max(round(SLOWLY * ends / BURST_SLOT_S), 1)
    slowly = slots * BURST_SLOT_S / ends
    ends = slots * BURST_SLOT_S
    rate = trial.rows / ends  # ticks per second, too
    names = [f"s{k}" for k in range(trial.streams)]
    scenario = Scenario(
        streams=tuple(StreamSpec(name, rate, trial.window / rate) for name in names),
        hosts=(HostSpec(hosts, cpu=speed, network=speed),),
        selectivity=learned.selectivity,
        costs=Costs(0.0, slowly * one.receive_ms, 0.0, slowly * one.compare_ms, 0.0),
        changes=tuple(Change(at_s=ends, stream=name, rate=0.0) for name in names),
        seconds=4 * ends,
        segment_s=trial.segment / rate,
        adapt_length=False,
        hot_key=0.0,
        scanned=trial.scanned,
        sample_s=ends / 10,
        events=300_000,
        name=trial.name,
    )
    return scenario, slowly
