"""`state_bytes` is what the allocators of C and Arrow have given out for a session, within 10 %."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, gc, json, sys
import numpy as np, pyarrow as pa, pyarrow.compute as pc, windjoin as wj

ROWS, BATCH, WARM = 40_000, 1_000, 2_000
FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS]

library = ctypes.CDLL(None)
library.mallinfo2.restype = Info
library.mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD: mappings count address space beside the pages

def allocated():
    gc.collect()
    info = library.mallinfo2()
    return info.uordblks + info.hblkhd + pa.total_allocated_bytes()

random = np.random.default_rng(0)

def texts(keys):
    return pc.binary_join_element_wise("key", pc.cast(pa.array(keys), pa.string()), "-")

def images(n):
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(64), n, [None, pa.py_buffer(random.bytes(64 * n))]
    )

def batch(first, n):
    keys = random.integers(0, 2**40, n)
    return pa.table({
        "t": np.arange(first, first + n), "k": keys, "j": random.integers(0, 2**40, n),
        "x": random.random(n), "y": random.random(n), "s": texts(keys),
        "i": pa.FixedSizeListArray.from_arrays(random.integers(0, 400, 5 * n), 5),
        "v": pa.FixedSizeListArray.from_arrays(random.random(16 * n).astype("f4"), 16),
        "m": images(n),
    })

a, b, c = (wj.stream(name, time="t", window=10**9) for name in "abc")
queries = {
    "equality": wj.join(a, b, on=a["k"] == b["k"]),
    "text": wj.join(a, b, on=a["s"] == b["s"]),
    "composite key": wj.join(a, b, on=[a["k"] == b["k"], a["j"] == b["j"], a["s"] == b["s"]]),
    "band": wj.join(a, b, on=abs(a["x"] - b["x"]) <= 1e-9),
    "inequality": wj.join(a, b, on=a["x"] + 10 < b["x"]),
    "box": wj.join(a, b, on=[a["x"] + 10 < b["x"], a["y"] + 10 < b["y"]]),
    "function": wj.join(a, b, on=wj.udf(lambda x, y: x * y > 1e9, a["x"], b["x"])),
    "pairs": wj.join(a, b, on=(a["x"] > b["x"] + 10) | (a["x"] * b["x"] > 1e9)),
    "three streams": wj.join(a, b, c, on=[a["k"] == b["k"], b["j"] == c["j"]]),
    "sets": wj.join(a, b, on=wj.overlap(a["i"], b["i"]) >= 5),
    "vectors": wj.join(a, b, on=wj.l2(a["v"], b["v"]) <= 0.01),
    "images": wj.join(a, b, on=wj.mean_abs_diff(a["m"], b["m"]) <= 1),
    "itself": wj.join(a, b, on=a["k"] == b["k"], exclude_self=True),
}

def measured(query, rows_only, rows):
    before = allocated()
    with query.open(rows_only=rows_only) as session:
        for name in query.names:
            session.push(name, batch(0, 1))
        for first in range(0, rows, BATCH):  # the first stream: its rows ask empty windows
            session.push(query.names[0], batch(first, BATCH))
        return session.state_bytes / (allocated() - before)

query = queries[sys.argv[1]]
for rows_only in (True, False):
    measured(query, rows_only, WARM)  # loads and compiles all there is to load
print(json.dumps([measured(query, rows_only, ROWS) for rows_only in (True, False)]))
"""
KINDS = (
    *("equality", "text", "composite key", "band", "inequality", "box", "function", "pairs"),
    *("three streams", "itself", "sets", "vectors", "images"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_state_bytes_is_what_is_allocated(kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, kind], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for ratio in json.loads(done.stdout):
        assert 0.9 < ratio < 1.1
