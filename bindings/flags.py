"""Options that are True or False."""

from __future__ import annotations

import numpy as np
from windjoin.errors import QueryError


def check_flag(option: str, value: object, also: str = "") -> None:
    """Refuse what only happens to count as true or false.

    >>> check_flag("ordered", True)
    """
    if not isinstance(value, (bool, np.bool_)):
        raise QueryError(f"{option}={value!r}: give True or False{also}")
