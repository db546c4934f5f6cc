"""Counts over time do not depend on how rows are cut into batches and partitions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.arrow.plan import single
from windjoin.arrow.tally import TALLY, TimeCounts, histogram, tally

times = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-50, 50), max_size=30)


@given(batches=st.lists(times, max_size=4), most=st.integers(2, 20))
def test_counts_are_those_of_every_time(batches: list[list[int]], most: int) -> None:
    counts = TimeCounts(most=most)
    for batch in batches:
        counts.add(np.array(batch, np.int64))
    every = [time for batch in batches for time in batch]
    assert counts.rows.sum() == len(every)
    assert len(counts.rows) <= most
    bins, rows = np.unique([t >> counts.exponent for t in every], return_counts=True)
    found = np.flatnonzero(counts.rows)
    assert (found + counts.first).tolist() == bins.tolist()
    assert counts.rows[found].tolist() == rows.tolist()


@given(partitions=st.lists(st.lists(st.integers(-(10**9), 10**9), max_size=20), max_size=4))
def test_histogram_adds_partitions_and_streams(partitions: list[list[int]]) -> None:
    a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    schema = pa.schema([("t", pa.int64())])
    plan = single(wj.join(a, b, cross=True), {"a": schema, "b": schema})
    tallied = [
        batch
        for number, part in enumerate(partitions)
        for batch in tally(
            [pa.record_batch({"t": pa.array([*part, None], pa.int64())})], plan, number % 2
        )
    ]
    found = histogram(pa.Table.from_batches(tallied, TALLY), 2)
    streams = [[t for part in partitions[n::2] for t in part] for n in range(2)]
    if found is None:
        assert streams == [[], []]
        return
    for stream, own in enumerate(streams):
        expected = np.zeros(found.rows.shape[1])
        for time in own:
            expected[(time - found.start) // found.width] += 1
        assert found.rows[stream].tolist() == expected.tolist()
