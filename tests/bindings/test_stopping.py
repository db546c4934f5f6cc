"""Ctrl-C ends long work within a second, as a KeyboardInterrupt, and memory is given back."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

WITHIN = 1.0  # seconds
MORE = 60_000_000  # bytes that may stay with Python and Arrow
PROGRAM = """
import gc, json, os, sys
import numpy as np, psutil, pyarrow as pa, windjoin as wj

n, threads = 400_000, {threads}
a, b, c = (wj.stream(name, time="t", window=n) for name in "abc")
random = np.random.default_rng(0)

def table(rows):
    return pa.table({{
        "t": np.arange(rows), "k": random.integers(0, 50, rows), "x": random.random(rows),
    }})

def slow(x, y):
    total = 0.0
    for i in range(20_000):
        total += x * i * y
    return total < 0.0

query = {query}
rows = lambda n: {{name: table(n) for name in query.names}}
few, many = rows(10), rows(n)
query.run(few, threads=1)  # loads and compiles all there is to load
gc.collect()
before = psutil.Process().memory_info().rss
begun = lambda done, of: print("begun", flush=True)
try:
    query.run(many, threads=threads, progress=begun)
except KeyboardInterrupt as error:
    print("stopped", flush=True)
    cause = repr(error.__cause__ or error.__context__)
gc.collect()
print(json.dumps([cause, psutil.Process().memory_info().rss - before]), flush=True)
"""
QUERIES = {
    "filters behind lists": 'wj.join(a, b, on=[a["k"] == b["k"], a["k"] != b["k"]])',
    "function behind a grid": (
        'wj.join(a, b, on=[abs(a["x"] - b["x"]) <= 0.01,'
        ' wj.udf(lambda x, y: x * y > 1e9, a["x"], b["x"])])'
    ),
    "filters behind an order": 'wj.join(a, b, on=[a["x"] < b["x"], a["x"] != b["x"] + 1])',
    "a function alone": 'wj.join(a, b, on=wj.udf(lambda x, y: x * y > 1e9, a["x"], b["x"]))',
    "a slow function": 'wj.join(a, b, on=wj.udf(slow, a["x"], b["x"]))',
    "evaluated on pairs": 'wj.join(a, b, on=(a["x"] > b["x"] + 9) | (a["x"] * b["x"] > 1e9))',
    "three streams": (
        'wj.join(a, b, c, on=[a["k"] == b["k"], b["k"] == c["k"],'
        ' abs(a["x"] - c["x"]) <= 0.001, a["x"] + b["x"] + c["x"] > 1e9])'
    ),
    "many results": 'wj.join(a, b, on=a["k"] == b["k"])',
}


def stopped(query: str, threads: int) -> tuple[float, str, int]:
    """Seconds from Ctrl-C to the error, its cause, and the bytes that were not given back."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(query=query, threads=threads)],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # background jobs lack it
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "begun\n"
        time.sleep(0.2)
        running.send_signal(signal.SIGINT)
        sent = time.monotonic()
        for line in running.stdout:
            if line == "stopped\n":
                seconds = time.monotonic() - sent
        cause, kept = json.loads(line)
    assert running.returncode == 0
    return seconds, cause, kept


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_ctrl_c_stops_a_join(query: str, threads: int) -> None:
    seconds, cause, kept = stopped(query, threads)
    assert seconds < WITHIN
    assert cause == "None"
    assert kept < MORE
