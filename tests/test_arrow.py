"""Plans of every strategy, carried out exchange by exchange, give what the definition says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from windjoin.arrow import Limits, place
from windjoin.arrow.placement import common_keys

from tests.api import build, schemas, table_rows
from tests.arrow_exchange import carry_out, histogram
from tests.cases import Case
from tests.compare import assert_same_results
from tests.oracle import join
from tests.strategies import cases

SMALL = Limits(
    gather_rows=9, payload_bytes=64, message_bytes=200, block_rows=8, block_bytes=1 << 20, results=5
)


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
    if strategy == "groups" and common_keys(bound.spec) is None:
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
