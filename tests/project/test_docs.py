"""What the documentation names is there."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest
import windjoin
import windjoin.arrow
import windjoin.testing

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
REPOSITORY = "https://github.com/windjoin/windjoin/blob/main/"
RAW = "https://raw.githubusercontent.com/windjoin/windjoin/main/"
ROOMS = ("pyx", "kernels", "diffusion", "bindings", "tests", "benchmarks", "docs")


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", page.read_text()):
        if target.startswith((REPOSITORY, RAW)):
            linked = ROOT / target.removeprefix(REPOSITORY).removeprefix(RAW)
        elif ":" in target:
            continue
        else:
            linked = page.parent / target if target else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor and linked.suffix == ".md":
            assert anchor in anchors(linked), f"{page.name} links to {target}#{anchor}"


def test_the_glossary_is_short() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    words = re.findall(r"^\| (.+?) \|", text.partition("## Words")[2].partition("\n## ")[0], re.M)
    assert 10 < len(words[2:]) <= 30


def anchors(page: Path) -> set[str]:
    """What headings of a page can be linked as."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings)
    return {re.sub(r"\s", "-", heading) for heading in plain}


def test_links_of_what_is_published_are_absolute() -> None:
    """Package indexes show the README without the files beside it."""
    targets = re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text())
    assert len(targets) > 5
    assert [target for target in targets if not target.startswith("https://")] == []


@pytest.mark.parametrize("module", [windjoin, windjoin.arrow, windjoin.testing])
def test_the_reference_has_all_that_is_public(module: ModuleType) -> None:
    name = module.__name__
    page = ROOT / "docs" / "reference" / f"{name.rsplit('.', 1)[-1]}.md"
    listed = set(re.findall(rf"^::: {name}\.(\w+)$", page.read_text(), re.MULTILINE))
    assert listed == {one for one in module.__all__ if callable(getattr(module, one))}


def test_the_site_has_every_page() -> None:
    """`mkdocs build --strict` looks at its links."""
    site = (ROOT / "mkdocs.yml").read_text()
    folder = ROOT / "docs"
    pages = {page.relative_to(folder).as_posix() for page in folder.glob("**/*.md")}
    assert set(re.findall(r"- (?:[\w ]+: )?([\w/]+\.md)$", site, re.MULTILINE)) == pages


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


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_prose_wraps_at_100_columns(page: Path) -> None:
    prose = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    whole = re.compile(r"\|.*|!\[.*|`[^`]*`\.?")  # tables, pictures, code that is not broken
    lines = [line for line in prose.splitlines() if not whole.fullmatch(line)]
    assert [line for line in lines if len(line) > 100] == []
