"""The catalogue of errors in ``docs/errors.md`` is complete."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import windjoin as wj

ROOT = Path(__file__).parents[2]
CATALOGUE = ROOT / "docs" / "errors.md"
MODEL = (
    "durations", "expressions", "streams", "query", "constants", "checking", "pairs", "evaluate",
    "functions", "operands", "lowering", "times", "output", "stream_rows", "binding", "inputs",
    "run", "session", "watermarks", "similarity", "measures", "varlen", "strategies", "clustered",
    "java", "memory", "streamed", "late", "own_times", "held", "waiting", "signatures", "hows",
    "shedding", "shedding_session", "asof", "row_windows", "sinks", "datasets",
    "result_files",
)  # fmt: skip
MODEL += tuple(
    path.relative_to(ROOT / "bindings").with_suffix("").as_posix()
    for folder in ("arrow", "epochs", "spark", "state")
    for path in sorted((ROOT / "bindings" / folder).glob("*.py"))
)
CLASSES = ("QueryError", "SchemaError", "DataError", "InputError", "SessionError", "ClusterError")
CLASSES += ("FunctionError", "LateRowError", "LogError", "StateError", "warn")
CLASSES += ("TypeError", "RuntimeError", "KeyError", "JavaError", "SparkVersionError")


def fragments(call: ast.Call) -> list[str]:
    """The fixed pieces of text in the message of an error, without what is filled in."""
    return [
        node.value
        for argument in call.args[:1]
        for node in ast.walk(argument)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def messages() -> Iterator[tuple[str, str]]:
    """(place, longest fixed piece) of every error the model raises."""
    for name in MODEL:
        tree = ast.parse((ROOT / "bindings" / f"{name}.py").read_text())
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            called = node.func.id if isinstance(node.func, ast.Name) else ""
            refused = isinstance(node.func, ast.Attribute) and node.func.attr == "refuse"
            if called in CLASSES or refused:
                pieces = fragments(node)
                if pieces and not any("{what}" in p for p in pieces):
                    yield f"{name}.py:{node.lineno}", max(pieces, key=len)


def squeezed(text: str) -> str:
    return re.sub(r"[\s\\]+", " ", text).strip(" ;:,")


@pytest.mark.parametrize(("place", "message"), list(messages()))
def test_every_message_is_in_the_catalogue(place: str, message: str) -> None:
    assert squeezed(message) in squeezed(CATALOGUE.read_text()), place


def test_every_class_is_in_the_catalogue_and_derives_from_one_base() -> None:
    for error in (
        wj.QueryError,
        wj.SchemaError,
        wj.DataError,
        wj.FunctionError,
        wj.LateRowError,
        wj.InputError,
        wj.SessionError,
        wj.ClusterError,
        wj.LogError,
    ):
        assert f"`{error.__name__}`" in CATALOGUE.read_text()
        assert issubclass(error, wj.WindjoinError)
    assert f"`{wj.LateRowWarning.__name__}`" in CATALOGUE.read_text()
    assert issubclass(wj.LateRowWarning, UserWarning)
    assert issubclass(wj.QueryError, ValueError)
    assert issubclass(wj.SchemaError, TypeError)
    assert issubclass(wj.FunctionError, RuntimeError)


def test_the_model_raises_many_errors() -> None:
    """Guards the two tests above against finding nothing."""
    assert len(list(messages())) > 60
