"""The one exception of this room."""

from __future__ import annotations


class RoutingError(ValueError):
    """A router was asked for what cannot be; the text says what, and what would be right."""
