"""Indexes of sets, vectors and bytes on rows enough to fill many blocks, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.varlen import _lists

from tests.similarity_paths import batch, on_every_instruction_set, pushes, streams

WINDOWS = (300, 500)
ROWS = 1300


def times(random: Any, rows: int = ROWS) -> Any:
    """Sorted times with ties; some 1000 rows of the other stream are in a row's windows."""
    return np.sort(random.integers(0, 1100, rows))


def in_windows(a: pa.Table, b: pa.Table) -> Any:
    """Which pairs of rows are inside the windows."""
    t, u = (rows["t"].to_numpy()[:, None].astype(np.int64) for rows in (a, b))
    ahead = t - u.T
    return (ahead <= WINDOWS[1]) & (-ahead <= WINDOWS[0])


def set_table(random: Any, popular: int, domain: int, size: int, rows: int = ROWS) -> pa.Table:
    """Sets whose popular items drift with time: rank r is item (r + popular) % domain."""
    lengths = random.integers(0, 2 * size, rows)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ranks = (domain * random.random(offsets[-1]) ** 4).astype(np.int64)
    drift = np.repeat(np.arange(rows) // 300 * popular, lengths)
    items = pa.array((ranks + drift) % domain)
    return pa.table(
        {
            "t": times(random, rows),
            "v": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items),
        }
    )


def matrix(table: pa.Table, domain: int) -> Any:
    """One row of 0 and 1 per set."""
    filled = np.zeros((table.num_rows, domain), np.float32)
    column = table["v"].combine_chunks()
    row = np.repeat(np.arange(table.num_rows), np.diff(column.offsets.to_numpy()))
    filled[row, column.values.to_numpy()] = 1
    return filled


def check(
    condition: Any, tables: tuple[pa.Table, pa.Table], holds: Any, live: bool = False
) -> None:
    """Compare what a query finds (``live``: in pushes of 100 rows) with a matrix of all pairs."""
    a, b = tables
    query = wj.join(*streams(WINDOWS), on=condition)
    if live:
        found = np.array(pushes(query, a, b, 100)).reshape(-1, 2) @ [b.num_rows, 1]
    else:
        rows = query.indices({"a": a, "b": b}, threads=1)
        found = np.sort(rows["a"] * b.num_rows + rows["b"])
    expected = np.flatnonzero(holds & in_windows(a, b))
    assert len(expected)
    assert np.array_equal(found, expected), repr(condition)


