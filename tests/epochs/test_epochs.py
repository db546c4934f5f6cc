"""Continuous joins cut into epochs give what the definition says, whatever happens in between."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from windjoin.epochs.routing import EARLIEST, Owners, Routes
from windjoin.kernels.pairwise import common_key

from tests.api import build, schemas, table_rows
from tests.cases import Case, StreamCase
from tests.compare import assert_same_results
from tests.effort import examples
from tests.epochs.cluster import Cluster
from tests.oracle import TIME, join
from tests.strategies import cases


def borders(case: Case, cuts: list[list[float]]) -> list[list[int]]:
    """For every stream, where its rows of each epoch end."""
    found = []
    for stream, shares in zip(case.streams, cuts, strict=False):
        rows = len(stream.stored)
        found.append([*sorted(int(share * rows) for share in shares), rows])
    return found


def not_late(case: Case, ends: list[list[int]], lateness: int) -> Case:
    """The case without rows that come too late: before their stream's watermark, which is as far
    behind the newest row of earlier epochs as may be.
    """
    kept = []
    for stream, stops in zip(case.streams, ends, strict=True):
        kind, rows, newest, first = stream.kinds[TIME], [], None, 0
        for stop in stops:
            times = [kind.meaning(row[TIME]) for row in stream.stored[first:stop]]
            for row, time in zip(stream.stored[first:stop], times, strict=True):
                late = newest is not None and time is not None and time < newest - lateness
                rows.append({**row, TIME: None} if late else row)
            known = [time for time in times if time is not None]
            newest = max([*known, *([] if newest is None else [newest])], default=None)
            first = stop
        kept.append(StreamCase(stream.name, stream.options, stream.kinds, rows))
    return replace(case, streams=tuple(kept))


def anyhow(chance: Any) -> Any:
    """A router that gives units to other slots for no reason."""

    def router(*told: Any) -> tuple[Routes, Any]:
        routes, slots = told[3], told[4]
        turn = [chance.randrange(slots) for _ in range(chance.randrange(1, 6))]
        if routes.units.kind == "groups" or chance.random() < 0.3:
            return Routes(routes.units, Owners(((EARLIEST, tuple(turn)),))), None
        if routes.units.kind == "atr" and chance.random() < 0.3:
            asked = told[0].asked
            free = asked is None or len(asked.families) != 1
            masters = range(told[0].streams) if free else asked.families[0].streams
            length = max(1, routes.units.length * chance.choice([1, 2, 3]) // 2)
            units = replace(routes.units, master=chance.choice(list(masters)), length=length)
            return Routes(units, Owners(((EARLIEST, tuple(turn)),))), None
        owners = routes.owners.from_unit(chance.randrange(-30, 60), turn)
        return Routes(routes.units, owners), None

    return router


def ticks(case: Case, lateness: int) -> Any:
    """A lateness in the unit of the oracle, as a user writes it."""
    if case.streams[0].kinds[TIME].family == "number":
        unit = "unit" in case.streams[0].options
        return f"{lateness}ms" if unit else lateness
    return f"{lateness}ns"


@settings(max_examples=examples(15))  # functions of queries take long to compile
@given(data=st.data(), case=cases(2, 4), seed=st.integers(0, 2**32), small=st.booleans())
def test_epochs_give_the_results_of_the_definition(
    data: Any, case: Case, seed: int, small: bool
) -> None:
    query, draw = build(case), data.draw
    tables = case.tables()
    epochs = draw(st.integers(1, 6))
    shares = st.lists(st.floats(0, 1), min_size=epochs - 1, max_size=epochs - 1)
    ends = borders(case, [draw(shares) for _ in case.streams])
    lateness = draw(st.sampled_from([0, 2, 30, 10**12]))
    bound = query.bind(schemas(case))
    known = [
        "auto",
        "atr",
        "ctr",
        "psp",
        "single",
        *(["groups"] if common_key(bound.spec) else []),
    ]
    given_ = {"lateness": ticks(case, lateness), "small": small}
    still = draw(st.sampled_from([None, None, None, 0, 1]))
    if still is not None:
        given_["static"] = {still: tables[case.names[still]]}
        ends[still] = ends[still][-1:] * epochs
    given_["warm_bytes"] = draw(st.sampled_from([0, 10**9, 10**9]))
    given_["memory"] = draw(st.sampled_from([None, None, 500, 4_000]))
    with tempfile.TemporaryDirectory() as root:
        cluster = Cluster(query, schemas(case), root, seed)
        found: list[pa.RecordBatch] = []
        starts = 0
        for epoch in range(epochs):
            broken = draw(st.sampled_from([None, None, None, 0, 1]))
            for until in [None] if broken is None else [broken, None]:
                if epoch == 0 or until is not None or draw(st.integers(0, 2)) == 0:
                    starts += 1
                    options = {
                        "slots": draw(st.integers(1, 4)),
                        "strategy": draw(st.sampled_from(known)),
                    }
                    cluster.start(run=f"run{starts}", **options, **given_)
                elif broken is not None:
                    starts += 1
                    cluster.run = f"run{starts}"
                firsts = [0 if not epoch else stops[epoch - 1] for stops in ends]
                rows = {
                    name: tables[name].slice(a, stops[epoch] - a)
                    for name, a, stops in zip(case.names, firsts, ends, strict=True)
                }
                if until is None and broken is not None:  # a source may give them in any order
                    order = draw(st.randoms())
                    rows = {
                        name: one.take(np.array(order.sample(range(len(one)), len(one)), np.int64))
                        for name, one in rows.items()
                    }
                if still is not None:
                    rows[case.names[still]] = None
                again = draw(st.sets(st.integers(0, 3)))
                router = draw(st.sampled_from([None, None, anyhow(draw(st.randoms()))]))
                results = cluster.epoch(
                    epoch, rows, until=until, again=sorted(again), router=router
                )
            found += results
        result = pa.Table.from_batches(found, cluster.job.plan.bound.schema)
        assert Path(root).is_dir()
    expected = not_late(case, ends, lateness)
    assert_same_results(table_rows(case.names, result), join(case.query, expected.rows()))
