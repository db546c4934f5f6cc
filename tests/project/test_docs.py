"""What the documentation names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
ROOMS = ("pyx", "kernels", "diffusion", "bindings", "tests", "benchmarks", "docs")


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_named_files_exist(page: Path) -> None:
    named = re.findall(rf"`((?:{'|'.join(ROOMS)})/[\w./-]*)`", page.read_text())
    missing = [
        name
        for name in named
        if "NAME" not in name
        and not (ROOT / name).exists()
        and not name.startswith("benchmarks/results/")
    ]
    assert missing == []


def test_every_page_is_listed() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert {name for name in pages if f"]({name})" not in index} == set()


def test_there_are_few_words_to_learn_and_each_is_used() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    words = re.findall(r"^\| ([\w ]+) \| (?!means|---)", page.split("## Words")[1], re.MULTILINE)
    glossary = words[: words.index("slot") + 1]
    assert len(glossary) <= 30
    assert len(set(glossary)) == len(glossary)
    code = "".join(
        path.read_text()
        for room in ("kernels", "diffusion", "pyx", "bindings")
        for path in (ROOT / room).rglob("*")
        if path.suffix in {".py", ".pyx", ".h"}
    )
    unused = [word for word in glossary if not re.search(rf"\b{word.replace(' ', '.')}", code)]
    assert unused == []


# pages whose prose is not wrapped yet; no other is let in
WIDE = {"CHANGELOG.md", "architecture.md", "cli.md", "errors.md", "index.md", "spark_streaming.md"}


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_prose_wraps_at_100_columns(page: Path) -> None:
    if page.name in WIDE:
        return
    prose = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    whole = re.compile(r"\|.*|`[^`]*`\.?")  # rows of tables, and code that is not to be broken
    lines = [line for line in prose.splitlines() if not whole.fullmatch(line)]
    assert [line for line in lines if len(line) > 100] == []
