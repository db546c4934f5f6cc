"""The examples in docstrings, in the README and in the documentation run and say what they say."""

from __future__ import annotations

import contextlib
import doctest
import inspect
import io
import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest
import windjoin

ROOT = Path(__file__).parents[2]
OPTIONAL = ("windjoin.spark",)  # tested where Spark is


def modules() -> list[str]:
    found = [module.name for module in pkgutil.walk_packages(windjoin.__path__, "windjoin.")]
    return [
        name for name in found if not name.startswith(OPTIONAL) and not name.endswith("__main__")
    ]


@pytest.mark.parametrize("name", ["windjoin", *modules()])
def test_examples_of(name: str) -> None:
    failed, _ = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert failed == 0


@pytest.mark.parametrize("name", windjoin.__all__)
def test_what_is_public_is_explained_and_shown(name: str) -> None:
    public = getattr(windjoin, name)
    shown = inspect.getdoc(public)
    assert shown, f"{name} has no docstring"
    if not (inspect.isclass(public) and issubclass(public, Exception)):
        examples = [shown]
        if inspect.isclass(public):
            examples += [inspect.getdoc(value) or "" for value in vars(public).values()]
        assert any(">>>" in text for text in examples), f"{name} has no example"


# pages whose examples are whole programs with what they print
PROGRAMS = ("README.md", "docs/asof.md", "docs/inputs.md")


@pytest.mark.parametrize("page", PROGRAMS)
def test_a_page_says_what_its_examples_print(page: str) -> None:
    blocks = re.findall(r"```(python|text)\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert [kind for kind, _ in blocks] == ["python", "text"] * (len(blocks) // 2)
    namespace: dict[str, object] = {}
    for (_, program), (_, expected) in zip(blocks[::2], blocks[1::2], strict=True):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(program, namespace)
        assert printed.getvalue() == expected
