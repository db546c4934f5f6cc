"""The index of images and other byte arrays, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.pyx.similarity.segments import ByteSegments

from tests.pyx.test_similarity_indexes import ROWS, WINDOWS, check, in_windows, stored, times
from tests.similarity_paths import streams


@pytest.mark.parametrize("name", ["mean_abs_diff", "l1", "l2", "hamming", "hamming_bits"])
@pytest.mark.parametrize("width", [5, 300])
def test_sums_of_segments_never_lose_a_pair(name: str, width: int) -> None:
    random = np.random.default_rng(width)
    scenes = np.repeat(random.integers(0, 256, (6, width // 5)), 5, axis=1)
    tables, images = [], []
    for _ in range(2):
        pixels = scenes[random.integers(0, 6, ROWS)] + random.integers(-20, 21, (ROWS, width))
        images.append(np.clip(pixels, 0, 255).astype(np.uint8))
        tables.append(stored(random, images[-1]))
    a, b = tables
    total = np.zeros((ROWS, ROWS))
    for k in range(width):
        p, q = images[0][:, k : k + 1], images[1][:, k : k + 1].T
        difference = p.astype(float) - q
        if name == "hamming_bits":
            total += np.bitwise_count(p ^ q)
        elif name == "hamming":
            total += p != q
        else:
            total += difference**2 if name == "l2" else np.abs(difference)
    value = {"l2": np.sqrt(total), "mean_abs_diff": total / width}.get(name, total)
    inside = in_windows(a, b)
    s, u = streams(WINDOWS)
    if name == "hamming_bits":
        measure = wj.hamming(s["v"], u["v"], unit="bits")
    else:
        measure = getattr(wj, name)(s["v"], u["v"])
    for share in (0.01, 0.15, 0.6):
        limit = float(np.sort(value[inside])[int(share * inside.sum())])
        check(measure <= limit, (a, b), value <= limit)
        check(measure < limit, (a, b), value < limit)
    check(measure <= limit, (a, b), value <= limit, live=True)


def striped(random: Any, rows: int, channels: int, run: int, width: int) -> Any:
    """Images of few scenes whose pixels stay alike for ``run``, and some noise."""
    pixels = -(-width // channels)
    scenes = random.integers(0, 256, (4, -(-pixels // run), channels)).repeat(run, axis=1)
    whole = scenes[:, :pixels].reshape(4, -1)[:, :width]
    noisy = whole[random.integers(0, 4, rows)] + random.integers(-9, 10, (rows, width))
    return np.clip(noisy, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_images_of_channels_and_of_other_lengths(channels: int) -> None:
    random = np.random.default_rng(channels)
    width, rows = 64 * 5 * channels + 7, 150
    values = [striped(random, rows, channels, 20, width) for _ in range(2)]
    listed = [[bytes(row) for row in part] for part in values]
    for n, part in enumerate(listed):  # a few rows are of another length
        part[3 + n] = part[3 + n][:-1]
        part[50] = b""
    tables = [
        pa.table({"t": times(random, rows), "v": pa.array(part, pa.binary())}) for part in listed
    ]
    same = np.array([[len(x) == len(y) for y in listed[1]] for x in listed[0]])
    total = np.abs(values[0][:, None].astype(np.int64) - values[1]).sum(2)
    total[50, 50] = 0
    assert not same[3, 3]
    inside = in_windows(*tables) & same
    s, u = streams(WINDOWS)
    for share in (0.05, 0.2, 0.24, 0.26, 0.9):
        limit = int(np.sort(total[inside])[int(share * inside.sum())])
        check(wj.l1(s["v"], u["v"]) <= limit, (tables[0], tables[1]), (total <= limit) & same)
        check(wj.l1(s["v"], u["v"]) < limit, (tables[0], tables[1]), (total < limit) & same)
    mean = wj.mean_abs_diff(s["v"], u["v"]) <= limit / width
    empty = np.zeros_like(same)
    empty[50, 50] = True  # two empty rows have no mean
    check(mean, (tables[0], tables[1]), (total / width <= limit / width) & same & ~empty, live=True)


@pytest.mark.parametrize(
    ("channels", "run", "shape"), [(1, 16, (1, 16)), (3, 20, (3, 20)), (4, 24, (4, 24))]
)
def test_segments_are_as_long_as_rows_stay_alike(
    channels: int, run: int, shape: tuple[int, int]
) -> None:
    random = np.random.default_rng(run)
    rows = striped(random, 16, channels, run, 480 * channels)
    assert learned(rows) == shape
    assert learned(random.integers(0, 256, (16, 4800), np.uint8))[1] >= 48


def learned(rows: Any) -> tuple[int, int]:
    """The shape that an index gets from rows."""
    start = rows.__array_interface__["data"][0] + rows.shape[1] * np.arange(len(rows))
    records = (start, np.full(len(rows), rows.shape[1], np.int32))
    shape = ByteSegments.load(records, np.arange(len(rows))).shape
    assert shape is not None
    return shape
