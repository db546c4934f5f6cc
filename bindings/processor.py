"""What the environment says about the processor, checked before anything is built on it."""

from __future__ import annotations

import platform
from functools import cache

from windjoin.errors import WindjoinError


def check_isa() -> None:
    """Refuse a WINDJOIN_ISA that is no word, or that this processor does not have."""
    from windjoin.pyx.base.cpu import check

    try:
        check()
    except ValueError as error:
        raise WindjoinError(str(error)) from None


@cache
def processor_name() -> str:
    """What the processor calls itself; of what architecture it is where it does not say."""
    if platform.system() == "Linux":
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
