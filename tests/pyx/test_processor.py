"""WINDJOIN_ISA: a path that cannot be had is an error, whoever asks first."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import windjoin as wj
from windjoin.pyx.base import cpu

UNKNOWN = "WINDJOIN_ISA='sse9' is not known; use one of plain, avx2, avx512"


def last_line_of(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "WINDJOIN_ISA": "sse9"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    return done.stderr.splitlines()[-1]


def test_a_query_refuses_an_unknown_path() -> None:
    program = """if True:
        import windjoin as wj
        a, b = (wj.stream(name, time="t", window=1) for name in "ab")
        wj.join(a, b, on=a["x"] == b["x"])
    """
    assert last_line_of(program) == f"windjoin.errors.WindjoinError: {UNKNOWN}"


@pytest.mark.parametrize("module", ["windjoin.kernels", "windjoin.kernels.batch"])
def test_kernels_refuse_to_load_with_an_unknown_path(module: str) -> None:
    assert last_line_of(f"import {module}") == f"ValueError: {UNKNOWN}"


def test_the_command_line_says_it_in_one_line() -> None:
    assert last_line_of("from windjoin.cli.main import main; raise SystemExit(main(['demo']))") == (
        f"windjoin: {UNKNOWN}"
    )


def test_a_path_of_another_processor_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDJOIN_ISA", "avx512")
    message = r"^WINDJOIN_ISA=avx512 is not supported by this CPU; it offers plain, avx2$"
    with pytest.raises(ValueError, match=message):
        cpu.check(("plain", "avx2"))
    monkeypatch.setattr("windjoin.pyx.base.cpu.supported", lambda: ("plain", "avx2"))
    a, b = (wj.stream(name, time="t", window=1) for name in "ab")
    with pytest.raises(wj.WindjoinError, match=message):
        wj.join(a, b, on=a["x"] == b["x"])


def test_every_path_on_offer_is_taken_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for path in cpu.supported():
        monkeypatch.setenv("WINDJOIN_ISA", path)
        cpu.check()
        program = "from windjoin.pyx.base.cpu import isa; print(isa())"
        shown = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
        assert shown.stdout.decode().strip() == path
