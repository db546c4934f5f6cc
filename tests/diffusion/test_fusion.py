"""Results of many hosts as one result."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from windjoin.diffusion.fusion import FOREVER, NEVER, Fused, Fusion

from tests.effort import examples


def block(*times: int) -> dict[str, np.ndarray]:
    return {"times": np.array(times), "arrivals": np.arange(len(times))}


def leaving(fused: Fused) -> list[tuple[int, int]]:
    return [
        (fused.handles[b], row)
        for b, row in zip(fused.block.tolist(), fused.rows.tolist(), strict=True)
    ]


@given(st.integers(0, 1 << 40), st.booleans())
@settings(max_examples=examples(80), deadline=None)
def test_every_row_leaves_once_and_in_order_if_asked(seed: int, ordered: bool) -> None:
    rng = random.Random(seed)
    marks = dict.fromkeys(range(rng.randint(1, 4)), 0)
    fusion = Fusion(marks, ordered=ordered)
    blocks: list[tuple[np.ndarray, np.ndarray]] = []
    out: list[tuple[int, int]] = []
    seen_times: list[int] = []
    low = NEVER
    for _ in range(rng.randint(0, 25)):
        host = rng.choice(list(marks))
        times = np.array([marks[host] + rng.randint(0, 9) for _ in range(rng.randint(0, 5))], int)
        arrivals = np.array([rng.randint(0, 5) for _ in times], int)
        fusion.push(host, len(blocks), times=times, arrivals=arrivals)
        blocks.append((times, arrivals))
        marks[host] += rng.randint(0, 6)
        fusion.advance(host, marks[host])
        assert fusion.watermark >= low
        low = fusion.watermark
        fused = fusion.pop()
        out += leaving(fused)
        seen_times += fused.times.tolist()
        assert not ordered or all(time < low for time in fused.times)
    last = fusion.close()
    out += leaving(last)
    seen_times += last.times.tolist()
    everything = [(b, row) for b, (times, _) in enumerate(blocks) for row in range(len(times))]
    assert sorted(out) == everything
    assert fusion.state_rows() == 0
    if ordered:
        keys = [(blocks[b][0][row], blocks[b][1][row]) for b, row in out]
        assert keys == sorted(keys)
        assert seen_times == sorted(seen_times)


def test_without_order_a_lagging_host_holds_back_nothing() -> None:
    fusion = Fusion([0, 1], ordered=False)
    fusion.push(0, 7, **block(50, 60))
    assert leaving(fusion.pop()) == [(7, 0), (7, 1)]
    assert fusion.watermark == NEVER


def test_a_host_that_lags_holds_back_only_later_rows() -> None:
    fusion = Fusion([0, 1], ordered=True)
    fusion.push(0, 7, **block(5, 50))
    fusion.advance(0, 100)
    fusion.advance(1, 20)
    assert leaving(fusion.pop()) == [(7, 0)]
    assert fusion.state_rows() == 1


def test_a_host_that_left_holds_back_nothing_and_its_rows_stay() -> None:
    fusion = Fusion([0, 1], ordered=True)
    fusion.push(1, 3, **block(8))
    fusion.push(0, 7, **block(5, 50))
    fusion.advance(0, 100)
    fusion.remove_host(1)
    assert leaving(fusion.pop()) == [(7, 0), (3, 0), (7, 1)]


def test_a_host_that_joins_counts_from_where_it_starts() -> None:
    fusion = Fusion([0], ordered=True)
    fusion.advance(0, 30)
    fusion.add_host(4, since=30)
    fusion.advance(0, 90)
    fusion.push(0, 1, **block(95))
    assert fusion.watermark == 30
    assert len(fusion.pop()) == 0
    fusion.advance(4, 200)
    fusion.advance(0, 200)
    assert leaving(fusion.pop()) == [(1, 0)]


def test_when_all_have_left_the_watermark_stays() -> None:
    fusion = Fusion([0], ordered=True)
    fusion.advance(0, 30)
    fusion.remove_host(0)
    assert fusion.watermark == 30
    assert len(fusion.close()) == 0
    assert fusion.watermark == FOREVER
