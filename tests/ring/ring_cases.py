"""Hypothesis strategies for ring cases: few times, hence many ties."""

from __future__ import annotations

from hypothesis import strategies as st
from ring_model import Case


@st.composite
def cases(draw: st.DrawFn, *, block: int = 1, changes: bool = False) -> Case:
    streams = draw(st.integers(2, 4))
    most = {2: 24, 3: 16, 4: 12}[streams]
    steps = draw(st.lists(st.sampled_from([0, 0, 1, 1, 2, 5, 30]), max_size=most))
    time, rows = 0, []
    for step in steps:
        time += step
        rows.append((time, draw(st.integers(0, streams - 1))))
    orders = {
        stream: tuple(draw(st.permutations([k for k in range(streams) if k != stream])))
        for stream in range(streams)
    }
    return Case(
        rows=sorted(rows),
        windows=tuple(draw(st.integers(0, 12)) for _ in range(streams)),
        orders=orders,
        closed=draw(st.sampled_from(["both", "right"])),
        hosts=draw(st.integers(1, 5)),
        in_flight=draw(st.integers(1, 6)),
        block=block if block == 1 else draw(st.integers(2, block)),
        seed=draw(st.integers(0, 2**32 - 1)),
        changes=changes,
    )
