"""A compiled function is found again by all that decides what it computes, and by nothing less."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest
import windjoin as wj
from windjoin.kernels.functions import fingerprint

SOURCE = "def near(x, y): return {body}"


def made(body: str, **names: Any) -> Any:
    scope = dict(names)
    exec(SOURCE.format(body=body), scope)
    return scope["near"]


def test_equal_functions_have_one_name():
    table = np.arange(5000.0)
    assert fingerprint(made("x < table[0]", table=table)) == fingerprint(
        made("x < table[0]", table=table.copy())
    )


def test_a_value_in_the_middle_of_a_long_array_counts():
    one, other = np.zeros(5000), np.zeros(5000)
    other[2500] = 1.0
    assert repr(one) == repr(other)
    body = "table[2500] < x"
    assert fingerprint(made(body, table=one)) != fingerprint(made(body, table=other))
    assert fingerprint(made(body, table=(one,))) != fingerprint(made(body, table=(other,)))
    assert fingerprint(made(body, table=one)) != fingerprint(made(body, table=one.reshape(50, 100)))


@pytest.mark.parametrize(("old", "new"), [(1.0, 2.0), (True, False), ((1, 2), (1, 3))])
def test_constants_of_a_module_count(old: object, new: object):
    settings = ModuleType("settings")
    settings.limit = old
    near = made("x < settings.limit", settings=settings)
    before = fingerprint(near)
    assert fingerprint(near) == before
    settings.limit = new
    assert fingerprint(near) != before


def test_compiled_functions_of_a_module_count():
    helpers = ModuleType("helpers")
    helpers.gap = numba.njit(made("x - y"))
    near = made("helpers.gap(x, y) < 1", helpers=helpers)
    before = fingerprint(near)
    helpers.gap = numba.njit(made("y - x"))
    assert fingerprint(near) != before


def test_a_changed_table_changes_the_results():
    a, b = (wj.stream(name, time="t", window=9) for name in ("a", "b"))
    rows = {"a": {"t": [1], "x": [0.5]}, "b": {"t": [2], "x": [0.5]}}
    found = []
    for limit in (0.0, 1.0):
        table = np.zeros(5000)
        table[2500] = limit
        near = made("x + y <= table[2500]", table=table)
        found.append(len(wj.join(a, b, on=wj.udf(near, a["x"], b["x"])).indices(rows)["a"]))
    assert found == [0, 1]
