"""What the environment says about the processor, checked before anything is built on it."""

from __future__ import annotations

from windjoin.errors import WindjoinError


def check_isa() -> None:
    """Refuse a WINDJOIN_ISA that is no word, or that this processor does not have."""
    from windjoin.pyx.base.cpu import check

    try:
        check()
    except ValueError as error:
        raise WindjoinError(str(error)) from None
