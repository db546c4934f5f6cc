"""Links from pages to files outside `docs/` lead to the repository, on the site."""

from __future__ import annotations

import re
from typing import Any

REPOSITORY = "https://github.com/windjoin/windjoin/blob/main"
_OUTSIDE = re.compile(
    r"\]\(\.\./(?=[A-Z]|benchmarks|examples|tests|bindings|kernels|diffusion|pyx)"
)


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """What mkdocs calls for each page before it is laid out."""
    return _OUTSIDE.sub(f"]({REPOSITORY}/", markdown)
