"""A compiled function is found again by all that decides what it computes, and by nothing less."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest
import windjoin as wj
from windjoin.kernels.fingerprint import fingerprint

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


def test_globals_of_functions_inside_a_function_count():
    source = "def outer(x, y):\n    def inner(z): return z < limit\n    return inner(x + y)"
    found = []
    for limit in (1.0, 2.0):
        scope: dict[str, Any] = {"limit": limit}
        exec(source, scope)
        found.append(fingerprint(scope["outer"]))
    assert found[0] != found[1]


def test_options_given_to_numba_count():
    near = made("x / y < 1")
    found = {fingerprint(near), fingerprint(numba.njit(near))}
    found |= {fingerprint(numba.njit(error_model=model)(near)) for model in ("python", "numpy")}
    assert len(found) == 4


# -- from one process to the next -----------------------------------------------------------------

PROGRAM = """
import sys
import windjoin as wj
import windjoin.kernels.compiling as compiling

def close(x, y):
    if x > 0.9:
        raise ValueError(x)
    return abs(x - y) <= 0.1

a, b = (wj.stream(name, time="t", window=9) for name in "ab")
query = wj.join(a, b, on=[wj.udf(close, a["x"], b["x"]), a["x"] < b["k"]])
rows = {"t": [1, 2, 3], "x": [0.5, 0.55, 0.95], "k": [0.9] * 3}
found = len(query.indices({"a": rows, "b": rows})["a"])
print(found, sum(len(call.overloads) for call in compiling._called.values()))
try:
    wj.join(a, b, on=wj.udf(close, a["x"], b["x"])).run({"a": rows, "b": rows})
except wj.FunctionError as error:
    print(repr(error.__cause__))
"""


def test_a_function_that_may_raise_is_compiled_once_per_machine(tmp_path: Path) -> None:
    """A second process finds the loops and what the function returns, and frees exceptions too."""
    command = [sys.executable, "-c", PROGRAM]
    environment = {**os.environ, "WINDJOIN_CACHE_DIR": str(tmp_path)}
    said = []
    for _ in range(2):
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        said.append(run.stdout.splitlines())
    assert said[0] == ["4 1", "ValueError(0.95)"]
    assert said[1] == ["4 0", "ValueError(0.95)"]
    kept = sorted(path.suffix for path in tmp_path.rglob("*") if path.is_file())
    assert kept.count(".txt") == 1
    assert kept.count(".nbi") == kept.count(".py") == 2


def test_kept_code_does_not_import_the_module_it_was_made_for(tmp_path: Path) -> None:
    function = "def close(x, y):\n    if x > 2:\n        raise ValueError(x)\n    return x < y\n"
    (tmp_path / "loud.py").write_text(f"print('imported')\n{function}")
    (tmp_path / "quiet.py").write_text(function)
    said = []
    for module in ("loud", "quiet"):
        program = PROGRAM.replace("import sys", f"import {module}")
        program = program.replace("wj.udf(close,", f"wj.udf({module}.close,")
        run = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "WINDJOIN_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        said.append(run.stdout.splitlines())
    assert said == [["imported", "3 1"], ["3 0"]]


def test_functions_need_the_compiler(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "WINDJOIN_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = '`udf(close, a["x"], b["x"])`: NUMBA_DISABLE_JIT is set; unset it to use functions'
    assert f'QueryError: {said} (File "<string>", line 6)' in run.stderr
