"""What wide columns of pushed rows point at, and when it is let go."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pyarrow as pa
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.pyx.live.contents import Contents


class Part(np.ndarray):
    """An array that can be watched."""


def test_parts_are_kept_and_counted_until_they_are_cleared() -> None:
    contents = Contents()
    parts = [np.zeros(n, np.int32).view(Part) for n in range(40)]
    watched = [weakref.ref(part) for part in parts]
    for n, part in enumerate(parts):
        contents.add(n + 1, part)
    del parts, part
    gc.collect()
    assert all(part() is not None for part in watched)
    assert contents.nbytes == 4 * sum(range(40))
    contents.clear()
    assert contents.nbytes == 0
    assert all(part() is None for part in watched)
    contents.add(1, np.zeros(3, np.int64))
    assert contents.nbytes == 24


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 12)), min_size=1, max_size=120))
def test_state_of_sets_is_that_of_the_rows_in_the_window(pushes: list[tuple[int, int]]) -> None:
    """Rows go with the push that they came in, whatever the sizes of pushes."""
    a, b = (wj.stream(name, time="t", window=10) for name in "ab")
    schema = pa.schema([("t", pa.int64()), ("s", pa.list_(pa.int64()))])
    joined, time, came = wj.join(a, b, on=wj.overlap(a["s"], b["s"]) >= 1), 0, []
    with joined.open({"a": schema, "b": schema}, rows_only=True) as session:
        for count, later in pushes:
            time += later
            came.append((time, count))
            rows = pa.table(
                {"t": [time] * count, "s": [[n, n + 1, 7] for n in range(count)]}, schema
            )
            session.push("a", rows)
            session.push("b", pa.table({"t": [time], "s": [[-1]]}, schema))
            here = sum(3 * 4 * n for at, n in came if at >= time - 10)
            window = session._live.windows[0]
            assert window.wide_rings[0].contents.nbytes == here
