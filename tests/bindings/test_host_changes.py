"""Hosts that come and go while rows expire: what they hand on is only what still counts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj

from tests.compare import assert_same_results


@pytest.mark.parametrize("seed", [54, 145, 201, 225, 285])
def test_rows_that_expired_do_not_travel_to_other_hosts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (wj.stream(name, time="t", window=w) for name, w in (("a", 300), ("b", 5)))
    query = wj.join(a, b, on=(a["x"] - b["x"]).between(-1.0, 1.0))
    schema = pa.schema({"t": pa.int64(), "x": pa.float64()})
    rows = 2000
    tables = {
        name: pa.table({"t": np.cumsum(rng.poisson(3, rows)), "x": rng.uniform(0, 1000, rows)})
        for name in "ab"
    }
    pushed, found = dict.fromkeys("ab", 0), []
    with query.open(dict.fromkeys("ab", schema), rows_only=True, hosts=1) as session:
        while min(pushed.values()) < rows:
            name = str(rng.choice([one for one in "ab" if pushed[one] < rows]))
            part = tables[name].slice(pushed[name], int(rng.integers(1, 50)))
            pushed[name] += len(part)
            found.append(session.push(name, part))
            if rng.random() < 0.05:
                if rng.random() < 0.5:
                    session.add_host()
                elif len(session.hosts) > 1:
                    session.remove_host(int(rng.choice(session.hosts)))
        found.append(session.close())
    got = [pair for part in found for pair in zip(*(part[n].tolist() for n in "ab"), strict=True)]
    whole = query.indices(tables)
    assert_same_results(got, Counter(zip(*(whole[n].tolist() for n in "ab"), strict=True)))
