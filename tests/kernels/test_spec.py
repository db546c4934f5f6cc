"""What the kernels are told means what the user wrote, before any kernel runs."""

from __future__ import annotations

from hypothesis import given

from tests import spec_oracle
from tests.api import build, schemas
from tests.cases import Case
from tests.compare import assert_same_results
from tests.oracle import join
from tests.strategies import cases


@given(cases())
def test_spec_and_rows_mean_what_the_query_says(case: Case):
    from windjoin.output import table_fetch

    tables = list(case.tables().values())
    bound = build(case).bind(schemas(case))
    rows = [bound.prepare(number, table).rows for number, table in enumerate(tables)]
    got = spec_oracle.join(bound.spec_with(table_fetch(tables)), rows)
    assert_same_results(got.elements(), join(case.query, case.rows()))
