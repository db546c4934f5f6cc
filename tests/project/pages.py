"""Programs in pages of the documentation: run from top to bottom, as a reader would."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# a program, what readers need not see of it, and what it prints if that stands right below
_BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>on Spark) -->\n)?```python\n(?P<program>.*?)^```\n"
    r"(?:\n```text\n(?P<printed>.*?)^```)?|^<!-- (?P<hidden>hidden)\n(?P<setup>.*?)^-->",
    re.DOTALL | re.MULTILINE,
)


def run_page(page: str, folder: Path, names: dict[str, Any], *, spark: bool = False) -> list[str]:
    """What its programs say wrongly; ``/data/`` in them is a folder of the test.

    Programs marked ``<!-- on Spark -->`` run only with ``spark``.
    """
    wrong = []
    for found in _BLOCK.finditer((ROOT / page).read_text(encoding="utf-8")):
        if found["mark"] and not spark:
            continue
        program = (found["program"] or found["setup"]).replace("/data/", f"{folder}/")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.chdir(folder):
            exec(compile(program, page, "exec"), names)
        expected = found["printed"]
        if expected is not None and printed.getvalue() != expected:
            wrong.append(f"{program}\nprints\n{printed.getvalue()}")
    return wrong


def pages() -> list[str]:
    """All pages with programs."""
    found = [path for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")] if _programs(path)]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def _programs(path: Path) -> bool:
    return "```python" in path.read_text(encoding="utf-8")
