"""The examples of the tutorial run as they stand, and it shows what they print."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = {  # with the page that shows what they print
    "image_pairs.py": "similarity_tutorial.md",
    "near_duplicates.py": "similarity_tutorial.md",
    "news_overload.py": "shedding.md",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_and_prints_what_the_tutorial_says(name: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    picture = tmp_path / f"{Path(name).stem}.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    tutorial = (ROOT / "docs" / EXAMPLES[name]).read_text()
    pattern = rf"<!-- {re.escape(name)} -->\n```text\n(.*?)```"
    shown = re.findall(pattern, tutorial, re.DOTALL)
    assert shown, f"the tutorial does not show what {name} prints"
    for block in shown:
        assert block in ran.stdout
