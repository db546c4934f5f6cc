"""Examples in docstrings, in the README and on all other pages run and say what they say."""

from __future__ import annotations

import doctest
import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import windjoin
import windjoin.arrow
import windjoin.testing

from tests.project.pages import pages, run_page

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


# members that other modules of windjoin call, which users have no use for
INSIDE = {
    "ParquetSink.about", "ParquetSink.add", "ParquetSink.write_due", "Plan.after",
    "Session.abandon", "Session.first_needed", "Session.settle", "Session.slowest",
    "Shedding.settings", "Tuning.options",
}  # fmt: skip


def public() -> Iterator[tuple[str, str]]:
    """Everything that is public, and what is told of it."""
    for module in (windjoin, windjoin.arrow, windjoin.testing):
        for name in module.__all__:
            one = getattr(module, name)
            if not callable(one):
                continue
            yield name, inspect.getdoc(one) or ""
            if not inspect.isclass(one) or issubclass(one, Exception):
                continue
            ours = [base for base in one.__mro__ if base.__module__.startswith("windjoin")]
            members = {key: value for base in reversed(ours) for key, value in vars(base).items()}
            for key, value in members.items():
                function = getattr(value, "fget", None) or getattr(value, "__func__", value)
                if not key.startswith("_") and (callable(function) or isinstance(value, property)):
                    yield f"{name}.{key}", inspect.getdoc(function) or ""


@pytest.mark.parametrize(("name", "told"), [pytest.param(*one, id=one[0]) for one in public()])
def test_what_is_public_is_explained_and_shown(name: str, told: str) -> None:
    assert told, f"{name} has no docstring"
    is_error = name.endswith(("Error", "Warning"))
    assert ">>>" in told or name in INSIDE or is_error, f"{name} has no example"


def test_compiled_methods_say_what_their_examples_say() -> None:
    runner = doctest.DocTestRunner()
    told = inspect.getdoc(windjoin.Session.push)
    assert told is not None
    example = doctest.DocTestParser().get_doctest(told, {}, "push", None, 0)
    assert len(example.examples) > 3
    assert runner.run(example).failed == 0


ON_SPARK = ("docs/spark.md", "docs/spark_streaming.md")  # tests/spark runs them


@pytest.mark.parametrize("page", sorted({*pages()} - {*ON_SPARK}))
def test_programs_of_a_page_run_and_print_what_it_says(page: str, tmp_path: Path) -> None:
    assert run_page(page, tmp_path, {}) == []
