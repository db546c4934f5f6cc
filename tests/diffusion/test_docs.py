"""The examples of the page on diffusion run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "diffusion.md"


def test_the_examples_run_and_say_what_they_did(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    printed = []
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), {})
        printed.append(capsys.readouterr().out)
    assert len(printed) == 2
    assert "Description(strategy='atr', exact=True" in printed[0]
    assert "hosts: 4, strategy psp" in printed[1]
    assert printed[1].startswith("2\n")
