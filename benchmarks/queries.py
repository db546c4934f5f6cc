"""The workloads as `windjoin` queries: streams a, b, c with time column ``ts``."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import windjoin as wj

from benchmarks import shapes
from benchmarks.peers import letters
from benchmarks.workloads import Workload


class NotAvailable(Exception):
    """The installed windjoin has no such predicate."""


def predicate(name: str) -> Any:
    """Give ``wj.<name>``, or say that this windjoin does not have it."""
    if not hasattr(wj, name):
        raise NotAvailable(f"this windjoin has no wj.{name}")
    return getattr(wj, name)


def conditions(kind: shapes.Kind, s: list[Any], limit: float) -> list[Any]:
    """Give the conjunction that a kind of workload stands for."""
    if kind == "equality":
        return [left["k"] == right["k"] for left, right in pairwise(s)]
    if kind == "band":
        return [abs(s[0]["x"] - s[1]["x"]) <= limit]
    if kind == "overlap":
        return [predicate("overlap")(s[0]["s"], s[1]["s"]) >= int(limit)]
    if kind == "vectors":
        pairs = ((s[0], s[1]), (s[0], s[2]), (s[1], s[2]))
        return [predicate("l2")(p["v"], q["v"]) <= math.sqrt(limit) for p, q in pairs]
    if kind == "images":
        # the greatest sum of differences lies between two whole numbers; so does this quotient
        return [predicate("mean_abs_diff")(s[0]["v"], s[1]["v"]) <= (limit + 0.5) / 15_000]
    if kind == "plane":
        band = abs(s[0]["x"] - s[2]["x"]) <= limit
        return [s[0]["x"] < s[1]["x"], s[1]["y"] < s[2]["y"], band]
    return [s[0]["lo"] <= s[1]["hi"], s[1]["lo"] <= s[0]["hi"]]


def join(kind: shapes.Kind, streams: int, window: int, limit: float = 0.0) -> Any:
    """Build the query for a kind of workload."""
    named = [wj.stream(name, time="ts", window=window) for name in letters(streams)]
    return wj.join(*named, on=conditions(kind, named, limit))


def query(workload: Workload) -> Any:
    """Build the query of a named workload."""
    return join(workload.kind, workload.streams, workload.window, workload.limit)
