"""The command as a process of its own, and a folder with two small streams and a query for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-m", "windjoin"]
STREAM = '[streams.{0}]\npath = "{0}.csv"\ntime = "t"\nwindow = 10\n'
TWO_STREAMS = STREAM.format("a") + STREAM.format("b")
QUERY = 'on = \'a["k"] == b["k"]\'\n' + TWO_STREAMS


def windjoin(*arguments: object, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **settings},
        timeout=120,
    )


def refusal(*arguments: object, **settings: str) -> str:
    """What a command that fails says: one line, no traceback."""
    done = windjoin(*arguments, **settings)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr.startswith("windjoin: ")
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("windjoin: ").strip()


def query_file(folder: Path, text: str) -> Path:
    (folder / "query.toml").write_text(text)
    return folder / "query.toml"
