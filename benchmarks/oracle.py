"""Count and checksum of a workload by plain loops that share nothing with the product.

Every loop finds all combinations inside the windows by sorting and scanning, and materialises
nothing; times are sorted inside each stream.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.checksum import FACTORS, OFFSET, PRIME
from benchmarks.generators import I64
from benchmarks.shapes import Kind

_A, _B, _C = FACTORS
_njit = numba.njit(cache=True, nogil=True)


def oracle(kind: Kind, tables: list[pa.Table], window: int, limit: float) -> tuple[int, int]:
    """Give the number of results and their checksum."""
    ts = [t["ts"].to_numpy() for t in tables]
    columns = [{name: t[name].combine_chunks() for name in t.column_names} for t in tables]
    if kind == "equality":
        return _equality(ts, [c["k"] for c in columns], window)
    if kind == "band":
        x = [c["x"].to_numpy() for c in columns]
        return _numbers(_band(ts[0], x[0], ts[1], x[1], window, limit))
    if kind == "overlap":
        return _overlap(ts, [c["s"] for c in columns], window, int(limit))
    if kind == "vectors":
        return _vectors(ts, [c["v"] for c in columns], window, limit)
    if kind == "images":
        v = [c["v"].values.to_numpy().reshape(len(c["v"]), -1) for c in columns]
        return _numbers(_images(ts[0], v[0], ts[1], v[1], window, int(limit)))
    if kind == "plane":
        a, b, c = ({n: col[n].to_numpy() for n in ("ts", "x", "y")} for col in columns)
        return _numbers(
            _plane(a["ts"], a["x"], b["ts"], b["x"], b["y"], c["ts"], c["x"], c["y"], window, limit)
        )
    a, b = ({n: col[n].to_numpy() for n in ("ts", "lo", "hi")} for col in columns)
    order = np.argsort(b["lo"], kind="stable")
    longest = float((b["hi"] - b["lo"]).max())
    sides = (a["ts"], a["lo"], a["hi"], b["ts"], b["lo"], b["hi"], order, b["lo"][order])
    return _numbers(_intervals(*sides, longest, window))


def _numbers(found: tuple[Any, Any]) -> tuple[int, int]:
    return int(found[0]), int(found[1])


@_njit
def _worth(i: int, j: int, k: int) -> int:
    x = (i * _A + j * _B + k * _C + OFFSET) % PRIME
    return (x * x) % PRIME


def _codes(columns: list[pa.Array]) -> list[I64]:
    """Number the keys, equal keys alike over all streams; a null is -1."""
    together = pa.concat_arrays(columns).dictionary_encode().indices.fill_null(-1)
    codes = together.to_numpy().astype(np.int64)
    return np.split(codes, np.cumsum([len(c) for c in columns])[:-1])


def _equality(ts: list[I64], keys: list[pa.Array], window: int) -> tuple[int, int]:
    codes = _codes(keys)
    span = int(max(c.max(initial=-1) for c in codes)) + 1
    # rows of one key side by side, in time order; starts[k] .. starts[k + 1] are those of key k
    rows = [np.argsort(c, kind="stable") for c in codes]
    starts = [np.searchsorted(c[r], np.arange(span + 1)) for c, r in zip(codes, rows, strict=True)]
    times = [t[r] for t, r in zip(ts, rows, strict=True)]
    if len(ts) == 2:
        return _numbers(_equal2(*starts, *rows, *times, window))
    if len(ts) == 3:
        return _numbers(_equal3(*starts, *rows, *times, window))
    raise ValueError(f"the oracle joins 2 or 3 streams on equality, got {len(ts)}")


@_njit
def _equal2(sa, sb, ra, rb, ta, tb, window):  # type: ignore[no-untyped-def]
    count = 0
    total = 0
    for key in range(len(sa) - 1):
        first = sb[key]
        for p in range(sa[key], sa[key + 1]):
            while first < sb[key + 1] and tb[first] < ta[p] - window:
                first += 1
            for q in range(first, sb[key + 1]):
                if tb[q] > ta[p] + window:
                    break
                count += 1
                total += _worth(ra[p], rb[q], 0)
    return count, total


@_njit
def _equal3(sa, sb, sc, ra, rb, rc, ta, tb, tc, window):  # type: ignore[no-untyped-def]
    count = 0
    total = 0
    for key in range(len(sa) - 1):
        for p in range(sa[key], sa[key + 1]):
            for q in range(sb[key], sb[key + 1]):
                if abs(tb[q] - ta[p]) > window:
                    continue
                for r in range(sc[key], sc[key + 1]):
                    if abs(tc[r] - ta[p]) <= window and abs(tc[r] - tb[q]) <= window:
                        count += 1
                        total += _worth(ra[p], rb[q], rc[r])
    return count, total


@_njit
def _band(ta, xa, tb, xb, window, reach):  # type: ignore[no-untyped-def]
    count = 0
    total = 0
    first = 0
    for i in range(len(ta)):
        while first < len(tb) and tb[first] < ta[i] - window:
            first += 1
        for j in range(first, len(tb)):
            if tb[j] > ta[i] + window:
                break
            if abs(xa[i] - xb[j]) <= reach:
                count += 1
                total += _worth(i, j, 0)
    return count, total


def _overlap(ts: list[I64], sets: list[pa.ListArray], window: int, least: int) -> tuple[int, int]:
    (oa, ia), (ob, ib) = ((s.offsets.to_numpy(), s.values.to_numpy()) for s in sets)
    # postings: the rows of b that hold an item, in time order
    holders = np.repeat(np.arange(len(ob) - 1), np.diff(ob))
    by_item = np.argsort(ib, kind="stable")
    starts = np.searchsorted(ib[by_item], np.arange(max(ia.max(), ib.max()) + 2))
    return _numbers(_count_items(ts[0], oa, ia, ts[1], starts, holders[by_item], window, least))


@_njit
def _count_items(ta, oa, ia, tb, starts, holders, window, least):  # type: ignore[no-untyped-def]
    count = 0
    total = 0
    first = starts[:-1].copy()
    common = np.zeros(len(tb), np.int32)
    touched = np.empty(len(tb), np.int64)
    for i in range(len(ta)):
        seen = 0
        for place in range(oa[i], oa[i + 1]):
            item = ia[place]
            while first[item] < starts[item + 1] and tb[holders[first[item]]] < ta[i] - window:
                first[item] += 1
            for q in range(first[item], starts[item + 1]):
                j = holders[q]
                if tb[j] > ta[i] + window:
                    break
                if common[j] == 0:
                    touched[seen] = j
                    seen += 1
                common[j] += 1
        for q in range(seen):
            j = touched[q]
            if common[j] >= least:
                count += 1
                total += _worth(i, j, 0)
            common[j] = 0
    return count, total


def _vectors(
    ts: list[I64], lists: list[pa.FixedSizeListArray], window: int, squared: float
) -> tuple[int, int]:
    v = [x.values.to_numpy().reshape(len(x), -1).astype(np.float64) for x in lists]
    near = [
        _neighbours(ts[p], v[p], ts[q], v[q], window, squared) for p, q in ((0, 1), (0, 2), (1, 2))
    ]
    return _numbers(_triangles(*near[0], *near[1], *near[2], len(ts[2])))


def _neighbours(
    tp: I64, vp: NDArray[np.float64], tq: I64, vq: NDArray[np.float64], window: int, squared: float
) -> tuple[I64, I64]:
    """Per row of p the rows of q within the window and the radius, as offsets and rows."""
    counts, rows = [], []
    for i in range(len(tp)):
        low, high = np.searchsorted(tq, tp[i] - window), np.searchsorted(tq, tp[i] + window + 1)
        difference = vq[low:high] - vp[i]
        found = np.nonzero(np.einsum("rd,rd->r", difference, difference) <= squared)[0] + low
        counts.append(len(found))
        rows.append(found)
    return np.concatenate([[0], np.cumsum(counts)]), np.concatenate(rows)


@_njit
def _triangles(o12, n12, o13, n13, o23, n23, rows):  # type: ignore[no-untyped-def]
    count = 0
    total = 0
    near = np.zeros(rows, np.bool_)
    for i in range(len(o12) - 1):
        near[n13[o13[i] : o13[i + 1]]] = True
        for j in n12[o12[i] : o12[i + 1]]:
            for k in n23[o23[j] : o23[j + 1]]:
                if near[k]:
                    count += 1
                    total += _worth(i, j, k)
        near[n13[o13[i] : o13[i + 1]]] = False
    return count, total


@_njit
def _images(ta, va, tb, vb, window, most):  # type: ignore[no-untyped-def]
    count = 0
    total = 0
    for i in range(len(ta)):
        for j in range(len(tb)):
            if abs(ta[i] - tb[j]) > window:
                continue
            difference = 0
            for byte in range(va.shape[1]):
                difference += abs(np.int32(va[i, byte]) - np.int32(vb[j, byte]))
            if difference <= most:
                count += 1
                total += _worth(i, j, 0)
    return count, total


@_njit
def _plane(ta, xa, tb, xb, yb, tc, xc, yc, window, reach):  # type: ignore[no-untyped-def]
    count = 0
    total = 0
    first_b = 0
    first_c = 0
    for i in range(len(ta)):
        while first_b < len(tb) and tb[first_b] < ta[i] - window:
            first_b += 1
        while first_c < len(tc) and tc[first_c] < ta[i] - window:
            first_c += 1
        for k in range(first_c, len(tc)):
            if tc[k] > ta[i] + window:
                break
            if abs(xa[i] - xc[k]) > reach:
                continue
            for j in range(first_b, len(tb)):
                if tb[j] > ta[i] + window:
                    break
                if abs(tb[j] - tc[k]) <= window and xa[i] < xb[j] and yb[j] < yc[k]:
                    count += 1
                    total += _worth(i, j, k)
    return count, total


@_njit
def _intervals(ta, la, ha, tb, lb, hb, order, sorted_lb, longest, window):  # type: ignore[no-untyped-def]
    count = 0
    total = 0
    for i in range(len(ta)):
        # rounding may make lo + longest fall short of hi: start a little earlier
        for q in range(np.searchsorted(sorted_lb, la[i] - longest - 1.0), len(order)):
            j = order[q]
            if lb[j] > ha[i]:
                break
            if hb[j] >= la[i] and abs(tb[j] - ta[i]) <= window:
                count += 1
                total += _worth(i, j, 0)
    return count, total
