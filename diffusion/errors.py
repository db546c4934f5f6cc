"""The exceptions of this room."""

from __future__ import annotations


class RoutingError(ValueError):
    """A router was asked for what cannot be; the text says what, and what would be right."""


class HostError(RuntimeError):
    """The operator of a host failed; the text says where, ``__cause__`` what happened there."""
