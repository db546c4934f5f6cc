"""Every promise of the documentation has tests that keep it: ``docs/promises.md`` names them."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIST = ROOT / "docs" / "promises.md"
PAGES = ["README.md", *sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md"))]
WORDS = re.compile(
    r"\b(never|always|bounded|guarantee\w*|exactly once|do(es)? not depend"
    r"|(nothing|none|no \w+) (is|are|comes?|leaves?) (\w+ )?(lost|dropped|doubled|twice|missed)"
    r"|loses? (a|no) (pair|row|result|partner)s?)\b",
    re.IGNORECASE,
)
CODE = re.compile(r"```.*?```|`` .*? ``|`[^`\n]*`", re.DOTALL)
BLOCK = re.compile(r"\n\s*\n|\n(?=[|*-] ?)")  # paragraphs, rows of tables, items of lists
SENTENCE = re.compile(r"(?<=[.;:?!])\s+(?=[A-Z`*|])")


def promises(page: str) -> list[str]:
    """The sentences of a page that promise something; what stands in code is not said."""
    text = (ROOT / page).read_text()
    spoken = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    sentences = [
        s for block in BLOCK.split(spoken) for s in SENTENCE.split(" ".join(block.split()))
    ]
    return [sentence for sentence in sentences if WORDS.search(CODE.sub("", sentence))]


def listed() -> list[tuple[str, str, list[str]]]:
    """(page, words of the promise, tests that keep it)."""
    rows = re.findall(
        r"^\| ((?:README|docs/[\w/]+)\.md) \| (.*?) \| (`tests/.*`) \|$", LIST.read_text(), re.M
    )
    return [
        (page, words.replace("\\|", "|"), re.findall(r"`(.*?)`", tests))
        for page, words, tests in rows
    ]


@lru_cache
def functions_in(path: str) -> frozenset[str]:
    """The functions in a file, tests among them, and classes of tests that a machine was made."""
    tree = ast.parse((ROOT / path).read_text())
    functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    made = (node.targets[0] for node in tree.body if isinstance(node, ast.Assign))
    tests = (one.id for one in made if isinstance(one, ast.Name) and one.id.startswith("Test"))
    return frozenset([*(function.name for function in functions), *tests])


@pytest.mark.parametrize("page", [page for page in PAGES if page != "docs/promises.md"])
def test_every_promise_is_listed_with_tests(page: str) -> None:
    known = [words for where, words, _ in listed() if where == page]
    apart = [one for one in promises(page) if not any(words in one for words in known)]
    assert not apart, f"{page}: no row of docs/promises.md has {apart}; add one, or say what is"


def test_every_row_of_the_list_is_said_where_it_says() -> None:
    rows = listed()
    lines = LIST.read_text().splitlines()
    assert len(rows) == sum(line.startswith(("| README", "| docs/")) for line in lines)
    unsaid = [
        (page, words) for page, words, _ in rows
        if words not in " ".join((ROOT / page).read_text().split())
    ]  # fmt: skip
    assert not unsaid


def test_every_named_test_exists() -> None:
    for page, words, tests in listed():
        assert tests, f"{page}: {words}"
        for name in tests:
            path, test = name.split("::")
            assert test in functions_in(path), f"{page}: {words}: there is no {name}"


def test_what_is_said_in_code_is_no_promise_and_what_is_said_aloud_is() -> None:
    for said in ("Rows are never lost.", "No result comes twice.", "then nothing is lost"):
        assert WORDS.search(said)
    assert not WORDS.search(CODE.sub("", "the message `text is never executed`"))
    assert SENTENCE.split("One. Two never.") == ["One.", "Two never."]