@pytest.mark.parametrize(("domain", "size"), [(40, 4), (6000, 9)], ids=["own", "shared"])
def test_bitmaps_of_sets_equal_a_matrix_product(domain: int, size: int) -> None:
    random = np.random.default_rng(domain)
    a, b = (set_table(random, domain // 8, domain, size) for _ in range(2))
    x, y = matrix(a, domain), matrix(b, domain)
    common, n, m = (x @ y.T).astype(int), x.sum(1)[:, None], y.sum(1)[None, :]
    s, u = (stream["v"] for stream in streams(WINDOWS))
    with np.errstate(invalid="ignore"):
        cases = [
            (wj.overlap(s, u) >= 2, common >= 2),
            (wj.overlap(s, u) > 4.5, common >= 5),
            (wj.jaccard(s, u) >= 0.25, common / (n + m - common) >= 0.25),
            (wj.containment(s, u) >= 0.5, common / n >= 0.5),
            (wj.containment(u, s) > 0.5, common / m > 0.5),
            (wj.cosine_sets(s, u) >= 0.375, common / np.sqrt(n * m, dtype=float) >= 0.375),
            ((wj.overlap(s, u) >= 2) & (wj.jaccard(u, s) > 0.3),
             (common >= 2) & (common / (n + m - common) > 0.3)),
        ]  # fmt: skip
    for condition, holds in cases:
        check(condition, (a, b), holds)
    check(cases[0][0], (a, b), cases[0][1], live=True)


def test_sets_of_many_items_and_of_one() -> None:
    random = np.random.default_rng(5)
    large = random.choice(300_000, 100_000, replace=False).tolist()
    sets = [large, large[:1], [*large[:50_000], -1], [-1], []]
    rows = pa.table({"t": [1] * 5, "v": pa.array(sets, pa.list_(pa.int64()))})
    a, b = streams((1, 1))
    found = wj.join(a, b, on=wj.overlap(a["v"], b["v"]) >= 1).indices({"a": rows, "b": rows})
    expected = [(i, j) for i in range(5) for j in range(5) if set(sets[i]) & set(sets[j])]
    assert sorted(zip(found["a"].tolist(), found["b"].tolist(), strict=True)) == expected
    half = wj.join(a, b, on=wj.containment(a["v"], b["v"]) >= 0.5)
    assert batch(half, rows, rows) == [
        (i, j) for i, j in expected if 2 * len(set(sets[i]) & set(sets[j])) >= len(sets[i])
    ]


def vector_table(random: Any, width: int, dtype: Any, spread: float, rows: int = ROWS) -> pa.Table:
    """Vectors around few centres."""
    centres = random.normal(0, 30, (5, width))
    values = centres[random.integers(0, 5, rows)] + random.normal(0, spread, (rows, width))
    flat = pa.array(values.astype(dtype).reshape(-1))
    return pa.table({"t": times(random, rows), "v": pa.FixedSizeListArray.from_arrays(flat, width)})


def exact(name: str, x: Any, y: Any) -> Any:
    """The measure of all pairs, component by component in doubles."""
    total = np.zeros((len(x), len(y)))
    for k in range(x.shape[1]):
        p, q = x[:, k : k + 1].astype(float), y[:, k : k + 1].astype(float).T
        if name in ("dot", "cosine"):
            total += p * q
        elif name == "linf":
            total = np.maximum(total, np.abs(p - q))
        else:
            total += np.abs(p - q) if name == "l1" else (p - q) * (p - q)
    if name == "l2":
        return np.sqrt(total)
    if name == "cosine":
        return total / (norms(x)[:, None] * norms(y)[None, :])
    return total


def norms(x: Any) -> Any:
    """Root of the sum of squares, in order."""
    total = np.zeros(len(x))
    for k in range(x.shape[1]):
        component = x[:, k].astype(float)
        total += component * component
    return np.sqrt(total)


@pytest.mark.parametrize("name", ["l2", "l1", "linf", "dot", "cosine"])
@pytest.mark.parametrize(("width", "dtype"), [(3, np.float32), (40, np.float64), (7, np.float16)])
def test_tiles_of_vectors_are_exact_at_the_threshold(name: str, width: int, dtype: Any) -> None:
    random = np.random.default_rng(width)
    a = vector_table(random, width, dtype, 9.0)
    b = vector_table(np.random.default_rng(width), width, dtype, 9.0)
    x, y = (
        t["v"].combine_chunks().values.to_numpy(zero_copy_only=False).reshape(-1, width)
        for t in (a, b)
    )
    value, inside = exact(name, x, y), in_windows(a, b)
    for share in (0.02, 0.3):
        limit = float(np.sort(value[inside])[int(share * inside.sum())])  # one pair lies on it
        s, u = streams(WINDOWS)
        for sign, holds in (("<=", value <= limit), ("<", value < limit), (">", value > limit)):
            measure = getattr(wj, name)(s["v"], u["v"])
            compared = {"<=": measure <= limit, "<": measure < limit, ">": measure > limit}
            check(compared[sign], (a, b), holds)
    check(measure <= limit, (a, b), value <= limit, live=True)


def test_similarity_meets_equality_and_bands_and_three_streams() -> None:
    random = np.random.default_rng(11)
    tables = []
    for _ in range(3):
        rows = set_table(random, 3, 30, 4, 300).rename_columns(["t", "s"])
        vectors = vector_table(random, 3, np.float32, 9.0, 300)["v"]
        rows = rows.append_column("v", vectors)
        tables.append(rows.append_column("k", pa.array(random.integers(0, 4, 300))))
    named = dict(zip("abc", tables, strict=True))
    a, b, c = (wj.stream(name, time="t", window=100) for name in "abc")
    on = [
        wj.overlap(a["s"], b["s"]) >= 2,
        wj.l2(b["v"], c["v"]) <= 60,
        wj.l2(a["v"], c["v"]) <= 90,
        a["k"] == c["k"],
        abs(a["t"] - b["t"]) <= 60,
    ]
    found = wj.join(a, b, c, on=on).indices(named)
    t = [rows["t"].to_numpy() for rows in tables]
    x = [matrix(rows.select(["t", "s"]).rename_columns(["t", "v"]), 30) for rows in tables]
    v = [rows["v"].combine_chunks().values.to_numpy().reshape(-1, 3) for rows in tables]
    k = [rows["k"].to_numpy() for rows in tables]
    ab = (x[0] @ x[1].T >= 2) & (np.abs(t[0][:, None] - t[1]) <= 60)
    bc = (exact("l2", v[1], v[2]) <= 60) & (np.abs(t[1][:, None] - t[2]) <= 100)
    ac = (exact("l2", v[0], v[2]) <= 90) & (k[0][:, None] == k[2])
    ac &= np.abs(t[0][:, None] - t[2]) <= 100
    cube = ab[:, :, None] & bc[None, :, :] & ac[:, None, :]
    expected = list(zip(*(part.tolist() for part in np.nonzero(cube)), strict=True))
    assert len(expected) > 100
    assert sorted(zip(*(found[name].tolist() for name in "abc"), strict=True)) == expected
    again: list[tuple[int, ...]] = []
    with wj.join(a, b, c, on=on).open(
        schemas={n: r.schema for n, r in named.items()}, rows_only=True
    ) as s:
        for start in range(0, 300, 20):
            for name in "bca":
                out = s.push(name, named[name].slice(start, 20))
                again += zip(*(out[n].tolist() for n in "abc"), strict=True)
    assert sorted(again) == expected


def test_live_memory_is_bounded_by_the_window() -> None:
    random = np.random.default_rng(2)
    a, b = (wj.stream(name, time="t", window=50) for name in "ab")
    on = [
        wj.overlap(a["s"], b["s"]) >= 1,
        wj.l2(a["v"], b["v"]) <= 50,
        wj.hamming(a["h"], b["h"], unit="bits") <= 8,
    ]
    sizes, found = [], 0
    with wj.join(a, b, on=on).open(rows_only=True, lateness=5) as session:
        for round_ in range(120):
            for name in "ab":
                late = random.integers(0, 5, 200)
                rows = pa.table(
                    {
                        "t": round_ * 10 + np.sort(random.integers(0, 10, 200)) - late,
                        # items never come back: codes must be given out again
                        "s": (random.integers(0, 60, (200, 3)) + 20 * round_).tolist(),
                        "v": random.normal(0, 20, (200, 4)).tolist(),
                        "h": pa.array([random.bytes(2) for _ in range(200)], pa.binary(2)),
                    }
                )
                found += len(session.push(name, rows)["a"])
            sizes.append(session.state_bytes)
    assert found > 1000
    assert max(sizes[60:]) <= 1.3 * max(sizes[20:60])


WIDE = [
    pa.array([[1, 2], [3], [4, 5, 6], [], [7]]),
    pa.array([[1.0], [2.0], [3.0], [4.0], [5.0]], pa.list_(pa.float32(), 1)),
    pa.array([[1], [2], [3], [4], [5]], pa.list_(pa.uint8(), 1)),
    pa.array([b"a", b"bc", b"d", b"", b"e"]),
    pa.array([b"a", b"b", b"c", b"d", b"e"], pa.binary(1)),
    pa.array([[("a", 1.0)], [], [("b", 2.0)], [("c", 3.0)], []], pa.map_("string", "double")),
]


@pytest.mark.parametrize("column", WIDE, ids=[str(column.type) for column in WIDE])
def test_of_a_slice_only_its_own_rows_are_read(column: Any) -> None:
    """Pushes are often slices of one large table; each must cost no more than what it holds."""
    whole, part = _lists(column), _lists(column.slice(1, 3))
    assert part.offsets[0] == 0
    assert all(len(child) == part.offsets[-1] for child in part.children)
    for mine, theirs in zip(part.children, whole.children, strict=True):
        kept = theirs[int(whole.offsets[1]) : int(whole.offsets[4])]
        assert list(map(str, mine)) == list(map(str, kept))


SCRIPT = """
import numpy as np, zlib
from tests.pyx import test_images as images, test_similarity_indexes as t
import windjoin as wj
random = np.random.default_rng(3)
s, u = t.streams(t.WINDOWS)
found = []
for width in (1, 7, 40):
    a, b = (t.vector_table(random, width, np.float32, 5.0, 700) for _ in range(2))
    for name, limit in (("l2", 20), ("l1", 50), ("linf", 9), ("dot", 99), ("cosine", 0.4)):
        found.append(t.batch(wj.join(s, u, on=getattr(wj, name)(s["v"], u["v"]) <= limit), a, b))
for domain in (30, 9000):
    a, b = (t.set_table(random, 5, domain, 6, 1500) for _ in range(2))
    for least in range(1, 8):
        found.append(t.batch(wj.join(s, u, on=wj.overlap(s["v"], u["v"]) >= least), a, b))
a, b = (t.byte_table(random, 200, 600) for _ in range(2))
for name, limit in (("l1", 9000), ("l2", 900), ("mean_abs_diff", 55)):
    found.append(t.batch(wj.join(s, u, on=getattr(wj, name)(s["v"], u["v"]) <= limit), a, b))
for channels in (2, 3, 4):
    made = [images.striped(random, 400, channels, 12, 1500) for _ in range(2)]
    a, b = (t.stored(random, rows) for rows in made)
    found.append(t.batch(wj.join(s, u, on=wj.l1(s["v"], u["v"]) <= 60000), a, b))
print([len(pairs) for pairs in found], zlib.crc32(repr(found).encode()))
"""


def byte_table(random: Any, width: int, rows: int) -> pa.Table:
    """Byte arrays around few scenes."""
    scenes = random.integers(0, 256, (4, width))
    pixels = scenes[random.integers(0, 4, rows)] + random.integers(-50, 51, (rows, width))
    return stored(random, np.clip(pixels, 0, 255).astype(np.uint8))


def stored(random: Any, images: Any) -> pa.Table:
    """Images as fixed-size binary."""
    rows, width = images.shape
    buffers = [None, pa.py_buffer(images.tobytes())]
    column = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), rows, buffers)
    return pa.table({"t": times(random, rows), "v": column})


def test_every_instruction_set_finds_the_same() -> None:
    on_every_instruction_set(SCRIPT)


def test_explain_names_the_index() -> None:
    a, b = streams(WINDOWS)
    random = np.random.default_rng(1)
    rows = set_table(random, 1, 50, 4)
    query = wj.join(a, b, on=wj.overlap(a["v"], b["v"]) >= 3)
    query.indices({"a": rows, "b": rows})
    assert "item bitmaps" in str(query.explain())
