"""What users see is typed: no `Any` where there could be a type."""

from __future__ import annotations

import inspect
import json
import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
import windjoin as wj

PROGRAM = Path(__file__).parents[1] / "typing" / "program.py"
# a value of the user's, or one that only a type of the query could say
FREE = {
    "Expression.key", "Memory", "ParquetSink.about", "ParquetSink.metrics", "Plan.run",
    "Plan.as_data", "Shedding", "Site", "Tuning.options", "plan",
}  # fmt: skip


def signatures() -> Iterator[tuple[str, str]]:
    for name in wj.__all__:
        public = getattr(wj, name)
        members = [(name, public)]
        if inspect.isclass(public) and not issubclass(public, Exception):
            members += [
                (f"{name}.{key}", getattr(value, "fget", None) or getattr(value, "__func__", value))
                for key, value in vars(public).items()
                if not key.startswith("_")
            ]
        for shown, member in members:
            if callable(member):
                try:
                    yield shown, str(inspect.signature(member))
                except (TypeError, ValueError):  # compiled
                    continue


@pytest.mark.parametrize(("name", "signature"), list(signatures()))
def test_no_signature_says_any(name: str, signature: str) -> None:
    assert name in FREE or not re.search(r"\bAny\b", signature), signature


def test_the_program_that_is_checked_runs() -> None:
    """`.ci/run` has mypy and pyright check it strictly."""
    runpy.run_path(str(PROGRAM), run_name="__main__")
    steps = (PROGRAM.parents[2] / ".ci" / "run").read_text()
    assert f"mypy --strict tests/typing/{PROGRAM.name}" in steps
    assert "pyright -p tests/typing" in steps
    assert json.loads(PROGRAM.with_name("pyrightconfig.json").read_text())["typeCheckingMode"] == (
        "strict"
    )
