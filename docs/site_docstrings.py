"""Docstrings as the site shows them: examples in blocks of code, what arguments mean as lists."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ARGUMENT = re.compile(r"^``[\w=, ]+``(?:, ``[\w=, ]+``)*:? ")


class AsMarkdown(griffe.Extension):
    """Markdown out of docstrings in reStructuredText's plainest form."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """What griffe calls for each object that it has read."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """Examples fenced, lines about arguments as items of a list."""
    lines: list[str] = []
    inside = False  # of an example
    for line in text.splitlines():
        if line.startswith(">>>") and not inside:
            lines += ["", "```pycon"]
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        elif _ARGUMENT.match(line):
            if lines and lines[-1].strip() and not lines[-1].startswith("* "):
                listed = any(one.startswith("* ") for one in _paragraph(lines))
                lines += [] if listed else [""]
            line = f"* {line}"
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)


def _paragraph(lines: list[str]) -> list[str]:
    """The last lines without an empty one between."""
    found: list[str] = []
    for line in reversed(lines):
        if not line.strip():
            break
        found.append(line)
    return found
