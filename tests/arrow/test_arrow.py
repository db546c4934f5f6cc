"""Plans of every strategy, carried out exchange by exchange, give what the definition says."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.arrow import Limits, Plan, pack, place, probe
from windjoin.arrow.partials import partial_schema
from windjoin.arrow.plan import ROW
from windjoin.arrow.segments import in_order
from windjoin.kernels.pairwise import common_key

from tests.api import build, schemas, table_rows
from tests.arrow_exchange import carry_out, histogram
from tests.cases import Case
from tests.compare import assert_same_results
from tests.oracle import join
from tests.strategies import cases

SMALL = Limits(
    gather_rows=9, payload_bytes=64, piece_bytes=40, message_bytes=200, block_rows=8,
    block_bytes=1 << 20, results=5,
)  # fmt: skip


@pytest.mark.parametrize("strategy", ["atr", "ctr", "psp", "groups", "single"])
@given(
    case=cases(),
    hosts=st.integers(1, 5),
    segment=st.none() | st.integers(1, 30),
    seed=st.integers(0, 2**32),
    small=st.booleans(),
)
def test_plan_gives_the_results_of_the_definition(
    strategy: str, case: Case, hosts: int, segment: int | None, seed: int, small: bool
) -> None:
    query = build(case)
    bound = query.bind(schemas(case))
    if strategy == "groups" and common_key(bound.spec) is None:
        strategy = "atr"
    if strategy == "single":
        hosts = 1
    counts = histogram(query, schemas(case), case.tables())
    unit = max(1, counts.rows.shape[1] * counts.width // 40)
    plan, _ = place(
        query,
        schemas(case),
        hosts=hosts,
        strategy=strategy,  # type: ignore[arg-type]
        histogram=counts,
        segment=None if segment is None else segment * unit,
        limits=SMALL if small else Limits(),
    )
    found = carry_out(plan, case.tables(), np.random.default_rng(seed))
    assert_same_results(table_rows(case.names, found), join(case.query, case.rows()))


@given(case=cases(), hosts=st.integers(1, 4))
def test_hosts_that_pack_only_their_own_rows_find_the_same(case: Case, hosts: int) -> None:
    query, tables = build(case), case.tables()
    counts = histogram(query, schemas(case), tables)
    plan, _ = place(query, schemas(case), hosts=hosts, strategy="atr", histogram=counts)
    found = []
    for host in range(hosts):
        segments: list[pa.RecordBatch] = []
        for stream, name in enumerate(case.names):
            rows = tables[name]
            if stream in plan.numbered:
                rows = rows.append_column(ROW, pa.array(np.arange(len(rows))))
            segments += pack(rows.to_batches(), plan, [stream], partition=stream, host=host)
        assert {h for batch in segments for h in batch.column("host").to_pylist()} <= {host}
        found += list(probe(in_order(segments), plan))
    result = pa.Table.from_batches(found, plan.bound.schema)
    assert_same_results(table_rows(case.names, result), join(case.query, case.rows()))


def test_columns_that_only_decided_conditions_read_do_not_travel_on() -> None:
    a, b, c = (wj.stream(name, time="t", window=9) for name in "abc")
    on = [a["text"] == b["text"], a["x"] < c["x"], b["y"] < c["y"]]
    query = wj.join(a, b, c, on=on, select=[a["n"], c["n"].alias("m")])
    schema = pa.schema([("t", pa.int64()), ("text", pa.string())])
    for name in "xyn":
        schema = schema.append(pa.field(name, pa.int64()))
    plan = Plan(query, dict.fromkeys("abc", schema), 1, "ctr", (), order=(0, 1, 2))
    left = plan.after((0, 1))
    assert partial_schema(left, (0, 1)).names == ["0.t", "0.x", "0.n", "1.t", "1.y"]
    assert left.schema(2) == schema
    assert left.query.on == query.on[1:]
